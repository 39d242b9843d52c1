"""Trial passes before the clock starts, which test compilation and time a step."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from fastcompress.data.rows import WEIGHT
from fastcompress.training.device import Stopwatch, cards_of, compiled_or_eager
from fastcompress.training.loss import LossFunction

if TYPE_CHECKING:
    from fastcompress.training.loop import TrainingRun


def compile_if_wanted(run: TrainingRun) -> None:
    """Compile the loss and try it. If one rank cannot, none does, since all must communicate alike."""
    if not {"on": True, "off": False, "auto": run.device.type == "cuda"}[run.config.machine.compile]:
        return
    eager = run.step.loss
    loss = compiled_or_eager(eager, lambda loss: _try_out(run, loss))
    has_failed = run.ranks.maximum(float(loss is eager)) > 0
    run.make_step(eager if has_failed else loss, may_record=not has_failed)


def seconds_per_step(run: TrainingRun) -> float:
    """Measure the duration of a step's passes with two micro-batches, the first of which warms up."""
    watch = Stopwatch(run.device)
    _try_out(run, run.step.loss)
    watch.start()
    _try_out(run, run.step.loss)
    watch.stop()
    run.optimizer.zero_grad(set_to_none=True)
    num_micro_batches = run.feed.loader.batch_size // run.ranks.size // run.config.micro_batch
    return run.ranks.maximum(watch.read()) * num_micro_batches


def _try_out(run: TrainingRun, loss: LossFunction) -> None:
    """Compute loss and gradients of a micro-batch without changing weights and generators.

    Raises FloatingPointError if they are not finite.
    """
    batch = run.feed.batch(run.at.step)  # columns, [B, S] each
    rows = {name: column[: run.config.micro_batch] for name, column in batch.items()}
    whole_weight = batch[WEIGHT].sum()  # []
    with torch.random.fork_rng(cards_of(run.device)), run.spread.micro_batch(is_last=True):
        with run.autocast:
            value = loss(rows, whole_weight)  # []
        value.backward()  # type: ignore[no-untyped-call]
    gradients = [parameter.grad for parameter in run.step.parameters if parameter.grad is not None]
    if not (value.isfinite() and all(gradient.isfinite().all() for gradient in gradients)):
        raise FloatingPointError("the compiled model's loss or gradients are not finite")
