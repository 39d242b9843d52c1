"""The entry point for training a model; the loop is in ``loop.py``.

- A run starts with a self-check.
- Its clock leaves out evaluation, checkpoints and compilation.
- Nothing in a step waits for the device; figures are fetched every ``log_every`` steps.
- A loss that is not finite stops the run before a checkpoint is overwritten.
- A checkpoint holds everything that determines the next step, so on the CPU a resumed run computes the same losses, to
  the bit, as one that never stopped.

A resumed run continues from ``last.safetensors``. Schedule, horizon, evaluation and machine settings may differ; model,
codec, texts, batch size, seed, order and packing may not. Scores on different validation samples cannot be compared,
so with another ``eval_bytes`` the run is scored at once, and the best score starts anew. A run that has reached its
horizon is left unchanged, even if a shorter horizon is given.

After Ctrl-C or SIGTERM, the run finishes the step (or the batch of an evaluation), saves, and raises KeyboardInterrupt
or SystemExit.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from fastcompress.codec import Codec
from fastcompress.data.loader import RowLoader
from fastcompress.data.mixture import Mixture
from fastcompress.data.orders import NEWEST_ORDER
from fastcompress.data.packing import pack
from fastcompress.data.rows import Rows
from fastcompress.data.shards import TokenDataset
from fastcompress.errors import DataError, MismatchError
from fastcompress.models.allocation import memory_errors
from fastcompress.models.blocks import normed_layers
from fastcompress.models.float8 import multiply_in_float8, multiply_normed_in_float8
from fastcompress.models.protocol import LanguageModel, ModelConfig
from fastcompress.models.threads import choose_threads, limited_threads
from fastcompress.training.batches import BatchFeed
from fastcompress.training.checkpoint import load_model_tensors, read_checkpoint
from fastcompress.training.config import TrainConfig
from fastcompress.training.device import (
    capability_of,
    cards_of,
    check_float8,
    choose_device,
    choose_precision,
    kernels_of,
)
from fastcompress.training.distributed import Ranks, join_ranks
from fastcompress.training.forecast import Forecast, make_forecast
from fastcompress.training.loop import TrainingRun
from fastcompress.training.memory import check_memory, fit_to_machine, memory_for_each
from fastcompress.training.metrics import read_records
from fastcompress.training.recompute import recomputed
from fastcompress.training.run_directory import RunDirectory, describe_data
from fastcompress.training.selfcheck import check_documents_apart, self_check
from fastcompress.training.snapshots import restore
from fastcompress.training.spread import spread_for
from fastcompress.training.trial import compile_if_wanted

CURVE_FIELDS = ("step", "tokens", "flops", "seconds", "train_bits_per_byte", "validation_bits_per_byte")


@dataclass(frozen=True)
class TrainResult:
    """A finished run.

    Attributes:
        model: The best weights by validation, in eval mode, on the device it was trained on; on the CPU where several
            processes had a part of it each.
        steps, tokens, flops: Totals of the run, including those before it was resumed.
        seconds: Seconds of training, without evaluation, checkpoints and compilation; tokens_per_second refers to it.
        new_steps: The steps made by this call; 0 if a finished run was resumed.
        best_step, best_bits_per_byte: The step of the weights in ``model``, and their score on validation.
        curve: One entry per evaluation: step, tokens, flops, seconds, train_bits_per_byte (None at step 0:
            nothing was trained on yet), validation_bits_per_byte. train_bits_per_byte is the mean loss of the
            last training line times the corpus's tokens per raw byte (ends of documents counted), so it compares
            with validation up to the batches' own ratio.
    """

    model: LanguageModel = field(repr=False)
    steps: int
    tokens: int
    flops: int
    seconds: float
    tokens_per_second: float
    new_steps: int
    best_step: int
    best_bits_per_byte: float
    curve: list[dict[str, Any]] = field(repr=False)


@memory_errors()
def train(
    model_config: ModelConfig,
    codec: Codec,
    train_data: TokenDataset | Mixture,
    validation: Sequence[bytes],
    config: TrainConfig,
    run_directory: Path,
    *,
    resume: bool = False,
    on_ready: Callable[[], None] | None = None,
    on_metrics: Callable[[dict[str, Any]], None] | None = None,
    on_forecast: Callable[[Forecast], None] | None = None,
    progress: bool = True,
    rows: Rows | None = None,
    initial: Mapping[str, Tensor] | None = None,
) -> TrainResult:
    """Train a model from scratch, or resume a run, in ``run_directory``.

    Args:
        model_config: The configuration of the model, of any kind; the model reads rows of ``codec``.
        codec, train_data: The codec, and at least ``context_length + 1`` tokens encoded by it, or a mixture of such
            datasets.
        validation: Raw documents; the best checkpoint is the best on the first ``eval_bytes`` of them,
            in windows that do not overlap.
        run_directory: The folder of the run, made if missing (``training/run_directory.py`` lists its files).
        resume: Continue the run in it; the head of this file says what may differ.
        on_ready: Called before the first step, after all checks, when ``run_directory`` holds the run.
        on_metrics: Called with each record of ``metrics.jsonl`` (``training/metrics.py``), between two steps.
        on_forecast: Called before the first step with the memory and the time that the run will need. Measuring the
            time takes two trial passes.
        progress: Show a progress bar on a terminal, elsewhere a line from time to time.
        rows: How ``train_data`` and documents become rows; default: as the model reads text.
        initial: Initial weights of a new run, as ``state_dict`` returns them; default: drawn from the seed.

    Under torchrun, every process makes the same call and returns the same result (``training/distributed.py``); the
    callbacks are those of the first one, and an error that one of them raises stops all processes.

    torch's global CPU and CUDA generators are left as found. Raises ConfigError, MismatchError: settings, codec,
    data, model and the run to resume do not fit each other. DataError: too little text, or nothing to resume from.
    OutputError: the folder holds a run and ``resume`` is off, or cannot be written. FormatError: the checkpoint is
    damaged. DivergenceError: the loss is no longer finite. SelfCheckError: a self-check failed.
    """
    _check_inputs(codec, train_data, validation)
    rows = model_config.rows(codec) if rows is None else rows
    directory = RunDirectory(Path(run_directory))
    data = describe_data(train_data, validation)
    with contextlib.ExitStack() as stack:
        ranks = stack.enter_context(join_ranks(choose_device(config.machine.device)))
        device = ranks.device(choose_device(config.machine.device))
        if config.order is None:
            order = ranks.on_first(directory.order) if resume else NEWEST_ORDER
            config = config.override({"order": order})
        loader = _make_loader(train_data, rows, config, ranks)
        rows = loader.rows
        available = memory_for_each(device, ranks)
        fitted = fit_to_machine(config, model_config, device, ranks, available)
        check_memory(model_config, fitted, device, available, ranks)
        if resume:  # before anything in the folder is read
            ranks.on_first(lambda: _lock(stack, directory, create=False))
            ranks.on_first(lambda: directory.check_same_run(model_config, rows, config, data))
        stack.enter_context(limited_threads(threads_for(model_config, fitted)))
        stack.enter_context(torch.random.fork_rng(cards_of(device)))
        feed = stack.enter_context(BatchFeed(loader, device))
        check = config.self_check and not resume
        model = _make_model(model_config, rows, initial, config, ranks, device, check=check)
        if config.machine.checkpoint_activations:
            stack.enter_context(recomputed(model))
        spread = spread_for(ranks, config.machine)
        run = TrainingRun(model, codec, validation, fitted, directory, feed, on_metrics, spread)
        if resume and directory.last.exists():  # a run stopped before its first checkpoint starts again
            restore(run)
        if not run.is_done():
            if not resume:  # only now, so that a run that cannot start leaves no folder
                ranks.on_first(lambda: _lock(stack, directory, create=True))
            run.identity = ranks.on_first(lambda: directory.prepare(model_config, rows, config, data, resume=resume))
            if on_ready is not None:
                _call_on_first(ranks, on_ready)
            compile_if_wanted(run)
            forecast = make_forecast(run) if on_forecast is not None else None
            if forecast is not None and on_forecast is not None:
                _call_on_first(ranks, on_forecast, forecast)
            run.run(show_progress=progress)
        return _result(run)


def _make_loader(train_data: TokenDataset | Mixture, rows: Rows, config: TrainConfig, ranks: Ranks) -> RowLoader:
    dataset, rows = pack(train_data, rows, config.packing)
    assert config.order is not None
    return RowLoader(
        dataset,
        rows,
        batch_size=config.batch_size,
        seed=config.seed,
        rank=ranks.rank,
        world_size=ranks.size,
        order=config.order,
    )


def _call_on_first(ranks: Ranks, callback: Callable[..., object], *arguments: Any) -> None:
    """Call back on the first rank; what the callback returns is not sent to the others, its error is."""

    def call() -> None:
        callback(*arguments)

    ranks.on_first(call)


def _lock(stack: contextlib.ExitStack, directory: RunDirectory, *, create: bool) -> None:
    stack.enter_context(directory.locked(create=create))


def _make_model(
    model_config: ModelConfig,
    rows: Rows,
    initial: Mapping[str, Tensor] | None,
    config: TrainConfig,
    ranks: Ranks,
    device: torch.device,
    *,
    check: bool,
) -> LanguageModel:
    """Make the model with equal weights on every rank, and check it. Seeds the generators."""
    torch.manual_seed(config.seed)
    capability = capability_of(device)
    precision = choose_precision(config.machine.precision, device.type, capability)
    check_float8(config.machine, precision, capability)
    model = model_config.build(kernels_of(config.machine))
    if config.machine.float8 == "all":
        multiply_in_float8(model)
    elif config.machine.float8 == "normed":
        multiply_normed_in_float8(normed_layers(model))
    model.read_codec(rows.codec)
    if initial is not None:
        model.load_state_dict(initial)
    model.to(device)
    if check:  # before the model is spread over ranks
        with torch.random.fork_rng(cards_of(device)):
            self_check(model, config)
            check_documents_apart(model, rows)
    if not ranks.is_first:  # whose dropout goes on from the draws of the weights
        torch.manual_seed(ranks.seed(config.seed))
    return model


def threads_for(model_config: ModelConfig, config: TrainConfig) -> int:
    """Return the number of CPU threads of a run, for training steps and evaluations alike."""
    if config.machine.num_threads is not None:
        return config.machine.num_threads
    return choose_threads(config.micro_batch, model_config.context_length, model_config.width)


def _check_inputs(codec: Codec, train_data: TokenDataset | Mixture, validation: Sequence[bytes]) -> None:
    if train_data.codec_fingerprint != codec.fingerprint:
        raise MismatchError(f"the training data was not encoded by codec {codec.name}: encode it again with this one")
    if not any(validation):
        raise DataError("no validation text: give at least one document that is not empty")


def _result(run: TrainingRun) -> TrainResult:
    """Return the run's figures and its model with the best weights."""
    best = read_checkpoint(run.directory.best)
    model = run.spread.unspread(run.model)
    load_model_tensors(model, best, run.directory.best)
    records = read_records(run.directory.metrics, run.at.step)
    assert run.at.best_bits_per_byte is not None  # a run ends with an evaluation
    seconds = run.watch.read()
    return TrainResult(
        model=model.eval(),
        steps=run.at.step,
        tokens=run.at.tokens,
        flops=run.at.flops,
        seconds=seconds,
        tokens_per_second=run.at.tokens / max(seconds, 1e-9),
        new_steps=run.at.step - (run.resumed_at or 0),
        best_step=run.at.best_step,
        best_bits_per_byte=run.at.best_bits_per_byte,
        curve=[{name: record[name] for name in CURVE_FIELDS} for record in records if record["event"] == "eval"],
    )
