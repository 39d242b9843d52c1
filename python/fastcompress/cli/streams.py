"""Standard input, output and error, each of which a shell may have closed (`<&-`, `>&-`, `2>&-`).

Python sets a closed stream to None. Here it becomes a stream whose use raises an error that names it, except that
output to a closed standard error is dropped, since there is no other place to report it.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Iterator
from typing import BinaryIO

from fastcompress.errors import DataError, OutputError


class _Closed(io.BufferedIOBase):
    """The bytes of a stream that was closed before the program began."""

    def readable(self) -> bool:
        return True

    def writable(self) -> bool:
        return True

    def write(self, data: object) -> int:
        if not data:  # click writes empty data to find out what kind of stream it has
            return 0
        raise OutputError("standard output is closed; leave out >&-, or write to a file with -o")

    def read(self, size: int | None = -1) -> bytes:
        raise DataError("standard input is closed; leave out <&-, or name a file")

    read1 = read


def open_closed_streams() -> None:
    """Replace standard streams that are closed.

    Their descriptors are occupied first, so that no file opened later gets one of them and is written to by mistake.
    """
    for number in (0, 1, 2):
        if not _is_open(number):
            os.open(os.devnull, os.O_RDWR)  # opens the lowest free descriptor, which is this one
    if sys.stdin is None:
        sys.stdin = io.TextIOWrapper(_Closed(), "utf-8")
    if sys.stdout is None:
        sys.stdout = io.TextIOWrapper(_Closed(), "utf-8", write_through=True)
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 (it stays open)


def _is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


def stdout_is_closed() -> bool:
    """Return whether standard output was closed before the program began."""
    return isinstance(getattr(sys.stdout, "buffer", None), _Closed)


def give_up_stdout() -> None:
    """Discard the contents of the buffer of standard output, which Python would fail to write at exit."""
    with contextlib.suppress(OSError, ValueError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)


class ReaderGoneError(OutputError):
    """The program that was reading standard output has ended.

    Not a BrokenPipeError, after which click would exit without a message.
    """


class StandardOutput:
    """Standard output as a destination of bytes, with errors that name it."""

    def write(self, data: bytes) -> int:
        with _naming_stdout():
            return sys.stdout.buffer.write(data)

    def flush(self) -> None:
        with _naming_stdout():
            sys.stdout.flush()


def stdin() -> BinaryIO:
    """Return standard input as a stream of bytes."""
    return sys.stdin.buffer


@contextlib.contextmanager
def naming_stdin() -> Iterator[None]:
    """Turn errors of reading standard input into a DataError that names it."""
    try:
        yield
    except OSError as error:
        if isinstance(error, OutputError) or error.filename is not None:
            raise
        raise DataError(f"standard input: cannot be read ({error.strerror or error}); name a file") from error


@contextlib.contextmanager
def _naming_stdout() -> Iterator[None]:
    try:
        yield
    except OutputError:
        raise
    except BrokenPipeError as error:
        raise ReaderGoneError("standard output is closed: the program that was reading it has ended") from error
    except OSError as error:
        raise OutputError(
            f"standard output: cannot be written ({error.strerror or error}); send it elsewhere"
        ) from error
