"""Which token may come next in the ids of a BPE vocabulary."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fastcompress._arguments import as_instance, as_num_threads
from fastcompress._canonical import LastTokenStates
from fastcompress.bpe.custom_pattern import named_pattern
from fastcompress.bpe.tokenizer import BPE
from fastcompress.errors import ConfigError

WORD_PATTERN = "words"
"""The named pattern that the strings of ``within_words`` codebooks and dictionaries keep to.

A pretoken is a run of letters, digits or symbols with at most one space before it, or a run of white space. Where one
ends depends on the byte after its end and those before alone, which is why masks can be exact. Give it to `BPE.train`.
"""

_WHITE, _LETTER, _DIGIT, _SYMBOL = range(4)
_BYTES = np.arange(256)
_KINDS = np.full(256, _SYMBOL)
_KINDS[(_BYTES == 32) | ((_BYTES >= 9) & (_BYTES <= 13))] = _WHITE
_KINDS[(_BYTES >= 48) & (_BYTES <= 57)] = _DIGIT
_KINDS[(_BYTES >= 128) | ((_BYTES | 32 >= 97) & (_BYTES | 32 <= 122))] = _LETTER


class CanonicalPairs(LastTokenStates):
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
        if self._splits and WORD_PATTERN not in (bpe.pattern, named_pattern([bpe.pattern])):  # older files have a regex
            raise ConfigError(
                "the vocabulary has another pattern than bpe.WORD_PATTERN and 'none'; where its pretokens end may "
                "depend on later text, so no mask is exact"
            )
        super().__init__(bpe.vocab_size, bpe.vocab_size + 2)
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

    def _after(self, tokens: npt.NDArray[np.int64], state: int) -> npt.NDArray[np.uint32]:
        states = (tokens + 1).astype(np.uint32)
        if self._splits and len(tokens):
            before_is_white = np.empty(len(tokens), np.bool_)
            before_is_white[0] = state != 0 and self._ends_white[self._token_of(state)]
            before_is_white[1:] = self._ends_white[tokens[:-1]]
            states[before_is_white & (tokens == self._space)] = self.num_states - 1
        return states

    def _rows(self, states: npt.NDArray[np.int64]) -> npt.NDArray[np.uint8]:
        tokens = np.where(states == self.num_states - 1, self._space, np.maximum(states - 1, 0))
        rows = self._pairs[tokens]
        if self._splits:
            same = self._first_rows[self._last_kinds[tokens]]
            begins_word = states == self._space + 1  # a space that is not in a run of white space
            rows = np.where(begins_word[:, None], rows, (rows & same) | (self._valid & ~same))
            rows[self._ends_white[tokens]] &= ~self._spaced
        rows[states == self.INITIAL] = self._valid
        return rows

    def _token_of(self, state: int) -> int:
        return self._space if state == self.num_states - 1 else state - 1


def _packed(bits: npt.NDArray[np.bool_]) -> npt.NDArray[np.uint8]:
    return np.packbits(bits, bitorder="little")
