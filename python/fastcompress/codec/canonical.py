"""Canonical sequences: those that a codec's encoder gives, and the masks that forbid all others.

Many codecs can spell the same bytes in several ways, and a model gives some probability to each. If illegal tokens are
masked, token by token, only the encoder's own spelling is left, and the probability of the ids is that of the bytes.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from fastcompress.bpe import CanonicalPairs
from fastcompress.codec.basic import BPECodec
from fastcompress.codec.equal_info import EqualInfoCodec
from fastcompress.codec.greedy_dictionary import GreedyDictionaryCodec
from fastcompress.codec.protocol import Codec
from fastcompress.equal_info import CanonicalSteps
from fastcompress.errors import ConfigError


class Canonical(Protocol):
    """The states of an encoder, which begins each text in state 0, and the ids that are legal in each."""

    @property
    def memory(self) -> int:
        """The number of last ids that decide the state."""
        ...

    def state_after(self, last: npt.ArrayLike) -> int:
        """Return the state after a text, given its last ids: `memory` of them, or all if it has no more."""
        ...

    def states_of(self, ids: npt.ArrayLike, state: int = 0) -> npt.NDArray[np.uint32]:
        """Return the state before each id and the one after the last: uint32[n + 1]. Raises DataError if one is not."""
        ...

    def legal_rows(self, states: npt.ArrayLike) -> npt.NDArray[np.uint8]:
        """Return bits, uint8[n, (vocab_size + 7) // 8], lowest first; the end of a text is always legal."""
        ...


def canonical_of(codec: Codec) -> Canonical:
    """Return the encoder's states of a codec; those of the last few codecs are kept.

    Greedy dictionaries and codebooks have them at hand. For BPE, some 10 s make a table of vocab_size**2 bits.

    Raises ConfigError if there is no exact mask for the codec.
    """
    hashable: Any = codec  # as all codecs are
    return _canonical_of(hashable)


@lru_cache(maxsize=8)
def _canonical_of(codec: Any) -> Canonical:
    if isinstance(codec, GreedyDictionaryCodec):
        return codec.dictionary.states
    if isinstance(codec, BPECodec):
        return CanonicalPairs(codec.tokenizer)
    if isinstance(codec, EqualInfoCodec) and codec.token_bits == codec.codebook.bits:
        return CanonicalSteps(codec.codebook)
    raise ConfigError(
        f"codec is {codec.name}, for which there is no exact mask; use a greedy dictionary, a codebook without a "
        "pattern, or BPE with the pattern bpe.WORD_PATTERN"
    )
