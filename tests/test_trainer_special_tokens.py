"""Special tokens in training: texts are cut at them, their ids can be given, and names of files are no texts."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastcompress.bpe import BPE, PretokenCounts
from fastcompress.errors import ConfigError, DataError, FormatError, TextNotFileWarning

END = "<|end|>"
TEXT = f"to be{END}or not{END}{END}to be, that is the question{END}whether it is nobler in the mind to suffer{END}"
TIE_BREAKS: list[Any] = ["lowest_id", "huggingface"]


def cut(text: str, specials: Iterable[str]) -> list[str]:
    """The stretches between special tokens, the longest of several at one place: an oracle."""
    parts, begin, i = [], 0, 0
    while i < len(text):
        found = max((s for s in specials if text.startswith(s, i)), key=len, default="")
        if found:
            parts.append(text[begin:i])
            begin = i = i + len(found)
        else:
            i += 1
    return [*parts, text[begin:]]


# ---------------------------------------------------------------------- texts are cut


@pytest.mark.parametrize("tie_break", TIE_BREAKS)
@pytest.mark.parametrize("pattern", ["none", "cl100k", "whitespace", r"\w+|\W+"])
@pytest.mark.parametrize("kind", ["str", "bytes", "bytearray", "memoryview", "file", "counts"])
def test_the_text_of_special_tokens_is_not_learned(kind: str, pattern: str, tie_break: Any, tmp_path: Path) -> None:
    texts: list[Any] = [TEXT] * 30
    settings: dict[str, Any] = {"vocab_size": 265, "pattern": pattern, "tie_break": tie_break, "special_tokens": [END]}
    expected = BPE.train([part for text in texts for part in cut(text, [END])], **settings)
    data = TEXT.encode()
    path = tmp_path / "text"
    path.write_bytes(data)
    item = {"bytes": data, "bytearray": bytearray(data), "memoryview": memoryview(data), "file": path}.get(kind, TEXT)
    source: Any = [item] * 30
    if kind == "counts":
        if pattern.startswith("\\"):
            pytest.skip("counts have named patterns")
        source = BPE.count_pretokens(source, pattern=pattern, special_tokens=[END])
    tok = BPE.train(source, **settings)
    assert tok == expected
    assert END.encode() not in tok.ordinary_tokens()
    tok.to_huggingface(tmp_path / "tokenizer.json")
    assert BPE.from_huggingface(tmp_path / "tokenizer.json").encode(TEXT, allowed_special="all") == tok.encode(
        TEXT, allowed_special="all"
    )


def test_a_text_of_special_tokens_alone() -> None:
    with pytest.raises(DataError, match=r"only 257 tokens.*the texts of special tokens are not counted"):
        BPE.train([END] * 50, vocab_size=263, pattern="none", special_tokens=[END])
    assert len(BPE.count_pretokens([END] * 50, special_tokens=[END])) == 0


@given(
    texts=st.lists(st.text("ab <>\u00e9", max_size=30), max_size=5),
    specials=st.lists(st.text("ab <>\u00e9", min_size=1, max_size=4), max_size=4, unique=True),
)
def test_counts_are_those_of_the_stretches(texts: list[str], specials: list[str]) -> None:
    counts = BPE.count_pretokens(texts, special_tokens=specials)
    stretches = [part for text in texts for part in cut(text, specials)]
    assert counts == BPE.count_pretokens(stretches)
    assert counts == BPE.count_pretokens([text.encode() for text in texts], special_tokens=specials)
    assert counts.special_tokens == tuple(specials)
    assert pickle.loads(pickle.dumps(counts)).special_tokens == counts.special_tokens
    assert (counts + counts).special_tokens == counts.special_tokens


def test_a_special_token_with_white_space_across_the_parts_of_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "word " * 100 + "<|my token|> word" * 100
    path = tmp_path / "text"
    path.write_text(text)
    monkeypatch.setattr("fastcompress.bpe.counts._BATCH_BYTES", 16)
    specials = ["<|my token|>"]
    assert BPE.count_pretokens(path, special_tokens=specials, num_threads=1) == BPE.count_pretokens(cut(text, specials))
    specials = ["<|my"]  # cut wherever the file is
    assert BPE.count_pretokens(path, special_tokens=specials, num_threads=1) == BPE.count_pretokens(cut(text, specials))


def test_special_tokens_of_the_vocabulary_to_continue_from() -> None:
    base = BPE.train("", vocab_size=257, special_tokens=[END], pattern="none")
    tok = BPE.train([f"ab{END}ab"] * 9, vocab_size=258, continue_from=base)
    assert tok.token_bytes(257) == b"ab"
    with pytest.raises(DataError, match="support only 258"):
        BPE.train([f"ab{END}ab"] * 9, vocab_size=259, continue_from=base)


def test_counts_made_without_the_special_tokens() -> None:
    counts = BPE.count_pretokens([END] * 50, pattern="none")
    with pytest.raises(ConfigError, match=r"'<\|end\|>' was learned.*give special_tokens to count_pretokens"):
        BPE.train(counts, vocab_size=263, special_tokens=[END])
    assert BPE.train(counts, vocab_size=260, special_tokens=[END]).special_tokens == {END: 259}


# ---------------------------------------------------------------------- given ids


def test_given_ids_that_would_be_assigned() -> None:
    for tie_break, first in (("lowest_id", 298), ("huggingface", 0)):
        settings: dict[str, Any] = {"vocab_size": 300, "tie_break": tie_break}
        listed = BPE.train(TEXT * 9, special_tokens=["<a>", END], **settings)
        assert BPE.train(TEXT * 9, special_tokens={END: first + 1, "<a>": first}, **settings) == listed


@pytest.mark.parametrize("pattern", ["cl100k", r"\w+|\W+"])
def test_given_ids_beyond_those_that_are_learned(pattern: str, tmp_path: Path) -> None:
    listed = BPE.train(TEXT * 9, vocab_size=285, special_tokens=["<a>", END], pattern=pattern)
    tok = BPE.train(TEXT * 9, vocab_size=285, special_tokens={END: 5000, "<a>": 283}, pattern=pattern)
    assert tok.special_tokens == {END: 5000, "<a>": 283}
    assert tok.vocab_size == 5001
    assert tok.encode_ordinary(TEXT) == listed.encode_ordinary(TEXT)
    assert tok.decode(tok.encode(TEXT, allowed_special="all")) == TEXT
    tok.save(tmp_path / "x.bpe")
    assert BPE.load(tmp_path / "x.bpe") == tok
    with pytest.raises(KeyError):
        tok.token_bytes(284)
    base = BPE.train(TEXT * 9, vocab_size=280, pattern=pattern)
    more = BPE.train(TEXT * 9, vocab_size=285, special_tokens={END: 400}, continue_from=base)
    assert more.special_tokens == {END: 400}


@pytest.mark.parametrize(
    ("special_tokens", "tie_break", "error", "message"),
    [
        ({END: 97}, "lowest_id", ConfigError, "id 97 .* is one of the 299 ids of other tokens; give ids from 299 on"),
        ({END: 300, "<a>": 300}, "lowest_id", ConfigError, "have the same id 300"),
        ({END: 300}, "huggingface", ConfigError, "must be 0 to 0"),
        ({END: -1}, "lowest_id", ConfigError, "-1; it must be 0 to 2097151"),
        ({END: 1 << 21}, "lowest_id", ConfigError, "2097152; it must be 0 to 2097151"),
        ({END: 1.5}, "lowest_id", TypeError, "must be an integer"),
        ({END: True}, "lowest_id", TypeError, "must be an integer"),
        ({"": 300}, "lowest_id", ConfigError, "distinct and not empty"),
        ({b"x": 300}, "lowest_id", TypeError, "collection of str"),
        ([END, END], "lowest_id", ConfigError, "distinct and not empty"),
        ([""], "lowest_id", ConfigError, "distinct and not empty"),
        (["\ud800"], "lowest_id", ConfigError, "must not hold surrogates"),
        ({"\ud800": 300}, "lowest_id", ConfigError, "must not hold surrogates"),
        (END, "lowest_id", TypeError, "collection of str, not one text"),
        (5, "lowest_id", TypeError, "collection of str, not 5"),
        ([5], "lowest_id", TypeError, "item 0 is 5"),
    ],
)
def test_bad_special_tokens(special_tokens: Any, tie_break: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        BPE.train(TEXT * 9, vocab_size=300, special_tokens=special_tokens, tie_break=tie_break)


def test_special_tokens_from_an_iterator() -> None:
    expected = BPE.train(TEXT * 9, vocab_size=300, special_tokens=["<a>", END])
    assert BPE.train(TEXT * 9, vocab_size=300, special_tokens=iter(["<a>", END])) == expected
    assert BPE.train(TEXT * 9, vocab_size=300, special_tokens=(s for s in ("<a>", END))) == expected


# ---------------------------------------------------------------------- names of files, wrong sources


def test_the_name_of_a_file_is_not_its_text(tmp_path: Path) -> None:
    path = tmp_path / "small.txt"
    path.write_text("text to learn from")
    for source in (str(path), [str(path), "more"], (name for name in [str(path)])):
        with pytest.warns(TextNotFileWarning, match=r"small\.txt' is the name of a file.*pathlib\.Path") as caught:
            BPE.train(source, vocab_size=256)
        assert caught[0].filename == __file__
        with pytest.warns(TextNotFileWarning):
            BPE.count_pretokens(str(path))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        BPE.train([path, "no such file", "a\0b", "\ud800"], vocab_size=256)
        BPE.train(b"small.txt", vocab_size=256)


@pytest.mark.parametrize("source", [5, None, 1.5, [5], [None], [["text"]]])
def test_sources_that_are_no_texts(source: Any) -> None:
    with pytest.raises(TypeError, match=r"pathlib\.Path"):
        BPE.train(source, vocab_size=256)
    with pytest.raises(TypeError, match=r"pathlib\.Path"):
        BPE.count_pretokens(source)


# ---------------------------------------------------------------------- counts that overflow


def test_counts_that_overflow() -> None:
    counts = BPE.count_pretokens("ab", pattern="none")
    for _ in range(62):
        counts.merge(counts)
    before = counts.to_bytes()
    assert dict(counts.items()) == {b"ab": 1 << 62}
    assert PretokenCounts.from_bytes(before) == counts
    other = PretokenCounts.from_bytes(before)
    for addend in (counts, other):
        with pytest.raises(DataError, match="the counts overflow; together they must stay below 2\\^63") as caught:
            counts.merge(addend)
        assert not isinstance(caught.value, FormatError)
        assert counts.to_bytes() == before
    with pytest.raises(DataError, match="overflow"):
        counts + other
    counts.add("ab")
    assert dict(counts.items()) == {b"ab": (1 << 62) + 1}
