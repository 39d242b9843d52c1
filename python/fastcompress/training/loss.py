"""The loss of a training step: the weighted mean of the nats of its events."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from fastcompress.data.rows import WEIGHT
from fastcompress.models.protocol import Batch, LanguageModel

# (columns of rows, the sum of the whole batch's weights, float32[]) -> their part of the mean of nats, float32[]
LossFunction = Callable[[Batch, Tensor], Tensor]


class LossModule(nn.Module):
    """A model's loss as a module, the form that torch can distribute over processes."""

    def __init__(self, model: LanguageModel) -> None:
        super().__init__()
        self.model = model

    def forward(self, batch: Batch, whole_weight: Tensor | None = None) -> Tensor:
        """Return a micro-batch's part of the mean, ``float32[]``; see ``weighted_loss``."""
        return weighted_loss(self.model.nats(batch), batch[WEIGHT], whole_weight)


def loss_of(model: LanguageModel) -> LossFunction:
    """Return the loss function of ``model``: the weighted mean of the nats of events."""

    def loss(batch: Batch, whole_weight: Tensor | None = None) -> Tensor:
        return weighted_loss(model.nats(batch), batch[WEIGHT], whole_weight)  # float32[]

    return loss


def weighted_loss(nats: Tensor, weight: Tensor, whole_weight: Tensor | None = None) -> Tensor:
    """Return a micro-batch's share of the mean over a whole batch: sum(nats * weight) / whole_weight, ``float32[]``.

    Args:
        nats: ``float32[B, S]``.
        weight: ``float32[B, S]``.
        whole_weight: ``float32[]``, the sum of the whole batch's weights; None: this is the whole batch.

    The sum is divided by the micro-batch's own weight and by its share, one after the other, and events are added up in
    the order of torch's mean cross-entropy. So on the CPU the loss has the bits of a mean over equal micro-batches.
    """
    own = weight.sum().clamp(min=1.0)  # []: it cancels out, so a micro-batch without events needs no other value
    whole = weight.sum() if whole_weight is None else whole_weight
    costs = (nats * weight).flatten()  # [B S]
    total = F.nll_loss(-costs[:, None], costs.new_zeros(costs.shape, dtype=torch.int64), reduction="sum")  # []
    return total / own / (whole / own)
