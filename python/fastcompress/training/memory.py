"""How much memory a run needs, estimated from its settings before anything is allocated.

The estimate adds what is there at the peak of a run, in float32:

- weights, their gradients and AdamW's two moments: 4 numbers per parameter;
- copies of them: the self-check has a model and an optimizer of its own, and a checkpoint is written from copies, at
  about 4 numbers per parameter more;
- what the forward pass of one micro-batch keeps for the backward pass, layer by layer;
- logits: they, their log-softmax and their gradient are there together, for a micro-batch or an evaluation's batch.

It is within a factor of 1.5 of what was measured on the CPU (tests/test_memory.py) where the model, not the program
itself with its 0.3 GB, decides. Compiled kernels and half precision need less.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import torch

from fastcompress.errors import ConfigError
from fastcompress.models.gpt import GPTConfig
from fastcompress.training.config import TrainConfig

_FLOAT_BYTES = 4
_TRAINING_LOGITS = 3  # logits, log-softmax, gradient
_SCORING_LOGITS = 2  # logits, log-softmax


@dataclass(frozen=True)
class MemoryEstimate:
    """Bytes that a run needs at its peak, by what needs them."""

    weights: int
    optimizer: int
    copies: int
    activations: int
    logits: int

    @property
    def total(self) -> int:
        """All parts together."""
        return self.weights + self.optimizer + self.copies + self.activations + self.logits


def estimate_memory(model: GPTConfig, config: TrainConfig, device_type: str = "cpu") -> MemoryEstimate:
    """Estimate what training `model` with `config` on a kind of device needs. Allocates nothing."""
    parameters = num_parameters(model)
    tokens = config.micro_batch * model.context_length
    scored = config.eval_batch_size * model.context_length
    logits = model.vocab_size * max(_TRAINING_LOGITS * tokens, _SCORING_LOGITS * scored)
    return MemoryEstimate(
        weights=_FLOAT_BYTES * parameters,
        optimizer=_FLOAT_BYTES * 3 * parameters,  # with the gradients
        copies=_FLOAT_BYTES * 4 * parameters,
        activations=_FLOAT_BYTES * tokens * model.num_layers * _floats_per_token_and_layer(model, device_type),
        logits=_FLOAT_BYTES * logits,
    )


def num_parameters(model: GPTConfig) -> int:
    """The number of parameters of ``GPT(model)``, without making it."""
    width, hidden = model.width, _hidden(model)
    block = 4 * width**2 + (2 if model.mlp == "gelu" else 3) * width * hidden
    if model.bias:  # of queries, keys, values and attention's output; of the MLP
        block += 4 * width + (hidden if model.mlp == "gelu" else 2 * hidden) + width
    if model.norm == "layernorm":
        block += 2 * width * (1 + model.bias)
    tables = model.vocab_size * (1 if model.tied_head else 2)
    tables += model.context_length if model.positions == "learned" else 0
    final_norm = width * (1 + model.bias) if model.norm == "layernorm" else 0
    return tables * width + model.num_layers * block + final_norm


def _hidden(model: GPTConfig) -> int:
    return 4 * model.width if model.mlp == "gelu" else max(64, round(8 * model.width / 3 / 64) * 64)


def _floats_per_token_and_layer(model: GPTConfig, device_type: str) -> int:
    """Return how many numbers autograd keeps of a block for each token."""
    width, hidden = model.width, _hidden(model)
    kept = 12 * width  # two norms and their inputs, queries, keys, values, attention's output, and their gradients
    kept += 2 * hidden if model.mlp == "gelu" else 4 * hidden  # SwiGLU: gate, up, silu(gate), product
    kept += 4 * width if model.positions == "rope" else 0
    kept += 4 * width if model.qk_norm else 0
    kept += 3 * width if model.dropout else 0
    # The fused kernel keeps no scores, but on the CPU there is none with dropout.
    if model.attention == "plain" or (model.dropout and device_type == "cpu"):
        kept += 3 * model.num_heads * model.context_length
    return kept


def check_memory(model: GPTConfig, config: TrainConfig, device: torch.device, available: int | None = None) -> None:
    """Refuse a run that cannot fit into memory, before anything is allocated.

    Args:
        model: The model to be trained.
        config: How.
        device: Where.
        available: Bytes there are; None to ask the system, which not every system answers.

    Raises:
        ConfigError: The estimate exceeds what is available; the message has the estimate and what to use instead.
    """
    available = available_memory(device) if available is None else available
    need = estimate_memory(model, config, device.type)
    if available is None or need.total <= available:
        return
    parts = ", ".join(
        f"{name} {_gigabytes(size)}"
        for name, size in (
            ("weights", need.weights), ("gradients and optimizer", need.optimizer), ("their copies", need.copies),
            ("activations", need.activations), ("logits", need.logits),
        )
    )  # fmt: skip
    tables = _FLOAT_BYTES * 8 * model.vocab_size * model.width * (1 if model.tied_head else 2)
    if tables + need.logits > need.total / 2:
        remedy = (
            f"most of it is for the vocabulary of {model.vocab_size:,}: use a codec with fewer ids (byte, lz77-buckets "
            "or bpe-4096; lz77 has 16.7 million)"
        )
    elif need.activations > need.total / 2:
        remedy = "most of it is for activations: use a smaller micro batch, context or model"
    else:
        remedy = "use a smaller model, or a machine with more memory"
    raise ConfigError(
        f"training needs about {_gigabytes(need.total)} of memory ({parts}), but {_gigabytes(available)} are free; "
        f"{remedy}"
    )


def available_memory(device: torch.device) -> int | None:
    """Bytes that can be allocated on `device` now, or None where the system does not say."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    if device.type != "cpu":
        return None
    limits = [size for size in (_system_memory(), _control_group_memory()) if size is not None]
    return min(limits, default=None)


def _system_memory() -> int | None:
    """Memory that programs can get without swapping (Linux), else the machine's memory."""
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
    """What a container's limit leaves; its page cache counts as free, since the kernel gives it back."""
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
