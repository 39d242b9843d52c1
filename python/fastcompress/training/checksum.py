"""Checksums inside the files of a run, over every byte of the file.

The file is JSON, or has JSON at its front (safetensors), with a string field `"sha256"`. The field holds the SHA-256 of
the whole file as it is with zeros in that field, so nothing in the file can change unnoticed, white space included.
"""

from __future__ import annotations

import hashlib
import json
import re
import warnings
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any, BinaryIO

from fastcompress._files import write_atomically
from fastcompress.errors import FormatError

FIELD = "sha256"
PLACEHOLDER = "0" * 64
_PATTERN = re.compile(rb'"sha256": ?"([0-9a-f]{64})"')  # strings inside strings have their quotes escaped
_CHUNK_BYTES = 1 << 20


def fill_in(file: BinaryIO, head_bytes: int) -> None:
    """Replace the placeholder in the first `head_bytes` bytes of a finished file by the file's checksum."""
    begin = _find(file, head_bytes)
    assert begin is not None, "the file's writer puts the placeholder there"
    digest = _digest(file, begin)
    file.seek(begin)
    file.write(digest)


def verify(path: Path, head_bytes: int, fields: Iterable[str], old_fields: Collection[str]) -> None:
    """Check a file against its checksum; a file of an older version, which has none, gets a warning.

    Args:
        path: The file.
        head_bytes: The number of bytes at its front that are JSON; the whole file if it is shorter.
        fields: The names in the object that should hold the checksum.
        old_fields: The names that a file without a checksum may have.

    Raises:
        FormatError: The file is not what was written.
    """
    with path.open("rb") as file:
        begin = _find(file, head_bytes)
        if begin is not None:
            file.seek(begin)
            is_whole = file.read(len(PLACEHOLDER)) == _digest(file, begin)
        else:  # none, or the damage is in its name or its digits
            is_whole = set(fields) <= set(old_fields)
    if not is_whole:
        raise FormatError(f"{path}: damaged (its checksum differs); restore it from a copy, or train again")
    if begin is None:
        warnings.warn(
            f"{path}: has no checksum, since an older version wrote it; damage to it would go unnoticed", stacklevel=3
        )


def write_json(path: Path, fields: dict[str, Any]) -> None:
    """Write a JSON object with its checksum, all or nothing. Raises OutputError if it cannot be written."""
    content = json.dumps({**fields, FIELD: PLACEHOLDER}, indent=1).encode() + b"\n"
    digest = hashlib.sha256(content).hexdigest().encode()
    begin = content.rindex(PLACEHOLDER.encode())
    write_atomically(path, content[:begin] + digest + content[begin + len(digest) :])


def _find(file: BinaryIO, head_bytes: int) -> int | None:
    """Return where the digest begins, or None if the file has none."""
    file.seek(0)
    matches = list(_PATTERN.finditer(file.read(head_bytes)))
    return matches[-1].start(1) if matches else None


def _digest(file: BinaryIO, begin: int) -> bytes:
    """Return the checksum of the file with zeros in place of the 64 digits from `begin` on."""
    digest = hashlib.sha256()
    file.seek(0)
    digest.update(file.read(begin) + PLACEHOLDER.encode())
    file.seek(begin + len(PLACEHOLDER))
    while chunk := file.read(_CHUNK_BYTES):
        digest.update(chunk)
    return digest.hexdigest().encode()
