"""AdamW with weight decay on matrices only, and the one place where gradients are made, used and cleared.

``OptimizerStep`` is small and separate so that the self-check (``selfcheck.py``) tests the very code a run
uses: a forgotten ``zero_grad`` or a wrong division of accumulated losses hides for weeks behind gradient
clipping.
"""

from __future__ import annotations

import contextlib
from typing import Any

import torch
from torch import Tensor, nn

from fastcompress.data.rows import WEIGHT
from fastcompress.models.protocol import Batch
from fastcompress.training.config import TrainConfig
from fastcompress.training.loss import LossFunction as LossFunction
from fastcompress.training.spread import Spread


def make_optimizer(model: nn.Module, config: TrainConfig) -> torch.optim.AdamW:
    """AdamW over all of ``model``'s parameters; matrices (embeddings among them) decay, vectors do not."""
    matrices = [p for p in model.parameters() if p.dim() >= 2]
    vectors = [p for p in model.parameters() if p.dim() < 2]
    covered = {id(p) for p in (*matrices, *vectors)}
    assert covered == {id(p) for p in model.parameters()}, "every parameter must be in a group"
    assert len(covered) == len(matrices) + len(vectors), "no parameter may be in two groups"
    settings = config.optimizer
    groups = [
        {"params": matrices, "weight_decay": settings.weight_decay},
        {"params": vectors, "weight_decay": 0.0},
    ]
    devices = {p.device.type for p in model.parameters()}
    return torch.optim.AdamW(
        [group for group in groups if group["params"]],
        lr=settings.learning_rate,
        betas=(settings.beta1, settings.beta2),
        eps=settings.epsilon,
        fused=devices <= {"cuda", "cpu"},  # one kernel for all parameters
    )


class OptimizerStep:
    """One update of the weights from one batch, in micro-batches.

    Args:
        loss: A micro-batch's part of the mean cost of an event, the model behind it.
        optimizer: Over the model's parameters.
        micro_batch_size: Rows in one forward and backward pass; divides the batch.
        clip_norm: Largest gradient norm let through; None: any.
        autocast: Reusable context of the forward pass.
        scaler: Loss scaling for float16; a disabled one otherwise.
        spread: How gradients of several ranks come together; default: there is one rank.
    """

    def __init__(
        self,
        loss: LossFunction,
        optimizer: torch.optim.Optimizer,
        *,
        micro_batch_size: int,
        clip_norm: float | None,
        autocast: contextlib.AbstractContextManager[Any] | None = None,
        scaler: torch.amp.GradScaler | None = None,
        spread: Spread | None = None,
    ) -> None:
        self.spread = spread or Spread()
        self.loss, self.optimizer = loss, optimizer
        self.micro_batch_size, self.clip_norm = micro_batch_size, clip_norm
        self.autocast = autocast or contextlib.nullcontext()
        self.scaler = scaler or torch.amp.GradScaler("cpu", enabled=False)
        self.parameters = [p for group in optimizer.param_groups for p in group["params"]]

    def __call__(self, batch: Batch, learning_rate: float) -> tuple[Tensor, Tensor]:
        """Update the weights once; returns (mean loss before it, gradient norm before clipping), float32[] each.

        Nothing here waits for the device. With loss scaling, a step whose gradients overflow changes no
        weight.
        """
        loss = self.gradients(batch)  # []
        self.scaler.unscale_(self.optimizer)
        limit = float("inf") if self.clip_norm is None else self.clip_norm
        norm = self.spread.whole(nn.utils.clip_grad_norm_(self.parameters, limit))  # []
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate
        self.scaler.step(self.optimizer)
        self.scaler.update()
        return loss, norm

    def gradients(self, batch: Batch) -> Tensor:
        """Leave in ``.grad`` the gradient of the batch's mean loss (times the loss scale), nothing older."""
        self.optimizer.zero_grad(set_to_none=True)
        weight = batch[WEIGHT]  # [B, S]
        whole_weight = self.spread.whole_weight(weight.sum())  # []
        total = torch.zeros((), device=weight.device)  # []
        for begin in range(0, len(weight), self.micro_batch_size):
            rows = {name: column[begin : begin + self.micro_batch_size] for name, column in batch.items()}
            with self.spread.micro_batch(is_last=begin + self.micro_batch_size >= len(weight)):
                with self.autocast:
                    loss = self.loss(rows, whole_weight)  # []
                self.scaler.scale(loss).backward()  # type: ignore[no-untyped-call]
            total += loss.detach()
        return total
