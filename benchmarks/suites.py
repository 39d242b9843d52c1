"""What is measured: the cells of each suite, one worker process for every engine, cell and round."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

import processes
import texts
import vocabularies
from engines import ENGINES, OUTPUTS
from processes import Interpreters
from results_file import Results

CACHE = Path(__file__).resolve().parent.parent / ".cache" / "benchmarks"
TIMEOUT = {"worst": 20.0}  # seconds; quadratic engines end so, and are not tried again


@dataclass
class Options:
    """What the command line says, in the form that suites use."""

    engines: list[str]
    vocabularies: dict[str, vocabularies.Vocabulary]
    texts: dict[str, tuple[texts.Text, texts.Text]]  # for fast engines, for slow ones
    forms: list[str]
    outputs: list[str]
    threads: list[int]
    rounds: int
    worst_bytes: int
    interpreters: Interpreters

    def text(self, engine: str, corpus: str) -> texts.Text:
        return self.texts[corpus][ENGINES[engine].is_slow]


@dataclass(frozen=True)
class Cell:
    """One figure to measure: a key of `Results` without the engine."""

    vocabulary: str
    corpus: str
    form: str
    output: str
    threads: int

    def __str__(self) -> str:
        return f"{self.vocabulary} {self.corpus} {self.form} {self.output} {self.threads}T"


def encode_cells(options: Options) -> Iterator[Cell]:
    """All combinations of what the command line names."""
    for vocabulary in options.vocabularies:
        for corpus in options.texts:
            for threads in options.threads:
                for form in options.forms:
                    for output in options.outputs:
                        yield Cell(vocabulary, corpus, form, output, threads)


def one_thread_cells(form: str, outputs: tuple[str, ...]) -> Callable[[Options], Iterator[Cell]]:
    """Every vocabulary and corpus, on one thread."""

    def cells(options: Options) -> Iterator[Cell]:
        for vocabulary in options.vocabularies:
            for corpus in options.texts:
                for output in outputs:
                    yield Cell(vocabulary, corpus, form, output, 1)

    return cells


def worst_cells(options: Options) -> Iterator[Cell]:
    """A case is a corpus here."""
    for vocabulary in options.vocabularies:
        for case in texts.WORST_CASES:
            yield Cell(vocabulary, case, "whole", "numpy", 1)


CELLS = {
    "encode": encode_cells,
    "worst": worst_cells,
    "small": one_thread_cells("whole", OUTPUTS),
    "load": one_thread_cells("documents", ("numpy",)),
    "decode": one_thread_cells("documents", ("list",)),
}


def reference(options: Options, vocabulary: str, text: texts.Text | None) -> str:
    """Where tiktoken's ids of a text (None: of the worst cases) are; they are computed once."""
    source = vocabularies.fingerprint(options.vocabularies[vocabulary])
    stem = CACHE / "ids" / (f"{source}-{text.sha256[:16]}" if text else f"{source}-worst-{options.worst_bytes}")
    done = Path(f"{stem}.done")
    if not done.exists():
        stem.parent.mkdir(parents=True, exist_ok=True)
        job = {
            "engine": "tiktoken",
            "vocabulary": options.vocabularies[vocabulary],
            "threads": 1,
            "reference": str(stem),
            **(
                {"task": "reference", "text": text}
                if text
                else {"task": "worst reference", "worst_bytes": options.worst_bytes}
            ),
        }
        _, error = processes.run("worker.py", job, options.interpreters, timeout=1_800)
        if error:
            raise click.ClickException(f"tiktoken, which the others are compared with: {error}")
        done.touch()
    return str(stem)


def job_for(suite: str, engine: str, cell: Cell, options: Options) -> dict[str, Any]:
    """What the worker of a cell needs. An engine that has no arrays is measured with its lists, and the reverse."""
    is_worst = suite == "worst"
    text = None if is_worst else options.text(engine, cell.corpus)
    output = cell.output if suite == "encode" or cell.output in ENGINES[engine].outputs else "list"
    return {
        "task": suite,
        "engine": engine,
        "vocabulary": options.vocabularies[cell.vocabulary],
        "threads": cell.threads,
        "form": cell.form,
        "output": output,
        "reference": reference(options, cell.vocabulary, text),
        **({"case": cell.corpus, "worst_bytes": options.worst_bytes} if is_worst else {"text": text}),
        **({"sizes": (10, 100, 1_000)} if suite == "small" else {}),
    }


def check(options: Options) -> dict[str, list[str]]:
    """Compares every engine's ids with tiktoken's, on all of each text, before anything is timed.

    Returns the ways that differ, by engine. ClickException when fastcompress is one of them.
    """
    differing: dict[str, list[str]] = {}
    for vocabulary in options.vocabularies:
        for corpus in options.texts:
            cell = Cell(vocabulary, corpus, "", "", max(options.threads))
            for engine in options.engines:
                if engine == "tiktoken" or vocabulary not in ENGINES[engine].vocabularies:
                    continue
                result, error = processes.run(
                    "worker.py", job_for("check", engine, cell, options), options.interpreters
                )
                ways = [error] if error else result["differing"]
                if ways and engine == "fastcompress":
                    raise click.ClickException(f"fastcompress on {vocabulary} {corpus}: ids differ: {', '.join(ways)}")
                if ways:
                    differing.setdefault(engine, []).append(f"{vocabulary} {corpus}: {', '.join(ways)}")
                click.echo(f"check {vocabulary} {corpus} {engine}: {', '.join(ways) or 'equal ids'}", err=True)
    return differing


def measure(suite: str, options: Options, store: Results) -> None:
    """Adds the rounds that `store` lacks: in every round, cell by cell, the engines in the same order."""
    for number in range(options.rounds):
        for cell in CELLS[suite](options):
            shown = []
            for engine in options.engines:
                key = (engine, cell.vocabulary, cell.corpus, cell.form, cell.output, cell.threads)
                if not can_measure(suite, engine, cell) or store.num_rounds(key) > number or store.has_failed(key):
                    continue
                job = job_for(suite, engine, cell, options)
                result, error = processes.run("worker.py", job, options.interpreters, TIMEOUT.get(suite, 300.0))
                store.add(key, {"error": error} if error else result)
                shown.append(f"{engine} {error}" if error else f"{engine} {figures(result, cell.threads)}")
            if shown:
                store.save()
                click.echo(f"[{number + 1}/{options.rounds}] {cell}: {'; '.join(shown)}", err=True)


def can_measure(suite: str, engine: str, cell: Cell) -> bool:
    """Whether an engine has such a cell; load, worst and decode take engines with whatever output they have."""
    its = ENGINES[engine]
    output = cell.output if suite in ("encode", "small") else its.outputs[0]
    return its.can(cell.vocabulary, cell.form, output, cell.threads)


def figures(result: dict[str, Any], threads: int) -> str:
    """A round's measurements in short: CPU rates on one thread, wall rates on several, milliseconds, megabytes."""
    kind = "cpu" if threads == 1 else "wall"
    shown = [
        f"{value[kind]:.4g}" if kind in value else "/".join(f"{number:.4g}" for number in value.values())
        for value in result.values()
        if isinstance(value, dict)
    ]
    return " ".join(shown) + ("" if result.get("exact", True) else " (ids differ)")
