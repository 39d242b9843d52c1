"""Settings of a training run, apart from the model's own: nested, frozen, and checked when they are made.

A run has exactly one horizon (steps, tokens, FLOPs or seconds). Warm-up, cool-down and the default times of evaluations
are fractions of it, so arms under one budget are treated alike.

Settings are grouped into sections. The name of a setting is unique across sections, so the section may be left out, in
Python as on the command line. These are equivalent:

    TrainConfig(steps=100, optimizer=AdamWConfig(learning_rate=0.01))
    TrainConfig(steps=100, learning_rate=0.01)
    TrainConfig.from_json({"steps": 100, "optimizer": {"kind": "adamw", "learning_rate": 0.01}})
    fastcompress train --steps 100 --learning-rate 0.01
    fastcompress train --set steps=100 --set optimizer.learning_rate=0.01

Settings that depend on the machine (kernels, precision, compilation, threads, micro-batches) have a section of their
own, and a run can resume with others.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from fastcompress.data.orders import check_order
from fastcompress.data.packing import Packing
from fastcompress.errors import ConfigError
from fastcompress.models.settings import (
    Float8Kind,
    check_choices,
    check_counts,
    check_flags,
    check_positive,
    settings_from_json,
    unknown_setting,
)
from fastcompress.training.update_config import AdamWConfig, MuonConfig, OptimizerConfig, ScheduleConfig, ScheduleKind

__all__ = [
    "HORIZONS",
    "SECTIONS",
    "AdamWConfig",
    "EvaluationConfig",
    "MachineConfig",
    "MuonConfig",
    "OptimizerConfig",
    "ScheduleConfig",
    "TrainConfig",
    "setting_names",
]

PrecisionChoice = Literal["auto", "float32", "bfloat16", "float16"]
CompileChoice = Literal["auto", "on", "off"]
ParallelKind = Literal["ddp", "fsdp"]

HORIZONS = ("steps", "tokens", "flops", "seconds")


@dataclass(frozen=True, kw_only=True)
class MachineConfig:
    """Settings of the machine that computes a run; they affect rounding, speed and memory only.

    Attributes:
        device: ``"auto"`` (the first of cuda, mps and cpu that is available) or any torch device name.
        precision: ``"auto"``: bfloat16 autocast on CUDA cards that compute in it, float16 with loss scaling
            on older ones, float32 elsewhere.
        compile: ``"auto"``: ``torch.compile`` on CUDA, with a warning and eager execution where that fails.
        cuda_graph: ``"auto"``: record a compiled step as a CUDA graph (``training/graph.py``) on one card or under
            ``"ddp"``, without loss scaling and without ``checkpoint_activations``; ``"off"``: never.
        attention: ``"sdpa"`` (fused kernel) or ``"plain"`` (written out).
        float8: Products that training computes in 8-bit floating point (``models/float8.py``), on cards that have it
            (Ada, Hopper and later): none (``"off"``), those of a GPT's head (``"head"``), also the forward products of
            what RMSNorm without gain gives (``"normed"``), or those of all the blocks' matrices (``"all"``).
            Evaluations use the weights as they are.
        logits_at_once: Largest number of logits in memory at a time. Default: suits the device.
        micro_batch_size: Sequences in one forward pass, a divisor of ``batch_size``; a smaller one needs less
            memory. Default: all.
        fit_micro_batch: Use the largest micro-batch that is estimated to fit into memory, unless ``micro_batch_size``
            is given.
        checkpoint_activations: Recompute the inside of blocks in the backward pass instead of keeping it: less memory,
            a third more operations.
        parallel: Placement of the model under torchrun: ``"ddp"`` (a copy on each process) or ``"fsdp"`` (a part of
            every tensor on each process).
        overlap_reduction: Bring gradients together during the backward pass under ``"ddp"``, too: meant for cards that
            reach each other over PCIe or a network; over NVLink, waiting for the end of the pass was faster.
        num_threads: Threads on the CPU. Default: one for small models (``models/threads.py``), else torch's own
            number.
        peak_flops: Peak FLOPs per second of the device at the run's precision, for MFU. Default: the vendor's figure
            for known cards (``training/utilization.py``).
    """

    device: str = "auto"
    precision: PrecisionChoice = "auto"
    compile: CompileChoice = "auto"
    cuda_graph: Literal["auto", "off"] = "auto"
    attention: Literal["sdpa", "plain"] = "sdpa"
    float8: Float8Kind = "off"
    logits_at_once: int | None = None
    micro_batch_size: int | None = None
    fit_micro_batch: bool = False
    checkpoint_activations: bool = False
    parallel: ParallelKind = "ddp"
    overlap_reduction: bool = False
    num_threads: int | None = None
    peak_flops: float | None = None

    def __post_init__(self) -> None:
        check_choices(self, precision=PrecisionChoice, compile=CompileChoice, attention=Literal["sdpa", "plain"])
        check_choices(self, parallel=ParallelKind, cuda_graph=Literal["auto", "off"])
        check_choices(self, float8=Float8Kind)
        check_flags(self)
        optional = ("micro_batch_size", "num_threads", "logits_at_once")
        check_counts(self, *optional, may_lack=optional)
        check_positive(self, "peak_flops", may_lack=("peak_flops",))


@dataclass(frozen=True, kw_only=True)
class EvaluationConfig:
    """The times and the size of evaluations during a run.

    Attributes:
        eval_every: Steps between evaluations; default: ``num_evals`` evenly over the horizon. Step 0 and the
            last step are always evaluated. Each evaluation also writes ``last.safetensors``.
        num_evals: Evaluations over the horizon, unless ``eval_every`` is given.
        eval_bytes: Largest number of validation bytes in each of these evaluations, which read the first documents
            and cut the last one. None for all.
        eval_batch_size: Windows in one forward pass of an evaluation.
    """

    eval_every: int | None = None
    num_evals: int = 20
    eval_bytes: int | None = 1 << 18
    eval_batch_size: int = 32

    def __post_init__(self) -> None:
        check_counts(
            self, "num_evals", "eval_batch_size", "eval_every", "eval_bytes", may_lack=("eval_every", "eval_bytes")
        )


# The kinds of each section, the default first; a section of one kind only has no name for it.
SECTIONS: dict[str, dict[str, type[Any]]] = {
    "optimizer": {"adamw": AdamWConfig, "muon": MuonConfig},
    "schedule": dict.fromkeys(get_args(ScheduleKind), ScheduleConfig),
    "machine": {"": MachineConfig},
    "evaluation": {"": EvaluationConfig},
}


@dataclass(frozen=True, init=False)
class TrainConfig:
    """Settings of a training run. Raises ConfigError for a setting that is unknown or out of range.

    The constructor accepts settings with or without their section (see the head of this file).

    Attributes:
        steps, tokens, flops, seconds: The horizon; exactly one is set. Tokens and FLOPs: as many whole steps as fit the
            budget (``models/flops.py`` says how FLOPs are counted). Seconds: wall time from the first step,
            including evaluations and checkpoints, excluding loading, self-check and compilation. Such a run makes at
            least one step and can end late by half a step. Evaluations get at most a quarter of the time, apart from
            the first and the last one, and each at most a tenth: if the machine cannot score ``eval_bytes`` in that
            time, it scores fewer. Such a run is not reproducible to the bit.
        batch_size: Rows per step, each of the model's context length.
        seed: Seed for initial weights, dropout and batch order.
        order: Version of the batch order (``data/orders.py``). Default: the newest for a new run, and that of the run
            on resuming; runs of releases that had one order only have order 1.
        packing: How documents share rows: ``"none"``, ``"best_fit"`` or ``"split"`` (``data/packing.py``).
        log_every: Steps between training lines in ``metrics.jsonl``.
        self_check: Check for leaks from the future, uncleared gradients and the like before a run (about a second).
        optimizer, schedule, machine, evaluation: The sections.
    """

    steps: int | None = None
    tokens: int | None = None
    flops: float | None = None
    seconds: float | None = None
    batch_size: int = 64
    seed: int = 0
    order: int | None = None
    packing: Packing = "none"
    log_every: int = 10
    self_check: bool = True
    optimizer: OptimizerConfig = AdamWConfig()  # noqa: RUF009 (frozen)
    schedule: ScheduleConfig = ScheduleConfig()  # noqa: RUF009 (frozen)
    machine: MachineConfig = MachineConfig()
    evaluation: EvaluationConfig = EvaluationConfig()

    def __init__(self, **settings: Any) -> None:
        values = _by_section(settings, {})
        for field in dataclasses.fields(self):
            object.__setattr__(self, field.name, values.get(field.name, field.default))
        self._check()

    def _check(self) -> None:
        given = [name for name in HORIZONS if getattr(self, name) is not None]
        if len(given) != 1:
            raise ConfigError(f"set exactly one horizon of {', '.join(HORIZONS)}; got {' and '.join(given) or 'none'}")
        check_counts(self, "batch_size", "log_every", "steps", "tokens", may_lack=("steps", "tokens"))
        check_positive(self, "flops", "seconds", may_lack=("flops", "seconds"))
        if not isinstance(self.seed, int) or not 0 <= self.seed < 1 << 63:
            raise ConfigError(f"seed must be a whole number in [0, 2**63), not {self.seed!r}")
        if self.order is not None:
            check_order(self.order)
        check_choices(self, packing=Packing)
        check_flags(self)
        if self.batch_size % self.micro_batch:
            raise ConfigError(
                f"micro_batch_size {self.machine.micro_batch_size} must divide batch_size {self.batch_size}, "
                "or the micro-batches would not weigh alike"
            )

    def override(self, settings: Mapping[str, Any]) -> TrainConfig:
        """Return these settings with others laid over them, under any of their names."""
        return TrainConfig(**_by_section(settings, {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}))

    @property
    def micro_batch(self) -> int:
        """The number of rows in one forward pass."""
        return self.machine.micro_batch_size or self.batch_size

    def to_json(self) -> dict[str, Any]:
        """Return the fields as plain values, sections as objects; ``from_json`` restores the settings from them."""
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> TrainConfig:
        """Build from what ``to_json`` returned. Raises ConfigError for an unknown name or a value out of range."""
        return cls(**fields)


def setting_names() -> dict[str, str]:
    """Return each setting's full name by its own name: "optimizer.learning_rate" by "learning_rate".

    A section's own name stands for its kind: "schedule" for "schedule.kind".
    """
    names = {field.name: field.name for field in dataclasses.fields(TrainConfig) if field.name not in SECTIONS}
    for section, kinds in SECTIONS.items():
        fields = [field.name for kind in kinds.values() for field in dataclasses.fields(kind)]
        names |= {section if name == "kind" else name: f"{section}.{name}" for name in fields}
    return names


def _by_section(settings: Mapping[str, Any], base: Mapping[str, Any]) -> dict[str, Any]:
    """Lay settings, under any of their names, over fields of TrainConfig."""
    full_names = setting_names()
    values = dict(base)
    inner: dict[str, dict[str, Any]] = {}
    for given, value in settings.items():
        if given in SECTIONS and isinstance(value, Mapping):
            inner.setdefault(given, {}).update(value)
        elif given in SECTIONS and isinstance(value, tuple(SECTIONS[given].values())):
            values[given] = value
        else:
            section, _, name = full_names.get(given, given).rpartition(".")
            if section in SECTIONS:
                inner.setdefault(section, {})[name] = value
            elif given in full_names:
                values[given] = value
            else:
                raise unknown_setting(given, full_names, "training")
    for section, fields in inner.items():
        values[section] = _make_section(section, values.get(section), fields)
    return values


def _make_section(section: str, base: Any, fields: Mapping[str, Any]) -> Any:
    """Lay fields over a section (None: over its defaults); another class begins with that class's defaults."""
    kinds = SECTIONS[section]
    kind = fields.get("kind", getattr(base, "kind", next(iter(kinds))))
    if not isinstance(kind, str) or kind not in kinds:
        raise ConfigError(f"{section} must be one of {', '.join(kinds)}, not {kind!r}")
    if type(base) is kinds[kind]:
        fields = {**dataclasses.asdict(base), **fields}
    return settings_from_json(kinds[kind], fields, section)
