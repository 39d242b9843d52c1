"""A drop-in for tiktoken 0.14: the same ids, methods, properties and types of errors.

>>> from fastcompress.compat import tiktoken
>>> enc = tiktoken.get_encoding("cl100k_base")
>>> enc.decode(enc.encode("hello world"))
'hello world'

It has tiktoken's modules too: `core`, `load`, `model` and `registry`. Rank files are read from tiktoken's own cache
folder, or downloaded into it (`fastcompress.formats.rank_cache`). Plugins of the namespace package ``tiktoken_ext`` are
found as tiktoken finds them.

Known differences, none of which affects documented behaviour of tiktoken:

- Every method that takes a text replaces surrogates; in tiktoken only two do.
- Errors have other messages, and are also errors of `fastcompress.errors`.
- A vocabulary must have all 256 single bytes, and ids are below 2**21.
- `load` does not copy local files into the cache, where later changes of the file would go unnoticed.
"""

from __future__ import annotations

from fastcompress.compat.tiktoken import core, load, model, registry
from fastcompress.compat.tiktoken.core import Encoding
from fastcompress.compat.tiktoken.model import encoding_for_model, encoding_name_for_model
from fastcompress.compat.tiktoken.registry import get_encoding, list_encoding_names

__version__ = "0.14.0"
"""The version of tiktoken that this behaves like."""

__all__ = [
    "Encoding",
    "__version__",
    "core",
    "encoding_for_model",
    "encoding_name_for_model",
    "get_encoding",
    "list_encoding_names",
    "load",
    "model",
    "registry",
]
