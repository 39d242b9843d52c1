"""Pieces that every table is made of: Markdown, numbers of three digits, and ratios under several conditions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def short(value: float | None) -> str:
    """Return a number with three digits, thousands as k, millions as M; nothing for None."""
    if value is None:
        return ""
    for size, letter in ((1e6, "M"), (1e4, "k")):
        if value >= size:
            return f"{value / (1e6 if letter == 'M' else 1e3):.3g}{letter}"
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def plural(threads: int) -> str:
    """Return "1 thread" or "2 threads"."""
    return f"{threads} thread{'s' * (threads > 1)}"


def markdown(titles: list[str], rows: list[list[Any]]) -> str:
    """Return a Markdown table."""
    lines = [titles, ["---"] * len(titles), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def ratio(found: Sequence[tuple[float, str] | None]) -> str:
    """Return the worst of several ratios, with its detail, and then each of them by the letter of its condition.

    Args:
        found: For each condition, in order, a ratio and what it was measured with; None where nothing was measured.
    """
    present = [(number, detail, LETTERS[i]) for i, (number, detail) in enumerate_present(found)]
    if not present:
        return ""
    worst, detail, _ = min(present)
    if len(found) == 1:
        return f"{worst:.2f} {detail}".strip()
    each = ", ".join(f"{letter} {number:.2f}" for number, _, letter in present)
    return f"**{worst:.2f}** {detail}; {each}"


def enumerate_present(found: Sequence[tuple[float, str] | None]) -> list[tuple[int, tuple[float, str]]]:
    """Return the entries that are not None, each with its index."""
    return [(i, entry) for i, entry in enumerate(found) if entry is not None]


def conditions(headers: Sequence[dict[str, Any]], lines: Sequence[str]) -> str:
    """Return what each results file depends on: one line alone, or a list by letter if there are several.

    Args:
        headers: The headers of the files.
        lines: The description of each.
    """
    described = [
        line + (" Beside a process that streams through 64 MB on another core." if header.get("neighbour") else "")
        for header, line in zip(headers, lines, strict=True)
    ]
    if len(described) == 1:
        return described[0]
    listed = "\n".join(f"- **{LETTERS[i]}**: {line}" for i, line in enumerate(described))
    return f"Each ratio is the worst of these conditions, followed by each of them:\n\n{listed}"


def lettered(tables: Sequence[str]) -> list[str]:
    """Return tables, one per condition, each under the letter of its condition if there are several."""
    return list(tables) if len(tables) == 1 else [f"**{LETTERS[i]}**:\n\n{table}" for i, table in enumerate(tables)]


def machine(header: dict[str, Any]) -> str:
    """Return date, processor, Python and commit of a results file."""
    its = header["machine"]
    cpu = f"{its['cores']} cores of {its['cpu']} ({', '.join(its['vectors'])})"
    return f"{header['date']}, {cpu}, Python {its['python']}, commit {header['commit']}"


def peers(header: dict[str, Any]) -> str:
    """Return the names and versions of the other libraries in a results file."""
    versions = header.get("versions", {})
    return ", ".join(f"{name} {number}" for name, number in sorted(versions.items()) if not is_ours(name)) or "none"


def is_ours(engine: str) -> bool:
    """Return whether an engine is this library, in any of its settings."""
    return engine.startswith("fastcompress")
