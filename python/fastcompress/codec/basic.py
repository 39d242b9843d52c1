"""Bytes, characters and byte-pair vocabularies as codecs."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fastcompress._arguments import as_instance, shown
from fastcompress.bpe import BPE
from fastcompress.codec.files import CodecKind, from_text, register_codec, to_text
from fastcompress.codec.protocol import CodecBase, Text, as_bytes, validate_ids
from fastcompress.errors import ConfigError, DataError


class ByteCodec(CodecBase):
    """Every byte is its own id.

    >>> ByteCodec().encode("abc").tolist()
    [97, 98, 99]
    """

    name = "byte"
    vocab_size = 256
    lossless = True
    unambiguous = True
    max_unstable_tokens: int | None = 0
    decodes_by_token = True
    fingerprint = hashlib.sha256(b"fastcompress byte codec, version 1").hexdigest()

    def _arguments(self) -> dict[str, Any]:
        return {}

    def encode(self, data: Text) -> npt.NDArray[np.uint32]:
        return np.frombuffer(as_bytes(data), np.uint8).astype(np.uint32)

    def decode(self, tokens: npt.ArrayLike) -> bytes:
        return validate_ids(tokens, self).astype(np.uint8).tobytes()

    def byte_lengths(self, tokens: npt.ArrayLike) -> npt.NDArray[np.int64]:
        return np.ones(len(validate_ids(tokens, self)), np.int64)


class CharCodec(CodecBase):
    """The characters (Unicode code points) of a fixed alphabet; an id is a character's rank in code point order.

    Text must be UTF-8. A character outside the alphabet is an error; nothing is substituted for it.

    >>> codec = CharCodec.train([b"banana"])
    >>> codec.characters, codec.encode("nab").tolist()
    ('abn', [2, 0, 1])
    """

    lossless = False
    unambiguous = True
    max_unstable_tokens: int | None = 0
    decodes_by_token = True

    def __init__(self, characters: Iterable[str]) -> None:
        """Make a codec of the given alphabet.

        Args:
            characters: The alphabet in any order: single code points, each once, no surrogates. Read once.

        Raises:
            ConfigError: The alphabet is empty, or is not made of such characters.
        """
        characters = list(characters) if isinstance(characters, Iterable) else [characters]
        for character in characters:
            if not isinstance(character, str):
                raise TypeError(
                    f"characters has {shown(character)}; it must be a str, or a sequence of single characters"
                )
            if len(character) != 1 or 0xD800 <= ord(character) <= 0xDFFF:
                raise ConfigError(f"{character!r} is not one character; an alphabet is made of single ones")
        points = np.array(sorted(map(ord, characters)), np.uint32)
        if len(points) == 0:
            raise ConfigError("the alphabet is empty; train it on documents that hold text")
        if (points[1:] == points[:-1]).any():
            raise ConfigError(f"{chr(points[:-1][points[1:] == points[:-1]][0])!r} occurs twice in the alphabet")
        self.characters = "".join(map(chr, points))
        self.vocab_size = len(points)
        self.name = f"char-{self.vocab_size}"
        self.fingerprint = hashlib.sha256(
            b"fastcompress char codec, version 1\n" + points.astype("<u4").tobytes()
        ).hexdigest()
        self._points: npt.NDArray[np.uint32] = points
        self._lengths = np.array([len(character.encode()) for character in self.characters], np.int64)
        # Code point to id; points outside the alphabet, also the one entry past its end, map to vocab_size.
        self._ids: npt.NDArray[np.uint32] = np.full(int(points[-1]) + 2, self.vocab_size, np.uint32)
        self._ids[points] = np.arange(self.vocab_size, dtype=np.uint32)

    def _arguments(self) -> dict[str, Any]:
        return {"characters": self.characters}

    @classmethod
    def train(cls, documents: Iterable[Text]) -> CharCodec:
        """Make the codec of all characters in `documents`.

        Raises DataError if a document is not UTF-8, or if there is no character at all.
        """
        if isinstance(documents, str | bytes | bytearray | memoryview):
            documents = [documents]
        if not isinstance(documents, Iterable):
            raise TypeError(f"documents is {shown(documents)}; it must be an iterable of str or bytes")
        alphabet: set[str] = set()
        for document in documents:
            alphabet.update(_decode_utf8(as_bytes(document)))
        if not alphabet:
            raise DataError("no characters to make an alphabet of; train on documents that hold text")
        return cls(sorted(alphabet))

    def encode(self, data: Text) -> npt.NDArray[np.uint32]:
        text = _decode_utf8(as_bytes(data))
        points = np.frombuffer(text.encode("utf-32-le"), "<u4")
        ids: npt.NDArray[np.uint32] = self._ids[np.minimum(points, len(self._ids) - 1)]
        unknown = ids == self.vocab_size
        if unknown.any():
            position = int(np.argmax(unknown))
            offset = len(text[:position].encode())
            raise DataError(
                f"character {text[position]!r} (U+{ord(text[position]):04X}) at byte {offset} is not in the "
                f"alphabet of {self.name}; train the alphabet on this text too, or use the byte codec"
            )
        return ids

    def decode(self, tokens: npt.ArrayLike) -> bytes:
        points: npt.NDArray[np.uint32] = self._points[validate_ids(tokens, self)]
        return points.astype("<u4").tobytes().decode("utf-32-le").encode()

    def byte_lengths(self, tokens: npt.ArrayLike) -> npt.NDArray[np.int64]:
        lengths: npt.NDArray[np.int64] = self._lengths[validate_ids(tokens, self)]
        return lengths


class BPECodec(CodecBase):
    """A byte-pair vocabulary. The text of a special token is encoded as ordinary text.

    Not unambiguous: many sequences of ids decode to the same text, and encoding uses only one of them. Tokens that a
    tokenizer.json adds without calling them special are used as everywhere else.

    Lossless if the vocabulary is (`BPE.lossless`). One that normalizes to NFC, for example, is not: it refuses text
    that its ids would not decode to, byte for byte.

    >>> codec = BPECodec(BPE.train(["to be or not to be"] * 8, vocab_size=260, pattern="whitespace"))
    >>> codec.decode(codec.encode("to be"))
    b'to be'
    """

    unambiguous = False
    max_unstable_tokens: int | None = None
    decodes_by_token = True

    def __init__(self, tokenizer: BPE) -> None:
        """Make a codec of a vocabulary. Raises TypeError if `tokenizer` is not a BPE."""
        self.tokenizer = as_instance(tokenizer, BPE, "tokenizer")
        self.lossless: bool = tokenizer.lossless
        self.vocab_size: int = tokenizer.vocab_size
        self.name = f"bpe-{self.vocab_size}"
        self.fingerprint = hashlib.sha256(
            f"fastcompress bpe codec, version 1\n{tokenizer.fingerprint}".encode()
        ).hexdigest()

    def _arguments(self) -> dict[str, Any]:
        return {"tokenizer": self.tokenizer}

    def encode(self, data: Text) -> npt.NDArray[np.uint32]:
        data = as_bytes(data)
        tokens = self.tokenizer.encode_to_numpy(data, np.uint32, disallowed_special=())
        if not self.lossless and self.tokenizer.decode_bytes(tokens) != data:
            raise DataError(
                f"the ids of {self.name} would not decode to this text byte for byte, because its vocabulary "
                "normalizes text (to NFC, for example); normalize the text first, or use another vocabulary"
            )
        return tokens

    def encode_batch(self, texts: Sequence[Text]) -> list[npt.NDArray[np.uint32]]:
        """Encode several texts, each as `encode` does, in a single call of the core."""
        if not self.lossless:
            return [self.encode(text) for text in texts]
        tokens, offsets = self.tokenizer.encode_batch_to_numpy(list(map(as_bytes, texts)), 1, disallowed_special=())
        ends = offsets.tolist()
        return [tokens[begin:end] for begin, end in itertools.pairwise(ends)]

    def decode(self, tokens: npt.ArrayLike) -> bytes:
        return self.tokenizer.decode_bytes(validate_ids(tokens, self))

    def byte_lengths(self, tokens: npt.ArrayLike) -> npt.NDArray[np.int64]:
        lengths: npt.NDArray[np.int64] = self.tokenizer.token_lengths[validate_ids(tokens, self)]
        return lengths


def _decode_utf8(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(
            f"byte 0x{data[error.start]:02X} at offset {error.start} is not valid UTF-8, so the text has no "
            "characters; use the byte codec, or a BPE one, for such data"
        ) from None


register_codec(CodecKind("byte", ByteCodec, lambda codec: {}, lambda state: ByteCodec()))
register_codec(
    CodecKind(
        "char",
        CharCodec,
        lambda codec: {"characters": codec.characters},
        lambda state: CharCodec(state["characters"]),
    )
)
register_codec(
    CodecKind(
        "bpe",
        BPECodec,
        lambda codec: {"vocabulary": to_text(codec.tokenizer.to_bytes())},
        lambda state: BPECodec(BPE.from_bytes(from_text(state["vocabulary"]))),
    )
)
