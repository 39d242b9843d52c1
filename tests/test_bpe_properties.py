"""BPE against the oracle, and its invariants, on arbitrary text and bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastcompress import BPE
from fastcompress.errors import DataError
from fastcompress.pretokenizer import PATTERNS
from tests.reference import bpe as oracle

# Few letters, so that pairs repeat, overlap (aaa) and tie; and a little of everything else.
small_text = st.text(alphabet="aab \n1'sé", max_size=60)
any_text = st.text(alphabet=st.characters(exclude_categories=["Cs", "Cn"]), max_size=40)
patterns = st.sampled_from(sorted(PATTERNS))
trained = {
    pattern: BPE.train(
        ["the cat sat on the mat's edge, then 123 cats\n\n" * 5, "éé中中 ab ab"],
        vocab_size=285,
        pattern=pattern,
        special_tokens=["<|end|>"],
    )
    for pattern in PATTERNS
}


@pytest.mark.slow
@given(texts=st.lists(small_text, min_size=1, max_size=6), pattern=patterns, num_merges=st.integers(0, 40))
@settings(max_examples=400, deadline=None)
def test_training_equals_the_oracle(texts: list[str], pattern: str, num_merges: int) -> None:
    expected = oracle.train(texts, pattern, num_merges)
    tok = BPE.train(texts, vocab_size=256 + len(expected), pattern=pattern, num_threads=2)
    assert [tuple(merge) for merge in tok.merges.tolist()] == expected
    for text in texts:
        assert tok.encode(text) == oracle.encode(text, pattern, expected)


@given(text=small_text, pattern=patterns)
@settings(max_examples=300, deadline=None)
def test_encoding_equals_the_oracle_on_unseen_text(text: str, pattern: str) -> None:
    tok = trained[pattern]
    assert tok.encode_ordinary(text) == oracle.encode(text, pattern, [tuple(m) for m in tok.merges.tolist()])


@given(data=st.binary(max_size=200), pattern=patterns)
@settings(max_examples=500, deadline=None)
def test_bytes_round_trip(data: bytes, pattern: str) -> None:
    tok = trained[pattern]
    tokens = tok.encode_to_numpy(data, disallowed_special=())
    assert tok.decode_bytes(tokens) == data
    assert int(tok.token_lengths[tokens].sum()) == len(data)


@given(text=any_text, pattern=patterns)
@settings(max_examples=300, deadline=None)
def test_text_round_trips_and_streams(text: str, pattern: str) -> None:
    tok = trained[pattern]
    ids = tok.encode_ordinary(text)
    assert tok.decode(ids) == text
    stream = tok.decode_stream()
    assert "".join(stream.push(i) for i in ids) == text
    assert stream.finish() == ""


@given(
    pieces=st.lists(st.one_of(any_text, st.sampled_from(["<|end|>", "<|end", "\ud800"])), max_size=5),
    repeats=st.sampled_from([1, 40]),
    as_bytes=st.booleans(),
    pattern=patterns,
)
@settings(max_examples=300, deadline=None)
def test_usual_arguments_change_nothing(pieces: list[str], repeats: int, as_bytes: bool, pattern: str) -> None:
    """They take a way of their own through the core."""
    tok, text = trained[pattern], "".join(pieces) * repeats
    given: str | bytes = text.encode("utf-8", "surrogatepass") if as_bytes else text
    if "<|end|>" in text:
        for encode in (tok.encode, tok.encode_to_numpy):
            with pytest.raises(DataError, match="the text holds the special token"):
                encode(given)
        return
    usual = tok.encode(given)
    assert usual == tok.encode_to_numpy(given).tolist() == tok.encode_ordinary(given)
    # A list of none is not the usual argument.
    assert usual == tok.encode(given, allowed_special=[]) == tok.encode(given, num_threads=np.int64(2))
    assert usual == tok.encode_to_numpy(given, allowed_special=[]).tolist()


@pytest.mark.parametrize("size", [0, 1, 1023, 1024, 1025, 5000])
@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_short_texts_are_encoded_like_long_ones(size: int, kind: type) -> None:
    """Up to 1 KiB the GIL is kept, and few ids are copied."""
    tok, text = trained["cl100k"], (b"the cat sat on the mat's edge, then 123 cats\n" * 120)[:size]
    ids = tok.encode(text, allowed_special=[])
    assert tok.decode_bytes(ids) == text
    assert tok.encode(kind(text)) == tok.encode_to_numpy(kind(text)).tolist() == ids


@pytest.mark.parametrize("threads", [1, 4, None])
@pytest.mark.parametrize("letter", ["a", "é", "中"])  # as CPython keeps them: ASCII, and one and two bytes a character
def test_a_batch_names_the_first_special_token(letter: str, threads: int | None) -> None:
    tok, text = trained["cl100k"], letter * 100_000
    texts = [text] * 40
    assert len(tok.encode_batch(texts, threads)) == 40
    for number, offset in ((37, 5), (31, 100_000), (20, 7)):
        texts[number] = text[:offset] + "<|end|>" + text[offset:]
        with pytest.raises(DataError, match=f"'<.end.>' at offset {offset};"):
            tok.encode_batch_to_numpy(texts, threads)
    assert len(tok.encode_batch(texts, threads, disallowed_special=())) == 40
    mixed: list[Any] = ["a", "<|end|>", np.frombuffer(b"abc", np.uint8)]
    with pytest.raises(TypeError, match=r"texts\[2\] is of type ndarray; expected str or bytes"):
        tok.encode_batch(mixed, threads)


def test_the_usual_call_takes_texts_alone() -> None:
    tok = trained["cl100k"]
    arrays: list[Any] = [np.frombuffer(b"abc", np.uint8), np.frombuffer(b"<|end|>", np.uint8)]
    for array in arrays:
        for encode in (tok.encode, tok.encode_to_numpy):
            with pytest.raises(TypeError, match="text is of type ndarray; expected str or bytes"):
                encode(array)


@given(texts=st.lists(st.one_of(any_text, st.binary(max_size=30)), max_size=20), threads=st.integers(1, 5))
@settings(max_examples=200, deadline=None)
def test_batches_equal_single_calls(texts: list[str | bytes], threads: int) -> None:
    tok = trained["cl100k"]
    options = {"disallowed_special": ()}
    assert tok.encode_batch(texts, threads, **options) == [tok.encode(t, **options) for t in texts]  # type: ignore[arg-type]


# CPython keeps one, two or four bytes a character, by the widest of a text; batches read them where they lie.
of_any_width = st.sampled_from([0x80, 0x100, 0x800, 0x10000, 0x110000]).flatmap(
    lambda limit: st.text(st.characters(max_codepoint=limit - 1, exclude_categories=()), max_size=80)
)


@given(texts=st.lists(of_any_width, max_size=8), threads=st.integers(1, 2))
@settings(max_examples=300, deadline=None)
def test_batches_read_every_kind_of_str(texts: list[str], threads: int) -> None:
    tok = trained["cl100k"]
    clean = [text.encode("utf-16", "surrogatepass").decode("utf-16", "replace") for text in texts]
    assert [tok.decode(ids) for ids in tok.encode_batch(texts, threads, disallowed_special=())] == clean


@given(
    parts=st.lists(st.one_of(small_text, st.just("<|end|>")), max_size=8),
    allowed=st.booleans(),
)
@settings(max_examples=200, deadline=None)
def test_special_tokens_cut_the_text(parts: list[str], allowed: bool) -> None:
    tok = trained["gpt2"]
    text = "".join(parts)
    if allowed:
        expected: list[int] = []
        for number, segment in enumerate(text.split("<|end|>")):
            expected += ([tok.special_tokens["<|end|>"]] if number else []) + tok.encode_ordinary(segment)
        assert tok.encode(text, allowed_special="all") == expected
        assert tok.encode_batch([text], allowed_special="all") == [expected]
    else:
        assert tok.encode(text, disallowed_special=()) == tok.encode_ordinary(text)


@given(position=st.integers(0, 10**6), flip=st.integers(1, 255))
@settings(max_examples=200, deadline=None)
def test_any_damaged_byte_is_noticed(position: int, flip: int) -> None:
    import pytest

    from fastcompress.errors import FormatError

    blob = bytearray(trained["cl100k"].to_bytes())
    blob[position % len(blob)] ^= flip
    with pytest.raises(FormatError):
        BPE.from_bytes(bytes(blob))
