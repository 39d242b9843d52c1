"""Greedy dictionaries as codecs."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import numpy.typing as npt

from fastcompress._arguments import as_instance
from fastcompress.codec.files import CodecKind, from_text, register_codec, to_text
from fastcompress.codec.protocol import CodecBase, Text, as_bytes, validate_ids
from fastcompress.greedy_dictionary import GreedyDictionary


class GreedyDictionaryCodec(CodecBase):
    """The ids of a greedy dictionary.

    Not unambiguous: many sequences decode to the same text. Exactly one of them has no illegal step
    (`GreedyDictionary.states`).

    >>> words = GreedyDictionary.from_strings([bytes([b]) for b in range(256)] + [b"not", b" be"])
    >>> codec = GreedyDictionaryCodec(words)
    >>> len(codec.encode("not to be")), codec.decode(codec.encode("not to be"))
    (5, b'not to be')
    """

    lossless = True
    unambiguous = False
    decodes_by_token = True

    def __init__(self, dictionary: GreedyDictionary) -> None:
        """Make a codec whose tokens are the ids of a dictionary."""
        self.dictionary = as_instance(dictionary, GreedyDictionary, "dictionary")
        self.vocab_size = dictionary.num_tokens
        self.max_unstable_tokens: int | None = dictionary.states.max_unstable_tokens
        self.name = f"greedy-dictionary-{dictionary.num_tokens}"
        self.fingerprint = hashlib.sha256(
            f"fastcompress greedy-dictionary codec, version 1\n{dictionary.fingerprint}".encode()
        ).hexdigest()

    def _arguments(self) -> dict[str, Any]:
        return {"dictionary": self.dictionary}

    def encode(self, data: Text) -> npt.NDArray[np.uint32]:
        ids: npt.NDArray[np.uint32] = self.dictionary.encode(as_bytes(data))
        return ids

    def decode(self, tokens: npt.ArrayLike) -> bytes:
        return self.dictionary.decode(validate_ids(tokens, self))

    def byte_lengths(self, tokens: npt.ArrayLike) -> npt.NDArray[np.int64]:
        return self.dictionary.byte_lengths(validate_ids(tokens, self))


register_codec(
    CodecKind(
        "greedy-dictionary",
        GreedyDictionaryCodec,
        lambda codec: {"dictionary": to_text(codec.dictionary.to_bytes())},
        lambda state: GreedyDictionaryCodec(GreedyDictionary.from_bytes(from_text(state["dictionary"]))),
    )
)
