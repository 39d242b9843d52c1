"""The scanners against the regular expressions they stand for, and their Unicode tables against tiktoken's engine."""

from __future__ import annotations

import random

import numpy as np
import pytest
import regex
import tiktoken

from fastcompress import pretokenizer
from fastcompress.errors import ConfigError
from tests.reference import bpe as oracle

REGEX_PATTERNS = [name for name, pattern in pretokenizer.PATTERNS.items() if pattern]
CODE_POINTS = [chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000]
CLASSES = [r"[\p{Lu}\p{Lt}]", r"\p{Ll}", r"[\p{Lm}\p{Lo}]", r"\p{M}", r"\p{N}", r"\s"]
CONTRACTION_LETTERS = "sdmtlvreSDMTLVRE\u017f"


def matches_in_tiktoken(char_class: str, text: str) -> set[str]:
    """The characters of a text that Rust's regex engine puts in a class: tiktoken drops what does not match."""
    encoding = tiktoken.Encoding(
        "probe", pat_str=char_class, mergeable_ranks={bytes([b]): b for b in range(256)}, special_tokens={}
    )
    return set(encoding.decode(encoding.encode_ordinary(text)))


@pytest.fixture(scope="module")
def agreed() -> list[str]:
    """The code points that Python's `regex`, whose Unicode is newer, puts in the same classes as our Unicode does."""
    everything = "".join(CODE_POINTS)
    differing: set[str] = set()
    for char_class in CLASSES:
        differing |= matches_in_tiktoken(char_class, everything) ^ set(regex.findall(char_class, everything))
    assert len(differing) < 20_000
    return [c for c in CODE_POINTS if c not in differing]


def assert_same_split(text: str, pattern: str) -> None:
    expected, got = oracle.split(text, pattern), pretokenizer.split(text, pattern)
    if expected != got:  # pytest's own diff of long lists would take minutes
        at = next(i for i, (a, b) in enumerate(zip(expected, got, strict=False)) if a != b)
        pytest.fail(f"{pattern}: pretoken {at}: expected {expected[at - 1 : at + 2]}, got {got[at - 1 : at + 2]}")


def test_patterns_are_the_ones_tiktoken_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    from tiktoken_ext import openai_public

    monkeypatch.setattr(openai_public, "load_tiktoken_bpe", lambda *_, **__: {})  # no download
    assert pretokenizer.PATTERNS["gpt2"] == openai_public.r50k_base()["pat_str"]
    assert pretokenizer.PATTERNS["cl100k"] == openai_public.cl100k_base()["pat_str"]
    assert pretokenizer.PATTERNS["o200k"] == openai_public.o200k_base()["pat_str"]


@pytest.mark.parametrize("context", ["{0}", "a{0} ", "A{0}{0}\n", "1{0}1'{0}", "!{0}B's{0}S"])
def test_every_code_point_in_context(context: str, agreed: list[str]) -> None:
    text = "".join(context.format(c) for c in agreed)
    for pattern in REGEX_PATTERNS:
        assert_same_split(text, pattern)


def test_classes_of_every_code_point_are_those_of_tiktokens_engine() -> None:
    """Each class alone decides where some pattern cuts "<c>x": so the tables can be read off our scanners."""
    everything = "".join(CODE_POINTS)
    letters = matches_in_tiktoken(r"\p{L}", everything)
    numbers = matches_in_tiktoken(r"\p{N}", everything)
    spaces = matches_in_tiktoken(r"\s", everything)
    lower_set = matches_in_tiktoken(r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]", everything)
    upper_set = matches_in_tiktoken(r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", everything)

    def joins(template: str, pattern: str, cut: bytes) -> set[str]:
        """The code points that share a pretoken with the character before them, in texts ended by `cut`."""
        text = "".join(template.format(c) + cut.decode() for c in CODE_POINTS)
        ends = set(pretokenizer.split_ends(text, pattern).tolist())
        joined, at = set(), 0
        for c in CODE_POINTS:
            before = at + len(template.split("{0}")[0].encode())
            if before not in ends:
                joined.add(c)
            at += len(template.format(c).encode()) + len(cut)
        return joined

    assert joins("a{0}", "gpt2", b"\x00") == letters
    assert joins("1{0}", "gpt2", b"\x00") == numbers
    assert set(CODE_POINTS) - joins("-{0}", "whitespace", b"\x00") == spaces
    assert joins("a{0}", "o200k", b"\x00") == lower_set
    assert joins("A{0}", "o200k", b"\x00") >= upper_set


def random_strings(alphabet: list[str], count: int, seed: int) -> list[str]:
    """Short strings in which runs, contractions and white space are common."""
    draw = random.Random(seed)
    common = [
        "a",
        "B",
        " ",
        " ",
        "\n",
        "\r",
        "\t",
        "1",
        "'",
        "!",
        "/",
        "\u0301",
        "\u00aa",
        "\u01c5",
        "é",
        "中",
        "\u0085",
        "\u001c",
    ]
    strings = []
    for _ in range(count):
        pieces = []
        for _ in range(draw.randrange(1, 12)):
            kind = draw.random()
            if kind < 0.7:
                pieces.append(draw.choice(common) * draw.choice([1, 1, 1, 2, 3]))
            elif kind < 0.85:
                pieces.append("'" + draw.choice(CONTRACTION_LETTERS) + draw.choice(["", *CONTRACTION_LETTERS]))
            else:
                pieces.append(draw.choice(alphabet))
        strings.append("".join(pieces))
    return strings


@pytest.mark.parametrize("pattern", REGEX_PATTERNS)
def test_random_strings(pattern: str, agreed: list[str]) -> None:
    for text in random_strings(agreed, 50_000, seed=REGEX_PATTERNS.index(pattern)):
        assert_same_split(text, pattern)


def test_none_is_the_whole_text() -> None:
    assert pretokenizer.split("a b\n", "none") == [b"a b\n"]
    assert pretokenizer.split("", "none") == []


@pytest.mark.parametrize("pattern", pretokenizer.PATTERNS)
def test_invalid_utf8_is_kept(pattern: str) -> None:
    draw = random.Random(7)
    units = [b"a", b" ", b"1", b"\n", "é".encode(), "中".encode(), "😀".encode(), "\u0301".encode()]
    stray = [
        b"\xff",
        b"\xf5\x80\x80\x80",
        b"\xed\xa0\x80",
        b"\xc3",
        b"\xe4\xb8",
        b"\x80",
        b"\xc0\xaf",
        b"\xf4\x90\x80\x80",
    ]
    for _ in range(2_000):
        data = b"".join(draw.choice(units + stray) for _ in range(draw.randrange(12)))
        pieces = pretokenizer.split(data, pattern)
        assert b"".join(pieces) == data
        # The rule in three lines: each stray byte becomes a character of no class (a lone surrogate), and back.
        text = data.decode("utf-8", "surrogateescape")
        assert pieces == [piece.encode("utf-8", "surrogateescape") for piece in oracle.split_text(text, pattern)]


def test_surrogates_in_a_str() -> None:
    assert pretokenizer.split("a\ud83d\ude00 \udbc0", "gpt2") == [b"a", "😀".encode(), " \ufffd".encode()]


def test_an_invalid_byte_is_a_symbol() -> None:
    assert pretokenizer.split(b"ab\xffcd", "gpt2") == [b"ab", b"\xff", b"cd"]
    assert pretokenizer.split(b"a \xc3", "gpt2") == [b"a", b" \xc3"]  # truncated at the end of the buffer


def test_split_ends_are_uint64_and_accept_buffers() -> None:
    ends = pretokenizer.split_ends(memoryview(b"one two"), "gpt2")
    assert ends.dtype == np.uint64
    assert ends.tolist() == [3, 7]


def test_unknown_pattern_names_the_known_ones() -> None:
    with pytest.raises(ConfigError, match=r"'gpt5'.*cl100k"):
        pretokenizer.split("x", "gpt5")
