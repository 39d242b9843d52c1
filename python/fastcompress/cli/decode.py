"""fastcompress decode"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fastcompress.cli.inputs import need_one
from fastcompress.cli.output import open_output, progress_bar

if TYPE_CHECKING:
    from fastcompress.codec import Codec


@click.command(
    short_help="Turn token ids back into bytes.",
    epilog="\b\nExamples:\n"
    "  fastcompress decode shards --split validation -o copy.txt\n"
    "  echo 72 105 | fastcompress decode --codec byte",
)
@click.argument("directory", required=False, metavar="[SHARDS]")
@click.option("--split", help="Which split of SHARDS; needed when it holds several.")
@click.option("--codec", "codec_spec", metavar="CODEC",
              help="byte or a path; then ids are read from standard input, not SHARDS.")  # fmt: skip
@click.option("-o", "--output", default="-", show_default=True, help="A file; -: standard output.")
def decode(directory: str | None, split: str | None, codec_spec: str | None, output: str) -> None:
    """Turn token ids back into the exact bytes: of a directory of SHARDS, or of ids on standard input.

    The documents follow one another with nothing between them.
    """
    need_one(SHARDS=directory, codec=codec_spec)
    from fastcompress.codec import codec_from_spec

    pieces = _decode_shards(Path(directory), split) if directory else _decode_lines(codec_from_spec(codec_spec or ""))
    with open_output(output) as file, progress_bar("decoding") as advance:
        for piece in pieces:
            file.write(piece)
            advance(len(piece))


def _decode_shards(directory: Path, split: str | None) -> Iterator[bytes]:
    from fastcompress.codec import load_codec
    from fastcompress.data.shards import TokenDataset, list_splits

    splits = list_splits(directory)
    if split is None and len(splits) > 1:
        raise click.UsageError(f"{directory} holds the splits {', '.join(splits)}; name one with --split")
    dataset = TokenDataset.open(directory, split or (splits or ["train"])[0])
    codec = load_codec(directory / "codec.json")
    return (codec.decode(tokens) for tokens in dataset.documents())


def _decode_lines(codec: Codec) -> Iterator[bytes]:
    import numpy as np

    from fastcompress.errors import DataError

    for number, line in enumerate(sys.stdin.buffer, 1):
        try:
            ids = np.array(line.split(), dtype=np.int64)
        except (ValueError, OverflowError):
            raise DataError(
                f"standard input: line {number} is not ids; give whole numbers with spaces between"
            ) from None
        try:
            yield codec.decode(ids)
        except DataError as error:
            raise DataError(f"standard input: line {number}: {error}") from error
