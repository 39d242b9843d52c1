"""The number of CPU threads for a model's passes.

Threads meet at a barrier after every operation, where torch's spin. For a small model, an operation takes less time
than the barrier: two threads gain little on an idle machine. On a busy one, where a thread waits for a processor while
the other spins, they were measured at a fortieth of the speed. Small models therefore get one thread, which also makes
their figures independent of the number of processors (float sums depend on how they are divided).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch

# Numbers in one activation, rows x positions x width, up to which one thread is used: 32 x 128 x 128.
SMALL_ACTIVATION = 1 << 19


def choose_threads(rows: int, positions: int, width: int) -> int:
    """Return 1 for small passes, else torch's own number of threads."""
    return 1 if rows * positions * width <= SMALL_ACTIVATION else torch.get_num_threads()


@contextlib.contextmanager
def limited_threads(num_threads: int) -> Iterator[None]:
    """Set the number of torch's CPU threads within the block, and restore it after."""
    before = torch.get_num_threads()
    torch.set_num_threads(num_threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)
