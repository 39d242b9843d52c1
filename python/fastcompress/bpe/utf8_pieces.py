"""Strings of bytes that begin or end within a character of UTF-8, as tokens do, and what completes them."""

from __future__ import annotations

_CONTINUATIONS = [bytes([b]) for b in range(0x80, 0xC0)]
_ALL_CONTINUATIONS = b"".join(_CONTINUATIONS)
_ENDS = [_CONTINUATIONS, [b + b"\x80" for b in _CONTINUATIONS], [b + b"\x80\x80" for b in _CONTINUATIONS]]
# What may stand before 1, 2 and 3 continuation bytes at the beginning of a string.
_TWO, _THREE, _FOUR = ([bytes([b]) for b in range(*ends)] for ends in ((0xC2, 0xE0), (0xE0, 0xF0), (0xF0, 0xF5)))
_BEGINNINGS = [
    [*_TWO, *(a + b for a in _THREE for b in _CONTINUATIONS), *(b"\xf0\x9f" + b for b in _CONTINUATIONS)],
    [*_THREE, *(a + b for a in _FOUR for b in _CONTINUATIONS)],
    _FOUR,
]


def may_be_in_utf8(string: bytes) -> bool:
    """Return whether some UTF-8 text contains a string, which may begin and end within a character.

    >>> may_be_in_utf8(b"\\xa9 caf\\xc3"), may_be_in_utf8(b"\\xc0\\x80")
    (True, False)
    """
    rest = string.lstrip(_ALL_CONTINUATIONS)
    ends = _ends(rest)
    return len(string) - len(rest) <= len(_BEGINNINGS) and any(is_utf8(rest + end) for end in ends)


def completions(string: bytes, limit: int) -> list[bytes]:
    """Return UTF-8 texts of a string and what completes the characters at its ends, at most `limit`, evenly chosen.

    Empty if no UTF-8 text contains the string; the string itself if it is UTF-8. Not all characters are tried: after a
    cut character, one for each next byte.
    """
    if not may_be_in_utf8(string):
        return []
    num_continuations = len(string) - len(string.lstrip(_ALL_CONTINUATIONS))
    beginnings = _BEGINNINGS[num_continuations - 1] if num_continuations else [b""]
    texts = [text for begin in beginnings for end in _ends(string) if is_utf8(text := begin + string + end)]
    return texts[:: -(-len(texts) // limit)] if len(texts) > limit else texts


def _ends(string: bytes) -> list[bytes]:
    """Return what may complete a character at the end of a string; nothing but b"" if none is cut."""
    for size in range(1, min(4, len(string) + 1)):
        lead = string[-size]
        if lead >= 0xC0:
            num_missing = (2 if lead < 0xE0 else 3 if lead < 0xF0 else 4) - size
            return _ENDS[num_missing - 1] if num_missing > 0 else [b""]
        if lead < 0x80:
            break
    return [b""]


def is_utf8(string: bytes) -> bool:
    """Return whether a string is UTF-8."""
    try:
        string.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
