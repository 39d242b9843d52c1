"""Runs a study: for each arm train a codec, encode, train a model, evaluate it on the common bytes, sample from it.

Output folder:

    report.html, report.json        what came out
    arms/study.json                 every setting, so that another study in the same folder is refused (``folder.py``)
    arms/<arm>/result.json          what the arm is made from; once it is done, its part of the report
    arms/<arm>/tokens/              its shards
    arms/<arm>/run/                 its training run: `fastcompress generate` reads it as it is, `fastcompress eval` too
                                    if it is told the text (``--corpus``), which a study does not write there

A study that was stopped goes on where it was when run again with the same settings: finished arms are taken from their
result.json, an unfinished one resumes from its last checkpoint. Run again when complete, it writes the same report.
"""

from __future__ import annotations

import datetime
import platform
import sys
import time
from pathlib import Path
from typing import Any

import torch

from fastcompress import __version__
from fastcompress._locks import locked
from fastcompress.codec import Codec, bigram_coverage
from fastcompress.data.corpora import Corpus, load_corpus
from fastcompress.data.shards import TokenDataset, write_shards
from fastcompress.evaluation.bits_per_byte import evaluate
from fastcompress.evaluation.generate import generate
from fastcompress.models.kinds import make_model_config
from fastcompress.models.protocol import LanguageModel, ModelConfig
from fastcompress.models.threads import limited_threads
from fastcompress.study.arms import Arm, Study, find_study
from fastcompress.study.folder import ArmRecord, arm_settings, claim, make_folder, study_settings
from fastcompress.study.report import FORMAT, VERSION, write_report
from fastcompress.training.batches import first_documents
from fastcompress.training.config import TrainConfig
from fastcompress.training.device import capability_of, choose_device, choose_precision
from fastcompress.training.train import TrainResult, threads_for, train


def run_study(name: str | Study, output: Path, *, seed: int = 0, device: str = "auto", progress: bool = True) -> Path:
    """Run a study and return the path of its ``report.html``.

    Args:
        name: One of ``arms.STUDIES``, or a study of your own.
        output: The study's folder; made if it is missing.
        seed: Seed for weights, batches, dropout and samples.
        device: As in ``TrainConfig``.
        progress: Print a line for each stage and show progress bars.

    Raises:
        ConfigError: There is no study of that name.
        OutputError: ``output`` cannot be written, holds another study or arms made otherwise, or another process
            writes to it.
        FormatError: A file in ``output`` is damaged.
    """
    study = find_study(name) if isinstance(name, str) else name
    corpus = load_corpus(study.corpus)
    directory = Path(output)
    make_folder(directory / "arms", directory)
    with locked(directory):
        return _run_study(study, corpus, directory, seed, device, progress)


def _run_study(study: Study, corpus: Corpus, directory: Path, seed: int, device: str, progress: bool) -> Path:
    settings = study_settings(study, corpus, seed, choose_device(device).type)
    claim(directory, settings)
    splits = ", ".join(f"{split} {corpus.num_bytes(split):,} bytes" for split in ("train", study.evaluated_split))
    _say(f"{study.name}: {corpus.name} ({splits}), {study.training_flops:.2g} training FLOPs an arm", progress)
    arms = []
    for number, arm in enumerate(study.arms, start=1):
        _say(f"[{number}/{len(study.arms)}] {arm.label}", progress)
        since = time.perf_counter()
        codec = arm.make_codec(corpus)
        made_from = arm_settings(settings, arm, codec)
        record = ArmRecord.open(directory / "arms" / arm.name / "result.json", made_from, since)
        arms.append(record.entry or _run_arm(study, arm, codec, corpus, record, seed, device, progress))
        scored = arms[-1]["evaluation"]
        _say(
            f"    {scored['bits_per_byte']:.4f} bits per byte, {arms[-1]['bytes_per_token']:.2f} bytes a token",
            progress,
        )
    return write_report(_report(study, corpus, arms, seed), directory)


def _report(study: Study, corpus: Corpus, arms: list[dict[str, Any]], seed: int) -> dict[str, Any]:
    """A function of the finished arms alone: the date is the last one's, the time is the sum of theirs."""
    newest = max(arms, key=lambda arm: str(arm["finished"]))
    return {
        "format": FORMAT,
        "version": VERSION,
        "name": study.name,
        "created": newest["finished"],
        "package_version": __version__,
        "command": f"fastcompress study {study.name}" + (f" --seed {seed}" if seed else ""),
        "seed": seed,
        "machine": newest["machine"],
        "corpus": _describe_corpus(corpus),
        "budget": {"training_flops": study.training_flops},
        "tuning": study.tuning,
        "evaluated_split": study.evaluated_split,
        "wall_seconds": sum(arm["wall_seconds"] for arm in arms),
        "arms": arms,
    }


def _run_arm(
    study: Study, arm: Arm, codec: Codec, corpus: Corpus, record: ArmRecord, seed: int, device: str, progress: bool
) -> dict[str, Any]:
    """Makes an arm, or goes on making it, and returns its entry of report.json, which is then in ``record``, too."""
    record.keep_time()
    try:
        tokens_directory, run_directory = (record.path.with_name(name) for name in ("tokens", "run"))
        write_shards(tokens_directory, "train", corpus.contents("train"), codec, overwrite=True)
        tokens = TokenDataset.open(tokens_directory, "train", codec=codec)
        model_config = make_model_config({"preset": study.preset, **study.model}, codec)
        training = TrainConfig(flops=study.training_flops, seed=seed, device=device, **study.training)
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
        entry = {
            "name": arm.name,
            "label": arm.label,
            **_describe_model(study, result.model, codec, tokens),
            **_describe_training(result, tokens),
            "curve_evaluation": _describe_curve(training, model_config, held_out),
            "evaluation": {**evaluation, "precision": "float32"},
            "prompt": study.prompt,
            "sample": sample,
            "notes": [*_notes(tokens), *([arm.note] if arm.note else [])],
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


def _describe_training(result: TrainResult, tokens: TokenDataset) -> dict[str, Any]:
    return {
        "training_flops": result.flops,
        "steps": result.steps,
        "best_step": result.best_step,
        "tokens_seen": result.tokens,
        "bytes_seen": round(result.tokens * tokens.num_bytes / tokens.num_tokens),
        "epochs": result.tokens / tokens.num_tokens,
        "tokens_per_second": result.tokens_per_second,
        "train_seconds": result.seconds,
        "curve": result.curve,
    }


def _describe_curve(training: TrainConfig, model: ModelConfig, held_out: list[bytes]) -> dict[str, Any]:
    """Describe how the curve and the best checkpoint were measured: quicker than the final figure."""
    sample = first_documents(held_out, training.evaluation.eval_bytes)
    device = choose_device(training.machine.device)
    return {
        "num_bytes": sum(len(document) for document in sample),
        "num_documents": len(sample),
        "stride": model.context_length,
        "precision": choose_precision(training.machine.precision, device.type, capability_of(device)),
    }


def _sample(study: Study, model: LanguageModel, codec: Codec, tokens: TokenDataset, seed: int) -> str:
    """The prompt and about ``sample_bytes`` bytes of continuation, however many tokens that takes."""
    num_tokens = round(study.sample_bytes * tokens.num_tokens / tokens.num_bytes)
    pieces = generate(model, codec, study.prompt.encode(), max_tokens=num_tokens, temperature=0.8, seed=seed)
    return study.prompt + "".join(pieces)


def _notes(tokens: TokenDataset) -> list[str]:
    """The workshop's check: a model can only learn the bigrams its text shows it."""
    coverage = bigram_coverage(tokens.read(0, tokens.num_tokens), tokens.vocab_size + 1)
    return [
        f"The training text holds {coverage.num_seen:,} of {coverage.num_possible:,} possible token pairs "
        f"({coverage.fraction:.1%}), {coverage.num_tokens / max(1, coverage.num_seen):,.0f} tokens for each."
    ]


def describe_machine(device: str, num_threads: int) -> dict[str, Any]:
    """Describe what ran an arm, as far as speed and reproducibility depend on it."""
    chosen = choose_device(device)
    return {
        "device": chosen.type,
        "device_name": torch.cuda.get_device_name(chosen) if chosen.type == "cuda" else _processor_name(),
        "num_threads": num_threads,
        "python": platform.python_version(),
        "torch": torch.__version__,
    }


def _processor_name() -> str:
    """The processor's model where the system tells it (Linux does so in a file only), else its kind."""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text(errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _describe_corpus(corpus: Corpus) -> dict[str, Any]:
    return {
        "name": corpus.name,
        "fingerprint": corpus.fingerprint,
        "splits": {
            split: {"documents": len(getattr(corpus, split)), "bytes": corpus.num_bytes(split)}
            for split in ("train", "validation", "test")
        },
    }


def _say(line: str, enabled: bool) -> None:
    if enabled:
        print(line, file=sys.stderr, flush=True)
