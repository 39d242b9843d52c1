"""Writing files so that a reader never sees half of one."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from fastcompress.errors import OutputError


def write_atomically(path: str | os.PathLike[str], content: bytes) -> None:
    """Writes ``content`` to ``path`` through a temporary file beside it and one rename.

    After a crash the old file, or none, is there, never a part. What exists and is no regular file (a pipe, a
    device) is written to as it is. Raises OutputError when the file cannot be written.
    """
    target = Path(path)
    try:
        if target.exists() and not target.is_file():
            target.write_bytes(content)
            return
        temporary = target.with_name(f".{os.urandom(8).hex()}.tmp")
        try:
            with open(temporary, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, target)
        except BaseException:
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise
    except OSError as error:
        raise OutputError(
            f"cannot write {target}: {error.strerror}; choose a folder that exists and is writable"
        ) from error
