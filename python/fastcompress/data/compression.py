"""Compressed inputs: the table of compressions that are read as they are, and errors of reading.

A new compression is one entry of `COMPRESSIONS`.
"""

from __future__ import annotations

import bz2
import contextlib
import gzip
import io
import lzma
import re
import sys
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from fastcompress.errors import ConfigError, DataError, FormatError

_CHUNK_BYTES = 1 << 16
_BUFFER_BYTES = 1 << 18


@dataclass(frozen=True)
class Compression:
    """A way in which a file is compressed.

    Attributes:
        suffix: How the name of such a file ends.
        starts: How its first bytes are.
        open: Returns the decompressed stream of a compressed one; the name is for errors.
    """

    suffix: str
    starts: re.Pattern[bytes]
    open: Callable[[IO[bytes], str], IO[bytes]]


class FilledStream(io.RawIOBase):
    """A stream to read, of the parts that a function returns; an empty part is the end."""

    def __init__(self, next_part: Callable[[int], bytes], ready: bytes = b"") -> None:
        self._next_part = next_part
        self._ready = memoryview(ready)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._ready:
            self._ready = memoryview(self._next_part(_BUFFER_BYTES))
        part = self._ready[: len(buffer)]
        buffer[: len(part)] = part
        self._ready = self._ready[len(part) :]
        return len(part)


def rejoined(start: bytes, rest: IO[bytes]) -> IO[bytes]:
    """Return a stream of the first bytes, which were read already, and the rest."""
    return io.BufferedReader(FilledStream(rest.read, start), _BUFFER_BYTES)


def pyarrow_for(name: str, what: str) -> Any:
    """Return the module pyarrow. Raises ConfigError, which says what it is needed for, if it is not installed."""
    try:
        import pyarrow
    except ImportError:
        raise ConfigError(
            f"{name}: {what} is read by pyarrow, which is not installed; pip install 'fastcompress[data]'"
        ) from None
    return pyarrow


def _open_gzip(file: IO[bytes], name: str) -> IO[bytes]:
    return gzip.GzipFile(fileobj=file)  # type: ignore[return-value]


def _open_bzip2(file: IO[bytes], name: str) -> IO[bytes]:
    return bz2.BZ2File(file)


def _open_xz(file: IO[bytes], name: str) -> IO[bytes]:
    return lzma.LZMAFile(file)


def _open_zstd(file: IO[bytes], name: str) -> IO[bytes]:
    stream = pyarrow_for(name, "zstd").CompressedInputStream(file, "zstd")

    def next_part(num_bytes: int) -> bytes:
        try:
            part: bytes = stream.read(num_bytes)
        except OSError as error:
            if "too much memory" not in str(error):
                raise
            raise DataError(
                f"{name}: needs a window of more than 128 MiB; decompress it with zstd -d --long=31"
            ) from None
        return part

    return io.BufferedReader(FilledStream(next_part), _BUFFER_BYTES)


def _open_archive(file: IO[bytes], name: str) -> IO[bytes]:
    from fastcompress.archive import Decompressor

    decompressor = Decompressor()

    def next_part(num_bytes: int) -> bytes:
        while chunk := file.read(_CHUNK_BYTES):
            if part := decompressor.update(chunk):
                return part
        decompressor.finish()
        return b""

    return io.BufferedReader(FilledStream(next_part), _BUFFER_BYTES)


COMPRESSIONS = (
    Compression(".gz", re.compile(rb"\x1f\x8b\x08"), _open_gzip),
    Compression(".bz2", re.compile(rb"BZh[1-9](1AY&SY|\x17rE8P\x90)"), _open_bzip2),
    Compression(".xz", re.compile(rb"\xfd7zXZ\x00"), _open_xz),
    Compression(".zst", re.compile(rb"\x28\xb5\x2f\xfd"), _open_zstd),
    Compression(".fcz", re.compile(rb"\x89FCFCZ\r\n"), _open_archive),
)


def compression_of(name: str, start: bytes) -> Compression | None:
    """Return how a file is compressed, by its first bytes or else by its name; None if it is not."""
    for compression in COMPRESSIONS:
        if compression.starts.match(start):
            return compression
    return next((one for one in COMPRESSIONS if name.lower().endswith(one.suffix)), None)


def uncompressed_name(name: str) -> str:
    """Return the name in small letters, without the suffix of a compression.

    >>> uncompressed_name("Rows.JSONL.zst")
    'rows.jsonl'
    """
    name = name.lower()
    for compression in COMPRESSIONS:
        if name.endswith(compression.suffix):
            return name.removesuffix(compression.suffix)
    return name


@contextlib.contextmanager
def reading(path: str | Path) -> Iterator[None]:
    """Turn errors of reading and decompressing `path` in the block into errors of this package."""
    try:
        yield
    except DataError:
        raise
    except _damage() as error:
        raise _damaged(path, error) from error
    except OSError as error:
        if error.errno is None:  # bz2 and pyarrow: the contents are wrong, not the way to them
            raise _damaged(path, error) from error
        raise DataError(f"{path}: cannot be read ({error.strerror}); name a readable file") from error


def _damaged(path: str | Path, error: BaseException) -> FormatError:
    # Only the first line: pyarrow's messages can go on with details of its own source.
    reason = str(error).strip().partition("\n")[0]
    return FormatError(f"{path}: damaged or truncated ({reason}); get the file again")


def _damage() -> tuple[type[BaseException], ...]:
    """Return the errors that mean damaged contents; those of pyarrow if it was imported."""
    kinds = (lzma.LZMAError, gzip.BadGzipFile, zlib.error, EOFError, UnicodeDecodeError, FormatError)
    arrow_error = getattr(sys.modules.get("pyarrow"), "ArrowException", None)  # not there while it is being imported
    return kinds if arrow_error is None else (*kinds, arrow_error)
