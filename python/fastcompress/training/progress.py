"""The progress of a run."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Progress:
    """The progress of a run, stored in each checkpoint as JSON."""

    step: int = 0
    tokens: int = 0
    flops: int = 0
    seconds: float = 0.0
    loss_steps: int = 0  # steps whose losses are summed up for the next training line
    evaluated_step: int = -1  # where the last evaluation was made; -1: nowhere yet
    evaluated_seconds: float = 0.0
    wall_seconds: float = 0.0  # since the first step, evaluations and checkpoints included; 0 in older checkpoints
    evaluation_seconds: float = 0.0  # what the last evaluation took, with its checkpoints
    train_bits_per_byte: float | None = None
    validation_bits_per_byte: float | None = None
    best_step: int = 0
    best_bits_per_byte: float | None = None
    validation_sample: str | None = None  # fingerprint of the documents that all these scores are on
    validation_bytes: int | None = None  # the size that the sample was cut to, under a horizon in seconds
