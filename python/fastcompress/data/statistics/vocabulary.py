"""What can be said of a vocabulary without a text: tokens that no text reaches, broken UTF-8, ids that change.

It needs tokens that have bytes of their own, as those of BPE, codebooks, greedy dictionaries and characters have.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fastcompress.bpe import unreachable_tokens
from fastcompress.bpe.utf8_pieces import is_utf8, may_be_in_utf8
from fastcompress.codec import BPECodec, ChatCodec
from fastcompress.codec.chat import MARKS
from fastcompress.data.encode import encode_documents
from fastcompress.errors import DataError

if TYPE_CHECKING:
    from fastcompress.codec import Codec

ADDITIONS = {
    "space after": (b"", b" "),
    "newline after": (b"", b"\n"),
    "space before": (b" ", b""),
    "newline before": (b"\n", b""),
}
"""What is added to a string before and after it, by name."""


@dataclass(frozen=True)
class VocabularyStatistics:
    """Measures of a vocabulary. All lists are ids in ascending order.

    >>> from fastcompress.codec import ByteCodec
    >>> vocabulary = vocabulary_statistics(ByteCodec())
    >>> len(vocabulary.broken_utf8), vocabulary.impossible_utf8[:3], vocabulary.unreachable
    (128, [192, 193, 245], [])

    Attributes:
        strings: The bytes of each id; empty for ids that are not in use, and for marks without bytes.
        special: Ids of special tokens, which ordinary text never becomes; the other lists are without them.
        unreachable: Tokens that no text reaches. This is proved.
        not_found: Tokens that their own bytes do not reach, alone or (BPE) next to other characters, without a proof
            that no text does.
        broken_utf8: Tokens that are not whole characters of UTF-8: alone they decode to a replacement character.
        impossible_utf8: Those of them that occur in no UTF-8 text at all, such as the byte 0xFF.
        num_tested: The number of tokens that are whole UTF-8 and were tried for `unstable`.
        unstable: By the keys of ADDITIONS, the tokens whose string has other ids when the addition stands next to it:
            the ids of the string alone are not those at the beginning (or end) of the ids of both together.
    """

    strings: Sequence[bytes]
    special: list[int]
    unreachable: list[int]
    not_found: list[int]
    broken_utf8: list[int]
    impossible_utf8: list[int]
    num_tested: int
    unstable: dict[str, list[int]]

    def longest(self, number: int) -> list[int]:
        """Return the ids of the longest tokens that are not special, the longest first, of equals the lowest id."""
        return sorted(self.ordinary, key=lambda i: (-len(self.strings[i]), i))[:number]

    @property
    def ordinary(self) -> list[int]:
        """The ids in use that are not special."""
        special = set(self.special)
        return [i for i, string in enumerate(self.strings) if string and i not in special]


def vocabulary_statistics(codec: Codec, *, num_threads: int | None = None) -> VocabularyStatistics | None:
    """Measure a vocabulary; None if the codec's tokens have no bytes of their own (LZ77, gzip, arithmetic codes).

    Takes a few seconds for 200,000 tokens.

    Args:
        codec: The codec.
        num_threads: None for one per core, at most 8. Does not change the result.
    """
    strings = token_strings(codec)
    if strings is None:
        return None
    special = sorted(_special_ids(codec))
    excluded = set(special)
    ordinary = [i for i, string in enumerate(strings) if string and i not in excluded]
    unreachable, not_found = _unreachable(codec, strings, ordinary, num_threads)
    broken = [i for i in ordinary if not is_utf8(strings[i])]
    tested = [i for i in ordinary if is_utf8(strings[i])]
    return VocabularyStatistics(
        strings=strings,
        special=special,
        unreachable=unreachable,
        not_found=not_found,
        broken_utf8=broken,
        impossible_utf8=[i for i in broken if not may_be_in_utf8(strings[i])],
        num_tested=len(tested),
        unstable=_unstable(codec, strings, tested, num_threads),
    )


def token_strings(codec: Codec) -> list[bytes] | None:
    """Return the bytes of each id, empty for an unused one; None if tokens have no bytes of their own."""
    if not getattr(codec, "decodes_by_token", False):
        return None
    if isinstance(codec, ChatCodec):
        below = token_strings(codec.base)
        return None if below is None else below + [b""] * (codec.vocab_size - len(below))
    used = np.arange(codec.vocab_size)
    if isinstance(codec, BPECodec):
        used = np.flatnonzero(codec.tokenizer.token_lengths)
    data, ends = codec.decode(used), np.cumsum(codec.byte_lengths(used))
    strings = [b""] * codec.vocab_size
    begin = 0
    for i, end in zip(used.tolist(), ends.tolist(), strict=True):
        strings[i] = data[begin:end]
        begin = end
    return strings


def special_spellings(codec: Codec) -> list[str]:
    """Return the texts of a codec's special tokens, and of the marks of a chat."""
    if isinstance(codec, ChatCodec):
        return [*special_spellings(codec.base), *MARKS]
    return list(codec.tokenizer.special_tokens) if isinstance(codec, BPECodec) else []


def _special_ids(codec: Codec) -> set[int]:
    """Return the ids that ordinary text does not become by design."""
    if isinstance(codec, ChatCodec):
        return _special_ids(codec.base) | set(range(codec.base.vocab_size, codec.vocab_size))
    if not isinstance(codec, BPECodec):
        return set()
    bpe = codec.tokenizer  # a special token may share the id of an ordinary one, whose bytes the id then has
    return {i for text, i in bpe.special_tokens.items() if bpe.token_bytes(i) == text.encode()}


def _unreachable(
    codec: Codec, strings: Sequence[bytes], ordinary: Sequence[int], num_threads: int | None
) -> tuple[list[int], list[int]]:
    """Return the tokens that no text reaches by proof, and the others for which no text was found."""
    if isinstance(codec, ChatCodec):
        return _unreachable(codec.base, strings, ordinary, num_threads)
    if isinstance(codec, BPECodec):
        found = unreachable_tokens(codec.tokenizer, num_threads=num_threads)
        return found.proved, found.not_found
    encoded = _encodings(codec, [strings[i] for i in ordinary], num_threads)
    return [], [i for i, ids in zip(ordinary, encoded, strict=True) if ids is None or i not in ids]


def _unstable(
    codec: Codec, strings: Sequence[bytes], tested: Sequence[int], num_threads: int | None
) -> dict[str, list[int]]:
    alone = _encodings(codec, [strings[i] for i in tested], num_threads)
    unstable = {}
    for name, (before, after) in ADDITIONS.items():
        longer = _encodings(codec, [before + strings[i] + after for i in tested], num_threads)
        unstable[name] = [
            i
            for i, ids, more in zip(tested, alone, longer, strict=True)
            if ids is not None and more is not None and (more[-len(ids) :] if before else more[: len(ids)]) != ids
        ]
    return unstable


def _encodings(codec: Codec, texts: Sequence[bytes], num_threads: int | None) -> list[list[int] | None]:
    """Return the ids of each text; None for one that the codec cannot encode, since an alphabet lacks a character."""
    if isinstance(codec, ChatCodec):
        return _encodings(codec.base, texts, num_threads)
    if isinstance(codec, BPECodec) and codec.lossless:
        tokens, offsets = codec.tokenizer.encode_batch_to_numpy(texts, num_threads, disallowed_special=())
        ids, ends = tokens.tolist(), offsets.tolist()
        return [ids[begin:end] for begin, end in itertools.pairwise(ends)]
    try:
        return [ids.tolist() for _, ids in encode_documents(texts, codec, num_threads=1)]
    except DataError:
        return [_encoding(codec, text) for text in texts]


def _encoding(codec: Codec, text: bytes) -> list[int] | None:
    try:
        ids: list[int] = codec.encode(text).tolist()
    except DataError:
        return None
    return ids
