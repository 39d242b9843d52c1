"""Normalization to NFC beside `tokenizers`' (Unicode 9.0) and Python's, on every code point and on random strings."""

from __future__ import annotations

import random
import unicodedata

import pytest
from tokenizers.normalizers import NFC

from fastcompress._core import pretokenizer as _core

CODE_POINTS = [chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000]
JAMO = [*map(chr, range(0x1100, 0x1113)), *map(chr, range(0x1161, 0x1176)), *map(chr, range(0x11A7, 0x11C3))]


def nfc(text: str | bytes) -> bytes:
    return _core.normalize_nfc(text)


@pytest.mark.slow
@pytest.mark.parametrize("context", ["{0}", "a{0}b", "x\u0301{0}\u0323", "x\U0001d165{0}\u05b0", "{0}\u0345{0}\u0334"])
def test_every_code_point(context: str) -> None:
    """One text of all code points with a character between that nothing composes with."""
    text = "\n".join(context.format(c) for c in CODE_POINTS)
    assert nfc(text) == NFC().normalize_str(text).encode()


def test_decompositions_compose_again() -> None:
    normalizer = NFC()
    pieces = [unicodedata.normalize("NFD", c) for c in CODE_POINTS if unicodedata.decomposition(c)]
    for mark in ("", "\u0301", "\u0323", "\u3099"):
        text = "\n".join(piece + mark for piece in pieces)
        assert nfc(text) == normalizer.normalize_str(text).encode()


def test_random_strings() -> None:
    draw = random.Random(1)
    normalizer = NFC()
    marks = [c for c in CODE_POINTS if unicodedata.combining(c)]
    composed = [c for c in CODE_POINTS if unicodedata.decomposition(c)]
    parts = [part for c in composed for part in unicodedata.normalize("NFD", c)]
    syllables = [chr(c) for c in range(0xAC00, 0xAD00)]
    kinds = [marks, composed, parts, JAMO, syllables, ["a", " ", "é", "中"]]
    for _ in range(300):
        text = "".join(draw.choice(draw.choice(kinds)) for _ in range(draw.randrange(300)))
        expected = normalizer.normalize_str(text)
        assert nfc(text) == expected.encode()
        assert nfc(expected) == expected.encode()


def test_as_python_does_for_characters_of_unicode_9() -> None:
    text = "".join(c for c in CODE_POINTS if c < "\u0800" and c not in "\u07fd")
    decomposed = unicodedata.normalize("NFD", text)
    assert nfc(decomposed) == unicodedata.normalize("NFC", decomposed).encode()


def test_stray_bytes_stay_and_nothing_composes_across_them() -> None:
    assert nfc(b"e\xff\xcc\x81") == b"e\xff\xcc\x81"
    assert nfc(b"e\xcc\x81\xcc") == "é".encode() + b"\xcc"
    draw = random.Random(2)
    pieces = [b"e", b"\xcc\x81", b"\xcc\xa3", b"\xff", b"\xe1\x84", b"\xe1\x84\x80\xe1\x85\xa1", b" ", b"\xf5"]
    for _ in range(2000):
        data = b"".join(draw.choice(pieces) for _ in range(draw.randrange(12)))
        spelled = data.decode("utf-8", "surrogateescape")
        assert nfc(data) == unicodedata.normalize("NFC", spelled).encode("utf-8", "surrogateescape")
