"""The runner of studies, which runs the cells one after another and writes the report.

Output folder:

    report.html, report.json        the report
    arms/study.json                 every setting, so that another study in the same folder is refused (``folder.py``)
    arms/<arm>/result.json          the settings of the arm; once it is done, its part of the report
    arms/<arm>/tokens/              its shards
    arms/<arm>/run/                 its training run: `fastcompress generate` reads it as it is, `fastcompress eval` too
                                    if it is told the text (``--corpus``), which a study does not write there

A cell that fails is a row of the report that says why; it is run again with the study. A study that was stopped
continues when it is run again with the same settings: finished arms are read from their result.json, and an unfinished
one resumes from its last checkpoint. A complete study that is run again writes the same report.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from fastcompress import __version__
from fastcompress._locks import locked
from fastcompress.data.corpora import Corpus, load_corpus
from fastcompress.study.arms import Study, find_study
from fastcompress.study.cells import Cell, Entry, make_cell, must_stop_study
from fastcompress.study.folder import claim, make_folder, study_settings
from fastcompress.study.report import FORMAT, VERSION, write_report
from fastcompress.training.device import choose_device


def run_study(
    name: str | Study,
    output: Path,
    *,
    seed: int = 0,
    device: str = "auto",
    progress: bool = True,
    isolate: bool = True,
) -> Path:
    """Run a study and return the path of its ``report.html``.

    Args:
        name: One of ``arms.STUDIES``, or a study of your own.
        output: The study's folder; made if it is missing.
        seed: Seed for weights, batches, dropout and samples.
        device: As in ``MachineConfig``.
        progress: Print a line for each stage and show progress bars.
        isolate: Run each cell in a process of its own; a script that runs a study then needs the usual
            ``if __name__ == "__main__":``.

    Raises:
        ConfigError: There is no study of that name.
        OutputError: ``output`` cannot be written, holds another study or arms with other settings, or another process
            writes to it.
        FormatError: A file in ``output`` is damaged.
        Others: The error of the first cell, if all cells failed.
    """
    study = find_study(name) if isinstance(name, str) else name
    corpus = load_corpus(study.corpus)
    directory = Path(output)
    make_folder(directory / "arms", directory)
    with locked(directory):
        settings = study_settings(study, corpus, seed, choose_device(device).type)
        claim(directory, settings)
        splits = ", ".join(f"{split} {corpus.num_bytes(split):,} bytes" for split in ("train", study.evaluated_split))
        _say(f"{study.name}: {corpus.name} ({splits}), {study.training_flops:.2g} training FLOPs an arm", progress)
        entries, errors = [], {}
        for number, arm in enumerate(study.arms, start=1):
            _say(f"[{number}/{len(study.arms)}] {arm.label}", progress)
            folder = directory / "arms" / arm.name
            cell = Cell(study, arm, seed, study.training_flops, device, folder, settings)
            try:
                entries.append(make_cell(cell, progress=progress, isolate=isolate))
            except BaseException as error:
                if must_stop_study(error):
                    raise
                errors[arm.name] = error
                _say(f"    failed: {error}", True)
            else:
                _say(f"    {_outcome(entries[-1])}", progress)
        if not entries:
            raise next(iter(errors.values()))
        return write_report(_report(study, corpus, entries, errors, seed), directory)


def _outcome(entry: Entry) -> str:
    return f"{entry['evaluation']['bits_per_byte']:.4f} bits per byte, {entry['bytes_per_token']:.2f} bytes a token"


def _report(
    study: Study, corpus: Corpus, arms: list[Entry], errors: dict[str, BaseException], seed: int
) -> dict[str, Any]:
    """Make the report from the cells alone: its date is that of the last one finished, its time their sum."""
    newest = max(arms, key=lambda arm: str(arm["finished"]))
    return {
        "format": FORMAT,
        "version": VERSION,
        "name": study.name,
        "created": newest["finished"],
        "package_version": __version__,
        "command": f"fastcompress study {study.name}" + (f" --seed {seed}" if seed else ""),
        "seed": seed,
        "machine": newest["machine"],
        "corpus": _describe_corpus(corpus),
        "budget": {"training_flops": study.training_flops},
        "tuning": study.tuning,
        "evaluated_split": study.evaluated_split,
        "wall_seconds": sum(arm["wall_seconds"] for arm in arms),
        "arms": arms,
        "failures": [
            {"name": arm.name, "label": arm.label, "error": f"{type(errors[arm.name]).__name__}: {errors[arm.name]}"}
            for arm in study.arms
            if arm.name in errors
        ],
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
