"""Conversion of torch's out-of-memory errors on the CPU to MemoryError."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

# torch has an error class for accelerators only; on the CPU its allocator raises a RuntimeError with these words.
_CPU_MESSAGES = ("can't allocate memory", "not enough memory")


@contextlib.contextmanager
def memory_errors() -> Iterator[None]:
    """Raise MemoryError where torch raises a RuntimeError for lack of memory on the CPU. Also a decorator."""
    try:
        yield
    except RuntimeError as error:
        if any(message in str(error) for message in _CPU_MESSAGES):
            raise MemoryError(str(error).strip().splitlines()[0]) from error
        raise
