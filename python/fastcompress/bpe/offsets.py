"""Where in a text its tokens lie, in bytes and in characters."""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt


@dataclasses.dataclass(frozen=True)
class TokenOffsets:
    """The tokens of a text and the stretches of it that they spell.

    tokens: uint32[n]. byte_spans, char_spans: int64[n, 2], begin and end of each token in the text's UTF-8 and in its
    characters (so of a ``str`` without surrogates, ``text[begin:end]``; with surrogates, of what the tokenizer reads).

    Byte spans follow each other without gap or overlap. A token may begin or end within a character: its char span
    then holds the whole of that character, as in ``tokenizers``, and one character may be in the spans of several
    tokens. A byte that is not UTF-8 counts as one character.
    """

    tokens: npt.NDArray[np.uint32]
    byte_spans: npt.NDArray[np.int64]
    char_spans: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.tokens)

    @classmethod
    def of(cls, tokens: npt.NDArray[np.uint32], lengths: npt.NDArray[np.int64], data: bytes) -> TokenOffsets:
        """From the number of bytes of each token, all at least one and ``len(data)`` in sum. O(len(data))."""
        if len(tokens) == 0:
            return cls(tokens, np.empty((0, 2), np.int64), np.empty((0, 2), np.int64))
        ends = np.cumsum(lengths)
        begins = ends - lengths
        is_first = begins_of_characters(data)
        # The number of characters that begin before a token ends; the last of them is the one it ends in.
        char_ends = np.cumsum(np.add.reduceat(is_first, begins, dtype=np.int64))
        num_before = np.concatenate([[0], char_ends[:-1]])
        char_begins = num_before - ~is_first[begins]  # a token that begins within a character begins with it
        return cls(tokens, np.stack([begins, ends], axis=1), np.stack([char_begins, char_ends], axis=1))


def begins_of_characters(data: bytes) -> npt.NDArray[np.bool_]:
    """bool[len(data)]: whether a character begins at each byte; one that is not UTF-8 is a character of its own."""
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        escaped = data.decode("utf-8", "surrogateescape").encode("utf-32-le", "surrogatepass")
        code_points = np.frombuffer(escaped, np.uint32)
        lengths = 1 + (code_points >= 0x80) + (code_points >= 0x800) + (code_points >= 0x10000).astype(np.int64)
        lengths[(code_points >= 0xDC80) & (code_points <= 0xDCFF)] = 1  # an escaped byte
        is_first = np.zeros(len(data), np.bool_)
        is_first[np.cumsum(lengths) - lengths] = True
    else:
        is_first = (np.frombuffer(data, np.uint8) & 0xC0) != 0x80
    return is_first
