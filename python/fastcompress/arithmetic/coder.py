"""The range coder: symbols and their frequencies to bytes, and back."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from fastcompress._arguments import as_file_bytes, as_integer, refuse_copy, shown
from fastcompress._core import arithmetic as _core
from fastcompress._deprecated import RenamedAttribute
from fastcompress.arithmetic.quantize import as_precision
from fastcompress.errors import BusyError, DataError

Model = Callable[[npt.NDArray[np.uint32]], npt.NDArray[np.uint32]]
"""Symbols so far, uint32[n], to the cumulative frequencies of the next one, uint32[V + 1]."""

_MOST_SYMBOLS = (1 << 62) - 1


class Encoder(_core.Encoder):
    """Encodes symbols, with the frequencies that a model gives, into one code.

    The code is a function of the symbols and frequencies alone, the same on every machine. With frequencies of P bits,
    n symbols take fewer bits than the sum of -log2 of their probabilities plus 1.5 * n * 2**(P - 32) plus 1, filled up
    to whole bytes: at most 0.006 bits per symbol too many with P = 24, and 0.00002 with P = 16 (FORMAT.md, "What it
    costs"). The decoder must be given the same frequencies and the number of symbols.

    One thread at a time: a call while another one runs raises BusyError. Calls release the GIL. If another thread
    changes an array meanwhile, the result is a DataError or the code of some mixture of its states.

    >>> from fastcompress.arithmetic import quantize
    >>> table = quantize([5, 2, 1])
    >>> encoder = Encoder()
    >>> encoder.encode([0, 0, 1, 0, 2], table)
    >>> encoder
    Encoder(num_bits_if_finished=7)
    >>> code = encoder.finish()
    >>> Decoder(code).decode(table, 5).tolist()
    [0, 0, 1, 0, 2]

    Methods of the core:

    ``encode(symbols, cumulative)``: Encode an int, or integers[n], with one table uint32[V + 1] for all or one row per
    symbol, uint32[n, V + 1] (as `quantize` makes them). O(n), and O(size) to check the tables. Encodes nothing if it
    raises: DataError for a symbol outside the table or an invalid table, TypeError for other types.

    ``encode_weights(symbols, weights, precision=None)``: Encode as ``encode(symbols, quantize(weights, precision))``
    does, without keeping the tables.

    ``num_bits_if_finished``: The number of bits of the code if it ended here.

    ``snapshot()``, ``restore(snapshot)``: Undo what was encoded since. ConfigError for a snapshot of another code, of a
    part that was undone, or of bytes that were taken.

    ``take()``: Return the bytes that nothing encoded later can change, each once; the code is all of these and
    ``finish()``, joined.

    ``finish()``: End the code and return it. The encoder is then as new.
    """

    bits_if_closed = RenamedAttribute("num_bits_if_finished")

    def __repr__(self) -> str:
        return f"Encoder(num_bits_if_finished={self.num_bits_if_finished})"

    def encode_model(self, symbols: npt.ArrayLike, model: Model) -> None:
        """Encode integers[n] with a model that gives the frequencies of each from those before it in this call.

        Encodes nothing if it raises.

        Args:
            symbols: Each below V.
            model: Called once per symbol.

        Raises:
            TypeError: The symbols are not one row of integers.
            DataError: A symbol is outside its table, or a table is invalid.
        """
        given = np.asarray(symbols)
        if given.ndim != 1 or (given.size and given.dtype.kind not in "iu"):
            raise TypeError(f"symbols are {given.dtype} of shape {given.shape}; they must be one-dimensional integers")
        if given.size and not 0 <= int(given.min()) <= int(given.max()) < 1 << 32:
            raise DataError(f"symbols from {given.min()} to {given.max()}; they must be 0 to V - 1")
        known = given.astype(np.uint32)
        before = self.snapshot()
        try:
            for position, symbol in enumerate(known.tolist()):
                self.encode(symbol, model(known[:position]))
        except BaseException:
            self.restore(before)
            raise


class Decoder:
    """Decodes what `Encoder` encoded: the same calls in the same order give the symbols back.

    The code does not say how many symbols it has. After the last one, `num_bytes_read` is the length of the code, and
    `finish` refuses bytes after it unless ``allow_trailing`` was given. A code is a number that zeros may follow, so
    padding is harmless; other bytes after it change the number and perhaps the last symbols. A stream that holds codes
    should therefore store the length of each.

    One thread at a time: a call while another one runs raises BusyError. FormatError when the code cannot be what an
    encoder wrote with these tables; not all damage shows, so keep a checksum where that matters (as archives do).

    >>> from fastcompress.arithmetic import quantize
    >>> table = quantize([5, 2, 1])
    >>> encoder = Encoder()
    >>> encoder.encode([0, 0, 1, 0, 2], table)
    >>> decoder = Decoder(encoder.finish() + bytes(4), allow_trailing=True)
    >>> decoder.decode(table, 5).tolist(), decoder.num_bytes_read
    ([0, 0, 1, 0, 2], 1)
    """

    def __init__(self, code: bytes | bytearray | memoryview | Iterable[bytes], *, allow_trailing: bool = False) -> None:
        """Begin to read a code.

        Args:
            code: The whole code, or an iterable of pieces of any length, which are read as they are needed.
            allow_trailing: Whether `finish` accepts bytes after the code, such as padding.

        Raises:
            TypeError: `code` is neither bytes nor an iterable.
        """
        self._core = _core.Decoder()
        self._allow_trailing = bool(allow_trailing)
        self._pieces: Iterator[bytes] | None = None
        self._filling = threading.Lock()
        if isinstance(code, bytes | bytearray | memoryview):
            self._core.append(bytes(code), True)
            # The core's own methods in place of those below, which a call per symbol would go through for nothing.
            self.decode_symbol = self._core.decode_symbol  # type: ignore[method-assign]
            self.decode_symbol_weights = self._core.decode_symbol_weights  # type: ignore[method-assign]
        else:
            given: object = code
            if isinstance(given, str) or not isinstance(given, Iterable):
                raise TypeError(f"code is {shown(code)}; it must be bytes or an iterable of bytes")
            self._pieces = iter(code)

    __reduce__ = refuse_copy

    def __repr__(self) -> str:
        return f"Decoder(num_bytes_read={self.num_bytes_read})"

    @property
    def num_bytes_read(self) -> int:
        """The length in bytes of the code of the symbols decoded so far; what follows it is not part of the code."""
        return self._core.num_bytes_read

    def finish(self) -> None:
        """Check that the code ends after the symbols decoded so far.

        Raises:
            FormatError: Bytes follow it (unless ``allow_trailing``), or it is damaged.
        """
        with self._turn():
            while self._pieces is not None:
                self._append_piece()
        self._core.finish(self._allow_trailing)

    def decode_symbol(self, cumulative: npt.NDArray[np.uint32]) -> int:
        """Return the next symbol, encoded with a table uint32[V + 1]."""
        self._fill()
        return self._core.decode_symbol(cumulative)

    def decode_symbol_weights(self, weights: npt.ArrayLike, precision: int | None = None) -> int:
        """Return the next symbol, encoded with weights [V] by ``Encoder.encode_weights``."""
        self._fill()
        return self._core.decode_symbol_weights(weights, precision)

    def decode(
        self, cumulative: npt.ArrayLike, num_symbols: int | None = None, dtype: npt.DTypeLike = np.uint32
    ) -> npt.NDArray[Any]:
        """Return the next symbols, dtype[n].

        Args:
            cumulative: One table uint32[V + 1] for all symbols, or one row per symbol, uint32[n, V + 1].
            num_symbols: The number of symbols, which is needed with one table.
            dtype: uint8, uint16 or uint32.

        Raises:
            FormatError: The code is not one of these symbols.
            DataError: A table is invalid, or `num_symbols` is not the number of rows.
            ConfigError: The symbols do not fit `dtype`, or `num_symbols` is negative.
        """
        tables = np.asarray(cumulative)
        wanted = np.dtype(dtype)
        if num_symbols is not None:
            num_symbols = as_integer(num_symbols, "num_symbols", 0, _MOST_SYMBOLS)
        if tables.ndim == 2:
            if num_symbols not in (None, len(tables)):
                raise DataError(f"{num_symbols} symbols and {len(tables)} rows; give one row per symbol")
            rows = [self._core.decode_array(tables[b:e], e - b, wanted) for b, e in self._steps(len(tables))]
            return _joined(rows, wanted)
        if num_symbols is None:
            raise TypeError("num_symbols is missing; give it, or one row of cumulative frequencies per symbol")
        if self._pieces is None:
            return self._core.decode_array(tables, num_symbols, wanted)
        return _joined([self._core.decode_array(tables, e - b, wanted) for b, e in self._steps(num_symbols)], wanted)

    def decode_weights(
        self, weights: npt.ArrayLike, precision: int | None = None, dtype: npt.DTypeLike = np.uint32
    ) -> npt.NDArray[Any]:
        """Return the next symbols, which ``Encoder.encode_weights`` encoded.

        Args:
            weights: One row per symbol, [n, V].
            precision: As for `quantize`.
            dtype: uint8, uint16 or uint32.

        Returns:
            The symbols, dtype[n].

        Raises:
            FormatError: The code is not one of these symbols.
            DataError: A row of weights is invalid.
            ConfigError: `precision` is out of range, or the symbols do not fit `dtype`.
        """
        rows = np.asarray(weights)
        if rows.ndim != 2:
            raise TypeError(f"weights has {rows.ndim} dimension(s); it must have two, one row per symbol")
        wanted = np.dtype(dtype)
        precision = as_precision(precision)
        steps = self._steps(len(rows))
        return _joined([self._core.decode_weights_array(rows[b:e], precision, wanted) for b, e in steps], wanted)

    def decode_model(self, model: Model, num_symbols: int) -> npt.NDArray[np.uint32]:
        """Return the next symbols, uint32[n], encoded by ``Encoder.encode_model``."""
        symbols = np.zeros(as_integer(num_symbols, "num_symbols", 0, _MOST_SYMBOLS), np.uint32)
        for position in range(len(symbols)):
            symbols[position] = self.decode_symbol(model(symbols[:position]))
        return symbols

    def snapshot(self) -> _core.DecoderSnapshot:
        """Return the present position, for `restore`. Raises ConfigError for a code in pieces."""
        return self._core.snapshot()

    def restore(self, snapshot: _core.DecoderSnapshot) -> None:
        """Go back to the position of a snapshot. O(1)."""
        self._core.restore(snapshot)

    @contextlib.contextmanager
    def _turn(self) -> Iterator[None]:
        """Raise BusyError if another call is reading pieces."""
        if not self._filling.acquire(blocking=False):
            raise BusyError(
                "another thread is using this Decoder; give each thread its own, or use it from one thread at a time"
            )
        try:
            yield
        finally:
            self._filling.release()

    def _append_piece(self) -> None:
        assert self._pieces is not None
        piece = next(self._pieces, None)
        self._core.append(b"" if piece is None else as_file_bytes(piece, "a piece of code"), piece is None)
        if piece is None:
            self._pieces = None

    def _fill(self) -> int:
        """Read pieces until there is something to decode; return the number of symbols that can be decoded now."""
        if self._pieces is not None:
            with self._turn():
                while self._pieces is not None and self._core.num_ready < _FEW_SYMBOLS:
                    self._append_piece()
        return self._core.num_ready

    def _steps(self, num_symbols: int) -> Iterator[tuple[int, int]]:
        """Yield ranges [begin, end) of symbols that can be decoded at a time."""
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
