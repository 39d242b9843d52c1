"""Statistics of a parse, for the comparison of tokenizations."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fastcompress._arguments import as_integer
from fastcompress.lz77.tokens import MATCH, LZTokens, as_tokens


@dataclass(frozen=True, eq=False)
class Statistics:
    """Counts and histograms of one parse.

    >>> from fastcompress.lz77 import parse
    >>> result = statistics(parse(b"abcabcabcabc"))
    >>> result.num_literals, result.num_matches, result.bytes_per_token
    (3, 1, 3.0)

    Attributes:
        num_bytes: The number of bytes that the tokens decode to.
        num_tokens: The number of tokens.
        num_literals: The number of literals.
        num_matches: The number of matches.
        length_histogram: int64[k]; entry i counts the matches of 2**i to 2**(i+1) - 1 bytes.
        distance_histogram: int64[k]; the same for distances.
        ends: uint64[num_tokens], the position after each token.
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
        """The average number of bytes per token; 0 without tokens."""
        return self.num_bytes / self.num_tokens if self.num_tokens else 0.0

    @property
    def literal_token_share(self) -> float:
        """The share of literals among tokens, 0 to 1."""
        return self.num_literals / self.num_tokens if self.num_tokens else 0.0

    @property
    def literal_byte_share(self) -> float:
        """The share of bytes that are literals, 0 to 1."""
        return self.num_literals / self.num_bytes if self.num_bytes else 0.0

    def effective_context(self, num_tokens: int) -> float:
        """Return the average number of raw bytes that `num_tokens` consecutive tokens span.

        The average is over all sequences of that many tokens in the parse; a shorter parse counts as one sequence.

        Raises ConfigError if `num_tokens` is below 1.
        """
        num_tokens = as_integer(num_tokens, "num_tokens", 1, (1 << 62) - 1)
        if num_tokens >= self.num_tokens:
            return float(self.num_bytes)
        begins = np.concatenate((np.zeros(1, np.uint64), self.ends[:-num_tokens]))
        return float((self.ends[num_tokens - 1 :] - begins).mean())


def statistics(tokens: LZTokens) -> Statistics:
    """Count the tokens of a parse. O(n).

    Raises FormatError for the first malformed token (see `LZTokens.checked`).
    """
    tokens = as_tokens(tokens).checked()
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
