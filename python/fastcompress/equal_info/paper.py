"""Equal-info windows as published: Lester et al., "Training LLMs over Neurally Compressed Text", arXiv 2404.03626.

A window is as much text as arithmetic coding fits into `bits` bits. The interval of a string lies in that of every
prefix of it; its code is the shortest dyadic interval inside, that is the fewest bits that say where it lies whatever
follows them, of several of that length the lowest. Symbols are added while the code has at most `bits` bits; it is then
filled up with zeros, and coder and model begin anew.

The decoder (appendix D.5) is not told how many symbols a window holds. It decodes one, two, ... of them, encodes each
such string again, and takes the last one, before they differ, whose window is the one it was given. That is not always
the string that was encoded: zeros are bits like others, and may be the code of a longer string. So the published scheme
is lossy, and this module counts how often. `Codebook` is what is lossless.

Intervals are exact integers: after k symbols of a model of precision P they are multiples of 2**(-P k).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from fastcompress.arithmetic import quantize
from fastcompress.equal_info.models import NextByteModel
from fastcompress.errors import ConfigError, DataError

Frequencies: TypeAlias = Callable[[bytes], Sequence[int]]
"""A window so far (symbols 0 to 255, one byte each) to the frequency of each symbol: integers of at least 1 that sum to
2**precision."""


def frequencies(model: NextByteModel, precision: int = 14) -> Frequencies:
    """A model's weights as frequencies of 2**precision, 9 to 24, by `arithmetic.quantize`. ConfigError."""
    if not 9 <= precision <= 24:
        raise ConfigError(f"precision is {precision}; it must be 9 to 24 for 256 symbols")

    def of(context: bytes) -> Sequence[int]:
        row = np.asarray(model([context]))
        if row.shape != (1, 256):
            raise DataError(f"the model answered one context with weights of shape {row.shape}")
        found: list[int] = np.diff(quantize(row[0], precision).astype(np.int64)).tolist()
        return found

    return of


@dataclass(slots=True)
class _State:
    """A string of a window: its interval [low, low + width) in units of 2**-scale, and its code."""

    string: bytes
    low: int
    width: int
    scale: int
    num_bits: int = 0
    code: int = 0
    cumulative: list[int] | None = None
    children: dict[int, _State] = field(default_factory=dict)


@dataclass(frozen=True)
class Report:
    """How a text's windows come back.

    Attributes:
        num_windows: of the text.
        num_wrong: those that decode to something else than what they encode.
        num_symbols: of the text.
    """

    num_windows: int
    num_wrong: int
    num_symbols: int


class PaperWindows:
    """Windows of `bits` bits under a model. Not thread-safe: it remembers what it has computed, by window prefix."""

    def __init__(
        self,
        model: Frequencies,
        bits: int = 16,
        *,
        precision: int = 14,
        num_symbols: int = 256,
        max_symbols: int = 1024,
    ) -> None:
        """max_symbols: windows are closed at so many. ConfigError: out of range."""
        if not 1 <= bits <= 64 or not 1 <= precision <= 24 or not 1 <= num_symbols <= 256 or max_symbols < 1:
            raise ConfigError(
                f"bits={bits}, precision={precision}, num_symbols={num_symbols}, max_symbols={max_symbols}: give "
                "1 to 64, 1 to 24, 1 to 256, and at least 1"
            )
        self.bits, self.precision, self.num_symbols, self.max_symbols = bits, precision, num_symbols, max_symbols
        self._model = model
        self._root = _State(b"", 0, 1, 0)
        self._num_states = 0
        self._decoded: dict[int, bytes] = {}

    def encode(self, symbols: bytes) -> list[tuple[int, int]]:
        """(code, number of symbols) of each window; a code is an integer of `bits` bits. DataError: a symbol that does
        not exist, or that takes more bits than a window has."""
        windows = []
        begin = 0
        while begin < len(symbols):
            state = self._root
            end = begin
            while end < len(symbols) and end - begin < self.max_symbols:
                further = self._child(state, symbols[end])
                if further.num_bits > self.bits:
                    break
                state = further
                end += 1
            if end == begin:
                raise DataError(
                    f"symbol {symbols[begin]} takes more than a window of {self.bits} bits; use a larger window"
                )
            windows.append((self._padded(state), end - begin))
            begin = end
            self._forget_if_many()
        return windows

    def decode(self, codes: Sequence[int]) -> bytes:
        """What the decoder takes windows for. DataError: a code that no string has."""
        return b"".join(map(self.decode_window, codes))

    def decode_window(self, code: int) -> bytes:
        """The longest of the strings of growing length whose window is this one. DataError: there is none."""
        if not 0 <= code < 1 << self.bits:
            raise DataError(f"{code} is not a window of {self.bits} bits")
        if code in self._decoded:
            return self._decoded[code]
        state, best = self._root, None
        for _ in range(self.max_symbols):
            state = self._child(state, self._symbol_at(state, code))
            if state.num_bits > self.bits:
                break
            if self._padded(state) == code:
                best = state.string
            elif best is not None:
                break
        if best is None:
            raise DataError(f"no string has the window {code:#x}")
        self._forget_if_many()
        self._decoded[code] = best
        return best

    def report(self, symbols: bytes) -> Report:
        """How many windows of a text decode to something else."""
        num_wrong = begin = 0
        windows = self.encode(symbols)
        for code, length in windows:
            num_wrong += self.decode_window(code) != symbols[begin : begin + length]
            begin += length
        return Report(len(windows), num_wrong, len(symbols))

    def _padded(self, state: _State) -> int:
        return state.code << (self.bits - state.num_bits)

    def _cumulative(self, state: _State) -> list[int]:
        if state.cumulative is None:
            row = [int(frequency) for frequency in self._model(state.string)]
            if len(row) != self.num_symbols or min(row) < 1 or sum(row) != 1 << self.precision:
                raise DataError(f"a model must give {self.num_symbols} frequencies >= 1 with sum 2**{self.precision}")
            state.cumulative = [0]
            for frequency in row:
                state.cumulative.append(state.cumulative[-1] + frequency)
        return state.cumulative

    def _child(self, state: _State, symbol: int) -> _State:
        known = state.children.get(symbol)
        if known is not None:
            return known
        if symbol >= self.num_symbols:
            raise DataError(f"symbol {symbol} is not below {self.num_symbols}")
        cumulative = self._cumulative(state)
        low = (state.low << self.precision) + state.width * cumulative[symbol]
        width = state.width * (cumulative[symbol + 1] - cumulative[symbol])
        child = _State(state.string + bytes([symbol]), low, width, state.scale + self.precision)
        child.num_bits, child.code = shortest_inside(low, width, child.scale)
        state.children[symbol] = child
        self._num_states += 1
        return child

    def _symbol_at(self, state: _State, code: int) -> int:
        """Whose part of a state's interval holds the number code / 2**bits."""
        cumulative = self._cumulative(state)
        scale = state.scale + self.precision
        for symbol in range(self.num_symbols):
            end = (state.low << self.precision) + state.width * cumulative[symbol + 1]
            if code << scale < end << self.bits:
                return symbol
        return self.num_symbols - 1

    def _forget_if_many(self) -> None:
        if self._num_states > 1 << 19:
            self._root = _State(b"", 0, 1, 0)
            self._num_states = 0


def shortest_inside(low: int, width: int, scale: int) -> tuple[int, int]:
    """(n, m): the fewest bits n, and the least m for it, such that [m, m + 1) * 2**-n lies in
    [low, low + width) * 2**-scale."""
    # 2**-n <= width * 2**-scale < 2**(1 - n) for the first n, and with one bit more at least one interval lies inside.
    num_bits = max(0, scale - width.bit_length() + 1)
    while True:
        if num_bits <= scale:
            shift = scale - num_bits
            least = -(-low >> shift)
            if (least + 1) << shift <= low + width:
                return num_bits, least
        else:
            return num_bits, low << (num_bits - scale)
        num_bits += 1


__all__ = ["Frequencies", "PaperWindows", "Report", "frequencies", "shortest_inside"]
