"""A neighbour that wants the cache: a second process that streams through 64 MB while something else is measured.

On a server the other cores are busy, and they share the last cache and the way to memory. Code whose working set is
small hardly notices; code that relies on a large table in a shared cache slows down. `--neighbour` shows which it is.

The neighbour runs on the last core that this process may use, and what is measured runs on the others, so the two
compete for caches and memory but not for a core.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator

import numpy as np

STREAM_BYTES = 64_000_000
READY = "ready"


@contextlib.contextmanager
def running(wanted: bool) -> Iterator[None]:
    """Run a neighbour for the duration of the block, if `wanted`. Raises OSError if there is only one core."""
    if not wanted:
        yield
        return
    cores = os.sched_getaffinity(0)
    if len(cores) < 2:
        raise OSError("a neighbour needs a core of its own, and this process may use one only")
    theirs = max(cores)
    process = subprocess.Popen([sys.executable, __file__, str(theirs)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        if process.stdout.readline().decode().strip() != READY:
            raise OSError("the neighbour did not start")
        os.sched_setaffinity(0, cores - {theirs})  # processes started from here inherit it
        yield
        if process.poll() is not None:
            raise OSError("the neighbour ended before the measurement did")
    finally:
        os.sched_setaffinity(0, cores)
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


def main() -> None:
    """Stream through the array on one core until the parent is gone."""
    os.sched_setaffinity(0, {int(sys.argv[1])})
    parent = os.getppid()
    numbers = np.zeros(STREAM_BYTES // 8)
    numbers += 1
    sys.stdout.write(READY + "\n")
    sys.stdout.flush()
    while os.getppid() == parent:
        begin = time.monotonic()
        while time.monotonic() < begin + 0.5:
            numbers += 1


if __name__ == "__main__":
    main()
