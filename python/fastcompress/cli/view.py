"""The command view."""

from __future__ import annotations

import os
from pathlib import Path

import click

from fastcompress.cli.inputs import FIXED_CODEC_HELP
from fastcompress.cli.output import check_output, force_option, open_output

_MAX_BYTES = 1_000_000
_LARGE_PAGE_BYTES = 5_000_000


@click.command(
    short_help="Show how codecs split a text, as a web page.",
    epilog="\b\nExamples:\n"
    "  fastcompress view README.md --codec lz77 -o tokens.html\n"
    "  fastcompress view book.txt --codec char --codec bpe-1000 --codec cl100k_base -o tokens.html",
)
@click.argument("file", metavar="FILE")
@click.option("--codec", "specs", multiple=True, default=("lz77",), show_default=True, metavar="CODEC",
              help=f"May be repeated. char, bpe-N (trained on FILE), {FIXED_CODEC_HELP}")  # fmt: skip
@click.option("--max-bytes", type=click.IntRange(1, _MAX_BYTES), default=20_000, show_default=True,
              help="Show the first this many bytes. A page has about 30 times as many per codec.")  # fmt: skip
@click.option("-o", "--output", default="tokens.html", show_default=True,
              help="Output file, or - for standard output.")  # fmt: skip
@force_option()
def view(file: str, specs: tuple[str, ...], max_bytes: int, output: str, overwrite: bool) -> None:
    """Write a page that shows the tokens of FILE in colour, side by side for several codecs. - is standard input.

    Point at a token to see its id and bytes, the same bytes in the other panels, and for LZ77 what a match copies.
    """
    from fastcompress.cli.inputs import document_named, make_codec, read_text
    from fastcompress.cli.view_page import make_panel, render
    from fastcompress.data.corpora import Document, take_bytes

    check_output(output, overwrite, file)
    name = "standard input" if file == "-" else file
    data = read_text(file)
    documents = [Document(name, data)]
    shown = b"".join(document.data for document in take_bytes(documents, max_bytes))
    panels = []
    for spec in specs:
        codec = make_codec(spec, documents, lambda: documents)
        with document_named([Document(name, shown)], codec.encode):
            panels.append(make_panel(codec, shown, Path(spec).name if os.path.exists(spec) else spec))
    page = render(name if file == "-" else Path(file).name, shown, panels, len(data)).encode("utf-8", "surrogateescape")
    with open_output(output, overwrite) as out:
        out.write(page)
    if len(page) > _LARGE_PAGE_BYTES:
        click.echo(
            f"warning: the page has {len(page) / 1e6:.0f} MB, which browsers show slowly; use a smaller --max-bytes",
            err=True,
        )
    if output != "-":
        click.echo(f"{output}: {len(shown):,} of {len(data):,} bytes; open it in a browser", err=True)
