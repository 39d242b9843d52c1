"""What several commands write: progress for people, results for people or programs, whole files."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import click

json_option = click.option("--json", "as_json", is_flag=True, help="Print the result as one JSON object.")


class Advance(Protocol):
    """Moves a bar on; `total` sets where it ends, when that was not known at first."""

    def __call__(self, amount: int, total: int | None = None) -> None: ...


@contextlib.contextmanager
def progress_bar(label: str, total: int | None = None, unit: str = "B") -> Iterator[Advance]:
    """A bar on standard error, if a terminal and tqdm is installed; yields a function that adds to it."""
    try:
        if not sys.stderr.isatty():
            raise ImportError
        from tqdm import tqdm
    except ImportError:
        yield lambda amount, total=None: None
        return
    with tqdm(desc=label, total=total, unit=unit, unit_scale=True, leave=False) as bar:

        def advance(amount: int, total: int | None = None) -> None:
            bar.total = bar.total if total is None else total
            bar.update(amount)

        yield advance


def count(number: int, thing: str) -> str:
    """`number` and its noun: "1 document", "2,000 documents"."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def show_result(result: dict[str, Any], text: str, as_json: bool) -> None:
    """Print `result` as one line of JSON, or else `text`, on standard output."""
    echo_text((json.dumps(result) if as_json else text) + "\n")


def echo_text(text: str) -> None:
    """Write `text` to standard output, now: UTF-8 to files and pipes, to a terminal what it can show.

    Names of files that are not UTF-8 come out as the bytes they are.
    """
    if sys.stdout.isatty():
        encoding = sys.stdout.encoding or "utf-8"
        click.echo(text.encode(encoding, "replace").decode(encoding), nl=False)
    else:
        click.echo(text.encode("utf-8", "surrogateescape"), nl=False)


@contextlib.contextmanager
def open_output(path: str) -> Iterator[BinaryIO]:
    """Standard output for "-", else a file that is there whole or, after an error, as it was. OutputError.

    Pipes and devices are written as they are, and the targets of symbolic links are replaced, not the links.
    """
    from fastcompress._files import open_atomically

    if path == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    with open_atomically(path) as file:
        yield file


def check_output(path: str) -> None:
    """OutputError when a file cannot be put at `path`: to be called before the long work, not after it."""
    from fastcompress.errors import OutputError

    folder = Path(path).resolve().parent
    if not folder.is_dir():
        raise OutputError(f"{path}: cannot be written (there is no folder {folder}); make it or choose another")
    if Path(path).is_dir():
        raise OutputError(f"{path}: cannot be written (it is a folder); add a file name")
    if not os.access(folder if not Path(path).exists() else path, os.W_OK):
        raise OutputError(f"{path}: cannot be written (no permission); choose another output")
