"""Which parts of a model are worth their steps, their FLOPs and their seconds, at a small size, over several seeds.

    fastcompress train-tokenizer english/train-20m.jsonl.xz --vocab-size 8192 -o bpe-8192.bpe
    fastcompress encode english/train-00.jsonl.xz --max-bytes 48000000 --codec bpe-8192.bpe -o shards
    python benchmarks/ablations.py run --shards shards --validation english/val.jsonl.xz --out ablations.json

Every arm is trained from scratch on the same rows for the same number of steps. The baseline is also trained for four
fifths of them, which gives the slope of bits per byte over the logarithm of steps. An arm that costs more FLOPs (or
seconds) a step than the baseline would make fewer steps in the same budget, and is charged that slope times the
logarithm of the ratio. Seconds are measured one arm after the other on each card, without neighbours.
"""

from __future__ import annotations

import json
import math
import statistics
import tempfile
from pathlib import Path
from typing import Any

import click

import card_jobs
import results_file

STEPS, BATCH = 700, 32
SIZE = {"num_layers": 6, "num_heads": 6, "width": 384, "context_length": 512}
MODEL = {"preset": "modern", "mlp": "gelu", **SIZE}  # of the baseline
MUON = {"kind": "muon", "embedding_rate": 0.1}
ADAMW = {"kind": "adamw", "learning_rate": 6e-3}
OTHER_RATES = {"embedding_rate": 0.1, "head_rate": 4e-3, "vector_rate": 4e-3, "beta1": 0.8, "epsilon": 1e-10}
RECIPE = {"mlp": "relu2", "softcap": 15.0, "value_residual": True, "num_heads": 3}
BIGRAMS = {"engram_layers": [0, 2, 4], "engram_orders": [2], "engram_heads": 4, "engram_rows": 65536}

# Name: what is laid over the model of the baseline, the optimizer, the share of the steps, seeds.
ARMS: dict[str, tuple[dict[str, Any], dict[str, Any], float, int]] = {
    "baseline": ({}, MUON, 1.0, 3),
    "baseline, four fifths": ({}, MUON, 0.8, 3),
    "AdamW": ({}, ADAMW, 1.0, 3),
    "AdamW, Muon's other rates": ({}, {**ADAMW, **OTHER_RATES}, 1.0, 3),
    "AdamW at 2e-3, Muon's other rates": ({}, {**ADAMW, **OTHER_RATES, "learning_rate": 2e-3}, 1.0, 3),
    "AdamW at 6e-4, Muon's other rates": ({}, {**ADAMW, **OTHER_RATES, "learning_rate": 6e-4}, 1.0, 1),
    "embeddings at 0.03": ({}, {**MUON, "embedding_rate": 0.03}, 1.0, 1),
    "embeddings at 0.3": ({}, {**MUON, "embedding_rate": 0.3}, 1.0, 1),
    "SwiGLU": ({"mlp": "swiglu"}, MUON, 1.0, 3),
    "ReLU squared": ({"mlp": "relu2"}, MUON, 1.0, 3),
    "spelled bytes": ({"spelled_bytes": 16}, MUON, 1.0, 3),
    "spelled bytes at 0.1": ({"spelled_bytes": 16}, {**MUON, "spelled_rate": 0.1}, 1.0, 3),
    "Attention Residuals, block": ({"attention_residuals": "block"}, MUON, 1.0, 3),
    "Attention Residuals, full": ({"attention_residuals": "full"}, MUON, 1.0, 3),
    "XSA": ({"exclusive_attention": "plain"}, MUON, 1.0, 3),
    "value residual": ({"value_residual": True}, MUON, 1.0, 3),
    "Engram": ({"engram_layers": [1]}, MUON, 1.0, 3),
    "Engram of bigrams": (BIGRAMS, MUON, 1.0, 3),
    "Engram at 0.1": ({"engram_layers": [1]}, {**MUON, "memory_rate": 0.1}, 1.0, 3),
    "Engram of bigrams at 0.1": (BIGRAMS, {**MUON, "memory_rate": 0.1}, 1.0, 3),
    "gpt2 + AdamW at 1e-3": ({"preset": "gpt2"}, {**ADAMW, "learning_rate": 1e-3}, 1.0, 3),
    "gpt2 + AdamW at 3e-3": ({"preset": "gpt2"}, {**ADAMW, "learning_rate": 3e-3}, 1.0, 3),
    "speedrun + Muon": (RECIPE, MUON, 1.0, 3),
    "speedrun + Muon, windows": ({**RECIPE, "window": 128, "window_pattern": "SSSL"}, MUON, 1.0, 3),
    "speedrun + Muon, chunks": ({**RECIPE, "window": 128, "window_pattern": "CCCL"}, MUON, 1.0, 3),
    "speedrun + Muon, larger chunks": ({**RECIPE, "window": 256, "window_pattern": "CCCL"}, MUON, 1.0, 3),
    "spelled bytes at 0.015": ({"spelled_bytes": 16}, {**MUON, "spelled_rate": 0.015}, 1.0, 3),
    "Engram at 0.01": ({"engram_layers": [1]}, {**MUON, "memory_rate": 0.01}, 1.0, 1),
    "Engram of bigrams at 0.01": (BIGRAMS, {**MUON, "memory_rate": 0.01}, 1.0, 3),
}


def speed_key(arm: str) -> str:
    """Return what decides an arm's speed, its model and the kind of its optimizer."""
    return json.dumps([settings_of(arm), ARMS[arm][1]["kind"]])


def settings_of(arm: str) -> dict[str, Any]:
    """Return the model settings of an arm."""
    changes = ARMS[arm][0]
    return {**SIZE, **changes} if "preset" in changes else {**MODEL, **changes}


def train_one(arm: str, seed: int, shards: Path, validation: Path, steps: int, **changes: Any) -> dict[str, Any]:
    """Train an arm and return its figures."""
    from fastcompress import data, models, training
    from fastcompress.codec import load_codec
    from fastcompress.data.sources import path_documents

    codec = load_codec(shards / "codec.json")
    tokens = data.TokenDataset.open(shards, "train", codec=codec)
    config = training.TrainConfig(
        **{
            "steps": steps, "batch_size": BATCH, "seed": seed, "optimizer": ARMS[arm][1], "num_evals": 1,
            "eval_bytes": 1 << 21, "log_every": 50, "self_check": False, **changes,
        }
    )  # fmt: skip
    records: list[dict[str, Any]] = []
    documents = [document.data for document in path_documents(validation)]
    with tempfile.TemporaryDirectory() as folder:
        result = training.train(
            models.GPTConfig.from_settings(settings_of(arm), codec), codec, tokens, documents, config,
            Path(folder) / "run", on_metrics=records.append, progress=False,
        )  # fmt: skip
    rates = [record["tokens_per_second"] for record in records if record["event"] == "train"][1:]
    return {
        "arm": arm,
        "seed": seed,
        "bits_per_byte": result.curve[-1]["validation_bits_per_byte"],
        "train_bits_per_byte": result.curve[-1]["train_bits_per_byte"],
        "steps": result.steps,
        "tokens": result.tokens,
        "flops": result.flops,
        "parameters": result.model.num_parameters(),
        "tokens_per_second": statistics.median(rates) if rates else None,
    }


@click.group()
def main() -> None:
    """Train the arms and make the table."""


@main.command()
@click.argument("arm")
@click.argument("seed", type=int)
@click.option("--shards", type=Path, required=True)
@click.option("--validation", type=Path, required=True)
@click.option("--speed", is_flag=True, help="Only long enough to time it.")
@click.option("--device", default="auto")
def one(arm: str, seed: int, shards: Path, validation: Path, speed: bool, device: str) -> None:
    """Train one arm; the last line of the output holds its figures."""
    steps = 300 if speed else round(STEPS * ARMS[arm][2])
    changes: dict[str, Any] = {"device": device}
    if speed:
        changes |= {"log_every": 50, "eval_bytes": 1000}
    print(json.dumps(train_one(arm, seed, shards, validation, steps, **changes)))


@main.command()
@click.option("--shards", type=Path, required=True, help="What `fastcompress encode` wrote.")
@click.option("--validation", type=Path, required=True, help="Held-out JSON lines.")
@click.option("--out", type=Path, required=True, help="The results file; arms that it holds are not trained again.")
@click.option("--jobs", default=1, show_default=True, help="Runs at a time on each card.")
@click.option("--seconds", default=1e6, help="Start nothing after this time.")
@click.option("--part", type=click.Choice(["both", "runs", "speeds"]), default="both", show_default=True)
@click.option("--commit", default=results_file.commit(Path(__file__).parent), help="Of the code that is measured.")
def run(shards: Path, validation: Path, out: Path, jobs: int, seconds: float, part: str, commit: str) -> None:
    """Train every arm that is missing, then time those of different speeds."""

    found: dict[str, Any] = json.loads(out.read_text()) if out.exists() else {"runs": [], "speeds": {}}
    done = {(one["arm"], one["seed"]) for one in found["runs"]}
    seeds = max(number for *_, number in ARMS.values())
    wanted = [(arm, seed) for seed in range(seeds) for arm in ARMS if seed < ARMS[arm][3] and (arm, seed) not in done]
    seen = {speed_key(arm) for arm in found["speeds"]}
    first_of = {speed_key(arm): arm for arm in reversed(ARMS)}
    timed = [arm for key, arm in reversed(first_of.items()) if key not in seen]

    def command_of(arm: str, seed: int, *flags: str) -> list[str]:
        return [__file__, "one", arm, str(seed), "--shards", str(shards), "--validation", str(validation), *flags]

    cards = card_jobs.Cards(jobs, seconds)
    wanted, timed = [] if part == "speeds" else wanted, [] if part == "runs" else timed
    found["runs"] += filter(None, cards.run([command_of(*pair) for pair in wanted]))
    alone = card_jobs.Cards(1, cards.seconds_left())
    speeds = alone.run([command_of(arm, 0, "--speed") for arm in timed])
    found["speeds"] |= {figures["arm"]: figures["tokens_per_second"] for figures in filter(None, speeds)}
    command = f"ablations.py run --shards PATH --validation PATH --jobs {jobs}"
    found["header"] = card_jobs.header("ablations", command, commit)
    card_jobs.write(out, found)


def rows_of(found: dict[str, Any]) -> list[list[str]]:
    """Return the rows of the table: bits per byte against the baseline by steps, by FLOPs and by seconds."""
    scores: dict[str, list[float]] = {}
    flops: dict[str, float] = {}
    for one_run in found["runs"]:
        scores.setdefault(one_run["arm"], []).append(one_run["bits_per_byte"])
        flops[one_run["arm"]] = one_run["flops"] / one_run["steps"]
    base, shorter = (statistics.mean(scores[name]) for name in ("baseline", "baseline, four fifths"))
    slope = (base - shorter) / math.log(1 / 0.8)  # bits per byte for e times the steps; negative
    speeds = {speed_key(arm): speed for arm, speed in found["speeds"].items()}
    rows = []
    for arm, values in scores.items():
        change = statistics.mean(values) - base
        by_flops = change - slope * math.log(flops[arm] / flops["baseline"])
        speed = speeds.get(speed_key(arm))
        seconds = "" if speed is None else f"{change - slope * math.log(found['speeds']['baseline'] / speed):+.4f}"
        deviation = f" ± {statistics.stdev(values):.4f}" if len(values) > 1 else ""
        rows.append(
            [
                arm, f"{statistics.mean(values):.4f}{deviation}", f"{change:+.4f}", f"{by_flops:+.4f}", seconds,
                "" if speed is None else f"{speed / 1e3:,.0f}k",
            ]
        )  # fmt: skip
    return rows


@main.command()
@click.argument("results", type=Path)
def table(results: Path) -> None:
    """Print the table of a results file."""
    heads = ["arm", "bits per byte", "by steps", "by FLOPs", "by seconds", "tokens/s"]
    for row in [heads, ["---"] * len(heads), *rows_of(json.loads(results.read_text()))]:
        click.echo(f"| {' | '.join(row)} |")


if __name__ == "__main__":
    main()
