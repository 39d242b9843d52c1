"""The scanners against the regular expressions they stand for, and their Unicode tables against tiktoken's engine."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest
import regex
import tiktoken

from fastcompress import pretokenizer
from fastcompress.errors import ConfigError
from fastcompress.pretokenizer import PATTERNS
from tests.random_text import CODE_POINTS, random_strings
from tests.reference import bpe as oracle

REGEX_PATTERNS = [name for name, pattern in PATTERNS.items() if pattern]
CLASSES = [r"[\p{Lu}\p{Lt}]", r"\p{Ll}", r"[\p{Lm}\p{Lo}]", r"\p{M}", r"\p{N}", r"[\p{P}\p{S}]", r"\s"]
HAN_AND_KANA = {chr(c) for c in [*range(0x3040, 0x3100), *range(0x4E00, 0x9FA6)]}  # as DeepSeek spells them
CONTEXTS = [
    "{0}",
    "a{0} ",
    " {0}a",
    "A{0}{0}\n",
    "1{0}1'{0}",
    "!{0}B's{0}S",
    "か{0}・{0}",
    "\x01{0}\u3097{0}",
    "{0}x{0} \u0301",
]


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


@pytest.fixture(scope="module")
def edges(agreed: list[str]) -> list[str]:
    """The first and the last two of every range of code points that are in the same classes."""
    signature = np.zeros(0x110000 + 2, np.uint8)
    text = "".join(agreed)
    for bit, char_class in enumerate(CLASSES):
        signature[[ord(c) for c in regex.findall(char_class, text)]] |= 1 << bit
    code_points = np.array([ord(c) for c in agreed])
    of_agreed = signature[code_points]
    is_edge = np.zeros(len(agreed), bool)
    for shift in (-2, -1, 1, 2):
        is_edge |= np.roll(of_agreed, shift) != of_agreed
    han_kana_edges = {chr(c + d) for c in (0x3040, 0x30FF, 0x4E00, 0x9FA5) for d in (-1, 0, 1)}
    chosen = [c for c, edge in zip(agreed, is_edge, strict=True) if edge or c in han_kana_edges or ord(c) < 0x200]
    assert 4_000 < len(chosen) < 12_000
    return chosen


def assert_same_split(text: str, pattern: str) -> None:
    expected, got = oracle.split(text, pattern), pretokenizer.split(text, pattern)
    if expected != got:  # pytest's own diff of long lists would take minutes
        at = next(i for i, (a, b) in enumerate(zip(expected, got, strict=False)) if a != b)
        after = b"".join(expected[:at])[-20:]
        pytest.fail(f"{pattern}: after {after!r}: expected {expected[at : at + 2]}, got {got[at : at + 2]}")


def test_patterns_are_the_ones_tiktoken_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    from tiktoken_ext import openai_public

    monkeypatch.setattr(openai_public, "load_tiktoken_bpe", lambda *_, **__: {})  # no download
    assert PATTERNS["gpt2"] == openai_public.r50k_base()["pat_str"]
    assert PATTERNS["cl100k"] == openai_public.cl100k_base()["pat_str"]
    assert PATTERNS["o200k"] == openai_public.o200k_base()["pat_str"]


@pytest.mark.parametrize("context", CONTEXTS)
def test_edges_of_classes_in_context(context: str, edges: list[str]) -> None:
    text = "".join(context.format(c) for c in edges)
    for pattern in REGEX_PATTERNS:
        assert_same_split(text, pattern)


@pytest.mark.slow
@pytest.mark.parametrize("context", CONTEXTS[:4])
def test_every_code_point_in_context(context: str, agreed: list[str]) -> None:
    """All of them in the first context, in the others those of the planes that have characters.

    (The test of classes below has all of them.)
    """
    kept = agreed if context == CONTEXTS[0] else [c for c in agreed if ord(c) >> 16 in (0, 1, 2, 3, 14)]
    text = "".join(context.format(c) for c in kept)
    for pattern in REGEX_PATTERNS:
        assert_same_split(text, pattern)


@pytest.mark.slow
def test_classes_of_every_code_point_are_those_of_tiktokens_engine() -> None:
    """Each class alone decides where some pattern cuts "<c>x": so the tables can be read off our scanners."""
    everything = "".join(CODE_POINTS)
    letters = matches_in_tiktoken(r"\p{L}", everything)
    numbers = matches_in_tiktoken(r"\p{N}", everything)
    spaces = matches_in_tiktoken(r"\s", everything)
    lower_set = matches_in_tiktoken(r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]", everything)
    upper_set = matches_in_tiktoken(r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", everything)
    words = matches_in_tiktoken(r"[\p{L}\p{M}]", everything)
    punctuation = matches_in_tiktoken(r"[\p{P}\p{S}]", everything)

    lengths = np.array([len(c.encode()) for c in CODE_POINTS])

    def joins(before: str, pattern: str) -> set[str]:
        """The code points that share a pretoken with what stands before them, in a text of "<before><c>NUL"."""
        text = "".join(f"{before}{c}\0" for c in CODE_POINTS)
        is_end = np.zeros(len(text.encode()) + 1, bool)
        is_end[pretokenizer.split_ends(text, pattern)] = True
        begins = np.cumsum(lengths + len(before.encode()) + 1) - lengths - 1
        return {c for c, cut in zip(CODE_POINTS, is_end[begins].tolist(), strict=True) if not cut}

    assert joins("a", "gpt2") == letters
    assert joins("1", "gpt2") == numbers
    assert set(CODE_POINTS) - joins("-", "whitespace") == spaces
    assert joins("a", "o200k") == lower_set
    assert joins("A", "o200k") >= upper_set
    assert joins("a", "strict") == words
    assert joins("a", "deepseek-v3") == words - HAN_AND_KANA
    assert joins("か", "deepseek-v3") == words & HAN_AND_KANA
    assert joins("€", "deepseek-v3") == punctuation - HAN_AND_KANA | {"\r", "\n"}
    assert joins("・", "deepseek-v3") == punctuation & HAN_AND_KANA


@pytest.mark.slow
@pytest.mark.parametrize("pattern", REGEX_PATTERNS)
def test_random_strings(pattern: str, agreed: list[str]) -> None:
    strings = random_strings(agreed, 30_000, seed=REGEX_PATTERNS.index(pattern))
    for text in strings:
        assert_same_split(text, pattern)
    for begin in range(0, len(strings), 1000):  # long texts, which scanners see through a window
        assert_same_split("".join(strings[begin : begin + 1000]), pattern)


def test_one_regex_gives_what_deepseeks_three_give(edges: list[str]) -> None:
    texts = random_strings(edges, 8_000, seed=100)
    texts += ["".join(context.format(c) for c in edges) for context in CONTEXTS]
    for text in texts:
        assert regex.findall(PATTERNS["deepseek-v3"], text) == oracle.split_text(text, "deepseek-v3")


@pytest.mark.parametrize("pattern", REGEX_PATTERNS)
def test_tiktokens_engine_cuts_alike(pattern: str) -> None:
    """Every pretoken is a token, so that ids tell where a text was cut; so is every two in a row, so that two which
    were not cut apart could not stay apart."""
    texts = random_strings(CODE_POINTS, 5_000, seed=200)
    cut = [pretokenizer.split(text, pattern) for text in texts]
    tokens = {bytes([b]) for b in range(256)}.union(
        *cut, (a + b for pieces in cut for a, b in itertools.pairwise(pieces))
    )
    ranks = {token: rank for rank, token in enumerate(sorted(tokens))}
    reference = tiktoken.Encoding("cuts", pat_str=PATTERNS[pattern], mergeable_ranks=ranks, special_tokens={})
    for text, pieces in zip(texts, cut, strict=True):
        assert reference.encode_ordinary(text) == [ranks[piece] for piece in pieces], text


def test_strict_mixes_no_letters_with_anything_but_a_space(agreed: list[str]) -> None:
    for text in random_strings(agreed, 5_000, seed=300):
        for pretoken in pretokenizer.split(text, "strict"):
            piece = pretoken.decode()
            if regex.search(r"\p{L}", piece):
                assert regex.fullmatch(r" ?[\p{L}\p{M}]+", piece)


def test_aliases() -> None:
    assert pretokenizer.ALIASES == {"r50k": "gpt2", "p50k": "gpt2", "qwen2.5": "qwen2", "qwen3": "qwen2"}
    for alias, name in pretokenizer.ALIASES.items():
        assert pretokenizer.split("it's 2026\n", alias) == pretokenizer.split("it's 2026\n", name)


def test_none_is_the_whole_text() -> None:
    assert pretokenizer.split("a b\n", "none") == [b"a b\n"]
    assert pretokenizer.split("", "none") == []


@pytest.mark.parametrize("pattern", PATTERNS)
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


def test_text_in_place_of_a_pattern_is_not_repeated_as_a_whole() -> None:
    with pytest.raises(ConfigError, match=r"'aé+\.\.\.'") as raised:
        pretokenizer.split("cl100k", "a" + "é" * 1_000_000)
    assert len(str(raised.value)) < 1000
