"""The `fastcompress` command: one module a subcommand, and one place that turns errors into one line.

Modules here import nothing heavy at the top (no torch): `fastcompress --help` loads them all. Results go to
standard output; progress, warnings and errors go to standard error.

Exit codes: 0 done, 1 error, 2 wrong usage, 130 interrupted.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence
from typing import Any, NoReturn

import click

from fastcompress.cli.archive import compress, decompress
from fastcompress.cli.convert import convert
from fastcompress.cli.decode import decode
from fastcompress.cli.encode import encode
from fastcompress.cli.eval import evaluate
from fastcompress.cli.generate import generate
from fastcompress.cli.study import study
from fastcompress.cli.train import train
from fastcompress.cli.train_tokenizer import train_tokenizer
from fastcompress.cli.view import view
from fastcompress.errors import FastcompressError

_TRAIN_PACKAGES = {"torch", "safetensors", "tqdm"}


class CommandLine(click.Group):
    """A group whose errors are one line on standard error, `error: WHAT; REMEDY`, and an exit code."""

    def main(self, args: Sequence[str] | None = None, *_: Any, **settings: Any) -> NoReturn:
        wants_traceback = "--traceback" in (sys.argv if args is None else args)
        settings["standalone_mode"] = False
        try:
            code = super().main(args, **settings)
        except click.exceptions.NoArgsIsHelpError as error:
            click.echo(error.format_message(), err=True)
            code = 2
        except click.Abort:
            click.echo("interrupted", err=True)
            code = 130
        except Exception as error:
            if wants_traceback:
                traceback.print_exc()
            code = _report(error)
        sys.exit(code if isinstance(code, int) else 0)


def _report(error: Exception) -> int:
    """Print what `error` means to a user, in one line; returns the exit code."""
    if isinstance(error, click.ClickException):
        context = getattr(error, "ctx", None)
        hint = f"; see {context.command_path} --help" if context is not None else ""
        message = error.format_message().rstrip(".") + hint
    elif isinstance(error, ModuleNotFoundError) and (error.name or "").partition(".")[0] in _TRAIN_PACKAGES:
        message = f"this needs {error.name}, which is not installed: pip install 'fastcompress[train]'"
    elif isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        message = "out of memory; use a smaller --batch-size or --micro-batch-size, or a smaller corpus"
    elif isinstance(error, FastcompressError) or (isinstance(error, OSError) and error.strerror is None):
        message = str(error)
    elif isinstance(error, OSError):
        message = f"{error.filename}: {error.strerror}" if error.filename else str(error.strerror)
    else:
        message = f"{type(error).__name__}: {error}; this is a bug: please report it with --traceback's output"
    click.echo("error: " + " ".join(message.split()), err=True)
    return error.exit_code if isinstance(error, click.ClickException) else 1


@click.group(
    "fastcompress",
    cls=CommandLine,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="\b\nExample:\n  fastcompress study quick",
)
@click.version_option(package_name="fastcompress", message="%(prog)s %(version)s")
@click.option("--traceback", is_flag=True, expose_value=False, help="On an error, print where it came from.")
def main() -> None:
    """Text to tokens to bits per byte: train tokenizers and models, and compare them."""


for _command in (
    train_tokenizer,
    encode,
    decode,
    convert,
    compress,
    decompress,
    train,
    generate,
    evaluate,
    study,
    view,
):
    _command.params.append(
        click.Option(["--traceback"], is_flag=True, expose_value=False, help="On an error, print its origin.")
    )
    main.add_command(_command)
