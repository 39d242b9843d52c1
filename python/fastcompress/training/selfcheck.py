"""Checks that a model and an optimizer step are wired correctly; they run before training and in the tests.

Each would have caught a bug that real trainers shipped: attention that sees the future, gradients that are never
cleared (clipping hides it), accumulated losses divided wrongly, an initialization far from uniform predictions. They
run on a copy of the model in float32 and on small batches. Where zero-initialized projections would make a check
vacuous, weights are redrawn first.
"""

from __future__ import annotations

import copy
import math

import numpy as np
import torch
from torch import Tensor

from fastcompress.data.packing import DocumentRows, joined
from fastcompress.data.rows import WEIGHT, Row, Rows
from fastcompress.errors import ConfigError, SelfCheckError
from fastcompress.models.protocol import LanguageModel, device_of, evaluation_mode
from fastcompress.training.config import TrainConfig
from fastcompress.training.device import loss_of
from fastcompress.training.optimizer import OptimizerStep, make_optimizer

ROWS = 4  # in a check's batch
MAX_EVENTS = 32  # in each of them
# Far above float32 and TF32 rounding, far below a factor: doubled gradients differ by 100 %, undivided ones by 300 %.
TOLERANCE = 0.02
LEAK = 1e-3  # of the largest cost; the same kernels run on the same shapes, so even this is generous


def self_check(model: LanguageModel, config: TrainConfig, step_class: type[OptimizerStep] = OptimizerStep) -> None:
    """Run all checks on a copy of the initialized ``model``. Raises SelfCheckError, which names the first that fails.

    Draws from torch's global generator. Costs about ten small forward and backward passes.
    """
    probe = copy.deepcopy(model).eval()
    check_initial_loss(probe)
    redraw_weights(probe)
    check_no_future_leak(probe)
    check_gradients_cleared(probe, config, step_class)
    check_accumulation(probe, config, step_class)


def check_initial_loss(model: LanguageModel) -> None:
    """Check that a fresh model predicts nearly uniformly: its loss on random events is near that of a uniform model."""
    uniform = model.uniform_nats()
    if uniform is None:
        return
    batch = model.random_batch(ROWS, MAX_EVENTS)
    with torch.inference_mode():
        loss = float(model.nats(batch).mean())
    if not abs(loss - uniform) < 0.25 + 0.1 * uniform:
        raise SelfCheckError(
            f"the initial loss is {loss:.3f} nats, not near ln({math.exp(uniform):.0f}) = {uniform:.3f}: "
            "the initialisation is off"
        )


def check_no_future_leak(model: LanguageModel) -> None:
    """Check that changing the events from one on changes no loss before it, and some loss from it on."""
    batch = model.random_batch(ROWS, MAX_EVENTS)  # columns, [B, S] each
    num_events = batch[WEIGHT].size(1)
    with torch.inference_mode():
        before = model.nats(batch)  # [B, S]
        for event in {num_events // 3, num_events // 2, num_events - 1}:
            known = {name: name.startswith("target") or name == WEIGHT for name in batch}
            inputs = {name: column if known[name] else _swapped(column, event) for name, column in batch.items()}
            is_changed = any(not torch.equal(column, batch[name]) for name, column in inputs.items())
            everything = {name: _swapped(column, event) for name, column in batch.items()}
            _check_costs_before(before, model.nats(everything), event)
            _check_costs_before(before, model.nats(inputs), event)
            if is_changed and torch.equal(model.nats(inputs)[:, event:], before[:, event:]):
                raise SelfCheckError(f"a change of event {event} changes no cost: the model ignores its input")


def _check_costs_before(before: Tensor, after: Tensor, event: int) -> None:
    difference = (after - before)[:, :event].abs().amax(dim=0)  # [event]
    leaks = ~(difference <= LEAK * before.abs().max())  # bool[event]; as ~(a <= b), so that a NaN counts as a leak
    if leaks.any():
        first = int(leaks.nonzero()[0])
        raise SelfCheckError(f"a change of event {event} reaches the cost of event {first}: the model sees the future")


def _swapped(column: Tensor, event: int) -> Tensor:
    """Return the column with each row's values from ``event`` on replaced by the next row's."""
    return torch.cat((column[:, :event], column.roll(1, 0)[:, event:]), dim=1)  # [B, S]


def check_gradients_cleared(
    model: LanguageModel, config: TrainConfig, step_class: type[OptimizerStep] = OptimizerStep
) -> None:
    """Check that a second step on the same batch, at learning rate 0, leaves the same gradients and not their sum."""
    batch = model.random_batch(ROWS, MAX_EVENTS)
    step = step_class(loss_of(model), make_optimizer(model, config), micro_batch_size=ROWS, clip_norm=None)
    step(batch, 0.0)
    first = _gradients(model)  # float[parameters]
    step(batch, 0.0)
    if not _distance(_gradients(model), first) <= TOLERANCE:
        raise SelfCheckError("a second identical step gives other gradients: they are not cleared between steps")


def check_accumulation(
    model: LanguageModel, config: TrainConfig, step_class: type[OptimizerStep] = OptimizerStep
) -> None:
    """Check that one micro-batch and four give the same loss and gradients."""
    batch = model.random_batch(ROWS, MAX_EVENTS)
    results = []
    for micro_batch_size in (ROWS, ROWS // 4):
        step = step_class(
            loss_of(model), make_optimizer(model, config), micro_batch_size=micro_batch_size, clip_norm=None
        )
        loss, _ = step(batch, 0.0)
        results.append((float(loss), _gradients(model)))
    (whole_loss, whole), (parts_loss, parts) = results
    if not (_distance(parts, whole) <= TOLERANCE and abs(parts_loss / whole_loss - 1) <= TOLERANCE):
        raise SelfCheckError(
            "accumulating four micro-batches gives other gradients than one batch: divide each loss by their number"
        )


def check_documents_apart(model: LanguageModel, rows: Rows) -> None:
    """Check that documents packed into one row do not see each other, on a copy of the initialized model.

    Raises ConfigError. Draws from torch's global generator.
    """
    length = min(MAX_EVENTS, rows.context_length) // 2
    if not isinstance(rows, DocumentRows) or not length:
        return
    probe = copy.deepcopy(model).eval()
    redraw_weights(probe)
    ids = np.random.PCG64(0).random_raw((3, length + 1)) % np.uint64(rows.codec.vocab_size)
    weight = np.ones(length, np.float32)
    batch = rows.stack([joined([first.astype(np.uint32), ids[2].astype(np.uint32)], [weight] * 2) for first in ids[:2]])
    check_apart(probe, batch, length, "documents")


def check_apart(model: LanguageModel, batch: Row, num_first: int, what: str) -> None:
    """Check that a part of a row costs the same after another part, and alone.

    Args:
        model: The model.
        batch: Two rows, equal from event `num_first` on, where their second part begins.
        num_first: The number of events in the first part.
        what: A name of the parts, for the error.

    Raises:
        ConfigError: It does not.
    """
    with evaluation_mode(model), torch.inference_mode():
        tensors = {name: torch.from_numpy(column).to(device_of(model)) for name, column in batch.items()}
        nats = model.nats(tensors)  # float32[2, S]
        alone = model.nats({name: column[:1, num_first:] for name, column in tensors.items()})[0]  # float32[rest]
    if not (torch.allclose(nats[0, num_first:], nats[1, num_first:], rtol=1e-3, atol=1e-3)
            and torch.allclose(nats[0, num_first:], alone, rtol=1e-3, atol=1e-3)):  # fmt: skip
        raise ConfigError(
            f"a model of kind {model.config.kind} lets {what} in one row see each other: it must honour the columns "
            "position and document"
        )


@torch.no_grad()
def redraw_weights(model: LanguageModel) -> None:
    """Give every matrix random weights that keep activations near one, so that every path is active."""
    for parameter in model.parameters():
        if parameter.dim() >= 2:
            parameter.normal_(std=parameter.size(-1) ** -0.5)


def _gradients(model: LanguageModel) -> Tensor:
    return torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None]).clone()


def _distance(a: Tensor, b: Tensor) -> float:
    """Return the relative distance: 0 if equal, 1 if ``a`` is twice ``b``."""
    return float((a - b).norm() / b.norm())
