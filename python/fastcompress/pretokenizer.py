"""Pretokenizers, which split a text into pretokens: the pieces whose boundaries BPE merges never cross.

A named pattern is a regular expression known from other tokenizers, for which there is a specialized scanner here:

===============  ========================================================================================
``gpt2``         GPT-2, r50k and p50k: letters, numbers and symbols apart, one space kept with the next word
``cl100k``       GPT-3.5 and GPT-4: numbers in groups of three, line breaks kept with symbols
``o200k``        GPT-4o: also cuts where upper case follows lower case, and keeps marks with their letters
``llama3``       Llama 3: cl100k, but white space is cut after its last line break also at the text's end
``qwen2``        Qwen 2, 2.5 and 3: llama3 with numbers one by one
``deepseek-v3``  DeepSeek V3 and R1: numbers in threes, Han and kana apart from other scripts, marks with letters
``strict``       no pretoken mixes letters with punctuation, numbers or line breaks
``whitespace``   words with the single space before them, nothing else
``words``        runs of letters, digits or symbols with the space before them, and runs of white space; reads bytes
``none``         the whole text is one pretoken, so tokens may cross spaces
===============  ========================================================================================

``strict`` is specific to this package. Under most other patterns a vocabulary learns several variants of one word, such
as ``python``, ``(python`` and ``.python``. Under ``strict``, a token with a letter has only letters, their marks and at
most one space before them, so that a small vocabulary spends its ids on words. Apostrophes count as punctuation:
``don't`` is three pretokens.

``words`` is the split of codebooks and dictionaries ``within_words``. It needs no Unicode tables: every byte from 0x80
on is a letter. Whether a pretoken ends before a byte depends on that byte and the two before it alone, not on later
text, so exact masks exist for BPE, too (`fastcompress.bpe.CanonicalPairs`).

Text may be ``str`` or bytes. Bytes that are not UTF-8 are kept: under the other patterns, a byte that does not begin a
well-formed sequence counts as one character that is not a letter, mark, number, punctuation or white space.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from fastcompress._core import pretokenizer as _core

__all__ = ["ALIASES", "PATTERNS", "SPLITS", "UNICODE_VERSION", "split", "split_ends", "utf8", "without_surrogates"]

PATTERNS: Mapping[str, str] = MappingProxyType(_core.PATTERNS)
"""The regular expression of each named pattern, whose matches are the pretokens; empty for ``none``.

The syntax is that of Rust's ``fancy-regex``, in which ``$`` is the end of the text; otherwise Python's ``regex`` reads
the patterns in the same way.
"""

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
"""The patterns that their own tokenizers state as several regexes, as they are written there.

Each regex splits the pieces that the one before made: into its matches and the text between them.
"""

UNICODE_VERSION: str = _core.UNICODE_VERSION
"""The version of the Unicode tables behind ``\\p{L}``, ``\\p{N}``, ``\\p{M}``, ``\\p{P}``, ``\\p{S}`` and ``\\s``."""


def split_ends(text: str | bytes, pattern: str = "cl100k") -> npt.NDArray[np.uint64]:
    """Return the end of each pretoken, in bytes of UTF-8: uint64[n], increasing up to the length of the text.

    Args:
        text: A str or bytes. Surrogates in a str are replaced (`errors.SurrogateError` states the rule).
        pattern: The name of a pattern, a key of PATTERNS or ALIASES.

    Raises:
        ConfigError: The pattern is unknown.

    O(len(text)); releases the GIL.
    """
    if not isinstance(pattern, str):
        raise TypeError(f"pattern is of type {type(pattern).__name__}; it must be the name of a pattern")
    return _core.split_ends(text, pattern)


def split(text: str | bytes, pattern: str = "cl100k") -> list[bytes]:
    """Return the pretokens of a text as UTF-8; joined, they are the text. Arguments and errors as for `split_ends`.

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
    """Return the UTF-8 of a text as the core reads it. Raises TypeError for anything but a str or bytes."""
    if isinstance(text, str):
        return without_surrogates(text).encode("utf-8")
    if not isinstance(text, bytes | bytearray | memoryview):
        raise TypeError(f"text is of type {type(text).__name__}; it must be str or bytes")
    return bytes(text)


def without_surrogates(text: str) -> str:
    """Return a text as the core reads it: surrogate pairs become their characters, lone surrogates U+FFFD."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text
