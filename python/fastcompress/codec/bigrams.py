"""The share of all pairs of ids that occur in a corpus."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fastcompress.errors import DataError

_CHUNK_TOKENS = 1 << 22


@dataclass(frozen=True)
class BigramCoverage:
    """The pairs of adjacent ids that occur in a corpus, of all that a vocabulary has. A model cannot learn the others.

    >>> bigram_coverage([0, 1, 0, 1, 1], vocab_size=2).fraction  # 01, 10 and 11 of four pairs
    0.75

    Attributes:
        num_seen: The number of distinct pairs in the corpus.
        num_possible: The number of pairs that the vocabulary has, vocab_size squared.
        num_tokens: The number of ids in the corpus.
    """

    num_seen: int
    num_possible: int
    num_tokens: int

    @property
    def fraction(self) -> float:
        """The share of possible pairs that occur, 0 to 1."""
        return self.num_seen / self.num_possible


def bigram_coverage(tokens: npt.ArrayLike, vocab_size: int) -> BigramCoverage:
    """Count the distinct pairs of adjacent ids.

    Args:
        tokens: Ids, integers[n].
        vocab_size: The number of ids of the codec that made them.

    Raises:
        DataError: An id is outside [0, vocab_size).
        TypeError: `tokens` are not one-dimensional integers.

    O(n log n) time, and 8 bytes of memory per distinct pair.
    """
    ids = np.asarray(tokens)
    if ids.ndim != 1 or (ids.size and ids.dtype.kind not in "iu"):
        raise TypeError(f"tokens are {ids.dtype} of shape {ids.shape}; they must be one-dimensional integers")
    if ids.size and not 0 <= int(ids.min()) <= int(ids.max()) < vocab_size:
        raise DataError(
            f"tokens are ids from {ids.min()} to {ids.max()}; they must be in [0, {vocab_size}), the codec's ids"
        )
    seen = np.zeros(0, np.uint64)
    for begin in range(0, len(ids) - 1, _CHUNK_TOKENS):
        chunk = ids[begin : begin + _CHUNK_TOKENS + 1].astype(np.uint64)
        seen = np.union1d(seen, chunk[:-1] * np.uint64(vocab_size) + chunk[1:])
    return BigramCoverage(num_seen=len(seen), num_possible=vocab_size**2, num_tokens=len(ids))
