"""Pairs of bytes between which no pretoken ends in any text: they make `Codebook.illegal_next_bytes` safe.

Whether a border lies between two bytes may depend on what comes before them ("'s" ends a pretoken, "is" does not), and
on what is still to come (white space belongs to the line break at its end, if there is one). The pairs of ASCII bytes
here are some between which no border falls in any text at all; tests/test_codebook.py tries to find one.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt

_LETTERS = np.frombuffer(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", np.uint8)
_SYMBOLS = np.frombuffer(b"!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~", np.uint8)
_VISIBLE = np.arange(0x21, 0x7F, dtype=np.uint8)
_SPACE = np.frombuffer(b" ", np.uint8)

# (the byte before, the byte after). A space before a letter goes with it under all of these.
_UNCUT: dict[str, list[tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]]] = {
    "strict": [(_LETTERS, _LETTERS), (_SYMBOLS, _SYMBOLS), (_SPACE, _LETTERS), (_SPACE, _SYMBOLS)],
    "whitespace": [(_VISIBLE, _VISIBLE), (_SPACE, _VISIBLE)],
    "gpt2": [(_SPACE, _LETTERS), (_SPACE, _SYMBOLS)],
    "cl100k": [(_SPACE, _LETTERS), (_SPACE, _SYMBOLS)],
    "o200k": [(_SPACE, _LETTERS), (_SPACE, _SYMBOLS)],
    "llama3": [(_SPACE, _LETTERS), (_SPACE, _SYMBOLS)],
    "qwen2": [(_SPACE, _LETTERS), (_SPACE, _SYMBOLS)],
    "deepseek-v3": [],
}


@cache
def uncut_pairs(pattern: str) -> npt.NDArray[np.bool_]:
    """bool[256, 256]: no border falls between byte a and byte b after it, in any text."""
    pairs = np.zeros((256, 256), np.bool_)
    for before, after in _UNCUT[pattern]:
        pairs[np.ix_(before, after)] = True
    pairs.flags.writeable = False
    return pairs
