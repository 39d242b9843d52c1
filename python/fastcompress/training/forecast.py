"""The forecast of a run: its memory and time, before its first step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fastcompress.data.loader import EpochFigures
from fastcompress.training.memory import estimate_memory, memory_for_each
from fastcompress.training.trial import seconds_per_step

if TYPE_CHECKING:
    from fastcompress.training.loop import TrainingRun


@dataclass(frozen=True)
class Forecast:
    """The memory and the time that a run will need.

    Attributes:
        memory: Peak bytes of each process, estimated from the settings.
        available: Bytes available to each process; None if unknown.
        steps: The number of steps left.
        seconds: The time for them, without evaluations, measured by two trial passes.
        num_processes: The number of processes.
        reading: What an epoch of each dataset holds and leaves out.
    """

    memory: int
    available: int | None
    steps: int
    seconds: float
    num_processes: int = 1
    reading: tuple[EpochFigures, ...] = ()

    def __str__(self) -> str:
        of = f" of {self.available / 1e9:.1f} GB" if self.available is not None else ""
        each = f" in each of {self.num_processes} processes" if self.num_processes > 1 else ""
        memory = f"about {self.memory / 1e9:.1f} GB{of} of memory{each}"
        return f"{memory}; {self.steps:,} steps, about {_time(self.seconds)}"


def make_forecast(run: TrainingRun) -> Forecast:
    """Estimate memory and time a step. Every rank takes part; weights and generators are not changed."""
    available = memory_for_each(run.device, run.ranks)  # before the passes allocate
    each = seconds_per_step(run)
    horizon = run.horizon
    if horizon.steps is not None:
        steps = max(0, horizon.steps - run.at.step)
    else:
        steps = max(1, round(((horizon.seconds or 0.0) - run.wall.read()) / max(each, 1e-9)))
    need = estimate_memory(run.model.config, run.config, run.device.type, run.ranks)
    return Forecast(need.total, available, steps, steps * each, run.ranks.size, run.feed.loader.figures)


def _time(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
