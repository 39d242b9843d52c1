"""A codec with the marks of a chat: who speaks, and where a message ends."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from fastcompress.codec.files import CodecKind, codec_from_json, codec_to_json, register_codec
from fastcompress.codec.protocol import Codec, CodecBase, Text, validate_ids
from fastcompress.errors import ConfigError

ROLES = ("system", "user", "assistant")
MARKS = (*(f"<|{role}|>" for role in ROLES), "<|end|>")  # their texts in files of other libraries


class ChatCodec(CodecBase):
    """Another codec's ids, and after them one id for each mark: who speaks (a role), and the end of a message.

    No text is encoded as a mark: text that looks like one is ordinary text, so a message cannot end itself or speak
    for another. A mark decodes to no bytes. Ids of the other codec between two marks are decoded by themselves.

    >>> from fastcompress.codec import ByteCodec
    >>> codec = ChatCodec(ByteCodec())
    >>> codec.role_ids, codec.end_of_message, codec.vocab_size
    ({'system': 256, 'user': 257, 'assistant': 258}, 259, 260)
    >>> codec.decode([257, 72, 105, 259]), len(codec.encode("<|end|>"))
    (b'Hi', 7)
    """

    unambiguous = False  # marks may stand anywhere without changing the bytes

    def __init__(self, base: Codec) -> None:
        """Add the marks to a codec. Raises ConfigError if it has them already."""
        if isinstance(base, ChatCodec):
            raise ConfigError(f"{base.name} has the marks of a chat already; use it as it is")
        self.base = base
        self.lossless = base.lossless
        self.max_unstable_tokens = base.max_unstable_tokens
        self.decodes_by_token = getattr(base, "decodes_by_token", False)
        self.is_incremental = getattr(base, "is_incremental", True)
        self.name: str = f"chat-{base.name}"
        self.role_ids = {role: base.vocab_size + number for number, role in enumerate(ROLES)}
        self.end_of_message = base.vocab_size + len(ROLES)
        self.vocab_size = base.vocab_size + len(MARKS)
        content = "\n".join(("fastcompress chat codec, version 1", base.fingerprint, *MARKS))
        self.fingerprint = hashlib.sha256(content.encode()).hexdigest()

    def _arguments(self) -> dict[str, Any]:
        return {"base": self.base}

    def encode(self, data: Text) -> npt.NDArray[np.uint32]:
        return self.base.encode(data)

    def decode(self, tokens: npt.ArrayLike) -> bytes:
        ids = validate_ids(tokens, self)
        return b"".join(self.base.decode(ids[part]) for part in self._ordinary(ids))

    def byte_lengths(self, tokens: npt.ArrayLike) -> npt.NDArray[np.int64]:
        ids = validate_ids(tokens, self)
        lengths = np.zeros(len(ids), np.int64)
        for part in self._ordinary(ids):
            lengths[part] = self.base.byte_lengths(ids[part])
        return lengths

    def _ordinary(self, ids: npt.NDArray[np.uint32]) -> Iterator[slice]:
        """Where the stretches of the other codec's ids between marks are."""
        begin = 0
        for mark in [*np.flatnonzero(ids >= self.base.vocab_size).tolist(), len(ids)]:
            if begin < mark:
                yield slice(begin, mark)
            begin = mark + 1


register_codec(
    CodecKind(
        "chat",
        ChatCodec,
        lambda codec: {"base": codec_to_json(codec.base)},
        lambda state: ChatCodec(codec_from_json(state["base"], "the codec below the marks")),
    )
)
