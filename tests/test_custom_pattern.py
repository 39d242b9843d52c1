"""Patterns without a name, run by the `regex` package: the pretokens of tiktoken's engine and of `tokenizers`'."""

from __future__ import annotations

import base64
import random
import sys
from pathlib import Path
from typing import Any

import pytest
import tiktoken
from tokenizers import Regex
from tokenizers.pre_tokenizers import Split

from fastcompress import BPE
from fastcompress.bpe.custom_pattern import CustomPattern, named_pattern, resolve_pattern
from fastcompress.bpe.regex import fancy_regex_to_onig
from fastcompress.bpe.regex import matcher as regex_matcher
from fastcompress.compat.tiktoken import Encoding
from fastcompress.errors import ConfigError, DataError, FormatError
from fastcompress.pretokenizer import PATTERNS, SPLITS, split

BYTES = {bytes([byte]): byte for byte in range(256)}
PIECES = [
    *"aB1 9_'!é日한\n\r\t\u0301\u0085\u001c\u3000😀ſ",
    "  ",
    "\r\n",
    "'s",
    "'LL",
    "the",
    "\U0003d000",
    "\U000323b0",
]


def random_texts(count: int, seed: int) -> list[str]:
    draw = random.Random(seed)
    return ["".join(draw.choice(PIECES) for _ in range(draw.randrange(16))) for _ in range(count)]


def rank_file(path: Path, tokens: list[bytes]) -> Path:
    ranks = [*BYTES, *tokens]
    path.write_bytes(b"".join(base64.b64encode(token) + b" %d\n" % rank for rank, token in enumerate(ranks)))
    return path


@pytest.mark.parametrize(
    "regex",
    [
        r"\p{L}+|\p{N}|[^\p{L}\p{N}]+",
        r"\w+|\s+$|[^\w\s]+",  # white space within the text is dropped
        r"(?i:'s|the)|.|\n",
        r"\s++$|\s+(?!\S)|\S{1,3}+|\s",
        r"(?<=a)B|[a-zé]+|\d",
        r"^a|\bthe\b|(\p{Ll}+)(?=1)|[\u3000\x{e9}-\x{ff}]",
    ],
)
def test_ids_equal_tiktokens(regex: str, tmp_path: Path) -> None:
    tokens = [b"th", b"the", "é".encode(), b"  ", b"'s"]
    path = rank_file(tmp_path / "x.tiktoken", tokens)
    tok = BPE.from_tiktoken(path, pattern=regex, special_tokens={"<|end|>": 300})
    ranks = BYTES | {token: 256 + i for i, token in enumerate(tokens)}
    reference = tiktoken.Encoding("x", pat_str=regex, mergeable_ranks=ranks, special_tokens={"<|end|>": 300})
    texts = [*random_texts(400, 1), "a<|end|>the"]
    for text in texts:
        assert tok.encode(text, allowed_special="all") == reference.encode(text, allowed_special="all"), text
    assert tok.encode_batch(texts, allowed_special="all") == reference.encode_batch(texts, allowed_special="all")
    assert (tok.pattern, tok.lossless) == (regex, False)
    loaded = BPE.from_bytes(tok.to_bytes())
    assert loaded == tok
    assert loaded.encode("the a's") == tok.encode("the a's")
    assert tok.encode_with_dropout("the a's", 0.0, seed=1) == tok.encode("the a's")


@pytest.mark.parametrize("invert", [False, True])
@pytest.mark.parametrize("behavior", ["Isolated", "Removed", "Merged With Previous", "Merged With Next", "Contiguous"])
@pytest.mark.parametrize("regex", [r"\s+", r"\p{L}", r"a*", r"\p{N}{1,2}+", r"$|1", r"[^\s]\s?"])
def test_splits_equal_tokenizers(regex: str, behavior: str, invert: bool) -> None:
    reference = Split(Regex(regex), behavior.lower().replace(" ", "_"), invert)
    steps = [{"type": "Split", "pattern": {"Regex": regex}, "behavior": behavior.replace(" ", ""), "invert": invert}]
    ours = CustomPattern(steps)
    for text in filter(None, random_texts(200, 2)):
        data, ends = ours.pretokens(text.encode())
        pieces = [data[begin:end].decode() for begin, end in zip([0, *ends.tolist()], ends.tolist(), strict=False)]
        assert pieces == [piece for piece, _ in reference.pre_tokenize_str(text)], text
        assert not ours.lossless or data == text.encode()


def test_invalid_utf8_is_kept() -> None:
    data, ends = CustomPattern.from_regex(r"\p{L}+|[^\p{L}]").pretokens(b"ab\xff\xc3cd\xf5")
    assert data == b"ab\xff\xc3cd\xf5"
    assert ends.tolist() == [2, 3, 4, 6, 7]


def test_characters_newer_than_our_unicode_have_no_class() -> None:
    """U+323B0 is a letter since Unicode 17; Python's `regex` knows it, the engines we equal do not."""
    data, ends = CustomPattern.from_regex(r"\p{L}+|\P{L}").pretokens("a\U000323b0b\U000323b1".encode())
    assert data.decode() == "a\U000323b0b\U000323b1"
    assert ends.tolist() == [1, 5, 6, 10]


# ---------------------------------------------------------------------- names


@pytest.mark.parametrize("name", [name for name in PATTERNS if name != "none"])
def test_literals_of_named_patterns(name: str) -> None:
    regex = PATTERNS[name]
    assert resolve_pattern(regex) == resolve_pattern(f"({regex})") == resolve_pattern(f"(?:{regex})") == name
    assert named_pattern([fancy_regex_to_onig(regex)]) == name
    assert named_pattern(SPLITS.get(name, [regex])) == name
    assert named_pattern([regex, regex]) is None
    assert named_pattern([regex + "|x"]) is None
    assert resolve_pattern(name) == name


def test_literals_of_gpt2() -> None:
    assert resolve_pattern(r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+") == "gpt2"
    assert named_pattern([r"'s|'t| ?\p{L}| ?\p{N}+"]) is None


def test_a_pattern_of_a_name_runs_as_the_scanner_does() -> None:
    for name in ("gpt2", "cl100k", "o200k", "llama3", "deepseek-v3", "whitespace", "words"):
        custom = CustomPattern.from_regex(PATTERNS[name])
        for text in random_texts(200, 3):
            data, ends = custom.pretokens(text.encode())
            assert [data[b:e] for b, e in zip([0, *ends.tolist()], ends.tolist(), strict=False)] == split(text, name)


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("gpt9", "gpt9.*cl100k"),
        ("(a", "regular expression"),
        ("[a", "without the closing bracket"),
        ("a\\", "backslash"),
        ("a)", "regular expression"),
        ("[[:nothing:]]", "does not begin a POSIX class"),
        ("*", "nothing to repeat"),
        ("", "pattern is empty.*'none'"),
        ("cl100k-base", "did you mean 'cl100k'"),
    ],
)
def test_bad_patterns(pattern: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=message):
        BPE.from_tiktoken(rank_file(tmp_path / "x.tiktoken", []), pattern=pattern)


def test_without_the_regex_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "regex", None)
    path = rank_file(tmp_path / "x.tiktoken", [])
    assert BPE.from_tiktoken(path, pattern=PATTERNS["o200k"]).pattern == "o200k"
    with pytest.raises(ConfigError, match="pip install regex"):
        BPE.from_tiktoken(path, pattern=r"\p{L}+|.")


def test_dialects() -> None:
    assert fancy_regex_to_onig(r"\p{N}{1,3}+|^[+^$]$") == r"(?>\p{N}{1,3})|\A[+^$]\z"
    assert fancy_regex_to_onig(r"(?:ab){2}+\w(?s:.)") == (
        r"(?>(?:ab){2})[\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\x{200c}\x{200d}][\x{0}-\x{10ffff}]"
    )
    assert fancy_regex_to_onig(r"[\p{L}--\p{Lu}]") == r"[[[\p{L}]]&&[^[\p{Lu}]]]"


# ---------------------------------------------------------------------- names and regexes share an argument


@pytest.mark.parametrize("regex", [".", "a-b", "the", "foo", "[{]+", '[{"]+'])
def test_a_regex_that_looks_like_a_name(regex: str, tmp_path: Path) -> None:
    reference = tiktoken.Encoding("x", pat_str=regex, mergeable_ranks=BYTES, special_tokens={})
    tok = BPE.from_tiktoken(rank_file(tmp_path / "x.tiktoken", []), pattern=regex)
    for text in ("xa-b the.foo", '{{"[', "a\nb"):
        assert tok.encode(text) == reference.encode(text)


def test_pat_str_is_always_a_regex() -> None:
    """tiktoken knows no names of patterns: ``gpt2`` there is four characters."""
    reference = tiktoken.Encoding("x", pat_str="gpt2", mergeable_ranks=BYTES, special_tokens={})
    ours = Encoding("x", pat_str="gpt2", mergeable_ranks=BYTES, special_tokens={})
    assert ours.encode("a gpt2!") == reference.encode("a gpt2!") == list(b"gpt2")
    assert ours._pat_str == "gpt2"


def test_a_pattern_that_takes_exponential_time_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(regex_matcher, "_SECONDS_PER_TEXT", 0.2)
    with pytest.raises(DataError, match="a text of 61 characters"):
        CustomPattern.from_regex(r"(?:a|b|ab)*?(?:a|b|ab)*c|(?=(?:\w|\w\w)*!)x").pretokens(b"x" + b"ab" * 30)


def test_a_split_that_is_refused_is_a_format_error() -> None:
    for regex in (r"\G", r"\X", "(?x)a", r"(a)\1", "(?~a)", r"(?i)[ß]", "(", r"[a\R]"):
        with pytest.raises(FormatError, match="Split: the pattern"):
            CustomPattern([{"type": "Split", "pattern": {"Regex": regex}, "behavior": "Isolated", "invert": False}])


@pytest.mark.parametrize("text", [5, None, [1], 1.5])
def test_split_takes_texts_only(text: Any) -> None:
    with pytest.raises(TypeError, match="must be str or bytes"):
        split(text)
