"""Lossless compression of any bytes into .fcz files, in which every byte is covered by a checksum.

The compressed bytes depend on the data and the settings alone: not on the machine, the number of threads, or the pieces
in which the data arrived. ``cpp/fastcompress/archive/FORMAT.md`` defines them.

>>> blob = compress(b"to be, or not to be" * 100)
>>> decompress(blob) == b"to be, or not to be" * 100
True
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from fastcompress._arguments import as_integer, as_num_threads, refuse_copy, shown
from fastcompress._core import archive as _core
from fastcompress._deprecated import renamed_names
from fastcompress.errors import BusyError, ConfigError, FormatError

__all__ = ["DEFAULT_MAX_OUTPUT", "Compressor", "Decompressor", "Header", "compress", "decompress", "info"]

Method: TypeAlias = Literal["lz", "cm"]
Data: TypeAlias = str | bytes | bytearray | memoryview

DEFAULT_MAX_OUTPUT = 1 << 30
"""The default limit of `decompress`, 1 GiB, so that a small file from an unknown source cannot fill the memory."""

_UNLIMITED = (1 << 64) - 1


def compress(
    data: Data,
    method: Method = "lz",
    level: int | None = None,
    *,
    block_bytes: int | None = None,
    num_threads: int | None = None,
) -> bytes:
    """Compress data.

    Args:
        data: Any bytes; a str is encoded as UTF-8.
        method: "lz" is LZ77 with adaptive models, fast to decompress. "cm" predicts every byte by a mixture of contexts
            (`arithmetic.ContextMixer`): smaller output, at about 1 MB per second in both directions.
        level: 1 (fastest) to 9 (smallest); None for 8 with "lz" and 5 with "cm". For "cm" it is the size of the model,
            which takes at most 2**(17 + level) bytes per thread, for compression and decompression alike.
        block_bytes: Bytes per block, 64 KiB to 64 MiB; None for 4 to 16 MiB by level, or 16 MiB with "cm". Blocks are
            independent: larger ones compress better, smaller ones keep more threads busy.
        num_threads: None for one per core. Does not change the result.

    Returns:
        The contents of an .fcz file.

    Raises:
        ConfigError: A setting is out of range.
        SurrogateError: A str has a surrogate.

    Releases the GIL. With "lz", compression takes about 15 bytes of memory per byte of the blocks in progress.
    """
    return _core.compress(data, *_settings(method, level, block_bytes, num_threads))


def decompress(blob: Data, *, max_output: int | None = DEFAULT_MAX_OUTPUT, num_threads: int | None = None) -> bytes:
    """Decompress the contents of an .fcz file: decompress(compress(data)) == data.

    Args:
        blob: The whole contents of the file.
        max_output: The largest number of bytes to return; None for no limit.
        num_threads: None for one per core. Does not change the result.

    Raises:
        FormatError: The contents are of another format or a newer version, truncated or changed in any way, or they
            decompress to more than `max_output` bytes. The latter is checked before memory is allocated for them.
        ConfigError: An argument is out of range.

    O(len(blob) + bytes returned); releases the GIL.
    """
    return _core.decompress(blob, _bound(max_output), as_num_threads(num_threads))


class Compressor:
    """A compressor of data that arrives in pieces.

    The results of all `update` calls and of `finish`, joined, are the compressed file, whatever the pieces. With
    `content_bytes` it equals what `compress` returns. Memory: two blocks per thread, and what compressing them takes.

    One thread at a time: a call while another one runs raises BusyError.

    >>> compressor = Compressor(content_bytes=12)
    >>> blob = compressor.update(b"to be ") + compressor.update(b"or not") + compressor.finish()
    >>> blob == compress(b"to be or not")
    True
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
            level: 1 to 9, or None for the default of the method.
            block_bytes: 64 KiB to 64 MiB, or None for the default of the level.
            content_bytes: The length of the data, which is stored in the header, or None if it is not known yet.
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

    __reduce__ = refuse_copy

    def __repr__(self) -> str:
        return f"Compressor({self._settings}, {'finished' if self._is_finished else 'open'})"

    def update(self, data: Data) -> bytes:
        """Append data; return the part of the compressed file that is complete and not returned yet, perhaps empty."""
        self._check_open()
        return self._writer.append(data)

    def finish(self) -> bytes:
        """Return the rest of the compressed file. Raises ConfigError if the data was not `content_bytes` long."""
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
            raise ConfigError("this Compressor is finished; make another one for more data")


class Decompressor:
    """A decompressor of a file that arrives in pieces.

    The results of all `update` calls, joined, are the data. All bytes returned have been verified; call `finish` to
    verify that none are missing. Memory: one block per thread, so there is no limit of the output by default. After an
    error every call raises it again.

    One thread at a time: a call while another one runs raises BusyError.

    >>> blob = compress(b"to be or not to be")
    >>> decompressor = Decompressor()
    >>> decompressor.update(blob[:10]) + decompressor.update(blob[10:])
    b'to be or not to be'
    >>> decompressor.finish()
    """

    def __init__(self, *, max_output: int | None = None, num_threads: int | None = None) -> None:
        """Begin to read a compressed file.

        Args:
            max_output: The largest number of bytes to return in all; None for no limit.
            num_threads: None for one per core.

        Raises:
            ConfigError: An argument is out of range.
        """
        self._reader = _core.Reader(_bound(max_output), as_num_threads(num_threads))
        self._max_output = max_output
        self._error: Exception | None = None

    __reduce__ = refuse_copy

    def __repr__(self) -> str:
        state = "open" if self._error is None else "stopped by an error"
        return f"Decompressor(max_output={self._max_output}, {state})"

    def update(self, blob: Data) -> bytes:
        """Take the next bytes of the file; return the data decompressed and verified since the last call.

        Raises FormatError as `decompress` does.
        """
        if self._error is not None:
            raise self._error
        try:
            return self._reader.append(blob)
        except (FormatError, MemoryError) as error:
            self._error = error
            raise

    def finish(self) -> None:
        """Verify that the file is complete. Raises FormatError if it does not end here."""
        if self._error is not None:
            raise self._error
        self._reader.finish()


@dataclass(frozen=True)
class Header:
    """The contents of a compressed file's header.

    >>> info(compress(b"to be", level=3))
    Header(method='lz', level=3, block_bytes=4194304, content_bytes=5, model_sha256=None)

    Attributes:
        method: "lz" or "cm".
        level: The level of compression.
        block_bytes: Bytes of data in each block but the last, which may be shorter.
        content_bytes: Bytes of data in all; None if that was not known when compression began.
        model_sha256: The SHA-256 of the model needed to decompress, as 64 hexadecimal digits; None for no model.
    """

    method: Method
    level: int
    block_bytes: int
    content_bytes: int | None
    model_sha256: str | None


def info(blob: Data) -> Header:
    """Parse the header of a compressed file, of which the first 72 bytes are enough.

    Raises FormatError as `decompress` does.
    """
    method, level, block_bytes, content_bytes, model_hash = _core.header(blob)
    return Header(method, level, block_bytes, content_bytes, model_hash.hex() if any(model_hash) else None)


def _settings(method: str, level: int | None, block_bytes: int | None, num_threads: int | None) -> tuple[Any, ...]:
    """Return (method, level, block_bytes, num_threads) as the core takes them, with 0 for None."""
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
    return min(as_integer(max_output, "max_output", 0, 1 << 4096, or_none="no limit"), _UNLIMITED)


__getattr__ = renamed_names(__name__, {"ArchiveInfo": "Header"})
