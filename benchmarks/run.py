"""Benchmarks: fastcompress beside other libraries. `python benchmarks/run.py --help`."""

from __future__ import annotations

import datetime
import hashlib
import importlib
import os
import subprocess
from pathlib import Path
from typing import Any

import click

import command_line
import fastcompress
import neighbour
import results_file
import single
import suites
import table
import texts
import vocabularies
from command_line import RESULTS, ROOT, corpora, encoding, every_suite, names, threads, tokenizers, with_options
from engines import FORMS, OUTPUTS, TRAINERS
from fastcompress.errors import DataError
from processes import Interpreters, touch_memory
from results_file import Results
from suites import Options
from texts import WORST_CASES


@click.group(context_settings={"help_option_names": ["-h", "--help"], "show_default": True})
def main() -> None:
    """Measure fastcompress and other libraries side by side; `tables` renders the results."""


# ------------------------------------------------------------------ one worker process per engine, cell and round


def measure(suite: str, given: dict[str, Any]) -> None:
    """Prepare inputs, check ids, measure, print the table."""
    if given["quick"]:
        given |= {"megabytes": 0.2, "slow_megabytes": 0.2, "worst_bytes": 10_000, "vocab_size": 500, "rounds": 1}
        given["engines"] = [engine for engine in ("fastcompress", "tiktoken") if engine in given["engines"]]
    options = prepare(given)
    today = datetime.date.today().isoformat()
    path = command_line.results_path(suite, given, today)
    if given["fresh"]:
        path.unlink(missing_ok=True)
    try:
        store = Results.open(path, header(suite, options, today) | {"neighbour": given["neighbour"]})
    except ValueError as error:
        raise click.ClickException(str(error)) from error
    store.forget_failures()
    if suite not in ("worst", "train"):
        suites.check(options, store)
    if not given["quick"]:
        touch_memory()
    with neighbour.running(given["neighbour"]):
        suites.measure(suite, options, store)
    if suite == "train":
        suites.check_merges(store)
    store.save()
    show(path)


def prepare(given: dict[str, Any]) -> Options:
    """Return the options of a tokenizer suite, with its texts and vocabularies written where workers read them."""
    fast, slow = (round(given.get(option, 1.0) * 1e6) for option in ("megabytes", "slow_megabytes"))
    folder = given.get("vocabulary_folder") or Path(os.environ.get("FASTCOMPRESS_DATA", "."), "vocabs")
    try:
        chosen = {name: vocabularies.prepare(name, folder, given["cache"]) for name in given.get("names_", ())}
        loaded = [texts.prepare(spec, fast, slow, given["cache"]) for spec in given["corpora"]]
    except (FileNotFoundError, DataError) as error:
        raise click.ClickException(str(error)) from error
    return Options(
        engines=given["engines"],
        vocabularies=chosen,
        texts={pair[0].name: pair for pair in loaded},
        forms=given.get("forms", []),
        outputs=given.get("outputs", []),
        threads=[int(number) for number in given.get("threads", ["1"])],
        rounds=given["rounds"],
        worst_bytes=given.get("worst_bytes", 0),
        vocab_size=given.get("vocab_size", 0),
        cases=given.get("cases", []),
        cache=given["cache"],
        interpreters=Interpreters(given["own"], given["peers"]),
    )


def header(suite: str, options: Options, today: str) -> dict[str, Any]:
    """Return the header of a results file; runs that add to it must agree in `inputs`, `commit` and `build`."""
    question = "import fastcompress, fastcompress._core as core; print(fastcompress.__file__); print(core.__file__)"
    answer = subprocess.run([options.interpreters.own, "-c", question], capture_output=True, text=True, check=True)
    package, native = map(Path, answer.stdout.split("\n")[:2])
    return {
        "suite": suite,
        "date": today,
        "command": command_line.recorded_command(),
        "commit": results_file.commit(package.parent),
        "build": hashlib.sha256(native.read_bytes()).hexdigest()[:16],
        "machine": results_file.machine(),
        "inputs": options.inputs(),
    }


@main.command()
@with_options(encoding("english,code,multilingual", "gpt2,cl100k,o200k", 16.0))
@threads(f"1,{os.cpu_count()}")
@click.option("--forms", default=",".join(FORMS), callback=names(FORMS), help="5 kB documents, the whole as a string.")
@click.option("--outputs", default="numpy", callback=names(OUTPUTS), help="numpy, list.")
def encode(**given: Any) -> None:
    """Encoding in MB/s: cold (first half of a corpus), unseen (second half), warm (both again)."""
    measure("encode", given)


@main.command()
@with_options(encoding("", "cl100k", 0.0))
@click.option("--cases", default=",".join(WORST_CASES), callback=names(tuple(WORST_CASES)), help="Which.")
@click.option("--worst-bytes", default=1_000_000, help="How long each string is.")
def worst(**given: Any) -> None:
    """Strings that made tokenizers quadratic, the first call of a process, in MB/s."""
    measure("worst", given)


@main.command()
@with_options(encoding("english", "cl100k", 1.0))
def small(**given: Any) -> None:
    """Calls per second for single strings of 10, 100 and 1,000 characters."""
    measure("small", given)


@main.command()
@with_options(encoding("english", "gpt2,cl100k,o200k", 4.0))
def load(**given: Any) -> None:
    """Import, load and first call in milliseconds, memory in MB."""
    measure("load", given)


@main.command()
@with_options(encoding("english,code,multilingual", "cl100k", 4.0))
def decode(**given: Any) -> None:
    """Decoding 5 kB documents, one call each, in MB/s."""
    measure("decode", given)


@main.command()
@with_options(tokenizers(TRAINERS, "english-long", 24.0))
@threads(f"1,{os.cpu_count()}")
@click.option("--vocab-size", default=32_000, help="Tokens to learn, the 256 bytes among them.")
def train(**given: Any) -> None:
    """Training on the documents of a corpus: seconds of CPU and wall time, megabytes above those of the text."""
    measure("train", given)


# ------------------------------------------------------------------ one process


def measure_single(suite: str, given: dict[str, Any], quick_megabytes: float = 0.2) -> None:
    """Measure a suite that one process measures, write its results, print the table."""
    quick = given["quick"]
    settings = single.Settings(
        corpora=given.get("corpora", []),
        megabytes=quick_megabytes if quick else given.get("megabytes", 0.0),
        rounds=1 if quick else given["rounds"],
        threads=int(given.get("threads", ["1"])[0]),
        cache=given["cache"],
        neighbour=given["neighbour"],
        quick=quick,
    )
    today = datetime.date.today().isoformat()
    path = command_line.results_path(suite, given, today)
    try:
        fields = importlib.import_module(suite).measure(settings)
    except (ModuleNotFoundError, FileNotFoundError, DataError) as error:
        raise click.ClickException(f"{error}; the suite's needs are in benchmarks/compression_peers.txt") from error
    head = {
        "suite": suite,
        "date": today,
        "command": command_line.recorded_command(),
        "commit": results_file.commit(Path(fastcompress.__file__).parent),
        "machine": results_file.machine(),
        "neighbour": settings.neighbour,
        "rounds": settings.rounds,
    }
    single.write(path, head, fields)
    show(path)


@main.command()
@with_options([*corpora("english,code,multilingual", 10.0), *every_suite()])
def lz77(**given: Any) -> None:
    """LZ77 beside libdeflate (built from lz77.cc): parse, append, streams, legal tokens, reconstruct."""
    measure_single("lz77", given)


@main.command()
@with_options(every_suite())
def arithmetic(**given: Any) -> None:
    """The range coder beside constriction: one table, a row for each symbol, a call for each symbol."""
    measure_single("arithmetic", given)


@main.command()
@with_options([*every_suite(), threads("2")])
@click.option("--megabytes", default=100.0, help="How much text to train on.")
def codebook(**given: Any) -> None:
    """Equal-info codebooks: bytes per token on held-out text, training, encoding, decoding."""
    measure_single("codebook", given, quick_megabytes=1.0)


@main.command()
@with_options([*every_suite(), threads("1")])
def compressors(**given: Any) -> None:
    """Compressed files beside zlib, libdeflate, zstd, brotli, xz and bz2: sizes, MB/s each way."""
    measure_single("compressors", given)


# ------------------------------------------------------------------ everything, and the tables

PUBLISHED = (
    ("encode",),
    ("encode", "--outputs", "list", "--forms", "documents", "--vocabularies", "cl100k"),
    ("encode", "--threads", "1", "--forms", "documents", "--neighbour"),
    ("worst",),
    ("small",),
    ("load",),
    ("decode",),
    ("train",),
    ("lz77",),
    ("lz77", "--neighbour"),
    ("arithmetic",),
    ("codebook",),
    ("compressors",),
)


@main.command(context_settings={"ignore_unknown_options": True})
@click.argument("options", nargs=-1, type=click.UNPROCESSED)
def publish(options: tuple[str, ...]) -> None:
    """Measure all that is published, in an hour or so. OPTIONS (--machine, --rounds, --cache, --quick) go to each."""
    for arguments in PUBLISHED:
        main.main([*arguments, *options], standalone_mode=False)


@main.command("table")
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option("--every-engine", is_flag=True, help="Each engine's figures, too.")
def table_command(files: tuple[Path, ...], every_engine: bool) -> None:
    """Render results of one suite as Markdown; several files are several conditions, of which the worst counts."""
    click.echo(table.render(list(files), every_engine=every_engine))


@main.command()
@click.option("--check", is_flag=True, help="Change nothing; fail if a page is not what the results make.")
def tables(check: bool) -> None:
    """Write the tables of README.md and benchmarks/README.md anew from the newest results."""
    for page in (ROOT / "README.md", ROOT / "benchmarks" / "README.md"):
        made = table.update(page, RESULTS)
        if check and made != page.read_text(encoding="utf-8"):
            raise click.ClickException(f"{page.name} is not what the results make; run it without --check")
        page.write_text(made, encoding="utf-8")


def show(path: Path) -> None:
    """Print the tables of a results file and write them beside it."""
    rendered = table.render([path], every_engine=True)
    path.with_suffix(".md").write_text(rendered, encoding="utf-8")
    click.echo(rendered)
    click.echo(f"results: {path}", err=True)


if __name__ == "__main__":
    main()
