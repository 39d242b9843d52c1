"""Patches by definition: what is known after each byte is asked anew, of the bytes so far."""

from __future__ import annotations

from collections.abc import Callable

END = 256  # between documents


def ends(ids: list[int], cut: Callable[[bytes], int], min_bytes: int, max_bytes: int) -> list[int]:
    """Where patches end, at the ids with which they become known. ``cut(text)``: the last cut of a text so far."""
    found, last = [], 0
    for i in range(len(ids)):
        begin = max((k + 1 for k in range(i + 1) if ids[k] == END), default=0)  # of the document, behind the last mark
        known = begin + cut(bytes(ids[begin : i + 1]))
        if known >= last + min_bytes:
            last = known
            found.append(known)
        elif i + 1 - last >= max_bytes:
            last = i + 1
            found.append(i + 1)
        else:
            found.append(0)
    return found


def space_cut(text: bytes) -> int:
    """Behind the last byte that is like a space and follows one that is not, or begins the text."""

    def spacelike(byte: int) -> bool:
        return not (byte < 128 and chr(byte).isalnum()) and not 0x80 <= byte < 0xC0

    cuts = [i + 1 for i, byte in enumerate(text) if spacelike(byte) and not (i and spacelike(text[i - 1]))]
    return max(cuts, default=0)
