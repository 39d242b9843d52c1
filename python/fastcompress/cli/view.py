"""fastcompress view"""

from __future__ import annotations

import sys
from pathlib import Path

import click

from fastcompress.cli.output import check_output, open_output


@click.command(
    short_help="Show how codecs cut a text, as a page for the browser.",
    epilog="\b\nExamples:\n"
    "  fastcompress view README.md --codec lz77 -o tokens.html\n"
    "  fastcompress view book.txt --codec char --codec bpe-1000 --codec lz77 -o tokens.html",
)
@click.argument("file", metavar="FILE")
@click.option("--codec", "specs", multiple=True, default=("lz77",), show_default=True, metavar="CODEC",
              help="May be repeated. byte, char, bpe-N (trained on FILE), lz77, lz77-buckets, lzp, or the "
                   "path of a codec.json, a saved vocabulary or a tokenizer.json.")  # fmt: skip
@click.option("--max-bytes", type=click.IntRange(min=1), default=20_000, show_default=True,
              help="Show this many bytes from the front.")  # fmt: skip
@click.option("-o", "--output", default="tokens.html", show_default=True, help="A file; -: standard output.")
def view(file: str, specs: tuple[str, ...], max_bytes: int, output: str) -> None:
    """Write a page that shows the tokens of FILE (-: standard input) in colour, side by side for several codecs.

    Point at a match of LZ77 and what it copies is marked.
    """
    from fastcompress.cli.inputs import make_codec
    from fastcompress.cli.view_page import make_panel, render
    from fastcompress.data.corpora import Document, take_bytes
    from fastcompress.errors import DataError

    if output != "-":
        check_output(output)
    try:
        data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except FileNotFoundError:
        raise DataError(f"{file}: no such file") from None
    documents = [Document(file, data)]
    shown = b"".join(document.data for document in take_bytes(documents, max_bytes))
    panels = [make_panel(make_codec(spec, documents, lambda: documents), shown) for spec in specs]
    title = "standard input" if file == "-" else Path(file).name
    with open_output(output) as out:
        out.write(render(title, shown, panels).encode("utf-8", "surrogateescape"))
    if output != "-":
        click.echo(f"{output}: {len(shown):,} of {len(data):,} bytes; open it in a browser", err=True)
