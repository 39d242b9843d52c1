"""Rows of token ids that say which are legal, so that only the encoder's own spelling of a text has a probability."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from fastcompress.codec import ChatCodec
from fastcompress.codec.canonical import Canonical, canonical_of
from fastcompress.data.rows import Row, TokenRows
from fastcompress.data.shards import TokenDataset

LEGAL = "legal"


@dataclass(frozen=True)
class CanonicalRows(TokenRows):
    """Rows of ids with masks.

    Columns: those of `TokenRows`, and ``legal``, uint8[S, (vocab_size + 7) // 8]: bit v % 8, counted from the lowest,
    of byte v // 8 is set if id v may be the target; the end of a document always may. It is a function of the ids
    before.

    Raises ConfigError if there is no exact mask for the codec.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        canonical_of(self.codec)

    @property
    def is_exact(self) -> bool:
        """True if every document has one spelling with a probability, False if marks of chats may stand in it."""
        return not isinstance(self.codec, ChatCodec)

    @property
    def canonical(self) -> Canonical:
        """The states of the encoder."""
        return canonical_of(self.codec)

    @property
    def columns(self) -> dict[str, tuple[np.dtype[Any], tuple[int, ...]]]:
        """Type and shape of each column, by name."""
        num_bytes = (self.codec.vocab_size + 7) // 8
        return {**super().columns, LEGAL: (np.dtype(np.uint8), (self.context_length, num_bytes))}

    @property
    def padding(self) -> dict[str, int]:
        """In the padding, every id is legal."""
        return {**super().padding, LEGAL: 255}

    @cached_property
    def fingerprint(self) -> str:
        """The SHA-256 of the kind of rows, the codec and the length, as 64 hexadecimal digits."""
        text = f"fastcompress canonical token rows, version 1\n{self.codec.fingerprint}\n{self.context_length}\n"
        return hashlib.sha256(text.encode()).hexdigest()

    def training_row(self, dataset: TokenDataset, begin: int) -> Row:
        """Return the row from token `begin` on, with the masks of its documents as if read from their beginnings."""
        row = super().training_row(dataset, begin)
        before = dataset.read(max(0, begin - self.canonical.memory), begin).astype(np.int64)
        before = before[np.append(-1, np.flatnonzero(before == self.end_of_document))[-1] + 1 :]  # of the same document
        states = self._states(row["input"], self.canonical.state_after(before))  # uint32[S]
        return {**row, LEGAL: self.canonical.legal_rows(states)}

    def scoring_rows(self, document: bytes, stride: int) -> Iterator[Row]:
        """Yield the windows of a document with the masks of the whole document."""
        states = self._states(np.array([self.end_of_document, *self.codec.encode(document).tolist()]))  # uint32[n + 1]
        begin = 0
        for row in super().scoring_rows(document, stride):
            yield {**row, LEGAL: self.canonical.legal_rows(states[begin : begin + len(row["input"])])}
            begin += stride

    def _states(self, ids: npt.NDArray[np.int64], state: int = 0) -> npt.NDArray[np.uint32]:
        """Return the state after each id, from one on; the end of a document leads to that in which each begins."""
        states = np.zeros(len(ids), np.uint32)
        begin = 0
        for end in [*np.flatnonzero(ids == self.end_of_document).tolist(), len(ids)]:
            states[begin:end] = self.canonical.states_of(ids[begin:end], state)[1:]
            begin, state = end + 1, 0
        return states
