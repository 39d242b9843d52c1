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
from fastcompress.codec.chat import ChatCodec
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


class MarkedStates:
    """The states of a chat codec's encoder: those of the codec below, for which each message is a text of its own.

    Marks are legal everywhere, and the state after one is that at the beginning of a text. As a mark decodes to no
    bytes, these masks leave a text more than one spelling.
    """

    def __init__(self, below: Canonical, codec: ChatCodec) -> None:
        """Add the marks of a codec to the states of the codec below them."""
        self._below, self._first_mark = below, codec.base.vocab_size
        is_mark = np.arange(codec.vocab_size) >= self._first_mark
        self._marks = np.packbits(is_mark, bitorder="little")  # uint8[(vocab_size + 7) // 8]

    @property
    def memory(self) -> int:
        """See `Canonical`."""
        return self._below.memory

    def state_after(self, last: npt.ArrayLike) -> int:
        """See `Canonical`."""
        ids = np.asarray(last, np.int64)
        return self._below.state_after(ids[np.append(-1, np.flatnonzero(ids >= self._first_mark))[-1] + 1 :])

    def states_of(self, ids: npt.ArrayLike, state: int = 0) -> npt.NDArray[np.uint32]:
        """See `Canonical`."""
        array = np.asarray(ids, np.int64)
        states = np.zeros(len(array) + 1, np.uint32)
        begin = 0
        for mark in [*np.flatnonzero(array >= self._first_mark).tolist(), len(array)]:
            states[begin : mark + 1] = self._below.states_of(array[begin:mark], state)
            begin, state = mark + 1, 0
        return states

    def legal_rows(self, states: npt.ArrayLike) -> npt.NDArray[np.uint8]:
        """See `Canonical`."""
        below = self._below.legal_rows(states)
        rows = np.tile(self._marks, (len(below), 1))
        rows[:, : below.shape[1]] |= below
        return rows


def canonical_of(codec: Codec) -> Canonical:
    """Return the encoder's states of a codec; those of the last few codecs are kept.

    Greedy dictionaries and codebooks have them at hand. For BPE, some 10 s make a table of vocab_size**2 bits.

    Raises ConfigError if there is no exact mask for the codec.
    """
    hashable: Any = codec  # as all codecs are
    return _canonical_of(hashable)


@lru_cache(maxsize=8)
def _canonical_of(codec: Any) -> Canonical:
    if isinstance(codec, ChatCodec):
        return MarkedStates(canonical_of(codec.base), codec)
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
