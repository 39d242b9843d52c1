"""Chats: read from JSON lines, spelled as ids of which only the answers count, and packed into rows. NumPy only.

A line is an object with `messages`, each of which has a `role` (system, user or assistant) and `content`, a text:

    {"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello!"}]}

As ids, a chat is the end of a document, then for each message the mark of its role, its text, and the mark that ends
it. An event counts if it is part of an answer, or the end of one.

A row holds several whole chats, each with positions from 0 and a number of its own in the column "document"; a model
lets a position see its own chat only. Padding at the end of a row is a document, too.
"""

from __future__ import annotations

import hashlib
import json
from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fastcompress.codec import ChatCodec
from fastcompress.codec.chat import ROLES
from fastcompress.data.rows import WEIGHT, Row
from fastcompress.errors import DataError

if TYPE_CHECKING:
    from fastcompress.data.shards import TokenDataset

NUM_SHOWN = 3  # lines named in an error


@dataclass(frozen=True)
class Message:
    """What one speaker says: `role` is one of `ROLES`."""

    role: str
    content: str


Chat = tuple[Message, ...]


class MalformedChatError(ValueError):
    """The reason why a line is no chat to learn from; the same words for all lines with that problem."""


def parse_chat(line: str | bytes) -> Chat:
    """Read a chat from one line of JSON. Raises MalformedChatError."""
    try:
        document = json.loads(line)
    except (ValueError, RecursionError):
        raise MalformedChatError("is not JSON (perhaps cut off)") from None
    messages = document.get("messages") if isinstance(document, dict) else None
    if not isinstance(messages, list):
        raise MalformedChatError("has no list of messages")
    return tuple(_message(number, fields) for number, fields in enumerate(messages))


def _message(number: int, fields: Any) -> Message:
    if not isinstance(fields, dict):
        raise MalformedChatError("has a message that is not an object")
    role, content = fields.get("role"), fields.get("content")
    if role not in ROLES:
        raise MalformedChatError(f"has a role that is not one of {', '.join(ROLES)}")
    if not isinstance(content, str):
        raise MalformedChatError("has a message whose content is not a text")
    if role == "system" and number > 0:
        raise MalformedChatError("has a system message that is not the first one")
    try:
        content.encode()
    except UnicodeEncodeError:
        raise MalformedChatError("has half of a surrogate pair in a text") from None
    return Message(role, content)


def check_complete(chat: Chat) -> None:
    """Raise MalformedChatError unless a chat ends with an answer and no answer is empty."""
    if not chat or chat[-1].role != "assistant":
        raise MalformedChatError("does not end with an answer (perhaps cut off)")
    if any(message.role == "assistant" and not message.content for message in chat):
        raise MalformedChatError("has an empty answer")


@dataclass(frozen=True)
class ChatFile:
    """The chats of a file.

    Attributes:
        chats: In the order of the file.
        skipped: How many lines had each problem.
    """

    chats: list[Chat]
    skipped: Counter[str] = field(default_factory=Counter)


def read_chats(path: Path, *, skip_malformed: bool = False) -> ChatFile:
    """Read a file of JSON lines; empty lines are passed over.

    Args:
        path: The file, in UTF-8.
        skip_malformed: Leave out and count lines that are no chat to learn from, instead of refusing the file.

    Raises:
        DataError: The file cannot be read, a line is malformed, or no chat is left.
    """
    try:
        lines = Path(path).read_bytes().removeprefix(b"\xef\xbb\xbf").split(b"\n")
    except (OSError, ValueError) as error:  # ValueError: a null character in the name
        reason = getattr(error, "strerror", None) or error
        raise DataError(f"{path}: cannot be read ({reason}); name a file of chats in JSON lines") from error
    chats: list[Chat] = []
    problems: list[tuple[int, str]] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            chat = parse_chat(line)
            check_complete(chat)
            chats.append(chat)
        except MalformedChatError as error:
            problems.append((number, str(error)))
    if problems and not skip_malformed:
        shown = "; ".join(f"line {number} {problem}" for number, problem in problems[:NUM_SHOWN])
        more = f"; and {len(problems) - NUM_SHOWN} more" if len(problems) > NUM_SHOWN else ""
        raise DataError(
            f"{path}: {len(problems)} of {len(problems) + len(chats)} lines are no chats to learn from: {shown}{more}; "
            "mend them, or leave them out with skip_malformed=True"
        )
    if not chats:
        raise DataError(f"{path}: holds no chat; it must have one JSON object with messages a line")
    return ChatFile(chats, Counter(problem for _, problem in problems))


def split_chats(chats: Sequence[Chat]) -> tuple[list[Chat], list[Chat]]:
    """Divide chats into those to train on and those held out, by their hashes: about one in twenty is held out.

    Equal chats are kept once, so that none is on both sides. Raises DataError if fewer than two are left.
    """
    distinct = {chat_hash(chat): chat for chat in chats}
    if len(distinct) < 2:
        raise DataError("there is only one chat, so none can be held out; give a file of validation chats, or more")
    border = max(b"\x0c\xcc" + bytes(30), min(distinct))  # 5 %, and at least one
    held_out = {digest for digest in distinct if digest <= border}
    if len(held_out) == len(distinct):
        held_out.remove(max(held_out))
    train = [chat for digest, chat in distinct.items() if digest not in held_out]
    return train, [distinct[digest] for digest in distinct if digest in held_out]


def chat_to_json(chat: Chat) -> bytes:
    """Return a chat as a line that `parse_chat` reads: the form in which chats are documents."""
    messages = [{"role": message.role, "content": message.content} for message in chat]
    return json.dumps({"messages": messages}).encode()


def answer_bytes(chat: Chat) -> int:
    """The number of bytes in the answers of a chat."""
    return sum(len(message.content.encode()) for message in chat if message.role == "assistant")


def chat_hash(chat: Chat) -> bytes:
    """The SHA-256 of a chat."""
    return hashlib.sha256(chat_to_json(chat)).digest()


@dataclass(frozen=True)
class SpelledChat:
    """A chat as ids, uint32[n + 1], the end of a document first; and which of the n events count, bool[n]."""

    ids: npt.NDArray[np.uint32]
    weight: npt.NDArray[np.bool_]
    answer_bytes: int


@dataclass(frozen=True)
class ChatRows:
    """Rows of packed chats.

    Columns: input, target, position and document, int64[S]; weight, float32[S].

    Attributes:
        codec: The ids of texts and marks.
        context_length: Events per row, S.
    """

    codec: ChatCodec
    context_length: int
    tokens_per_row: int = field(default=1, init=False)  # a chat is no stretch of a stream of tokens
    is_exact: bool = field(default=False, init=False)

    @property
    def columns(self) -> dict[str, tuple[np.dtype[Any], tuple[int, ...]]]:
        """Type and shape of each column, by name."""
        shape = (self.context_length,)
        whole = dict.fromkeys(("input", "target", "position", "document"), (np.dtype(np.int64), shape))
        return {**whole, WEIGHT: (np.dtype(np.float32), shape)}

    @cached_property
    def fingerprint(self) -> str:
        """The SHA-256 of the kind of rows, the codec and the length, as 64 hexadecimal digits."""
        text = f"fastcompress chat rows, version 1\n{self.codec.fingerprint}\n{self.context_length}\n"
        return hashlib.sha256(text.encode()).hexdigest()

    def prompt(self, chat: Chat) -> list[int]:
        """Spell messages and the mark after which the next answer begins. Raises DataError as the codec does."""
        return [*self.spell(chat).ids.tolist(), self.codec.role_ids["assistant"]]

    def spell(self, chat: Chat) -> SpelledChat:
        """Spell a chat. Raises DataError if the codec cannot spell a text."""
        end = self.codec.end_of_message
        ids, weight = [self.codec.vocab_size], [False]
        for message in chat:
            text = self.codec.encode(message.content).tolist()
            ids += [self.codec.role_ids[message.role], *text, end]
            weight += [False] + [message.role == "assistant"] * (len(text) + 1)
        return SpelledChat(np.array(ids, np.uint32), np.array(weight[1:], np.bool_), answer_bytes(chat))

    def training_row(self, dataset: TokenDataset, begin: int) -> Row:
        """Return row number `begin` of packed chats, padded to S events."""
        assert isinstance(dataset, PackedChats)
        return _padded(joined(dataset.row(begin)), self.context_length)

    def scoring_rows(self, document: bytes, stride: int) -> Iterator[Row]:
        """Yield the one row of a chat, which `chat_to_json` has made a document of."""
        yield joined([self.spell(parse_chat(document))])

    def stack(self, rows: Sequence[Row]) -> Row:
        """Return a batch: each column of the rows along a new first dimension, padded at the end to equal lengths."""
        length = max(len(row[WEIGHT]) for row in rows)
        padded = [_padded(row, length) for row in rows]
        return {name: np.stack([row[name] for row in padded]) for name in self.columns}

    def num_events(self, dataset: TokenDataset) -> float:
        """The number of events that count, which are those of answers."""
        assert isinstance(dataset, PackedChats)
        return dataset.num_events

    def num_bytes(self, document: bytes) -> int:
        """The number of bytes in the answers of a chat."""
        return answer_bytes(parse_chat(document))


def joined(chats: Sequence[SpelledChat]) -> Row:
    """Lay chats end to end."""
    lengths = [len(chat.weight) for chat in chats]
    return {
        "input": np.concatenate([chat.ids[:-1] for chat in chats]).astype(np.int64),
        "target": np.concatenate([chat.ids[1:] for chat in chats]).astype(np.int64),
        "position": np.concatenate([np.arange(length) for length in lengths]),
        "document": np.repeat(np.arange(len(chats)), lengths),
        WEIGHT: np.concatenate([chat.weight for chat in chats]).astype(np.float32),
    }


def _padded(row: Row, length: int) -> Row:
    """Add events that do not count, in a document of their own."""
    missing = length - len(row[WEIGHT])
    fill = dict.fromkeys(row, 0) | {"document": -1}
    return {name: np.pad(column, (0, missing), constant_values=fill[name]) for name, column in row.items()}


class PackedChats:
    """Chats in rows, as few as best fit decreasing makes: a dataset for `ChatRows`, whose "tokens" are whole rows.

    Attributes:
        num_too_long: Chats that no row can hold, which are left out: a cut chat would teach cut answers.
        num_documents: Chats that are in rows.
        num_tokens: Rows; at least two, since a loader needs as many: a single row is there twice.
        num_events: Events that count.
        num_bytes: Bytes of the answers.
        codec_fingerprint: That of the codec.
        fingerprint: The SHA-256 of the chats, 64 hexadecimal digits.
    """

    def __init__(self, chats: Sequence[Chat], rows: ChatRows) -> None:
        """Spell and pack. Raises DataError if no chat fits a row, or the codec cannot spell one."""
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
        """Yield where each document is: a row counts as one, of a single token."""
        yield from ((index, index) for index in range(self.num_tokens))

    def row(self, index: int) -> list[SpelledChat]:
        """Return the chats of a row."""
        return [self._chats[number] for number in self._packed[index]]


def pack(lengths: Sequence[int], capacity: int) -> list[list[int]]:
    """Divide things among bins, the longest first, each into the fullest bin that has room: best fit decreasing.

    Args:
        lengths: At most `capacity` each.
        capacity: What a bin holds.

    Returns:
        The indices in each bin.
    """
    bins: list[list[int]] = []
    with_room: dict[int, list[int]] = {}  # room to bins
    rooms: list[int] = []  # the keys of `with_room`, in order
    for index in sorted(range(len(lengths)), key=lambda index: -lengths[index]):
        place = bisect_left(rooms, lengths[index])
        if place == len(rooms):
            bins.append([])
            chosen, room = len(bins) - 1, capacity
        else:
            room = rooms[place]
            chosen = with_room[room].pop()
            if not with_room[room]:
                del with_room[room], rooms[place]
        bins[chosen].append(index)
        left = room - lengths[index]
        if left not in with_room:
            with_room[left] = []
            insort(rooms, left)
        with_room[left].append(chosen)
    return bins
