"""Where a run stands on its horizon, and the learning rate that belongs there.

Both are pure functions of (step, seconds), so a resumed run continues on the same curve, and one code path
serves horizons in steps, tokens, FLOPs and seconds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from fastcompress.errors import ConfigError
from fastcompress.training.config import ScheduleKind, TrainConfig


@dataclass(frozen=True)
class Horizon:
    """The end of a run, in steps or in seconds; exactly one is set."""

    steps: int | None
    seconds: float | None

    @classmethod
    def from_config(cls, config: TrainConfig, flops_per_step: int, tokens_per_step: int = 1) -> Horizon:
        """Make the horizon that a configuration sets. A budget of FLOPs or tokens becomes the steps that fit into it.

        Raises:
            ConfigError: Not one step fits.
        """
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
        """Return the part of the run, in [0, 1], that ``step`` steps and ``seconds`` seconds have covered."""
        done = step / self.steps if self.steps is not None else seconds / (self.seconds or math.inf)
        return min(1.0, done)

    def progress_within(self, step: int, seconds: float, seconds_per_step: float) -> float:
        """Return the progress in the middle of the next step, so that no step is spent at the rate zero of an end."""
        return (self.progress(step, seconds) + self.progress(step + 1, seconds + seconds_per_step)) / 2


def learning_rate_multiplier(
    progress: float, kind: ScheduleKind, *, warmup: float, cooldown: float, final: float
) -> float:
    """The learning rate at ``progress`` in [0, 1], as a fraction of its peak, in [0, 1].

    Linear from 0 to 1 over ``warmup``. Then ``"warmup_stable_decay"``: 1, and linear to ``final`` over the
    last ``cooldown``; ``"cosine"``: half a cosine wave from 1 to ``final``. Lengths are fractions of the run.
    """
    if progress < warmup:
        return progress / warmup
    if kind == "cosine":
        fraction = (progress - warmup) / (1 - warmup) if warmup < 1 else 1.0
        return final + (1 - final) * (1 + math.cos(math.pi * fraction)) / 2
    if progress <= 1 - cooldown:
        return 1.0
    return final + (1 - final) * (1 - progress) / cooldown
