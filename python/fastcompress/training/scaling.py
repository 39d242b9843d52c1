"""Rules that transfer learning rates and batch sizes between scales: starting points for a search.

    batch size       every learning rate and the weight decay times sqrt(B' / B)
    step law         rate = 1.79 N^-0.713 D^0.307, batch = 0.58 D^0.571 tokens

The square-root rule preserves the noise scale of an adaptive optimizer (Malladi et al., arXiv 2205.10287). Weight decay
follows it, too: a step takes rate * decay of a weight, and there are B' / B times fewer steps per token, so the decay
per token stays the same. The step law is a fit to AdamW runs of N parameters, without embedding tables, on D tokens (Li
et al., arXiv 2503.04715).
"""

from __future__ import annotations

import dataclasses
import math

from fastcompress.training.config import OptimizerConfig, TrainConfig

_RATES = ("learning_rate", "embedding_rate", "memory_rate", "spelled_rate", "head_rate", "vector_rate")
_DECAYS = ("weight_decay", "memory_decay")  # AdamW has both


def scale_rates(optimizer: OptimizerConfig, factor: float) -> OptimizerConfig:
    """Multiply the learning rate of every group; a group without a rate of its own follows that of matrices."""
    return _scaled(optimizer, _RATES, factor)


def _scaled(optimizer: OptimizerConfig, names: tuple[str, ...], factor: float) -> OptimizerConfig:
    values = {name: getattr(optimizer, name, None) for name in names}
    given = {name: value * factor for name, value in values.items() if value is not None}
    return dataclasses.replace(optimizer, **given)


def scale_to_batch(config: TrainConfig, batch_size: int) -> TrainConfig:
    """Return settings for another batch size, with learning rates and weight decay by the square-root rule.

    Args:
        config: Settings tuned for their own batch size. Their micro-batch size is kept if it divides the new one.
        batch_size: Rows per step.
    """
    factor = math.sqrt(batch_size / config.batch_size)
    optimizer = _scaled(scale_rates(config.optimizer, factor), _DECAYS, factor)
    machine, micro_batch = config.machine, config.machine.micro_batch_size
    if micro_batch is not None and batch_size % micro_batch:
        machine = dataclasses.replace(machine, micro_batch_size=None)
    return dataclasses.replace(config, batch_size=batch_size, optimizer=optimizer, machine=machine)


def step_law(num_parameters: int, num_tokens: int) -> tuple[float, float]:
    """Return the learning rate of AdamW and the batch size in tokens that the step law suggests.

    Args:
        num_parameters: The number of parameters without embedding tables.
        num_tokens: The number of tokens of the whole run.
    """
    rate = 1.79 * num_parameters**-0.713 * num_tokens**0.307
    return rate, 0.58 * num_tokens**0.571
