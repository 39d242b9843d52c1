"""fastcompress.compat.tiktoken beside tiktoken on arbitrary texts and ids."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiktoken
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fastcompress.compat import tiktoken as compat

SPECIALS = ["<|endoftext|>", "<|endofprompt|>", "<|fim_prefix|>"]
# Any code point, surrogates too, and the pieces that rules of pretokenizers and special tokens are made of.
pieces = st.one_of(
    st.text(max_size=6),
    st.text(alphabet=st.characters(), max_size=4),
    st.sampled_from(
        [*SPECIALS, "<|", "|>", " ", "  ", "\n", "\r\n", "'s", "'RE", "the", "123", "é", "\ud83d", "\ude00"]
    ),
)
texts = st.lists(pieces, max_size=12).map("".join)
valid_texts = texts.map(lambda text: text.encode("utf-8", "replace").decode("utf-8"))
allowed = st.one_of(st.just("all"), st.sets(st.sampled_from(SPECIALS)))
disallowed = st.one_of(st.just("all"), st.sets(st.sampled_from(SPECIALS)), st.just(()))

pairs = pytest.mark.parametrize("name", ["r50k_base", "cl100k_base", "o200k_base"])
relaxed = settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])


def both(name: str) -> tuple[compat.Encoding, tiktoken.Encoding]:
    return compat.get_encoding(name), tiktoken.get_encoding(name)


def outcome(call: Any, *arguments: Any, **options: Any) -> Any:
    try:
        value = call(*arguments, **options)
    except (ValueError, KeyError) as error:
        return ValueError if isinstance(error, ValueError) and not isinstance(error, UnicodeError) else type(error)
    return value.tolist() if isinstance(value, np.ndarray) else value


@pairs
@relaxed
@given(text=texts, allowed=allowed, disallowed=disallowed)
def test_encode(name: str, text: str, allowed: Any, disallowed: Any, tiktoken_cache: Path) -> None:
    ours, theirs = both(name)
    options = {"allowed_special": allowed, "disallowed_special": disallowed}
    expected = outcome(theirs.encode, text, **options)
    assert outcome(ours.encode, text, **options) == expected
    assert outcome(ours.encode_to_numpy, text, **options) == expected
    assert outcome(ours.encode_batch, [text], **options) == (ValueError if expected is ValueError else [expected])
    assert ours.encode_ordinary(text) == theirs.encode_ordinary(text)
    if expected is not ValueError:
        assert ours.decode(expected) == theirs.decode(expected)


@pairs
@relaxed
@given(batch=st.lists(texts, max_size=6), threads=st.integers(1, 4))
def test_batches(name: str, batch: list[str], threads: int, tiktoken_cache: Path) -> None:
    ours, theirs = both(name)
    ids = theirs.encode_ordinary_batch(batch, num_threads=1)
    assert ours.encode_ordinary_batch(batch, num_threads=threads) == ids
    assert ours.encode_batch(batch, num_threads=threads, disallowed_special=()) == ids
    assert ours.decode_batch(ids, num_threads=threads) == theirs.decode_batch(ids, num_threads=1)
    assert ours.decode_bytes_batch(ids, num_threads=threads) == theirs.decode_bytes_batch(ids, num_threads=1)


@pairs
@relaxed
@given(ids=st.lists(st.one_of(st.integers(0, 300), st.integers(0, 50256)), max_size=30))
def test_decode(name: str, ids: list[int], tiktoken_cache: Path) -> None:
    ours, theirs = both(name)
    assert ours.decode_bytes(ids) == theirs.decode_bytes(ids)
    assert ours.decode_tokens_bytes(ids) == theirs.decode_tokens_bytes(ids)
    for errors in ("replace", "ignore", "backslashreplace"):
        assert ours.decode(ids, errors) == theirs.decode(ids, errors)
        assert ours.decode_batch([ids], errors=errors) == theirs.decode_batch([ids], errors=errors, num_threads=1)
    assert outcome(ours.decode, ids, "strict") == outcome(theirs.decode, ids, "strict")
    assert outcome(ours.decode_with_offsets, ids) == outcome(theirs.decode_with_offsets, ids)


@pairs
@relaxed
@given(text=valid_texts)
def test_offsets(name: str, text: str, tiktoken_cache: Path) -> None:
    ours, theirs = both(name)
    ids = theirs.encode_ordinary(text)
    assert ours.decode_with_offsets(ids) == theirs.decode_with_offsets(ids)


@pairs
@settings(relaxed, max_examples=25)
@given(text=valid_texts.filter(lambda text: not text.endswith(" ")))  # a space has 100,000 completions
def test_unstable(name: str, text: str, tiktoken_cache: Path) -> None:
    ours, theirs = both(name)
    stable, completions = ours.encode_with_unstable(text, allowed_special="all")
    expected_stable, expected = theirs.encode_with_unstable(text, allowed_special="all")
    assert stable == expected_stable
    assert len(completions) == len(expected)
    assert set(map(tuple, completions)) == set(map(tuple, expected))


@pairs
@relaxed
@given(token=st.one_of(st.binary(max_size=3), st.text(max_size=3), st.sampled_from([*SPECIALS, " the", b" the"])))
def test_single_tokens(name: str, token: str | bytes, tiktoken_cache: Path) -> None:
    ours, theirs = both(name)
    expected = outcome(theirs.encode_single_token, token)
    result = outcome(ours.encode_single_token, token)
    if expected is KeyError:
        assert result is ValueError  # UnknownTokenError is both
    else:
        assert result == expected
        if not isinstance(expected, type):
            assert ours.decode_single_token_bytes(expected) == theirs.decode_single_token_bytes(expected)
