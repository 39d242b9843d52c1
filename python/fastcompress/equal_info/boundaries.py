"""Pairs of adjacent bytes between which no text has a pretoken boundary, for `Codebook.illegal_next_bytes`.

In general, a boundary between two bytes may depend on the text before them ("'s" is a pretoken, "is" is a part of one)
and after them (white space belongs to the line break at its end, if there is one). For the pairs of ASCII bytes listed
here there is never a boundary between the two; tests/test_codebook.py searches for counterexamples.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt

_LETTERS = np.frombuffer(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", np.uint8)
_SYMBOLS = np.frombuffer(b"!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~", np.uint8)
_DIGITS = np.frombuffer(b"0123456789", np.uint8)
_WHITE = np.frombuffer(b" \t\n\v\f\r", np.uint8)
_VISIBLE = np.arange(0x21, 0x7F, dtype=np.uint8)
_SPACE = np.frombuffer(b" ", np.uint8)

# For each pattern, the pairs of a byte of the first set and one of the second. A space belongs to the letter after it.
_UNCUT: dict[str, list[tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]]] = {
    "strict": [(_LETTERS, _LETTERS), (_SYMBOLS, _SYMBOLS), (_SPACE, _LETTERS), (_SPACE, _SYMBOLS)],
    "whitespace": [(_VISIBLE, _VISIBLE), (_SPACE, _VISIBLE)],
    "words": [(kind, kind) for kind in (_LETTERS, _SYMBOLS, _DIGITS, _WHITE)],
    "gpt2": [(_SPACE, _LETTERS), (_SPACE, _SYMBOLS)],
    "cl100k": [(_SPACE, _LETTERS), (_SPACE, _SYMBOLS)],
    "o200k": [(_SPACE, _LETTERS), (_SPACE, _SYMBOLS)],
    "llama3": [(_SPACE, _LETTERS), (_SPACE, _SYMBOLS)],
    "qwen2": [(_SPACE, _LETTERS), (_SPACE, _SYMBOLS)],
    "deepseek-v3": [],
}


@cache
def uncut_pairs(pattern: str) -> npt.NDArray[np.bool_]:
    """Return bool[256, 256], where entry [a, b] says that no text has a pretoken boundary between bytes a and b."""
    pairs = np.zeros((256, 256), np.bool_)
    for before, after in _UNCUT[pattern]:
        pairs[np.ix_(before, after)] = True
    pairs.flags.writeable = False
    return pairs
