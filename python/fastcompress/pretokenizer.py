"""Pretokenizers: cut a text into pretokens, the pieces that BPE merges never cross.

A named pattern is a regular expression known from other tokenizers, run here by a scanner written for it:

==============  ========================================================================================
``gpt2``        GPT-2, r50k and p50k: letters, numbers and symbols apart, one space kept with the next word
``cl100k``      GPT-3.5 and GPT-4: numbers in groups of three, line breaks kept with symbols
``o200k``       GPT-4o: also cuts where upper case follows lower case, and keeps marks with their letters
``whitespace``  words with the single space before them, nothing else
``none``        the whole text is one pretoken, so tokens may cross spaces
==============  ========================================================================================

Text may be ``str`` or bytes. Bytes that are not UTF-8 are kept as they are: a byte that begins no well-formed sequence
counts as one character that is neither letter, mark, number nor white space.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from fastcompress._core import pretokenizer as _core

__all__ = ["PATTERNS", "UNICODE_VERSION", "split", "split_ends", "without_surrogates"]

PATTERNS: Mapping[str, str] = MappingProxyType(_core.PATTERNS)
"""The regular expression of each named pattern, in the syntax of Rust's ``regex`` plus possessive quantifiers."""

UNICODE_VERSION: str = _core.UNICODE_VERSION
"""The version of the Unicode tables behind ``\\p{L}``, ``\\p{N}``, ``\\p{M}`` and ``\\s``."""


def split_ends(text: str | bytes, pattern: str = "cl100k") -> npt.NDArray[np.uint64]:
    """The offset in UTF-8 bytes at which each pretoken ends: uint64[n], increasing, the last one the text's length.

    O(len(text)). Raises ConfigError for an unknown pattern. Releases the GIL.
    """
    return _core.split_ends(text, pattern)


def split(text: str | bytes, pattern: str = "cl100k") -> list[bytes]:
    """The pretokens of a text as UTF-8 bytes; their concatenation is the text.

    >>> split("Hello world, 2026!")
    [b'Hello', b' world', b',', b' ', b'202', b'6', b'!']
    """
    data = without_surrogates(text).encode("utf-8") if isinstance(text, str) else bytes(text)
    pieces, begin = [], 0
    for end in split_ends(data, pattern).tolist():
        pieces.append(data[begin:end])
        begin = end
    return pieces


def without_surrogates(text: str) -> str:
    """The text as the core reads it: surrogate pairs joined, lone surrogates (which UTF-8 cannot hold) as U+FFFD."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text
