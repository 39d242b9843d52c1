"""What killed writers of splits have left in a directory, and how the next writer undoes or removes it.

Splits are moved into place from a hidden folder, which has a list of the moves in it, and the old ones are moved to
another one first (`fastcompress.data.shard_writer.put_in_place`). If a writer is killed in between, all moves are
taken back, so that the directory holds all of the old splits or all of the new ones.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from pathlib import Path

from fastcompress._locks import locked
from fastcompress.errors import OutputError

MOVES = ".moves.json"
"""The names that are moved out of a folder of new splits, a JSON list in that folder."""


def undo_moves(directory: Path, new: Path) -> None:
    """Undo what a killed `put_in_place` has left half done; what it had finished stays. The directory is locked.

    Args:
        directory: As for `put_in_place`.
        new: As for `put_in_place`.
    """
    away = away_from(new)
    if not away.exists():
        return
    names: list[str] = json.loads((new / MOVES).read_bytes()) if (new / MOVES).exists() else []
    if any((new / name).exists() for name in names):
        for name in names:
            target = directory / name
            if not (new / name).exists():
                os.rename(target, new / name)
            elif target.is_dir() and not any(target.iterdir()):  # the name was claimed, no more
                target.rmdir()
            elif target.is_file() and not target.stat().st_size:
                target.unlink()
        for path in away.iterdir():
            if not (directory / path.name).exists():  # or else only a name in `away` was claimed
                os.rename(path, directory / path.name)
    shutil.rmtree(away)


def remove_abandoned(directory: Path) -> None:
    """Remove what killed writers have left. The directory is locked, and so is the folder of each that is alive."""
    for path in directory.glob(".*.partial"):
        with contextlib.suppress(OutputError), locked(path) as is_locked:
            if is_locked:
                undo_moves(directory, path)
                shutil.rmtree(path, ignore_errors=True)


def away_from(new: Path) -> Path:
    """Return the folder of what makes room: not in `new`, which is deleted even if the old splits must come back."""
    return new.with_suffix(".old")
