"""Results on disk: one JSON file a suite, a cell a line, every round kept; a run adds the rounds that are missing."""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
from pathlib import Path
from typing import Any

KEY = ("engine", "vocabulary", "corpus", "form", "output", "threads")


def cards() -> list[str]:
    """Return the values of CUDA_VISIBLE_DEVICES that give a process one card of this one's each; "" without cards."""
    import torch

    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    return visible.split(",") if visible else [str(card) for card in range(torch.cuda.device_count())] or [""]


class Results:
    """The cells of one suite. `cells[key]` maps a measurement to its fields, and each field to a list, a round each."""

    def __init__(self, path: Path, header: dict[str, Any]) -> None:
        self.path, self.header = path, header
        self.cells: dict[tuple[Any, ...], dict[str, Any]] = {}

    @classmethod
    def open(cls, path: Path, header: dict[str, Any] | None = None) -> Results:
        """Read a file or start one. ValueError if it is of another commit, build, condition or of other inputs."""
        if not path.exists():
            return cls(path, header or {})
        stored = json.loads(path.read_text())
        cells = stored.pop("cells")
        if header:
            if [stored["commit"], stored["build"]] != [header["commit"], header["build"]]:
                of = f"commit {stored['commit']}, build {stored['build']}"
                raise ValueError(f"{path} is of {of}: add --fresh, or choose another --out")
            if stored.get("neighbour", False) != header.get("neighbour", False):
                raise ValueError(f"{path} was measured {'with' if stored.get('neighbour') else 'without'} a neighbour")
            for name, what in header["inputs"].items():
                if stored["inputs"].setdefault(name, what) != what:
                    raise ValueError(f"{path} has another input {name}: add --fresh, or choose another --out")
        results = cls(path, stored)
        for cell in cells:
            results.cells[tuple(cell.pop(field) for field in KEY)] = cell
        return results

    def forget_failures(self) -> None:
        """Drop cells that ended in an error, so that they are tried again."""
        self.cells = {key: cell for key, cell in self.cells.items() if "error" not in cell}

    def has_failed(self, key: tuple[Any, ...]) -> bool:
        """Whether the cell ended in an error; it is not tried again in this run."""
        return "error" in self.cells.get(key, {})

    def num_rounds(self, key: tuple[Any, ...]) -> int:
        """Rounds measured so far."""
        return len(self.cells.get(key, {}).get("load_average", []))

    def add(self, key: tuple[Any, ...], result: dict[str, Any]) -> None:
        """Add one round's result: numbers go to the end of their lists, other facts are replaced."""
        cell = self.cells.setdefault(key, {})
        for name, value in result.items():
            if isinstance(value, dict):
                for field, number in value.items():
                    cell.setdefault(name, {}).setdefault(field, []).append(number)
            elif name == "load_average":
                cell.setdefault(name, []).append(round(value, 2))
            elif name == "version":
                self.header.setdefault("versions", {})[key[0]] = value
            elif name == "tokens":  # The hashes of what was learned: one, if every round learned the same.
                cell[name] = sorted({value, *cell.get(name, [])})
            elif name == "exact":
                cell[name] = cell.get(name, True) and value
            else:
                cell[name] = value

    def is_exact(self, key: tuple[Any, ...]) -> bool:
        """Whether the ids of every round equalled tiktoken's (suites that compare none: true)."""
        return bool(self.cells.get(key, {}).get("exact", True))

    def median(self, key: tuple[Any, ...], name: str, field: str) -> float | None:
        """The median over rounds, None when it was not measured."""
        rounds = self.cells.get(key, {}).get(name, {}).get(field)
        return statistics.median(rounds) if rounds else None

    def spread(self, key: tuple[Any, ...], name: str, field: str) -> float:
        """Greatest over smallest round, less one."""
        rounds: list[float] = self.cells[key][name][field]
        return max(rounds) / min(rounds) - 1

    def save(self) -> None:
        """Write the file in one step, a cell a line."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        head = json.dumps(self.header, indent=1, ensure_ascii=False)[:-2]
        cells = [
            json.dumps({**dict(zip(KEY, key, strict=True)), **cell}, ensure_ascii=False)
            for key, cell in self.cells.items()
        ]
        temporary = self.path.with_suffix(".tmp")
        temporary.write_text(head + ',\n "cells": [\n' + ",\n".join(cells) + "\n ]\n}\n")
        temporary.replace(self.path)


def machine() -> dict[str, Any]:
    """What the figures depend on besides the code."""
    info = Path("/proc/cpuinfo")
    models = [line.split(":")[1].strip() for line in info.read_text().splitlines() if line.startswith("model name")]
    flags = {"avx2", "avx512bw", "asimd"}
    words = set(info.read_text().split())
    return {
        "cpu": models[0] if models else platform.processor(),
        "cores": os.cpu_count(),
        "vectors": sorted(flags & words),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()}",
    }


def commit(folder: Path) -> str:
    """The git commit of the code in `folder`, "+" when files differ from it, "unknown" outside of git."""

    def git(*arguments: str) -> str:
        process = subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, text=True)
        return process.stdout.strip() if process.returncode == 0 else "unknown"

    changed = git("status", "--porcelain", "--", "cpp", "python", ":/cpp", ":/python")
    return git("rev-parse", "--short=12", "HEAD") + ("+" if changed not in ("", "unknown") else "")
