"""Ctrl-C and SIGTERM, handled between steps or evaluation batches, since half a step could not be resumed."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from types import FrameType, TracebackType
from typing import Any

MESSAGE = b"\nstopping after this step and saving; once more to stop at once\n"


class InterruptGuard:
    """A context in which the first SIGINT or SIGTERM prints a notice and sets a flag that ``check`` raises.

    A second signal acts as it would without the guard, unless it comes within ``repeat_seconds``: under torchrun, a
    Ctrl-C arrives from the terminal and again from torchrun. The guard does nothing outside the main thread, where
    Python delivers no signals, or for signals that the process ignores.
    """

    def __init__(self, repeat_seconds: float = 0.0, *, announce: bool = True) -> None:
        self.repeat_seconds, self.announce = repeat_seconds, announce
        self.received: int | None = None
        self._first: dict[int, float] = {}  # when each signal came first
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> InterruptGuard:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                previous = signal.getsignal(number)
                if previous is not None and previous != signal.SIG_IGN:  # None: not Python's, could not be restored
                    self._previous[number] = previous
                    signal.signal(number, self._receive)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, previous in self._previous.items():
            signal.signal(number, previous)

    def check(self) -> None:
        """Raise KeyboardInterrupt after a SIGINT, SystemExit (code 128 + 15) after a SIGTERM."""
        if self.received == signal.SIGINT:
            raise KeyboardInterrupt
        if self.received is not None:
            raise SystemExit(128 + self.received)

    def _receive(self, number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if number not in self._first:
            self._first[number], self.received = now, number
            if self.announce:
                with contextlib.suppress(OSError):  # past sys.stderr, which may be in the middle of a write
                    os.write(2, MESSAGE)
        elif now - self._first[number] >= self.repeat_seconds:
            signal.signal(number, self._previous[number])
            signal.raise_signal(number)
        if not self.repeat_seconds:
            signal.signal(number, self._previous[number])
