"""Results as Markdown: fastcompress beside the fastest exact peer of each cell, or every engine's own figures."""

from __future__ import annotations

import functools
import statistics
from pathlib import Path
from typing import Any

from engines import ENGINES, TRAINERS
from results_file import Results

OURS = "fastcompress"
UNITS = {"encode": "MB/s", "worst": "MB/s", "decode": "MB/s", "small": "calls a second"}
Key = tuple[Any, ...]


def render(store: Results, *, every_engine: bool) -> str:
    """What the figures depend on, and the table of a suite; `every_engine`: with each one's medians and spreads."""
    suite = store.header["suite"]
    if suite == "train":
        parts = [about(store), train_table(store)]
    elif suite == "load":
        parts = [about(store), load_table(store)]
    elif suite == "encode":
        parts = [about(store), ratio_tables(store), *([side_by_side(store)] if every_engine else []), inexact(store)]
    else:
        parts = [about(store), side_by_side(store), inexact(store)]
    return "\n\n".join(filter(None, parts)) + "\n"


def about(store: Results) -> str:
    """Date, machine, versions, rounds and how far these lie apart."""
    machine, versions = store.header["machine"], store.header.get("versions", {})
    peers = [f"{name} {number}" for name, number in sorted(versions.items()) if not name.startswith(OURS)]
    counts = {store.num_rounds(key) for key, cell in store.cells.items() if "error" not in cell} or {0}
    rounds = str(min(counts)) if len(counts) == 1 else f"{min(counts)} to {max(counts)}"
    spreads = [
        store.spread(key, name, clock(key))
        for key, cell in store.cells.items()
        for name in measured(cell)
        if clock(key) in cell[name]
    ] or [0.0]
    loads = [load for cell in store.cells.values() for load in cell.get("load_average", [])] or [0.0]
    cpu = f"{machine['cores']} cores of {machine['cpu']} ({', '.join(machine['vectors'])})"
    apart = f"{statistics.median(spreads):.0%} in the median cell, {max(spreads):.0%} at most"
    return (
        f"{store.header['date']}, {cpu}, Python {machine['python']}, commit {store.header['commit']}; "
        f"peers: {', '.join(peers) or 'none'}. Medians of {rounds} rounds; the best one exceeds the worst by {apart}; "
        f"load average {statistics.median(loads):.1f}. One thread in CPU time, several in wall time."
    )


def inexact(store: Results) -> str:
    """The engines that are not exact, marked * in the tables, and where."""
    found: dict[str, list[str]] = {}
    for text, engines in store.header.get("checked", {}).items():
        for engine, ways in engines.items():
            if ways and engine in engines_of(store):
                found.setdefault(engine, []).append(text)
    lines = [f"\\* ids of {engine} differ from tiktoken's on {', '.join(where)}." for engine, where in found.items()]
    return "\n".join(lines)


# ------------------------------------------------------------------ figures


def measured(cell: dict[str, Any]) -> list[str]:
    """The names of what a cell measured."""
    return [name for name, value in cell.items() if isinstance(value, dict)]


def clock(key: Key) -> str:
    """The clock that counts: CPU time on one thread, wall time on several."""
    return "cpu" if key[-1] == 1 else "wall"


def figure(store: Results, key: Key, name: str) -> float | None:
    """A median. An engine that cannot use several threads somewhere has no such cell: its one thread stands in."""
    return store.median(key, name, clock(key)) or store.median((*key[:-1], 1), name, clock(key))


def fastest_peer(store: Results, cell: Key, name: str) -> tuple[float, str] | None:
    """The rate and name of the fastest engine but ours whose ids are exact."""
    rates = []
    for engine in engines_of(store):
        rate = figure(store, (engine, *cell), name)
        if rate and engine != OURS and store.is_exact((engine, *cell)):
            rates.append((rate, engine))
    return max(rates, default=None)


def engines_of(store: Results) -> list[str]:
    present = {key[0] for key in store.cells}
    return [name for name in dict.fromkeys([*ENGINES, *TRAINERS]) if name in present]


def cells_of(store: Results) -> list[Key]:
    return list(dict.fromkeys(key[1:] for key in store.cells))


def names_of(store: Results) -> list[str]:
    return list(dict.fromkeys(name for cell in store.cells.values() for name in measured(cell)))


# ------------------------------------------------------------------ tables


def ratio_tables(store: Results) -> str:
    """A table an output and number of threads: rows are vocabulary, text and form, columns are passes."""
    parts = []
    for output, threads in dict.fromkeys(cell[3:] for cell in cells_of(store)):
        rows, ratios = [], []
        for row in dict.fromkeys(cell[:3] for cell in cells_of(store) if cell[3] == output):
            shown = []
            for name in names_of(store):
                cell = (*row, output, threads)
                ours, peer = figure(store, (OURS, *cell), name), fastest_peer(store, cell, name)
                shown.append(f"{ours / peer[0]:.2f} {peer[1]} ({short(ours)})" if ours and peer else short(ours))
                ratios += [ours / peer[0]] if ours and peer else []
            rows.append([*row, *shown])
        caption = f"To {output}, {plural(threads)}: times as fast as the fastest exact peer (MB/s of fastcompress)."
        table = markdown(["vocabulary", "text", "as", *names_of(store)], rows)
        parts += [caption, table, *([summary(ratios)] if ratios else [])]
    return "\n\n".join(parts)


def summary(ratios: list[float]) -> str:
    """How many cells are ahead."""
    ahead, behind = sum(ratio >= 1.2 for ratio in ratios), sum(ratio < 1 for ratio in ratios)
    return (
        f"{len(ratios)} cells: {ahead} at 1.2 times the fastest exact peer or more, {behind} behind it; "
        f"smallest {min(ratios):.2f}, median {statistics.median(ratios):.2f}."
    )


def side_by_side(store: Results) -> str:
    """Rows are cells and measurements, columns engines; the last one compares."""
    engines = engines_of(store)
    rows = []
    for cell in cells_of(store):
        for name in names_of(store):
            shown = [engine_cell(store, (engine, *cell), name) for engine in engines]
            ours, peer = figure(store, (OURS, *cell), name), fastest_peer(store, cell, name)
            ratio = f"{ours / peer[0]:.2f} {peer[1]}" if ours and peer else ""
            rows.append([*cell[:4], plural(cell[4]), name, *shown, ratio])
    ids_in = "ids from" if store.header["suite"] == "decode" else "ids to"
    titles = ["vocabulary", "text", "as", ids_in, "threads", "what", *engines, "ours / fastest exact"]
    varying = [i for i in range(len(titles)) if i >= 6 or len({row[i] for row in rows}) > 1]
    rows = [[row[i] for i in varying] for row in rows]
    unit = UNITS[store.header["suite"]]
    constant = ", ".join(str(part) for part in constants(store))
    return f"{unit} ({constant}; ± half the spread of the rounds):\n\n{markdown([titles[i] for i in varying], rows)}"


def constants(store: Results) -> list[Any]:
    """The parts of the key that all cells share."""
    columns = zip(*cells_of(store), strict=True)
    parts = [values[0] for values in columns if len(set(values)) == 1 and values[0]]
    return [plural(part) if isinstance(part, int) else part for part in parts]


def engine_cell(store: Results, key: Key, name: str) -> str:
    """An engine's median and half its spread, with * when its ids are not tiktoken's."""
    cell = store.cells.get(key, {})
    if name not in cell:
        return str(cell.get("error", ""))
    spread = f" ±{store.spread(key, name, clock(key)) / 2:.0%}" if store.num_rounds(key) > 1 else ""
    return f"{short(store.median(key, name, clock(key)))}{'' if store.is_exact(key) else '*'}{spread}"


def load_table(store: Results) -> str:
    """Rows are vocabularies and engines, columns what loading costs."""
    names = [(name, "cpu") for name in names_of(store) if name.endswith("ms")]
    names += [("memory", "loaded MB"), ("memory", "peak MB")]
    rows = []
    for cell in cells_of(store):
        for engine in engines_of(store):
            medians = [store.median((engine, *cell), name, kind) for name, kind in names]
            if any(medians):
                rows.append([*cell[:2], engine, *map(short, medians)])
    titles = [name if kind == "cpu" else kind for name, kind in names]
    caption = "Memory is above that of Python and NumPy; at its peak while encoding the text, results included."
    return f"{markdown(['vocabulary', 'text', 'engine', *titles], rows)}\n\n{caption}"


def train_table(store: Results) -> str:
    """Rows are trainers, columns seconds and megabytes by threads."""
    rows, cells = [], cells_of(store)
    for engine in engines_of(store):
        keys = [(engine, *cell) for cell in cells]
        shown = []
        for key in keys:
            times = [short(store.median(key, "seconds", kind)) for kind in ("cpu", "wall")]
            shown += [*times, short(store.median(key, "memory", "peak MB"))]
        compared = [cell["exact"] for cell in map(store.cells.get, keys) if cell and "exact" in cell]
        merges = f"{'as' if all(compared) else 'NOT as'} {TRAINERS[engine].like}" if compared else "its own"
        rows.append([engine, *shown, merges])
    titles = [f"{what}, {plural(cell[-1])}" for cell in cells for what in ("CPU s", "wall s", "peak MB")]
    texts = "; ".join(f"{name}, {what.partition(' bytes')[0]} bytes" for name, what in store.header["inputs"].items())
    table = markdown(["trainer", *titles, "merges"], rows)
    leads = map(functools.partial(train_lead, store), cells)
    return "\n\n".join(filter(None, [f"{cells[0][3]} tokens, {texts}:", table, *leads]))


def train_lead(store: Results, cell: Key) -> str:
    """How far fastcompress is ahead in a cell: CPU time on one thread, wall time on several."""
    kind = "cpu" if cell[-1] == 1 else "wall"
    seconds = {engine: store.median((engine, *cell), "seconds", kind) for engine in engines_of(store)}
    peers = {engine: value for engine, value in seconds.items() if value and not engine.startswith(OURS)}
    ours = seconds.get(OURS)
    if not ours or not peers:
        return ""
    fastest = min(peers, key=peers.__getitem__)
    what = "CPU" if kind == "cpu" else "wall"
    return (
        f"{plural(cell[-1])}: {peers[fastest] / ours:.2f} times as fast as {fastest}, the fastest peer ({what} time)."
    )


# ------------------------------------------------------------------ text


def short(value: float | None) -> str:
    """Three digits; thousands as k, millions as M."""
    if value is None:
        return ""
    for size, letter in ((1e6, "M"), (1e4, "k")):
        if value >= size:
            return f"{value / (1e6 if letter == 'M' else 1e3):.3g}{letter}"
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def plural(threads: int) -> str:
    return f"{threads} thread{'s' * (threads > 1)}"


def markdown(titles: list[str], rows: list[list[Any]]) -> str:
    lines = [titles, ["---"] * len(titles), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def insert(path: Path, suite: str, text: str) -> None:
    """Replaces what stands between the suite's markers in a file. ValueError when it has none."""
    begin, end = f"<!-- benchmark {suite}: begin -->", f"<!-- benchmark {suite}: end -->"
    before, found, rest = path.read_text().partition(begin)
    _, found_end, after = rest.partition(end)
    if not (found and found_end):
        raise ValueError(f"{path} has no {begin} ... {end}")
    path.write_text(f"{before}{begin}\n\n{text}\n{end}{after}")
