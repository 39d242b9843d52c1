"""Locks on folders, which a process holds while it writes one and which end with the process.

A lock is a lock of the operating system on the file `.lock` in the folder. A process that is killed leaves behind only
that file, which the next writer reuses. Readers need no lock, because files and splits are renamed into place when they
are complete.

- A child made by fork() shares the open lock file with its parent, and closes it as soon as it runs, so that a worker
  that outlives a killed parent does not keep the folder locked. Programs started by exec do not inherit it (O_CLOEXEC).
- The holder removes `.lock` when it is done. Another process may have opened the file before that and could then lock
  a file that no longer has a name, so a lock is valid only if its file is still the one at the path.
- Over NFS, Linux turns flock() into a lock that belongs to the whole process. There, the set of lock files that this
  process holds also refuses a second writer in another thread.
- On a file system without locks, a warning is issued and the folder is written without a lock.
"""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

from fastcompress.errors import OutputError

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

LOCK_NAME = ".lock"
_POLL_SECONDS = 0.02
_UNSUPPORTED = {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP}
_READ_ONLY = {errno.EACCES, errno.EPERM, errno.EROFS}

_held: dict[tuple[int, int], int] = {}  # (device, inode) of each lock file that this process holds: its descriptor
_guard = threading.Lock()


class _Busy(Exception):
    """Another process, or another thread of this one, holds the lock."""


@contextlib.contextmanager
def locked(folder: str | os.PathLike[str], *, wait_seconds: float = 0.0) -> Iterator[bool]:
    """Hold the lock of an existing folder for the length of the block, and yield whether there is a lock to hold.

    Args:
        folder: The folder to be written.
        wait_seconds: The time to wait for another holder before giving up.

    Raises:
        OutputError: Another process, or another thread of this one, holds the lock, or the lock file cannot be made.

    A folder that this process has no permission to write is not locked: nothing can be written there anyway.
    """
    path = Path(folder) / LOCK_NAME
    deadline = time.monotonic() + wait_seconds
    while True:
        try:
            descriptor = _acquire(path)
            break
        except _Busy:
            if time.monotonic() >= deadline:
                raise OutputError(
                    f"{folder}: {_describe_holder(path)} is writing to it; wait until that is done, stop it, or "
                    "choose another folder"
                ) from None
            time.sleep(_POLL_SECONDS)
    owner = os.getpid()
    try:
        yield descriptor is not None
    finally:
        if descriptor is not None and os.getpid() == owner:  # a forked child has closed its copy already
            _release(path, descriptor)


def _acquire(path: Path) -> int | None:
    """Return the descriptor of the locked file, or None where nothing can be locked. Raises _Busy."""
    while True:
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o666)
        except OSError as error:
            if error.errno in _READ_ONLY and sys.platform != "win32":
                return None
            if error.errno in _READ_ONLY:  # Windows: the file is being removed by its last holder
                raise _Busy from error
            raise OutputError(f"{path.parent}: cannot be written ({error.strerror}); choose another folder") from error
        is_current = False
        try:
            is_current = _lock_descriptor(path, descriptor)
        except OSError as error:
            if error.errno not in _UNSUPPORTED:
                raise OutputError(f"{path}: cannot be locked ({error.strerror}); choose another folder") from error
            warnings.warn(f"{path.parent}: this file system has no locks; run one writer at a time", stacklevel=4)
            return None
        finally:
            if not is_current:
                os.close(descriptor)
        if is_current:
            return descriptor


def _lock_descriptor(path: Path, descriptor: int) -> bool:
    """Lock the open file and return whether it is still the one at `path`. Raises _Busy if another holds it."""
    with _guard:
        key = _identity(os.fstat(descriptor))
        if key in _held:
            raise _Busy
        try:
            if sys.platform == "win32":
                msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
            else:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in (errno.EAGAIN, errno.EACCES, errno.EDEADLK):
                raise _Busy from error
            raise
        try:
            if _identity(os.stat(path)) != key:
                return False
        except FileNotFoundError:
            return False
        _held[key] = descriptor
    with contextlib.suppress(OSError):  # the disk may be full, and the name of the holder is not essential
        os.ftruncate(descriptor, 0)
        os.lseek(descriptor, _HOLDER_BEGIN, os.SEEK_SET)
        os.write(descriptor, f"process {os.getpid()} on {socket.gethostname()}".encode())
    return True


# On Windows, locked bytes cannot be read either: only the first byte is locked, and the holder's name is after it.
_HOLDER_BEGIN = 1


def _release(path: Path, descriptor: int) -> None:
    with _guard:
        _held.pop(_identity(os.fstat(descriptor)), None)
        if sys.platform == "win32":  # where an open file cannot be removed
            os.close(descriptor)
            with contextlib.suppress(OSError):
                path.unlink()
        else:  # removed while it is locked, so that no other process locks a file that is about to be removed
            with contextlib.suppress(OSError):
                if _identity(os.stat(path)) == _identity(os.fstat(descriptor)):
                    path.unlink()
            os.close(descriptor)


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


def _describe_holder(path: Path) -> str:
    try:
        with path.open("rb") as file:
            file.seek(_HOLDER_BEGIN)
            return file.read(200).decode("utf-8", "replace") or "another process"
    except OSError:
        return "another process"


def _close_in_child() -> None:
    global _guard
    _guard = threading.Lock()  # another thread of the parent may have held it
    for descriptor in _held.values():
        with contextlib.suppress(OSError):
            os.close(descriptor)
    _held.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_in_child)
