"""Arithmetic codes as codecs: windows of equal information, 24 to 128 bits, and whole documents.

Both follow Lester et al., "Training LLMs over Neurally Compressed Text" (arXiv 2404.03626). Their windows end where the
next byte would not fit and do not store how many bytes they hold, so that some decode to other text; here a flag marks
the end, and every window decodes to what it encodes. Windows of at most 16 bits are a dictionary: `EqualInfoCodec`.
Whole documents are a baseline from which models learn nothing: the meaning of a bit does not depend on its position.

Encoding and decoding take about 1 us per byte.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import numpy.typing as npt

from fastcompress._arguments import as_instance, as_integer
from fastcompress._core import equal_info as _core
from fastcompress.arithmetic import ContextMixer
from fastcompress.codec.files import CodecKind, from_text, register_codec, to_text
from fastcompress.codec.protocol import Codec, CodecBase, Text, as_bytes, validate_ids
from fastcompress.errors import ConfigError, DataError, FormatError

_MAX_BYTES = (1 << 32) - 1


class WindowsCodec(CodecBase):
    """Windows of `window_bits` bits, each encoded by a frozen mixer from an empty context, as tokens of 8 or 16 bits.

    Not unambiguous: some windows that `encode` never produces also decode.

    >>> mixer = ContextMixer.train([b"to be or not to be"] * 20, log2_table_bytes=16, reset_interval=20).freeze()
    >>> codec = WindowsCodec(mixer, window_bits=32)
    >>> codec.decode(codec.encode("to be or not to be"))
    b'to be or not to be'
    """

    lossless = True
    unambiguous = False
    is_incremental = False

    def __init__(self, mixer: ContextMixer, window_bits: int = 64, token_bits: int = 16) -> None:
        """Make a codec.

        Args:
            mixer: A frozen mixer, ideally trained to reset about as often as windows end.
            window_bits: Bits per window, 24 to 128.
            token_bits: Bits per token, 8 or 16; a divisor of `window_bits`.

        Raises:
            ConfigError: A setting is out of range, or the mixer is not frozen.
        """
        as_instance(mixer, ContextMixer, "mixer")
        window_bits, token_bits = (
            as_integer(window_bits, "window_bits", 24, 128),
            as_integer(token_bits, "token_bits", 8, 16),
        )
        if token_bits not in (8, 16) or window_bits % token_bits != 0:
            raise ConfigError(
                f"token_bits is {token_bits} and window_bits is {window_bits}; token_bits must be 8 or 16, and a "
                "divisor of window_bits"
            )
        self.mixer, self.window_bits, self.token_bits = mixer, window_bits, token_bits
        self._core = _core.WindowCoder(mixer.core, window_bits)
        self.vocab_size = 1 << token_bits
        self.max_unstable_tokens: int | None = window_bits // token_bits
        self.name = f"equal-info-{window_bits}-by-{token_bits}"
        self.fingerprint = _fingerprint("windows", f"window_bits={window_bits} token_bits={token_bits}", mixer)

    def _arguments(self) -> dict[str, Any]:
        return {"mixer": self.mixer, "window_bits": self.window_bits, "token_bits": self.token_bits}

    def encode(self, data: Text) -> npt.NDArray[np.uint32]:
        return _tokens(self._core.encode(as_bytes(data)), self.token_bits)

    def decode(self, tokens: npt.ArrayLike) -> bytes:
        """Decode whole windows. Raises DataError for a window that is cut off or that encodes nothing."""
        return self._decoded(tokens)[0]

    def byte_lengths(self, tokens: npt.ArrayLike) -> npt.NDArray[np.int64]:
        return _by_token(self._decoded(tokens)[1], self.token_bits)

    def _decoded(self, tokens: npt.ArrayLike) -> tuple[bytes, npt.NDArray[np.uint32]]:
        return _decoded(self, lambda code: self._core.decode(code, _MAX_BYTES), tokens)


class ArithmeticCodec(CodecBase):
    """A whole document as one arithmetic code under a frozen mixer, in tokens of 8 or 16 bits.

    `max_unstable_tokens` is None because a carry can change tokens at any distance.

    >>> mixer = ContextMixer.train([b"to be or not to be"] * 20, log2_table_bytes=16).freeze()
    >>> codec = ArithmeticCodec(mixer)
    >>> codec.decode(codec.encode("to be or not to be"))
    b'to be or not to be'
    """

    lossless = True
    unambiguous = True
    is_incremental = False
    max_unstable_tokens: int | None = None

    def __init__(self, mixer: ContextMixer, token_bits: int = 16) -> None:
        """Make a codec.

        Args:
            mixer: A frozen mixer.
            token_bits: Bits per token, 8 or 16.

        Raises:
            ConfigError: `token_bits` is neither, or the mixer is not frozen.
        """
        as_instance(mixer, ContextMixer, "mixer")
        if as_integer(token_bits, "token_bits", 8, 16) not in (8, 16):
            raise ConfigError(f"token_bits is {token_bits}; it must be 8 or 16")
        if not mixer.is_frozen:
            raise ConfigError("mixer still learns; it must be frozen: pass mixer.freeze()")
        self.mixer, self.token_bits = mixer, token_bits
        self.vocab_size = 1 << token_bits
        self.name = f"arithmetic-{token_bits}"
        self.fingerprint = _fingerprint("arithmetic", f"token_bits={token_bits}", mixer)

    def _arguments(self) -> dict[str, Any]:
        return {"mixer": self.mixer, "token_bits": self.token_bits}

    def encode(self, data: Text) -> npt.NDArray[np.uint32]:
        return _tokens(_core.encode_document(self.mixer.core, as_bytes(data)), self.token_bits)

    def decode(self, tokens: npt.ArrayLike) -> bytes:
        """Decode a document. Raises DataError unless `encode` gives exactly these tokens for it (it is run again)."""
        return self._decoded(tokens)[0]

    def byte_lengths(self, tokens: npt.ArrayLike) -> npt.NDArray[np.int64]:
        return _by_token(self._decoded(tokens)[1], self.token_bits)

    def _decoded(self, tokens: npt.ArrayLike) -> tuple[bytes, npt.NDArray[np.uint32]]:
        ids = validate_ids(tokens, self)
        decoded = _decoded(self, lambda code: _core.decode_document(self.mixer.core, code, _MAX_BYTES), ids)
        if not np.array_equal(self.encode(decoded[0]), ids):
            raise DataError(f"these ids of {self.name} are not what the document they begin with encodes to")
        return decoded


def _fingerprint(kind: str, settings: str, mixer: ContextMixer) -> str:
    return hashlib.sha256(f"fastcompress {kind} codec, version 1\n{settings}\n{mixer.fingerprint}".encode()).hexdigest()


def _tokens(code: bytes, token_bits: int) -> npt.NDArray[np.uint32]:
    """Return a code as tokens, big-endian, the last one padded with zeros."""
    if token_bits == 8:
        return np.frombuffer(code, np.uint8).astype(np.uint32)
    return np.frombuffer(code + bytes(len(code) % 2), ">u2").astype(np.uint32)


def _decoded(codec: Codec, decode: Any, tokens: npt.ArrayLike) -> tuple[bytes, npt.NDArray[np.uint32]]:
    """Return the text, and the number of its bytes that became decodable with each byte of the code."""
    ids = validate_ids(tokens, codec)
    code = ids.astype(">u2" if codec.vocab_size > 256 else "u1").tobytes()
    try:
        decoded: tuple[bytes, npt.NDArray[np.uint32]] = decode(code)
    except FormatError as error:
        raise DataError(f"these ids of {codec.name} do not decode: {error}") from None
    return decoded


def _by_token(num_known: npt.NDArray[np.uint32], token_bits: int) -> npt.NDArray[np.int64]:
    lengths: npt.NDArray[np.int64] = num_known.reshape(-1, token_bits // 8).sum(1, dtype=np.int64)
    return lengths


def _mixer(state: dict[str, Any]) -> ContextMixer:
    return ContextMixer.from_bytes(from_text(state["mixer"]))


register_codec(
    CodecKind(
        "windows",
        WindowsCodec,
        lambda codec: {
            "window_bits": codec.window_bits,
            "token_bits": codec.token_bits,
            "mixer": to_text(codec.mixer.to_bytes()),
        },
        lambda state: WindowsCodec(_mixer(state), state["window_bits"], state["token_bits"]),
    )
)
register_codec(
    CodecKind(
        "arithmetic",
        ArithmeticCodec,
        lambda codec: {"token_bits": codec.token_bits, "mixer": to_text(codec.mixer.to_bytes())},
        lambda state: ArithmeticCodec(_mixer(state), state["token_bits"]),
    )
)
