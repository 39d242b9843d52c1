"""The bytes of a compressed file as tokens: the baseline that is known not to be learned.

Huffman codes change their meaning from block to block, and a byte of the output from bit to bit (seed 003 reports
1.56 to 2.34 bits a byte where bytes alone reach 1.03 to 1.29). A study needs it as the other end of the scale.
"""

from __future__ import annotations

import hashlib
import zlib

import numpy as np
import numpy.typing as npt

from fastcompress.codec.files import CodecKind, register_codec
from fastcompress.codec.protocol import Codec, checked_ids
from fastcompress.errors import ConfigError, DataError

_RAW = -15  # no header, no checksum: every byte says something


class GzipCodec:
    """Raw deflate, as zlib writes it at a level: ids are its bytes.

    What zlib writes depends on its version, so the fingerprint does. Many outputs stand for one text, hence not
    unambiguous.
    """

    vocab_size = 256
    lossless = True
    unambiguous = False
    unstable_tail: int | None = None

    def __init__(self, level: int = 9) -> None:
        if not 1 <= level <= 9:
            raise ConfigError(f"level is {level}; it must be 1 to 9")
        self.level = level
        self.name = f"gzip-{level}"
        self.fingerprint = hashlib.sha256(
            f"fastcompress gzip codec, version 1\nlevel {level}, zlib {zlib.ZLIB_RUNTIME_VERSION}".encode()
        ).hexdigest()

    def encode(self, data: bytes) -> npt.NDArray[np.uint32]:
        compressor = zlib.compressobj(self.level, zlib.DEFLATED, _RAW)
        compressed = compressor.compress(data) + compressor.flush()
        return np.frombuffer(compressed, np.uint8).astype(np.uint32)

    def decode(self, tokens: npt.ArrayLike) -> bytes:
        """What has been said up to the last token, which need not end the stream. DataError: no deflate stream."""
        return b"".join(self._decoded(tokens))

    def byte_lengths(self, tokens: npt.ArrayLike) -> npt.NDArray[np.int64]:
        return np.array([len(piece) for piece in self._decoded(tokens)], np.int64)

    def _decoded(self, tokens: npt.ArrayLike) -> list[bytes]:
        """The bytes that become known with each token."""
        decompressor = zlib.decompressobj(_RAW)
        pieces = []
        for position, token in enumerate(checked_ids(tokens, self).astype(np.uint8).tobytes()):
            if decompressor.eof:
                raise DataError(
                    f"token {position} stands behind the end of the deflate stream; decode one text at a time"
                )
            try:
                pieces.append(decompressor.decompress(bytes((token,))))
            except zlib.error as error:
                raise DataError(f"token {position} does not continue a deflate stream ({error})") from None
        return pieces


def _from_state(state: dict[str, int]) -> Codec:
    return GzipCodec(state["level"])


register_codec(CodecKind("gzip", GzipCodec, lambda codec: {"level": codec.level}, _from_state))
