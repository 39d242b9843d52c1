"""Codecs that are learned from text, by name."""

from __future__ import annotations

import re
from collections.abc import Iterable

from fastcompress.arithmetic import ContextMixer
from fastcompress.codec.arithmetic import ArithmeticCodec, WindowsCodec
from fastcompress.codec.byte_entropy import EntropyByteCodec
from fastcompress.codec.equal_info import EqualInfoCodec
from fastcompress.codec.protocol import Codec
from fastcompress.equal_info import Codebook

LEARNED_NAMES = (
    "byte-entropy",
    "equal-info-B (B from 9 to 16, or 16-by-8)",
    "equal-info-W-by-8 or -by-16 (W from 24 to 128)",
    "arithmetic-8 or arithmetic-16",
)
_LOG2_TABLE_BYTES = 22  # of a mixer: 4 MiB, which the codec's file holds
_BITS_PER_BYTE = 3  # of text at the beginning of a window, about: how often a mixer's context is emptied
_EQUAL_INFO = re.compile(r"equal-info-(\d{1,3})(?:-by-(8|16))?")
_ARITHMETIC = re.compile(r"arithmetic-(8|16)")


def is_learned(name: str) -> bool:
    """Return whether `learn_codec` knows a name."""
    return name == "byte-entropy" or any(pattern.fullmatch(name) for pattern in (_EQUAL_INFO, _ARITHMETIC))


def learn_codec(name: str, texts: Iterable[bytes]) -> Codec:
    """Learn a codec.

    Args:
        name: The name of the codec, one of LEARNED_NAMES.
        texts: The documents to learn from; read once.

    Raises:
        ConfigError: A number in the name is out of range.
        DataError: There is no text to learn from.

    >>> learn_codec("equal-info-9", [b"to be or not to be"] * 9).vocab_size
    511
    """
    if name == "byte-entropy":
        return EntropyByteCodec.train(texts)
    if match := _ARITHMETIC.fullmatch(name):
        mixer = ContextMixer.train(texts, log2_table_bytes=_LOG2_TABLE_BYTES)
        return ArithmeticCodec(mixer.freeze(), int(match[1]))
    match = _EQUAL_INFO.fullmatch(name)
    assert match is not None, name
    bits, token_bits = int(match[1]), match[2] and int(match[2])
    if bits <= 16:
        return EqualInfoCodec(Codebook.train(texts, bits), token_bits or None)
    mixer = ContextMixer.train(texts, log2_table_bytes=_LOG2_TABLE_BYTES, reset_interval=bits // _BITS_PER_BYTE)
    return WindowsCodec(mixer.freeze(), bits, token_bits or 16)
