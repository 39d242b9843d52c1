"""The one generator of tables: finds the newest results, renders them, and writes them between markers of a page."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import table_compression
import table_tokenizers
from results_file import Results
from table_summary import summary

BLOCK = re.compile(r"<!-- benchmark ([a-z0-9-]+): begin -->")
RESULT = re.compile(r"(?P<date>\d{4}-\d\d-\d\d)-(?P<name>[a-z0-9-]+?)(?P<neighbour>-neighbour)?\.json")


def newest(folder: Path, name: str) -> list[Path]:
    """Return the newest results of a suite: for each machine, without and with a neighbour.

    Args:
        folder: The folder of results, with a folder for each machine in it.
        name: What the file names say after the date, such as "encode" or "encode-lists".
    """
    found: dict[tuple[str, str], Path] = {}
    for path in sorted(folder.glob("*/*.json")):
        match = RESULT.fullmatch(path.name)
        if match and match["name"] == name:
            found[path.parent.name, match["neighbour"] or ""] = path  # later dates come later
    return [found[key] for key in sorted(found)]


def load(path: Path) -> dict[str, Any] | Results:
    """Read a results file: as `Results` with its cells if it is of a tokenizer suite, otherwise as a dict."""
    if not path.exists():
        raise FileNotFoundError(f"{path}: no such results")
    stored = json.loads(path.read_text())
    return Results.open(path) if "cells" in stored else stored


def render(paths: list[Path], *, every_engine: bool = False) -> str:
    """Return the tables of one suite.

    Args:
        paths: Results files of the same suite, one per condition (machine, with or without a neighbour).
        every_engine: Add each engine's figures, where the tables compare with the fastest peer only.
    """
    loaded = [load(path) for path in paths]
    stores = [one for one in loaded if isinstance(one, Results)]
    if stores:
        return table_tokenizers.render(stores, every_engine=every_engine)
    return table_compression.render([one for one in loaded if isinstance(one, dict)])


def block(results: Path, name: str) -> str:
    """Return the text of the block `name`: the tables of the newest results, or "summary", a line for each suite."""
    if name == "summary":
        return summary({suite: [load(path) for path in newest(results, suite)] for suite in SUMMARIZED})
    paths = newest(results, name)
    return render(paths) if paths else "Not measured yet.\n"


SUMMARIZED = ("encode", "train", "lz77", "arithmetic", "compressors")


def update(page: Path, results: Path) -> str:
    """Return a page with each of its blocks made anew from the newest results."""
    text = page.read_text(encoding="utf-8")
    for name in BLOCK.findall(text):
        text = insert(text, name, block(results, name))
    return text


def insert(page: str, name: str, table: str) -> str:
    """Return a page with the text between the markers of a block replaced. Raises ValueError if it has none."""
    begin, end = f"<!-- benchmark {name}: begin -->", f"<!-- benchmark {name}: end -->"
    before, found, rest = page.partition(begin)
    _, found_end, after = rest.partition(end)
    if not (found and found_end):
        raise ValueError(f"the page has no {begin} ... {end}")
    return f"{before}{begin}\n\n{table}\n{end}{after}"
