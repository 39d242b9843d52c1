"""Segments by definition: phrases one after the other, and columns that are asked anew at each symbol."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

MARK, END = 256, 257


def phrases(text: bytes, tokens: Iterable[tuple[int, int, int]], max_literals: int) -> list[bytes]:
    """Return the matches of a parse, and its runs of literals, cut after so many."""
    found: list[bytes] = []
    position, run_is_open = 0, False
    for kind, _, length in tokens:
        piece = text[position : position + length]
        if kind == 0 and run_is_open and len(found[-1]) < max_literals:
            found[-1] += piece
        else:
            found.append(piece)
        run_is_open = kind == 0
        position += length
    return found


def columns(ids: list[int], places: Any, min_match: int) -> dict[str, list[int]]:
    """Return place, distance and length of what ends with each symbol."""
    found: dict[str, list[int]] = {"patch_end": [], "distance": [], "length": []}
    for i, symbol in enumerate(ids):
        if symbol < MARK:
            end, distance, length = 0, 0, 0
        else:
            begin = max((k + 1 for k in range(i) if ids[k] >= MARK), default=0)
            document = max((k + 1 for k in range(i) if ids[k] == END), default=0)
            segment = ids[begin:i]
            before = [byte for byte in ids[document:begin] if byte < MARK]
            whole, length = before + segment, len(segment)
            starts = [k for k in range(len(before)) if whole[k : k + length] == segment]
            distance = len(before) - max(starts) if length >= min_match and starts else 0
            taken = sum(end > 0 for end in found["patch_end"])
            is_free = (taken + 1 - places.num_spare) * places.symbols_per_place <= i + 1
            end = i + 1 if is_free else 0
        for name, value in zip(found, (end, distance, length), strict=True):
            found[name].append(value)
    return found
