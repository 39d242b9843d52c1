"""Numbers as buckets and digits, in which the distances and the lengths of LZ77 tokens are predicted.

Numbers are written as in deflate (RFC 1951, 3.2.5): a bucket, of which there are four for each power of two, and the
extra bits that say which number of the bucket it is. The extra bits are symbols as well, up to eight bits each, the
highest first, so that a model learns them and pays for them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import numpy.typing as npt

_SMALL = 8  # numbers below it are buckets of their own
_DIGIT_BITS = 8  # most bits of a digit

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Buckets:
    """Numbers in [0, count) as symbols: a bucket, and the digits of the extra bits.

    >>> buckets = Buckets(65536)
    >>> buckets.sizes, buckets.symbols(np.array([5, 1000])).tolist()
    ((60, 64, 128), [[5, 0, 0], [35, 0, 104]])

    Attributes:
        count: The number of numbers, at least 1.
    """

    count: int

    @cached_property
    def _all(self) -> tuple[Integers, Integers]:
        """First number and extra bits of each bucket, int64[buckets] each."""
        firsts, bits, most = list(range(min(_SMALL, self.count))), [0] * min(_SMALL, self.count), 1
        while (4 << most) < self.count:
            for mantissa in range(4, 8):
                if mantissa << most < self.count:
                    firsts.append(mantissa << most)
                    bits.append(most)
            most += 1
        return np.array(firsts, np.int64), np.array(bits, np.int64)

    @cached_property
    def _ends(self) -> Integers:
        """The end of each bucket's numbers, int64[buckets]."""
        firsts, bits = self._all
        return np.minimum(firsts + (1 << bits), self.count)

    @cached_property
    def shifts(self) -> tuple[int, ...]:
        """The bits below each digit."""
        most = int(self._all[1].max())
        num_digits = -(-most // _DIGIT_BITS)
        width = -(-most // num_digits) if num_digits else 0
        return tuple(width * digit for digit in reversed(range(num_digits)))

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """The alphabets: of the bucket, and of each digit."""
        firsts, bits = self._all
        bounds = (int(bits.max()), *self.shifts)
        return len(firsts), *(1 << (upper - lower) for upper, lower in pairwise(bounds))

    def symbols(self, numbers: Integers) -> Integers:
        """Return the symbols of ``numbers int64[n]``, ``int64[n, 1 + digits]``."""
        firsts, _ = self._all
        symbols = np.empty((len(numbers), len(self.sizes)), np.int64)
        symbols[:, 0] = bucket = firsts.searchsorted(numbers, side="right") - 1  # int64[n]
        extra = numbers - firsts[bucket]  # int64[n]
        for digit, shift in enumerate(self.shifts, start=1):
            symbols[:, digit] = (extra >> shift) % self.sizes[digit]
        return symbols

    def numbers(self, symbols: Integers) -> Integers:
        """Return the numbers of ``symbols int64[n, 1 + digits]``, ``int64[n]``."""
        numbers: Integers = self._all[0][symbols[:, 0]]
        for digit, shift in enumerate(self.shifts):
            numbers = numbers + (symbols[:, 1 + digit] << shift)
        return numbers

    def ranges(self, symbols: Integers, field: int) -> tuple[Integers, Integers]:
        """Return the numbers ``[begin, end)`` that begin with the given symbols and with each symbol of a field.

        Args:
            symbols: ``int64[n, 1 + digits]``, of which those before the field are read.
            field: 0 for the bucket, or the number of a digit, from 1.

        Returns:
            ``int64[n, size]`` twice; ``begin >= end`` for a symbol with which no number goes on.
        """
        firsts, ends = self._all[0], self._ends
        if field == 0:
            return np.broadcast_to(firsts, (len(symbols), len(firsts))), np.broadcast_to(
                ends, (len(symbols), len(ends))
            )
        bucket, begin = symbols[:, 0], firsts[symbols[:, 0]]  # int64[n] each
        for digit, shift in enumerate(self.shifts[: field - 1]):
            begin = begin + (symbols[:, 1 + digit] << shift)
        shift = self.shifts[field - 1]
        starts = begin[:, None] + (np.arange(self.sizes[field]) << shift)  # int64[n, size]
        return starts, np.minimum(starts + (1 << shift), ends[bucket, None])

    def counts_below(self, symbols: Integers, limits: Integers) -> Integers:
        """Return how many symbols of each field go on to a number below a limit, given the symbols before.

        These are the first ones of the field: `ranges` of a field begin at ever larger numbers.

        Args:
            symbols: ``int64[n, 1 + digits]``.
            limits: ``int64[n]``.

        Returns:
            ``int64[n, 1 + digits]``.
        """
        firsts, bucket = self._all[0], symbols[:, 0]
        counts = np.empty(symbols.shape, np.int64)
        counts[:, 0] = firsts.searchsorted(limits)
        left = np.minimum(self._ends[bucket], limits) - firsts[bucket]  # numbers below both, with the symbols so far
        for digit, shift in enumerate(self.shifts, start=1):
            fitting = -(-left >> shift)  # left / 2**shift, rounded up
            counts[:, digit] = np.minimum(np.maximum(fitting, 0), self.sizes[digit])
            left -= symbols[:, digit] << shift
        return counts
