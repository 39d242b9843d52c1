"""Drop-in replacements for other libraries, on top of fastcompress."""
