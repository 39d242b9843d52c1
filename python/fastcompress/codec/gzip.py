"""The bytes of a deflate stream as tokens, or pairs of them, a baseline from which models are known to learn little.

Huffman codes change from block to block and do not end at byte boundaries, so a byte has no fixed meaning. In a study
this codec marks the poor end of the scale.
"""

from __future__ import annotations

import hashlib
import zlib
from typing import Any

import numpy as np
import numpy.typing as npt

from fastcompress._arguments import as_integer
from fastcompress.codec.files import CodecKind, register_codec
from fastcompress.codec.protocol import Codec, CodecBase, Text, as_bytes, validate_ids
from fastcompress.errors import ConfigError, DataError

_RAW = -15  # no header and no checksum, which would carry no information


class GzipCodec(CodecBase):
    """Raw deflate as zlib writes it; the ids are its bytes, or pairs of bytes, of which the first is the upper one.

    An odd number of bytes is made even by a zero behind the stream.

    The bytes that zlib writes depend on its version, so the fingerprint does too. Not unambiguous: many streams
    decompress to the same text.

    >>> codec = GzipCodec()
    >>> codec.decode(codec.encode("to be or not to be"))
    b'to be or not to be'
    """

    lossless = True
    unambiguous = False
    is_incremental = False  # the ids of a text end the stream
    max_unstable_tokens: int | None = None

    def __init__(self, level: int = 9, token_bits: int = 8) -> None:
        """Make a codec.

        Args:
            level: The compression level of zlib, 1 to 9.
            token_bits: Bits per token, 8 or 16.

        Raises:
            ConfigError: A setting is out of range.
        """
        self.level = level = as_integer(level, "level", 1, 9)
        if as_integer(token_bits, "token_bits", 8, 16) not in (8, 16):
            raise ConfigError(f"token_bits is {token_bits}; it must be 8 or 16")
        self.token_bits = token_bits
        self.vocab_size = 1 << token_bits
        self.name = f"gzip-{level}" + ("" if token_bits == 8 else f"-by-{token_bits}")
        self.fingerprint = hashlib.sha256(
            f"fastcompress gzip codec, version 1\nlevel {level}, zlib {zlib.ZLIB_RUNTIME_VERSION}".encode()
            + (b"" if token_bits == 8 else b", pairs of bytes")
        ).hexdigest()

    def _arguments(self) -> dict[str, Any]:
        return {"level": self.level, "token_bits": self.token_bits}

    def encode(self, data: Text) -> npt.NDArray[np.uint32]:
        compressor = zlib.compressobj(self.level, zlib.DEFLATED, _RAW)
        compressed = compressor.compress(as_bytes(data)) + compressor.flush()
        if self.token_bits == 8:
            return np.frombuffer(compressed, np.uint8).astype(np.uint32)
        return np.frombuffer(compressed + bytes(len(compressed) % 2), ">u2").astype(np.uint32)

    def decode(self, tokens: npt.ArrayLike) -> bytes:
        """Decode the beginning of a deflate stream, as far as its bytes determine the text.

        Raises DataError if the tokens do not begin a deflate stream, or go on after its end.
        """
        return b"".join(self._decoded(tokens))

    def byte_lengths(self, tokens: npt.ArrayLike) -> npt.NDArray[np.int64]:
        return np.array([len(piece) for piece in self._decoded(tokens)], np.int64)

    def _decoded(self, tokens: npt.ArrayLike) -> list[bytes]:
        """Return the bytes that become decodable with each token."""
        decompressor = zlib.decompressobj(_RAW)
        pieces = []
        size = self.token_bits // 8
        code = validate_ids(tokens, self).astype(">u2" if size == 2 else "u1").tobytes()
        for begin in range(0, len(code), size):
            position, token = begin // size, code[begin : begin + size]
            if decompressor.eof:
                raise DataError(
                    f"token {position} comes after the end of the deflate stream; decode one text at a time"
                )
            try:
                pieces.append(decompressor.decompress(token))
            except zlib.error as error:
                raise DataError(f"token {position} does not continue a deflate stream ({error})") from None
            if decompressor.unused_data not in (b"", b"\0"):
                raise DataError(f"token {position} goes on after the end of the deflate stream")
        return pieces


def _to_state(codec: GzipCodec) -> dict[str, int]:
    return {"level": codec.level, **({} if codec.token_bits == 8 else {"token_bits": codec.token_bits})}


def _from_state(state: dict[str, int]) -> Codec:
    return GzipCodec(state["level"], state.get("token_bits", 8))


register_codec(CodecKind("gzip", GzipCodec, _to_state, _from_state))
