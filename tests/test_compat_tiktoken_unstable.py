"""Completions of long unstable texts beside tiktoken's brute force, with vocabularies that are small enough for it."""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import Any

import pytest
import tiktoken
from hypothesis import given, settings
from hypothesis import strategies as st

from fastcompress.bpe import BPE
from fastcompress.compat import tiktoken as compat
from fastcompress.compat.tiktoken import long_unstable, unstable
from fastcompress.pretokenizer import PATTERNS

# deepseek-v3 is several regexes in turn and "none" is none: no pat_str of tiktoken's.
NAMES = [name for name in PATTERNS if name not in ("none", "deepseek-v3")]
ATOMS = [*" \n\t\rabA1^./'é日ǅ", "\u3000", "\u0301", "\x85", "'s"]
Pair = tuple[compat.Encoding, tiktoken.Encoding]

units = st.lists(st.sampled_from(ATOMS), min_size=1, max_size=3).map("".join)
counts = st.one_of(st.integers(1, 3), st.integers(30, 45), st.integers(60, 140), st.integers(300, 400))
texts = st.lists(st.tuples(units, counts), min_size=1, max_size=4).map(lambda runs: "".join(u * n for u, n in runs))


def make_pair(name: str) -> Pair:
    """Encodings of a pattern whose tokens are runs, white space before words, and halves of characters."""
    draw = random.Random(1)
    corpus = ["".join(draw.choice(ATOMS) * draw.choice([1, 1, 2, 3, 40]) for _ in range(20)) for _ in range(200)]
    tokens = BPE.train(corpus, vocab_size=500, pattern=name).ordinary_tokens()
    ranks = {token: rank for rank, token in enumerate(sorted(tokens, key=tokens.__getitem__))}
    arguments: Any = {"pat_str": PATTERNS[name], "mergeable_ranks": ranks, "special_tokens": {}}
    return compat.Encoding(name, **arguments), tiktoken.Encoding(name, **arguments)


PAIRS = {name: make_pair(name) for name in NAMES}


def assert_same(ours: compat.Encoding, theirs: tiktoken.Encoding, text: str) -> None:
    stable, completions = ours.encode_with_unstable(text)
    expected_stable, expected = theirs.encode_with_unstable(text)
    assert stable == expected_stable
    assert len(completions) == len(expected)
    assert set(map(tuple, completions)) == set(map(tuple, expected))


@pytest.mark.slow
@pytest.mark.parametrize("many_bytes", [0, 128])
@pytest.mark.parametrize("name", NAMES)
@settings(deadline=None, max_examples=60)
@given(text=texts)
def test_completions_of_runs(name: str, many_bytes: int, text: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(unstable, "_MANY_BYTES", many_bytes)
        assert_same(*PAIRS[name], text)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("text", ["a" * 300, " " * 300, "\n" * 100 + " " * 100, "^" * 200 + " " * 90])
def test_cuts_near_a_shortened_run(name: str, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a cut falls inside a run, the text is cut as a whole: here wherever one falls behind the run's begin."""
    monkeypatch.setattr(long_unstable, "_NEAR_EDGE", 0)
    assert_same(*PAIRS[name], text)


@pytest.mark.parametrize(
    "text", ["a" * 1000, "^" * 700, "=" * 1000, "hello" * 100, "日本" * 100, "\n" * 400, " " * 150]
)
def test_published_encodings(text: str, tiktoken_cache: Path) -> None:
    assert_same(compat.get_encoding("cl100k_base"), tiktoken.get_encoding("cl100k_base"), text)


def test_a_long_run_of_spaces_takes_no_time(tiktoken_cache: Path) -> None:
    """It has 44,000 candidates; half a minute if each is encoded as a whole, half a second so."""
    encoding = compat.get_encoding("cl100k_base")
    encoding.encode_with_unstable(" ")  # sorts the tokens
    begin = time.perf_counter()
    stable, completions = encoding.encode_with_unstable(" " * 10_000)
    assert time.perf_counter() - begin < 10
    assert stable == []
    assert len(completions) > 40_000
