"""Tables of the tokenizer suites: fastcompress beside the fastest exact peer of each cell, or all engines' figures."""

from __future__ import annotations

import statistics
from typing import Any

from engines import ENGINES, TRAINERS
from results_file import Results
from table_text import conditions, lettered, machine, markdown, peers, plural, ratio, short

OURS = "fastcompress"
UNITS = {"encode": "MB/s", "worst": "MB/s", "decode": "MB/s", "small": "calls per second"}
SUITES = (*UNITS, "load", "train")
Key = tuple[Any, ...]


def render(stores: list[Results], *, every_engine: bool) -> str:
    """Return the tables of one suite from the results of one or several conditions.

    Args:
        stores: One results file per condition.
        every_engine: Add each engine's medians and spreads; with one condition only.
    """
    suite = stores[0].header["suite"]
    parts = [conditions([store.header for store in stores], [about(store) for store in stores])]
    if suite == "train":
        parts += lettered([train_table(store) for store in stores])
        parts += train_leads(stores)
    elif suite == "load":
        parts += lettered([load_table(store) for store in stores])
    elif len(stores) > 1 or suite == "encode":
        parts.append(ratio_tables(stores))
        parts += [side_by_side(store) for store in stores if every_engine]
    else:
        parts.append(side_by_side(stores[0]))
    parts += dict.fromkeys(inexact(store) for store in stores if suite not in ("load", "train"))
    return "\n\n".join(filter(None, parts)) + "\n"


def about(store: Results) -> str:
    """Return date, machine, versions, rounds and how far these lie apart."""
    counts = {store.num_rounds(key) for key, cell in store.cells.items() if "error" not in cell} or {0}
    rounds = f"{min(counts)} to {max(counts)} rounds" if len(counts) > 1 else f"{min(counts)} round"
    rounds += "s" * (counts != {1} and len(counts) == 1)
    spreads = [
        store.spread(key, name, clock(key))
        for key, cell in store.cells.items()
        for name in measured(cell)
        if clock(key) in cell[name]
    ] or [0.0]
    loads = [load for cell in store.cells.values() for load in cell.get("load_average", [])] or [0.0]
    apart = f"{statistics.median(spreads):.0%} in the median cell, {max(spreads):.0%} at most"
    return (
        f"{machine(store.header)}; peers: {peers(store.header)}. Medians of {rounds}; the best exceeds the "
        f"worst round by {apart}; load average {statistics.median(loads):.1f}. "
        "One thread in CPU time, several in wall time."
    )


def inexact(store: Results) -> str:
    """Return a line for each engine that is not exact, which is marked * in the tables, and where it is not."""
    found: dict[str, list[str]] = {}
    for text, engines in store.header.get("checked", {}).items():
        for engine, ways in engines.items():
            if ways and engine in engines_of(store):
                found.setdefault(engine, []).append(text)
    lines = [f"\\* ids of {engine} differ from tiktoken's on {', '.join(where)}." for engine, where in found.items()]
    return "\n".join(lines)


# ------------------------------------------------------------------ figures


def measured(cell: dict[str, Any]) -> list[str]:
    """Return the names of the measurements of a cell."""
    return [name for name, value in cell.items() if isinstance(value, dict)]


def clock(key: Key) -> str:
    """Return the clock that counts: CPU time on one thread, wall time on several."""
    return "cpu" if key[-1] == 1 else "wall"


def figure(store: Results, key: Key, name: str) -> float | None:
    """Return a median. Where an engine cannot use several threads, its figure for one thread stands in."""
    return store.median(key, name, clock(key)) or store.median((*key[:-1], 1), name, clock(key))


def fastest_peer(store: Results, cell: Key, name: str) -> tuple[float, str] | None:
    """Return the rate and the name of the fastest other engine whose ids are exact."""
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


def ratio_tables(stores: list[Results]) -> str:
    """Return a table for each output and number of threads: rows are vocabulary, text and form, columns are passes."""
    parts = []
    all_cells = list(dict.fromkeys(cell for store in stores for cell in cells_of(store)))
    names = list(dict.fromkeys(name for store in stores for name in names_of(store)))
    way = "From" if stores[0].header["suite"] == "decode" else "To"
    for output, threads in dict.fromkeys(cell[3:] for cell in all_cells):
        rows, ratios = [], []
        for row in dict.fromkeys(cell[:3] for cell in all_cells if cell[3:] == (output, threads)):
            found = [[lead(store, (*row, output, threads), name) for store in stores] for name in names]
            rows.append([*row, *map(ratio, found)])
            ratios += [min(filter(None, each))[0] for each in found if any(each)]
        if not ratios:
            continue  # no peer has this output
        unit = UNITS[stores[0].header["suite"]]
        caption = f"{way} {output}, {plural(threads)}: times as fast as the fastest exact peer (fastcompress, {unit})."
        table = markdown(["vocabulary", "text", "as", *names], rows)
        parts += [caption, table, summary(ratios)]
    return "\n\n".join(parts)


def lead(store: Results, cell: Key, name: str) -> tuple[float, str] | None:
    """Return how many times as fast as the fastest exact peer we are, and that peer and our rate."""
    ours, peer = figure(store, (OURS, *cell), name), fastest_peer(store, cell, name)
    return (ours / peer[0], f"{peer[1]} ({short(ours)})") if ours and peer else None


def summary(ratios: list[float]) -> str:
    """Return the number of cells that are ahead, and behind."""
    ahead, behind = sum(ratio >= 1.2 for ratio in ratios), sum(ratio < 1 for ratio in ratios)
    return (
        f"{len(ratios)} cells: {ahead} at 1.2 times the fastest exact peer or more, {behind} behind it; "
        f"smallest {min(ratios):.2f}, median {statistics.median(ratios):.2f}."
    )


def side_by_side(store: Results) -> str:
    """Return a table whose rows are cells and measurements and whose columns are engines; the last column compares."""
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
    """Return the parts of the key that all cells share."""
    columns = zip(*cells_of(store), strict=True)
    parts = [values[0] for values in columns if len(set(values)) == 1 and values[0]]
    return [plural(part) if isinstance(part, int) else part for part in parts]


def engine_cell(store: Results, key: Key, name: str) -> str:
    """Return an engine's median and half its spread, marked * if its ids are not tiktoken's."""
    cell = store.cells.get(key, {})
    if name not in cell:
        return str(cell.get("error", ""))
    spread = f" ±{store.spread(key, name, clock(key)) / 2:.0%}" if store.num_rounds(key) > 1 else ""
    return f"{short(store.median(key, name, clock(key)))}{'' if store.is_exact(key) else '*'}{spread}"


def load_table(store: Results) -> str:
    """Return a table whose rows are vocabularies and engines and whose columns are the costs of loading."""
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
    """Return a table whose rows are trainers and whose columns are seconds and megabytes by threads."""
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
    return f"{cells[0][3]} tokens, {texts}:\n\n{table}"


def train_leads(stores: list[Results]) -> list[str]:
    """Return a line for each number of threads that says how far fastcompress is ahead."""
    lines = []
    for cell in dict.fromkeys(cell for store in stores for cell in cells_of(store)):
        found = [train_lead(store, cell) for store in stores]
        if any(found):
            lines.append(f"Times as fast as the fastest peer, {plural(cell[-1])}: {ratio(found)}.")
    return lines


def train_lead(store: Results, cell: Key) -> tuple[float, str] | None:
    """Return how far fastcompress is ahead in a cell: CPU time on one thread, wall time on several."""
    kind = "cpu" if cell[-1] == 1 else "wall"
    seconds = {engine: store.median((engine, *cell), "seconds", kind) for engine in engines_of(store)}
    peers = {engine: value for engine, value in seconds.items() if value and not engine.startswith(OURS)}
    ours = seconds.get(OURS)
    if not ours or not peers:
        return None
    fastest = min(peers, key=peers.__getitem__)
    return peers[fastest] / ours, f"{fastest} ({'CPU' if kind == 'cpu' else 'wall'} time)"
