"""Equal-info windows as published: Lester et al., "Training LLMs over Neurally Compressed Text", arXiv 2404.03626.

An arithmetic coder maps each string to an interval, which lies inside the interval of each of its prefixes. The code of
a string is the shortest bit string such that every number that starts with it lies in the interval; if there are
several of that length, it is the smallest. A window is the longest prefix of the remaining text whose code has at most
`bits` bits; the code is padded with zeros, and coder and model are reset for the next window.

The decoder (appendix D.5) is not told how many symbols a window contains. It decodes one symbol, two symbols and so on,
encodes each of these strings again, and returns the last one whose window equals the given one, before the first that
differs. That is not always the string that was encoded, since the padded code may also be the code of a longer string.
For example, under probabilities of 32767, 32768 and 1 in 65536 for the symbols a, b and c, and 16 bits:

    text    code    window            decodes to
    a       00      0000000000000000  15 times a

So the published scheme is lossy; `PaperWindows.report` counts how often. `Codebook` is the lossless scheme.

Intervals are exact integers: after k symbols under a model of precision P they are multiples of 2**(-P * k).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from fastcompress._arguments import as_integer
from fastcompress.arithmetic import quantize
from fastcompress.equal_info.models import NextByteModel
from fastcompress.errors import DataError

__all__ = ["Frequencies", "PaperWindows", "Report", "frequencies", "shortest_inside"]

Frequencies: TypeAlias = Callable[[bytes], Sequence[int]]
"""A function from the symbols of a window so far (0 to 255, one byte each) to the frequency of each symbol that may be
next: integers of at least 1 that sum to 2**precision."""


def frequencies(model: NextByteModel, precision: int = 14) -> Frequencies:
    """Return a model's predictions as frequencies, made from its weights by `arithmetic.quantize`.

    Args:
        model: Called with one context at a time.
        precision: The frequencies sum to 2**precision; 9 to 24.

    Raises:
        ConfigError: `precision` is out of range.
        DataError: The model did not return one row of 256 valid weights. Raised by the function that is returned.
    """
    precision = as_integer(precision, "precision", 9, 24)

    def frequencies_after(context: bytes) -> Sequence[int]:
        row = np.asarray(model([context]))
        if row.shape != (1, 256):
            raise DataError(f"the model returned weights of shape {row.shape}; for one context it must be (1, 256)")
        found: list[int] = np.diff(quantize(row[0], precision).astype(np.int64)).tolist()
        return found

    return frequencies_after


_MAX_STATES = 1 << 19


@dataclass(slots=True)
class _State:
    """A string at the start of a window: its interval [low, low + width) in units of 2**-scale, and its code."""

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
    """The number of windows of a text that decode to another string than the encoded one.

    Attributes:
        num_windows: The number of windows that the text is encoded to.
        num_wrong: The number of these that decode to another string.
        num_symbols: The length of the text.
    """

    num_windows: int
    num_wrong: int
    num_symbols: int


class PaperWindows:
    """The published scheme: text to windows of `bits` bits under a model, and back, not always to the same text.

    Remembers the states of the strings seen so far: about half a million at most, then it starts again. Safe to share
    between threads if the model is.

    >>> windows = PaperWindows(lambda context: [32767, 32768, 1], 16, precision=16, num_symbols=3)
    >>> windows.encode(bytes([0, 2]))
    [(0, 1), (65535, 1)]
    >>> windows.decode_window(0) == bytes(15)
    True
    """

    def __init__(
        self,
        model: Frequencies,
        bits: int = 16,
        *,
        precision: int = 14,
        num_symbols: int = 256,
        max_symbols: int = 1024,
    ) -> None:
        """Make the windows of a model.

        Args:
            model: Called with the symbols of a window so far. Equal calls must give equal answers.
            bits: Bits per window, 1 to 64.
            precision: The frequencies of the model sum to 2**precision; 1 to 24.
            num_symbols: The size of the alphabet, 1 to 256.
            max_symbols: The largest number of symbols in a window.

        Raises:
            ConfigError: A setting is out of range.
        """
        self.bits = as_integer(bits, "bits", 1, 64)
        self.precision = as_integer(precision, "precision", 1, 24)
        self.num_symbols = as_integer(num_symbols, "num_symbols", 1, 256)
        self.max_symbols = as_integer(max_symbols, "max_symbols", 1, 1 << 60)
        self._model = model
        self._root = _State(b"", 0, 1, 0)
        self._num_states = 0
        self._decoded: dict[int, bytes] = {}

    def encode(self, symbols: bytes) -> list[tuple[int, int]]:
        """Encode a text; return (code, number of symbols) for each window, where a code is an integer of `bits` bits.

        Raises DataError if a symbol is not below `num_symbols`, or its code alone has more than `bits` bits.
        """
        windows = []
        begin = 0
        while begin < len(symbols):
            state = self._root
            end = begin
            while end < len(symbols) and end - begin < self.max_symbols:
                longer = self._child(state, symbols[end])
                if longer.num_bits > self.bits:
                    break
                state = longer
                end += 1
            if end == begin:
                raise DataError(
                    f"symbol {symbols[begin]} at position {begin} takes more than a window of {self.bits} bits; use "
                    "larger windows, or a model that gives each symbol a higher frequency"
                )
            windows.append((self._padded(state), end - begin))
            begin = end
            self._forget_if_full()
        return windows

    def decode(self, codes: Sequence[int]) -> bytes:
        """Return the string that the decoder takes the windows for. Raises DataError if no string has one of them."""
        return b"".join(map(self.decode_window, codes))

    def decode_window(self, code: int) -> bytes:
        """Return the string that the decoder takes a window for.

        That is the longest string with this window such that, from the shortest prefix that has it on, every prefix
        does. Raises DataError if the code does not fit in `bits` bits or no string has this window.
        """
        if not 0 <= code < 1 << self.bits:
            raise DataError(f"{code} is not a window of {self.bits} bits; codes are from 0 to {(1 << self.bits) - 1}")
        known = self._decoded.get(code)
        if known is not None:
            return known
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
        self._forget_if_full()
        self._decoded[code] = best
        return best

    def report(self, symbols: bytes) -> Report:
        """Encode a text, decode each window, and count those that decode to another string."""
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
                raise DataError(
                    f"the model returned {len(row)} frequencies with the sum {sum(row)}; they must be "
                    f"{self.num_symbols} integers of at least 1 with the sum 2**{self.precision}"
                )
            # Stored when it is complete, since another thread may read it at any moment.
            state.cumulative = [0, *itertools.accumulate(row)]
        return state.cumulative

    def _child(self, state: _State, symbol: int) -> _State:
        known = state.children.get(symbol)
        if known is not None:
            return known
        if symbol >= self.num_symbols:
            raise DataError(f"symbol {symbol} is not below num_symbols, {self.num_symbols}")
        cumulative = self._cumulative(state)
        low = (state.low << self.precision) + state.width * cumulative[symbol]
        width = state.width * (cumulative[symbol + 1] - cumulative[symbol])
        child = _State(state.string + bytes([symbol]), low, width, state.scale + self.precision)
        child.num_bits, child.code = shortest_inside(low, width, child.scale)
        self._num_states += 1  # another thread may undo this: the number need only be about right
        return state.children.setdefault(symbol, child)

    def _symbol_at(self, state: _State, code: int) -> int:
        """Return the symbol whose part of the state's interval contains the number code / 2**bits."""
        cumulative = self._cumulative(state)
        scale = state.scale + self.precision
        for symbol in range(self.num_symbols):
            end = (state.low << self.precision) + state.width * cumulative[symbol + 1]
            if code << scale < end << self.bits:
                return symbol
        return self.num_symbols - 1

    def _forget_if_full(self) -> None:
        if max(self._num_states, len(self._decoded)) > _MAX_STATES:
            self._root = _State(b"", 0, 1, 0)
            self._num_states = 0
            self._decoded = {}


def shortest_inside(low: int, width: int, scale: int) -> tuple[int, int]:
    """Return the shortest code of an interval.

    Args:
        low: The start of the interval, in units of 2**-scale.
        width: Its width, at least 1, in the same units.
        scale: At least 0.

    Returns:
        (n, m): the smallest n, and for it the smallest m, such that [m, m + 1) * 2**-n lies in
        [low, low + width) * 2**-scale.

    >>> shortest_inside(3, 4, 3)  # [3/8, 7/8): no half lies in it, and the first quarter that does is [2/4, 3/4)
    (2, 2)
    """
    # For the first n, 2**-n <= width * 2**-scale < 2**(1 - n); with one more bit at least one interval lies inside.
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
