"""The training loop: batches in, better weights and an honest curve out.

What keeps a run trustworthy: it starts with a self-check; its clock leaves out evaluation, checkpoints and
compilation; nothing in a step waits for the device (figures are fetched every ``log_every`` steps); a loss
that is not finite stops it before a checkpoint is overwritten; and everything that decides the next step is
in the checkpoint, so on the CPU a resumed run computes the same losses, to the bit, as one never stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from fastcompress.codec import Codec
from fastcompress.data.loader import TokenLoader
from fastcompress.data.shards import TokenDataset
from fastcompress.errors import ConfigError, DataError, MismatchError
from fastcompress.models.gpt import GPT, GPTConfig
from fastcompress.training.batches import BatchFeed
from fastcompress.training.checkpoint import load_model_tensors, read_checkpoint
from fastcompress.training.config import TrainConfig
from fastcompress.training.device import choose_device
from fastcompress.training.run import TrainingRun
from fastcompress.training.run_directory import RunDirectory
from fastcompress.training.selfcheck import self_check

CURVE_FIELDS = ("step", "tokens", "flops", "seconds", "train_bits_per_byte", "validation_bits_per_byte")


@dataclass(frozen=True)
class TrainResult:
    """A finished run.

    Attributes:
        model: The best weights by validation, in eval mode, on the device it was trained on.
        steps, tokens, flops: All the run's, those before a resume too.
        seconds: Of training, without evaluation, checkpoints and compilation; tokens_per_second goes by it.
        best_step: The step of the weights in ``model``.
        curve: One entry an evaluation: step, tokens, flops, seconds, train_bits_per_byte (None at step 0:
            nothing was trained on yet), validation_bits_per_byte.
    """

    model: GPT
    steps: int
    tokens: int
    flops: int
    seconds: float
    tokens_per_second: float
    best_step: int
    curve: list[dict[str, Any]]


def train(
    model_config: GPTConfig,
    codec: Codec,
    train_data: TokenDataset,
    validation: Sequence[bytes],
    config: TrainConfig,
    run_directory: Path,
    *,
    resume: bool = False,
    on_metrics: Callable[[dict[str, Any]], None] | None = None,
    progress: bool = True,
) -> TrainResult:
    """Train a GPT from scratch, or go on with a stopped run; leaves ``run_directory`` ready for either.

    Args:
        model_config: ``vocab_size`` is ``codec.vocab_size + 1``.
        codec: Made ``train_data``'s tokens.
        train_data: At least ``context_length + 1`` tokens.
        validation: Raw documents; evaluated with non-overlapping windows up to ``config.eval_bytes``. The
            best checkpoint is the best on these.
        run_directory: Created; see ``training/run_directory.py`` for its files.
        resume: Go on from ``last.safetensors``. Schedule, horizon, evaluation and machine settings may
            differ; model, codec, batch size and seed may not.
        on_metrics: Called with each record of ``metrics.jsonl`` (``training/metrics.py``), between two steps.
        progress: Show a progress bar on a terminal.

    train_bits_per_byte is the mean loss of the last training line times the corpus's tokens per raw byte
    (ends of documents counted), so it is comparable with validation up to the batches' own ratio.

    Ctrl-C and SIGTERM finish the step, save and raise KeyboardInterrupt or SystemExit; ``resume=True`` goes
    on. torch's global CPU and CUDA generators are left as found.

    Raises:
        ConfigError, MismatchError: Settings, codec, data and model do not fit each other.
        DataError: Too little training data, or no validation text.
        OutputError: ``run_directory`` holds a run and ``resume`` is off, or cannot be written.
        FormatError: The checkpoint to resume from is damaged or foreign.
        DivergenceError: The loss is no longer finite; the last good checkpoint stays.
        SelfCheckError: A self-check failed before the first step.
    """
    _check_inputs(model_config, codec, train_data, validation)
    device = choose_device(config.device)
    loader = TokenLoader(
        train_data, context_length=model_config.context_length, batch_size=config.batch_size, seed=config.seed
    )
    directory = RunDirectory(Path(run_directory))
    cards = [device.index if device.index is not None else torch.cuda.current_device()] if device.type == "cuda" else []
    with torch.random.fork_rng(cards), BatchFeed(loader, device) as feed:
        torch.manual_seed(config.seed)
        run = TrainingRun(model_config, codec, validation, config, directory, feed, on_metrics)
        if config.self_check and not resume:
            with torch.random.fork_rng(cards):
                self_check(run.model, config)
        directory.prepare(model_config, config, codec, resume=resume)
        if resume and directory.last.exists():  # a run stopped before its first checkpoint starts again
            run.restore()
        run.compile_if_wanted(cards)
        run.run(show_progress=progress)
        return _result(run)


def _check_inputs(model_config: GPTConfig, codec: Codec, train_data: TokenDataset, validation: Sequence[bytes]) -> None:
    if train_data.codec_fingerprint != codec.fingerprint:
        raise MismatchError(f"the training data was not encoded by codec {codec.name}: encode it again with this one")
    if model_config.vocab_size != codec.vocab_size + 1:
        raise ConfigError(
            f"vocab_size is {model_config.vocab_size}, but codec {codec.name} and the end of document need "
            f"{codec.vocab_size + 1}"
        )
    if not any(validation):
        raise DataError("no validation text: give at least one document that is not empty")


def _result(run: TrainingRun) -> TrainResult:
    """The run's figures, with the best weights loaded."""
    best = read_checkpoint(run.directory.best)
    load_model_tensors(run.model, best, run.directory.best)
    evaluations = [record for record in run.metrics.records if record["event"] == "eval"]
    seconds = run.watch.read()
    return TrainResult(
        model=run.model.eval(),
        steps=run.at.step,
        tokens=run.at.tokens,
        flops=run.at.flops,
        seconds=seconds,
        tokens_per_second=run.at.tokens / max(seconds, 1e-9),
        best_step=run.at.best_step,
        curve=[{name: record[name] for name in CURVE_FIELDS} for record in evaluations],
    )
