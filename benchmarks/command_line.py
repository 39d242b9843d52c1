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
PLACES = ("own", "peers", "machine", "out", "cache", "vocabulary_folder", "fresh")  # not part of a recorded command


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
        click.option("--rounds", default=5, help="Measurements of each figure, of which the median counts."),
        click.option(
            "--neighbour", is_flag=True, help="Measure beside a process that streams through 64 MB on another core."
        ),
        click.option("--machine", default=f"cpu-{os.cpu_count()}-cores", help="The folder in results."),
        click.option(
            "--out",
            type=click.Path(path_type=Path),
            help="The results file; default: results/<machine>/<date>-<suite>[-neighbour].json.",
        ),
        click.option("--cache", type=click.Path(path_type=Path), default=CACHE, help="For what is made once."),
        click.option("--quick", is_flag=True, help="See whether it runs: little text, one round, few engines."),
    ]


def corpora(published: str, megabytes: float) -> list[Any]:
    """Return the options that choose texts."""
    return [
        click.option(
            "--corpora",
            default=default_corpora(published),
            callback=names(None),
            help="english, code, multilingual, english-long (of $FASTCOMPRESS_DATA), python-docs, files, folders.",
        ),
        click.option("--megabytes", default=megabytes, help="How much of each corpus."),
    ]


def threads(default: str) -> Any:
    """Return the option for numbers of threads."""
    return click.option(
        "--threads",
        default=default,
        callback=names(None),
        help="How many; one is timed in CPU time, more in wall time.",
    )


def tokenizers(known: Iterable[str], published: str, megabytes: float) -> list[Any]:
    """Return the options of the tokenizer suites, whose engines are `known`."""
    return [
        click.option("--engines", default=",".join(known), callback=names(tuple(known)), help="Which, in this order."),
        *corpora(published, megabytes),
        *every_suite(),
        click.option("--peers", default=default_peers, help="Python of the peers' environment (peers.txt)."),
        click.option("--own", default=sys.executable, help="Python that has fastcompress."),
        click.option("--fresh", is_flag=True, help="Drop what the file holds; without it missing rounds are added."),
    ]


def encoding(published: str, vocabularies: str, megabytes: float) -> list[Any]:
    """Return the options of the tokenizer suites that encode or decode."""
    return [
        *tokenizers(ENGINES, published, megabytes),
        click.option("--vocabularies", "names_", default=vocabularies, callback=names(OPENAI), help="Which."),
        click.option(
            "--vocabulary-folder",
            type=click.Path(exists=True, file_okay=False, path_type=Path),
            help="Where r50k_base.tiktoken and so on are, .xz or not; default: vocabs in $FASTCOMPRESS_DATA.",
        ),
        click.option("--slow-megabytes", default=1.0, help="How much of each corpus for engines under 30 MB/s."),
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
    path: Path = given["out"] or RESULTS / given["machine"] / f"{today}-{suite}{condition}.json"
    return path
