"""The guard that ends a run whose loss or gradients are no longer finite, and names the first such step."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from fastcompress.data.loader import RowLoader
from fastcompress.errors import DivergenceError, OutputError
from fastcompress.training.distributed import ALONE, Ranks
from fastcompress.training.snapshots import save_last

if TYPE_CHECKING:
    from fastcompress.training.loop import TrainingRun

SHOWN_DOCUMENTS = 20


class FiniteGuard:
    """Finds the first step whose loss or gradient norm is not finite, on the device, so that no step waits for it."""

    def __init__(self, device: torch.device, ranks: Ranks = ALONE, *, only_losses: bool = False) -> None:
        """Start. With ``only_losses``, gradients may overflow: loss scaling then skips the update."""
        self.ranks, self.only_losses = ranks, only_losses
        self._first = torch.full((), -1, dtype=torch.int64, device=device)  # int64[]; -1: none

    def watch(self, step: int, loss: Tensor, gradient_norm: Tensor) -> None:
        """Record a step's loss and gradient norm, ``float32[]`` each. Does not wait for the device."""
        finite = loss.isfinite() if self.only_losses else loss.isfinite() & gradient_norm.isfinite()  # bool[]
        self._first = torch.where(finite | (self._first >= 0), self._first, step)

    def first_step(self) -> int | None:
        """Return the first such step of any rank, counted from 0, or None. Waits for the device."""
        steps = [int(first) for first in self.ranks.gather(self._first.cpu())]
        return min((step for step in steps if step >= 0), default=None)


def stop_diverged(run: TrainingRun, step: int) -> None:
    """Save the state of a run that diverged in ``step``, and end the run. Every rank takes part.

    Raises:
        DivergenceError: Always; it names the step, the documents of its batch and the files.
    """
    loader = run.feed.loader
    # A loader of its own: the run's belongs to the thread that reads ahead.
    own = RowLoader(loader.dataset, loader.rows, batch_size=loader.batch_size, seed=loader.seed, order=loader.order)
    documents = own.documents(step)
    shown = ", ".join(map(str, documents[:SHOWN_DOCUMENTS]))
    more = f" and {len(documents) - SHOWN_DOCUMENTS} more" if len(documents) > SHOWN_DOCUMENTS else ""
    kept = ""
    with contextlib.suppress(OutputError):
        save_last(run, run.directory.diverged)
        kept = f", and {run.directory.diverged} the state after step {run.at.step}"
    raise DivergenceError(
        f"the loss is no longer finite from step {step + 1} on (its batch, number {step}, is from the training "
        f"documents {shown}{more}): lower learning_rate ({run.config.optimizer.learning_rate:g}) or raise warmup; "
        f"{run.directory.last} still holds step {run.at.evaluated_step}{kept}"
    )
