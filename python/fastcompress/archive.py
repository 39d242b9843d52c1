"""Lossless compression of any bytes into .fcz archives, whose every byte is checked when they are read.

Which bytes come out depends on the data and the settings alone: not on the machine, the number of threads or how the
data arrived. ``cpp/fastcompress/archive/FORMAT.md`` defines them.

>>> blob = compress(b"to be, or not to be" * 100)
>>> decompress(blob) == b"to be, or not to be" * 100
True
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from fastcompress._arguments import as_integer, as_num_threads, shown
from fastcompress._core import archive as _core
from fastcompress.errors import BusyError, ConfigError, FormatError

__all__ = ["DEFAULT_MAX_OUTPUT", "ArchiveInfo", "Compressor", "Decompressor", "compress", "decompress", "info"]

Method: TypeAlias = Literal["lz", "cm"]
Data: TypeAlias = str | bytes | bytearray | memoryview

# What decompress() gives at most unless told otherwise: 1 GiB, so that no small file from a stranger fills the memory.
DEFAULT_MAX_OUTPUT = 1 << 30
_UNLIMITED = (1 << 64) - 1


def compress(
    data: Data,
    method: Method = "lz",
    level: int | None = None,
    *,
    block_bytes: int | None = None,
    num_threads: int | None = None,
) -> bytes:
    """The archive of `data` (a str as UTF-8).

    Args:
        method: "lz": LZ77 under adaptive models, quick to decompress. "cm": every byte predicted by a mixture of
            contexts (`arithmetic.ContextMixer`), smaller, at some 1 MB a second each way.
        level: 1 (quickest) to 9 (smallest); None: 8 of "lz", 5 of "cm". Of "cm" it is the size of the model, at most
            2**(17 + level) bytes a thread on both sides.
        block_bytes: how much is coded at once, 64 KiB to 64 MiB; None: by level, 4 to 16 MiB, of "cm" 16 MiB. Each
            block is coded alone, so larger ones compress better, and several are coded and decoded at the same time.
        num_threads: None: one a core; the archive is the same for any number.

    ConfigError: a setting out of range. Memory: some 15 bytes a byte of the blocks under way for "lz". Releases the
    GIL.
    """
    return _core.compress(data, *_settings(method, level, block_bytes, num_threads))


def decompress(blob: Data, *, max_output: int | None = DEFAULT_MAX_OUTPUT, num_threads: int | None = None) -> bytes:
    """The data of an archive: decompress(compress(data)) == data.

    FormatError: it is no archive, cut off, changed in whatever way, of a newer version, or holds more than
    `max_output` bytes (None: no bound), which is found out before memory is taken for them. O(blob + data). Releases
    the GIL.
    """
    return _core.decompress(blob, _bound(max_output), as_num_threads(num_threads))


class Compressor:
    """Makes an archive of data that comes in pieces: what `update` and `finish` return, joined, is the archive.

    The same bytes for any pieces. Memory: two blocks a thread and what coding them takes; the arguments are those of
    `compress`. `content_bytes`, if it is known how long the data will be, is put into the header; the archive is then
    that of `compress`.
    """

    def __init__(
        self,
        method: Method = "lz",
        level: int | None = None,
        *,
        block_bytes: int | None = None,
        content_bytes: int | None = None,
        num_threads: int | None = None,
    ) -> None:
        """Begin a compressed file; the arguments are those of `compress`.

        Args:
            method: "lz" or "cm".
            level: 1 to 9, or None for the method's own.
            block_bytes: None for the level's own.
            content_bytes: The length of the data if it is known: it is put into the header.
            num_threads: None for one per core.

        Raises:
            ConfigError: A setting is out of range.
        """
        if content_bytes is not None:
            content_bytes = as_integer(content_bytes, "content_bytes", 0, _UNLIMITED, or_none="an unknown length")
        name, number, size, threads = _settings(method, level, block_bytes, num_threads)
        self._writer = _core.Writer(name, number, size, content_bytes, threads)
        self._settings = f"method={method!r}, level={level}, block_bytes={block_bytes}, content_bytes={content_bytes}"
        self._is_finished = False

    def __repr__(self) -> str:
        return f"Compressor({self._settings}, {'finished' if self._is_finished else 'open'})"

    def update(self, data: Data) -> bytes:
        """Takes data; returns what is done of the archive, some bytes or none."""
        self._check_open()
        return self._writer.append(data)

    def finish(self) -> bytes:
        """The rest of the archive. ConfigError: the data was not `content_bytes` long."""
        self._check_open()
        try:
            rest = self._writer.finish()
        except BusyError:
            raise
        except Exception:
            self._is_finished = True
            raise
        self._is_finished = True
        return rest

    def _check_open(self) -> None:
        if self._is_finished:
            raise ConfigError("this Compressor is finished; make another for another archive")


class Decompressor:
    """Reads an archive that comes in pieces: what `update` returns, joined, is the data.

    Everything returned has been checked; that nothing is missing is known when `finish` has returned. Errors and
    arguments are those of `decompress`, but there is no bound unless one is given, since no more memory is used than a
    block a thread. After an error it is of no more use.
    """

    def __init__(self, *, max_output: int | None = None, num_threads: int | None = None) -> None:
        """Begin to read; the arguments are those of `decompress`, but `max_output` None, the default, is no bound.

        Raises ConfigError if an argument is out of range.
        """
        self._reader = _core.Reader(_bound(max_output), as_num_threads(num_threads))
        self._max_output = max_output
        self._error: Exception | None = None

    def __repr__(self) -> str:
        state = "open" if self._error is None else "stopped by an error"
        return f"Decompressor(max_output={self._max_output}, {state})"

    def update(self, blob: Data) -> bytes:
        """Takes bytes of the archive; returns data that is decoded and checked, some bytes or none."""
        if self._error is not None:
            raise self._error
        try:
            return self._reader.append(blob)
        except (FormatError, MemoryError) as error:
            self._error = error
            raise

    def finish(self) -> None:
        """FormatError if the archive does not end here."""
        if self._error is not None:
            raise self._error
        self._reader.finish()


@dataclass(frozen=True)
class ArchiveInfo:
    """What an archive's header says.

    Attributes:
        method: "lz" or "cm".
        level: what it was compressed with.
        block_bytes: of each block but the last, which may be shorter.
        content_bytes: of the data; None: it was not known when the archive was begun.
        model_sha256: of the model that decompressing takes, None for none.
    """

    method: Method
    level: int
    block_bytes: int
    content_bytes: int | None
    model_sha256: str | None


def info(blob: Data) -> ArchiveInfo:
    """The header of an archive, of which the first 72 bytes are enough. FormatError as in `decompress`."""
    method, level, block_bytes, content_bytes, model_hash = _core.header(blob)
    return ArchiveInfo(method, level, block_bytes, content_bytes, model_hash.hex() if any(model_hash) else None)


def _settings(method: str, level: int | None, block_bytes: int | None, num_threads: int | None) -> tuple[Any, ...]:
    """Return what the core takes: None is 0."""
    if not isinstance(method, str):
        raise TypeError(f"method is {shown(method)}; it must be 'lz' or 'cm'")
    if level is not None:
        level = as_integer(level, "level", 1, 255, or_none="the method's own")
    if block_bytes is not None:
        least, most = _core.MIN_BLOCK_BYTES, _core.MAX_BLOCK_BYTES
        block_bytes = as_integer(block_bytes, "block_bytes", least, most, or_none="the level's own")
    return method, level or 0, block_bytes or 0, as_num_threads(num_threads)


def _bound(max_output: int | None) -> int:
    if max_output is None:
        return _UNLIMITED
    return min(as_integer(max_output, "max_output", 0, 1 << 4096, or_none="no bound"), _UNLIMITED)
