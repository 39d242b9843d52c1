"""The table of pairs of a BPE vocabulary: exact for every short sequence of tokens, on its split and without one."""

from __future__ import annotations

import itertools
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastcompress.bpe import BPE, WORD_PATTERN, CanonicalPairs
from fastcompress.bpe.custom_pattern import CustomPattern
from fastcompress.errors import ConfigError, DataError, UnknownTokenError

RNG = random.Random(4)
ALPHABET = "ab 1.\n"
TEXT = "".join(RNG.choices(["a", "b", " ", "ab", "  ", "1", ".", "\n", "ba", " a", "11", "..", "é"], k=3000))
WORDS = BPE.train([TEXT], vocab_size=290, pattern=WORD_PATTERN)
UNSPLIT = BPE.train([TEXT], vocab_size=290, pattern="none")
RUNS = BPE.train(["aaaaaaaa bbbb aabb " * 40], vocab_size=270, pattern="none")
PAIRS = {"words": CanonicalPairs(WORDS), "unsplit": CanonicalPairs(UNSPLIT), "runs": CanonicalPairs(RUNS)}
BPES = {"words": WORDS, "unsplit": UNSPLIT, "runs": RUNS}
each = pytest.mark.parametrize("name", BPES)


def is_canonical(bpe: BPE, ids: tuple[int, ...]) -> bool:
    return bpe.encode_ordinary(bpe.decode_bytes(ids)) == list(ids)


@each
def test_every_short_sequence(name: str) -> None:
    """Every pair of tokens over the alphabet, and random longer sequences that are legal up to their last token."""
    bpe, pairs = BPES[name], PAIRS[name]
    tokens = [i for i in range(bpe.vocab_size) if set(bpe.token_bytes(i)) <= set(ALPHABET.encode())]
    rows = np.array([pairs.legal_tokens(state) for state in range(pairs.num_states)])
    for first in tokens:
        assert rows[0][first] == is_canonical(bpe, (first,))
    rng = random.Random(1)
    sequences = list(itertools.product(tokens, repeat=2)) if len(tokens) < 60 else []
    for _ in range(4000):
        sequence: list[int] = []
        state = pairs.INITIAL
        for _ in range(rng.randrange(1, 7)):
            legal = [t for t in tokens if rows[state][t]]
            sequence.append(rng.choice(legal))
            state = pairs.states_of(sequence)[-1]
        sequences.append((*sequence, rng.choice(tokens)))
    num_legal = 0
    for ids in sequences:
        state, is_legal = pairs.INITIAL, True
        for token in ids:
            if not rows[state][token]:
                is_legal = False
                break
            state = int(pairs.states_of([token], state)[1])
        assert is_legal == is_canonical(bpe, ids), [bpe.token_bytes(t) for t in ids]
        num_legal += is_legal
    assert 500 < num_legal < len(sequences)


@each
@given(text=st.text(ALPHABET + "é", max_size=40))
@settings(deadline=None)
def test_encodings_are_legal(name: str, text: str) -> None:
    bpe, pairs = BPES[name], PAIRS[name]
    ids = bpe.encode_ordinary(text)
    states = pairs.states_of(ids)
    assert states.dtype == np.uint32
    state = pairs.INITIAL
    for token, before in zip(ids, states.tolist(), strict=False):
        assert state == before
        assert pairs.is_legal(state, token)
        state = pairs.advance(state, token)
    assert state == states[-1]


@given(st.lists(st.integers(0, 289), max_size=6))
@settings(max_examples=300, deadline=None)
def test_any_ids(ids: list[int]) -> None:
    """Also ids of bytes that are not UTF-8, which are letters."""
    if is_canonical(WORDS, tuple(ids)):
        PAIRS["words"].states_of(ids)
    else:
        with pytest.raises(DataError, match="is illegal there"):
            PAIRS["words"].states_of(ids)


def test_a_space_after_white_space() -> None:
    """Alone it belongs to the word after it, in a run it does not."""
    bpe = BPE.train(["a b " * 9], vocab_size=257, pattern=WORD_PATTERN)  # " b" or " a" alone is a token
    pairs = CanonicalPairs(bpe)
    merged = bpe.token_bytes(256)
    assert merged[:1] == b" "
    space, letter, line = 32, merged[1], 10
    assert not pairs.is_legal(pairs.advance(0, space), letter)
    in_run = pairs.advance(pairs.advance(0, line), space)
    assert in_run == pairs.num_states - 1
    assert pairs.is_legal(in_run, letter)
    assert not pairs.is_legal(pairs.advance(0, line), 256)
    assert bpe.encode_ordinary(b"\n " + merged[1:]) == [line, space, letter]


def test_vocabularies_that_hold_the_regex_of_words() -> None:
    """`WORD_PATTERN` was this regex before it was a name; files that were written then have its steps."""
    regex = r" ?[A-Za-z\x{80}-\x{10ffff}]+| ?[0-9]+| ?[\x00-\x08\x0e-\x1f!-/:-@\[-`{-\x7f]+|[ \t-\r]+"
    assert BPE.train([TEXT], vocab_size=270, pattern=regex).pattern == WORD_PATTERN
    bpe = BPE.train([TEXT], vocab_size=290, pattern=CustomPattern.from_regex(regex).to_json())
    assert bpe.pattern == regex
    every = np.arange(PAIRS["words"].num_states)
    assert (CanonicalPairs(bpe).legal_rows(every) == PAIRS["words"].legal_rows(every)).all()


def test_threads_give_the_same_table() -> None:
    one, three = (CanonicalPairs(WORDS, num_threads=n) for n in (1, 3))
    every = np.arange(one.num_states)
    assert (one.legal_rows(every) == three.legal_rows(every)).all()


def test_what_is_refused() -> None:
    any_of: Any = lambda value: value  # noqa: E731
    pairs = PAIRS["words"]
    with pytest.raises(ConfigError, match="another pattern"):
        CanonicalPairs(BPE.train([TEXT], vocab_size=270))
    with pytest.raises(TypeError, match="bpe is 'x'"):
        CanonicalPairs(any_of("x"))
    for ids in ([290], [-1], [2**40]):
        with pytest.raises(UnknownTokenError, match="is not one of the vocabulary's 290"):
            pairs.states_of(ids)
    for wrong in ([0.5], [[1]], ["a"]):
        with pytest.raises(TypeError, match="must be one-dimensional integers"):
            pairs.states_of(any_of(wrong))
        with pytest.raises(TypeError, match="must be one-dimensional integers"):
            pairs.legal_rows(any_of(wrong))
    for state in (-1, pairs.num_states):
        with pytest.raises(ConfigError, match=f"state is {state}; it must be 0 to {pairs.num_states - 1}"):
            pairs.advance(state, 1)
        with pytest.raises(ConfigError, match=rf"states\[0\] is {state}"):
            pairs.legal_rows([state])
    assert pairs.states_of([]).tolist() == [0]
    assert pairs.legal_rows([]).shape == (0, (290 + 7) // 8)


def test_special_tokens_are_never_legal() -> None:
    bpe = BPE.train([TEXT], vocab_size=290, pattern=WORD_PATTERN, special_tokens=("<|end|>",))
    pairs = CanonicalPairs(bpe)
    rows = np.unpackbits(pairs.legal_rows(np.arange(pairs.num_states)), axis=1, bitorder="little")
    assert not rows[:, bpe.special_tokens["<|end|>"]].any()
    assert pairs.states_of(bpe.encode_ordinary(TEXT)).shape
