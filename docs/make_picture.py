"""Draw docs/speed.svg from the newest benchmark results: `python docs/make_picture.py [FILE]`.

The bars are the rates at which tokenizers encode unseen English with cl100k on one thread. If several conditions were
measured (machines, with and without a neighbour), the picture shows the one with the most tokenizers, and of those the
one in which fastcompress is least far ahead.
"""

from __future__ import annotations

import html
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "benchmarks"))

import table  # noqa: E402
from engines import ENGINES as KNOWN  # noqa: E402
from results_file import Results  # noqa: E402

ENGINES = ("fastcompress", "fastokens", "gigatoken", "tiktoken", "tokenizers")
SUITES = {"numpy": "encode", "list": "encode-lists"}  # results by output
CELL = ("cl100k", "english", "documents")
PASS = "unseen"
WIDTH, LEFT, RIGHT, ROW, TOP = 560, 164, 70, 36, 62
Rates = dict[str, tuple[float, str]]


def conditions(results: Path) -> list[tuple[dict[str, Any], Rates]]:
    """Return the header and the rates of each condition: a machine, with or without a neighbour."""
    found: dict[tuple[str, bool], dict[str, Results]] = {}
    for output, suite in SUITES.items():
        for path in table.newest(results, suite):
            store = Results.open(path)
            found.setdefault((path.parent.name, bool(store.header.get("neighbour"))), {})[output] = store
    measured = [(next(iter(stores.values())).header, rates(stores)) for stores in found.values()]
    return [(header, its) for header, its in measured if "fastcompress" in its and len(its) > 1]


def rates(stores: dict[str, Results]) -> Rates:
    """Return each engine's MB/s and output: arrays, or lists from an engine that returns no arrays. Exact ids only."""
    found: Rates = {}
    for engine in ENGINES:
        output = KNOWN[engine].outputs[0]
        key = (engine, *CELL, output, 1)
        rate = stores[output].median(key, PASS, "cpu") if output in stores else None
        if rate and stores[output].is_exact(key):
            found[engine] = rate, output
    return found


def lead(found: Rates) -> float:
    """Return how many times as fast as the fastest other engine fastcompress is."""
    return found["fastcompress"][0] / max(rate for name, (rate, _) in found.items() if name != "fastcompress")


def least_ahead(results: Path) -> tuple[dict[str, Any], Rates]:
    """Return the header and the rates of the condition with the most engines; of several, where the lead is least."""
    return min(conditions(results), key=lambda one: (-len(one[1]), lead(one[1])))


def draw(header: dict[str, Any], found: Rates) -> str:
    """Return the picture: a bar for each engine, the fastest first, readable on light and on dark pages."""
    machine = header["machine"]
    title = "English text to cl100k ids, one thread, in MB/s"
    beside = ", beside a busy neighbour" if header.get("neighbour") else ""
    listing = [engine for engine, (_, output) in found.items() if output == "list"]
    notes = [
        f"Longer is faster. {PASS.capitalize()} text, ids in "
        + (f"arrays ({', '.join(listing)}: lists)." if listing else "arrays."),
        f"{machine['cpu']}, {machine['cores']} cores{beside}; {header['date']}",
    ]
    height = TOP + ROW * len(found) + 56
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
        'font-family="system-ui, sans-serif" font-size="17" fill="#1f2328">',
        f"<title>{html.escape(title)}</title>",
        f'<rect width="{WIDTH}" height="{height}" rx="8" fill="#ffffff"/>',
        f'<text x="20" y="36" font-weight="600">{html.escape(title)}</text>',
    ]
    scale = (WIDTH - LEFT - RIGHT) / max(rate for rate, _ in found.values())
    for i, (engine, (rate, _)) in enumerate(sorted(found.items(), key=lambda item: -item[1][0])):
        y, is_ours = TOP + ROW * i, engine == "fastcompress"
        weight, colour = ("600", "#0969da") if is_ours else ("400", "#afb8c1")
        width = max(2.0, rate * scale)
        lines += [
            f'<text x="20" y="{y + 19}" font-weight="{weight}">{engine}</text>',
            f'<rect x="{LEFT}" y="{y}" width="{width:.1f}" height="26" rx="3" fill="{colour}"/>',
            f'<text x="{LEFT + width + 8:.1f}" y="{y + 19}" font-weight="{weight}">{rate:.3g}</text>',
        ]
    for i, note in enumerate(notes):
        y = height - 38 + 20 * i
        lines.append(f'<text x="20" y="{y}" font-size="14" fill="#59636e">{html.escape(note)}</text>')
    return "\n".join([*lines, "</svg>"]) + "\n"


def main() -> None:
    """Write the picture."""
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "speed.svg"
    path.write_text(draw(*least_ahead(ROOT / "benchmarks" / "results")), encoding="utf-8")


if __name__ == "__main__":
    main()
