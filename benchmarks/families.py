"""Which way of reading text buys bits per byte for FLOPs: every family searched alike, then five seeds.

    python benchmarks/families.py prepare --text english/train-20m.jsonl.xz --out codecs
    python benchmarks/families.py run --codecs codecs --text english/train-00.jsonl.xz \\
        --text english/train-01.jsonl.xz --validation english/val.jsonl.xz --flops 1e15 --out families.json
    python benchmarks/families.py table families.json

Dictionaries have 8,192 strings on one split, trained on one text. Sizes, batch sizes and factors of all learning rates
are ladders. The search of an arm begins in the middle, or at the best setting of the largest smaller budget in the
results file, and ends when both neighbours of the best setting on each ladder are worse; then the best is trained with
four more seeds. What a results file holds is not trained again. Scores are exact where the encoder's own spelling is
the only one that has a probability, upper bounds elsewhere; dictionaries are trained without masks and scored with and
without. Passes say how often the training text was read.
"""

from __future__ import annotations

import concurrent.futures
import json
import math
import statistics
import tempfile
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

import card_jobs
import training_runs
from training_runs import documents_of

VOCAB_SIZE, CONTEXT = 8192, training_runs.CONTEXT
BATCHES, FACTORS, SEEDS = (4, 8, 16, 32, 64), (0.22, 0.36, 0.6, 1.0, 1.6, 2.56), 5
GPT = {"kind": "gpt", "mlp": "relu2", "softcap": 15.0, "value_residual": True, "context_length": CONTEXT}
GPT_SIZES: dict[str, dict[str, Any]] = {
    "4x128": {"num_layers": 4, "width": 128, "num_heads": 2},
    "4x192": {"num_layers": 4, "width": 192, "num_heads": 3},
    "4x256": {"num_layers": 4, "width": 256, "num_heads": 2},
    "6x384": {"num_layers": 6, "width": 384, "num_heads": 3},
    "8x512": {"num_layers": 8, "width": 512, "num_heads": 4},
}
# Bytes want layers before and after the patches, so their global networks have fewer.
LOCAL = {"context_length": CONTEXT, "encoder_layers": 3, "decoder_layers": 3}
LOCAL_SIZES: dict[str, dict[str, Any]] = {
    "4x128": {"num_layers": 4, "width": 128, "num_heads": 2, "local_width": 64, "local_heads": 1},
    "4x192": {"num_layers": 4, "width": 192, "num_heads": 3, "local_width": 128, "local_heads": 2},
    "4x256": {"num_layers": 4, "width": 256, "num_heads": 4, "local_width": 128, "local_heads": 2},
    "6x384": {"num_layers": 6, "width": 384, "num_heads": 6, "local_width": 192, "local_heads": 3},
    "8x512": {"num_layers": 8, "width": 512, "num_heads": 8, "local_width": 256, "local_heads": 4},
}
WIDE_SIZES = {
    size: {**shape, "local_width": shape["width"], "local_heads": shape["num_heads"]}
    for size, shape in LOCAL_SIZES.items()
}
SPELLED = {"spelled_bytes": 16}
NGRAMS = {"ngram_orders": [3, 4, 5, 6], "ngram_rows": 16384}
MEMORY = {"engram_layers": [0], "engram_orders": [3, 4, 5, 6], "engram_heads": 1, "engram_rows": 16384}


@dataclass(frozen=True)
class Arm:
    """A family: its codec, its model, its sizes, and whether scores with masks are exact."""

    codec: str
    model: dict[str, Any]
    sizes: dict[str, dict[str, Any]] = field(default_factory=lambda: GPT_SIZES)
    masks: bool = False


ARMS: dict[str, Arm] = {
    "bytes": Arm("byte", GPT),
    "bytes, n-grams": Arm("byte", {**GPT, **MEMORY}),
    "BPE": Arm("bpe", GPT, masks=True),
    "BPE, spelled": Arm("bpe", {**GPT, **SPELLED}, masks=True),
    "codebook, spelled": Arm("codebook", {**GPT, **SPELLED}, masks=True),
    "dictionary without closure": Arm("greedy", GPT, masks=True),
    "dictionary without closure, spelled": Arm("greedy", {**GPT, **SPELLED}, masks=True),
    "byte-latent, spaces": Arm("byte", {"kind": "byte-latent", "patcher": "space", **LOCAL}, LOCAL_SIZES),
    "byte-latent, spaces, n-grams": Arm(
        "byte", {"kind": "byte-latent", "patcher": "space", **NGRAMS, **LOCAL}, LOCAL_SIZES
    ),
    "byte-latent, LZ77": Arm("byte", {"kind": "byte-latent", "patcher": "lz77", **LOCAL}, LOCAL_SIZES),
    "byte-latent, LZ77, n-grams": Arm(
        "byte", {"kind": "byte-latent", "patcher": "lz77", **NGRAMS, **LOCAL}, LOCAL_SIZES
    ),
    "byte-latent, LZ77, n-grams, wide": Arm(
        "byte", {"kind": "byte-latent", "patcher": "lz77", **NGRAMS, **LOCAL}, WIDE_SIZES
    ),
    "HEAT, LZ77": Arm("byte", {"kind": "heat", "segments": "lz77", **LOCAL}, LOCAL_SIZES),
    "HEAT, dictionary": Arm("greedy", {"kind": "heat", "segments": "tokens", **LOCAL}, LOCAL_SIZES),
    "LZ-BLT": Arm("lz77", {"kind": "lz-blt", **LOCAL}, LOCAL_SIZES),
}


def train_one(asked: dict[str, Any]) -> dict[str, Any]:
    """Train an arm in one setting and return its figures."""
    from fastcompress import data
    from fastcompress.codec import load_codec

    arm = ARMS[asked["arm"]]
    codec = load_codec(Path(asked["codecs"]) / f"{arm.codec}.json")
    tokens = data.TokenDataset.open(Path(asked["shards"]) / arm.codec, "train", codec=codec)
    settings = {**arm.model, **arm.sizes[asked["size"]]}
    figures = training_runs.train(settings, codec, tokens, asked, masks=arm.masks)
    return {
        **{name: asked[name] for name in ("arm", "size", "batch", "factor", "seed", "flops", "eval_bytes")},
        "name": f"{asked['size']}, {asked['batch']} rows, rates x {asked['factor']}",
        **figures,
    }


# ------------------------------------------------------------------ the search

Setting = tuple[str, int, float, int]  # size, batch, factor, seed
CENTRE: Setting = ("4x256", 16, 1.0, 0)


def next_settings(arm: str, done: dict[Setting, float], begin: Setting = CENTRE) -> list[Setting]:
    """Return the settings of an arm to be trained next, given the bits per byte of those that were; [] at its end."""
    best = best_setting(done) if done else begin
    for axis, ladder in enumerate((list(ARMS[arm].sizes), list(BATCHES), list(FACTORS))):
        place = ladder.index(best[axis])
        near = [(*best[:axis], value, *best[axis + 1 :]) for value in ladder[max(place - 1, 0) : place + 2]]
        missing = [setting for setting in near if setting not in done]
        if missing:
            return missing  # the first time, the beginning is one of them
    return [setting for seed in range(1, SEEDS) if (setting := (*best[:3], seed)) not in done]


def begin_of(runs: Iterable[dict[str, Any]], arm: str, flops: float) -> Setting:
    """Return where the search of an arm begins."""
    smaller = {run["flops"] for run in runs if run["arm"] == arm and run["flops"] < flops}
    return best_setting(scores_of(runs, arm, max(smaller))) if smaller else CENTRE


def best_setting(done: dict[Setting, float]) -> Setting:
    """Return the best of the settings of the first seed."""
    return min((setting for setting in done if setting[3] == 0), key=lambda setting: done[setting])


def scores_of(runs: Iterable[dict[str, Any]], arm: str, flops: float) -> dict[Setting, float]:
    """Return the bits per byte of an arm's runs under a budget."""
    return {
        (run["size"], run["batch"], run["factor"], run["seed"]): run["bits_per_byte"]
        for run in runs
        if run["arm"] == arm and run["flops"] == flops
    }


# ------------------------------------------------------------------ commands


@click.group()
def main() -> None:
    """Compare families of models."""


@main.command()
@click.option("--text", type=Path, required=True, help="JSON lines from which dictionaries are learned.")
@click.option("--out", type=Path, required=True, help="The folder of codecs.")
@click.option("--max-bytes", default=14_000_000, show_default=True)
def prepare(text: Path, out: Path, max_bytes: int) -> None:
    """Train the codecs of all arms."""
    import fastcompress as fc
    from fastcompress import codec
    from fastcompress.training.batches import first_documents

    documents = first_documents(documents_of(text), max_bytes)
    merges = fc.BPE.train(documents, vocab_size=VOCAB_SIZE, pattern=fc.bpe.WORD_PATTERN)
    pieces = [merges.token_bytes(token) for token in range(VOCAB_SIZE)]
    strings = fc.greedy_dictionary.GreedyDictionary.train(documents, size=VOCAB_SIZE, start=pieces)
    book = fc.equal_info.Codebook.train(documents, bits=13, within_words=True)
    made: dict[str, Any] = {
        "byte": codec.ByteCodec(),
        "bpe": codec.BPECodec(merges),
        "greedy": codec.GreedyDictionaryCodec(strings),
        "codebook": codec.EqualInfoCodec(book),
        "lz77": codec.LZ77Codec(alphabet="fields"),
    }
    out.mkdir(parents=True, exist_ok=True)
    for name, one_codec in made.items():
        codec.save_codec(one_codec, out / f"{name}.json")
        click.echo(f"{name}: {one_codec.vocab_size} tokens")


@main.command()
@click.argument("asked")
def one(asked: str) -> None:
    """Train one setting, given as JSON; the last line of the output holds its figures."""
    print(json.dumps(train_one(json.loads(asked))))


@main.command()
@click.option("--codecs", type=Path, required=True, help="What `prepare` wrote.")
@click.option("--text", "texts", type=Path, required=True, multiple=True, help="JSON lines to train on.")
@click.option("--validation", type=Path, required=True, help="Held-out JSON lines.")
@click.option("--flops", type=float, required=True, help="Of each run.")
@click.option("--out", type=Path, required=True, help="The results file; what it holds is not trained again.")
@click.option("--max-bytes", default=200_000_000, show_default=True, help="Of the training text.")
@click.option("--eval-bytes", default=1 << 20, show_default=True, help="Of the held-out text.")
@click.option("--arms", default=";".join(ARMS), help="Names, separated by semicolons. Default: all.")
@card_jobs.run_options
def run(
    codecs: Path, texts: tuple[Path, ...], validation: Path, flops: float, out: Path, max_bytes: int, eval_bytes: int,
    arms: str, jobs: int, seconds: float, device: str, commit: str,
) -> None:  # fmt: skip
    """Search every arm, and train the best of each with more seeds."""
    names = arms.split(";")
    found: dict[str, Any] = json.loads(out.read_text()) if out.exists() else {"runs": []}
    command = f"families.py run --codecs PATH --text PATH --validation PATH --flops {flops:g}"
    found["header"] = card_jobs.header("families", command, commit)
    cards = card_jobs.Cards(jobs, seconds)
    with tempfile.TemporaryDirectory() as shards:
        documents = [document for text in texts for document in documents_of(text)]
        encode(codecs, {ARMS[arm].codec for arm in names}, documents, max_bytes, Path(shards))
        common = {
            "codecs": str(codecs), "shards": shards, "validation": str(validation), "flops": flops,
            "eval_bytes": eval_bytes, "device": device,
        }  # fmt: skip

        writing = threading.Lock()

        def search(arm: str) -> None:
            begin, done = begin_of(found["runs"], arm, flops), scores_of(found["runs"], arm, flops)
            while cards.seconds_left() > 0 and (wanted := next_settings(arm, done, begin)):
                asked = [{**common, "arm": arm, **dict(zip(KEYS, setting, strict=True))} for setting in wanted]
                runs = cards.run([[__file__, "one", json.dumps(one_run)] for one_run in asked])
                for setting, figures in zip(wanted, runs, strict=True):
                    done[setting] = math.inf if figures is None else figures["bits_per_byte"]
                    if figures is not None:
                        with writing:
                            found["runs"].append(figures)
                            card_jobs.write(out, found)

        with concurrent.futures.ThreadPoolExecutor(len(names)) as pool:
            list(pool.map(search, names))


KEYS = ("size", "batch", "factor", "seed")


def encode(codecs: Path, names: set[str], documents: list[bytes], max_bytes: int, out: Path) -> None:
    """Encode a text by every codec that an arm asks for."""
    from fastcompress import data
    from fastcompress.codec import load_codec
    from fastcompress.training.batches import first_documents

    documents = first_documents(documents, max_bytes)
    for name in sorted(names):
        data.write_shards(out / name, "train", documents, load_codec(codecs / f"{name}.json"))


def seeds_of(runs: Iterable[dict[str, Any]], arm: str, flops: float) -> list[dict[str, Any]]:
    """Return the runs of an arm's best setting under a budget, one a seed; [] without runs."""
    done = scores_of(runs, arm, flops)
    if not done:
        return []
    *best, _ = best_setting(done)
    settings = [(run, [run["size"], run["batch"], run["factor"]]) for run in runs if run["arm"] == arm]
    return [run for run, setting in settings if run["flops"] == flops and setting == best]


def difference(own: list[float], other: list[float]) -> str:
    """Return the difference of two means and its standard error; the error only where both have several values."""
    gain = f"{statistics.mean(own) - statistics.mean(other):+.4f}"
    if min(len(own), len(other)) == 1:
        return gain
    return f"{gain} ± {math.sqrt(sum(statistics.variance(values) / len(values) for values in (own, other))):.4f}"


@main.command()
@click.argument("results", type=Path)
def table(results: Path) -> None:
    """Print the best setting of every arm over its seeds, and its distance to bytes and to BPE (standard errors)."""
    found = json.loads(results.read_text())
    heads = ["FLOPs", "arm", "bits per byte", "", "seeds", "to bytes", "to BPE", "size, rows, rates"]
    heads += ["bytes/token", "passes"]
    click.echo(f"| {' | '.join(heads)} |\n|{' --- |' * len(heads)}")
    for flops in sorted({run["flops"] for run in found["runs"]}):
        seeds = {arm: same for arm in ARMS if (same := seeds_of(found["runs"], arm, flops))}
        values = {arm: [run["bits_per_byte"] for run in same] for arm, same in seeds.items()}
        merges = [arm for arm in values if arm.startswith("BPE")]
        bpe = min(merges, key=lambda arm: statistics.mean(values[arm]), default="")
        references = ["bytes" if "bytes" in values else "", bpe]
        for arm, same in seeds.items():
            deviation = f" ± {statistics.stdev(values[arm]):.4f}" if len(same) > 1 else ""
            row = [
                f"{flops:g}", arm, f"{statistics.mean(values[arm]):.4f}{deviation}",
                "exact" if same[0]["is_exact"] else "at most", str(len(same)),
                *("" if other in ("", arm) else difference(values[arm], values[other]) for other in references),
                same[0]["name"], f"{same[0]['bytes_per_token']:.2f}", f"{same[0]['passes']:.2f}",
            ]  # fmt: skip
            click.echo(f"| {' | '.join(row)} |")


if __name__ == "__main__":
    main()
