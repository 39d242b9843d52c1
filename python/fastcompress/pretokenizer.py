"""Pretokenizers: cut a text into pretokens, the pieces that BPE merges never cross.

A named pattern is a regular expression known from other tokenizers, run here by a scanner written for it:

===============  ========================================================================================
``gpt2``         GPT-2, r50k and p50k: letters, numbers and symbols apart, one space kept with the next word
``cl100k``       GPT-3.5 and GPT-4: numbers in groups of three, line breaks kept with symbols
``o200k``        GPT-4o: also cuts where upper case follows lower case, and keeps marks with their letters
``llama3``       Llama 3: cl100k, but white space is cut after its last line break also at the text's end
``qwen2``        Qwen 2, 2.5 and 3: llama3 with numbers one by one
``deepseek-v3``  DeepSeek V3 and R1: numbers in threes, Han and kana apart from other scripts, marks with letters
``strict``       no pretoken mixes letters with punctuation, numbers or line breaks
``whitespace``   words with the single space before them, nothing else
``none``         the whole text is one pretoken, so tokens may cross spaces
===============  ========================================================================================

``strict`` is of our own. Under the other patterns a vocabulary learns ``python``, ``(python``, ``.python`` and more
such variants of one word; under this one a token that holds a letter holds letters, their marks and at most one space
before them, so a small vocabulary spends its ids on words. Apostrophes are punctuation: ``don't`` is three pretokens.

Text may be ``str`` or bytes. Bytes that are not UTF-8 are kept as they are: a byte that begins no well-formed sequence
counts as one character that is neither letter, mark, number, punctuation nor white space.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from fastcompress._core import pretokenizer as _core

__all__ = ["ALIASES", "PATTERNS", "SPLITS", "UNICODE_VERSION", "split", "split_ends", "utf8", "without_surrogates"]

PATTERNS: Mapping[str, str] = MappingProxyType(_core.PATTERNS)
"""The regular expression of each named pattern, whose matches are the pretokens; empty for ``none``. In the syntax of
Rust's ``fancy-regex``, which is also that of Python's ``regex`` but for ``$``, there the very end of the text."""

ALIASES: Mapping[str, str] = MappingProxyType(_core.ALIASES)
"""Other names of named patterns, accepted wherever a pattern's name is."""

SPLITS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "deepseek-v3": (
            r"\p{N}{1,3}",
            "[一-龥\u3040-ゟ゠-ヿ]+",
            "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+"
            "| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+",
        )
    }
)
"""The patterns that their own tokenizers state as several regexes in turn, spelled as there. Each one cuts what the one
before left: its matches, and what stands between them, are the pieces."""

UNICODE_VERSION: str = _core.UNICODE_VERSION
"""The version of the Unicode tables behind ``\\p{L}``, ``\\p{N}``, ``\\p{M}``, ``\\p{P}``, ``\\p{S}`` and ``\\s``."""


def split_ends(text: str | bytes, pattern: str = "cl100k") -> npt.NDArray[np.uint64]:
    """Return the offset in UTF-8 bytes at which each pretoken ends, uint64[n]: increasing, the last the text's length.

    O(len(text)). Raises ConfigError for an unknown pattern. Releases the GIL.
    """
    return _core.split_ends(text, pattern)


def split(text: str | bytes, pattern: str = "cl100k") -> list[bytes]:
    """Return the pretokens of a text as UTF-8 bytes; their concatenation is the text.

    >>> split("Hello world, 2026!")
    [b'Hello', b' world', b',', b' ', b'202', b'6', b'!']
    """
    data = utf8(text)
    pieces, begin = [], 0
    for end in split_ends(data, pattern).tolist():
        pieces.append(data[begin:end])
        begin = end
    return pieces


def utf8(text: str | bytes | bytearray | memoryview) -> bytes:
    """Return the bytes of a text as the core reads it. Raises TypeError for anything but a str or bytes."""
    if isinstance(text, str):
        return without_surrogates(text).encode("utf-8")
    if not isinstance(text, bytes | bytearray | memoryview):
        raise TypeError(f"text is of type {type(text).__name__}; it must be str or bytes")
    return bytes(text)


def without_surrogates(text: str) -> str:
    """Return the text as the core reads it: surrogate pairs joined, lone surrogates, which UTF-8 lacks, as U+FFFD."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text
