"""The optimizer over groups of parameters by role, and the one place where gradients are made, used and cleared.

``OptimizerStep`` is small and separate so that the self-check (``selfcheck.py``) tests the very code that a run uses:
gradient clipping can hide a forgotten ``zero_grad`` or a wrong division of accumulated losses for weeks.
"""

from __future__ import annotations

import contextlib
from typing import Any, get_args

import torch
from torch import Tensor, nn

from fastcompress.data.rows import WEIGHT
from fastcompress.errors import ConfigError
from fastcompress.models.protocol import Batch, LanguageModel
from fastcompress.models.roles import Role, default_roles
from fastcompress.training.config import AdamWConfig, MuonConfig, OptimizerConfig, TrainConfig
from fastcompress.training.loss import LossFunction as LossFunction
from fastcompress.training.muon import CautiousAdamW, JoinedOptimizer, Muon
from fastcompress.training.spread import Spread

ROLES: tuple[Role, ...] = get_args(Role)


def make_optimizer(model: nn.Module, config: TrainConfig) -> torch.optim.Optimizer:
    """Make the optimizer of a kind over all of ``model``'s parameters, in the groups of ``parameter_groups``."""
    settings = config.optimizer
    groups = parameter_groups(model, settings)
    if isinstance(settings, AdamWConfig):
        return _make_adamw(groups, settings)
    matrices = [group for group in groups if group["role"] == "matrix"]
    others = [group for group in groups if group["role"] != "matrix"]
    parts: list[torch.optim.Optimizer] = []
    if matrices:
        parts.append(Muon(matrices, momentum=settings.momentum, cautious=settings.cautious_decay))
    if others:
        parts.append(_make_adamw(others, settings))
    return JoinedOptimizer(parts)


def _make_adamw(groups: list[dict[str, Any]], settings: OptimizerConfig) -> torch.optim.AdamW:
    betas = (settings.beta1, settings.beta2)
    devices = {parameter.device.type for group in groups for parameter in group["params"]}
    fused = devices <= {"cuda", "cpu"}  # one kernel for all parameters
    if not settings.cautious_decay:
        return torch.optim.AdamW(groups, betas=betas, eps=settings.epsilon, fused=fused)
    for group in groups:
        group["cautious_decay"], group["weight_decay"] = group["weight_decay"], 0.0
    return CautiousAdamW(groups, betas=betas, eps=settings.epsilon, fused=fused)


def parameter_groups(model: nn.Module, settings: OptimizerConfig) -> list[dict[str, Any]]:
    """Put every parameter of a model into one group, by its role.

    Args:
        model: The model, which may define roles (``LanguageModel.parameter_roles``; default: ``default_roles``).
        settings: The kind of optimizer. Under Muon, a weight of role matrix that does not have two dimensions joins the
            group of vectors.

    Returns:
        Groups in the order of ``ROLES``, without empty ones: ``role``, ``params``, ``lr`` (its peak), ``rate_scale``
        (the peak as a multiple of the learning rate of matrices) and ``weight_decay``.

    Raises:
        ConfigError: The model does not give a role to each of its parameters and to nothing else.
    """
    roles = model.parameter_roles() if isinstance(model, LanguageModel) else default_roles(model)
    named = dict(model.named_parameters())
    odd = sorted(set(roles) ^ set(named)) or sorted(name for name, role in roles.items() if role not in ROLES)
    if odd:
        raise ConfigError(f"parameter_roles of {type(model).__name__} is wrong about {odd[0]}; give each its role once")
    members: dict[Role, list[nn.Parameter]] = {role: [] for role in ROLES}
    is_muon = isinstance(settings, MuonConfig)
    for name, parameter in named.items():
        role = roles[name]
        members["vector" if is_muon and role == "matrix" and parameter.dim() != 2 else role].append(parameter)
    grouped = [id(parameter) for parameters in members.values() for parameter in parameters]
    assert sorted(grouped) == sorted({id(parameter) for parameter in model.parameters()}), "a parameter, a group"
    groups = []
    for role, parameters in members.items():
        rate = peak_rate(settings, role)
        scale = rate / settings.learning_rate
        decay = peak_decay(settings, role) / scale
        groups.append({"role": role, "params": parameters, "lr": rate, "rate_scale": scale, "weight_decay": decay})
    return [group for group in groups if group["params"]]


def peak_rate(settings: OptimizerConfig, role: Role) -> float:
    """Return the peak learning rate of a role's group; memories and spelled bytes follow the other tables."""
    own: float | None = getattr(settings, f"{role}_rate", None)
    if own is not None:
        return own
    return peak_rate(settings, "embedding") if role in ("memory", "spelled") else settings.learning_rate


def peak_decay(settings: OptimizerConfig, role: Role) -> float:
    """Return what a step at the peak takes of a weight of a role's group, divided by ``learning_rate``."""
    if isinstance(settings, MuonConfig):
        return settings.weight_decay if role == "matrix" else 0.0
    if role == "memory" and settings.memory_decay is not None:
        return settings.memory_decay
    return 0.0 if role == "vector" else settings.weight_decay


class OptimizerStep:
    """One update of the weights from one batch, in micro-batches.

    Args:
        loss: The loss function of the model, which returns a micro-batch's share of the mean nats per event.
        optimizer: The optimizer of the model's parameters.
        micro_batch_size: Rows in one forward and backward pass; it divides the batch.
        clip_norm: Largest gradient norm; larger ones are scaled down to it. None for no limit.
        autocast: Reusable context of the forward pass.
        scaler: Loss scaler for float16; a disabled one otherwise.
        spread: Combines the gradients of several ranks. Default: one rank.
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
        # Of each group in the last step, by its role.
        self.learning_rates: dict[str, float] = {group["role"]: group["lr"] for group in optimizer.param_groups}

    def __call__(self, batch: Batch, learning_rate: float) -> tuple[Tensor, Tensor]:
        """Update the weights; return the mean loss before and the gradient norm before clipping, float32[] each.

        ``learning_rate`` is that of matrices; the rates of other groups keep their ratio to it. Does not wait for the
        device. With loss scaling, a step whose gradients overflow changes no weight.
        """
        self.set_rates(learning_rate)
        return self.update(batch)

    def close(self) -> None:
        """Give back what the step holds of the device, after the last one."""

    def set_rates(self, learning_rate: float) -> None:
        """Set the learning rate of each group."""
        for group in self.optimizer.param_groups:
            rate = self.learning_rates[group["role"]] = learning_rate * group["rate_scale"]
            if isinstance(group["lr"], Tensor):  # where a recorded step reads it
                group["lr"].fill_(rate)
            else:
                group["lr"] = rate

    def update(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Update the weights once, at the rates that are set; see ``__call__``."""
        loss = self.gradients(batch)  # []
        self.scaler.unscale_(self.optimizer)
        limit = float("inf") if self.clip_norm is None else self.clip_norm
        norm = self.spread.whole(nn.utils.clip_grad_norm_(self.parameters, limit))  # []
        self.scaler.step(self.optimizer)
        self.scaler.update()
        return loss, norm

    def gradients(self, batch: Batch) -> Tensor:
        """Set ``.grad`` to the gradient of the batch's mean loss, times the loss scale."""
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
        self.spread.reduce(self.parameters)
        return total
