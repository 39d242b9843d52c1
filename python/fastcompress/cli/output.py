"""The output of every command: results go to standard output, everything else to standard error."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol, TypeVar

import click

from fastcompress.cli.streams import StandardOutput, stdout_is_closed

_Command = TypeVar("_Command", bound=Callable[..., Any])

json_option = click.option("--json", "as_json", is_flag=True, help="Print the result as one JSON object.")


class _ForceOption(click.Option):
    """--force, and its old name --overwrite, which help no longer shows."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        return "--force", self.help or ""


def force_option(help_text: str = "Replace the output if it exists.") -> Callable[[_Command], _Command]:
    """Add --force, which every command that writes a file or folder has."""
    return click.option("--force", "--overwrite", "overwrite", is_flag=True, cls=_ForceOption, help=help_text)


class ByteWriter(Protocol):
    """A destination of bytes, as `open_output` yields it."""

    def write(self, data: bytes, /) -> int: ...


class Advance(Protocol):
    """A function that advances a progress bar.

    `total` sets the end if it was not known at first, and `note` what is shown behind the bar.
    """

    def __call__(self, amount: int, total: int | None = None, note: str = "") -> None: ...


@contextlib.contextmanager
def progress_bar(label: str, total: int | None = None, unit: str = "B") -> Iterator[Advance]:
    """Show a progress bar on standard error and yield a function that advances it.

    Nothing is shown unless standard error is a terminal and tqdm is installed.
    """
    try:
        if not sys.stderr.isatty():
            raise ImportError
        from tqdm import tqdm
    except ImportError:
        yield lambda amount, total=None, note="": None
        return
    with tqdm(desc=label, total=total, unit=unit, unit_scale=True, leave=False) as bar:

        def advance(amount: int, total: int | None = None, note: str = "") -> None:
            bar.total = bar.total if total is None else total
            bar.set_postfix_str(note, refresh=False)
            bar.update(amount)

        yield advance


def count(number: int, thing: str) -> str:
    """Return `number` and its noun: "1 document", "2,000 documents"."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def show_result(result: dict[str, Any], text: str, as_json: bool) -> None:
    """Print `result` as one line of JSON if `as_json`, or else `text`, on standard output.

    If standard output is closed, `text` is dropped, since the work is done and the text can have no reader.
    """
    if as_json or not stdout_is_closed():
        echo_text((json.dumps(result) if as_json else text) + "\n")


def echo_text(text: str) -> None:
    """Write `text` to standard output without buffering.

    Files and pipes get UTF-8, a terminal gets its own encoding. File names that are not UTF-8 are written as their
    original bytes.
    """
    if sys.stdout.isatty():
        encoding = sys.stdout.encoding or "utf-8"
        click.echo(text.encode(encoding, "replace").decode(encoding), nl=False)
    else:
        echo_bytes(text.encode("utf-8", "surrogateescape"))


def echo_bytes(data: bytes) -> None:
    """Write `data` to standard output without buffering."""
    output = StandardOutput()
    output.flush()
    output.write(data)
    output.flush()


@contextlib.contextmanager
def open_output(path: str, overwrite: bool = True) -> Iterator[ByteWriter]:
    """Yield standard output for "-", or else a file that is complete after the block and absent after an error.

    Pipes and devices are written directly, and the targets of symbolic links are replaced, not the links.

    Args:
        path: The output.
        overwrite: Whether to replace a file that exists, or that another program creates meanwhile.

    Raises:
        OutputError: The output cannot be written, or exists and must not be replaced.
    """
    from fastcompress._files import open_atomically

    if path == "-":
        output = StandardOutput()
        yield output
        output.flush()
        return
    with open_atomically(path, overwrite=overwrite) as file:
        yield file


def check_output(path: str, overwrite: bool, source: str | None = None) -> None:
    """Raise OutputError if a file cannot be written to `path`; to be called before the work starts.

    Args:
        path: The output; "-" is always accepted.
        overwrite: Whether a file that exists may be replaced.
        source: The input, which must not be the output too; None if there is none, or several.
    """
    from fastcompress.errors import OutputError

    if path == "-":
        return
    if not path:
        raise OutputError("the output's name is empty; give -o a file name")
    if "\0" in path:
        raise OutputError(f"{path!r}: is not a file name; choose another one")
    target = Path(path)
    folder = target.resolve().parent
    if not folder.is_dir():
        raise OutputError(f"{path}: cannot be written (there is no folder {folder}); make it or choose another")
    if target.is_dir():
        raise OutputError(f"{path}: cannot be written (it is a folder); add a file name")
    if source not in (None, "-") and target.exists() and os.path.exists(source) and target.samefile(source):
        other_name = f", {source}" if source != path else ""
        raise OutputError(f"{path}: is the input itself{other_name}; choose another output")
    if target.is_file() and not overwrite:
        raise OutputError(f"{path}: exists already; choose another output, or replace it with --force")
    if not os.access(folder if not target.exists() else path, os.W_OK):
        raise OutputError(f"{path}: cannot be written (no permission); choose another output")
