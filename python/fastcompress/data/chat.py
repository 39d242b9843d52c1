"""Chats: what they are, how they are read from JSON lines, and how some are held out.

A line is an object with `messages`, each of which has a `role` (system, user or assistant) and `content`, a text:

    {"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello!"}]}

`chat_rows.py` turns chats into rows of ids for a model.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fastcompress._deprecated import renamed_names
from fastcompress.codec.chat import ROLES
from fastcompress.errors import DataError

NUM_SHOWN = 3  # lines named in an error


@dataclass(frozen=True)
class Message:
    """One message of a chat; `role` is one of `ROLES`."""

    role: str
    content: str


Chat = tuple[Message, ...]


class MalformedChatError(ValueError):
    """A line is not a chat to train on. The message is the same for all lines with that problem."""


def parse_chat(line: str | bytes) -> Chat:
    """Parse a line of JSON as a chat. Raises MalformedChatError if it is not one."""
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
        chats: The chats, in the order of the file.
        skipped: The number of lines with each problem.
    """

    chats: list[Chat]
    skipped: Counter[str] = field(default_factory=Counter)


def read_chats(path: Path, *, skip_malformed: bool = False) -> ChatFile:
    """Read a file of JSON lines; empty lines are ignored.

    Args:
        path: The file, in UTF-8.
        skip_malformed: Skip and count malformed lines instead of refusing the file.

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
            f"{path}: {len(problems)} of {len(problems) + len(chats)} lines are not chats to train on: {shown}{more}; "
            "fix them, or skip them with skip_malformed=True"
        )
    if not chats:
        raise DataError(f"{path}: holds no chat; it must have one JSON object with messages per line")
    return ChatFile(chats, Counter(problem for _, problem in problems))


def split_chats(chats: Sequence[Chat]) -> tuple[list[Chat], list[Chat]]:
    """Divide chats by their hashes into those to train on and those held out, about one in twenty.

    Of equal chats only one is kept, so that none is on both sides. Raises DataError if fewer than two are left.
    """
    distinct = {chat_hash(chat): chat for chat in chats}
    if len(distinct) < 2:
        raise DataError("there is only one chat, so none can be held out; give more, or a file of validation chats")
    threshold = max(b"\x0c\xcc" + bytes(30), min(distinct))  # 5 %, and at least one
    held_out = {digest for digest in distinct if digest <= threshold}
    if len(held_out) == len(distinct):
        held_out.remove(max(held_out))
    train = [chat for digest, chat in distinct.items() if digest not in held_out]
    return train, [distinct[digest] for digest in distinct if digest in held_out]


def chat_to_json(chat: Chat) -> bytes:
    """Return a chat as a line that `parse_chat` reads, the form that chats have as documents."""
    messages = [{"role": message.role, "content": message.content} for message in chat]
    return json.dumps({"messages": messages}).encode()


def answer_bytes(chat: Chat) -> int:
    """Return the number of bytes in the answers of a chat."""
    return sum(len(message.content.encode()) for message in chat if message.role == "assistant")


def chat_hash(chat: Chat) -> bytes:
    """Return the SHA-256 of a chat."""
    return hashlib.sha256(chat_to_json(chat)).digest()


__getattr__ = renamed_names(
    __name__,
    {
        name: f"fastcompress.data.chat_rows.{name}"
        for name in ("ChatRows", "PackedChats", "SpelledChat", "joined", "pack")
    },
)
