"""Training steps per second and memory, beside other trainers on the same card.

    python benchmarks/trainers.py compare --nanogpt PATH --nanochat PATH --out results.json

Needs a CUDA card; PATH is a clone of https://github.com/karpathy/nanoGPT or of https://github.com/karpathy/nanochat.
Each trainer runs in a process of its own, one after another in each round, on random ids from a file, as its own loop
runs: fastcompress through `training.train` (a preset, and after each + what differs from it: bias, windows or chunks of
a quarter of the context, half-chunks of a half of it, float8-head, -normed or -all), nanoGPT with the lines of its
`train.py`, nanochat with those of its `scripts/base_train.py` (with and without its `--fp8`) but for the loader, in
place of which batches lie on the card. A round is 5 stretches of steps, after compilation; the figure is the median of
all stretches. Where there are several cards, each runs one trainer at a time, and the trainers change cards from round
to round.
"""

from __future__ import annotations

import concurrent.futures
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np
import torch

import card_jobs
import results_file
from fastcompress import codec
from fastcompress.codec.protocol import CodecBase

STRETCHES, WARM_UP = 5, 10
# Rows in a pass, context, vocabulary, passes in a step, steps in a stretch.
SMALL_STEP, LARGE_STEP = (32, 1024, 50257, 1, 20), (32, 2048, 32768, 8, 3)
Step = Callable[[], None]


def ids_file(folder: Path, vocab_size: int) -> Path:
    """Write a file of 16 million random ids, uint16, and return its path."""
    path = folder / f"ids-{vocab_size}.bin"
    if not path.exists():
        own = path.with_suffix(f".{os.getpid()}")  # other ranks write theirs
        np.random.default_rng(0).integers(vocab_size, size=1 << 24, dtype=np.uint16).tofile(own)
        own.rename(path)
    return path


def stretches(step: Step, num_steps: int, tokens: int) -> dict[str, Any]:
    """Warm up and time stretches of steps: tokens per second of each, and the peak of memory."""
    for _ in range(WARM_UP if num_steps >= WARM_UP else 1):
        step()
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    rates = []
    for _ in range(STRETCHES):
        begin = time.perf_counter()
        for _ in range(num_steps):
            step()
        torch.cuda.synchronize()
        rates.append(num_steps * tokens / (time.perf_counter() - begin))
    return {"tokens_per_second": rates, "peak_bytes": torch.cuda.max_memory_allocated()}


# ------------------------------------------------------------------ one trainer


class Ids(CodecBase):
    """Ids that mean nothing, a byte each."""

    lossless = unambiguous = True
    max_unstable_tokens = 0

    def __init__(self, vocab_size: int) -> None:
        self.vocab_size = vocab_size
        self.name = f"ids-{vocab_size}"
        self.fingerprint = f"{vocab_size:064x}"

    def encode(self, data: Any) -> np.ndarray[Any, Any]:
        """Return the bytes as ids."""
        return np.frombuffer(bytes(data), np.uint8).astype(np.uint32)

    def byte_lengths(self, tokens: Any) -> np.ndarray[Any, Any]:
        """Return 1 for each id."""
        return np.ones(len(tokens), np.int64)

    def decode(self, tokens: Any) -> bytes:
        """Return a byte for each id."""
        return bytes(int(token) % 256 for token in tokens)


def _state(ids: Ids) -> dict[str, Any]:
    return {"size": ids.vocab_size}


codec.register_codec(codec.CodecKind("ids", Ids, _state, lambda state: Ids(state["size"])))


def nanogpt(clone: Path, folder: Path) -> dict[str, Any]:
    """nanoGPT's default model, GPT-2's of 124M parameters without biases and dropout."""
    rows, context, vocab_size, _, num_steps = SMALL_STEP
    sys.path.insert(0, str(clone))
    from model import GPT, GPTConfig  # type: ignore[import-not-found]

    torch.manual_seed(1337)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    config = GPTConfig(block_size=context, vocab_size=50304, n_layer=12, n_head=12, n_embd=768, dropout=0.0, bias=False)
    model = GPT(config).cuda()
    optimizer = model.configure_optimizers(0.1, 6e-4, (0.9, 0.95), "cuda")
    compiled = torch.compile(model)
    autocast = torch.autocast("cuda", dtype=torch.bfloat16)
    path = ids_file(folder, vocab_size)

    def batch() -> tuple[torch.Tensor, torch.Tensor]:
        data = np.memmap(path, dtype=np.uint16, mode="r")
        begins = torch.randint(len(data) - context, (rows,))
        x = torch.stack([torch.from_numpy(data[i : i + context].astype(np.int64)) for i in begins])
        y = torch.stack([torch.from_numpy(data[i + 1 : i + 1 + context].astype(np.int64)) for i in begins])
        return x.pin_memory().to("cuda", non_blocking=True), y.pin_memory().to("cuda", non_blocking=True)

    following = [batch()]

    def step() -> None:
        with autocast:
            _, loss = compiled(*following.pop())
        following.append(batch())  # while the card computes
        loss.backward()
        torch.nn.utils.clip_grad_norm_(compiled.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return stretches(step, num_steps, rows * context)


def nanochat(clone: Path, folder: Path, *, float8: bool = False) -> dict[str, Any]:
    """nanochat's model of depth 12, with full attention: torch alone has no fast kernel for its sliding windows."""
    rows, context, vocab_size, passes, num_steps = LARGE_STEP
    sys.path.insert(0, str(clone))
    from nanochat.gpt import GPT, GPTConfig  # type: ignore[import-not-found]

    torch.manual_seed(42)
    torch.set_float32_matmul_precision("high")
    with torch.device("meta"):
        model = GPT(GPTConfig(context, vocab_size, n_layer=12, n_head=6, n_kv_head=6, n_embd=768, window_pattern="L"))
    model.to_empty(device="cuda")
    model.init_weights()
    if float8:
        from nanochat.fp8 import (  # type: ignore[import-not-found]
            Float8LinearConfig,
            convert_to_float8_training,
        )

        def is_large(module: torch.nn.Module, name: str) -> bool:
            sizes = (module.in_features, module.out_features) if isinstance(module, torch.nn.Linear) else (0,)
            return min(sizes) >= 128 and not any(size % 16 for size in sizes)

        recipe = Float8LinearConfig.from_recipe_name("tensorwise")
        convert_to_float8_training(model, config=recipe, module_filter_fn=is_large)
    optimizer = model.setup_optimizer()
    compiled = torch.compile(model, dynamic=False)
    ids = torch.from_numpy(np.fromfile(ids_file(folder, vocab_size), np.uint16).astype(np.int64))
    ids = ids[: passes * rows * (context + 1)].view(passes, rows, context + 1).cuda()

    def step() -> None:
        for part in ids:
            loss = compiled(part[:, :-1].contiguous(), part[:, 1:].contiguous()) / passes
            loss.backward()
        optimizer.step()
        compiled.zero_grad(set_to_none=True)

    return stretches(step, num_steps, passes * rows * context)


def fastcompress(preset: str, folder: Path, *, ranks: int = 1, **changes: Any) -> dict[str, Any]:
    """`training.train` with a preset, as a run of the command line makes it, in each of ``ranks`` processes.

    Others than the first have no records to return.
    """
    from fastcompress import data, models, training

    is_small = preset.startswith("gpt2")
    rows, context, vocab_size, passes, num_steps = SMALL_STEP if is_small else LARGE_STEP
    own = Ids(vocab_size - 1)
    ids = np.fromfile(ids_file(folder, vocab_size), np.uint16)
    tokens = data.TokenDataset(
        [(ids, np.array([0, len(ids)], np.uint64))],
        vocab_size=own.vocab_size,
        codec_fingerprint=own.fingerprint,
        num_bytes=len(ids),
    )
    name, *variants = preset.split("+")
    settings: dict[str, Any] = {"preset": name, "num_layers": 12, "width": 768, "context_length": context}
    if is_small and "bias" not in variants:
        settings["bias"] = False
    if "windows" in variants:
        settings |= {"window": context // 4, "window_pattern": "SSSL"}
    if "chunks" in variants:
        settings |= {"window": context // 4, "window_pattern": "CCCL"}
    if "half-chunks" in variants:
        settings |= {"window": context // 2, "window_pattern": "CCCL"}
    float8 = next((kind for kind in ("head", "normed", "all") if f"float8-{kind}" in variants), "off")
    config = training.TrainConfig(
        steps=(STRETCHES + 1) * num_steps,
        batch_size=rows * passes * ranks,
        micro_batch_size=rows,
        log_every=num_steps,
        num_evals=1,
        eval_bytes=1,
        self_check=False,
        optimizer="adamw" if is_small else "muon",
        float8=float8,
    ).override(changes)
    records: list[dict[str, Any]] = []
    run = folder / f"run-{preset}-{ranks}-{config.machine.parallel}"
    model_config = models.GPTConfig.from_settings(settings, own)
    training.train(model_config, own, tokens, [b"x"], config, run, on_metrics=records.append, progress=False)
    if not records:
        return {}
    shutil.rmtree(run)
    lines = [record for record in records if record["event"] == "train"]
    return {
        "tokens_per_second": [record["tokens_per_second"] for record in lines[1:]],
        "peak_bytes": max(record["peak_memory_bytes"] for record in lines),
        "mfu": statistics.median(record["mfu"] for record in lines[1:]),
    }


# ------------------------------------------------------------------ all of them

TRAINERS: dict[str, Callable[[Path, Path], dict[str, Any]]] = {
    "nanogpt": nanogpt,
    "nanochat": nanochat,
    "nanochat+float8": partial(nanochat, float8=True),
}


@click.group()
def main() -> None:
    """Measure trainers side by side."""


@main.command()
@click.argument("trainer")
@click.option("--clone", type=Path, default=Path())
@click.option("--folder", type=Path, required=True)
def one(trainer: str, clone: Path, folder: Path) -> None:
    """Measure one trainer; the last line of the output is the result."""
    result = TRAINERS[trainer](clone, folder) if trainer in TRAINERS else fastcompress(trainer, folder)
    print(json.dumps(result))


@main.command()
@click.option("--nanogpt", type=Path, help="A clone of nanoGPT.")
@click.option("--nanochat", type=Path, help="A clone of nanochat.")
@click.option("--presets", default="gpt2,gpt2+bias,speedrun", show_default=True)
@click.option("--rounds", default=2, show_default=True)
@click.option("--commit", default=results_file.commit(Path(__file__).parent), help="Of the code that is measured.")
@click.option("--out", type=Path, required=True, help="The results file.")
def compare(nanogpt: Path | None, nanochat: Path | None, presets: str, rounds: int, commit: str, out: Path) -> None:
    """Measure all, round after round, and write a results file."""
    given = {"nanogpt": nanogpt, "nanochat": nanochat, "nanochat+float8": nanochat}
    clones = {name: path for name, path in given.items() if path is not None}
    names = [*clones, *filter(None, presets.split(","))]
    measured: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    with tempfile.TemporaryDirectory() as folder:
        cards = results_file.cards()

        def measure(card: int, number: int) -> None:
            """Time the trainers whose turn it is on a card."""
            for name in names[(card - number) % len(cards) :: len(cards)]:
                done = subprocess.run(
                    [sys.executable, __file__, "one", name, "--folder", folder, "--clone", str(clones.get(name, "."))],
                    stdout=subprocess.PIPE,
                    text=True,
                    env={**os.environ, "CUDA_VISIBLE_DEVICES": cards[card]},
                )
                if done.returncode != 0:
                    click.echo(f"{name} failed: code {done.returncode}", err=True)
                    continue
                measured[name].append(json.loads(done.stdout.splitlines()[-1]))
                click.echo(f"{number} {name} {statistics.median(measured[name][-1]['tokens_per_second']):,.0f}")

        for number in range(rounds):
            with concurrent.futures.ThreadPoolExecutor(len(cards)) as pool:
                list(pool.map(measure, range(len(cards)), [number] * len(cards)))
    figures = {
        name: {
            "tokens_per_second": statistics.median(rate for one in rounds_ for rate in one["tokens_per_second"]),
            "peak_gigabytes": max(one["peak_bytes"] for one in rounds_) / 1e9,
            "rounds": rounds_,
        }
        for name, rounds_ in measured.items()
        if rounds_
    }
    clones_named = " ".join(f"--{name} PATH" for name in clones if "+" not in name)
    command = f"trainers.py compare --presets {presets} --rounds {rounds} {clones_named}"
    card_jobs.write(out, {**card_jobs.header("trainers", command, commit), "trainers": figures})


if __name__ == "__main__":
    main()
