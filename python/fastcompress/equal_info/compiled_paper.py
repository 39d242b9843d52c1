"""Published windows as a table: each string that fits in a window, and the window.

The code of a string is no shorter than that of its prefixes, so the strings that fit form a finite, prefix-closed set,
and a window is the longest of them that the text begins with. Listing them asks the model for each of them once; then
no model runs while encoding, and the windows are the same on every machine. They stay lossy: unlike in a `Codebook`,
several strings have the same window.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from fastcompress._arguments import as_integer
from fastcompress.arithmetic import quantize
from fastcompress.equal_info.models import NextByteModel
from fastcompress.equal_info.paper import PaperWindows, shortest_inside
from fastcompress.errors import ConfigError, DataError

_MAX_STRINGS = 1 << 21
_BATCH = 4096  # contexts per call of the model

_Interval = tuple[bytes, int, int]  # a string, and low and width in units of 2**-(precision * its length)


class CompiledWindows(PaperWindows):
    """Windows of at most 16 bits, from a table.

    >>> from fastcompress.equal_info import CountModel
    >>> windows = CompiledWindows.of_model(CountModel(b"to be or not to be " * 20), bits=12, precision=12)
    >>> windows.encode(b"to be"), windows.decode_window(2944)
    ([(2944, 5)], b'to be ')
    """

    def __init__(
        self,
        strings: Sequence[bytes],
        codes: npt.ArrayLike,
        bits: int = 16,
        precision: int = 14,
        max_symbols: int = 255,
    ) -> None:
        """Make the windows of a table.

        Args:
            strings: With every prefix of each of them but the empty one.
            codes: The window of each string, integers[n].
            bits: Bits per window, 1 to 16.
            precision: The precision under which the strings were listed, of which the table keeps no other trace.
            max_symbols: The length of the longest strings that were listed.

        Raises:
            ConfigError: A setting or a window is out of range, or a prefix is missing.
        """
        super().__init__(_no_model, as_integer(bits, "bits", 1, 16), precision=precision, max_symbols=max_symbols)
        windows = np.asarray(codes, np.int64)
        if windows.shape != (len(strings),) or ((windows < 0) | (windows >= 1 << self.bits)).any():
            raise ConfigError(f"codes must be {len(strings)} windows of {self.bits} bits, one for each string")
        self.table = dict(sorted(zip(strings, windows.tolist(), strict=True)))
        for string in self.table:
            if not 1 <= len(string) <= self.max_symbols or (len(string) > 1 and string[:-1] not in self.table):
                raise ConfigError(f"string {string[:50]!r} is empty or too long, or its prefix is not in the table")

    @classmethod
    def of_model(
        cls, model: NextByteModel, bits: int = 16, *, precision: int = 14, max_symbols: int = 255
    ) -> CompiledWindows:
        """List the strings that fit in a window under a model.

        Args:
            model: Asked for the weights after thousands of contexts at a time, and for each of them once.
            bits: Bits per window, 1 to 16.
            precision: The model's frequencies sum to 2**precision; 9 to 24. The paper's is 14.
            max_symbols: The length of the longest strings, 1 to 255.

        Raises:
            ConfigError: A setting is out of range, or more than two million strings fit.
            DataError: The model did not return valid weights.

        With equal answers of the model, texts have the windows that `PaperWindows` gives them.
        """
        bits, precision = as_integer(bits, "bits", 1, 16), as_integer(precision, "precision", 9, 24)
        max_symbols = as_integer(max_symbols, "max_symbols", 1, 255)
        strings: list[bytes] = []
        codes: list[int] = []
        level: list[_Interval] = [(b"", 0, 1)]
        for length in range(max_symbols):
            longer: list[_Interval] = []
            for begin in range(0, len(level), _BATCH):
                for string, low, width in _extensions(model, level[begin : begin + _BATCH], bits, precision):
                    num_bits, code = shortest_inside(low, width, precision * (length + 1))
                    if num_bits <= bits:
                        strings.append(string)
                        codes.append(code << (bits - num_bits))
                        longer.append((string, low, width))
                if len(strings) > _MAX_STRINGS:
                    raise ConfigError(f"max_symbols is {max_symbols}; more than {_MAX_STRINGS} strings fit: lower it")
            level = longer
        return cls(strings, codes, bits, precision, max_symbols)

    @cached_property
    def fingerprint(self) -> str:
        """The SHA-256 of the table, as 64 hexadecimal digits."""
        digest = hashlib.sha256(f"fastcompress compiled windows, version 1\n{self.bits}\n".encode())
        for string, code in self.table.items():
            digest.update(len(string).to_bytes(1, "little") + string + code.to_bytes(2, "little"))
        return digest.hexdigest()

    @cached_property
    def missing_symbols(self) -> bytes:
        """The symbols that take more than a window, so that no text with one of them can be encoded.

        Windows of at least `precision` bits have none.
        """
        return bytes(symbol for symbol in range(self.num_symbols) if bytes([symbol]) not in self.table)

    def encode(self, symbols: bytes) -> list[tuple[int, int]]:
        """See `PaperWindows.encode`."""
        windows = []
        begin = 0
        while begin < len(symbols):
            end = begin
            while end < len(symbols) and symbols[begin : end + 1] in self.table:
                end += 1
            if end == begin:
                raise DataError(
                    f"symbol {symbols[begin]} at position {begin} takes more than a window of {self.bits} bits; "
                    f"compile windows of more bits ({self.precision} hold any symbol), or use a model that gives each "
                    "symbol a higher frequency"
                )
            windows.append((self.table[symbols[begin:end]], end - begin))
            begin = end
        return windows

    def decode_window(self, code: int) -> bytes:
        """See `PaperWindows.decode_window`."""
        if not 0 <= code < 1 << self.bits:
            raise DataError(f"{code} is not a window of {self.bits} bits; codes are from 0 to {(1 << self.bits) - 1}")
        if code not in self._strings_by_code:
            raise DataError(f"no string has the window {code:#x}")
        return self._strings_by_code[code]

    @cached_property
    def _strings_by_code(self) -> dict[int, bytes]:
        """The string that each window decodes to.

        The intervals of all strings with a window contain the same number, so they are prefixes of each other. The
        decoder stops where lengths first leave one out.
        """
        decoded: dict[int, bytes] = {}
        for string, code in sorted(self.table.items(), key=lambda item: len(item[0])):
            if len(string) == len(decoded.get(code, string[:-1])) + 1:
                decoded[code] = string
        return decoded


def _extensions(model: NextByteModel, level: list[_Interval], bits: int, precision: int) -> Iterable[_Interval]:
    """Yield the intervals of strings with one more byte that are wide enough for a code of `bits` bits."""
    rows = np.asarray(model([string for string, _, _ in level]))
    if rows.shape != (len(level), 256):
        raise DataError(f"the model returned weights of shape {rows.shape}; it must be ({len(level)}, 256)")
    cumulative = quantize(rows, precision).astype(np.int64)  # int64[n, 257]
    for (string, low, width), row in zip(level, cumulative, strict=True):
        scale = precision * (len(string) + 1)
        least = 1 if scale <= bits else -(-(1 << (scale - bits)) // width)  # the frequency of a wide enough interval
        for byte in np.flatnonzero(np.diff(row) >= min(least, 1 << 62)).tolist():
            begin, end = int(row[byte]), int(row[byte + 1])
            yield string + bytes([byte]), (low << precision) + width * begin, width * (end - begin)


def _no_model(context: bytes) -> Sequence[int]:
    raise AssertionError("a table of windows has no model")


def pack_table(windows: CompiledWindows) -> tuple[bytes, bytes]:
    """Return the strings of a table, each after its length in one byte, and their windows as uint16, little-endian."""
    strings = b"".join(len(string).to_bytes(1, "little") + string for string in windows.table)
    return strings, np.array(list(windows.table.values()), "<u2").tobytes()


def unpack_strings(packed: bytes) -> list[bytes]:
    """Return the strings that `pack_table` packed. Raises ValueError if they are cut off."""
    strings, position = [], 0
    while position < len(packed):
        end = position + 1 + packed[position]
        if end > len(packed):
            raise ValueError("the table of windows is cut off")
        strings.append(packed[position + 1 : end])
        position = end
    return strings
