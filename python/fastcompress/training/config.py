"""Settings of a training run, apart from the model's own.

One rule shapes them: a run has exactly one horizon (steps, FLOPs or seconds), and everything that unfolds
over a run (warm-up, cool-down, the default evaluation times) is a fraction of it, so arms under one budget
are treated alike.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any, Literal, get_args

from fastcompress.errors import ConfigError
from fastcompress.models.settings import settings_from_json

ScheduleKind = Literal["warmup_stable_decay", "cosine"]
PrecisionChoice = Literal["auto", "float32", "bfloat16", "float16"]
CompileChoice = Literal["auto", "on", "off"]

_CHOICES: dict[str, tuple[str, ...]] = {
    "schedule": get_args(ScheduleKind),
    "precision": get_args(PrecisionChoice),
    "compile": get_args(CompileChoice),
}
_HORIZONS = ("steps", "flops", "seconds")


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """Settings of a training run. Raises ConfigError for a setting that cannot work.

    Attributes:
        steps, flops, seconds: The horizon; exactly one is set. FLOPs: as many whole steps as fit the budget
            (``evaluation/flops.py`` says how they are counted). Seconds: wall time from the first step, with
            evaluations and checkpoints, without loading, self-check and compilation; it can end late by half a
            step, and makes at least one. Evaluations get a quarter of it at most, apart from the first and the last
            one, and each of them a tenth: if this machine is too slow to score ``eval_bytes`` in that, it scores
            fewer. Such a run is not reproducible to the bit.
        batch_size: Sequences per step, each of the model's context length.
        micro_batch_size: Sequences in one forward pass, a divisor of ``batch_size``; smaller needs less
            memory and changes rounding only. Default: all.
        learning_rate: Peak learning rate.
        schedule: ``"warmup_stable_decay"`` or ``"cosine"``, after a linear warm-up.
        warmup, cooldown: Fractions of the horizon; ``cooldown`` is the linear end of warmup_stable_decay.
        final_learning_rate: Fraction of the peak at the end.
        beta1, beta2, epsilon: Parameters of AdamW.
        weight_decay: Decoupled weight decay, of matrices only.
        clip_norm: Gradients with a larger norm are scaled down to it; None: never.
        precision: ``"auto"``: bfloat16 autocast on CUDA cards that compute in it, float16 with loss scaling
            on older ones, float32 elsewhere.
        compile: ``"auto"``: ``torch.compile`` on CUDA, with a warning and eager execution where that fails.
        device: ``"auto"`` (cuda, mps, cpu: the first there is) or any torch device name.
        eval_every: Steps between evaluations; default: ``num_evals`` evenly over the horizon. Step 0 and the
            last step are always evaluated. ``last.safetensors`` is written at each, too.
        eval_bytes: Largest number of validation bytes in each of these evaluations, which read the first documents
            and cut the last one. None for all.
        eval_batch_size: Windows in one forward pass of an evaluation.
        log_every: Steps between training lines in ``metrics.jsonl``.
        self_check: Look for a future leak, uncleared gradients and the like before a run starts (about a second).
        num_threads: Threads on the CPU. Default: one for small models (``models/threads.py``), else torch's own
            number. Another number changes rounding.
        seed: Seed for initial weights, dropout and batch order.
    """

    steps: int | None = None
    flops: float | None = None
    seconds: float | None = None
    batch_size: int = 64
    micro_batch_size: int | None = None
    learning_rate: float = 1e-3
    schedule: ScheduleKind = "warmup_stable_decay"
    warmup: float = 0.02
    cooldown: float = 0.4
    final_learning_rate: float = 0.05
    beta1: float = 0.9
    beta2: float = 0.95
    epsilon: float = 1e-8
    weight_decay: float = 0.1
    clip_norm: float | None = 1.0
    precision: PrecisionChoice = "auto"
    compile: CompileChoice = "auto"
    device: str = "auto"
    eval_every: int | None = None
    num_evals: int = 20
    eval_bytes: int | None = 1 << 18
    eval_batch_size: int = 32
    log_every: int = 10
    self_check: bool = True
    num_threads: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        given = [name for name in _HORIZONS if getattr(self, name) is not None]
        if len(given) != 1:
            raise ConfigError(f"set exactly one horizon of steps, flops, seconds; got {' and '.join(given) or 'none'}")
        for name, choices in _CHOICES.items():
            if getattr(self, name) not in choices:
                raise ConfigError(f"{name} must be one of {', '.join(choices)}, not {getattr(self, name)!r}")
        self._check_counts()
        self._check_numbers()
        if self.warmup + self.cooldown > 1.0 and self.schedule == "warmup_stable_decay":
            raise ConfigError(f"warmup {self.warmup} and cooldown {self.cooldown} exceed the horizon: sum at most 1")

    def _check_counts(self) -> None:
        positive = ("batch_size", "num_evals", "eval_batch_size", "log_every")
        optional = ("steps", "micro_batch_size", "eval_every", "eval_bytes", "num_threads")
        for name in (*positive, *(name for name in optional if getattr(self, name) is not None)):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise ConfigError(f"{name} must be a whole number of at least 1, not {value!r}")
        if not isinstance(self.seed, int) or not 0 <= self.seed < 1 << 63:
            raise ConfigError(f"seed must be a whole number in [0, 2**63), not {self.seed!r}")
        if self.batch_size % self.micro_batch:
            raise ConfigError(
                f"micro_batch_size {self.micro_batch_size} must divide batch_size {self.batch_size}, "
                "or the micro-batches would not weigh alike"
            )

    def _check_numbers(self) -> None:
        for name in ("flops", "seconds", "learning_rate", "epsilon", "clip_norm"):
            value = getattr(self, name)
            if value is None and name in ("flops", "seconds", "clip_norm"):
                continue
            if not (_is_number(value) and 0.0 < value < math.inf):
                raise ConfigError(f"{name} must be more than 0 and finite, not {value!r}")
        for name in ("warmup", "cooldown", "final_learning_rate"):
            value = getattr(self, name)
            if not (_is_number(value) and 0.0 <= value <= 1.0):
                raise ConfigError(f"{name} is a fraction, in [0, 1], not {value!r}")
        for name in ("beta1", "beta2"):
            value = getattr(self, name)
            if not (_is_number(value) and 0.0 <= value < 1.0):
                raise ConfigError(f"{name} must be in [0, 1), not {value!r}")
        if not (_is_number(self.weight_decay) and 0.0 <= self.weight_decay < math.inf):
            raise ConfigError(f"weight_decay must be at least 0 and finite, not {self.weight_decay!r}")

    @property
    def micro_batch(self) -> int:
        """The number of sequences in one forward pass."""
        return self.batch_size if self.micro_batch_size is None else self.micro_batch_size

    def to_json(self) -> dict[str, Any]:
        """Return the fields as plain values; ``from_json`` restores the settings from them."""
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, fields: dict[str, Any]) -> TrainConfig:
        """Build from what ``to_json`` returned. Raises ConfigError for an unknown name or a bad value."""
        return settings_from_json(cls, fields, "training")


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
