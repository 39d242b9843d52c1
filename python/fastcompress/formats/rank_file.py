"""tiktoken's rank files: a line a token, its bytes in base64, a space, and its rank."""

from __future__ import annotations

import base64
import binascii
import os
from pathlib import Path

from fastcompress.errors import FormatError

MAX_IDS = 1 << 21
"""Ids are below this, as in the core."""


def read_rank_file(path: str | os.PathLike[str]) -> dict[bytes, int]:
    """The ranks of a ``.tiktoken`` file, in file order.

    Raises FormatError, with the line's number, for a line that is not ``base64 rank``, for a token or a rank that
    stands twice, and for an empty file. O(file).
    """
    ranks: dict[bytes, int] = {}
    seen: set[int] = set()
    for number, line in enumerate(Path(path).read_bytes().split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            encoded, digits = line.split()
            token, rank = base64.b64decode(encoded, validate=True), int(digits)
        except (ValueError, binascii.Error) as error:
            raise FormatError(f"{path}, line {number}: expected 'base64 rank'; is this a .tiktoken file?") from error
        if not token or not digits.isdigit() or rank >= MAX_IDS:
            raise FormatError(f"{path}, line {number}: the token is empty or its rank is not in [0, {MAX_IDS})")
        if token in ranks or rank in seen:
            raise FormatError(f"{path}, line {number}: the token or its rank {rank} stands on an earlier line too")
        ranks[token] = rank
        seen.add(rank)
    if not ranks:
        raise FormatError(f"{path} is empty: expected lines of 'base64 rank'")
    return ranks
