"""The memory that a run needs, estimated from its settings before anything is allocated.

The estimate adds what a run holds at its peak, in float32:

- weights, their gradients and AdamW's two moments: 4 numbers per parameter; Muon keeps one moment of a matrix;
- copies of them: the self-check has a model and an optimizer of its own, and a checkpoint is written from copies, at
  about as many numbers more;
- what the forward pass of one micro-batch keeps for the backward pass, layer by layer;
- logits, together with their log-softmax and their gradient, for a micro-batch or an evaluation's batch, or for a piece
  of it if the model computes logits in pieces.

``ModelConfig.size`` gives the number of values in each.

It is within a factor of 1.5 of what was measured on the CPU (tests/test_memory.py) where the model, not the program
itself with its 0.3 GB, decides. Compiled kernels and half precision need less.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from pathlib import Path

import torch

from fastcompress.errors import ConfigError
from fastcompress.models.protocol import ModelConfig
from fastcompress.training.config import MuonConfig, TrainConfig
from fastcompress.training.device import kernels_of
from fastcompress.training.distributed import ALONE, Ranks
from fastcompress.training.spread import is_gathered_whole

_FLOAT_BYTES = 4
_BYTES_PER_SCORED_LOGIT = 8  # at most: logits and log-softmax
# The C library keeps some of what is freed between layers, not the same in every process: without this factor, whole
# processes took 1.2 to 1.53 times the estimate.
_KEPT_FREE = 1.2


@dataclass(frozen=True)
class MemoryEstimate:
    """The bytes that a run needs at its peak, by purpose."""

    weights: int
    optimizer: int
    copies: int
    activations: int
    logits: int

    @property
    def total(self) -> int:
        """All parts together."""
        return self.weights + self.optimizer + self.copies + self.activations + self.logits


def estimate_memory(
    model: ModelConfig, config: TrainConfig, device_type: str = "cpu", ranks: Ranks = ALONE
) -> MemoryEstimate:
    """Estimate the memory per process for training `model` on a kind of device. Allocates nothing."""
    size = model.size(device_type, kernels_of(config.machine))
    rows = min(config.micro_batch, config.batch_size // ranks.size)
    trained = min(rows * size.logits_per_row, size.logits_at_once)
    scored = min(config.evaluation.eval_batch_size * size.logits_per_row, size.logits_at_once)
    kept = size.activations_per_row
    if config.machine.checkpoint_activations and size.recomputed_per_row is not None:
        kept = min(kept, size.recomputed_per_row)
    parts = ranks.size if config.machine.parallel == "fsdp" else 1
    # Of weights and gradients, while a step needs them.
    gathered = 2 * size.parameters if parts > 1 and is_gathered_whole(size.parameters) else 0
    moments = 2 * size.parameters
    if isinstance(config.optimizer, MuonConfig):
        moments -= size.matrix_parameters
    return MemoryEstimate(
        weights=_FLOAT_BYTES * (size.parameters // parts + gathered),
        optimizer=_FLOAT_BYTES * (size.parameters + moments) // parts,  # with the gradients
        copies=_FLOAT_BYTES * (2 * size.parameters + moments),  # those of the self-check and the first rank are whole
        activations=_FLOAT_BYTES * rows * int(kept * (_KEPT_FREE if device_type == "cpu" else 1)),
        logits=max(size.bytes_per_logit * trained, min(size.bytes_per_logit, _BYTES_PER_SCORED_LOGIT) * scored),
    )


def fit_to_machine(
    config: TrainConfig,
    model: ModelConfig,
    device: torch.device,
    ranks: Ranks = ALONE,
    available: int | None = None,
) -> TrainConfig:
    """Choose the micro-batch: at most a rank's rows of a batch, and at most what fits if `fit_micro_batch` is set.

    Args:
        config: The settings of the run.
        model: The model to be trained.
        device: The device of the model.
        ranks: The processes that share a batch.
        available: Bytes available to each process; None for what is free now.

    Raises:
        ConfigError: The micro-batch does not divide a rank's rows.
    """
    rows = config.batch_size // ranks.size
    if config.machine.micro_batch_size is None and config.machine.fit_micro_batch:
        if available is None:
            available = memory_for_each(device, ranks)
        divisors = [number for number in range(rows, 0, -1) if rows % number == 0]
        fits = (
            number
            for number in divisors
            if available is None
            or estimate_memory(model, config.override({"micro_batch_size": number}), device.type, ranks).total
            <= available
        )
        return config.override({"micro_batch_size": next(fits, 1)})
    if ranks.size == 1:
        return config
    if rows % min(config.micro_batch, rows):
        raise ConfigError(
            f"micro_batch_size is {config.micro_batch}; it must divide {rows}, the rows of a batch that each of "
            f"{ranks.size} processes reads"
        )
    return config.override({"micro_batch_size": min(config.micro_batch, rows)})


def memory_for_each(device: torch.device, ranks: Ranks = ALONE) -> int | None:
    """Return the bytes that each process can allocate now, the same for all ranks; None if unknown.

    On a CPU, the processes of a machine share its memory.
    """
    available = available_memory(device)
    if available is not None and device.type == "cpu":
        available //= ranks.local_size
    least = -ranks.maximum(-float("inf" if available is None else available))
    return None if math.isinf(least) else int(least)


def check_memory(
    model: ModelConfig,
    config: TrainConfig,
    device: torch.device,
    available: int | None = None,
    ranks: Ranks = ALONE,
) -> None:
    """Refuse a run that cannot fit into memory, before anything is allocated.

    Args:
        model: The model to be trained.
        config: The settings of the run.
        device: The device of the model.
        available: Bytes available to each process; None for what is free now.
        ranks: The processes that share a batch.

    Raises:
        ConfigError: The estimate exceeds what is available; the message has the estimate and a remedy.
    """
    available = memory_for_each(device, ranks) if available is None else available
    need = estimate_memory(model, config, device.type, ranks)
    if available is None or need.total <= available:
        return
    parts = ", ".join(
        f"{name} {_gigabytes(size)}"
        for name, size in (
            ("weights", need.weights), ("gradients and optimizer", need.optimizer), ("their copies", need.copies),
            ("activations", need.activations), ("logits", need.logits),
        )
    )  # fmt: skip
    size = model.size(device.type, kernels_of(config.machine))
    if _FLOAT_BYTES * 8 * size.table_parameters + need.logits > need.total / 2:
        num_symbols = size.logits_per_row // model.context_length
        remedy = (
            f"most of it is for the vocabulary of {num_symbols:,}: use a codec with fewer ids (byte, lz77-buckets "
            "or bpe-4096; lz77 has 16.7 million)"
        )
    elif need.activations > need.total / 2:
        remedy = "most of it is for activations: use a smaller micro batch, context or model, or checkpoint_activations"
    else:
        remedy = "use a smaller model, or a machine with more memory"
    raise ConfigError(
        f"training needs about {_gigabytes(need.total)} of memory ({parts}), but {_gigabytes(available)} are free; "
        f"{remedy}"
    )


def available_memory(device: torch.device) -> int | None:
    """Return the bytes that can be allocated on `device` now, or None if unknown."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    if device.type != "cpu":
        return None
    limits = [size for size in (_system_memory(), _control_group_memory()) if size is not None]
    return min(limits, default=None)


def _system_memory() -> int | None:
    """Return the memory available without swapping (Linux), else the machine's memory."""
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
        return None
    except (OSError, ValueError, IndexError):
        pass
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None


def _control_group_memory(root: Path = Path("/sys/fs/cgroup")) -> int | None:
    """Return what a container's limit leaves; its page cache counts as free, since the kernel reclaims it."""
    try:
        limit = int((root / "memory.max").read_text())
        used = int((root / "memory.current").read_text())
        for line in (root / "memory.stat").read_text().splitlines():
            if line.startswith(("inactive_file ", "active_file ")):
                used -= int(line.split()[1])
        return max(0, limit - used)
    except (OSError, ValueError, IndexError):  # no control group, or no limit ("max")
        return None


def _gigabytes(size: int) -> str:
    return f"{size / 1e9:.1f} GB" if size < 1e11 else f"{size / 1e9:,.0f} GB"
