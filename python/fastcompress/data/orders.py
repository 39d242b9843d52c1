"""Orders in which an epoch visits its windows: permutations of [0, W) that (seed, epoch) alone decides.

Order 1 sorts W random words. It needs 16 bytes of memory per window and O(W log W) time at the beginning of each
epoch. Runs that began with it go on with it.

Order 2 computes the window of each index by itself: O(1) memory, O(1) expected time per index, nothing to prepare. It
is a Feistel network with cycle walking (J. Black and P. Rogaway, "Ciphers with Arbitrary Finite Domains", CT-RSA 2002)
on the integers [0, A * B), where A = ceil(sqrt(W)) and B = ceil(W / A). The network writes a number as (left, right),
left in [0, A) and right in [0, B), and repeats four times with 64-bit keys K:

    left  = (left  + mix(right + K[0]) mod A) mod A
    right = (right + mix(left  + K[1]) mod B) mod B

Either line changes one half by an amount that only the other half decides, so it can be undone, and the network
permutes [0, A * B). A result of W or more goes through the network again until one is below W: that walks along a cycle
of the permutation, so no two indices of [0, W) meet. Fewer than A of the A * B numbers are W or more, so about one
index in sqrt(W) needs a second pass. `mix` is the finalizer of SplitMix64 (G. Steele, D. Lea and C. Flood, "Fast
Splittable Pseudorandom Number Generators", OOPSLA 2014): it mixes the bits of its argument modulo 2**64.

Shuffling training data needs no secrecy; four rounds of two lines make every window equally likely at every index
(tested). All arithmetic is on integers and equal on every machine and in every release.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isqrt
from typing import TYPE_CHECKING

import numpy as np

from fastcompress.errors import ConfigError

if TYPE_CHECKING:
    import numpy.typing as npt

    Permutation = Callable[[npt.NDArray[np.int64]], npt.NDArray[np.int64]]

NEWEST_ORDER = 2
_NUM_KEYS = 8


class SortedWords:
    """Order 1: the permutation that sorts W random words.

    Unlike NumPy's `permutation`, it is the same in every release.
    """

    def __init__(self, words: npt.NDArray[np.uint64], num_windows: int) -> None:
        self._order = np.argsort(words, kind="stable")

    def __call__(self, indices: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the windows at some indices, int64[n]."""
        return self._order[indices]

    @staticmethod
    def num_words(num_windows: int) -> int:
        """Return the number of random words that the permutation is made from."""
        return num_windows


class FeistelPermutation:
    """Order 2: the permutation of [0, W) by a Feistel network with cycle walking, as the head of this file says.

    >>> permutation = FeistelPermutation(np.arange(8, dtype=np.uint64), num_windows=6)
    >>> sorted(permutation(np.arange(6)).tolist())
    [0, 1, 2, 3, 4, 5]
    """

    def __init__(self, words: npt.NDArray[np.uint64], num_windows: int) -> None:
        """Make the permutation of [0, num_windows), 1 to 2**62, from 8 random words."""
        left = isqrt(num_windows - 1) + 1
        self._size, self._left, self._right = map(np.uint64, (num_windows, left, -(-num_windows // left)))
        self._keys = words

    def __call__(self, indices: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the windows at some indices, int64[n]. O(n) expected time."""
        numbers = self._once(indices.astype(np.uint64))
        while len(outside := np.flatnonzero(numbers >= self._size)):
            numbers[outside] = self._once(numbers[outside])
        return numbers.astype(np.int64)

    def _once(self, numbers: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
        left, right = np.divmod(numbers, self._right)
        for key in range(0, _NUM_KEYS, 2):
            left = (left + _mix(right + self._keys[key]) % self._left) % self._left
            right = (right + _mix(left + self._keys[key + 1]) % self._right) % self._right
        return left * self._right + right

    @staticmethod
    def num_words(num_windows: int) -> int:
        """Return the number of random words that the permutation is made from."""
        return _NUM_KEYS


def _mix(words: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


ORDERS: dict[int, type[SortedWords] | type[FeistelPermutation]] = {1: SortedWords, 2: FeistelPermutation}


class WindowOrder:
    """The phase and the permutation of every epoch.

    Attributes:
        num_windows: Windows per epoch, W.
    """

    def __init__(self, version: int, seeds: Sequence[int], num_windows: int) -> None:
        """Make the order. Raises ConfigError for an unknown version.

        Args:
            version: 1 or 2.
            seeds: Numbers that decide the order, not negative.
            num_windows: Windows per epoch, W.
        """
        check_order(version)
        self._kind, self._seeds, self.num_windows = ORDERS[version], list(seeds), num_windows
        self._epochs: dict[int, tuple[int, Permutation]] = {}

    def epoch(self, epoch: int) -> tuple[int, Permutation]:
        """Return a random word, of 64 bits, that decides the phase of an epoch, and the permutation of its windows."""
        if epoch not in self._epochs:
            count = 1 + self._kind.num_words(self.num_windows)
            first, *more = self._seeds
            words = np.random.PCG64(np.random.SeedSequence([first, epoch, *more])).random_raw(count)
            # A batch spans two epochs at most times; older ones are never asked for again in training.
            self._epochs = {number: made for number, made in self._epochs.items() if number == epoch - 1}
            self._epochs[epoch] = int(words[0]), self._kind(words[1:], self.num_windows)
        return self._epochs[epoch]


def check_order(version: int) -> None:
    """Raise ConfigError if there is no order of this version."""
    if not isinstance(version, int) or version not in ORDERS:
        raise ConfigError(f"order is {version!r}; it must be one of {', '.join(map(str, ORDERS))}")
