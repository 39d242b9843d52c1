"""What is measured: the cells of each suite, one worker process for every engine, cell and round."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

import processes
import vocabularies
from engines import ENGINES, OUTPUTS, TRAINERS
from fastcompress.pretokenizer import PATTERNS
from processes import Interpreters
from results_file import Results
from texts import Text
from vocabularies import Vocabulary

SMALL_SIZES = (10, 100, 1_000)
TIMEOUT = {"worst": 20.0}  # seconds; quadratic engines end so, and are not tried again


@dataclass
class Options:
    """What the command line says, in the form that suites use."""

    engines: list[str]
    vocabularies: dict[str, Vocabulary]
    texts: dict[str, tuple[Text, Text]]  # for fast engines, for slow ones
    forms: list[str]
    outputs: list[str]
    threads: list[int]
    rounds: int
    worst_bytes: int
    vocab_size: int
    cases: list[str]
    cache: Path
    interpreters: Interpreters

    def text(self, engine: str, corpus: str) -> Text:
        return self.texts[corpus][ENGINES[engine].is_slow]

    def inputs(self) -> dict[str, str]:
        """What every input is, by name: runs that add to one results file must agree in them."""
        return {
            **{name: vocabularies.fingerprint(vocabulary) for name, vocabulary in self.vocabularies.items()},
            **{
                name: f"{fast.num_bytes} bytes {fast.sha256[:16]}, for slow engines {slow.num_bytes} {slow.sha256[:16]}"
                for name, (fast, slow) in self.texts.items()
            },
            **dict.fromkeys(self.cases, f"{self.worst_bytes} bytes"),
        }


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
    inputs = itertools.product(options.vocabularies, options.texts)
    for (vocabulary, corpus), threads in itertools.product(inputs, options.threads):
        for form, output in itertools.product(options.forms, options.outputs):
            yield Cell(vocabulary, corpus, form, output, threads)


def one_thread_cells(form: str, outputs: tuple[str, ...]) -> Callable[[Options], Iterator[Cell]]:
    """Every vocabulary and corpus, on one thread."""

    def cells(options: Options) -> Iterator[Cell]:
        for vocabulary, corpus, output in itertools.product(options.vocabularies, options.texts, outputs):
            yield Cell(vocabulary, corpus, form, output, 1)

    return cells


def worst_cells(options: Options) -> Iterator[Cell]:
    """A case is a corpus here."""
    for vocabulary, case in itertools.product(options.vocabularies, options.cases):
        yield Cell(vocabulary, case, "whole", "numpy", 1)


def train_cells(options: Options) -> Iterator[Cell]:
    """The size of the vocabulary stands for the output."""
    for corpus, threads in itertools.product(options.texts, options.threads):
        yield Cell("", corpus, "", str(options.vocab_size), threads)


CELLS = {
    "encode": encode_cells,
    "worst": worst_cells,
    "small": one_thread_cells("whole", OUTPUTS),
    "load": one_thread_cells("documents", ("numpy",)),
    "decode": one_thread_cells("documents", OUTPUTS),  # here what the ids are in, not what becomes of them
    "train": train_cells,
}


def reference(options: Options, vocabulary: str, text: Text | None) -> str:
    """Where tiktoken's ids of a text (None: of the worst cases) are; they are computed once."""
    source = vocabularies.fingerprint(options.vocabularies[vocabulary])
    stem = options.cache / "ids" / (f"{source}-{text.sha256[:16]}" if text else f"{source}-worst-{options.worst_bytes}")
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
    job: dict[str, Any] = {"task": suite, "engine": engine, "threads": cell.threads, "form": cell.form}
    if suite == "train":
        text = options.texts[cell.corpus][0]
        return {**job, "text": text, "vocab_size": options.vocab_size, "pattern": PATTERNS["cl100k"]}
    if suite == "worst":
        job |= {"case": cell.corpus, "worst_bytes": options.worst_bytes}
    else:
        job |= {"text": options.text(engine, cell.corpus), "sizes": SMALL_SIZES}
    has_output = suite in ("encode", "decode") or cell.output in ENGINES[engine].outputs
    return {
        **job,
        "vocabulary": options.vocabularies[cell.vocabulary],
        "output": cell.output if has_output else ENGINES[engine].outputs[0],
        "reference": reference(options, cell.vocabulary, job.get("text")),
    }


def can_measure(suite: str, engine: str, cell: Cell) -> bool:
    """Whether an engine has such a cell; load and worst take engines with whatever output they have."""
    if suite == "train":
        return True
    its = ENGINES[engine]
    if suite == "decode":
        return cell.vocabulary in its.vocabularies and (cell.output == "list" or its.decodes_arrays)
    output = cell.output if suite in ("encode", "small") else its.outputs[0]
    return its.can(cell.vocabulary, cell.form, output, cell.threads)


def check(options: Options, store: Results) -> None:
    """Compare engines' ids with tiktoken's, on all of each text, before anything is timed.

    `store.header["checked"]` says what was compared, and which ways to encode differ. ClickException when
    fastcompress has one.
    """
    for vocabulary, corpus in itertools.product(options.vocabularies, options.texts):
        checked = store.header.setdefault("checked", {}).setdefault(f"{vocabulary} {corpus}", {})
        cell = Cell(vocabulary, corpus, "", "", max(options.threads))
        for engine in options.engines:
            if engine == "tiktoken" or engine in checked or vocabulary not in ENGINES[engine].vocabularies:
                continue
            result, error = processes.run("worker.py", job_for("check", engine, cell, options), options.interpreters)
            ways = [error] if error else result["differing"]
            if ways and engine == "fastcompress":
                raise click.ClickException(f"fastcompress on {vocabulary} {corpus}: ids differ: {', '.join(ways)}")
            checked[engine] = ways
            click.echo(f"check {vocabulary} {corpus} {engine}: {', '.join(ways) or 'equal ids'}", err=True)


def measure(suite: str, options: Options, store: Results) -> None:
    """Add the rounds that `store` lacks: in every round, cell by cell, the engines in the same order."""
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


def check_merges(store: Results) -> None:
    """Mark trainers whose merges differ from those they must equal. Raises ClickException if fastcompress is one."""
    for key, cell in store.cells.items():
        model = TRAINERS[key[0]].like
        expected = store.cells.get((model, *key[1:]), {}).get("tokens")
        if model and expected and "tokens" in cell:
            cell["exact"] = cell["tokens"] == expected and len(expected) == 1
            if not cell["exact"] and TRAINERS[key[0]].package == "fastcompress":
                raise click.ClickException(f"{key[0]} learned other merges than {model}: {cell['tokens']}, {expected}")
    store.save()


def figures(result: dict[str, Any], threads: int) -> str:
    """A round's measurements in short: CPU rates on one thread, wall rates on several, milliseconds, megabytes."""
    kind = "cpu" if threads == 1 else "wall"
    shown = [
        f"{value[kind]:.4g}" if kind in value else "/".join(f"{number:.4g}" for number in value.values())
        for value in result.values()
        if isinstance(value, dict)
    ]
    return " ".join(shown) + ("" if result.get("exact", True) else " (ids differ)")
