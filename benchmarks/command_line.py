"""The options that the suites share, and what a results file records about the command."""

from __future__ import annotations

import functools
import os
import shlex
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import click

from engines import ENGINES, OPENAI

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
CACHE = ROOT / ".cache" / "benchmarks"
# Options that a recorded command leaves out, because they say where things are, not what was measured.
PLACES = ("own", "peers", "machine", "results", "out", "cache", "vocabulary_folder", "fresh")


def names(known: tuple[str, ...] | None) -> Callable[[click.Context, click.Parameter, str], list[str]]:
    """Return a click callback that splits "a,b" into a list of `known` names; None for any names."""

    def split(context: click.Context, parameter: click.Parameter, value: str) -> list[str]:
        chosen = [name for name in value.split(",") if name]
        for name in chosen:
            if known is not None and name not in known:
                raise click.BadParameter(f"{name} is none of {', '.join(known)}")
        return chosen

    return split


def default_peers() -> str:
    """Return the Python of the peers' environment: $FASTCOMPRESS_PEERS, or the one in peers/."""
    return os.environ.get("FASTCOMPRESS_PEERS") or str(ROOT / "peers" / "bin" / "python")


def default_corpora(published: str) -> Callable[[], str]:
    """Return a callback for the default corpora: the published ones if they are at hand."""
    return lambda: published if "FASTCOMPRESS_DATA" in os.environ else "python-docs,python-source"


def every_suite() -> list[Any]:
    """Return the options of every suite."""
    return [
        *measuring(),
        click.option(
            "--neighbour", is_flag=True, help="Measure beside a process that streams through 64 MB on another core."
        ),
        click.option("--name", help="Name of the results, if not that of the suite: encode-lists, encode-2-threads."),
        click.option(
            "--out",
            type=click.Path(path_type=Path),
            help="Results file.  [default: RESULTS/MACHINE/<date>-<name>[-neighbour].json]",
        ),
    ]


def measuring() -> list[Any]:
    """Return the options of every suite and of `publish`."""
    return [
        click.option("--rounds", default=5, help="Measurements of each figure; their median counts."),
        click.option("--machine", default=f"cpu-{os.cpu_count()}-cores", help="Name of this machine's results folder."),
        click.option(
            "--results",
            type=click.Path(file_okay=False, path_type=Path),
            default=RESULTS,
            show_default="benchmarks/results",
            help="Folder that holds a folder of results per machine.",
        ),
        click.option(
            "--cache",
            type=click.Path(path_type=Path),
            default=CACHE,
            show_default=".cache/benchmarks",
            help="Folder for what is made once: texts, reference ids, the LZ77 program.",
        ),
        click.option("--quick", is_flag=True, help="Only try whether it runs: little text, one round, few engines."),
    ]


def corpora(published: str | None, megabytes: float | None) -> list[Any]:
    """Return the options that choose texts.

    Args:
        published: The default corpora if $FASTCOMPRESS_DATA is set; None for no default.
        megabytes: The default size of each; None for no default.
    """
    standing_in = "; without $FASTCOMPRESS_DATA python-docs,python-source"
    return [
        click.option(
            "--corpora",
            default="" if published is None else default_corpora(published),
            show_default=published + standing_in if published else "those of the suite",
            callback=names(None),
            help="Texts: english, code, multilingual, english-long (from $FASTCOMPRESS_DATA), python-docs, "
            "python-source, or paths of files and folders.",
        ),
        click.option(
            "--megabytes",
            type=float,
            default=megabytes,
            show_default="those of the suite" if megabytes is None else True,
            help="Megabytes of each corpus.",
        ),
    ]


def threads(default: str) -> Any:
    """Return the option for numbers of threads."""
    return click.option(
        "--threads",
        default=default,
        callback=names(None),
        help="Numbers of threads. One is timed in CPU time, several in wall time.",
    )


def interpreters() -> list[Any]:
    """Return the options of suites that start a process per engine."""
    return [
        click.option(
            "--peers",
            default=default_peers,
            show_default="$FASTCOMPRESS_PEERS, or peers/bin/python",
            help="Python of the environment that has the other libraries (peers.txt).",
        ),
        click.option(
            "--own", default=sys.executable, show_default="the Python that runs this", help="Python with fastcompress."
        ),
        click.option(
            "--fresh", is_flag=True, help="Drop the results of an existing file; otherwise missing rounds are added."
        ),
    ]


def vocabulary_folder() -> Any:
    """Return the option that says where rank files are."""
    return click.option(
        "--vocabulary-folder",
        type=click.Path(exists=True, file_okay=False, path_type=Path),
        help="Folder of r50k_base.tiktoken, cl100k_base.tiktoken and o200k_base.tiktoken, packed as .xz or not.  "
        "[default: $FASTCOMPRESS_DATA/vocabs]",
    )


def tokenizers(known: Iterable[str], published: str | None, megabytes: float) -> list[Any]:
    """Return the options of the tokenizer suites, whose engines are `known`."""
    return [
        click.option(
            "--engines", default=",".join(known), callback=names(tuple(known)), help="Libraries, in the order of runs."
        ),
        *corpora(published, megabytes),
        *every_suite(),
        *interpreters(),
    ]


def encoding(published: str | None, vocabularies: str, megabytes: float) -> list[Any]:
    """Return the options of the tokenizer suites that encode or decode."""
    return [
        *tokenizers(ENGINES, published, megabytes),
        click.option(
            "--vocabularies",
            "names_",
            default=vocabularies,
            callback=names(OPENAI),
            help=f"Vocabularies: {', '.join(OPENAI)}.",
        ),
        vocabulary_folder(),
        click.option("--slow-megabytes", default=1.0, help="Megabytes of each corpus for engines under 30 MB/s."),
    ]


def with_options(options: list[Any]) -> Callable[[Any], Any]:
    """Return a decorator that adds click options to a command."""
    return lambda command: functools.reduce(lambda decorated, option: option(decorated), reversed(options), command)


def recorded_command() -> str:
    """Return the current command as a results file records it: without paths and interpreters of this machine."""
    context = click.get_current_context()
    words = ["python", "benchmarks/run.py", str(context.info_name)]
    for parameter in context.command.params:
        source = context.get_parameter_source(str(parameter.name))
        if source is not click.core.ParameterSource.COMMANDLINE or parameter.name in PLACES:
            continue
        value = context.params[str(parameter.name)]
        words.append(parameter.opts[0])
        if not getattr(parameter, "is_flag", False):
            words.append(",".join(value) if isinstance(value, list) else str(value))
    return shlex.join(words)


def results_path(suite: str, given: dict[str, Any], today: str) -> Path:
    """Return where the results of a suite go."""
    condition = "-neighbour" if given["neighbour"] else ""
    name = given["name"] or suite
    path: Path = given["out"] or given["results"] / given["machine"] / f"{today}-{name}{condition}.json"
    return path
