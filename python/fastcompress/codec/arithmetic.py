"""Arithmetic codes as codecs: windows of equal information, 24 to 128 bits, and whole documents.

Both are of Lester et al., "Training LLMs over Neurally Compressed Text" (arXiv 2404.03626). There, windows end where
the next byte would not fit and say so nowhere, so that some decode to other text; here a flag says it, and every window
comes back. Windows of at most 16 bits are a dictionary: `EqualInfoCodec`. Whole documents are the baseline from which
nothing is learned: where a bit stands says nothing of what it means.

Text costs about 1 us a byte each way.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import numpy.typing as npt

from fastcompress._core import windows as _core
from fastcompress.arithmetic import ContextMixer
from fastcompress.codec.files import CodecKind, from_text, register_codec, to_text
from fastcompress.codec.protocol import Codec, checked_ids
from fastcompress.errors import ConfigError, DataError, FormatError

_MAX_BYTES = (1 << 32) - 1


class WindowsCodec:
    """Windows of `window_bits`, each coded by a frozen mixer from an empty context, as tokens of 8 or 16 bits.

    Windows that no text gives can decode, too, hence not unambiguous.
    """

    lossless = True
    unambiguous = False

    def __init__(self, mixer: ContextMixer, window_bits: int = 64, token_bits: int = 16) -> None:
        """mixer: frozen, best one trained with ``window=`` about the bytes that a window holds. window_bits: 24 to 128.
        token_bits: 8 or 16, and a divisor of window_bits. ConfigError."""
        if token_bits not in (8, 16) or window_bits % token_bits != 0:
            raise ConfigError(
                f"token_bits is {token_bits} for windows of {window_bits} bits; give 8, or 16 if that divides"
            )
        self.mixer, self.window_bits, self.token_bits = mixer, window_bits, token_bits
        self._core = _core.WindowCoder(mixer.core, window_bits)
        self.vocab_size = 1 << token_bits
        self.unstable_tail: int | None = window_bits // token_bits
        self.name = f"equal-info-{window_bits}-by-{token_bits}"
        self.fingerprint = _fingerprint("windows", f"window_bits={window_bits} token_bits={token_bits}", mixer)

    def encode(self, data: bytes) -> npt.NDArray[np.uint32]:
        return _tokens(self._core.encode(data), self.token_bits)

    def decode(self, tokens: npt.ArrayLike) -> bytes:
        """DataError: a window that is cut off, or stands for nothing."""
        return self._decoded(tokens)[0]

    def byte_lengths(self, tokens: npt.ArrayLike) -> npt.NDArray[np.int64]:
        return _by_token(self._decoded(tokens)[1], self.token_bits)

    def _decoded(self, tokens: npt.ArrayLike) -> tuple[bytes, npt.NDArray[np.uint32]]:
        return _decoded(self, lambda code: self._core.decode(code, _MAX_BYTES), tokens)


class ArithmeticCodec:
    """A whole document as one arithmetic code by a frozen mixer, as tokens of 8 or 16 bits.

    A byte more can change tokens at any distance (a carry), hence `unstable_tail` None.
    """

    lossless = True
    unambiguous = True
    unstable_tail: int | None = None

    def __init__(self, mixer: ContextMixer, token_bits: int = 16) -> None:
        """mixer: frozen. token_bits: 8 or 16. ConfigError."""
        if token_bits not in (8, 16):
            raise ConfigError(f"token_bits is {token_bits}; give 8 or 16")
        if not mixer.is_frozen:
            raise ConfigError("the context mixer still learns; give mixer.freeze()")
        self.mixer, self.token_bits = mixer, token_bits
        self.vocab_size = 1 << token_bits
        self.name = f"arithmetic-{token_bits}"
        self.fingerprint = _fingerprint("arithmetic", f"token_bits={token_bits}", mixer)

    def encode(self, data: bytes) -> npt.NDArray[np.uint32]:
        return _tokens(_core.encode_document(self.mixer.core, data), self.token_bits)

    def decode(self, tokens: npt.ArrayLike) -> bytes:
        """DataError: not exactly what `encode` gives for some document: checked by encoding it again."""
        return self._decoded(tokens)[0]

    def byte_lengths(self, tokens: npt.ArrayLike) -> npt.NDArray[np.int64]:
        return _by_token(self._decoded(tokens)[1], self.token_bits)

    def _decoded(self, tokens: npt.ArrayLike) -> tuple[bytes, npt.NDArray[np.uint32]]:
        decoded = _decoded(self, lambda code: _core.decode_document(self.mixer.core, code, _MAX_BYTES), tokens)
        if not np.array_equal(self.encode(decoded[0]), np.asarray(tokens)):
            raise DataError(f"these ids of {self.name} are not what the document they begin with is encoded as")
        return decoded


def _fingerprint(kind: str, settings: str, mixer: ContextMixer) -> str:
    return hashlib.sha256(f"fastcompress {kind} codec, version 1\n{settings}\n{mixer.fingerprint}".encode()).hexdigest()


def _tokens(code: bytes, token_bits: int) -> npt.NDArray[np.uint32]:
    """Big-endian, the last one filled up with zeros."""
    if token_bits == 8:
        return np.frombuffer(code, np.uint8).astype(np.uint32)
    return np.frombuffer(code + bytes(len(code) % 2), ">u2").astype(np.uint32)


def _decoded(codec: Codec, decode: Any, tokens: npt.ArrayLike) -> tuple[bytes, npt.NDArray[np.uint32]]:
    """The bytes, and how many each byte of the code made known."""
    ids = checked_ids(tokens, codec)
    code = ids.astype(">u2" if codec.vocab_size > 256 else "u1").tobytes()
    try:
        decoded: tuple[bytes, npt.NDArray[np.uint32]] = decode(code)
    except FormatError as error:
        raise DataError(f"these ids of {codec.name} spell nothing: {error}") from None
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
