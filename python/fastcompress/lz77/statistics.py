"""What a parse is made of: the numbers that a study of tokenizations compares."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fastcompress.errors import ConfigError
from fastcompress.lz77.tokens import MATCH, LZTokens


@dataclass(frozen=True, eq=False)
class Statistics:
    """Of one parse.

    Attributes:
        num_bytes, num_tokens, num_literals, num_matches: counts.
        length_histogram: int64[k]; entry i counts matches of 2**i to 2**(i+1) - 1 bytes.
        distance_histogram: int64[k]; the same of distances.
    """

    num_bytes: int
    num_tokens: int
    num_literals: int
    num_matches: int
    length_histogram: npt.NDArray[np.int64]
    distance_histogram: npt.NDArray[np.int64]
    ends: npt.NDArray[np.uint64]

    @property
    def bytes_per_token(self) -> float:
        """The compression ratio in tokens; 0 for no tokens."""
        return self.num_bytes / self.num_tokens if self.num_tokens else 0.0

    @property
    def literal_token_share(self) -> float:
        """Literals among tokens, in [0, 1]."""
        return self.num_literals / self.num_tokens if self.num_tokens else 0.0

    @property
    def literal_byte_share(self) -> float:
        """Bytes that literals stand for, in [0, 1]."""
        return self.num_literals / self.num_bytes if self.num_bytes else 0.0

    def effective_context(self, num_tokens: int) -> float:
        """How many raw bytes `num_tokens` consecutive tokens span, on average over all places where so many fit (of a
        shorter parse: all of its bytes)."""
        if num_tokens < 1:
            raise ConfigError(f"num_tokens is {num_tokens}; it must be at least 1")
        if num_tokens >= self.num_tokens:
            return float(self.num_bytes)
        begins = np.concatenate((np.zeros(1, np.uint64), self.ends[:-num_tokens]))
        return float((self.ends[num_tokens - 1 :] - begins).mean())


def statistics(tokens: LZTokens) -> Statistics:
    """Counts and histograms of a parse. O(n)."""
    matches = tokens.kind == MATCH
    num_matches = int(matches.sum())
    return Statistics(
        num_bytes=tokens.num_bytes,
        num_tokens=len(tokens),
        num_literals=len(tokens) - num_matches,
        num_matches=num_matches,
        length_histogram=_by_power_of_two(tokens.length[matches]),
        distance_histogram=_by_power_of_two(tokens.value[matches]),
        ends=np.cumsum(tokens.length, dtype=np.uint64),
    )


def _by_power_of_two(values: npt.NDArray[np.uint32]) -> npt.NDArray[np.int64]:
    # frexp is exact for integers below 2**53: values are m * 2**e with 0.5 <= m < 1.
    return np.bincount(np.frexp(values.astype(np.float64))[1] - 1).astype(np.int64)
