"""What several commands write: progress for people, results for people or programs, whole files."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import click

json_option = click.option("--json", "as_json", is_flag=True, help="Print the result as one JSON object.")


@contextlib.contextmanager
def progress_bar(label: str, total: int | None = None, unit: str = "B") -> Iterator[Callable[[int], None]]:
    """A bar on standard error, if a terminal and tqdm is installed; yields a function that adds to it."""
    try:
        if not sys.stderr.isatty():
            raise ImportError
        from tqdm import tqdm
    except ImportError:
        yield lambda amount: None
        return
    with tqdm(desc=label, total=total, unit=unit, unit_scale=True, leave=False) as bar:
        yield lambda amount: bar.update(amount) and None


def count(number: int, thing: str) -> str:
    """`number` and its noun: "1 document", "2,000 documents"."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def show_result(result: dict[str, Any], text: str, as_json: bool) -> None:
    """Print `result` as one line of JSON, or else `text`, on standard output."""
    click.echo(json.dumps(result) if as_json else text)


@contextlib.contextmanager
def open_output(path: str) -> Iterator[BinaryIO]:
    """Standard output for "-", else a file that is there whole or, after an error, as it was. OutputError."""
    from fastcompress.errors import OutputError

    if path == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    temporary = Path(f"{path}.{os.getpid()}.partial")
    try:
        file = temporary.open("xb")
    except OSError as error:
        raise OutputError(f"{path}: cannot be written ({error.strerror}); choose another output") from error
    try:
        with file:
            yield file
        os.replace(temporary, path)
    except OSError as error:
        raise OutputError(f"{path}: cannot be written ({error.strerror}); choose another output") from error
    finally:
        temporary.unlink(missing_ok=True)
