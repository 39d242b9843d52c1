"""Writing files so that a reader never sees half of one."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from fastcompress.errors import FastcompressError, OutputError


def write_atomically(path: str | os.PathLike[str], content: bytes) -> None:
    """Writes ``content`` to ``path``, all or nothing; what `replacing` says holds here too."""
    with open_atomically(path) as file:
        file.write(content)


@contextlib.contextmanager
def open_atomically(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A stream whose bytes are at ``path`` when the block ends, and nowhere when it raises; see `replacing`."""
    with replacing(path) as temporary, open(temporary, "wb") as file:
        yield file


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """The name of a temporary file to write; when the block ends it is renamed to ``path``.

    After an error or a crash the old file, or none, is there, never a part. The file is on disk before it gets
    its name. It keeps the mode of the one it replaces; a new one has the mode that the umask leaves. A symbolic
    link stays, and its target is replaced. What exists and is no regular file (a pipe, a device) is yielded
    itself, to be written as it is. Raises OutputError when the file cannot be written; errors of this
    package that the block raises pass through.
    """
    try:
        existing = _stat(path)
        if existing is not None and not stat.S_ISREG(existing.st_mode):
            yield Path(path)
            return
        target = Path(os.path.realpath(path))
        temporary = target.with_name(f".{os.urandom(8).hex()}.tmp")
        try:
            temporary.open("xb").close()
            mode = stat.S_IMODE((existing or temporary.stat()).st_mode)
            yield temporary
            with temporary.open("r+b") as file:
                os.fsync(file.fileno())
            temporary.chmod(mode)
            os.replace(temporary, target)
        except BaseException:
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise
    except FastcompressError:
        raise
    except OSError as error:
        raise OutputError(
            f"{path}: cannot be written ({error.strerror or error}); choose a folder that exists and is writable"
        ) from error


def _stat(path: str | os.PathLike[str]) -> os.stat_result | None:
    """Of what ``path`` leads to, None when that does not exist."""
    try:
        return os.stat(path)
    except FileNotFoundError:
        return None
