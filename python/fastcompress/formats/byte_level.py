"""The byte-level alphabet of GPT-2, in which each byte of a token is written as one printable character.

The 188 bytes that are printable characters of Latin-1 are written as these characters, and the other 68 in order as
the characters from U+0100 on, so that a space is ``Ġ`` and a line feed ``Ċ``.
"""

from __future__ import annotations

_PRINTABLE = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
_OTHERS = sorted(set(range(256)) - set(_PRINTABLE))
_CODE_POINTS = {byte: byte for byte in _PRINTABLE} | {byte: 0x100 + i for i, byte in enumerate(_OTHERS)}

# Tables for str.translate from Latin-1 and back; characters that are not in the alphabet become one outside Latin-1.
_TO_ALPHABET = {byte: chr(code_point) for byte, code_point in _CODE_POINTS.items()}
_FROM_ALPHABET = dict.fromkeys(_OTHERS, "\uffff") | {point: chr(byte) for byte, point in _CODE_POINTS.items()}

ALPHABET: tuple[str, ...] = tuple(_TO_ALPHABET[byte] for byte in range(256))
"""The character of each byte."""


def to_alphabet(token: bytes) -> str:
    """Return a token's bytes in the alphabet.

    >>> to_alphabet(" é".encode())
    'ĠÃ©'
    """
    return token.decode("latin-1").translate(_TO_ALPHABET)


def from_alphabet(text: str) -> bytes | None:
    """Return the bytes of a text in the alphabet; None if a character is not in it."""
    try:
        return text.translate(_FROM_ALPHABET).encode("latin-1")
    except UnicodeEncodeError:
        return None
