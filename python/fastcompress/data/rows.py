"""Rows: how documents become arrays of fixed shape that a model learns from and is scored on. NumPy only.

A row is a dictionary of columns. The first dimension of each column counts events, the things that are predicted one
after the other: tokens, or bytes, or fields of LZ tokens. Names that begin with "target" say what happened; a model may
compare its prediction of an event with them and must not read them otherwise. All other columns are what a model may
know before the event. The column "weight", float32[S], is 1 where an event counts and 0 for padding and prompts.

Every kind of model names the rows that it reads (`ModelConfig.rows`), so that loader, trainer and evaluation pass rows
on without knowing what is in them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from fastcompress.errors import ConfigError, DataError

if TYPE_CHECKING:
    from fastcompress.codec import Codec
    from fastcompress.data.shards import TokenDataset

Row = dict[str, npt.NDArray[Any]]
WEIGHT = "weight"
_LOOK_BACK = 2048  # ids read at first to find where a document begins; each further part is twice as long


class Rows(Protocol):
    """A way to cut documents into rows.

    Attributes:
        codec: The codec whose shards the training rows are read from.
        context_length: Events per row, S.
        tokens_per_row: Tokens of the dataset that consecutive training rows are apart.
        columns: Type and shape of each column of a training row, by name.
        fingerprint: 64 hexadecimal digits, the SHA-256 of everything that decides the rows.
        is_exact: True if a document has these rows only, by its codec or by a mask that forbids all others: then the
            nats of its events are those of its bytes. Otherwise they are an upper bound.
    """

    @property
    def codec(self) -> Codec: ...
    @property
    def context_length(self) -> int: ...
    @property
    def tokens_per_row(self) -> int: ...
    @property
    def columns(self) -> dict[str, tuple[np.dtype[Any], tuple[int, ...]]]: ...
    @property
    def fingerprint(self) -> str: ...
    @property
    def is_exact(self) -> bool: ...

    def training_row(self, dataset: TokenDataset, begin: int) -> Row:
        """Return the row that begins at token `begin` of a dataset, whose last token is followed by its first."""
        ...

    def scoring_rows(self, document: bytes, stride: int) -> Iterator[Row]:
        """Yield the rows in which a document is scored, at most S events each.

        Over all rows, each event has weight 1 exactly once, in order, and the last of them is the end of the document.
        The first row scores all its events; each later one begins `stride` events after the one before.
        """
        ...

    def stack(self, rows: Sequence[Row]) -> Row:
        """Return a batch: each column of the rows along a new first dimension, padded at the end to equal lengths."""
        ...

    def num_events(self, dataset: TokenDataset) -> float:
        """The number of events that count in the training rows of a whole dataset, whose bytes they pay for."""
        ...

    def num_bytes(self, document: bytes) -> int:
        """The number of bytes that the events of a document's scoring rows pay for."""
        ...


class Window(NamedTuple):
    """Events `[begin, end)` of a document, of which those from `scored` on count."""

    begin: int
    scored: int
    end: int


def scoring_windows(num_events: int, context_length: int, stride: int) -> Iterator[Window]:
    """Windows of at most `context_length` whose scored ranges tile `[0, num_events)` in order."""
    yield Window(0, 0, min(context_length, num_events))
    for begin in range(stride, num_events - context_length + stride, stride):
        end = begin + context_length
        yield Window(begin, end - stride, min(end, num_events))


def num_symbols(codec: Codec) -> int:
    """The number of ids in a dataset of `codec`: its own, and one more, its `vocab_size`, that ends a document."""
    return codec.vocab_size + 1


def spell(codec: Codec, document: bytes) -> npt.NDArray[np.uint32]:
    """Encode a document. Raises DataError if the codec's byte lengths do not add up to it.

    A codec may be set to keep tokens that decode to other text (``keeps_wrong``): then they need not.
    """
    tokens = codec.encode(document)  # uint32[n]
    spelled = int(codec.byte_lengths(tokens).sum())
    if spelled != len(document) and not getattr(codec, "keeps_wrong", False):
        raise DataError(f"codec {codec.name} accounts for {spelled} of the {len(document)} bytes")
    return tokens


def document_before(dataset: TokenDataset, begin: int, end_of_document: int) -> Iterator[npt.NDArray[np.uint32]]:
    """Yield the ids before token `begin` that belong to its document, in parts, uint32[...], the last part first."""
    longest = _LOOK_BACK
    while begin > 0:
        part = dataset.read(max(0, begin - longest), begin)
        ends = np.flatnonzero(part == end_of_document)
        yield part[ends[-1] + 1 :] if len(ends) else part
        begin, longest = 0 if len(ends) else begin - len(part), 2 * longest


@dataclass(frozen=True)
class TokenRows:
    """Rows of token ids: event t predicts the id that follows the ids up to and including `input[t]`.

    Columns: input and target, int64[S], and weight. A document is [end of document] + ids, followed by its end, so the
    first id is predicted too.

    Attributes:
        codec: The codec whose ids these are.
        context_length: Ids per row, S.
    """

    codec: Codec
    context_length: int

    def __post_init__(self) -> None:
        if self.context_length < 1:
            raise ConfigError(f"context_length is {self.context_length}; it must be at least 1")

    @property
    def spelling(self) -> Codec:
        """The codec whose ids the events are: that of the shards, unless rows spell its tokens in other symbols."""
        return self.codec

    @property
    def tokens_per_row(self) -> int:
        """Rows of an epoch lie end to end."""
        return self.context_length

    @property
    def is_exact(self) -> bool:
        """Nothing is masked here, so the codec alone decides."""
        return self.spelling.unambiguous

    @property
    def num_given(self) -> int:
        """Ids at the beginning of each document that are given, so that they cost nothing."""
        return 0

    @property
    def num_symbols(self) -> int:
        """Ids that a target may be, the end of a document included."""
        return num_symbols(self.spelling)

    @property
    def end_of_document(self) -> int:
        """The id that ends a document, and stands before its first id."""
        return self.spelling.vocab_size

    @property
    def padding(self) -> dict[str, int]:
        """What columns are padded with, by name; others with 0."""
        return {"input": self.end_of_document, "target": self.end_of_document}

    @property
    def columns(self) -> dict[str, tuple[np.dtype[Any], tuple[int, ...]]]:
        """Type and shape of each column, by name."""
        shape = (self.context_length,)
        return {
            "input": (np.dtype(np.int64), shape),
            "target": (np.dtype(np.int64), shape),
            WEIGHT: (np.dtype(np.float32), shape),
        }

    @cached_property
    def fingerprint(self) -> str:
        """The SHA-256 of the kind of rows, the codec and the length, as 64 hexadecimal digits."""
        text = f"fastcompress token rows, version 1\n{self.codec.fingerprint}\n{self.context_length}\n"
        return hashlib.sha256(text.encode()).hexdigest()

    def training_row(self, dataset: TokenDataset, begin: int) -> Row:
        """Return S ids from `begin` on as input, and their successors as target."""
        num_tokens, num_read = dataset.num_tokens, self.context_length + 1
        before_end = min(num_read, num_tokens - begin)
        window = np.empty(num_read, np.int64)  # int64[S + 1]
        window[:before_end] = dataset.read(begin, begin + before_end)
        window[before_end:] = dataset.read(0, num_read - before_end)
        return token_row(window, np.ones(self.context_length, np.float32))

    def scoring_rows(self, document: bytes, stride: int) -> Iterator[Row]:
        """Yield the windows of a document; the head of this file says what is scored where."""
        end = [self.end_of_document]
        sequence = np.concatenate((end, spell(self.spelling, document), end)).astype(np.int64)  # int64[n + 2]
        for begin, scored, stop in scoring_windows(len(sequence) - 1, self.context_length, stride):
            weight = np.zeros(stop - begin, np.float32)
            weight[scored - begin :] = 1.0
            yield token_row(sequence[begin : stop + 1], weight)

    def stack(self, rows: Sequence[Row]) -> Row:
        """Pad with the end of the document and weight 0, on the right, where a causal model cannot see it."""
        length = max(len(row[WEIGHT]) for row in rows)
        batch = {}
        for name, (dtype, shape) in self.columns.items():
            batch[name] = np.full((len(rows), length, *shape[1:]), self.padding.get(name, 0), dtype)
            for index, row in enumerate(rows):
                batch[name][index, : len(row[name])] = row[name]
        return batch

    def num_events(self, dataset: TokenDataset) -> float:
        """Each token is predicted once, also the ends of documents."""
        return dataset.num_tokens * self.context_length / self.tokens_per_row

    def num_bytes(self, document: bytes) -> int:
        """All bytes of a document are paid for."""
        return len(document)


def token_row(window: npt.NDArray[np.int64], weight: npt.NDArray[np.float32]) -> Row:
    """Make a row of S + 1 ids; copies, so that changing one column in place never changes the other."""
    return {"input": window[:-1].copy(), "target": window[1:].copy(), WEIGHT: weight}
