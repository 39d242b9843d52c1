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
from click.core import ParameterSource

import command_line
import fastcompress
import neighbour
import publish
import results_file
import single
import suites
import table
import texts
import vocabularies
from command_line import (
    RESULTS,
    ROOT,
    corpora,
    encoding,
    every_suite,
    interpreters,
    measuring,
    names,
    threads,
    tokenizers,
    vocabulary_folder,
    with_options,
)
from engines import ENGINES, FORMS, OUTPUTS, TRAINERS
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
    try:
        with neighbour.running(given["neighbour"]):
            suites.measure(suite, options, store)
    except OSError as error:
        raise click.ClickException(str(error)) from error
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
@click.option(
    "--forms",
    default=",".join(FORMS),
    callback=names(FORMS),
    help="documents: of 5 kB, in a batch; whole: one string.",
)
@click.option("--outputs", default="numpy", callback=names(OUTPUTS), help="numpy: ids in arrays; list: in lists.")
def encode(**given: Any) -> None:
    """Encode text, in MB/s.

    Each round starts a fresh process, which encodes the first half of a corpus (cold), the second half (unseen), and
    both again (warm).
    """
    measure("encode", given)


@main.command()
@with_options(encoding(None, "cl100k", 0.0))
@click.option("--cases", default=",".join(WORST_CASES), callback=names(tuple(WORST_CASES)), help="Strings to encode.")
@click.option("--worst-bytes", default=1_000_000, help="Length of each string in bytes.")
def worst(**given: Any) -> None:
    """Encode strings on which some tokenizers take quadratic time: the first call of a process, in MB/s."""
    measure("worst", given)


@main.command()
@with_options(encoding("english", "cl100k", 1.0))
def small(**given: Any) -> None:
    """Encode single strings of 10, 100 and 1,000 characters, in calls per second."""
    measure("small", given)


@main.command()
@with_options(encoding("english", "gpt2,cl100k,o200k", 4.0))
def load(**given: Any) -> None:
    """Import, load a vocabulary, make a first call: milliseconds, and memory in MB."""
    measure("load", given)


@main.command()
@with_options(encoding("english,code,multilingual", "cl100k", 4.0))
def decode(**given: Any) -> None:
    """Decode documents of 5 kB, one call each, in MB/s."""
    measure("decode", given)


@main.command()
@with_options(tokenizers(TRAINERS, "english-long", 24.0))
@threads(f"1,{os.cpu_count()}")
@click.option("--vocab-size", default=32_000, help="Number of tokens to learn, the 256 bytes included.")
def train(**given: Any) -> None:
    """Train a BPE vocabulary on a corpus: seconds of CPU and wall time, and peak memory above the text's in MB."""
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
    except (ModuleNotFoundError, OSError, DataError, subprocess.CalledProcessError) as error:
        raise click.ClickException(f"{error}; benchmarks/compression_peers.txt lists what the suite needs") from error
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
    """Parse with LZ77 beside libdeflate; append, streams, legal tokens, reconstruct (a C++ program, lz77.cc)."""
    measure_single("lz77", given)


@main.command()
@with_options(every_suite())
def arithmetic(**given: Any) -> None:
    """Code symbols beside constriction: one table for all, a table per symbol, a call per symbol."""
    measure_single("arithmetic", given)


@main.command()
@with_options([*every_suite(), threads("2")])
@click.option("--megabytes", default=100.0, help="Megabytes of text to train on.")
def codebook(**given: Any) -> None:
    """Train equal-info codebooks: bytes per token on held-out text; seconds to train, MB/s to encode and decode."""
    measure_single("codebook", given, quick_megabytes=1.0)


@main.command()
@with_options([*every_suite(), threads("1")])
def compressors(**given: Any) -> None:
    """Compress files beside zlib, libdeflate, zstd, brotli, xz and bz2: sizes, and MB/s each way."""
    measure_single("compressors", given)


# ------------------------------------------------------------------ everything, and the tables


@main.command("publish")
@click.argument("names", metavar="[RESULTS]...", nargs=-1, type=click.Choice(list(map(str, publish.PUBLISHED))))
@with_options(
    [
        *measuring(),
        click.option(
            "--engines",
            default=",".join(dict.fromkeys([*ENGINES, *TRAINERS])),
            callback=names((*ENGINES, *TRAINERS)),
            help="Tokenizer libraries. Each suite measures those of them that it knows.",
        ),
        *corpora(None, None),
        *interpreters(),
        vocabulary_folder(),
    ]
)
@click.pass_context
def publish_command(context: click.Context, names: tuple[str, ...], **given: Any) -> None:
    """Measure all RESULTS that the tables and the picture are made from, or those named, each into a file of its own.

    Takes hours with every engine. A suite that fails does not stop the others. A second run on the same day adds the
    rounds that are missing, so name RESULTS to do it in parts. Then run `tables` and docs/make_picture.py.
    """
    typed = {name: given[name] for name in given if context.get_parameter_source(name) is ParameterSource.COMMANDLINE}
    failed = []
    for measurement in publish.chosen(names):
        words = publish.arguments(measurement, main.commands[measurement.suite], typed)
        click.echo(f"--- {measurement}", err=True)
        try:
            main.main(words, prog_name="run.py", standalone_mode=False)
        except click.ClickException as error:
            failed.append(f"{measurement}: {error.format_message()}")
    if failed:
        raise click.ClickException("; ".join(failed))


@main.command("table")
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option("--every-engine", is_flag=True, help="Add each engine's figures.")
def table_command(files: tuple[Path, ...], every_engine: bool) -> None:
    """Render results files of one suite as Markdown. Several files are several conditions; the worst one counts."""
    click.echo(table.render(list(files), every_engine=every_engine))


@main.command()
@click.option("--check", is_flag=True, help="Change nothing; fail if a page differs from what the results give.")
def tables(check: bool) -> None:
    """Rewrite the tables of README.md and benchmarks/README.md from the newest results."""
    for page in (ROOT / "README.md", ROOT / "benchmarks" / "README.md"):
        made = table.update(page, RESULTS)
        if check and made != page.read_text(encoding="utf-8"):
            raise click.ClickException(f"{page.name} differs from what the results give; run `tables` without --check")
        page.write_text(made, encoding="utf-8")


def show(path: Path) -> None:
    """Print the tables of a results file and write them beside it."""
    rendered = table.render([path], every_engine=True)
    path.with_suffix(".md").write_text(rendered, encoding="utf-8")
    click.echo(rendered)
    click.echo(f"results: {path}", err=True)


if __name__ == "__main__":
    main()
