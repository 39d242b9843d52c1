"""Checks that a model and an optimizer step are wired right, run before training and by the tests.

Each would have caught a bug that real trainers shipped: attention that sees the future, gradients that are
never cleared (clipping hides it), accumulated losses divided wrongly, an initialisation far from uniform
predictions. They run on a copy of the model, small and in float32; weights are redrawn first where
zero-initialised projections would make a check vacuous.
"""

from __future__ import annotations

import copy
import math

import torch
from torch import Tensor

from fastcompress.errors import SelfCheckError
from fastcompress.evaluation.bits_per_byte import device_of
from fastcompress.models.blocks import LanguageModel
from fastcompress.models.gpt import next_token_loss
from fastcompress.training.config import TrainConfig
from fastcompress.training.device import loss_of
from fastcompress.training.optimizer import OptimizerStep, make_optimizer

ROWS = 4  # sequences in a check's batch
MAX_POSITIONS = 32
# Far above float32 and TF32 rounding, far below a factor: doubled gradients differ by 100 %, undivided ones by 300 %.
TOLERANCE = 0.02
LEAK = 1e-3  # of the largest logit; the same kernels run on the same shapes, so even this is generous


def self_check(model: LanguageModel, config: TrainConfig, step_class: type[OptimizerStep] = OptimizerStep) -> None:
    """All checks, on a copy of ``model`` as initialised; ``SelfCheckError`` names the first that fails.

    Draws from torch's global generator; cost: about ten small forward and backward passes.
    """
    probe = copy.deepcopy(model).eval()
    check_initial_loss(probe)
    redraw_weights(probe)
    check_no_future_leak(probe)
    check_gradients_cleared(probe, config, step_class)
    check_accumulation(probe, config, step_class)


def check_initial_loss(model: LanguageModel) -> None:
    """A fresh model predicts nearly uniformly, so its loss on random tokens is near ln(vocabulary)."""
    inputs, targets = _random_batch(model)
    with torch.inference_mode():
        loss = float(next_token_loss(model(inputs), targets))
    uniform = math.log(model.vocab_size)
    if not abs(loss - uniform) < 0.25 + 0.1 * uniform:
        raise SelfCheckError(
            f"the initial loss is {loss:.3f} nats, not near ln({model.vocab_size}) = {uniform:.3f}: "
            "the initialisation is off"
        )


def check_no_future_leak(model: LanguageModel) -> None:
    """Changing token t leaves the logits before t alone, and changes some from t on (else the check says nothing)."""
    tokens, _ = _random_batch(model)  # int64[B, T]
    num_positions = tokens.size(1)
    with torch.inference_mode():
        before = model(tokens).float()  # [B, T, V]
        for position in {num_positions // 3, num_positions // 2, num_positions - 1}:
            changed = tokens.clone()
            changed[:, position] = (changed[:, position] + 1) % model.vocab_size
            difference = (model(changed).float() - before).abs().amax(dim=(0, 2))  # [T]
            scale = float(before.abs().max())
            leaks = ~(
                difference[:position] <= LEAK * scale
            )  # bool[position]; written as ~(a <= b), so that a NaN counts as a leak
            if leaks.any():
                first = int(leaks.nonzero()[0])
                raise SelfCheckError(
                    f"a change of token {position} reaches the logits at position {first}: the model sees the future"
                )
            if float(difference[position:].max()) == 0.0:
                raise SelfCheckError(f"a change of token {position} changes no logits: the model ignores its input")


def check_gradients_cleared(
    model: LanguageModel, config: TrainConfig, step_class: type[OptimizerStep] = OptimizerStep
) -> None:
    """A second step on the same batch, at learning rate 0, leaves the same gradients as the first, not their sum."""
    inputs, targets = _random_batch(model)
    step = step_class(loss_of(model), make_optimizer(model, config), micro_batch_size=ROWS, clip_norm=None)
    step(inputs, targets, 0.0)
    first = _gradients(model)  # float[parameters]
    step(inputs, targets, 0.0)
    if not _distance(_gradients(model), first) <= TOLERANCE:
        raise SelfCheckError("a second identical step gives other gradients: they are not cleared between steps")


def check_accumulation(
    model: LanguageModel, config: TrainConfig, step_class: type[OptimizerStep] = OptimizerStep
) -> None:
    """One micro-batch and four give the same loss and gradients."""
    inputs, targets = _random_batch(model)
    results = []
    for micro_batch_size in (ROWS, ROWS // 4):
        step = step_class(
            loss_of(model), make_optimizer(model, config), micro_batch_size=micro_batch_size, clip_norm=None
        )
        loss, _ = step(inputs, targets, 0.0)
        results.append((float(loss), _gradients(model)))
    (whole_loss, whole), (parts_loss, parts) = results
    if not (_distance(parts, whole) <= TOLERANCE and abs(parts_loss / whole_loss - 1) <= TOLERANCE):
        raise SelfCheckError(
            "accumulating four micro-batches gives other gradients than one batch: divide each loss by their number"
        )


@torch.no_grad()
def redraw_weights(model: LanguageModel) -> None:
    """Give every matrix random weights of a size that keeps activations near one, so that every path is alive."""
    for parameter in model.parameters():
        if parameter.dim() >= 2:
            parameter.normal_(std=parameter.size(-1) ** -0.5)


def _random_batch(model: LanguageModel) -> tuple[Tensor, Tensor]:
    num_positions = min(model.context_length, MAX_POSITIONS)
    both = torch.randint(model.vocab_size, (2, ROWS, num_positions)).to(device_of(model))  # int64[2, B, T]
    return both[0], both[1]


def _gradients(model: LanguageModel) -> Tensor:
    return torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None]).clone()


def _distance(a: Tensor, b: Tensor) -> float:
    """Relative: 0 when equal, 1 when ``a`` is twice ``b``."""
    return float((a - b).norm() / b.norm())
