"""Benchmarks: fastcompress beside other tokenizer libraries. `python benchmarks/run.py --help`."""

from __future__ import annotations

import datetime
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

import results_file
import suites
import table
import texts
import vocabularies
from engines import ENGINES, FORMS, OPENAI, OUTPUTS
from processes import Interpreters
from results_file import Results
from suites import CACHE, Options

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"


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


def default_corpora() -> str:
    return ",".join(texts.PUBLISHED) if "FASTCOMPRESS_DATA" in os.environ else "python-docs,python-source"


COMMON = [
    click.option("--engines", default=",".join(ENGINES), callback=names(tuple(ENGINES)), help="Which, in this order."),
    click.option("--vocabularies", "names_", default=",".join(OPENAI), callback=names(OPENAI), help="Which."),
    click.option(
        "--vocabulary-folder",
        type=click.Path(exists=True, file_okay=False, path_type=Path),
        help="Where r50k_base.tiktoken and so on are, .xz or not; default: vocabs in $FASTCOMPRESS_DATA.",
    ),
    click.option(
        "--corpora",
        default=default_corpora,
        callback=names(None),
        help="english, code, multilingual (of $FASTCOMPRESS_DATA), names as python-docs, files, folders.",
    ),
    click.option("--megabytes", default=16.0, help="How much of each corpus."),
    click.option("--slow-megabytes", default=1.0, help="How much of it for engines under 30 MB/s."),
    click.option("--worst-bytes", default=1_000_000, help="Size of the worst cases."),
    click.option("--rounds", default=5, help="Rounds in all, those in the file counted."),
    click.option("--peers", default=default_peers, help="Python of the peers' environment (peers.txt)."),
    click.option("--own", default=sys.executable, help="Python that has fastcompress."),
    click.option("--machine", default=f"cpu-{os.cpu_count()}-cores", help="Folder in results."),
    click.option(
        "--out", type=click.Path(path_type=Path), help="Results file; default: results/<machine>/<date>-<suite>.json."
    ),
    click.option("--fresh", is_flag=True, help="Drop what the file holds; without it missing rounds are added."),
    click.option("--quick", is_flag=True, help="Does it run? fastcompress and tiktoken, 0.2 MB, one round."),
]


def common(command: Any) -> Any:
    for option in reversed(COMMON):
        command = option(command)
    return command


@click.group(context_settings={"help_option_names": ["-h", "--help"], "show_default": True})
def main() -> None:
    """Measures fastcompress and other tokenizer libraries side by side; `table` renders the results."""


def measure(suite: str, given: dict[str, Any], threads: list[int], forms: list[str], outputs: list[str]) -> None:
    """Prepares inputs, checks ids, measures, prints the table."""
    if given["quick"]:
        given |= {"engines": ["fastcompress", "tiktoken"], "megabytes": 0.2, "slow_megabytes": 0.2}
        given |= {"worst_bytes": 10_000, "rounds": 1}
    folder = given["vocabulary_folder"] or Path(os.environ.get("FASTCOMPRESS_DATA", "."), "vocabs")
    try:
        chosen = {name: vocabularies.prepare(name, folder, CACHE) for name in given["names_"]}
    except FileNotFoundError as error:
        raise click.ClickException(str(error)) from error
    sizes = [round(given[option] * 1e6) for option in ("megabytes", "slow_megabytes")]
    loaded = [texts.prepare(spec, sizes, CACHE) for spec in given["corpora"]]
    options = Options(
        given["engines"], chosen, {pair[0].name: pair for pair in loaded}, forms, outputs, threads, given["rounds"],
        given["worst_bytes"], Interpreters(given["own"], given["peers"]),
    )  # fmt: skip
    today = datetime.date.today().isoformat()
    path = given["out"] or RESULTS / given["machine"] / f"{today}-{suite}.json"
    if given["fresh"]:
        path.unlink(missing_ok=True)
    try:
        store = Results.open(path, header(suite, options, today))
    except ValueError as error:
        raise click.ClickException(str(error)) from error
    store.forget_failures()
    if suite != "worst" and "differing" not in store.header:
        store.header["differing"] = suites.check(options)
    suites.measure(suite, options, store)
    click.echo(table.render(store))
    click.echo(f"results: {path}", err=True)


def header(suite: str, options: Options, today: str) -> dict[str, Any]:
    """What the results file says besides cells; runs that add to it must agree in `settings` and `commit`."""
    question = "import fastcompress; print(fastcompress.__file__)"
    place = subprocess.run([options.interpreters.own, "-c", question], capture_output=True, text=True, check=True)
    return {
        "suite": suite,
        "date": today,
        "commit": results_file.commit(Path(place.stdout.strip()).parent),
        "machine": results_file.machine(),
        "settings": {
            name: [[text.num_bytes, text.sha256[:16]] for text in pair] for name, pair in options.texts.items()
        },
    }


@main.command()
@common
@click.option("--forms", default=",".join(FORMS), callback=names(FORMS), help="5 kB documents, the whole as a string.")
@click.option("--outputs", default=",".join(OUTPUTS), callback=names(OUTPUTS), help="Arrays, lists.")
@click.option(
    "--threads", default=f"1,{os.cpu_count()}", callback=names(None), help="Threads; one is timed in CPU time."
)
def encode(forms: list[str], outputs: list[str], threads: list[str], **given: Any) -> None:
    """Encoding in MB/s: cold (first half of a corpus), unseen (second half), warm (both again)."""
    measure("encode", given, [int(number) for number in threads], forms, outputs)


def simple_suite(name: str, description: str) -> None:
    """A command for a suite on one thread."""

    @main.command(name, help=description)
    @common
    def command(**given: Any) -> None:
        measure(name, given, [1], [], [])


simple_suite("worst", "Strings of 1 MB that made tokenizers quadratic, first call of a process, in MB/s.")
simple_suite("small", "Calls a second for single strings of 10, 100 and 1,000 characters.")
simple_suite("load", "Import, load and first call in milliseconds, memory in MB.")
simple_suite("decode", "Decoding 5 kB documents, one call each, in MB/s.")


@main.command("table")
@click.argument("files", nargs=-1, type=click.Path(exists=True, path_type=Path))
@click.option("--readme", type=click.Path(exists=True, path_type=Path), help="Write the table between its markers.")
def table_command(files: tuple[Path, ...], readme: Path | None) -> None:
    """Renders results files as Markdown."""
    for path in files:
        store = Results.open(path)
        text = table.render(store)
        click.echo(text)
        if readme:
            table.insert(readme, store.header["suite"], text)


if __name__ == "__main__":
    main()
