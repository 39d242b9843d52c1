"""Cells of a study: one arm with one seed and one budget, run in a process and a folder of its own.

A cell trains a codec, encodes the text, trains a model, evaluates it on the common bytes and samples from it. Because
it has a process of its own, it cannot take other cells down when memory runs out, and it leaves no threads, compiled
kernels or GPU memory behind. A cell that fails appears in the report as failed, and the others are run all the same.
"""

from __future__ import annotations

import datetime
import platform
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from fastcompress.codec import Codec, bigram_coverage
from fastcompress.data.corpora import load_corpus
from fastcompress.data.shards import TokenDataset, write_shards
from fastcompress.errors import FormatError, OutputError
from fastcompress.evaluation.bits_per_byte import evaluate
from fastcompress.evaluation.flops import charge_training
from fastcompress.evaluation.generate import generate
from fastcompress.models.kinds import make_model_config
from fastcompress.models.protocol import LanguageModel, ModelConfig
from fastcompress.models.threads import limited_threads
from fastcompress.models.tokens import is_incremental
from fastcompress.study.arms import Arm, Study
from fastcompress.study.folder import ArmRecord, Settings, arm_settings
from fastcompress.study.isolation import CellError, run_isolated
from fastcompress.training.batches import first_documents
from fastcompress.training.config import TrainConfig
from fastcompress.training.device import capability_of, choose_device, choose_precision
from fastcompress.training.train import TrainResult, threads_for, train

__all__ = ["Cell", "CellError", "Entry", "describe_machine", "make_cell", "must_stop_study", "run_cell"]

Entry = dict[str, Any]


@dataclass(frozen=True)
class Cell:
    """One arm with one seed and one budget.

    Attributes:
        study: The study.
        arm: The arm.
        seed: Seed for weights, batches, dropout and the sample.
        training_flops: The budget.
        device: As in ``MachineConfig``.
        folder: The folder of the cell.
        settings: The settings of the study (``folder.study_settings``).
    """

    study: Study
    arm: Arm
    seed: int
    training_flops: float
    device: str
    folder: Path
    settings: Settings


def make_cell(cell: Cell, *, progress: bool, isolate: bool) -> Entry:
    """Run a cell, or continue it, and return its entry in the report.

    Args:
        cell: The cell.
        progress: Show progress bars.
        isolate: Use a process of its own, unless the study cannot be pickled (for example, ``make_codec`` is a lambda).

    Raises:
        CellError: Its process died.
        Others as they were raised in it.
    """
    if not isolate:
        return run_cell(cell, progress)
    entry: Entry = run_isolated(run_cell, cell, progress, name=f"cell {cell.arm.name}")
    return entry


def must_stop_study(error: BaseException) -> bool:
    """Return whether an error of a cell ends the whole study: an interruption, or a folder of another study."""
    return isinstance(error, (OutputError, FormatError)) or not isinstance(error, Exception)


def run_cell(cell: Cell, progress: bool) -> Entry:
    """Run a cell in this process and return its entry, which is also written to its folder's ``result.json``."""
    since = time.perf_counter()
    study, arm, seed, device = cell.study, cell.arm, cell.seed, cell.device
    corpus = load_corpus(study.corpus)
    codec = arm.make_codec(corpus)
    record = ArmRecord.open(cell.folder / "result.json", arm_settings(cell.settings, arm, codec), since)
    if record.entry is not None:
        return record.entry
    record.keep_time()
    try:
        tokens_directory, run_directory = (record.path.with_name(name) for name in ("tokens", "run"))
        write_shards(tokens_directory, "train", corpus.contents("train"), codec, overwrite=True)
        tokens = TokenDataset.open(tokens_directory, "train", codec=codec)
        model_config = make_model_config({"preset": study.preset, **study.model}, codec)
        training = TrainConfig(flops=cell.training_flops, seed=seed, device=device, **study.training)
        held_out = corpus.contents(study.evaluated_split)
        num_threads = threads_for(model_config, training)
        result = train(
            model_config,
            codec,
            tokens,
            held_out,
            training,
            run_directory,
            resume=(run_directory / "config.json").exists(),
            on_metrics=lambda metrics: record.keep_time() if metrics["event"] == "eval" else None,
            progress=progress,
        )
        with limited_threads(num_threads):
            evaluation = evaluate(result.model, codec, held_out).to_json()
            sample = _sample(study, result.model, codec, tokens, seed)
        training_figures = _describe_training(result, tokens, codec)
        entry = {
            "name": arm.name,
            "label": arm.label,
            **_describe_model(study, result.model, codec, tokens),
            **training_figures,
            "curve_evaluation": _describe_curve(training, model_config, held_out),
            "evaluation": {**evaluation, "precision": "float32"},
            "prompt": study.prompt,
            "sample": sample,
            "notes": [
                *_notes(tokens),
                *_charges(training_figures["auxiliary_flops"]),
                *([arm.note] if arm.note else []),
            ],
            "machine": describe_machine(device, num_threads),
            "finished": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        }
    except BaseException:  # Ctrl-C above all: the time was spent all the same
        record.keep_time()
        raise
    return record.finish(entry)


def _describe_model(study: Study, model: LanguageModel, codec: Codec, tokens: TokenDataset) -> dict[str, Any]:
    config = model.config
    bytes_per_token = tokens.num_bytes / (tokens.num_tokens - tokens.num_documents)
    flops = model.flops().training_per_token
    return {
        "codec": {
            "name": codec.name,
            "fingerprint": codec.fingerprint,
            "vocab_size": codec.vocab_size,
            "lossless": codec.lossless,
        },
        "bytes_per_token": bytes_per_token,
        "num_parameters": model.num_parameters(),
        "num_parameters_embedding": model.num_parameters() - model.num_parameters(embedding=False),
        "context_tokens": config.context_length,
        "context_bytes": config.context_length * bytes_per_token,
        "model": {
            "preset": study.preset,
            "layers": getattr(config, "num_layers", 1),
            "width": config.width,
            "heads": getattr(config, "num_heads", 1),
        },
        "flops_per_token": flops,
        "flops_per_byte": flops * tokens.num_tokens / tokens.num_bytes,  # ends of documents are trained on, too
    }


def _describe_training(result: TrainResult, tokens: TokenDataset, codec: Codec) -> dict[str, Any]:
    num_bytes = round(result.tokens * tokens.num_bytes / tokens.num_tokens)
    return {
        "training_flops": result.flops,
        "steps": result.steps,
        "best_step": result.best_step,
        "tokens_seen": result.tokens,
        "bytes_seen": num_bytes,
        "auxiliary_flops": charge_training(result.flops, num_bytes, codec),
        "epochs": result.tokens / tokens.num_tokens,
        "tokens_per_second": result.tokens_per_second,
        "train_seconds": result.seconds,
        "curve": result.curve,
    }


def _describe_curve(training: TrainConfig, model: ModelConfig, held_out: list[bytes]) -> dict[str, Any]:
    """Describe how the curve and the best checkpoint were measured, which is quicker than the final score."""
    sample = first_documents(held_out, training.evaluation.eval_bytes)
    device = choose_device(training.machine.device)
    return {
        "num_bytes": sum(len(document) for document in sample),
        "num_documents": len(sample),
        "stride": model.context_length,
        "precision": choose_precision(training.machine.precision, device.type, capability_of(device)),
    }


def _sample(study: Study, model: LanguageModel, codec: Codec, tokens: TokenDataset, seed: int) -> str:
    """Return the prompt and about ``sample_bytes`` bytes of continuation; none if ids do not decode as they come."""
    if not is_incremental(codec):
        return study.prompt
    num_tokens = round(study.sample_bytes * tokens.num_tokens / tokens.num_bytes)
    pieces = generate(model, codec, study.prompt.encode(), max_tokens=num_tokens, temperature=0.8, seed=seed)
    return study.prompt + "".join(pieces)


def _notes(tokens: TokenDataset) -> list[str]:
    """Describe the coverage of token bigrams: a model can learn only those in its text."""
    coverage = bigram_coverage(tokens.read(0, tokens.num_tokens), tokens.vocab_size + 1)
    return [
        f"The training text holds {coverage.num_seen:,} of {coverage.num_possible:,} possible token pairs "
        f"({coverage.fraction:.1%}), {coverage.num_tokens / max(1, coverage.num_seen):,.0f} tokens for each."
    ]


def _charges(flops: dict[str, float]) -> list[str]:
    """Describe what the model behind a codec adds to the training FLOPs, which the budget does not count."""
    if not flops:
        return []
    return [
        f"Making the codec took {flops['making']:.3g} FLOPs. With them, training took {flops['amortized']:.3g} FLOPs, "
        f"and with the codec's model run for every byte {flops['every_byte']:.3g}."
    ]


def describe_machine(device: str, num_threads: int) -> dict[str, Any]:
    """Describe the machine, as far as speed and reproducibility depend on it."""
    chosen = choose_device(device)
    return {
        "device": chosen.type,
        "device_name": torch.cuda.get_device_name(chosen) if chosen.type == "cuda" else _processor_name(),
        "num_threads": num_threads,
        "python": platform.python_version(),
        "torch": torch.__version__,
    }


def _processor_name() -> str:
    """Return the model of the processor if the system reports it (Linux: in a file only), else its architecture."""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text(errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
