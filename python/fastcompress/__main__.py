"""`python -m fastcompress` is the `fastcompress` command."""

from fastcompress.cli import main

main(prog_name="fastcompress")
