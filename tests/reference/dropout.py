"""BPE-dropout by its rule, every step looking at everything again, with the same random numbers as the core."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping

MASK = (1 << 64) - 1
GAMMA = 0x9E3779B97F4A7C15

# The merges of a vocabulary: (left id, right id) to (rank, result).
Merges = Mapping[tuple[int, int], tuple[int, int]]


def mix(x: int) -> int:
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB & MASK
    return x ^ (x >> 31)


def split_mix(state: int) -> Iterator[int]:
    """The random numbers of SplitMix64."""
    while True:
        state = (state + GAMMA) & MASK
        yield mix(state)


def encode_pretoken(pretoken: bytes, merges: Merges, dropout: float, seed: int, offset: int) -> list[int]:
    """The ids of the pretoken that begins at byte `offset` of its text; single bytes have the ids 0 to 255."""
    numbers = split_mix(mix((mix((seed + GAMMA) & MASK) + offset) & MASK))
    threshold = math.ceil(dropout * 2**53)
    ids = list(pretoken)
    while True:
        pairs = enumerate(itertools.pairwise(ids))
        candidates = sorted((*merges[pair], i) for i, pair in pairs if pair in merges)
        kept = next(((result, i) for _, result, i in candidates if next(numbers) >> 11 >= threshold), None)
        if kept is None:
            return ids
        result, i = kept
        ids[i : i + 2] = [result]
