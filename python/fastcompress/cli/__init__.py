"""The `fastcompress` command: one module per subcommand, and one place that turns errors into one line.

Modules here import nothing heavy at the top (no torch): `fastcompress --help` loads them all. Results go to
standard output; progress, warnings and errors go to standard error.

Exit codes: 0 done, 1 error, 2 wrong usage, 130 interrupted, 141 nobody reads standard output any more.
"""

from __future__ import annotations

import contextlib
import sys
import traceback
from collections.abc import Sequence
from typing import Any, NoReturn

import click

from fastcompress import __version__
from fastcompress.cli.archive import compress, decompress
from fastcompress.cli.chat import chat
from fastcompress.cli.codebook import codebook
from fastcompress.cli.convert import convert
from fastcompress.cli.count import count
from fastcompress.cli.decode import decode
from fastcompress.cli.encode import encode
from fastcompress.cli.errors import BROKEN_PIPE_CODE, describe
from fastcompress.cli.eval import evaluate
from fastcompress.cli.export import export, import_run
from fastcompress.cli.generate import generate
from fastcompress.cli.inspect import inspect
from fastcompress.cli.receipt import receipt
from fastcompress.cli.sft import sft
from fastcompress.cli.stats import stats
from fastcompress.cli.streams import StandardOutput, give_up_stdout, open_closed_streams
from fastcompress.cli.study import study
from fastcompress.cli.train import train
from fastcompress.cli.train_tokenizer import train_tokenizer
from fastcompress.cli.tune import tune
from fastcompress.cli.verify import verify
from fastcompress.cli.view import view


class CommandLine(click.Group):
    """A group whose errors are one line on standard error, `error: PROBLEM; REMEDY`, and an exit code."""

    running: click.Command | None = None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name, command, rest = super().resolve_command(ctx, args)
        self.running = command
        return name, command, rest

    def main(self, args: Sequence[str] | None = None, *_: Any, **settings: Any) -> NoReturn:
        open_closed_streams()
        self.running = None
        code = self._run(args, settings)
        if code == BROKEN_PIPE_CODE:
            give_up_stdout()
        sys.exit(code)

    def _run(self, args: Sequence[str] | None, settings: dict[str, Any]) -> int:
        wants_traceback = "--traceback" in (sys.argv if args is None else args)
        try:
            code = super().main(args, **{**settings, "standalone_mode": False})
            StandardOutput().flush()
        except click.exceptions.NoArgsIsHelpError as error:
            _complain(error.format_message())
            return 2
        except click.Abort:
            _complain("interrupted")
            return 130
        except Exception as error:
            if wants_traceback:
                traceback.print_exc()
            message, code = describe(error, self.running)
            _complain(f"error: {message}")
            with contextlib.suppress(Exception):
                StandardOutput().flush()
                return code
            give_up_stdout()
        return code if isinstance(code, int) else 0


def _complain(message: str) -> None:
    """Print to standard error, unless nobody reads it."""
    with contextlib.suppress(OSError):
        click.echo(message, err=True)


@click.group(
    "fastcompress",
    cls=CommandLine,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="\b\nExample:\n  fastcompress study quick",
)
@click.version_option(__version__, message="%(prog)s %(version)s")
@click.option("--traceback", is_flag=True, expose_value=False, help="On an error, print where it came from.")
def main() -> None:
    """Turn text into tokens and bits: train tokenizers and models, and compare them by bits per byte."""


for _command in (
    train_tokenizer,
    codebook,
    encode,
    decode,
    convert,
    compress,
    decompress,
    train,
    generate,
    evaluate,
    receipt,
    sft,
    chat,
    export,
    import_run,
    study,
    tune,
    view,
    count,
    stats,
    inspect,
    verify,
):
    _command.params.append(
        click.Option(["--traceback"], is_flag=True, expose_value=False, help="On an error, print where it came from.")
    )
    main.add_command(_command)
