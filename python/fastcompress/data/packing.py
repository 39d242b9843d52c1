"""Packing: the ways in which documents share rows of fixed length. NumPy only.

As events, a document of n ids is n + 1 predictions: each id and then the end of the document, each after all ids before
it. The packings of a dataset into rows of S events:

- "none": rows are windows of the stream of all documents, and a position may see the documents before its own.
- "split": the same windows, but a position sees its own document only. A document that a window does not hold goes on
  in another row, whose part does not see the first one. Nothing is padded; what the windows of an epoch leave out of
  the stream, fewer than S tokens, is elsewhere in each epoch.
- "best_fit": no document is cut unless it has more than S events, and a position sees its own document only. Longer
  documents are cut into pieces of S events and a rest. Pieces are packed into rows by best fit decreasing: the longest
  first, each into the fullest row with room for it. Every event is in exactly one row, nothing is left out, and what
  remains of a row is padding with weight 0. (H. Ding et al., "Fewer Truncations Improve Language Modeling", ICML 2024,
  calls this best-fit packing.)

The rows of "best_fit" are planned once per dataset: O(n log n) time for n pieces (less than a second for a million),
12 bytes of memory per piece and 8 per row afterwards, and at most 80 per piece meanwhile. The other packings plan
nothing. Rows with documents of their own have the columns "position" and "document", as those of chats have
(`fastcompress.data.chat_rows`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

import numpy as np
import numpy.typing as npt

from fastcompress.data.best_fit import best_fit
from fastcompress.data.mixture import Mixture
from fastcompress.data.rows import WEIGHT, Row, Rows, TokenRows
from fastcompress.errors import ConfigError

if TYPE_CHECKING:
    from fastcompress.data.shards import TokenDataset

Packing = Literal["none", "best_fit", "split"]
PACKINGS: tuple[Packing, ...] = get_args(Packing)
_INTEGERS = np.dtype(np.int64)


@dataclass(frozen=True)
class DocumentRows(TokenRows):
    """Rows of ids in which a position sees its own document only, for models that honour these columns.

    Columns: those of `TokenRows`, and position and document, int64[S]. Positions count from 0 in each document's part
    of the row; the parts are numbered from 0, and padding is -1.
    """

    @property
    def columns(self) -> dict[str, tuple[np.dtype[Any], tuple[int, ...]]]:
        """Type and shape of each column, by name."""
        return {**super().columns, **dict.fromkeys(("position", "document"), (_INTEGERS, (self.context_length,)))}

    @property
    def padding(self) -> dict[str, int]:
        """Padding is a document of its own."""
        return {**super().padding, "document": -1}

    @cached_property
    def fingerprint(self) -> str:
        """The SHA-256 of the kind of rows, the codec and the length, as 64 hexadecimal digits."""
        return self._fingerprint("document")

    def training_row(self, dataset: TokenDataset, begin: int) -> Row:
        """Return S ids from `begin` on as input, and their successors as target."""
        row = super().training_row(dataset, begin)
        begins = np.flatnonzero(row["input"] == self.end_of_document)
        lengths = np.diff(np.unique([0, *begins.tolist(), self.context_length]))
        return {**row, **_apart(lengths.tolist())}

    def stack(self, rows: Sequence[Row]) -> Row:
        """Pad on the right; scoring rows, each of one document, remain without position and document."""
        return super().stack(rows) if "document" in rows[0] else self._whole.stack(rows)

    @property
    def _whole(self) -> TokenRows:
        return TokenRows(self.codec, self.context_length)

    def _fingerprint(self, kind: str) -> str:
        text = f"fastcompress {kind} rows, version 1\n{self.codec.fingerprint}\n{self.context_length}\n"
        return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True)
class PackedRows(DocumentRows):
    """The rows of `PackedDocuments`, packed by best fit and padded at the end."""

    @property
    def tokens_per_row(self) -> int:
        """A row is a unit of its own, not a slice of a token stream."""
        return 1

    @cached_property
    def fingerprint(self) -> str:
        """The SHA-256 of the kind of rows, the codec and the length, as 64 hexadecimal digits."""
        return self._fingerprint("best-fit")

    def training_row(self, dataset: TokenDataset, begin: int) -> Row:
        """Return row number `begin` of packed documents, padded to S events."""
        pieces = cast("PackedDocuments", dataset).pieces(begin)
        weights = [np.ones(len(ids) - 1, np.float32) for ids in pieces]
        return padded(joined(pieces, weights), self.context_length, self.padding)

    def num_events(self, dataset: TokenDataset) -> float:
        """Each token is predicted once, also the ends of documents."""
        return cast("PackedDocuments", dataset).num_events


class PackedDocuments:
    """Documents packed into rows by best fit: a dataset for `PackedRows`, whose "tokens" are whole rows.

    Attributes:
        source: The dataset of the documents.
        num_tokens: The number of rows, at least two: a loader needs two, so a single row is stored twice.
        num_events: The number of events of all documents.
        num_padding: The number of places in the rows that no event has.
        num_cut: The number of documents with more events than a row, which are cut.
        num_documents, num_bytes, vocab_size, codec_fingerprint: Those of the source.
    """

    def __init__(self, source: TokenDataset, context_length: int) -> None:
        """Plan the rows of `context_length` events, at least 1."""
        self.source = source
        self.vocab_size, self.codec_fingerprint = source.vocab_size, source.codec_fingerprint
        self.num_documents, self.num_bytes = source.num_documents, source.num_bytes
        self.num_events = source.num_tokens
        begins, lengths, self.num_cut = _cut(self._document_begins(), source.num_tokens, context_length)
        order, counts = best_fit(lengths, context_length)
        self.num_padding = len(counts) * context_length - self.num_events
        if len(counts) == 1:
            order, counts = np.tile(order, 2), np.tile(counts, 2)
        self._begins, self._lengths = begins[order], lengths[order].astype(np.int32)  # of pieces, row by row
        self._rows = np.concatenate(([0], np.cumsum(counts)))  # of each row, its first piece
        self.num_tokens = len(counts)

    def __repr__(self) -> str:
        return f"<PackedDocuments: {self.num_tokens:,} rows, {self.num_padding:,} places padded, of {self.source!r}>"

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the source."""
        return self.source.fingerprint

    def document_ranges(self) -> Iterator[tuple[int, int]]:
        """Yield the range of each document's ids in the source, without its end-of-document id."""
        return self.source.document_ranges()

    def row_ranges(self, row: int) -> list[tuple[int, int]]:
        """Return the ranges of the source's tokens that a row predicts."""
        pieces = slice(int(self._rows[row]), int(self._rows[row + 1]))
        begins, lengths = self._begins[pieces].tolist(), self._lengths[pieces].tolist()
        return [(begin, begin + length) for begin, length in zip(begins, lengths, strict=True)]

    def pieces(self, row: int) -> list[npt.NDArray[np.uint32]]:
        """Return the ids of each piece of a row, uint32[n + 1]: the id before its first event, and its n targets."""
        last = self.source.num_tokens - 1  # before the first document, as before any other, is an end
        before = [self.source.read(begin - 1, begin) if begin else self.source.read(last, last + 1)
                  for begin, _ in self.row_ranges(row)]  # fmt: skip
        targets = [self.source.read(begin, end) for begin, end in self.row_ranges(row)]
        return [np.concatenate(parts) for parts in zip(before, targets, strict=True)]

    def _document_begins(self) -> npt.NDArray[np.int64]:
        return np.fromiter(
            (begin for begin, _ in self.source.document_ranges()), np.int64, count=self.source.num_documents
        )


def pack(
    dataset: TokenDataset | Mixture, rows: Rows, packing: Packing
) -> tuple[TokenDataset | PackedDocuments | Mixture, Rows]:
    """Return a dataset and its rows under a packing; the head of this file defines them.

    Args:
        dataset: The dataset, or a mixture, each of whose datasets is packed by itself.
        rows: The rows of packing "none".
        packing: "none", "best_fit" or "split".

    Raises:
        ConfigError: There is no such packing, or `rows` are not `TokenRows`, the only ones that can be packed.
    """
    if packing not in PACKINGS:
        raise ConfigError(f"packing is {packing!r}; it must be one of {', '.join(PACKINGS)}")
    if packing == "none":
        return dataset, rows
    if type(rows) is not TokenRows:
        raise ConfigError(f"packing is {packing}; it must be none for a model that reads {type(rows).__name__}")
    if packing == "split":
        return dataset, DocumentRows(rows.codec, rows.context_length)
    packed_rows = PackedRows(rows.codec, rows.context_length)
    if not isinstance(dataset, Mixture):
        return PackedDocuments(dataset, rows.context_length), packed_rows
    parts = [cast("TokenDataset", PackedDocuments(part, rows.context_length)) for part in dataset.datasets]
    return Mixture(list(zip(parts, dataset.counts, strict=True))), packed_rows


def joined(pieces: Sequence[npt.NDArray[np.uint32]], weights: Sequence[npt.NDArray[Any]]) -> Row:
    """Concatenate pieces to the columns of one row, each with positions and a number of its own.

    Args:
        pieces: The ids of each, uint32[n + 1]: the id before its first event, and its n targets.
        weights: The weight of each event, [n], of each piece.
    """
    return {
        "input": np.concatenate([ids[:-1] for ids in pieces]).astype(np.int64),
        "target": np.concatenate([ids[1:] for ids in pieces]).astype(np.int64),
        **_apart([len(weight) for weight in weights]),
        WEIGHT: np.concatenate(weights).astype(np.float32),
    }


def padded(row: Row, length: int, padding: dict[str, int]) -> Row:
    """Append events that do not count; columns that `padding` does not name are padded with 0."""
    missing = length - len(row[WEIGHT])
    return {
        name: np.pad(column, [(0, missing)] + [(0, 0)] * (column.ndim - 1), constant_values=padding.get(name, 0))
        for name, column in row.items()
    }


def _apart(lengths: Sequence[int]) -> Row:
    """Return the columns position and document of pieces of some lengths."""
    return {
        "position": np.concatenate([np.arange(length) for length in lengths]),
        "document": np.repeat(np.arange(len(lengths)), lengths),
    }


def _cut(
    documents: npt.NDArray[np.int64], num_tokens: int, capacity: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], int]:
    """Cut documents into pieces of at most `capacity` tokens; their ends are tokens, too.

    Args:
        documents: The first token of each document, int64[n].
        num_tokens: The number of all tokens.
        capacity: The largest length of a piece.

    Returns:
        Begin and length of each piece, int64[pieces] each, and the number of documents with several pieces.
    """
    lengths = np.diff(documents, append=num_tokens)  # int64[n]
    pieces = -(-lengths // capacity)  # int64[n]
    numbers = np.arange(pieces.sum()) - np.repeat(np.cumsum(pieces) - pieces, pieces)  # of each piece in its document
    offsets = numbers * capacity
    begins = np.repeat(documents, pieces) + offsets
    return begins, np.minimum(np.repeat(lengths, pieces) - offsets, capacity), int((pieces > 1).sum())
