"""Benchmarks: fastcompress beside other tokenizer libraries. `python benchmarks/run.py --help`."""

from __future__ import annotations

import datetime
import functools
import hashlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import click

import neighbour
import results_file
import suites
import table
import texts
import vocabularies
from engines import ENGINES, FORMS, OPENAI, OUTPUTS, TRAINERS
from fastcompress.errors import DataError
from processes import Interpreters, touch_memory
from results_file import Results
from suites import Options
from texts import WORST_CASES

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
CACHE = ROOT / ".cache" / "benchmarks"


def names(known: tuple[str, ...] | None) -> Callable[[click.Context, click.Parameter, str], list[str]]:
    """A click callback: "a,b" as a list, each of them `known`."""

    def split(context: click.Context, parameter: click.Parameter, value: str) -> list[str]:
        chosen = [name for name in value.split(",") if name]
        for name in chosen:
            if known is not None and name not in known:
                raise click.BadParameter(f"{name} is none of {', '.join(known)}")
        return chosen

    return split


def default_peers() -> str:
    return os.environ.get("FASTCOMPRESS_PEERS") or str(ROOT / "peers" / "bin" / "python")


def default_corpora(published: str) -> Callable[[], str]:
    return lambda: published if "FASTCOMPRESS_DATA" in os.environ else "python-docs,python-source"


NEIGHBOUR = click.option(
    "--neighbour", is_flag=True, help="Measure beside a process that streams through 64 MB on another core."
)


def common(known: Iterable[str], corpora: str, megabytes: float) -> list[Any]:
    """The options of every suite: its engines are `known`, the defaults what the published tables use."""
    return [
        click.option("--engines", default=",".join(known), callback=names(tuple(known)), help="Which, in this order."),
        click.option(
            "--corpora",
            default=default_corpora(corpora),
            callback=names(None),
            help="english, code, multilingual, english-long (of $FASTCOMPRESS_DATA), python-docs, files, folders.",
        ),
        click.option("--megabytes", default=megabytes, help="How much of each corpus."),
        click.option("--rounds", default=5, help="Rounds in all, those in the file counted."),
        click.option("--peers", default=default_peers, help="Python of the peers' environment (peers.txt)."),
        click.option("--own", default=sys.executable, help="Python that has fastcompress."),
        click.option("--machine", default=f"cpu-{os.cpu_count()}-cores", help="Folder in results."),
        click.option("--out", type=click.Path(path_type=Path), help="Default: results/<machine>/<date>-<suite>.json."),
        click.option("--cache", type=click.Path(path_type=Path), default=CACHE, help="For texts and ids, made once."),
        click.option("--fresh", is_flag=True, help="Drop what the file holds; without it missing rounds are added."),
        NEIGHBOUR,
        click.option("--quick", is_flag=True, help="Does it run? fastcompress and tiktoken, 0.2 MB, one round."),
    ]


def encoding(corpora: str, vocabularies: str, megabytes: float) -> list[Any]:
    """The options of suites that encode or decode."""
    return [
        *common(ENGINES, corpora, megabytes),
        click.option("--vocabularies", "names_", default=vocabularies, callback=names(OPENAI), help="Which."),
        click.option(
            "--vocabulary-folder",
            type=click.Path(exists=True, file_okay=False, path_type=Path),
            help="Where r50k_base.tiktoken and so on are, .xz or not; default: vocabs in $FASTCOMPRESS_DATA.",
        ),
        click.option("--slow-megabytes", default=1.0, help="How much of each corpus for engines under 30 MB/s."),
    ]


THREADS = click.option(
    "--threads", default=f"1,{os.cpu_count()}", callback=names(None), help="How many; one is timed in CPU time."
)


def with_options(options: list[Any]) -> Callable[[Any], Any]:
    """A decorator that adds click options to a command."""
    return lambda command: functools.reduce(lambda decorated, option: option(decorated), reversed(options), command)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "show_default": True})
def main() -> None:
    """Measures fastcompress and other tokenizer libraries side by side; `table` renders the results."""


def measure(suite: str, given: dict[str, Any]) -> None:
    """Prepares inputs, checks ids, measures, prints the table."""
    if given["quick"]:
        given |= {"megabytes": 0.2, "slow_megabytes": 0.2, "worst_bytes": 10_000, "vocab_size": 500, "rounds": 1}
        given["engines"] = [engine for engine in ("fastcompress", "tiktoken") if engine in given["engines"]]
    fast, slow = (round(given.get(option, 1.0) * 1e6) for option in ("megabytes", "slow_megabytes"))
    folder = given.get("vocabulary_folder") or Path(os.environ.get("FASTCOMPRESS_DATA", "."), "vocabs")
    try:
        chosen = {name: vocabularies.prepare(name, folder, given["cache"]) for name in given.get("names_", ())}
        loaded = [texts.prepare(spec, fast, slow, given["cache"]) for spec in given["corpora"]]
    except (FileNotFoundError, DataError) as error:
        raise click.ClickException(str(error)) from error
    options = Options(
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
    today = datetime.date.today().isoformat()
    condition = "-neighbour" if given["neighbour"] else ""
    path = given["out"] or RESULTS / given["machine"] / f"{today}-{suite}{condition}.json"
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
    tables = table.render(store, every_engine=True)
    path.with_suffix(".md").write_text(tables)
    click.echo(tables)
    click.echo(f"results: {path}", err=True)


def header(suite: str, options: Options, today: str) -> dict[str, Any]:
    """What the results file says besides cells; runs that add to it must agree in `inputs`, `commit` and `build`."""
    question = "import fastcompress, fastcompress._core as core; print(fastcompress.__file__); print(core.__file__)"
    answer = subprocess.run([options.interpreters.own, "-c", question], capture_output=True, text=True, check=True)
    package, native = map(Path, answer.stdout.split("\n")[:2])
    return {
        "suite": suite,
        "date": today,
        "commit": results_file.commit(package.parent),
        "build": hashlib.sha256(native.read_bytes()).hexdigest()[:16],
        "machine": results_file.machine(),
        "inputs": options.inputs(),
    }


@main.command()
@with_options(encoding("english,code,multilingual", "gpt2,cl100k,o200k", 16.0))
@THREADS
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
    """Calls a second for single strings of 10, 100 and 1,000 characters."""
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
@with_options(common(TRAINERS, "english-long", 24.0))
@THREADS
@click.option("--vocab-size", default=32_000, help="Tokens to learn, the 256 bytes among them.")
def train(**given: Any) -> None:
    """Training on the documents of a corpus: seconds of CPU and wall time, megabytes above those of the text."""
    measure("train", given)


PUBLISHED = (
    ("encode",),
    ("encode", "--outputs", "list", "--forms", "documents", "--vocabularies", "cl100k"),
    ("worst",),
    ("small",),
    ("load",),
    ("decode",),
    ("train",),
)


@main.command(context_settings={"ignore_unknown_options": True})
@click.argument("options", nargs=-1, type=click.UNPROCESSED)
def publish(options: tuple[str, ...]) -> None:
    """All that is published, half an hour or so; OPTIONS go to every suite. What is measured already is not again."""
    for arguments in PUBLISHED:
        main.main([*arguments, *options], standalone_mode=False)


@main.command("table")
@click.argument("files", nargs=-1, type=click.Path(exists=True, path_type=Path))
@click.option("--readme", type=click.Path(exists=True, path_type=Path), help="Write the tables between its markers.")
@click.option("--every-engine", is_flag=True, help="Each engine's figures, too.")
def table_command(files: tuple[Path, ...], readme: Path | None, every_engine: bool) -> None:
    """Renders results files as Markdown."""
    for path in files:
        store = Results.open(path)
        text = table.render(store, every_engine=every_engine)
        if readme:
            table.insert(readme, store.header["suite"], text)
        else:
            click.echo(text)


if __name__ == "__main__":
    main()
