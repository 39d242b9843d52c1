"""Results as Markdown: fastcompress beside the fastest exact peer of each cell, and every engine's own figures."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from results_file import Results

OURS = "fastcompress"
UNITS = {"encode": "MB/s", "worst": "MB/s", "decode": "MB/s", "small": "thousand calls a second", "load": "ms, MB"}
Key = tuple[Any, ...]


def render(store: Results) -> str:
    """The tables of one results file."""
    machine, versions = store.header["machine"], store.header.get("versions", {})
    about = (
        f"{store.header['date']}, {machine['cores']} cores of {machine['cpu']} ({', '.join(machine['vectors'])}), "
        f"Python {machine['python']}, commit {store.header['commit']}; medians of {num_rounds(store)} rounds. "
        f"Peers: {', '.join(f'{name} {number}' for name, number in versions.items() if name != OURS)}."
    )
    parts = [about]
    if any(key[0] == OURS for key in store.cells) and store.header["suite"] != "load":
        parts.append(ratio_tables(store))
    parts.append(engine_tables(store))
    if differing := store.header.get("differing"):
        parts.append(
            "Ids differ from tiktoken's:\n" + "\n".join(f"- {name}: {'; '.join(at)}" for name, at in differing.items())
        )
    return "\n\n".join(parts) + "\n"


def num_rounds(store: Results) -> str:
    """The rounds of its cells, "3 to 5" where they are not the same."""
    counts = {store.num_rounds(key) for key, cell in store.cells.items() if "error" not in cell} or {0}
    return str(min(counts)) if len(counts) == 1 else f"{min(counts)} to {max(counts)}"


def figure(store: Results, key: Key, name: str) -> float | None:
    """A median rate: of CPU time on one thread, of wall time on several.

    An engine that has no cell of its own on several threads (it uses one) is taken from its cell on one.
    """
    threads = key[-1]
    if threads == 1:
        return store.median(key, name, "cpu")
    return store.median(key, name, "wall") or store.median((*key[:-1], 1), name, "wall")


def fastest_peer(store: Results, engines: Iterable[str], cell: Key, name: str) -> tuple[float, str] | None:
    """The rate and name of the fastest engine but ours whose ids are exact."""
    rates = []
    for engine in engines:
        rate = figure(store, (engine, *cell), name)
        if rate and engine != OURS and store.is_exact((engine, *cell)):
            rates.append((rate, engine))
    return max(rates, default=None)


def ratio_tables(store: Results) -> str:
    """A table an output: rows are vocabulary, text and form, columns are threads and pass."""
    engines = list(dict.fromkeys(key[0] for key in store.cells))
    cells = list(dict.fromkeys(key[1:] for key in store.cells))
    names = measurements(store)
    parts = []
    for output in dict.fromkeys(cell[3] for cell in cells):
        threads = sorted({cell[4] for cell in cells})
        columns = list(itertools.product(threads, names))
        lines = [
            f"**{output}**: {UNITS[store.header['suite']]} of fastcompress, and its ratio to the fastest exact peer",
            "",
        ]
        lines += table_head(["", *(f"{name}, {number} thread{'s' * (number > 1)}" for number, name in columns)])
        ratios = []
        for row in dict.fromkeys(cell[:3] for cell in cells if cell[3] == output):
            shown = []
            for number, name in columns:
                cell = (*row, output, number)
                ours, peer = figure(store, (OURS, *cell), name), fastest_peer(store, engines, cell, name)
                if not ours or not peer:
                    shown.append(short(ours) if ours else "")
                    continue
                ratios.append(ours / peer[0])
                shown.append(f"{short(ours)} ({ours / peer[0]:.2f} {peer[1]})")
            lines.append("| " + " | ".join([" ".join(filter(None, row)), *shown]) + " |")
        if ratios:
            lines += ["", summary(ratios)]
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def summary(ratios: list[float]) -> str:
    """How many cells are ahead."""
    ahead = sum(ratio >= 1.2 for ratio in ratios)
    behind = sum(ratio < 1 for ratio in ratios)
    return (
        f"{len(ratios)} cells: {ahead} at 1.2 times the fastest peer or more, {behind} behind it; "
        f"smallest {min(ratios):.2f}, median {statistics.median(ratios):.2f}."
    )


def engine_tables(store: Results) -> str:
    """Every engine's medians, and the spread of its rounds, a table an output and thread count."""
    names = measurements(store)
    engines = list(dict.fromkeys(key[0] for key in store.cells))
    parts = []
    for output, threads in dict.fromkeys(key[4:] for key in store.cells):
        cells = list(dict.fromkeys(key[1:] for key in store.cells if key[4:] == (output, threads)))
        lines = [f"{output}, {threads} thread{'s' * (threads > 1)}: {' / '.join(names)} (spread of rounds)", ""]
        lines += table_head(["", *engines])
        for cell in cells:
            shown = [engine_cell(store, (engine, *cell), names) for engine in engines]
            lines.append("| " + " | ".join([" ".join(filter(None, cell[:3])), *shown]) + " |")
        parts.append("\n".join(lines))
    return "<details><summary>Every engine</summary>\n\n" + "\n\n".join(parts) + "\n\n</details>"


def engine_cell(store: Results, key: Key, names: list[str]) -> str:
    """Medians of an engine, with * when its ids are not tiktoken's."""
    cell = store.cells.get(key)
    if cell is None:
        return ""
    if "error" in cell:
        return "failed"
    kind = "cpu" if key[-1] == 1 else "wall"
    shown, spreads = [], []
    for name in names:
        for field in (kind,) if kind in cell[name] else cell[name]:
            median = store.median(key, name, field) or 0.0
            shown.append(short(median))
            spreads.append(store.spread(key, name, field))
    mark = "" if store.is_exact(key) else "*"
    return f"{' / '.join(shown)}{mark} (±{max(spreads) / 2:.0%})"


def measurements(store: Results) -> list[str]:
    """The names of what was measured, in the order of the worker."""
    return list(
        dict.fromkeys(name for cell in store.cells.values() for name, value in cell.items() if isinstance(value, dict))
    )


def short(value: float) -> str:
    """Three digits, thousands as k."""
    return f"{value / 1000:.3g}k" if value >= 10_000 else f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def table_head(titles: list[str]) -> list[str]:
    return ["| " + " | ".join(titles) + " |", "|" + " --- |" * len(titles)]


def insert(path: Path, suite: str, text: str) -> None:
    """Replaces what stands between the suite's markers in a file. ValueError when it has none."""
    begin, end = f"<!-- benchmark {suite}: begin -->", f"<!-- benchmark {suite}: end -->"
    before, found, rest = path.read_text().partition(begin)
    _, found_end, after = rest.partition(end)
    if not (found and found_end):
        raise ValueError(f"{path} has no {begin} ... {end}")
    path.write_text(f"{before}{begin}\n\n{text}\n{end}{after}")
