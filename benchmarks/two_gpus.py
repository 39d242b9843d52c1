"""One run on two cards: speed beside one card, equal losses, checkpoints that change the number of cards, Ctrl-C.

    python benchmarks/two_gpus.py measure --shards SHARDS --validation english/val.jsonl.xz --out two-gpus.json

The model is that of `trainers.py`, GPT-2's shape of 124M parameters. Speeds: 32 rows of 1,024 random ids a card and
step, compiled, medians of five stretches of 20 steps. Losses: 64 rows of English a step on one card or on two, eager
but for "recorded"; what one card shows with other micro-batches is the noise of bfloat16. SHARDS is what
`fastcompress encode` wrote.
"""

from __future__ import annotations

import concurrent.futures
import faulthandler
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

import card_jobs
import results_file
import trainers

STEPS, STOP_AT = 50, 25
SECONDS = 150  # after which a job that hangs says where, and ends
# Settings of a run for its losses; the first name of each is the folder it leaves.
STRAIGHT: dict[str, tuple[int, dict[str, Any]]] = {
    "one card": (1, {}),
    "one card, micro-batches of 16": (1, {"micro_batch_size": 16}),
    "ddp": (2, {"parallel": "ddp"}),
    "ddp, recorded": (2, {"parallel": "ddp", "compile": "on"}),
    "fsdp": (2, {"parallel": "fsdp"}),
}
# A run that Ctrl-C on the last rank stops, and those that go on from it.
INTERRUPTED = {
    "ddp": ["one card"],
    "ddp, recorded": ["ddp, recorded"],
    "fsdp": ["one card"],
    "one card": ["ddp", "fsdp"],
}


def train_for_losses(shards: Path, validation: Path, folder: Path, resume: bool, changes: dict[str, Any]) -> Any:
    """Train in this process, one of those of the run; return the steps made, or -1 after Ctrl-C."""
    from fastcompress import data, models, training
    from fastcompress.codec import load_codec
    from fastcompress.data.sources import path_documents

    codec = load_codec(shards / "codec.json")
    settings = {"preset": "gpt2", "num_layers": 12, "width": 768, "context_length": 1024, "bias": False}
    config = training.TrainConfig(
        steps=STEPS, batch_size=64, micro_batch_size=32, log_every=1, num_evals=1, eval_bytes=1 << 16,
        learning_rate=6e-4, self_check=False, compile="off",
    ).override(changes)  # fmt: skip
    documents = [document.data for document in path_documents(validation)]
    tokens = data.TokenDataset.open(shards, "train", codec=codec)
    model_config = models.GPTConfig.from_settings(settings, codec)
    try:
        result = training.train(model_config, codec, tokens, documents, config, folder, resume=resume, progress=False)
    except KeyboardInterrupt:
        return {"interrupted": True}
    return {"steps": result.steps, "bits_per_byte": result.curve[-1]["validation_bits_per_byte"]}


def press_ctrl_c(metrics: Path) -> None:
    """Send this process SIGINT when its run has made STOP_AT steps."""
    while not metrics.exists() or f'"step": {STOP_AT}' not in metrics.read_text():
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGINT)


@click.group()
def main() -> None:
    """Measure on two cards."""


@main.command()
@click.argument("job")
def one(job: str) -> None:
    """Be one process of a job, which is JSON; the first one prints the result in its last line."""
    faulthandler.dump_traceback_later(SECONDS, exit=True)
    asked = json.loads(job)
    rank = int(os.environ.get("RANK", 0))
    if asked["kind"] == "speed":
        answer = trainers.fastcompress("gpt2", Path(asked["folder"]), ranks=asked["cards"], **asked["changes"])
    else:
        folder = Path(asked["folder"])
        if asked["stop"] and rank == asked["cards"] - 1:
            threading.Thread(target=press_ctrl_c, args=[folder / "metrics.jsonl"], daemon=True).start()
        answer = train_for_losses(
            Path(asked["shards"]), Path(asked["validation"]), folder, asked["resume"], asked["changes"]
        )
    if rank == 0:
        print(json.dumps(answer), flush=True)


def command_of(job: dict[str, Any]) -> list[str]:
    """Return the command that runs a job on its number of cards."""
    start = [sys.executable]
    if job["cards"] > 1:
        start += ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={job['cards']}"]
    return [*start, __file__, "one", json.dumps(job)]


def answer_of(job: dict[str, Any], card: int | None = None) -> dict[str, Any]:
    """Run a job, on a certain card if it is for one, and return its result, with the seconds it took."""
    begin = time.monotonic()
    env = os.environ if card is None else {**os.environ, "CUDA_VISIBLE_DEVICES": results_file.cards()[card]}
    done = subprocess.run(command_of(job), stdout=subprocess.PIPE, text=True, env=env)
    if done.returncode != 0:
        return {"failed": done.returncode}
    return {**json.loads(done.stdout.splitlines()[-1]), "wall_seconds": time.monotonic() - begin}


def losses_of(folder: Path) -> list[float]:
    """Return the losses of a run, one a step."""
    records = map(json.loads, (folder / "metrics.jsonl").read_text().splitlines())
    return [record["loss"] for record in records if record["event"] == "train"]


def speeds(folder: Path) -> Iterator[dict[str, Any]]:
    """Measure each card, the two side by side, then both together in both ways; yield what is known so far."""

    def measured(name: str, cards: int, card: int | None = None) -> dict[str, Any]:
        changes = {"parallel": name} if cards > 1 else {}
        place = folder / name
        place.mkdir()
        answer = answer_of({"kind": "speed", "cards": cards, "folder": str(place), "changes": changes}, card)
        rates = answer.get("tokens_per_second")
        click.echo(f"{name}: {statistics.median(rates) if rates else answer}")
        return answer

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        alone = list(pool.map(measured, ("one card", "the other card"), (1, 1), (0, 1)))
    found = {"one card": alone[0], "the other card": alone[1]}
    yield found
    linear = sum(statistics.median(answer["tokens_per_second"]) for answer in alone)
    for name in ("ddp", "fsdp"):
        found[name] = measured(name, 2)
        if "tokens_per_second" in found[name]:
            found[name]["of_linear"] = statistics.median(found[name]["tokens_per_second"]) / linear
            click.echo(f"{name}: {found[name]['of_linear']:.3f} of the sum of both cards")
        yield found


def parity(folder: Path, shards: Path, validation: Path) -> dict[str, Any]:
    """Compare losses of straight and of interrupted runs with those of one card."""

    def run(name: str, run_folder: Path, *, stop: bool = False, resume: bool = False) -> dict[str, Any]:
        cards, changes = STRAIGHT[name]
        places = {"folder": str(run_folder), "shards": str(shards), "validation": str(validation)}
        answer = answer_of(
            {"kind": "losses", "cards": cards, "changes": changes, "stop": stop, "resume": resume, **places}
        )
        return {**answer, "losses": losses_of(run_folder)}

    stopped = {name: folder / f"{name} stopped" for name in INTERRUPTED}
    with concurrent.futures.ThreadPoolExecutor(6) as pool:  # runs side by side: no speed is measured here
        straight = {name: pool.submit(run, name, folder / name) for name in STRAIGHT}
        halves = {name: pool.submit(run, name, place, stop=True) for name, place in stopped.items()}
        found = {name: job.result() for name, job in straight.items()}
        resumed = {}
        for name, job in halves.items():
            half = job.result()
            assert half.get("interrupted"), f"{name}: {half}"
            for other in INTERRUPTED[name]:
                key = f"{name}, then {other}"
                shutil.copytree(stopped[name], folder / key)
                resumed[key] = pool.submit(run, other, folder / key, resume=True)
        for key, job in resumed.items():
            half_losses = halves[key.split(", then ")[0]].result()["losses"]
            found[key] = {**job.result(), "stopped_after": len(half_losses)}
    for name, figures in found.items():
        pairs = zip(figures["losses"], found["one card"]["losses"], strict=False)
        differences = [abs(own - other) for own, other in pairs]
        figures["largest_difference"], figures["last_difference"] = max(differences), differences[-1]
        click.echo(f"{name}: {len(differences)} losses, {max(differences):.2e} at most, {differences[-1]:.2e} at last")
    return found


@main.command()
@click.option("--shards", type=Path, required=True, help="What `fastcompress encode` wrote.")
@click.option("--validation", type=Path, required=True, help="Held-out JSON lines.")
@click.option("--part", type=click.Choice(["both", "speeds", "runs"]), default="both", show_default=True)
@click.option("--commit", default=results_file.commit(Path(__file__).parent), help="Of the code that is measured.")
@click.option("--out", type=Path, required=True, help="The results file.")
def measure(shards: Path, validation: Path, part: str, commit: str, out: Path) -> None:
    """Make the runs and write a results file."""
    command = "two_gpus.py measure --shards PATH --validation PATH --out PATH"
    found = card_jobs.header("two-gpus", command, commit)
    with tempfile.TemporaryDirectory() as folder:
        for key, measured in (
            ("speeds", lambda: speeds(Path(folder))),
            ("runs", lambda: [parity(Path(folder), shards, validation)]),
        ):
            if part in (key, "both"):
                for found[key] in measured():
                    card_jobs.write(out, found)


if __name__ == "__main__":
    main()
