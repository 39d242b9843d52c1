"""The summary for the README: a line for each thing measured, and the worst figure under any condition."""

from __future__ import annotations

from typing import Any

import table_compression
import table_tokenizers
from table_text import is_ours, markdown

TEXTS = {"english": "English", "code": "code", "multilingual": "many languages"}


def summary(suites: dict[str, list[Any]]) -> str:
    """Return a table of the smallest and the largest ratio of each suite.

    Args:
        suites: By name, the results of a suite under each condition, as `table.load` reads them.
    """
    rows = [
        *(encoding_row(suites["encode"], corpus) for corpus in TEXTS),
        training_row(suites["train"]),
        *(lz77_row(suites["lz77"], text) for text in TEXTS),
        *(arithmetic_row(suites["arithmetic"], way) for way in ("encode", "decode")),
        compressors_row(suites["compressors"]),
    ]
    titles = ["task", "compared with", "times as fast, at worst"]
    text = markdown(titles, [row for row in rows if row])
    return f"{text}\n\nMeasured on {measured(suites)}.\n"


def encoding_row(stores: list[Any], corpus: str) -> list[str]:
    """Return the row of encoding one corpus: the worst of cold, unseen and warm text, and each by name."""
    cell = ("cl100k", corpus, "documents", "numpy", 1)
    worst: list[str] = []
    peers: list[str] = []
    for name in ("cold", "unseen", "warm"):
        found = [lead for store in stores if (lead := table_tokenizers.lead(store, cell, name))]
        if found:
            number, detail = min(found)
            worst.append(f"{name} {number:.2f}")
            peers.append(detail.partition(" ")[0])
    return [f"BPE encoding, {TEXTS[corpus]}", " or ".join(dict.fromkeys(peers)), ", ".join(worst)] if worst else []


def training_row(stores: list[Any]) -> list[str]:
    """Return the row of BPE training on one thread."""
    found = [
        lead
        for store in stores
        for cell in table_tokenizers.cells_of(store)
        if cell[-1] == 1 and (lead := table_tokenizers.train_lead(store, cell))
    ]
    return ["BPE training", min(found)[1].partition(" ")[0], f"{min(found)[0]:.1f}"] if found else []


def lz77_row(results: list[Any], text: str) -> list[str]:
    """Return the row of parsing one text."""
    found = [lead for one in results if (lead := table_compression.lz77_lead(one["texts"].get(text)))]
    return (
        [f"LZ77 parsing, {TEXTS[text]}", "libdeflate -6, which also writes Huffman codes", f"{min(found)[0]:.2f}"]
        if found
        else []
    )


def arithmetic_row(results: list[Any], way: str) -> list[str]:
    """Return the row of arithmetic coding one way: the range over the cases, each at its worst condition."""
    worst: dict[tuple[str, str], float] = {}
    for one in results:
        for case, coders in one["cases"].items():
            for name in coders:
                lead = table_compression.arithmetic_lead(coders, name, way)
                if lead and not name.startswith("constriction"):
                    worst[case, name] = min(lead[0], worst.get((case, name), lead[0]))
    found = worst.values()
    return [f"arithmetic coding, {way}", "constriction", f"{min(found):.1f} to {max(found):.1f}"] if found else []


def compressors_row(results: list[Any]) -> list[str]:
    """Return the row of compressed files: not a speed but sizes, of the strongest level of each method."""
    shares: dict[str, list[float]] = {}
    for one in results:
        for text in one["texts"].values():
            engines = text["engines"]
            least = min(engines["xz -9e"]["bytes"], engines["bz2 -9"]["bytes"])
            for method in ("cm", "lz"):
                ours = [row["bytes"] for name, row in engines.items() if is_ours(name) and f" {method} " in name]
                shares.setdefault(method, []).append(min(ours) / least)
    if not shares:
        return []
    described = ", ".join(f"`{method}` {min(found):.2f} to {max(found):.2f}" for method, found in shares.items())
    return ["compressed files", "xz -9e or bz2 -9, whichever is smaller", f"not speed but size: {described}"]


def measured(suites: dict[str, list[Any]]) -> str:
    """Return on which processors, and whether beside a neighbour, the figures were taken."""
    places: dict[str, list[str]] = {}
    for suite, results in suites.items():
        for one in results:
            header = one if isinstance(one, dict) else one.header
            its = header["machine"]
            beside = ", beside a busy neighbour" if header.get("neighbour") else ""
            place = f"{its['cpu']} ({its['cores']} cores){beside}"
            places.setdefault(place, []).append(suite)
    parts = [
        f"{place}: {'all rows' if set(names) == set(suites) else ', '.join(dict.fromkeys(names))}"
        for place, names in places.items()
    ]
    return "; ".join(parts) or "no machine yet"
