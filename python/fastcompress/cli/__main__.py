"""`python -m fastcompress.cli` is the `fastcompress` command."""

from fastcompress.cli import main

main(prog_name="fastcompress")
