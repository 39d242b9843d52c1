"""BPE-dropout: equal to the rule by a short oracle with the same random numbers, and what follows from the rule."""

from __future__ import annotations

import base64
import math
from collections import Counter
from pathlib import Path

import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st

from fastcompress import BPE
from fastcompress.errors import ConfigError, DataError
from fastcompress.pretokenizer import split, utf8
from tests.reference.dropout import Merges, encode_pretoken

TEXT = (
    "the cat sat on the mat; the cats sat there, unbelievably tattered and attested.\n" * 5
    + "aaaaaaaaaa abababab éé中中 " * 2
)
PROBABILITIES = [1e-9, 0.1, 0.5, 0.9, 1.0]


@pytest.fixture(scope="module")
def tok() -> BPE:
    return BPE.train([TEXT], vocab_size=310, pattern="gpt2", special_tokens=["<|end|>"])


@pytest.fixture(scope="module")
def merges(tok: BPE) -> Merges:
    return {(left, right): (rank, result) for rank, (left, right, result) in enumerate(tok.merges.tolist())}


def by_the_rule(text: str, tok: BPE, merges: Merges, dropout: float, seed: int) -> list[int]:
    """What the tokenizer must give for a text without special tokens."""
    ids, offset = [], 0
    for pretoken in split(text, tok.pattern):
        ids += encode_pretoken(pretoken, merges, dropout, seed, offset)
        offset += len(pretoken)
    return ids


@given(
    text=st.text(alphabet="aabt ehs'é\n", max_size=80),
    dropout=st.one_of(st.sampled_from(PROBABILITIES), st.floats(1e-300, 1)),
    seed=st.integers(0, 2**64 - 1),
)
@settings(max_examples=400, deadline=None)
def test_equals_the_rule(text: str, dropout: float, seed: int, tok: BPE, merges: Merges) -> None:
    ids = tok.encode_with_dropout(text, dropout, seed=seed)
    assert ids == by_the_rule(text, tok, merges, dropout, seed)
    assert tok.decode(ids) == text


@pytest.mark.parametrize("dropout", PROBABILITIES)
@pytest.mark.parametrize("size", [63, 64, 65, 66, 150, 400])  # short and long pretokens are merged by other means
def test_long_pretokens_equal_the_rule(size: int, dropout: float, tok: BPE, merges: Merges) -> None:
    for seed, text in enumerate(["a" * size, ("ab" * size)[:size], ("thecatsat" * size)[:size]]):
        ids = tok.encode_with_dropout(text, dropout, seed=seed)
        assert ids == by_the_rule(text, tok, merges, dropout, seed)


def test_nothing_dropped_and_all_dropped(tok: BPE) -> None:
    assert tok.encode_with_dropout(TEXT, 0, seed=7) == tok.encode(TEXT)
    assert tok.encode_with_dropout(TEXT, 1, seed=7) == list(TEXT.encode())
    assert len(tok.encode(TEXT)) < len(tok.encode_with_dropout(TEXT, 0.3, seed=7)) < len(TEXT.encode())


def test_golden_ids() -> None:
    """On every machine, for ever: the ids of 2026-11-28."""
    tok = BPE.load(Path(__file__).parent / "vectors" / "bpe-v1.bpe")
    text = "the cats sat on the mat, the cats sat"
    assert tok.encode(text) == [258, 270, 263, 273, 259, 272, 44, 259, 270, 263]
    expected = [258, 270, 261, 256, 266, 110, 32, 116, 104, 101, 272, 44, 32, 258, 270, 263]
    assert tok.encode_with_dropout(text, 0.25, seed=2026) == expected


@pytest.mark.parametrize("dropout", PROBABILITIES)
def test_rank_files_merge_by_rank_alone(dropout: float, tmp_path: Path) -> None:
    """Any two tokens merge that spell a third one, and no pretoken is looked up: cdef, which merges cannot reach."""
    words = [b"ab", b"aa", b"abaa", b"ba", b"aba", b"cdef"]
    path = tmp_path / "x.tiktoken"
    tokens = [bytes([b]) for b in range(256)] + words
    path.write_bytes(b"".join(base64.b64encode(token) + b" %d\n" % rank for rank, token in enumerate(tokens)))
    tok = BPE.from_tiktoken(path, pattern="gpt2")
    rank_of = {token: rank for rank, token in enumerate(tokens)}
    pairs = {
        (rank_of[token[:cut]], rank_of[token[cut:]]): (rank_of[token], rank_of[token])
        for token in words
        for cut in range(1, len(token))
        if token[:cut] in rank_of and token[cut:] in rank_of
    }
    for seed in range(50):
        text = "abaabaaab cdef baab"
        assert tok.encode_with_dropout(text, dropout, seed=seed) == by_the_rule(text, tok, pairs, dropout, seed)
    assert rank_of[b"cdef"] in tok.encode("cdef")


def test_how_often_a_merge_is_left_out() -> None:
    """One pair that merges: it stays apart with probability `dropout`, in one place as in another."""
    tok = BPE.train(["ab ab ab"], vocab_size=257, pattern="whitespace")
    count = 20_000
    for dropout in (0.1, 0.5):
        ids = tok.encode_with_dropout("ab " * count, dropout, seed=3)
        kept = Counter(ids)[256]
        deviation = math.sqrt(count * dropout * (1 - dropout))
        assert abs(kept - count * (1 - dropout)) < 5 * deviation
        others = [tok.encode_with_dropout("ab", dropout, seed=seed) == [256] for seed in range(2_000)]
        assert abs(sum(others) - 2_000 * (1 - dropout)) < 5 * math.sqrt(2_000 * dropout * (1 - dropout))


def test_a_seed_gives_the_same_ids_and_another_seed_others(tok: BPE) -> None:
    cuts = {tuple(tok.encode_with_dropout(TEXT, 0.2, seed=seed)) for seed in [1, 2, 3, 1, 2**64 - 1]}
    assert len(cuts) == 4


def test_batches_of_any_thread_count(tok: BPE) -> None:
    texts = [TEXT[i : i + 40 * (i % 5)] for i in range(60)] + ["", "x"]
    seed = 2**64 - 3
    expected = [tok.encode_with_dropout(t, 0.3, seed=(seed + i) % 2**64) for i, t in enumerate(texts)]
    for num_threads in (1, 2, 7, None):
        assert tok.encode_batch_with_dropout(texts, 0.3, seed=seed, num_threads=num_threads) == expected
    assert tok.encode_batch_with_dropout([], 0.3, seed=1) == []
    assert tok.encode_batch_with_dropout(texts, 0, seed=1) == tok.encode_batch(texts)


def test_special_tokens_are_never_dropped(tok: BPE, merges: Merges) -> None:
    text = "the cat<|end|>the cat<|end|>"
    end = tok.special_tokens["<|end|>"]
    ids = tok.encode_with_dropout(text, 0.5, seed=4, allowed_special="all")
    # Random numbers depend on where a pretoken stands, so that the two halves are cut independently.
    expected, offset = [], 0
    for segment in ("the cat", "the cat"):
        for pretoken in split(segment, "gpt2"):
            expected += encode_pretoken(pretoken, merges, 0.5, 4, offset)
            offset += len(pretoken)
        expected.append(end)
        offset += len("<|end|>")
    assert ids == expected
    with pytest.raises(DataError, match="special token"):
        tok.encode_with_dropout(text, 0.5, seed=4)
    assert end not in tok.encode_with_dropout(text, 0.5, seed=4, disallowed_special=())


def test_patterns_without_a_name() -> None:
    pattern = r"[a-z]+|[^a-z]{1,2}"
    tokens = [bytes([b]) for b in range(256)] + [b"ab", b"abab", b"ba", b"  "]
    tok = BPE.from_ranks({token: rank for rank, token in enumerate(tokens)}, pattern=pattern)
    pairs = {(97, 98): (256, 256), (256, 256): (257, 257), (98, 97): (258, 258), (32, 32): (259, 259)}
    text = "ababab  bab    é" * 9 + "ab" * 100
    expected, offset = [], 0
    for piece in regex.findall(pattern, text):
        expected += encode_pretoken(piece.encode(), pairs, 0.3, 8, offset)
        offset += len(piece.encode())
    assert tok.encode_with_dropout(text, 0.3, seed=8) == expected
    assert tok.encode_batch_with_dropout(["", text], 0.3, seed=7) == [[], expected]
    assert tok.encode_with_dropout(text, 0, seed=8) == tok.encode(text)


@pytest.mark.parametrize(
    "data", [b"", b"\xff\xfe the\x80", "half \ud83d".encode("utf-8", "surrogatepass"), "\ud83d the"]
)
def test_any_bytes_come_back(data: bytes | str, tok: BPE) -> None:
    for dropout in (0, 0.1, 0.9):
        assert tok.decode_bytes(tok.encode_with_dropout(data, dropout, seed=5)) == utf8(data)


def test_one_long_pretoken_is_not_quadratic(tok: BPE) -> None:
    for text in ("a" * 200_000, "ab" * 100_000):
        assert tok.decode(tok.encode_with_dropout(text, 0.1, seed=6)) == text


@pytest.mark.parametrize("dropout", [-0.1, 1.1, math.nan, math.inf])
def test_dropout_out_of_range(dropout: float, tok: BPE) -> None:
    with pytest.raises(ConfigError, match="dropout is"):
        tok.encode_with_dropout("x", dropout, seed=1)


@pytest.mark.parametrize("seed", [-1, 2**64])
def test_seed_out_of_range(seed: int, tok: BPE) -> None:
    with pytest.raises(ConfigError, match=r"seed is .*; it must be"):
        tok.encode_batch_with_dropout(["x"], 0.1, seed=seed)
