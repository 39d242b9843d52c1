"""Models over equal-info windows (Lester et al., arXiv 2404.03626), by kind of window, at equal FLOPs; one seed.

    python benchmarks/equal_info_models.py run --text english/train-00.jsonl.xz --validation english/val.jsonl.xz \\
        --flops 5e14 --out equal-info-models.json
    python benchmarks/equal_info_models.py table equal-info-models.json

M1 has the paper's shape, 3 layers of width 256, and the FLOPs of every other run. Its 65,535 likeliest strings are
compiled into codebooks, whole and as two tokens of 8 bits, and into the windows as published; and it codes some text
without being compiled, one call a byte, to count the windows that decode to other text. Codebooks of 9 to 16 bits are
learned from counts, with and without word boundaries, with and without spelled bytes. Windows of 32 to 128 bits, one
arithmetic code a document, and gzip are the baselines that the paper found hard to learn. All M2 have four layers of
width 256. "Gain" is over a model for which all tokens of the held-out text are equally likely: learned coders write the
text that they were learned from in fewer tokens.
"""

from __future__ import annotations

import concurrent.futures
import functools
import json
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

import card_jobs
import training_runs

GPT = {
    "kind": "gpt", "mlp": "relu2", "softcap": 15.0, "value_residual": True, "context_length": training_runs.CONTEXT,
    "num_layers": 4, "width": 256, "num_heads": 2,
}  # fmt: skip
M1 = {**GPT, "num_layers": 3}
SPELLED = {"spelled_bytes": 16}
LEARN_BYTES, REPORT_BYTES = 14_000_000, 2000
# What compiles M1, by the codec's name: arguments of `fastcompress codebook`.
COMPILED = {"m1-16": [], "m1-16-by-8": ["--token-bits", "8"], "m1-13": ["--bits", "13"], "m1-paper-16": ["--paper"]}
BASELINES = [f"equal-info-{bits}-by-{size}" for bits in (32, 64, 128) for size in (16, 8)]
BASELINES += ["arithmetic-16", "arithmetic-8", "gzip-16", "gzip"]
# Name: codec, whether its bytes are spelled.
ARMS: dict[str, tuple[str, bool]] = {
    "bytes": ("byte", False),
    **{
        f"{bits} bits{', words' * words}{', spelled' * spelled}": (f"counts-{bits}{'-words' * words}", spelled)
        for bits in (9, 11, 13, 16)
        for words in (False, True)
        for spelled in (False, True)
    },
    "M1, 16 bits": ("m1-16", False),
    "M1, 16 bits, spelled": ("m1-16", True),
    "M1, 16 bits as 2 x 8": ("m1-16-by-8", False),
    "M1, 13 bits, spelled": ("m1-13", True),
    "M1, 16 bits as published": ("m1-paper-16", False),
    **{name: (name, False) for name in BASELINES},
}


def learned(name: str, documents: Sequence[bytes], folder: Path) -> Any:
    """Return a codec: compiled from M1, learned from documents, or ready-made."""
    from fastcompress import codec
    from fastcompress.codec.learned import is_learned, learn_codec
    from fastcompress.equal_info import Codebook
    from fastcompress.training.batches import first_documents

    if name in COMPILED:
        return codec.load_codec(folder / f"{name}.json")
    some = first_documents(list(documents), LEARN_BYTES)
    kind, _, rest = name.partition("-")
    if kind == "counts":
        return codec.EqualInfoCodec(Codebook.train(some, int(rest.split("-")[0]), within_words=rest.endswith("words")))
    return learn_codec(name, some) if is_learned(name) else codec.codec_from_spec(name)


def train_one(asked: dict[str, Any]) -> dict[str, Any]:
    """Train an M2 and return its figures."""
    from fastcompress import data
    from fastcompress.training.batches import first_documents

    documents = training_runs.documents_of(Path(asked["text"]))
    name, spelled = ARMS[asked["arm"]]
    codec = learned(name, documents, Path(asked["folder"]))
    tokens = data.TokenDataset.from_documents(first_documents(documents, asked["max_bytes"]), codec)
    masks = name.startswith(("counts", "m1-1")) and not name.endswith("by-8")
    figures = training_runs.train({**GPT, **(SPELLED if spelled else {})}, codec, tokens, asked, masks=masks)
    m1 = getattr(codec, "auxiliary", None)
    m1_figures = {} if m1 is None else {"making_flops": m1.making_flops, "flops_per_byte": m1.flops_per_byte}
    kept = {key: asked[key] for key in ("arm", "flops", "eval_bytes")}
    return {
        **kept,
        **figures,
        "gain": figures["uniform_bits_per_byte"] - figures["bits_per_byte"],
        "m1": m1_figures,
        "is_m1": False,
    }


def train_m1(asked: dict[str, Any]) -> dict[str, Any]:
    """Train M1 and compile it; code some text by calling it for each byte, as published."""
    from fastcompress import codec, data, training
    from fastcompress.equal_info.paper import PaperWindows, frequencies
    from fastcompress.models.next_byte import NextByteWeights

    folder = Path(asked["folder"])
    tokens = data.TokenDataset.from_documents(training_runs.documents_of(Path(asked["text"])), codec.ByteCodec())
    figures = training_runs.train(M1, codec.ByteCodec(), tokens, asked, masks=False, folder=folder / "m1")
    command = [sys.executable, "-m", "fastcompress.cli", "codebook", str(folder / "m1"), "-o"]
    quietly = functools.partial(subprocess.run, check=True, stdout=subprocess.DEVNULL)
    with concurrent.futures.ThreadPoolExecutor(len(COMPILED)) as pool:
        compilations = [
            pool.submit(quietly, [*command, str(folder / f"{name}.json"), *arguments])
            for name, arguments in COMPILED.items()
        ]
        text = training_runs.documents_of(Path(asked["validation"]))[0][:REPORT_BYTES]
        model = NextByteWeights(training.load_run(folder / "m1", device=asked["device"]).model, batch_size=1)
        reports = {bits: PaperWindows(frequencies(model), bits=bits).report(text) for bits in (16, 32)}
    for compilation in compilations:
        compilation.result()  # raises if it failed
    as_published = {
        f"{bits} bits": {"windows": report.num_windows, "wrong": report.num_wrong, "bytes": report.num_symbols}
        for bits, report in reports.items()
    }
    return {"arm": "M1", "flops": asked["flops"], **figures, "as_published": as_published, "is_m1": True}


@click.group()
def main() -> None:
    """Compare windows of equal information."""


@main.command()
@click.argument("asked")
def one(asked: str) -> None:
    """Train one model, given as JSON; the last line of the output holds its figures."""
    job = json.loads(asked)
    print(json.dumps(train_m1(job) if job["arm"] == "M1" else train_one(job)))


@main.command()
@click.option("--text", type=Path, required=True, help="JSON lines to learn codecs and to train on.")
@click.option("--validation", type=Path, required=True, help="Held-out JSON lines.")
@click.option("--flops", type=float, required=True, help="Of each run.")
@click.option("--out", type=Path, required=True, help="The results file; what it holds is not trained again, M1 aside.")
@click.option("--max-bytes", default=60_000_000, show_default=True, help="Of the training text.")
@click.option("--eval-bytes", default=1 << 18, show_default=True, help="Of the held-out text.")
@click.option("--arms", default=";".join(ARMS), help="Names, separated by semicolons. Default: all.")
@card_jobs.run_options
def run(
    text: Path, validation: Path, flops: float, out: Path, max_bytes: int, eval_bytes: int, arms: str, jobs: int,
    seconds: float, device: str, commit: str,
) -> None:  # fmt: skip
    """Train M1, and an M2 for every arm."""
    found: dict[str, Any] = json.loads(out.read_text()) if out.exists() else {"runs": []}
    command = f"equal_info_models.py run --text PATH --validation PATH --flops {flops:g}"
    found["header"] = card_jobs.header("equal-info-models", command, commit)
    done = {run["arm"] for run in found["runs"]}
    wanted = [arm for arm in arms.split(";") if arm not in done]
    cards, writing = card_jobs.Cards(jobs, seconds), threading.Lock()
    with tempfile.TemporaryDirectory() as folder:
        common = {
            "text": str(text), "validation": str(validation), "flops": flops, "max_bytes": max_bytes, "factor": 1.0,
            "eval_bytes": eval_bytes, "batch": 16, "seed": 0, "device": device, "folder": folder,
        }  # fmt: skip

        def train(names: list[str]) -> None:
            for figures in cards.run([[__file__, "one", json.dumps({**common, "arm": name})] for name in names]):
                if figures is not None:
                    with writing:
                        found["runs"].append(figures)
                        card_jobs.write(out, found)

        compiled = [arm for arm in wanted if ARMS[arm][0] in COMPILED]
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            others = pool.submit(train, [arm for arm in wanted if arm not in compiled])
            if compiled:
                found["runs"] = [run for run in found["runs"] if run["arm"] != "M1"]
                train(["M1"])
                if any(run["arm"] == "M1" for run in found["runs"]):
                    train(compiled)
            others.result()


@main.command()
@click.argument("results", type=Path)
def table(results: Path) -> None:
    """Print a row for each arm, and the windows that decoded to other text."""
    runs = {run["arm"]: run for run in json.loads(results.read_text())["runs"]}
    heads = ["tokens", "bits per byte", "", "gain", "bytes/token", "passes", "M1's share of FLOPs", "run for each byte"]
    click.echo(f"| {' | '.join(heads)} |\n|{' --- |' * len(heads)}")
    for arm in (name for name in ARMS if name in runs):
        one_run = runs[arm]
        shares = ["", ""]
        if one_run["m1"]:
            num_bytes = one_run["tokens"] * one_run["bytes_per_token"]
            spent = (one_run["m1"]["making_flops"], num_bytes * one_run["m1"]["flops_per_byte"])
            shares = [f"{spent[0] / one_run['flops']:.2f}", f"{sum(spent) / one_run['flops']:.2f}"]
        row = [
            arm, f"{one_run['bits_per_byte']:.4f}", "exact" if one_run["is_exact"] else "at most",
            f"{one_run['gain']:.3f}", f"{one_run['bytes_per_token']:.2f}", f"{one_run['passes']:.2f}", *shares,
        ]  # fmt: skip
        click.echo(f"| {' | '.join(row)} |")
    if "M1" in runs:
        click.echo(f"\nM1 itself: {runs['M1']['bits_per_byte']:.4f} bits per byte")
        for bits, told in runs["M1"]["as_published"].items():
            click.echo(f"Windows of {bits}: {told['wrong']} of {told['windows']} decode to other text")


if __name__ == "__main__":
    main()
