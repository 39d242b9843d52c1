"""fastcompress compress, fastcompress decompress"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import click

from fastcompress.cli.output import check_output, count, json_option, open_output, progress_bar, show_result

if TYPE_CHECKING:
    from fastcompress.archive import Method

_SUFFIX = ".fcz"
_CHUNK_BYTES = 1 << 20


@click.command(
    short_help="Make a file smaller.",
    epilog="\b\nExamples:\n"
    "  fastcompress compress book.txt\n"
    "  tar c folder | fastcompress compress - --level 9 -o folder.tar.fcz",
)
@click.argument("file", metavar="FILE")
@click.option("-o", "--output", help="A file; -: standard output.  [default: FILE.fcz; of -, -]")
@click.option("--method", type=click.Choice(["lz", "cm"]), default="lz", show_default=True,
              help="lz is quick to decompress; cm is a sixth smaller, at 1 MB a second each way.")  # fmt: skip
@click.option("--level", type=click.IntRange(min=1), help="From 1 (quickest) to 9 (smallest).  [default: lz 8, cm 5]")
@click.option("--threads", type=click.IntRange(min=1, max=1024), help="[default: all cores]")
@click.option("--overwrite", is_flag=True, help="Replace the output if it is there.")
@json_option
def compress(
    file: str,
    output: str | None,
    method: Method,
    level: int | None,
    threads: int | None,
    overwrite: bool,
    as_json: bool,
) -> None:
    """Compress FILE, any bytes, into an .fcz archive, which `decompress` checks and turns back.

    Memory is bounded however large FILE is: some 300 MB a thread for lz, 90 for cm. - is standard input.
    """
    from fastcompress.archive import Compressor
    from fastcompress.errors import DataError

    output = _checked_output(file, output or ("-" if file == "-" else file + _SUFFIX), overwrite)
    with _open_input(file) as (source, size):
        packer = Compressor(method, level, content_bytes=size or None, num_threads=threads)
        num_bytes = num_coded = 0
        with open_output(output) as target, progress_bar("compressing", size) as advance:
            while chunk := source.read(_CHUNK_BYTES):
                num_bytes += len(chunk)
                num_coded += target.write(packer.update(chunk))
                advance(len(chunk))
            if size and num_bytes != size:
                raise DataError(
                    f"{file}: changed while it was read ({size:,} bytes at first, {num_bytes:,} now); try again"
                )
            num_coded += target.write(packer.finish())
    _show(output, num_bytes, num_coded, as_json)


@click.command(
    short_help="Turn an archive back into the file.",
    epilog="\b\nExamples:\n"
    "  fastcompress decompress book.txt.fcz\n"
    "  fastcompress decompress folder.tar.fcz -o - | tar x",
)
@click.argument("file", metavar="FILE.fcz")
@click.option("-o", "--output", help="A file; -: standard output.  [default: FILE without .fcz; of -, -]")
@click.option("--max-output", type=click.IntRange(min=0), help="Refuse archives of more bytes.  [default: no bound]")
@click.option("--threads", type=click.IntRange(min=1, max=1024), help="[default: all cores]")
@click.option("--overwrite", is_flag=True, help="Replace the output if it is there.")
@json_option
def decompress(
    file: str,
    output: str | None,
    max_output: int | None,
    threads: int | None,
    overwrite: bool,
    as_json: bool,
) -> None:
    """Turn an .fcz archive back into the exact bytes, all of which are checked.

    After an error no file is written; what went to standard output before it is to be thrown away.
    """
    from fastcompress.archive import Decompressor

    if output is None:
        if file != "-" and not file.endswith(_SUFFIX):
            raise click.UsageError(f"{file} does not end in {_SUFFIX}; name the output with -o")
        output = "-" if file == "-" else file.removesuffix(_SUFFIX)
    output = _checked_output(file, output, overwrite)
    with _open_input(file) as (source, size):
        unpacker = Decompressor(max_output=max_output, num_threads=threads)
        num_bytes = num_coded = 0
        with _named(file), open_output(output) as target, progress_bar("decompressing", size) as advance:
            while chunk := source.read(_CHUNK_BYTES):
                num_coded += len(chunk)
                num_bytes += target.write(unpacker.update(chunk))
                advance(len(chunk))
            unpacker.finish()
    _show(output, num_bytes, num_coded, as_json)


@contextlib.contextmanager
def _open_input(path: str) -> Iterator[tuple[BinaryIO, int | None]]:
    """The stream of a file, and its size if it is a regular one; "-" is standard input."""
    from fastcompress.errors import DataError, MissingFileError

    if path == "-":
        yield sys.stdin.buffer, None
        return
    if not os.path.exists(path):
        raise MissingFileError(f"{path}: there is no such file")
    if os.path.isdir(path):
        raise DataError(f"{path}: is a folder; archive it first, with tar")
    with open(path, "rb") as file:
        yield file, os.path.getsize(path) if os.path.isfile(path) else None


def _checked_output(file: str, output: str, overwrite: bool) -> str:
    """OutputError where something must not be, or cannot be, written."""
    from fastcompress.errors import OutputError

    if output == "-":
        return output
    path = Path(output)
    if path.exists() and file != "-" and os.path.exists(file) and path.samefile(file):
        raise OutputError(f"{output}: is the input itself; choose another output")
    if path.is_file() and not overwrite:
        raise OutputError(f"{output}: exists already; choose another output, or replace it with --overwrite")
    check_output(output)
    return output


@contextlib.contextmanager
def _named(file: str) -> Iterator[None]:
    """Names the file in what is wrong with it."""
    from fastcompress.errors import FormatError

    try:
        yield
    except FormatError as error:
        raise FormatError(f"{'standard input' if file == '-' else file}: {error}") from error


def _show(output: str, num_bytes: int, num_coded: int, as_json: bool) -> None:
    """One line, unless standard output is the result itself."""
    if output == "-":
        return
    ratio = num_bytes / num_coded if num_coded else 0.0
    result = {"output": output, "bytes": num_bytes, "archive_bytes": num_coded, "ratio": round(ratio, 4)}
    text = f"{output}: {count(num_bytes, 'byte')}, {num_coded:,} in the archive (1 to {ratio:.2f})"
    show_result(result, text, as_json)
