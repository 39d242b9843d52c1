"""Settings of the optimizers and of the learning-rate schedule."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias

from fastcompress.errors import ConfigError
from fastcompress.models.settings import (
    check_choices,
    check_counts,
    check_flags,
    check_fractions,
    check_positive,
    is_number,
)

# "warmup_stable_decay" is the old name of "trapezoid".
ScheduleKind = Literal["trapezoid", "cosine", "constant", "warmup_stable_decay"]


@dataclass(frozen=True, kw_only=True)
class AdamWConfig:
    """AdamW (Loshchilov and Hutter, arXiv 1711.05101).

    Attributes:
        kind: ``"adamw"``.
        learning_rate: Peak learning rate of matrices.
        embedding_rate: Peak learning rate of embeddings. Default: that of matrices.
        memory_rate: Peak learning rate of tables of n-grams (Engram), for which its paper has five times that of
            matrices. Default: that of embeddings.
        spelled_rate: Peak learning rate of the vectors of spelled bytes. Default: that of embeddings.
        head_rate: Peak learning rate of heads. Default: that of matrices.
        vector_rate: Peak learning rate of vectors and scalars. Default: that of matrices.
        beta1: Decay of the running mean of gradients.
        beta2: Decay of the running mean of their squares.
        epsilon: Added to the root of the mean square.
        weight_decay: Decoupled weight decay, of all but vectors. A step takes ``learning_rate * weight_decay`` of a
            weight, whatever the rate of its group.
        memory_decay: Weight decay of tables of n-grams, for which Engram's paper has 0. Default: ``weight_decay``.
        cautious_decay: Decay a weight only where the update moves it towards zero, too.
        clip_norm: Gradients with a larger norm are scaled down to it; None: never.
    """

    kind: Literal["adamw"] = "adamw"
    learning_rate: float = 1e-3
    embedding_rate: float | None = None
    memory_rate: float | None = None
    spelled_rate: float | None = None
    head_rate: float | None = None
    vector_rate: float | None = None
    beta1: float = 0.9
    beta2: float = 0.95
    epsilon: float = 1e-8
    weight_decay: float = 0.1
    memory_decay: float | None = None
    cautious_decay: bool = False
    clip_norm: float | None = 1.0

    def __post_init__(self) -> None:
        rates = ("embedding_rate", "memory_rate", "spelled_rate", "head_rate", "vector_rate")
        check_positive(self, *rates, may_lack=rates)
        _check_optimizer(self, "beta1", "beta2")
        if self.memory_decay is not None:
            _check_decay(self, "memory_decay")


@dataclass(frozen=True, kw_only=True)
class MuonConfig:
    """Muon for matrices (Jordan, kellerjordan.github.io/posts/muon), AdamW for all else.

    Muon replaces the running mean of a matrix's gradients by the nearest matrix with orthogonal rows or columns, so its
    learning rate does not compare with AdamW's. The defaults suit small models and short runs; embeddings of unit norm
    need 0.3 to 0.9 (``fastcompress tune`` searches for a common factor of all rates).

    Attributes:
        kind: ``"muon"``.
        learning_rate: Peak learning rate of matrices.
        embedding_rate: Peak learning rate of embeddings, which AdamW updates, as it does the groups below.
        memory_rate: Peak learning rate of tables of n-grams (Engram). At that of embeddings, models were worse than
            without the tables (benchmarks/LOG.md). None: that of embeddings.
        spelled_rate: Peak learning rate of the vectors of spelled bytes, of which a token sums many. None: that of
            embeddings.
        head_rate: Peak learning rate of heads.
        vector_rate: Peak learning rate of vectors, scalars and weights of more than two dimensions.
        momentum: Decay of Muon's running mean of gradients.
        beta1, beta2, epsilon: AdamW's.
        weight_decay: Decoupled weight decay, of matrices only. A step takes ``learning_rate * weight_decay`` of a
            weight.
        cautious_decay: Decay a weight only where the update also moves it towards zero.
        clip_norm: Gradients with a larger norm are scaled down to it; None: never.
    """

    kind: Literal["muon"] = "muon"
    learning_rate: float = 0.02
    embedding_rate: float = 0.03
    memory_rate: float | None = 2e-3
    spelled_rate: float | None = 4e-3
    head_rate: float = 4e-3
    vector_rate: float = 4e-3
    momentum: float = 0.95
    beta1: float = 0.8
    beta2: float = 0.95
    epsilon: float = 1e-10
    weight_decay: float = 0.05
    cautious_decay: bool = False
    clip_norm: float | None = None

    def __post_init__(self) -> None:
        optional = ("memory_rate", "spelled_rate")
        check_positive(self, "embedding_rate", "head_rate", "vector_rate", *optional, may_lack=optional)
        _check_optimizer(self, "momentum", "beta1", "beta2")


OptimizerConfig: TypeAlias = AdamWConfig | MuonConfig


def _check_optimizer(settings: OptimizerConfig, *decays: str) -> None:
    """Check the settings that all optimizers have. Raises ConfigError."""
    check_positive(settings, "learning_rate", "epsilon", "clip_norm", may_lack=("clip_norm",))
    check_fractions(settings, *decays)
    _check_decay(settings, "weight_decay")
    check_flags(settings)


def _check_decay(settings: OptimizerConfig, name: str) -> None:
    """Raise ConfigError if a weight decay is negative or infinite."""
    value = getattr(settings, name)
    if not (is_number(value) and 0.0 <= value < math.inf):
        raise ConfigError(f"{name} must be at least 0 and finite, not {value!r}")


@dataclass(frozen=True, kw_only=True)
class ScheduleConfig:
    """The learning rate over a run, as a fraction of its peak.

    Attributes:
        kind: After a linear warm-up, ``"trapezoid"`` (a plateau, then a linear cool-down), ``"cosine"`` (half a wave)
            or ``"constant"``. ``"warmup_stable_decay"`` is the old name of trapezoid.
        warmup: Fraction of the horizon over which the rate rises.
        warmup_steps: Steps over which the rate rises; it replaces ``warmup``. None: ``warmup`` applies.
        cooldown: Fraction of the horizon over which the rate falls at the end of a trapezoid.
        final_learning_rate: Fraction of the peak at the end of a trapezoid or a cosine.
    """

    kind: ScheduleKind = "trapezoid"
    warmup: float = 0.02
    warmup_steps: int | None = None
    cooldown: float = 0.4
    final_learning_rate: float = 0.05

    def __post_init__(self) -> None:
        check_choices(self, kind=ScheduleKind)
        if self.kind == "warmup_stable_decay":
            object.__setattr__(self, "kind", "trapezoid")
        check_counts(self, "warmup_steps", may_lack=("warmup_steps",))
        for name in ("warmup", "cooldown", "final_learning_rate"):
            value = getattr(self, name)
            if not (is_number(value) and 0.0 <= value <= 1.0):
                raise ConfigError(f"{name} is a fraction, in [0, 1], not {value!r}")
        if self.kind == "trapezoid" and self.warmup_steps is None and self.warmup + self.cooldown > 1.0:
            raise ConfigError(f"warmup {self.warmup} and cooldown {self.cooldown} exceed the horizon: sum at most 1")
