"""Proxy compression: a model that learns mostly from compressed text, and reads and writes bytes.

After "Proxy Compression for Language Modeling" (arXiv 2602.04289). Training text is cut into pieces, nine tenths of
which are compressed by another codec, so that a row holds more of it; the rest is raw bytes. A mark before each piece
says which it is. Afterwards the model is only given bytes and only asked for bytes.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import numpy.typing as npt

from fastcompress._arguments import as_integer, as_number, shown
from fastcompress.codec.files import CodecKind, codec_from_json, codec_to_json, register_codec
from fastcompress.codec.protocol import Codec, CodecBase, Text, as_bytes, validate_ids
from fastcompress.errors import ConfigError

_UNIT = 1 << 32  # shares are compared in units of 2**-32


class ProxyCodec(CodecBase):
    """The ids of a codec, V of them, then 256 for bytes, the mark before compressed text, and the one before bytes.

    Texts are encoded as bytes; training data as pieces of both forms (`encode_for_training`). Marks decode to nothing.

    >>> from fastcompress.codec import LZPCodec
    >>> codec = ProxyCodec(LZPCodec(), piece_bytes=8)
    >>> ids = codec.encode("to be")
    >>> bool(ids[0] == codec.bytes_mark), codec.decode(ids)
    (True, b'to be')
    >>> codec.decode(codec.encode_for_training("to be or not to be"))
    b'to be or not to be'
    """

    lossless = True  # as bytes
    unambiguous = False  # compressed text decodes, too
    max_unstable_tokens: int | None = 0

    def __init__(self, compressed: Codec, raw_share: float = 0.1, piece_bytes: int = 4096) -> None:
        """Make a codec.

        Args:
            compressed: The codec that compresses.
            raw_share: The share of pieces of training text that stay bytes, 0 to 1.
            piece_bytes: The bytes of a piece, at least 1; the last one of a document is shorter.

        Raises:
            TypeError: An argument is of a wrong type.
            ConfigError: A setting is out of range.
        """
        if not isinstance(compressed, Codec):
            raise TypeError(f"compressed is {shown(compressed)}; it must be a codec")
        if isinstance(compressed, ProxyCodec):
            raise ConfigError(f"{compressed.name} has bytes and marks already; use it as it is")
        self.compressed, self.raw_share = compressed, as_number(raw_share, "raw_share", "a number from 0 to 1")
        if not 0 <= self.raw_share <= 1:
            raise ConfigError(f"raw_share is {raw_share}; it must be 0 to 1")
        self.piece_bytes = as_integer(piece_bytes, "piece_bytes", 1, 1 << 40)
        self.first_byte = compressed.vocab_size
        self.compressed_mark, self.bytes_mark = self.first_byte + 256, self.first_byte + 257
        self.vocab_size = self.first_byte + 258
        self.name: str = f"proxy-{compressed.name}"
        settings = f"raw_share={self.raw_share!r} piece_bytes={self.piece_bytes}"
        self.fingerprint = hashlib.sha256(
            f"fastcompress proxy codec, version 1\n{settings}\n{compressed.fingerprint}".encode()
        ).hexdigest()

    def _arguments(self) -> dict[str, Any]:
        return {"compressed": self.compressed, "raw_share": self.raw_share, "piece_bytes": self.piece_bytes}

    def encode(self, data: Text) -> npt.NDArray[np.uint32]:
        """Encode as bytes, behind their mark, which also stands before no bytes at all."""
        values = np.frombuffer(as_bytes(data), np.uint8).astype(np.uint32)
        return np.concatenate((np.array([self.bytes_mark], np.uint32), values + np.uint32(self.first_byte)))

    def encode_for_training(self, data: Text) -> npt.NDArray[np.uint32]:
        """Encode as pieces, each as bytes or compressed, behind its mark.

        Of consecutive pieces, those that stay bytes are spread evenly; a hash of the document says where they begin. So
        the result is a function of the document and the codec. Raises DataError if `compressed` cannot encode it.
        """
        document = as_bytes(data)
        position = int.from_bytes(hashlib.sha256(document).digest()[:4], "little")
        step = round(self.raw_share * _UNIT)
        parts = []
        for begin in range(0, max(1, len(document)), self.piece_bytes):
            piece = document[begin : begin + self.piece_bytes]
            position = (position + step) % _UNIT
            if position < step:
                parts.append(self.encode(piece))
            else:
                parts += [np.array([self.compressed_mark], np.uint32), self.compressed.encode(piece)]
        return np.concatenate(parts)

    def decode(self, tokens: npt.ArrayLike) -> bytes:
        """Decode both forms; ids of the other codec are decoded as far as they stand together."""
        ids = validate_ids(tokens, self)
        pieces = []
        for part in _runs(ids, self.first_byte):
            if ids[part.start] < self.first_byte:
                pieces.append(self.compressed.decode(ids[part]))
            else:
                values = ids[part] - np.uint32(self.first_byte)
                pieces.append(values[values < 256].astype(np.uint8).tobytes())
        return b"".join(pieces)

    def byte_lengths(self, tokens: npt.ArrayLike) -> npt.NDArray[np.int64]:
        ids = validate_ids(tokens, self)
        lengths = (ids < self.compressed_mark).astype(np.int64)
        for part in _runs(ids, self.first_byte):
            if ids[part.start] < self.first_byte:
                lengths[part] = self.compressed.byte_lengths(ids[part])
        return lengths


def _runs(ids: npt.NDArray[np.uint32], border: int) -> list[slice]:
    """Return where the longest stretches of ids below the border and of ids from it on are, in order."""
    cuts = np.flatnonzero(np.diff(ids < border)) + 1
    ends = [*cuts.tolist(), len(ids)] if len(ids) else []
    return [slice(begin, end) for begin, end in zip([0, *ends], ends, strict=False)]


register_codec(
    CodecKind(
        "proxy",
        ProxyCodec,
        lambda codec: {
            "compressed": codec_to_json(codec.compressed),
            "raw_share": codec.raw_share,
            "piece_bytes": codec.piece_bytes,
        },
        lambda state: ProxyCodec(
            codec_from_json(state["compressed"], "the codec that compresses"), state["raw_share"], state["piece_bytes"]
        ),
    )
)
