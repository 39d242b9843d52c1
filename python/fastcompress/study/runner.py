"""The runner of studies, which runs the cells one after another and writes the report.

Output folder:

    report.html, report.json        the report
    arms/study.json                 every setting, so that another study in the same folder is refused (``folder.py``)
    arms/<arm>/result.json          the settings of the arm; once it is done, its part of the report
    arms/<arm>/tokens/              its shards
    arms/<arm>/run/                 its training run: `fastcompress generate` reads it as it is, `fastcompress eval` too
                                    if it is told the text (``--corpus``), which a study does not write there
    arms/<arm>/seed-<n>/            the same three for every seed after the first

A cell that fails is a row of the report that says why, and is made when the study is run again. A study that was
stopped goes on where it was when run again with the same settings: finished arms are taken from their result.json, an
unfinished one resumes from its last checkpoint. Run again when complete, it writes the same report. Run again with more
seeds, it makes those that are missing.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from fastcompress import __version__
from fastcompress._locks import locked
from fastcompress.data.corpora import Corpus, load_corpus
from fastcompress.errors import ConfigError
from fastcompress.study.arms import Arm, Study, find_study
from fastcompress.study.cells import Cell, Entry, make_cell, must_stop_study
from fastcompress.study.folder import claim, make_folder, study_settings
from fastcompress.study.report import FORMAT, VERSION, write_report
from fastcompress.study.seeds import over_seeds
from fastcompress.training.device import choose_device


def run_study(
    name: str | Study,
    output: Path,
    *,
    seed: int = 0,
    seeds: int = 1,
    device: str = "auto",
    progress: bool = True,
    isolate: bool = True,
) -> Path:
    """Run a study and return the path of its ``report.html``.

    Args:
        name: One of ``arms.STUDIES``, or a study of your own.
        output: The study's folder; made if it is missing.
        seed: Seed for weights, batches, dropout and samples.
        seeds: How many seeds to make every arm under, from ``seed`` on. From two on, the report has the mean and the
            standard deviation of each arm's bits per byte.
        device: As in ``MachineConfig``.
        progress: Print a line for each stage and show progress bars.
        isolate: Run each cell in a process of its own; a script that runs a study then needs the usual
            ``if __name__ == "__main__":``.

    Raises:
        ConfigError: There is no study of that name, or ``seeds`` is below 1.
        OutputError: ``output`` cannot be written, holds another study or arms made otherwise, or another process
            writes to it.
        FormatError: A file in ``output`` is damaged.
        Others: The error of the first cell, if all cells failed.
    """
    if seeds < 1:
        raise ConfigError(f"seeds is {seeds}; it must be at least 1")
    study = find_study(name) if isinstance(name, str) else name
    corpus = load_corpus(study.corpus)
    directory = Path(output)
    make_folder(directory / "arms", directory)
    with locked(directory):
        settings = study_settings(study, corpus, seed, choose_device(device).type)
        claim(directory, settings)
        splits = ", ".join(f"{split} {corpus.num_bytes(split):,} bytes" for split in ("train", study.evaluated_split))
        _say(f"{study.name}: {corpus.name} ({splits}), {study.training_flops:.2g} training FLOPs an arm", progress)
        cells = [
            Cell(study, arm, one, study.training_flops, device, _folder(directory, arm, seed, one),
                 {**settings, "seed": one})
            for one in range(seed, seed + seeds)
            for arm in study.arms
        ]  # fmt: skip
        entries, failures = _make_all(cells, seeds > 1, progress=progress, isolate=isolate)
        return write_report(_report(study, corpus, entries, failures, seed, seeds), directory)


def _folder(directory: Path, arm: Arm, first_seed: int, seed: int) -> Path:
    folder = directory / "arms" / arm.name
    return folder if seed == first_seed else folder / f"seed-{seed}"


def _make_all(
    cells: list[Cell], say_seeds: bool, *, progress: bool, isolate: bool
) -> tuple[dict[str, dict[int, Entry]], list[dict[str, str]]]:
    """Make cells one after the other; return the entries of each arm by seed, and the rows of what failed.

    Raises what the first one failed with, if all of them failed.
    """
    entries: dict[str, dict[int, Entry]] = {}
    failures, errors = [], []
    for number, cell in enumerate(cells, start=1):
        label = cell.arm.label + (f", seed {cell.seed}" if say_seeds else "")
        _say(f"[{number}/{len(cells)}] {label}", progress)
        try:
            entry = make_cell(cell, progress=progress, isolate=isolate)
        except BaseException as error:
            if must_stop_study(error):
                raise
            errors.append(error)
            failures.append({"name": cell.arm.name, "label": label, "error": f"{type(error).__name__}: {error}"})
            _say(f"    failed: {error}", True)
        else:
            entries.setdefault(cell.arm.name, {})[cell.seed] = entry
            _say(f"    {_outcome(entry)}", progress)
    if not entries:
        raise errors[0]
    return entries, failures


def _outcome(entry: Entry) -> str:
    return f"{entry['evaluation']['bits_per_byte']:.4f} bits per byte, {entry['bytes_per_token']:.2f} bytes a token"


def _report(
    study: Study,
    corpus: Corpus,
    entries: dict[str, dict[int, Entry]],
    failures: list[dict[str, str]],
    seed: int,
    seeds: int,
) -> dict[str, Any]:
    """A function of the cells alone: the date is the last finished one's, the time is the sum of theirs."""
    arms = [over_seeds(entries[arm.name]) for arm in study.arms if arm.name in entries]
    newest = max((one for by_seed in entries.values() for one in by_seed.values()), key=lambda one: one["finished"])
    options = (f" --seed {seed}" if seed else "") + (f" --seeds {seeds}" if seeds > 1 else "")
    return {
        "format": FORMAT,
        "version": VERSION,
        "name": study.name,
        "created": newest["finished"],
        "package_version": __version__,
        "command": f"fastcompress study {study.name}{options}",
        "seed": seed,
        "machine": newest["machine"],
        "corpus": _describe_corpus(corpus),
        "budget": {"training_flops": study.training_flops},
        "tuning": study.tuning,
        "evaluated_split": study.evaluated_split,
        "wall_seconds": sum(arm["wall_seconds"] for arm in arms),
        "arms": arms,
        "failures": failures,
    }


def _describe_corpus(corpus: Corpus) -> dict[str, Any]:
    return {
        "name": corpus.name,
        "fingerprint": corpus.fingerprint,
        "splits": {
            split: {"documents": len(getattr(corpus, split)), "bytes": corpus.num_bytes(split)}
            for split in ("train", "validation", "test")
        },
    }


def _say(line: str, enabled: bool) -> None:
    if enabled:
        print(line, file=sys.stderr, flush=True)
