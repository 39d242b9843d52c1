"""How many threads a model's passes get on the CPU.

Threads meet at a barrier after every operation, and torch's spin there. For a small model an operation takes less time
than the meeting: two threads gain little on an idle machine, and on a busy one, where a thread waits for its turn on
a processor while the other spins, they were measured at a fortieth of the speed. So small models get one thread; their
figures then do not depend on the number of processors either (float sums do depend on how they are divided).
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
    """Give torch's operations on the CPU this many threads inside, as many as before outside."""
    before = torch.get_num_threads()
    torch.set_num_threads(num_threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)
