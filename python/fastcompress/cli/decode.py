"""The command decode."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fastcompress.cli.inputs import FIXED_CODEC_HELP, fixed_codec, need_one, split_to_read
from fastcompress.cli.output import check_output, force_option, open_output, progress_bar
from fastcompress.cli.streams import naming_stdin, stdin

if TYPE_CHECKING:
    from fastcompress.codec import Codec


@click.command(
    short_help="Decode token ids to bytes.",
    epilog="\b\nExamples:\n"
    "  fastcompress decode shards --split validation -o copy.txt\n"
    "  echo 72 105 | fastcompress decode --codec byte",
)
@click.argument("directory", required=False, metavar="[SHARDS]")
@click.option("--split", help="The split of SHARDS to decode; required if there are several.")
@click.option("--codec", "codec_spec", metavar="CODEC",
              help=f"Decode ids from standard input with this codec: {FIXED_CODEC_HELP}")  # fmt: skip
@click.option("-o", "--output", default="-", show_default=True, help="Output file, or - for standard output.")
@force_option()
def decode(directory: str | None, split: str | None, codec_spec: str | None, output: str, overwrite: bool) -> None:
    """Decode token ids to the exact bytes: those of a directory of SHARDS, or ids on standard input.

    Ids on standard input are whole numbers with spaces between them, one document per line. The documents follow one
    another in the output with nothing between them.
    """
    need_one(SHARDS=directory, codec=codec_spec)
    if split and not directory:
        raise click.UsageError("--split goes with SHARDS")
    check_output(output, overwrite)
    pieces = (
        _decode_shards(Path(directory), split)
        if directory
        else _decode_lines(fixed_codec(codec_spec or "", default_pattern="none"))
    )
    with open_output(output, overwrite) as file, progress_bar("decoding") as advance:
        for piece in pieces:
            file.write(piece)
            advance(len(piece))


def _decode_shards(directory: Path, split: str | None) -> Iterator[bytes]:
    from fastcompress.codec import load_codec
    from fastcompress.data.shards import TokenDataset

    split = split_to_read(directory, split, ", or give --codec and send ids to standard input")
    dataset = TokenDataset.open(directory, split)
    codec = load_codec(directory / "codec.json")
    return (codec.decode(tokens) for tokens in dataset.documents())


def _decode_lines(codec: Codec) -> Iterator[bytes]:
    import numpy as np

    from fastcompress.errors import DataError

    for number, line in enumerate(_lines(), 1):
        try:
            ids = np.array(line.split(), dtype=np.int64)
        except (ValueError, OverflowError):
            raise DataError(
                f"standard input: line {number} is not ids; give whole numbers with spaces between them"
            ) from None
        try:
            yield codec.decode(ids)
        except DataError as error:
            raise DataError(f"standard input: line {number}: {error}") from error


def _lines() -> Iterator[bytes]:
    with naming_stdin():
        yield from iter(stdin().readline, b"")
