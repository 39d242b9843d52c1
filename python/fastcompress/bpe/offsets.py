"""The positions of tokens in a text, in bytes and in characters."""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt

from fastcompress._deprecated import RenamedAttribute


@dataclasses.dataclass(frozen=True, repr=False)
class TokenOffsets:
    """The tokens of a text and their spans in it.

    Byte spans are adjacent, without gaps or overlaps. A token may begin or end within a character: its char span
    then holds the whole of that character, as in ``tokenizers``, and one character may be in the spans of several
    tokens. A byte that is not UTF-8 counts as one character.

    Attributes:
        tokens: The ids, uint32[n].
        byte_spans: int64[n, 2], the begin and end of each token in the text's UTF-8.
        char_spans: int64[n, 2], the same in characters: ``text[begin:end]`` of a ``str`` without surrogates, or of the
            text with its surrogates replaced.

    >>> from fastcompress import BPE
    >>> offsets = BPE.train("", vocab_size=256).encode_with_offsets("né")
    >>> offsets.char_spans.tolist()
    [[0, 1], [1, 2], [1, 2]]
    """

    tokens: npt.NDArray[np.uint32]
    byte_spans: npt.NDArray[np.int64]
    char_spans: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.tokens)

    def __repr__(self) -> str:
        num_bytes = int(self.byte_spans[-1, 1]) if len(self) else 0
        return f"<TokenOffsets num_tokens={len(self)} num_bytes={num_bytes}>"

    @classmethod
    def from_lengths(cls, tokens: npt.NDArray[np.uint32], lengths: npt.NDArray[np.int64], data: bytes) -> TokenOffsets:
        """Compute the spans of consecutive tokens. O(len(data)).

        Args:
            tokens: The ids, uint32[n].
            lengths: The number of bytes of each token, int64[n], at least 1; their sum is ``len(data)``.
            data: The text.
        """
        if len(tokens) == 0:
            return cls(tokens, np.empty((0, 2), np.int64), np.empty((0, 2), np.int64))
        ends = np.cumsum(lengths)
        begins = ends - lengths
        is_first = begins_of_characters(data)
        # The number of characters that begin before the end of each token; the token ends in the last of them.
        char_ends = np.cumsum(np.add.reduceat(is_first, begins, dtype=np.int64))
        num_before = np.concatenate([[0], char_ends[:-1]])
        char_begins = num_before - ~is_first[begins]  # a token that begins within a character begins with it
        return cls(tokens, np.stack([begins, ends], axis=1), np.stack([char_begins, char_ends], axis=1))

    of = RenamedAttribute("from_lengths")


def begins_of_characters(data: bytes) -> npt.NDArray[np.bool_]:
    """Return the bytes at which a character begins, bool[len(data)]; a byte that is not UTF-8 is a character."""
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
