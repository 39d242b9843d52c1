"""Rows of chats: chats as ids, of which only the answers count, packed into rows of fixed length. NumPy only.

As ids, a chat begins with the end-of-document id. Each message follows as the mark of its role, its text, and the mark
that ends it. An event counts in the loss if it is part of an answer, or the end of one.

A row holds several whole chats. Each has positions from 0 and a number of its own in the column "document", so that a
model lets a position see its own chat only. Padding at the end of a row counts as a document.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fastcompress.codec import ChatCodec
from fastcompress.codec.canonical import Canonical
from fastcompress.data import packing
from fastcompress.data.best_fit import best_fit
from fastcompress.data.canonical_rows import LEGAL
from fastcompress.data.chat import Chat, answer_bytes, chat_hash, parse_chat
from fastcompress.data.rows import WEIGHT, Row
from fastcompress.errors import DataError

if TYPE_CHECKING:
    from fastcompress.data.shards import TokenDataset

_PADDING = {"document": -1, LEGAL: 255}  # a document of its own, in which every id is legal


@dataclass(frozen=True)
class SpelledChat:
    """A chat as ids, uint32[n + 1], after an end-of-document id; `weight`, bool[n], marks the events that count."""

    ids: npt.NDArray[np.uint32]
    weight: npt.NDArray[np.bool_]
    answer_bytes: int


@dataclass(frozen=True)
class ChatRows:
    """Rows of packed chats.

    Columns: input, target, position and document, int64[S]; weight, float32[S]; with `canonical` also legal, as
    `CanonicalRows` has it.

    Attributes:
        codec: The codec with the marks of chats.
        context_length: Events per row, S.
        canonical: The states that say which ids are legal, those of the codec with its marks; None: all are.
    """

    codec: ChatCodec
    context_length: int
    canonical: Canonical | None = None
    tokens_per_row: int = field(default=1, init=False)  # a row is a unit of its own, not a slice of a token stream
    is_exact: bool = field(default=False, init=False)

    @property
    def columns(self) -> dict[str, tuple[np.dtype[Any], tuple[int, ...]]]:
        """The type and shape of each column, by name."""
        shape = (self.context_length,)
        whole: dict[str, tuple[np.dtype[Any], tuple[int, ...]]] = dict.fromkeys(
            ("input", "target", "position", "document"), (np.dtype(np.int64), shape)
        )
        columns = {**whole, WEIGHT: (np.dtype(np.float32), shape)}
        if self.canonical is not None:
            columns[LEGAL] = (np.dtype(np.uint8), (*shape, (self.codec.vocab_size + 7) // 8))
        return columns

    @cached_property
    def fingerprint(self) -> str:
        """The SHA-256 of the kind of rows, the codec and the length, as 64 hexadecimal digits."""
        kind = "chat" if self.canonical is None else "canonical chat"
        text = f"fastcompress {kind} rows, version 1\n{self.codec.fingerprint}\n{self.context_length}\n"
        return hashlib.sha256(text.encode()).hexdigest()

    def prompt(self, chat: Chat) -> list[int]:
        """Encode messages and the mark after which the next answer begins. Raises DataError as the codec does."""
        return [*self.spell(chat).ids.tolist(), self.codec.role_ids["assistant"]]

    def spell(self, chat: Chat) -> SpelledChat:
        """Encode a chat. Raises DataError if the codec cannot encode a text."""
        end = self.codec.end_of_message
        ids, weight = [self.codec.vocab_size], [False]
        for message in chat:
            text = self.codec.encode(message.content).tolist()
            ids += [self.codec.role_ids[message.role], *text, end]
            weight += [False] + [message.role == "assistant"] * (len(text) + 1)
        return SpelledChat(np.array(ids, np.uint32), np.array(weight[1:], np.bool_), answer_bytes(chat))

    def joined(self, chats: Sequence[SpelledChat]) -> Row:
        """Concatenate chats to the columns of one row."""
        row = joined(chats)
        if self.canonical is not None:
            states = [self.canonical.states_of(chat.ids[1:])[:-1] for chat in chats]  # before each target
            row[LEGAL] = self.canonical.legal_rows(np.concatenate(states))
        return row

    def training_row(self, dataset: TokenDataset, begin: int) -> Row:
        """Return row number `begin` of packed chats, padded to S events."""
        assert isinstance(dataset, PackedChats)
        return packing.padded(self.joined(dataset.row(begin)), self.context_length, _PADDING)

    def scoring_rows(self, document: bytes, stride: int) -> Iterator[Row]:
        """Yield the only row of a chat, given as `chat_to_json` writes it."""
        yield self.joined([self.spell(parse_chat(document))])

    def stack(self, rows: Sequence[Row]) -> Row:
        """Return a batch: each column of the rows along a new first dimension, padded at the end to equal lengths."""
        length = max(len(row[WEIGHT]) for row in rows)
        padded = [packing.padded(row, length, _PADDING) for row in rows]
        return {name: np.stack([row[name] for row in padded]) for name in self.columns}

    def num_events(self, dataset: TokenDataset) -> float:
        """Return the number of events that count."""
        assert isinstance(dataset, PackedChats)
        return dataset.num_events

    def num_bytes(self, document: bytes) -> int:
        """Return the number of bytes in the answers of a chat."""
        return answer_bytes(parse_chat(document))


def joined(chats: Sequence[SpelledChat]) -> Row:
    """Concatenate chats to the columns of one row, without masks."""
    return packing.joined([chat.ids for chat in chats], [chat.weight for chat in chats])


class PackedChats:
    """Chats packed into rows by best fit decreasing: a dataset for `ChatRows`, whose "tokens" are whole rows.

    Attributes:
        num_too_long: The number of chats longer than a row. They are left out: a cut chat would teach cut answers.
        num_documents: The number of chats in rows.
        num_tokens: The number of rows, at least two: a loader needs two, so a single row is stored twice.
        num_events: The number of events that count.
        num_bytes: The number of bytes in the answers.
        codec_fingerprint: The fingerprint of the codec.
        fingerprint: The SHA-256 of the chats, 64 hexadecimal digits.
    """

    def __init__(self, chats: Sequence[Chat], rows: ChatRows) -> None:
        """Encode and pack chats. Raises DataError if no chat fits into a row, or the codec cannot encode one."""
        spelled = [rows.spell(chat) for chat in chats]
        self._chats = [chat for chat in spelled if len(chat.weight) <= rows.context_length]
        self.num_too_long = len(spelled) - len(self._chats)
        if not self._chats:
            shortest = min((len(chat.weight) for chat in spelled), default=0)
            raise DataError(
                f"no chat fits the context of {rows.context_length} tokens (the shortest has {shortest}); use a model "
                "with a longer context, or shorter chats"
            )
        self.num_documents = len(self._chats)
        self.num_bytes = sum(chat.answer_bytes for chat in self._chats)
        self.codec_fingerprint = rows.codec.fingerprint
        self.fingerprint = hashlib.sha256(b"".join(map(chat_hash, chats))).hexdigest()
        packed = pack([len(chat.weight) for chat in self._chats], rows.context_length)
        self._packed = packed if len(packed) > 1 else packed * 2
        self.num_tokens = len(self._packed)
        self.num_events = sum(int(chat.weight.sum()) for chat in self._chats)

    def document_ranges(self) -> Iterator[tuple[int, int]]:
        """Yield the range of each document; a row counts as a document of one token."""
        yield from ((index, index) for index in range(self.num_tokens))

    def row(self, index: int) -> list[SpelledChat]:
        """Return the chats of a row."""
        return [self._chats[number] for number in self._packed[index]]


def pack(lengths: Sequence[int], capacity: int) -> list[list[int]]:
    """Return the indices of the items in each bin, packed by `fastcompress.data.best_fit`."""
    order, counts = best_fit(np.array(lengths, np.int64), capacity)
    ends = np.cumsum(counts).tolist()
    return [order[end - count : end].tolist() for end, count in zip(ends, counts.tolist(), strict=True)]
