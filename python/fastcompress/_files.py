"""Writing files so that a reader never sees half of one."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from fastcompress.errors import OutputError


def write_atomically(path: str | os.PathLike[str], content: bytes) -> None:
    """Writes ``content`` to ``path`` through a temporary file beside it and one rename.

    After a crash the old file, or none, is there, never a part. Raises OutputError when the folder cannot be written.
    """
    target = Path(path)
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
    try:
        with open(temporary, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise OutputError(
            f"cannot write {target}: {error.strerror}; choose a folder that exists and is writable"
        ) from error
