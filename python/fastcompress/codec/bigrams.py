"""How much of a vocabulary's pairs a corpus shows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fastcompress.errors import DataError

_CHUNK_TOKENS = 1 << 22


@dataclass(frozen=True)
class BigramCoverage:
    """How many of a vocabulary's pairs of ids a corpus shows: a model learns no pair it never met."""

    num_seen: int
    num_possible: int
    num_tokens: int

    @property
    def fraction(self) -> float:
        """Distinct pairs seen over vocab_size squared, in [0, 1]."""
        return self.num_seen / self.num_possible


def bigram_coverage(tokens: npt.ArrayLike, vocab_size: int) -> BigramCoverage:
    """Count the distinct pairs of adjacent ids in `tokens`, integers[n] in [0, vocab_size).

    Memory: 8 bytes a distinct pair, and a constant; never vocab_size squared. Time: O(n log n).
    """
    ids = np.asarray(tokens)
    if ids.size and not 0 <= int(ids.min()) <= int(ids.max()) < vocab_size:
        raise DataError(
            f"ids from {ids.min()} to {ids.max()} are not all in [0, {vocab_size}); give the codec's own size"
        )
    seen = np.zeros(0, np.uint64)
    for begin in range(0, len(ids) - 1, _CHUNK_TOKENS):
        chunk = ids[begin : begin + _CHUNK_TOKENS + 1].astype(np.uint64)
        seen = np.union1d(seen, chunk[:-1] * np.uint64(vocab_size) + chunk[1:])
    return BigramCoverage(num_seen=len(seen), num_possible=vocab_size**2, num_tokens=len(ids))
