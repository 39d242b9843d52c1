"""Training runs as processes, several at a time on each card; each prints its figures, JSON, in its last line."""

from __future__ import annotations

import concurrent.futures
import datetime
import json
import os
import queue
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import click

import results_file

# A run that goes on slower than it should is no measurement.
FALLBACKS_ARE_ERRORS = "error:torch.compile failed,error:the step cannot be recorded"


def run_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options with which suites run on cards: ``jobs``, ``seconds``, ``device`` and ``commit``."""
    for option in (
        click.option("--commit", default=results_file.commit(Path(__file__).parent), help="Of the measured code."),
        click.option("--device", default="auto"),
        click.option("--seconds", default=1e6, help="Start nothing after this time."),
        click.option("--jobs", default=1, show_default=True, help="Runs at a time on each card."),
    ):
        command = option(command)
    return command


def header(suite: str, command: str, commit: str) -> dict[str, Any]:
    """Return what a results file says of figures from cards: the suite, the date, the command, commit and machine."""
    import torch

    names = [torch.cuda.get_device_name(card) for card in range(torch.cuda.device_count())]
    return {
        "suite": suite,
        "date": datetime.date.today().isoformat(),
        "command": f"python benchmarks/{command}",
        "commit": commit,
        "machine": {**results_file.machine(), "cards": names, "torch": torch.__version__},
    }


def write(out: Path, found: dict[str, Any]) -> None:
    """Write a results file."""
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(found, indent=1) + "\n")


class Cards:
    """The cards of this process, and the time until which runs may start on them.

    Args:
        per_card: Runs at a time on each card.
        seconds: From now; runs get half a minute more to end.
    """

    def __init__(self, per_card: int, seconds: float) -> None:
        self.begin, self.seconds = time.monotonic(), seconds
        self._free: queue.SimpleQueue[str] = queue.SimpleQueue()
        for name in results_file.cards() * per_card:
            self._free.put(name)

    def seconds_left(self) -> float:
        """Return for how long runs may still start; not positive afterwards."""
        return self.seconds - (time.monotonic() - self.begin)

    def run(self, commands: Sequence[list[str]]) -> Iterator[dict[str, Any] | None]:
        """Run scripts of this folder, given by their arguments, and yield the figures of each in order.

        Several threads may do so at once. None stands for a run that failed, or that there was no time for.
        """
        with concurrent.futures.ThreadPoolExecutor(max(len(commands), 1)) as pool:
            yield from pool.map(self._on_free_card, commands)

    def _on_free_card(self, command: list[str]) -> dict[str, Any] | None:
        card = self._free.get()
        try:
            return self._figures_of(command, card)
        finally:
            self._free.put(card)

    def _figures_of(self, command: list[str], card: str) -> dict[str, Any] | None:
        left = self.seconds_left()
        if left <= 0:
            return None
        warnings = ",".join(filter(None, [os.environ.get("PYTHONWARNINGS"), FALLBACKS_ARE_ERRORS]))
        env = {**os.environ, "PYTHONWARNINGS": warnings} | ({"CUDA_VISIBLE_DEVICES": card} if card else {})
        try:
            done = subprocess.run(
                [sys.executable, *command], stdout=subprocess.PIPE, text=True, check=True, timeout=left + 30, env=env
            )
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
            click.echo(f"{' '.join(command)}: {error}", err=True)
            return None
        figures: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        name = " ".join(str(figures[key]) for key in ("arm", "name", "seed") if key in figures)
        click.echo(f"{time.monotonic() - self.begin:4.0f} s {name}: {figures['bits_per_byte']:.4f}")
        return figures
