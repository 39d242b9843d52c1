"""The bytes of a deflate stream as tokens, a baseline from which models are known to learn little.

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
from fastcompress.errors import DataError

_RAW = -15  # no header and no checksum, which would carry no information


class GzipCodec(CodecBase):
    """Raw deflate as zlib writes it; the ids are its bytes.

    The bytes that zlib writes depend on its version, so the fingerprint does too. Not unambiguous: many streams
    decompress to the same text.

    >>> codec = GzipCodec()
    >>> codec.decode(codec.encode("to be or not to be"))
    b'to be or not to be'
    """

    vocab_size = 256
    lossless = True
    unambiguous = False
    max_unstable_tokens: int | None = None

    def __init__(self, level: int = 9) -> None:
        """Make a codec of zlib's compression `level`, 1 to 9. Raises ConfigError if it is out of range."""
        self.level = level = as_integer(level, "level", 1, 9)
        self.name = f"gzip-{level}"
        self.fingerprint = hashlib.sha256(
            f"fastcompress gzip codec, version 1\nlevel {level}, zlib {zlib.ZLIB_RUNTIME_VERSION}".encode()
        ).hexdigest()

    def _arguments(self) -> dict[str, Any]:
        return {"level": self.level}

    def encode(self, data: Text) -> npt.NDArray[np.uint32]:
        compressor = zlib.compressobj(self.level, zlib.DEFLATED, _RAW)
        compressed = compressor.compress(as_bytes(data)) + compressor.flush()
        return np.frombuffer(compressed, np.uint8).astype(np.uint32)

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
        for position, token in enumerate(validate_ids(tokens, self).astype(np.uint8).tobytes()):
            if decompressor.eof:
                raise DataError(
                    f"token {position} comes after the end of the deflate stream; decode one text at a time"
                )
            try:
                pieces.append(decompressor.decompress(bytes((token,))))
            except zlib.error as error:
                raise DataError(f"token {position} does not continue a deflate stream ({error})") from None
        return pieces


def _from_state(state: dict[str, int]) -> Codec:
    return GzipCodec(state["level"])


register_codec(CodecKind("gzip", GzipCodec, lambda codec: {"level": codec.level}, _from_state))
