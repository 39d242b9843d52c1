"""Where tokens lie in a text: against a plain computation, and tiktoken's where it has one. And counting."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastcompress import BPE
from fastcompress.errors import DataError
from fastcompress.pretokenizer import utf8

TEXT = "the naïve cats sat 😀😀 on 中文 mats; caf\u00e9s e\u0301.\n" * 4


@pytest.fixture(scope="module")
def tok() -> BPE:
    return BPE.train([TEXT], vocab_size=290, pattern="cl100k", special_tokens=["<|é|>"])


def plainly(lengths: list[int], characters: list[bytes]) -> tuple[list[list[int]], list[list[int]]]:
    """Byte and character spans of tokens, from the list of the character that each byte belongs to."""
    owner = [number for number, character in enumerate(characters) for _ in character]
    byte_spans, char_spans, begin = [], [], 0
    for length in lengths:
        end = begin + length
        byte_spans.append([begin, end])
        char_spans.append([owner[begin], owner[end - 1] + 1])
        begin = end
    return byte_spans, char_spans


@given(
    text=st.one_of(st.text(max_size=40), st.text(alphabet="the é中😀\u0301<|>", max_size=40), st.binary(max_size=30))
)
@settings(max_examples=500, deadline=None)
def test_spans_of_any_text(text: str | bytes, tok: BPE) -> None:
    found = tok.encode_with_offsets(text, disallowed_special=())
    assert found.tokens.tolist() == tok.encode(text, disallowed_special=())
    assert len(found) == len(found.tokens)
    characters = utf8(text).decode("utf-8", "surrogateescape")
    byte_spans, char_spans = plainly(
        [len(tok.token_bytes(i)) for i in found.tokens.tolist()],
        [c.encode("utf-8", "surrogateescape") for c in characters],
    )
    assert found.byte_spans.tolist() == byte_spans
    assert found.char_spans.tolist() == char_spans
    assert found.byte_spans.dtype == found.char_spans.dtype == np.int64
    assert found.byte_spans.shape == found.char_spans.shape == (len(found), 2)


def test_a_token_that_holds_part_of_a_character_spans_all_of_it() -> None:
    tok = BPE.train(["x"], vocab_size=256)
    found = tok.encode_with_offsets("a😀b")
    assert found.byte_spans.tolist() == [[0, 1], [1, 2], [2, 3], [3, 4], [4, 5], [5, 6]]
    assert found.char_spans.tolist() == [[0, 1], [1, 2], [1, 2], [1, 2], [1, 2], [2, 3]]


def test_special_tokens_have_spans_too(tok: BPE) -> None:
    found = tok.encode_with_offsets("é<|é|>x", allowed_special="all")
    special = tok.special_tokens["<|é|>"]
    at = found.tokens.tolist().index(special)
    assert found.byte_spans[at].tolist() == [2, 8]
    assert found.char_spans[at].tolist() == [1, 6]
    with pytest.raises(DataError, match="special token"):
        tok.encode_with_offsets("é<|é|>x")


def test_surrogates_count_as_what_the_tokenizer_reads(tok: BPE) -> None:
    found = tok.encode_with_offsets("\ud83d\ude00\ud83dx")  # a pair, which is one character, and half of one
    assert found.char_spans[-1].tolist() == [2, 3]
    assert found.byte_spans[-1].tolist() == [7, 8]


def test_no_text_no_tokens(tok: BPE) -> None:
    found = tok.encode_with_offsets("")
    assert len(found) == 0
    assert found.byte_spans.shape == found.char_spans.shape == (0, 2)


def test_begins_are_tiktokens(tok: BPE) -> None:
    """tiktoken's decode_with_offsets gives the character in which each token begins."""
    import tiktoken

    ranks = {bytes([b]): b for b in range(256)} | {tok.token_bytes(i): i for i in range(256, 289)}
    reference = tiktoken.Encoding("x", pat_str=r"[\s\S]+", mergeable_ranks=ranks, special_tokens={})
    found = tok.encode_with_offsets(TEXT)
    text, begins = reference.decode_with_offsets(found.tokens.tolist())
    assert text == TEXT
    assert found.char_spans[:, 0].tolist() == begins


def test_counts(tok: BPE) -> None:
    texts = [TEXT, "", "x<|é|>", b"\xff"]
    for special in ({"disallowed_special": ()}, {"allowed_special": "all"}):
        counts = tok.count_batch(texts, **special)  # type: ignore[arg-type]
        assert counts.dtype == np.int64
        assert counts.tolist() == [tok.count(text, **special) for text in texts]  # type: ignore[arg-type]
        assert counts.tolist() == [len(tok.encode(text, **special)) for text in texts]  # type: ignore[arg-type]
    with pytest.raises(DataError, match="special token"):
        tok.count("<|é|>")
