"""The outcome of a search as a table for people, and its best settings as TOML."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any

from fastcompress.training.config import HORIZONS, SECTIONS, TrainConfig

_HEADER = ("", "trial", "batch", "rate", "model", "parameters", "bits/byte", "steps", "passes", "FLOPs", "seconds")


def table_of(report: Mapping[str, Any]) -> str:
    """Return the table of trials in the order in which they were run, with the best one marked and the cost."""
    rows: list[tuple[str, ...]] = [_HEADER]
    rows += [_row(number, trial, report["best"]) for number, trial in enumerate(report["trials"], 1)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEADER))]
    lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    failed = [f"trial {number}: {trial['error']}" for number, trial in enumerate(report["trials"], 1) if trial["error"]]
    return "\n".join([*lines, *failed, *_summary(report)]) + "\n"


def _row(number: int, trial: Mapping[str, Any], best: str | None) -> tuple[str, ...]:
    def figure(name: str, form: str) -> str:
        return "-" if trial[name] is None else format(trial[name], form)

    return (
        "*" if trial["name"] == best else "",
        str(number),
        str(trial["batch_size"]),
        f"{trial['learning_rate']:.3g}",
        " ".join(f"{name}={value}" for name, value in trial["size"].items()) or "as set",
        figure("num_parameters", ","),
        figure("bits_per_byte", ".4f"),
        figure("steps", ","),
        figure("passes", ".2f"),
        figure("flops", ".3g"),
        figure("seconds", ".1f"),
    )


def _summary(report: Mapping[str, Any]) -> list[str]:
    cost = report["cost"]
    budget = " ".join(f"{value:,g} {name}" for name, value in report["budget"].items() if value is not None)
    count = f"{cost['trials']} trial{'' if cost['trials'] == 1 else 's'}"
    lines = [f"{count} of {budget} each: {cost['flops']:.3g} FLOPs, {cost['seconds']:.0f} s of training"]
    if not report["is_complete"]:
        lines.append("the search is not complete")
    lines += [
        f"the best {axis.replace('_', ' ')} is at the end of those given; one beyond it may be better"
        for axis in report["at_the_end_of"]
    ]
    return lines


def toml_of(model: Mapping[str, Any], training: TrainConfig) -> str:
    """Return settings, without those of the machine, as TOML for ``read_toml``.

    TOML has no None: such a setting is left out if None is its default, and otherwise named in a comment.
    """
    top: dict[str, Any] = {name: getattr(training, name) for name in (*HORIZONS, "batch_size", "seed")}
    text = _assignments(top, {}) + "\n[model]\n" + _assignments(model, {})
    for name in SECTIONS:
        section = getattr(training, name)
        if name != "machine":
            defaults = {field.name: field.default for field in dataclasses.fields(section)}
            text += f"\n[{name}]\n" + _assignments(dataclasses.asdict(section), defaults)
    return text


def _assignments(values: Mapping[str, Any], defaults: Mapping[str, Any]) -> str:
    """Return lines of "name = value"; strings, numbers and booleans are written as in JSON."""
    lines = []
    for name, value in values.items():
        if value is not None:
            lines.append(f"{name} = {json.dumps(value)}\n")
        elif defaults.get(name) is not None:
            lines.append(f"# pass --set {name}=none, which TOML cannot say\n")
    return "".join(lines)
