"""Rows of a proxy codec: trained on pieces of both forms, scored and continued as bytes alone."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from fastcompress.codec import ChatCodec, Codec, ProxyCodec
from fastcompress.codec.canonical import Canonical, MarkedStates
from fastcompress.data.canonical_rows import LEGAL, CanonicalRows
from fastcompress.data.rows import WEIGHT, Row, TokenRows
from fastcompress.data.shards import TokenDataset


def reads_bytes_alone(codec: Codec) -> bool:
    """Return whether rows of a codec are `ProxyRows`: it is a proxy codec, or has one below the marks of chats."""
    return isinstance(codec.base if isinstance(codec, ChatCodec) else codec, ProxyCodec)


@dataclass(frozen=True)
class _ByteStates:
    """State 0 stands before the mark of bytes, which alone is legal, and state 1 behind it, where all bytes are."""

    codec: ProxyCodec

    @property
    def memory(self) -> int:
        """See `codec.canonical.Canonical`."""
        return 1

    def state_after(self, last: npt.ArrayLike) -> int:
        """See `codec.canonical.Canonical`."""
        return int(np.size(last) > 0)

    def states_of(self, ids: npt.ArrayLike, state: int = 0) -> npt.NDArray[np.uint32]:
        """See `codec.canonical.Canonical`."""
        states = np.ones(np.size(ids) + 1, np.uint32)
        states[0] = state
        return states

    def legal_rows(self, states: npt.ArrayLike) -> npt.NDArray[np.uint8]:
        """See `codec.canonical.Canonical`."""
        return self._masks[np.asarray(states, np.int64)]

    @cached_property
    def _masks(self) -> npt.NDArray[np.uint8]:
        is_legal = np.zeros((2, self.codec.vocab_size), np.bool_)
        is_legal[0, self.codec.bytes_mark] = True
        is_legal[1, self.codec.first_byte : self.codec.first_byte + 256] = True
        return np.packbits(is_legal, axis=1, bitorder="little")


@dataclass(frozen=True)
class ProxyRows(CanonicalRows):
    """Rows of ids for training; for scores, rows of bytes with a mask that forbids everything else.

    The mark of bytes at the beginning of a document is given and costs nothing, as it is the user who chooses bytes.
    Then a document has one spelling with a probability, and bits per byte are exact. Marks of chats, if the codec has
    them, stay legal, so that bits per byte are an upper bound.
    """

    codec: ProxyCodec | ChatCodec

    def __post_init__(self) -> None:
        TokenRows.__post_init__(self)

    @property
    def num_given(self) -> int:
        """The mark."""
        return 1

    @cached_property
    def canonical(self) -> Canonical:
        """The states of the encoder of bytes."""
        if isinstance(self.codec, ChatCodec):
            return MarkedStates(_ByteStates(cast("ProxyCodec", self.codec.base)), self.codec)
        return _ByteStates(self.codec)

    @property
    def columns(self) -> dict[str, tuple[np.dtype[Any], tuple[int, ...]]]:
        """Those of `TokenRows`: training has no masks."""
        return {name: column for name, column in super().columns.items() if name != LEGAL}

    @cached_property
    def fingerprint(self) -> str:
        """The SHA-256 of the kind of rows, the codec and the length, as 64 hexadecimal digits."""
        text = f"fastcompress proxy rows, version 1\n{self.codec.fingerprint}\n{self.context_length}\n"
        return hashlib.sha256(text.encode()).hexdigest()

    def training_row(self, dataset: TokenDataset, begin: int) -> Row:
        """Return the row of ids from `begin` on, in which both forms occur."""
        return TokenRows.training_row(self, dataset, begin)

    def stack(self, rows: Sequence[Row]) -> Row:
        """Pad as `TokenRows` does, and masks, if the rows have them, as `CanonicalRows`."""
        batch = TokenRows.stack(self, rows)
        if LEGAL in rows[0]:
            batch[LEGAL] = np.full((*batch["input"].shape, rows[0][LEGAL].shape[1]), self.padding[LEGAL], np.uint8)
            for masks, row in zip(batch[LEGAL], rows, strict=True):
                masks[: len(row[LEGAL])] = row[LEGAL]
        return batch

    def scoring_rows(self, document: bytes, stride: int) -> Iterator[Row]:
        """Yield the windows of a document as bytes; the mark has weight 0."""
        for number, row in enumerate(super().scoring_rows(document, stride)):
            if number == 0:
                row[WEIGHT][: self.num_given] = 0.0
            yield row
