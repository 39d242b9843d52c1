"""Suites that one process measures: their settings, their clock and their results file."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import neighbour


@dataclass(frozen=True)
class Settings:
    """What the command line asks of a suite that one process measures.

    Attributes:
        corpora: The names of the texts.
        megabytes: How much of each.
        rounds: Measurements of each figure, of which the median counts.
        threads: Threads of what may use several.
        cache: A folder for texts and programs that are made once.
        neighbour: Measure beside a process that streams through 64 MB.
        quick: See whether it runs, on little text.
    """

    corpora: list[str]
    megabytes: float
    rounds: int
    threads: int
    cache: Path
    neighbour: bool
    quick: bool

    def condition(self) -> contextlib.AbstractContextManager[None]:
        """Return a context in which the neighbour runs, if one is wanted."""
        return neighbour.running(self.neighbour)


def cpu_seconds(call: Callable[[], object]) -> float:
    """Return how long a call takes, in CPU time of this process."""
    begin = time.process_time()
    call()
    return time.process_time() - begin


def write(path: Path, header: dict[str, Any], fields: dict[str, Any]) -> None:
    """Write a results file: the header (suite, date, machine, commit, command) and what was measured."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({**header, **fields}, indent=1) + "\n")
