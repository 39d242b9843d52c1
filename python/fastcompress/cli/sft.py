"""fastcompress sft"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fastcompress.cli.output import count, json_option, show_result
from fastcompress.cli.train_options import tracker_option
from fastcompress.training.settings_file import lay_over, parse_setting
from fastcompress.training.trackers import tracked

if TYPE_CHECKING:
    from fastcompress.data.chat import Chat
    from fastcompress.training.checkpoint import Run
    from fastcompress.training.config import TrainConfig
    from fastcompress.training.sft import ChatData
    from fastcompress.training.train import TrainResult

SHARE_HELD_OUT = "one chat in twenty"


@click.command(
    short_help="Finetune a trained model on chats.",
    epilog="\b\nExamples:\n"
    "  fastcompress sft runs/a --data chats.jsonl\n"
    "  fastcompress sft runs/a --data chats.jsonl --run-dir runs/a-chat --steps 2000 --set learning_rate=1e-4",
)
@click.argument("run_directory", metavar="RUN")
@click.option("--data", "data_file", required=True, metavar="FILE",
              help='JSON lines: {"messages": [{"role": "user", "content": "Hi"}, {...}]}, one a line.')  # fmt: skip
@click.option("--validation", "validation_file", metavar="FILE",
              help=f"Held-out chats, in the same form.  [default: {SHARE_HELD_OUT} of --data]")  # fmt: skip
@click.option("--skip-malformed", is_flag=True, help="Skip and count lines that are not chats ending with an answer.")
@click.option("--run-dir", help="Folder of the new run.  [default: RUN-chat]")
@click.option("--resume", is_flag=True, help="Continue the run in --run-dir.")
@click.option("--steps", type=int, help="Train for this many steps.  [default: three epochs]")
@click.option("--batch-size", type=int, help="Rows per step.  [default: the run's, or all rows if there are fewer]")
@click.option("--learning-rate", type=float, help="Peak learning rate of matrices.  [default: a tenth of the run's]")
@click.option("--seed", type=click.IntRange(0, 2**63 - 1), help="Seed for new rows of tables, batch order and dropout.")
@click.option("--set", "assignments", metavar="NAME=VALUE", multiple=True,
              help="Any other setting of training, such as schedule.warmup=0.1.")  # fmt: skip
@click.option("--which", type=click.Choice(["best", "last"]), default="best", show_default=True,
              help="Which checkpoint of RUN to begin with.")  # fmt: skip
@tracker_option
@click.option("--device", help="auto, cpu, cuda, cuda:1 or mps.  [default: the run's]")
@json_option
def sft(
    run_directory: str,
    data_file: str,
    validation_file: str | None,
    skip_malformed: bool,
    run_dir: str | None,
    resume: bool,
    assignments: tuple[str, ...],
    which: str,
    trackers: tuple[str, ...],
    as_json: bool,
    **options: Any,
) -> None:
    """Finetune the model of a RUN on chats, into a new run. Only answers count in the loss.

    Chats longer than the model's context are skipped and counted.
    """
    from fastcompress.training.checkpoint import load_run
    from fastcompress.training.distributed import is_first_process
    from fastcompress.training.sft import ChatData, chat_codec_of, finetune

    directory = Path(run_dir or f"{run_directory.rstrip('/')}-chat")
    _check_directory(directory, resume)
    run = load_run(Path(run_directory), which="last" if which == "last" else "best")
    train, validation, skipped = _chats(data_file, validation_file, skip_malformed)
    data = ChatData.of(chat_codec_of(run), run.model.config.context_length, train, validation)
    settings = {name: value for name, value in options.items() if value is not None}
    for name, value in map(parse_setting, assignments):
        lay_over(settings, name, value)
    if is_first_process():  # of those that torchrun started
        _say_what_is_read(data, skipped)
    try:
        with tracked(trackers, directory) as track:
            config = (_resumed if resume else _new)(directory, settings, run, data)
            result = finetune(run, data, config, directory, resume=resume, on_metrics=track)
    except (KeyboardInterrupt, SystemExit):
        if (directory / "config.json").exists() and is_first_process():
            command = ["fastcompress", "sft", run_directory, "--data", data_file, "--run-dir", str(directory)]
            click.echo(f"stopped; go on with: {shlex.join([*command, '--resume'])}", err=True)
        raise
    if is_first_process():
        _show(result, directory, data, skipped, as_json)


def _check_directory(directory: Path, resume: bool) -> None:
    from fastcompress.errors import DataError, OutputError

    exists = (directory / "config.json").exists()
    if exists and not resume:
        raise OutputError(f"{directory}: holds a run already; go on with --resume, or choose another --run-dir")
    if resume and not exists:
        raise DataError(f"{directory}: holds no run to resume; leave out --resume to start it")


def _chats(
    data_file: str, validation_file: str | None, skip_malformed: bool
) -> tuple[list[Chat], list[Chat], dict[str, int]]:
    """Return chats to train on, held-out chats, and the number of lines skipped for each problem."""
    from fastcompress.data.chat import read_chats, split_chats

    given = read_chats(Path(data_file), skip_malformed=skip_malformed)
    if validation_file is None:
        train, validation = split_chats(given.chats)
        return train, validation, dict(given.skipped)
    held_out = read_chats(Path(validation_file), skip_malformed=skip_malformed)
    return given.chats, held_out.chats, dict(given.skipped + held_out.skipped)


def _say_what_is_read(data: ChatData, skipped: dict[str, int]) -> None:
    for problem, number in sorted(skipped.items()):
        click.echo(f"left out: {count(number, 'line')} that {problem}", err=True)
    if data.num_too_long:
        context = data.rows.context_length
        click.echo(
            f"left out: {count(data.num_too_long, 'chat')} longer than the context of {context} tokens", err=True
        )
    click.echo(
        f"training on {count(data.train.num_documents, 'chat')} with {count(data.train.num_bytes, 'byte')} of answers, "
        f"in {count(data.train.num_tokens, 'row')}; held out: {count(len(data.validation), 'chat')}",
        err=True,
    )


def _new(directory: Path, settings: dict[str, Any], run: Run, data: ChatData) -> TrainConfig:
    from fastcompress.training.sft import chat_settings

    return chat_settings(run.config, data.train.num_tokens, **settings)


def _resumed(directory: Path, settings: dict[str, Any], run: Run, data: ChatData) -> TrainConfig:
    from fastcompress.training.config import HORIZONS, TrainConfig
    from fastcompress.training.run_directory import RunDirectory

    if any(name in settings for name in HORIZONS):
        settings = {**dict.fromkeys(HORIZONS), **settings}
    return TrainConfig.from_json(RunDirectory(directory).read_config()["train"]).override(settings)


def _show(result: TrainResult, directory: Path, data: ChatData, skipped: dict[str, int], as_json: bool) -> None:
    summary = {
        "run_directory": str(directory),
        "chats": data.train.num_documents,
        "validation_chats": len(data.validation),
        "skipped": skipped,
        "too_long": data.num_too_long,
        "steps": result.steps,
        "seconds": result.seconds,
        "best_step": result.best_step,
        "validation_bits_per_byte": result.best_bits_per_byte,
    }
    text = (
        f"{directory}: {result.steps:,} steps, {result.seconds:.0f} s\n"
        f"best on held-out answers: {result.best_bits_per_byte:.4f} bits per byte, at step {result.best_step}\n"
        f"next: fastcompress chat {directory}"
    )
    show_result(summary, text, as_json)
