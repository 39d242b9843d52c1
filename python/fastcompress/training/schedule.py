"""The progress of a run towards its horizon, and the learning rate at each point.

Both are pure functions of (step, seconds), so a resumed run continues on the same curve, and one code path serves
horizons in steps, tokens, FLOPs and seconds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from fastcompress.errors import ConfigError
from fastcompress.training.config import ScheduleConfig, TrainConfig
from fastcompress.training.update_config import ScheduleKind


@dataclass(frozen=True)
class Horizon:
    """The end of a run, in steps or in seconds; exactly one is set."""

    steps: int | None
    seconds: float | None

    @classmethod
    def from_config(cls, config: TrainConfig, flops_per_step: int, tokens_per_step: int = 1) -> Horizon:
        """Make the horizon that a configuration sets. A budget of FLOPs or tokens becomes the steps that fit into it.

        Raises:
            ConfigError: Not one step fits, or warm-up and cool-down exceed the steps.
        """
        horizon = cls._from_budget(config, flops_per_step, tokens_per_step)
        schedule = config.schedule
        if horizon.steps is not None and schedule.warmup_steps is not None:
            cooldown = schedule.cooldown if schedule.kind == "trapezoid" else 0.0
            if schedule.warmup_steps > (1 - cooldown) * horizon.steps:
                raise ConfigError(
                    f"warmup_steps is {schedule.warmup_steps}; with a cooldown of {cooldown:g} it must be at most "
                    f"{int((1 - cooldown) * horizon.steps)} in a run of {horizon.steps} steps"
                )
        return horizon

    @classmethod
    def _from_budget(cls, config: TrainConfig, flops_per_step: int, tokens_per_step: int) -> Horizon:
        if config.flops is None and config.tokens is None:
            return cls(config.steps, config.seconds)
        name, per_step = ("flops", flops_per_step) if config.flops is not None else ("tokens", tokens_per_step)
        budget = getattr(config, name)
        steps = int(budget // per_step)
        if steps < 1:
            raise ConfigError(
                f"{name} is {budget:.3g}, less than one step ({per_step:.3g}); raise it, or lower batch_size"
            )
        return cls(steps, None)

    def progress(self, step: int, seconds: float) -> float:
        """Return the fraction of the run, in [0, 1], that is done after ``step`` steps and ``seconds`` seconds."""
        done = step / self.steps if self.steps is not None else seconds / (self.seconds or math.inf)
        return min(1.0, done)

    def progress_within(self, step: int, seconds: float, seconds_per_step: float) -> float:
        """Return the progress in the middle of the next step, so that no step has the rate zero of an end."""
        return (self.progress(step, seconds) + self.progress(step + 1, seconds + seconds_per_step)) / 2


def learning_rate_at(
    schedule: ScheduleConfig, horizon: Horizon, step: int, seconds: float, seconds_per_step: float
) -> float:
    """Return the learning rate of the next step as a fraction of its peak.

    Args:
        schedule: The kind of schedule and its lengths.
        horizon: The end of the run.
        step: The number of steps done.
        seconds: The number of seconds spent.
        seconds_per_step: The duration of a step. Under a horizon in seconds, it locates the next step, and the end of
            a warm-up that is given in steps.
    """
    progress, warmup = horizon.progress_within(step, seconds, seconds_per_step), schedule.warmup
    if schedule.warmup_steps is not None:
        if step < schedule.warmup_steps:
            return (step + 0.5) / schedule.warmup_steps
        warmup = min(progress, horizon.progress(schedule.warmup_steps, schedule.warmup_steps * seconds_per_step))
    return learning_rate_multiplier(
        progress, schedule.kind, warmup=warmup, cooldown=schedule.cooldown, final=schedule.final_learning_rate
    )


def learning_rate_multiplier(
    progress: float, kind: ScheduleKind, *, warmup: float, cooldown: float, final: float
) -> float:
    """Return the learning rate at ``progress`` p in [0, 1], as a fraction of its peak, in [0, 1].

    With w = ``warmup``, c = ``cooldown`` (fractions of the run) and f = ``final``:

        p < w           p / w
        "constant"      1
        "cosine"        f + (1 - f) (1 + cos(pi (p - w) / (1 - w))) / 2
        "trapezoid"     1 up to p = 1 - c, then f + (1 - f) (1 - p) / c
    """
    if progress < warmup:
        return progress / warmup
    if kind == "constant":
        return 1.0
    if kind == "cosine":
        fraction = (progress - warmup) / (1 - warmup) if warmup < 1 else 1.0
        return final + (1 - final) * (1 + math.cos(math.pi * fraction)) / 2
    if progress <= 1 - cooldown:
        return 1.0
    return final + (1 - final) * (1 - progress) / cooldown
