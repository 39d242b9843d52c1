"""Atomic writing of files: a reader sees a file complete or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from fastcompress.errors import FastcompressError, OutputError

_REMEDIES = {
    errno.ENOSPC: "free some space, or choose another disk",
    errno.EDQUOT: "free some space, or choose another disk",
    errno.EFBIG: "raise the limit on the size of files, or choose another disk",
    errno.EACCES: "choose a place that you may write to",
    errno.EPERM: "choose a place that you may write to",
    errno.EROFS: "choose a place that you may write to",
    errno.ENAMETOOLONG: "choose a shorter name",
    errno.EPIPE: "keep the program that reads it running",
    errno.EIO: "check the disk, or choose another",
}


def write_atomically(path: str | os.PathLike[str], content: bytes, *, overwrite: bool = True) -> None:
    """Write a file, all or nothing.

    Args:
        path: As for `replacing`.
        content: The contents.
        overwrite: As for `replacing`.

    Raises:
        OutputError: As for `replacing`.
    """
    with open_atomically(path, overwrite=overwrite) as file:
        file.write(content)


@contextlib.contextmanager
def open_atomically(path: str | os.PathLike[str], *, overwrite: bool = True) -> Iterator[BinaryIO]:
    """Yield a stream whose contents become the file ``path`` when the block ends without an error; see `replacing`."""
    with replacing(path, overwrite=overwrite) as temporary, open(temporary, "wb") as file:
        yield file


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str], *, overwrite: bool = True) -> Iterator[Path]:
    """Yield the name of a temporary file to write, which is renamed to ``path`` when the block ends.

    After an error or a crash, ``path`` is the old file or does not exist; it is never incomplete. The contents are on
    disk before the file gets its name. The file has the mode of the one it replaces, or for a new one that of the
    umask. If ``path`` is a symbolic link, its target is replaced. If it is not a regular file but a pipe or a device,
    ``path`` itself is yielded and written directly.

    Args:
        path: The file to write.
        overwrite: Whether to replace an existing file, also one that is created while the block runs.

    Raises:
        OutputError: The file cannot be written, or exists and must not be replaced. Errors of this package that the
            block raises pass through.
    """
    try:
        existing = _stat(path)
        if existing is not None and not stat.S_ISREG(existing.st_mode):
            yield Path(path)
            return
        target = Path(os.path.realpath(path))
        if existing is not None and not overwrite:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
        temporary = target.with_name(f".{os.urandom(8).hex()}.tmp")
        try:
            temporary.open("xb").close()
            mode = stat.S_IMODE((existing or temporary.stat()).st_mode)
            yield temporary
            with temporary.open("r+b") as file:
                os.fsync(file.fileno())
            temporary.chmod(mode)
            _rename(temporary, target, overwrite)
        except BaseException:
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise
    except FastcompressError:
        raise
    except FileExistsError as error:
        raise OutputError(f"{path}: exists already; choose another output") from error
    except OSError as error:
        raise OutputError(f"{path}: cannot be written ({error.strerror or error}); {remedy_for(error)}") from error


def remedy_for(error: OSError) -> str:
    """Return advice for a file that cannot be written."""
    return _REMEDIES.get(error.errno or 0, "choose a folder that exists and is writable")


def _rename(source: Path, target: Path, overwrite: bool) -> None:
    """Rename a file. Without ``overwrite``, raises FileExistsError if a file of the new name exists."""
    if overwrite:
        os.replace(source, target)
        return
    try:
        os.link(source, target)  # unlike a rename, this never replaces
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links
        if target.exists():
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST)) from None
        os.replace(source, target)
    else:
        source.unlink()


def _stat(path: str | os.PathLike[str]) -> os.stat_result | None:
    """Return the status of the file that ``path`` leads to, or None if it does not exist."""
    try:
        return os.stat(path)
    except FileNotFoundError:
        return None
