"""The commands compress and decompress."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, BinaryIO

import click

from fastcompress.cli.output import (
    check_output,
    count,
    force_option,
    json_option,
    open_output,
    progress_bar,
    show_result,
)
from fastcompress.cli.streams import naming_stdin, stdin

if TYPE_CHECKING:
    from fastcompress.archive import Method

_SUFFIX = ".fcz"
_CHUNK_BYTES = 1 << 20


@click.command(
    short_help="Compress a file.",
    epilog="\b\nExamples:\n"
    "  fastcompress compress book.txt\n"
    "  tar c folder | fastcompress compress - --level 9 -o folder.tar.fcz",
)
@click.argument("file", metavar="FILE")
@click.option("-o", "--output", help="Output file, or - for standard output."
              "  [default: FILE.fcz, or - if FILE is -]")  # fmt: skip
@click.option("--method", type=click.Choice(["lz", "cm"]), default="lz", show_default=True,
              help="lz decompresses fast; cm makes output a sixth smaller, at 1 MB per second each way.")  # fmt: skip
@click.option("--level", type=click.IntRange(min=1),
              help="From 1 (fastest) to 9 (smallest).  [default: 8 for lz, 5 for cm]")  # fmt: skip
@click.option("--threads", type=click.IntRange(min=1, max=1024), help="Number of threads.  [default: all cores]")
@force_option()
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
    """Compress FILE, which may have any contents, to the .fcz format. - is standard input.

    Memory does not grow with FILE: about 300 MB per thread for lz, 90 MB for cm.
    """
    from fastcompress.archive import Compressor
    from fastcompress.errors import DataError

    if output is None:
        output = "-" if file == "-" else file + _SUFFIX
    check_output(output, overwrite, file)
    with _open_input(file) as (source, size):
        packer = Compressor(method, level, content_bytes=size or None, num_threads=threads)
        num_bytes = num_coded = 0
        with open_output(output, overwrite) as target, progress_bar("compressing", size) as advance:
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
    short_help="Decompress a file.",
    epilog="\b\nExamples:\n"
    "  fastcompress decompress book.txt.fcz\n"
    "  fastcompress decompress folder.tar.fcz -o - | tar x",
)
@click.argument("file", metavar="FILE.fcz")
@click.option("-o", "--output", help="Output file, or - for standard output."
              "  [default: FILE without .fcz, or - if FILE is -]")  # fmt: skip
@click.option("--max-output", type=click.IntRange(0, 2**63 - 1),
              help="Fail if the output would exceed this many bytes.  [default: no limit]")  # fmt: skip
@click.option("--threads", type=click.IntRange(min=1, max=1024), help="Number of threads.  [default: all cores]")
@force_option()
@json_option
def decompress(
    file: str,
    output: str | None,
    max_output: int | None,
    threads: int | None,
    overwrite: bool,
    as_json: bool,
) -> None:
    """Decompress an .fcz file to the exact bytes that were compressed; checksums verify all of them.

    After an error no file is written, and what was sent to standard output before the error must be discarded.
    """
    from fastcompress.archive import Decompressor

    if output is None:
        if file != "-" and not file.endswith(_SUFFIX):
            raise click.UsageError(f"{file} does not end in {_SUFFIX}; name the output with -o")
        output = "-" if file == "-" else file.removesuffix(_SUFFIX)
    check_output(output, overwrite, file)
    with _open_input(file) as (source, size):
        unpacker = Decompressor(max_output=max_output, num_threads=threads)
        num_bytes = num_coded = 0
        with _named(file), open_output(output, overwrite) as target, progress_bar("decompressing", size) as advance:
            while chunk := source.read(_CHUNK_BYTES):
                num_coded += len(chunk)
                num_bytes += target.write(unpacker.update(chunk))
                advance(len(chunk))
            unpacker.finish()
    _show(output, num_bytes, num_coded, as_json)


@contextlib.contextmanager
def _open_input(path: str) -> Iterator[tuple[BinaryIO, int | None]]:
    """Yield the stream of a file and its size, which is None unless it is a regular file; "-" is standard input."""
    from fastcompress.errors import DataError, MissingFileError

    if path == "-":
        with naming_stdin():
            yield stdin(), None
        return
    if not os.path.exists(path):
        raise MissingFileError(f"{path}: no such file; name one that exists, or - for standard input")
    if os.path.isdir(path):
        raise DataError(f"{path}: is a folder; pack it with tar first")
    with open(path, "rb") as file:
        yield file, os.path.getsize(path) if os.path.isfile(path) else None


@contextlib.contextmanager
def _named(file: str) -> Iterator[None]:
    """Start the message of a FormatError of the block with the name of the file."""
    from fastcompress.errors import FormatError

    try:
        yield
    except FormatError as error:
        raise FormatError(f"{'standard input' if file == '-' else file}: {error}") from error


def _show(output: str, num_bytes: int, num_coded: int, as_json: bool) -> None:
    """Print one line, unless standard output is the result itself."""
    if output == "-":
        return
    ratio = num_bytes / num_coded if num_coded else 0.0
    result = {"output": output, "bytes": num_bytes, "archive_bytes": num_coded, "ratio": round(ratio, 4)}
    text = f"{output}: {count(num_bytes, 'byte')}, {num_coded:,} compressed (1 to {ratio:.2f})"
    show_result(result, text, as_json)
