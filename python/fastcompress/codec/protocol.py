"""What every codec can do."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from fastcompress.errors import DataError


@runtime_checkable
class Codec(Protocol):
    """Bytes to ids and back.

    Attributes:
        name: for people, such as "byte", "char-65", "bpe-8192".
        vocab_size: ids are in [0, vocab_size).
        fingerprint: 64 hexadecimal digits, a SHA-256 of everything that decides the mapping.
        lossless: every byte string can be encoded.
        unambiguous: every byte string is spelled by exactly one sequence of ids, so that a model's bits per
            byte are exact; else they are an upper bound.
        unstable_tail: how many last ids may change when bytes are appended to the input; None: any number.
    """

    @property
    def name(self) -> str: ...
    @property
    def vocab_size(self) -> int: ...
    @property
    def fingerprint(self) -> str: ...
    @property
    def lossless(self) -> bool: ...
    @property
    def unambiguous(self) -> bool: ...
    @property
    def unstable_tail(self) -> int | None: ...

    def encode(self, data: bytes) -> npt.NDArray[np.uint32]:
        """Ids of `data`, uint32[n]; text that looks like a special token is ordinary text.

        DataError when the codec is not lossless and cannot spell `data`.
        """
        ...

    def decode(self, tokens: npt.ArrayLike) -> bytes:
        """The bytes that `tokens`, integers[n], stand for. DataError on an id outside [0, vocab_size)."""
        ...

    def byte_lengths(self, tokens: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Bytes newly decodable after each token, int64[n]; for encode(data) they sum to len(data)."""
        ...


def checked_ids(tokens: npt.ArrayLike, codec: Codec) -> npt.NDArray[np.integer]:
    """`tokens` as a one-dimensional integer array with every id in [0, vocab_size), or DataError."""
    ids = np.asarray(tokens)
    if ids.size == 0:
        return np.zeros(0, np.uint32)
    if ids.ndim != 1 or ids.dtype.kind not in "iu":
        raise TypeError(f"tokens must be one-dimensional integers, not {ids.dtype} of shape {ids.shape}")
    bad = (ids >= codec.vocab_size) | (ids < 0)
    if bad.any():
        position = int(np.argmax(bad))
        raise DataError(
            f"id {ids[position]} at position {position} is outside [0, {codec.vocab_size}) of {codec.name}; "
            "decode with the codec that encoded, and leave out end-of-document ids"
        )
    return ids
