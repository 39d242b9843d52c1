"""The range coder: symbols and their frequencies to bytes, and back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from fastcompress._core import arithmetic as _core
from fastcompress.errors import DataError

Model = Callable[[npt.NDArray[np.uint32]], npt.NDArray[np.uint32]]
"""Symbols so far, uint32[n], to the cumulative frequencies of the next one, uint32[V + 1]."""


class Encoder(_core.Encoder):
    """Symbols into one message, with the frequencies that a model gives.

    A message is a number of bits that, followed by zeros without end, says all symbols; bytes are big-endian. It is
    within 0.01 % of the entropy under the quantized frequencies (FORMAT.md: at most 2**-8 bits a symbol above it with
    24 bits of precision, 2**-16 with 16, typically a thousandth of that), and the same on every machine. The decoder
    must be told the same frequencies, and the number of symbols.

    >>> table = quantize([5, 2, 1])
    >>> encoder = Encoder()
    >>> encoder.encode([0, 0, 1, 0, 2], table)
    >>> message = encoder.finish()
    >>> Decoder(message).decode(table, 5).tolist()
    [0, 0, 1, 0, 2]

    Methods of the core:

    ``encode(symbols, cumulative)``: `symbols` are an int, or integers[n]; `cumulative` one table for all of them,
    uint32[V + 1], or a row each, uint32[n, V + 1] (as `quantize` makes them). O(n), and O(size) to check the tables.
    Nothing is encoded if it raises. DataError: a symbol outside the table, or what is no table. Releases the GIL, so
    arrays must not be changed meanwhile.

    ``encode_weights(symbols, weights, precision=None)``: the same as ``encode(symbols, quantize(weights, precision))``,
    but a row becomes frequencies when it is needed, and no table is kept.

    ``bits_if_closed``: how many bits the message would have, if it ended here.

    ``snapshot()``, ``restore(snapshot)``: undoes what was encoded since. ConfigError for a snapshot of another message,
    of a part that was undone, or of bytes that were taken.

    ``take()``: bytes that nothing encoded later can change, each once, to be written away; the message is all of these
    and ``finish()``, joined.

    ``finish()``: ends the message. The encoder is then as new.

    One thread at a time: a call while another one runs is a ConfigError.
    """

    def encode_model(self, symbols: npt.ArrayLike, model: Model) -> None:
        """Encode integers[n], asking `model` for the frequencies of each, given those before it (in this call)."""
        given = np.asarray(symbols)
        if given.ndim != 1 or (given.size and given.dtype.kind not in "iu"):
            raise TypeError("symbols must be a one-dimensional array of integers")
        if given.size and not 0 <= int(given.min()) <= int(given.max()) < 1 << 32:
            raise DataError(f"symbols from {given.min()} to {given.max()}; they must be those of the tables, from 0")
        known = given.astype(np.uint32)
        before = self.snapshot()
        try:
            for position, symbol in enumerate(known.tolist()):
                self.encode(symbol, model(known[:position]))
        except BaseException:
            self.restore(before)
            raise


class Decoder:
    """Reads what `Encoder` wrote: the same calls in the same order give the symbols back.

    One thread at a time: a call while another one runs is a ConfigError. FormatError when the message cannot be one
    that the encoder wrote with these tables. Not every damage shows: whoever needs to know keeps a checksum (as
    archives do).
    """

    def __init__(self, message: bytes | bytearray | memoryview | Iterable[bytes]) -> None:
        """message: whole, or pieces of any length that are asked for as they are needed."""
        self._core = _core.Decoder()
        self._pieces: Iterator[bytes] | None = None
        if isinstance(message, bytes | bytearray | memoryview):
            self._core.append(bytes(message), True)
            # The core's own methods in place of those below, which a call a symbol would go through for nothing.
            self.decode_symbol = self._core.decode_symbol  # type: ignore[method-assign]
            self.decode_symbol_weights = self._core.decode_symbol_weights  # type: ignore[method-assign]
        else:
            self._pieces = iter(message)

    def decode_symbol(self, cumulative: npt.NDArray[np.uint32]) -> int:
        """The next symbol, of a table uint32[V + 1]."""
        self._fill()
        return self._core.decode_symbol(cumulative)

    def decode_symbol_weights(self, weights: npt.ArrayLike, precision: int | None = None) -> int:
        """The next symbol, of weights [V], as ``Encoder.encode_weights`` put it."""
        self._fill()
        return self._core.decode_symbol_weights(weights, precision)

    def decode(
        self, cumulative: npt.ArrayLike, num_symbols: int | None = None, dtype: npt.DTypeLike = np.uint32
    ) -> npt.NDArray[Any]:
        """The next symbols, dtype[n]: `num_symbols` of one table uint32[V + 1], or one for each row of uint32[n, V +
        1].

        dtype: uint8, uint16 or uint32, wide enough for the table (ConfigError).
        """
        tables = np.asarray(cumulative)
        wanted = np.dtype(dtype)
        if tables.ndim == 2:
            if num_symbols not in (None, len(tables)):
                raise DataError(f"{num_symbols} symbols and {len(tables)} rows; give one row a symbol")
            rows = [self._core.decode_array(tables[b:e], e - b, wanted) for b, e in self._steps(len(tables))]
            return _joined(rows, wanted)
        if num_symbols is None:
            raise TypeError("how many symbols? give num_symbols, or a row for each")
        return _joined([self._core.decode_array(tables, e - b, wanted) for b, e in self._steps(num_symbols)], wanted)

    def decode_weights(
        self, weights: npt.ArrayLike, precision: int | None = None, dtype: npt.DTypeLike = np.uint32
    ) -> npt.NDArray[Any]:
        """The next symbols, one for each row of weights [n, V], as ``Encoder.encode_weights`` put them."""
        rows = np.asarray(weights)
        if rows.ndim != 2:
            raise TypeError(f"weights must have two dimensions, a row a symbol, not {rows.ndim}")
        wanted = np.dtype(dtype)
        steps = self._steps(len(rows))
        return _joined([self._core.decode_weights_array(rows[b:e], precision, wanted) for b, e in steps], wanted)

    def decode_model(self, model: Model, num_symbols: int) -> npt.NDArray[np.uint32]:
        """The next symbols, uint32[n], as ``Encoder.encode_model`` put them."""
        symbols = np.zeros(num_symbols, np.uint32)
        for position in range(num_symbols):
            symbols[position] = self.decode_symbol(model(symbols[:position]))
        return symbols

    def snapshot(self) -> _core.DecoderSnapshot:
        """Where the message has been read to, for `restore`. ConfigError for a message in pieces."""
        return self._core.snapshot()

    def restore(self, snapshot: _core.DecoderSnapshot) -> None:
        """Back to where the snapshot was taken. O(1)."""
        self._core.restore(snapshot)

    def _fill(self) -> int:
        """Asks for pieces until there is something to decode; how many symbols can be."""
        while self._pieces is not None and self._core.num_ready < _FEW_SYMBOLS:
            piece = next(self._pieces, None)
            self._core.append(b"" if piece is None else bytes(memoryview(piece)), piece is None)
            if piece is None:
                self._pieces = None
        return self._core.num_ready

    def _steps(self, num_symbols: int) -> Iterator[tuple[int, int]]:
        """[begin, end) of what can be decoded at a time."""
        begin = 0
        while True:
            end = min(num_symbols, begin + self._fill())
            yield begin, end
            if end == num_symbols:
                return
            begin = end


_FEW_SYMBOLS = 4096


def _joined(parts: list[npt.NDArray[Any]], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    return parts[0] if len(parts) == 1 else np.concatenate(parts, dtype=dtype)
