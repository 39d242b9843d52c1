"""Draw docs/speed.svg from the newest benchmark results: `python docs/make_picture.py [FILE]`.

The bars are the engines' rates of encoding unseen English with cl100k on one thread. Of the conditions measured
(machines, with and without a neighbour), the picture takes the one in which fastcompress is least far ahead.
"""

from __future__ import annotations

import html
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "benchmarks"))

import table  # noqa: E402
from results_file import Results  # noqa: E402

ENGINES = ("fastcompress", "fastokens", "gigatoken", "tiktoken", "tokenizers")
CELL = ("cl100k", "english", "documents")
PASS = "unseen"
WIDTH, LEFT, RIGHT, ROW, TOP = 720, 148, 96, 34, 58


def rates(store: Results) -> dict[str, float]:
    """Return the rate of each engine in MB/s: to arrays, or to lists for an engine that makes lists only."""
    found = {}
    for engine in ENGINES:
        for output in ("numpy", "list"):
            rate = store.median((engine, *CELL, output, 1), PASS, "cpu")
            if rate and engine not in found:
                found[engine] = rate
    return found


def lead(found: dict[str, float]) -> float:
    """Return how many times as fast as the fastest other engine fastcompress is."""
    return found["fastcompress"] / max(rate for name, rate in found.items() if name != "fastcompress")


def least_ahead(results: Path) -> tuple[dict[str, Any], dict[str, float]]:
    """Return the header and the rates of the condition in which fastcompress is least far ahead."""
    stores = [Results.open(path) for path in table.newest(results, "encode")]
    measured = [(store.header, found) for store in stores if len(found := rates(store)) > 1]
    return min(measured, key=lambda one: lead(one[1]))


def draw(header: dict[str, Any], found: dict[str, float]) -> str:
    """Return the picture: a bar for each engine, the fastest first, readable on light and on dark pages."""
    machine = header["machine"]
    beside = ", beside a busy neighbour" if header.get("neighbour") else ""
    title = "English text to cl100k ids, one thread, MB/s (more is better)"
    note = f"{PASS} text; {machine['cpu']}, {machine['cores']} cores{beside}; {header['date']}"
    height = TOP + ROW * len(found) + 34
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
        'font-family="system-ui, sans-serif" font-size="15">',
        f"<title>{html.escape(title)}</title>",
        f'<rect width="{WIDTH}" height="{height}" rx="8" fill="#ffffff"/>',
        f'<text x="20" y="32" font-weight="600" fill="#1f2328">{html.escape(title)}</text>',
    ]
    scale = (WIDTH - LEFT - RIGHT) / max(found.values())
    for i, (engine, rate) in enumerate(sorted(found.items(), key=lambda item: -item[1])):
        y, is_ours = TOP + ROW * i, engine == "fastcompress"
        weight, colour = ("600", "#0969da") if is_ours else ("400", "#afb8c1")
        width = max(2.0, rate * scale)
        lines += [
            f'<text x="20" y="{y + 17}" font-weight="{weight}" fill="#1f2328">{engine}</text>',
            f'<rect x="{LEFT}" y="{y}" width="{width:.1f}" height="24" rx="3" fill="{colour}"/>',
            f'<text x="{LEFT + width + 8:.1f}" y="{y + 17}" font-weight="{weight}" fill="#1f2328">{rate:.3g}</text>',
        ]
    lines.append(f'<text x="20" y="{height - 14}" font-size="12" fill="#59636e">{html.escape(note)}</text>')
    return "\n".join([*lines, "</svg>"]) + "\n"


def main() -> None:
    """Write the picture."""
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "speed.svg"
    path.write_text(draw(*least_ahead(ROOT / "benchmarks" / "results")), encoding="utf-8")


if __name__ == "__main__":
    main()
