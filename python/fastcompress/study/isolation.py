"""Processes for single functions, so that neither a lack of memory nor leftover state affects the caller."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import signal
import threading
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from types import FrameType
from typing import Any

from fastcompress.training.distributed import can_be_sent


class CellError(RuntimeError):
    """The process of a cell ended without a result."""


def run_isolated(work: Callable[..., Any], *arguments: Any, name: str) -> Any:
    """Return what ``work(*arguments)`` returns in a process of its own, or here if it cannot be pickled.

    SIGINT and SIGTERM are passed on to that process.

    Args:
        work: A function of a module.
        arguments: Its arguments.
        name: The name of the process.

    Raises:
        CellError: The process died.
        Others as they were raised in it.
    """
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_run_and_tell, args=(sender, work, arguments), name=name)
    try:
        process.start()
    except (pickle.PicklingError, AttributeError, TypeError):  # what functions of functions, locks and the like raise
        return work(*arguments)
    sender.close()
    with _signals_go_to(process.pid):
        try:
            outcome = receiver.recv()
        except EOFError:
            outcome = None
        process.join()
    if outcome is None:
        how = f"with code {process.exitcode}"
        if process.exitcode is not None and process.exitcode < 0:
            how = f"by {signal.Signals(-process.exitcode).name}; perhaps memory ran out"
        raise CellError(f"its process was ended {how}")
    if isinstance(outcome, BaseException):
        raise outcome
    return outcome


def _run_and_tell(sender: Connection, work: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    """Run in the process; send the result or the error."""
    if hasattr(os, "setpgrp"):
        os.setpgrp()  # Ctrl-C in a terminal reaches the parent, which passes it on, once
    try:
        outcome: Any = work(*arguments)
    except BaseException as error:
        outcome = error
    if not can_be_sent(outcome):
        outcome = CellError(f"{type(outcome).__name__}: {outcome}")
    sender.send(outcome)


@contextlib.contextmanager
def _signals_go_to(pid: int | None) -> Iterator[None]:
    """Within the block, forward SIGINT and SIGTERM to a process, which saves its state and reports that it stopped."""
    if pid is None or threading.current_thread() is not threading.main_thread():
        yield
        return

    def forward(number: int, frame: FrameType | None) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)

    before = {number: signal.signal(number, forward) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
