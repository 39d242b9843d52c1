"""Custom patterns beside the engines that they were written for: equal pretokens, or a refusal by name."""

from __future__ import annotations

import collections
import os
import random
from collections.abc import Callable
from typing import Any

import pytest
import tiktoken
from tokenizers import Regex
from tokenizers.pre_tokenizers import Digits, Split

from fastcompress.bpe.custom_pattern import CustomPattern
from fastcompress.bpe.regex_properties import PROPERTIES, cased
from fastcompress.errors import ConfigError, DataError, FormatError
from fastcompress.formats.tokenizer_json import BEHAVIORS

BYTES = {bytes([byte]): byte for byte in range(256)}
EVERY = "".join(chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000)


# --- The engines -----------------------------------------------------------------------------------------


def onig(pattern: str, behavior: str = "Isolated", invert: bool = False) -> Callable[[str], list[str]]:
    """The pieces that `tokenizers` makes of a text. Raises if it does not take the pattern."""
    name = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in behavior).strip("_")
    split = Split(Regex(pattern), name, invert)
    return lambda text: [piece for piece, _ in split.pre_tokenize_str(text)]


def fancy(pattern: str) -> Callable[[str], bytes]:
    """The bytes of the text that tiktoken's pattern matches. Raises if it does not take the pattern."""
    encoding = tiktoken.Encoding("x", pat_str=pattern, mergeable_ranks=BYTES, special_tokens={})
    return lambda text: bytes(encoding.encode_ordinary(text))


def fancy_pieces(pattern: str) -> Callable[[str], list[str]]:
    """The matches themselves: every token that starts a pretoken and no other is marked by the rank it gets.

    All strings of characters that a text of ours has would be too many ranks, so pieces are found one at a time: the
    longest prefix of what is matched which is also what a pretoken of its own gives is not known. Instead each text is
    made of different characters, with ranks for all its substrings: every pretoken is then one token.
    """

    def pieces(text: str) -> list[str]:
        data = text.encode()
        cuts = [0]
        for character in text:
            cuts.append(cuts[-1] + len(character.encode()))
        whole = {data[a:b] for i, a in enumerate(cuts) for b in cuts[i + 1 :]}
        ranks = dict(BYTES)
        for piece in sorted(whole, key=len):
            ranks.setdefault(piece, len(ranks))
        encoding = tiktoken.Encoding("x", pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
        return [encoding.decode_single_token_bytes(token).decode() for token in encoding.encode_ordinary(text)]

    return pieces


def ours_as_split(pattern: str, behavior: str = "Isolated", invert: bool = False) -> CustomPattern:
    return CustomPattern(
        [{"type": "Split", "pattern": {"Regex": pattern}, "behavior": behavior, "invert": invert}]
    )


def pieces_of(pattern: CustomPattern, text: str) -> list[str]:
    return [piece.decode() for piece in pattern.split(text.encode())]


# --- The cases that were wrong once ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "text", "pieces"),
    [
        (r"\w+", "a ½ b", ["a", " ", "½", " ", "b"]),
        (r"(?i)[a-z]+", "aİı", ["a", "İı"]),
        (r"[\h]+", " <be>", [" <", "be", ">"]),
        (r"\pL+", "the pL", ["the ", "pL"]),
        (r"\W+", "a½ b", ["a½", " ", "b"]),
        (r"\p{Word}+", "½ a", ["½", " ", "a"]),
        (r"[^\w\s]+", "½!a", ["½!", "a"]),
        (r"\e", "a\x1bb", ["a", "\x1b", "b"]),
        (r"a{1,2}+", "aaaab", ["aaaa", "b"]),
        (r"a{2}?", "aaab", ["aa", "a", "b"]),
        (r"a(?i)b|c", "aBaC", ["aB", "aC"]),
        (r"[[:punct:]]", "a$+", ["a", "$", "+"]),
        (r"\p{^L}", "a1b", ["a", "1", "b"]),
    ],
)
def test_splits_that_were_wrong(pattern: str, text: str, pieces: list[str]) -> None:
    assert pieces_of(ours_as_split(pattern), text) == onig(pattern)(text) == pieces


@pytest.mark.parametrize(
    ("pattern", "text", "matched"),
    [
        (r"(?m)^.+$", "a\nb", b"ab"),
        (r"[\p{L}--\p{Lu}]+", "aB-", b"a"),
        (".", "a\nb", b"ab"),
        ("a-b", "xa-b", b"a-b"),
        (r"\pL+", "a1", b"a"),
        (r"a\Z", "a\n\n", b"a"),
        (r"[[:alpha:]]+", "aé", b"a"),
        (r"(?i)k", "k\u212a", "k\u212a".encode()),
        (r"[a~~b]", "ab", b"ab"),
        (r"(?i)\P{Lu}", "aA1", b"1"),
        (r"(?i)i", "iIİı", b"iI"),
        (r"\w", "½²a\u200d", "a\u200d".encode()),
    ],
)
def test_pat_strs_that_were_wrong(pattern: str, text: str, matched: bytes) -> None:
    assert CustomPattern.from_regex(pattern).pretokens(text.encode())[0] == fancy(pattern)(text) == matched
