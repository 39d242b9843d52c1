"""Training with a pattern that has no name: against the oracle, and beside a named pattern with the same pretokens."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastcompress import BPE
from fastcompress.errors import ConfigError, DataError
from fastcompress.pretokenizer import PATTERNS
from tests.reference import bpe as oracle
from tests.test_trainer import TEXT

REGEXES = [r"\p{L}+|\p{N}|[^\p{L}\p{N}]+", r"\w+|[^\w\s]+", "a+b?|[^a]", r"(?i:'s|the)|.|\n", r"[\s\S]{1,3}"]
# The regex of "whitespace" in words that are not known to be it.
LIKE_WHITESPACE = r"(?: )?\S+|\s+(?!\S)|\s+"

texts_of_few = st.lists(st.text(alphabet="aab \n1'sé", max_size=60), min_size=1, max_size=6)
tie_breaks = st.sampled_from(["lowest_id", "huggingface"])


@pytest.mark.slow
@given(
    texts=texts_of_few,
    more=texts_of_few,
    regex=st.sampled_from(REGEXES),
    num_merges=st.integers(0, 40),
    then=st.integers(0, 12),
    cap=st.sampled_from([None, 1]),
)
@settings(max_examples=200, deadline=None)
def test_lowest_id_equals_the_oracle(
    texts: list[str], more: list[str], regex: str, num_merges: int, then: int, cap: int | None
) -> None:
    expected = oracle.train(texts, regex, num_merges)
    tok = BPE.train(texts, vocab_size=256 + len(expected), pattern=regex, max_memory_bytes=cap)
    assert [tuple(merge) for merge in tok.merges.tolist()] == expected
    assert tok.pattern == regex
    assert [tok.encode(text) for text in more] == [oracle.encode(text, regex, expected) for text in more]
    new = oracle.train(more, regex, then, base=expected, first_id=tok.vocab_size)
    longer = BPE.train(more, vocab_size=tok.vocab_size + len(new), continue_from=tok)
    assert [tuple(merge) for merge in longer.merges.tolist()] == expected + new
    assert longer.pattern == regex


@given(texts=texts_of_few, num_tokens=st.integers(0, 30), tie_break=tie_breaks, num_specials=st.integers(0, 2))
@settings(max_examples=100, deadline=None)
def test_names_and_regexes_learn_the_same(texts: list[str], num_tokens: int, tie_break: Any, num_specials: int) -> None:
    arguments: dict[str, Any] = {
        "vocab_size": 256 + num_specials + num_tokens,
        "special_tokens": ["<|pad|>", "<|end|>"][:num_specials],
        "tie_break": tie_break,
        "max_token_length": 5,
    }
    named = BPE.train(texts, pattern="whitespace", **arguments)
    custom = BPE.train(texts, pattern=LIKE_WHITESPACE, **arguments)
    assert custom.merges.tolist() == named.merges.tolist()
    assert custom.special_tokens == named.special_tokens
    assert [custom.token_bytes(i) for i in range(custom.vocab_size)] == [
        named.token_bytes(i) for i in range(named.vocab_size)
    ]


def test_a_known_regex_and_an_alias_are_a_name() -> None:
    assert BPE.train(TEXT, vocab_size=300, pattern="r50k") == BPE.train(TEXT, vocab_size=300, pattern="gpt2")
    assert BPE.train(TEXT, vocab_size=300, pattern=PATTERNS["cl100k"]) == BPE.train(TEXT, vocab_size=300)


def test_files_and_copies(tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_bytes(TEXT.encode())
    tok = BPE.train([path, b"caf\xe9", "\ud800"], vocab_size=290, pattern=LIKE_WHITESPACE, special_tokens=["<|end|>"])
    assert tok == BPE.train(
        [TEXT, b"caf\xe9", "\ufffd"], vocab_size=290, pattern=tok.pattern, special_tokens=["<|end|>"]
    )
    assert pickle.loads(pickle.dumps(tok)) == tok
    tok.save(tmp_path / "tok.bpe")
    assert BPE.load(tmp_path / "tok.bpe") == tok
    assert tok.decode(tok.encode(TEXT)) == TEXT
    from_ranks = BPE.from_ranks(tok.ordinary_tokens(), pattern=LIKE_WHITESPACE)
    assert BPE.train(TEXT, vocab_size=300, continue_from=from_ranks).pattern == LIKE_WHITESPACE


def test_errors() -> None:
    with pytest.raises(ConfigError, match="not a regular expression"):
        BPE.train(TEXT, vocab_size=300, pattern="(")
    with pytest.raises(ConfigError, match="the patterns differ"):
        BPE.train(BPE.count_pretokens(TEXT), vocab_size=300, pattern=LIKE_WHITESPACE)
    with pytest.raises(TypeError, match="not int"):
        BPE.train([5], vocab_size=300, pattern=LIKE_WHITESPACE)  # type: ignore[list-item]
    with pytest.raises(DataError, match="lower vocab_size"):
        BPE.train("abc", vocab_size=300, pattern=LIKE_WHITESPACE)
    with pytest.raises(ConfigError, match="unknown pattern"):  # counts that are kept have a name
        BPE.count_pretokens(TEXT, pattern=LIKE_WHITESPACE)
