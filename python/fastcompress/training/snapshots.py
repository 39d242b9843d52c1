"""The checkpoints of a run: writing and restoring its state."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from fastcompress.errors import ConfigError, FormatError
from fastcompress.training import checkpoint as checkpoints
from fastcompress.training.config import TrainConfig
from fastcompress.training.device import Stopwatch
from fastcompress.training.metrics import check_records, fingerprint_of
from fastcompress.training.progress import Progress

if TYPE_CHECKING:
    from fastcompress.training.loop import TrainingRun


def save_best(run: TrainingRun) -> None:
    """Write the weights alone, as the best so far. Every rank takes part."""
    _write(run, run.directory.best, checkpoints.model_tensors(run.model))


def save_last(run: TrainingRun, path: Path | None = None) -> None:
    """Write everything a resumed run needs, by default to ``last.safetensors``. Every rank takes part."""
    tensors = {
        **checkpoints.model_tensors(run.model),
        **checkpoints.optimizer_tensors(run.model, run.optimizer),
        **checkpoints.random_tensors(run.device, run.ranks),
    }
    _write(run, path or run.directory.last, tensors)


def _write(run: TrainingRun, path: Path, tensors: dict[str, torch.Tensor]) -> None:
    whole, state = run.ranks.whole_tensors(tensors), _state(run)
    run.ranks.on_first(lambda: checkpoints.write_checkpoint(path, whole, state))


def _state(run: TrainingRun) -> dict[str, Any]:
    """Return the content of a checkpoint apart from its tensors."""
    run.at.seconds, run.at.wall_seconds = run.watch.read(), run.wall.read()
    return {
        "model": run.model.config.to_json(),
        "train": run.config.to_json(),
        "codec": {"name": run.codec.name, "fingerprint": run.codec.fingerprint},
        "rows": {"fingerprint": run.feed.loader.rows.fingerprint},
        "progress": dataclasses.asdict(run.at),
        "loss_sum": float(run.ranks.mean(run.loss_sum)),
        "scaler": run.scaler.state_dict(),
        "run": run.identity,
        "metrics": fingerprint_of(run.directory.metrics) if run.ranks.is_first else None,
    }


def restore(run: TrainingRun) -> None:
    """Restore weights, optimizer, generators and progress from the last checkpoint. Every rank reads it."""
    path = run.directory.last
    saved = checkpoints.read_checkpoint(path)
    run.directory.check_belongs(saved.state, path)
    if run.directory.best.exists():  # read when the run ends, which would be late to learn of its damage
        best = checkpoints.read_checkpoint(run.directory.best)
        run.directory.check_belongs(best.state, run.directory.best)
    check_records(run.directory.metrics, saved.state.get("metrics"))
    try:
        checkpoints.check_codec(saved, run.codec, path)
        run.at = Progress(**saved.state["progress"])
        run.loss_sum.fill_(saved.state["loss_sum"])
        if run.scaler.is_enabled() and saved.state["scaler"]:  # empty: so far trained without loss scaling
            run.scaler.load_state_dict(saved.state["scaler"])
    except (KeyError, TypeError) as error:
        raise FormatError(f"{path}: its progress is damaged ({error}); restore it, or train again") from error
    checkpoints.load_model_tensors(run.model, saved, path)
    checkpoints.load_optimizer_tensors(run.model, run.optimizer, saved, path)
    if run.ranks.size > 1:  # a rank that the checkpoint does not know draws anew
        torch.manual_seed(run.ranks.seed(run.config.seed, run.at.step))
    checkpoints.load_random_tensors(run.device, saved, run.ranks)
    _go_on(run, saved.state)


def _go_on(run: TrainingRun, state: dict[str, Any]) -> None:
    """Set the clocks and the validation sample as they were at the checkpoint."""
    run.watch = Stopwatch(run.device, run.at.seconds)
    run.wall = Stopwatch(run.device, max(run.at.wall_seconds, run.at.seconds))
    run.logged = (run.at.tokens, run.at.seconds)
    run.resumed_at = run.at.step
    if run.horizon.seconds is not None and _same_eval_bytes(run, state):
        run.cut_sample(run.at.validation_bytes)
    else:
        run.at.validation_bytes = None
    if run.at.validation_sample not in (None, run.sample) or not run.directory.best.exists():
        # Scores on another sample say nothing about this one: evaluate now, and let the best start there.
        run.at.best_bits_per_byte, run.at.evaluated_step = None, -1
    run.at.validation_sample = run.sample
    if not run.is_done() and run.horizon.steps is not None and run.at.step > run.horizon.steps:
        raise ConfigError(
            f"{run.directory.path}: has made {run.at.step} steps, more than the {run.horizon.steps} asked "
            "for; resume with more, or leave the number out"
        )


def _same_eval_bytes(run: TrainingRun, state: dict[str, Any]) -> bool:
    """Return whether a checkpoint was written under the same limit of validation bytes."""
    return TrainConfig.from_json(state["train"]).evaluation.eval_bytes == run.config.evaluation.eval_bytes
