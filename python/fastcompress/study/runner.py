"""Runs a study: for each arm train a codec, encode, train a model, evaluate it on the common bytes, sample from it.

Output folder:

    report.html, report.json        what came out
    arms/<arm>/result.json          an arm's part of the report, written when the arm is done
    arms/<arm>/tokens/              its shards
    arms/<arm>/run/                 its training run, as `fastcompress train` leaves it (`generate` and `eval` read it)

A study that was stopped goes on where it was when run again with the same settings: finished arms are taken from their
result.json, an unfinished one resumes from its last checkpoint.
"""

from __future__ import annotations

import dataclasses
import datetime
import hashlib
import json
import platform
import sys
import time
from pathlib import Path
from typing import Any

import torch

from fastcompress import __version__
from fastcompress._files import write_atomically
from fastcompress.codec import Codec, bigram_coverage
from fastcompress.data.corpora import Corpus, load_corpus
from fastcompress.data.shards import TokenDataset, write_shards
from fastcompress.errors import OutputError
from fastcompress.evaluation.bits_per_byte import evaluate
from fastcompress.evaluation.flops import count_flops
from fastcompress.evaluation.generate import generate
from fastcompress.models.gpt import GPT, GPTConfig
from fastcompress.study.arms import Arm, Study, find_study
from fastcompress.study.report import FORMAT, VERSION, write_report
from fastcompress.training.config import TrainConfig
from fastcompress.training.device import choose_device
from fastcompress.training.loop import TrainResult, train


def run_study(name: str | Study, output: Path, *, seed: int = 0, device: str = "auto", progress: bool = True) -> Path:
    """Runs the named study (or one of your own) and returns the path of its ``report.html``.

    seed: of weights, batches, dropout and samples. device: as in TrainConfig. progress: print a line for each stage
    and show bars.

    Raises ConfigError for an unknown study, OutputError when ``output`` cannot be written or holds another study.
    """
    study = find_study(name) if isinstance(name, str) else name
    begin = time.perf_counter()
    corpus = load_corpus(study.corpus)
    directory = Path(output)
    _claim(directory, study, corpus, seed)
    splits = ", ".join(f"{split} {corpus.num_bytes(split):,} bytes" for split in ("train", study.evaluated_split))
    _say(f"{study.name}: {corpus.name} ({splits}), {study.training_flops:.2g} training FLOPs an arm", progress)
    arms = []
    for number, arm in enumerate(study.arms, start=1):
        _say(f"[{number}/{len(study.arms)}] {arm.label}", progress)
        arms.append(_run_arm(study, arm, corpus, directory / "arms" / arm.name, seed, device, progress))
        scored = arms[-1]["evaluation"]
        _say(
            f"    {scored['bits_per_byte']:.4f} bits per byte, {arms[-1]['bytes_per_token']:.2f} bytes a token",
            progress,
        )
    report = {
        "format": FORMAT,
        "version": VERSION,
        "name": study.name,
        "created": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "package_version": __version__,
        "command": f"fastcompress study {study.name}" + (f" --seed {seed}" if seed else ""),
        "seed": seed,
        "machine": describe_machine(device),
        "corpus": _describe_corpus(corpus),
        "budget": {"training_flops": study.training_flops},
        "evaluated_split": study.evaluated_split,
        "wall_seconds": time.perf_counter() - begin,
        "arms": arms,
    }
    return write_report(report, directory)


def _run_arm(
    study: Study, arm: Arm, corpus: Corpus, directory: Path, seed: int, device: str, progress: bool
) -> dict[str, Any]:
    """An arm's entry of report.json, from its result.json when the arm was finished before."""
    result_path = directory / "result.json"
    if result_path.exists():
        finished: dict[str, Any] = json.loads(result_path.read_bytes())
        return finished
    codec = arm.make_codec(corpus)
    write_shards(directory / "tokens", "train", corpus.contents("train"), codec, overwrite=True)
    tokens = TokenDataset.open(directory / "tokens", "train", codec=codec)
    make_config = GPTConfig.workshop if study.preset == "workshop" else GPTConfig.modern
    model_config = make_config(vocab_size=codec.vocab_size + 1, **study.model)
    training = TrainConfig(flops=study.training_flops, seed=seed, device=device, **study.training)
    held_out = corpus.contents(study.evaluated_split)
    result = train(
        model_config,
        codec,
        tokens,
        held_out,
        training,
        directory / "run",
        resume=(directory / "run").exists(),
        progress=progress,
    )
    entry = {
        "name": arm.name,
        "label": arm.label,
        **_describe_model(study, result.model, codec, tokens),
        **_describe_training(result, tokens),
        "evaluation": dataclasses.asdict(evaluate(result.model, codec, held_out)),
        "prompt": study.prompt,
        "sample": _sample(study, result.model, codec, tokens, seed),
        "notes": _notes(tokens),
    }
    write_atomically(result_path, json.dumps(entry, indent=1).encode())
    return entry


def _describe_model(study: Study, model: GPT, codec: Codec, tokens: TokenDataset) -> dict[str, Any]:
    config = model.config
    bytes_per_token = tokens.num_bytes / (tokens.num_tokens - tokens.num_documents)
    flops = count_flops(model).training_per_token
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
            "layers": config.num_layers,
            "width": config.width,
            "heads": config.num_heads,
        },
        "flops_per_token": flops,
        "flops_per_byte": flops / bytes_per_token,
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


def _sample(study: Study, model: GPT, codec: Codec, tokens: TokenDataset, seed: int) -> str:
    """The prompt and about ``sample_bytes`` bytes of continuation, however many tokens that takes."""
    num_tokens = round(study.sample_bytes * tokens.num_tokens / tokens.num_bytes)
    pieces = generate(model, codec, study.prompt.encode(), max_tokens=num_tokens, temperature=0.8, seed=seed)
    return study.prompt + "".join(pieces)


def _notes(tokens: TokenDataset) -> list[str]:
    """Seed 001's check: a model can only learn the bigrams its text shows it."""
    coverage = bigram_coverage(tokens.read(0, tokens.num_tokens), tokens.vocab_size + 1)
    return [
        f"The training text holds {coverage.num_seen:,} of {coverage.num_possible:,} possible token pairs "
        f"({coverage.fraction:.1%}), {coverage.num_tokens / max(1, coverage.num_seen):,.0f} tokens for each."
    ]


def describe_machine(device: str) -> dict[str, Any]:
    """What ran the study, as far as speed and reproducibility depend on it."""
    chosen = choose_device(device)
    return {
        "device": chosen.type,
        "device_name": torch.cuda.get_device_name(chosen) if chosen.type == "cuda" else _processor_name(),
        "num_threads": torch.get_num_threads(),
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


def _claim(directory: Path, study: Study, corpus: Corpus, seed: int) -> None:
    """Marks the folder as this study's, or checks that it is, so that no stale arm enters a report."""
    settings = {
        "study": study.name,
        "corpus": corpus.fingerprint,
        "seed": seed,
        "settings": repr(
            [study.preset, study.training_flops, study.model, study.training, [a.name for a in study.arms]]
        ),
        "version": __version__,
    }
    mark = hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest().encode()
    path = directory / "arms" / "study.sha256"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{directory}: cannot be written ({error.strerror}); choose another --output") from error
    if path.exists() and path.read_bytes() != mark:
        raise OutputError(f"{directory} holds a study with other settings; choose another --output or delete it")
    if not path.exists():
        write_atomically(path, mark)


def _say(line: str, enabled: bool) -> None:
    if enabled:
        print(line, file=sys.stderr, flush=True)
