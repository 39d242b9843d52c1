"""Which token may come next in the ids of a BPE vocabulary."""

from __future__ import annotations

from typing import SupportsIndex

import numpy as np
import numpy.typing as npt

from fastcompress._arguments import as_instance, as_integer, as_num_threads
from fastcompress.bpe.custom_pattern import resolve_pattern
from fastcompress.bpe.tokenizer import BPE
from fastcompress.errors import ConfigError, DataError, UnknownTokenError

WORD_PATTERN = r" ?[A-Za-z\x{80}-\x{10ffff}]+| ?[0-9]+| ?[\x00-\x08\x0e-\x1f!-/:-@\[-`{-\x7f]+|[ \t-\r]+"
"""The split that the strings of ``within_words`` codebooks and dictionaries keep to, as a regular expression.

A pretoken is a run of letters, digits or symbols with at most one space before it, or a run of white space. Where one
ends depends on the bytes at its end and before alone, which is why masks can be exact. Give it to `BPE.train`.
"""

_WHITE, _LETTER, _DIGIT, _SYMBOL = range(4)
_BYTES = np.arange(256)
_KINDS = np.full(256, _SYMBOL)
_KINDS[(_BYTES == 32) | ((_BYTES >= 9) & (_BYTES <= 13))] = _WHITE
_KINDS[(_BYTES >= 48) & (_BYTES <= 57)] = _DIGIT
_KINDS[(_BYTES >= 128) | ((_BYTES | 32 >= 97) & (_BYTES | 32 <= 122))] = _LETTER


class CanonicalPairs:
    """The tokens that are legal after each token of a BPE vocabulary with the pattern `WORD_PATTERN` or "none".

    A sequence of ids is the encoding of its bytes if and only if every id is legal in the state before it; a text may
    end in any state. So if a model gives probability to legal tokens and the end only, p(ids) = p(bytes). The state is
    the token before, but for two: 0 is the beginning of a text, and the last state is that after a space that follows
    other white space. The methods are those of `greedy_dictionary.CanonicalStates`. Immutable; safe to share between
    threads.

    >>> tok = BPE.train(["ab"] * 8, vocab_size=257, pattern="none")
    >>> pairs = CanonicalPairs(tok)
    >>> pairs.states_of(tok.encode("aba")).tolist()
    [0, 257, 98]
    >>> pairs.is_legal(pairs.advance(pairs.INITIAL, ord("a")), ord("b"))  # they merge
    False
    """

    INITIAL = 0
    """The state at the beginning of a text."""

    def __init__(self, bpe: BPE, *, num_threads: int | None = None) -> None:
        """Make the table, of vocab_size**2 bits, by merging every pair of tokens.

        Args:
            bpe: The vocabulary.
            num_threads: None for one per core.

        Raises:
            ConfigError: Its pattern is another one, a token crosses words, or some token does not come from merges.

        Takes about 15 s of one core for 8,192 tokens.
        """
        as_instance(bpe, BPE, "bpe")
        self._splits = bpe.pattern != "none"
        if self._splits and bpe.pattern not in (WORD_PATTERN, resolve_pattern(WORD_PATTERN)):
            raise ConfigError(
                "the vocabulary has another pattern than bpe.WORD_PATTERN and 'none'; where its pretokens end may "
                "depend on later text, so no mask is exact"
            )
        self._num_tokens = bpe.vocab_size
        self._pairs = bpe._core.canonical_pairs(as_num_threads(num_threads))
        tokens = [b"" if i in bpe.special_tokens.values() else bpe.token_bytes(i) for i in range(bpe.vocab_size)]
        self._valid = _packed(
            np.array([bool(text) and bpe.encode_by_merges(text) == [i] for i, text in enumerate(tokens)])
        )
        self._learn_kinds(tokens)

    def _learn_kinds(self, tokens: list[bytes]) -> None:
        """Note the first and the last kind of byte of each token. Raises ConfigError if one crosses words."""
        for token, text in enumerate(tokens):
            kinds = {int(_KINDS[byte]) for byte in (text[1:] if text[:1] == b" " else text)}
            if self._splits and len(kinds | ({_WHITE} if text[:2] == b"  " else set())) > 1:
                raise ConfigError(f"token {token} ({text!r}) is not within one word; train with bpe.WORD_PATTERN")
        first = np.array([_KINDS[text[0]] if text else _SYMBOL for text in tokens])
        last = np.array([_KINDS[text[-1]] if text else _SYMBOL for text in tokens])
        self._ends_white = last == _WHITE
        self._last_kinds = last
        self._first_rows = np.stack([_packed(first == kind) for kind in range(4)])
        self._spaced = _packed((first == _WHITE) & (last != _WHITE))  # a space and what follows it
        if b" " not in tokens:
            raise ConfigError("the vocabulary has no token for a space; train with all 256 single bytes")
        self._space = tokens.index(b" ")

    def __repr__(self) -> str:
        return f"<CanonicalPairs: num_tokens={self._num_tokens}>"

    @property
    def num_states(self) -> int:
        """The number of states, vocab_size + 2."""
        return self._num_tokens + 2

    def is_legal(self, state: int, token: int) -> bool:
        """Return whether a token may follow. Raises as `advance` does, except for illegal tokens."""
        checked = int(self._checked([token])[0])
        row = self.legal_rows([as_integer(state, "state", 0, self.num_states - 1)])[0]
        return bool(row[checked // 8] >> checked % 8 & 1)

    def advance(self, state: int, token: int) -> int:
        """Return the state after one more token.

        Raises:
            ConfigError: `state` is out of range.
            UnknownTokenError: There is no such token.
            DataError: The token is illegal in this state.
        """
        return int(self.states_of([token], state)[1])

    def states_of(self, ids: npt.ArrayLike, state: int = INITIAL) -> npt.NDArray[np.uint32]:
        """Return the state before each id of an encoding, and the one after the last id.

        Args:
            ids: integers[n], a text's encoding, or a part of one.
            state: The state before the first id.

        Returns:
            uint32[n + 1].

        Raises:
            ConfigError: `state` is out of range.
            UnknownTokenError: An id is outside [0, vocab_size).
            DataError: An id is illegal where it stands.
        """
        state = as_integer(state, "state", 0, self.num_states - 1)
        tokens = self._checked(ids)
        states = np.empty(len(tokens) + 1, np.uint32)
        states[0] = state
        states[1:] = tokens + 1
        if self._splits and len(tokens):
            before_is_white = np.empty(len(tokens), np.bool_)
            before_is_white[0] = state != 0 and self._ends_white[self._token_of(state)]
            before_is_white[1:] = self._ends_white[tokens[:-1]]
            states[1:][before_is_white & (tokens == self._space)] = self.num_states - 1
        for begin in range(0, len(tokens), _ROWS_AT_ONCE):  # what is held at once is bounded
            some = tokens[begin : begin + _ROWS_AT_ONCE]
            rows = self.legal_rows(states[begin : begin + len(some)])
            bad = (rows[np.arange(len(some)), some // 8] >> (some % 8).astype(np.uint8) & 1) == 0
            if bad.any():
                place = begin + int(np.argmax(bad))
                raise DataError(
                    f"id {tokens[place]} at position {place} is illegal there: the ids are not what encode gives for "
                    "any text"
                )
        return states

    def legal_rows(self, states: npt.ArrayLike) -> npt.NDArray[np.uint8]:
        """Return the tokens that are legal in each state, as bits.

        Args:
            states: integers[n]; np.arange(num_states) for all.

        Returns:
            uint8[n, (vocab_size + 7) // 8]: bit t % 8, counted from the lowest, of byte t // 8 is set if token t is
            legal. The end of the text, which is always legal, has no bit. Bits past the last token are 0.

        Raises:
            ConfigError: A state is out of range.
            TypeError: `states` are not one-dimensional integers.
        """
        array = np.array(states)
        if array.size == 0:
            array = np.zeros(0, np.int64)
        if array.ndim != 1 or array.dtype.kind not in "iu":
            raise TypeError(f"states are {array.dtype} of shape {array.shape}; they must be one-dimensional integers")
        bad = (array >= self.num_states) | (array < 0)
        if bad.any():
            position = int(np.argmax(bad))
            raise ConfigError(f"states[{position}] is {array[position]}; it must be 0 to {self.num_states - 1}")
        tokens = np.where(array == self.num_states - 1, self._space, np.maximum(array.astype(np.int64) - 1, 0))
        rows = self._pairs[tokens]
        if self._splits:
            same = self._first_rows[self._last_kinds[tokens]]
            begins_word = array == self._space + 1  # a space that is not in a run of white space
            rows = np.where(begins_word[:, None], rows, (rows & same) | (self._valid & ~same))
            rows[self._ends_white[tokens]] &= ~self._spaced
        rows[array == self.INITIAL] = self._valid
        return rows

    def legal_tokens(self, state: int) -> npt.NDArray[np.bool_]:
        """Return whether each token is legal in a state, bool[vocab_size]. Raises ConfigError if it is out of range."""
        row = self.legal_rows([as_integer(state, "state", 0, self.num_states - 1)])[0]
        return np.unpackbits(row, count=self._num_tokens, bitorder="little").astype(np.bool_)

    def _token_of(self, state: int) -> int:
        return self._space if state == self.num_states - 1 else state - 1

    def _checked(self, ids: npt.ArrayLike | list[SupportsIndex]) -> npt.NDArray[np.int64]:
        array = np.array(ids)
        if array.size == 0:
            return np.zeros(0, np.int64)
        if array.ndim != 1 or array.dtype.kind not in "iu":
            raise TypeError(f"ids are {array.dtype} of shape {array.shape}; they must be one-dimensional integers")
        bad = (array >= self._num_tokens) | (array < 0)
        if bad.any():
            position = int(np.argmax(bad))
            raise UnknownTokenError(
                f"id {array[position]} at position {position} is not one of the vocabulary's {self._num_tokens}"
            )
        return array.astype(np.int64)


_ROWS_AT_ONCE = 4096


def _packed(bits: npt.NDArray[np.bool_]) -> npt.NDArray[np.uint8]:
    return np.packbits(bits, bitorder="little")
