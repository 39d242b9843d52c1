"""fastcompress train"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fastcompress.cli.inputs import CODEC_HELP, corpus_options, need_one
from fastcompress.cli.output import count, json_option, show_result
from fastcompress.cli.run_data import RunData
from fastcompress.cli.train_options import MODEL_OPTIONS, tracker_option, training_options
from fastcompress.training.config import HORIZONS, TrainConfig, setting_names
from fastcompress.training.settings_file import lay_over, parse_setting, read_toml
from fastcompress.training.trackers import tracked

if TYPE_CHECKING:
    from fastcompress.codec import Codec
    from fastcompress.models.protocol import ModelConfig
    from fastcompress.training.forecast import Forecast
    from fastcompress.training.train import TrainResult


@click.command(
    short_help="Train a model and keep its checkpoints.",
    epilog="\b\nExamples:\n"
    "  fastcompress train --corpus tiny-shakespeare --codec char --steps 5000 --run-dir runs/a\n"
    "  fastcompress train --run-dir runs/a --resume",
)
@click.option("--run-dir", required=True, help="Folder of the run: settings, codec, metrics, checkpoints.")
@click.option("--resume", is_flag=True, help="Continue the run in --run-dir; its settings need not be repeated.")
@corpus_options
@click.option("--shards", metavar="DIRECTORY[:WEIGHT]", multiple=True,
              help="Shards written by encode, instead of --corpus and --codec. Given several times, rows are drawn "
              "from each in proportion to its weight.  [default weight: 1]")  # fmt: skip
@click.option("--codec", "codec_spec", metavar="CODEC", help=f"{CODEC_HELP}  [default: byte]")
@click.option("--config", "config_file", metavar="FILE",
              help="Settings in TOML, in sections: model, optimizer, schedule, machine, evaluation, data.")  # fmt: skip
@click.option("--set", "assignments", metavar="NAME=VALUE", multiple=True,
              help="Any setting, such as model.mlp=gelu. Overrides --config; other options override both.")  # fmt: skip
@training_options
@tracker_option
@json_option
def train(
    run_dir: str,
    resume: bool,
    corpus: str | None,
    text_key: str,
    max_bytes: int | None,
    shards: Sequence[str],
    codec_spec: str | None,
    config_file: str | None,
    assignments: tuple[str, ...],
    trackers: tuple[str, ...],
    as_json: bool,
    **options: Any,
) -> None:
    """Train a model on a corpus, or on shards, and keep its best and its last checkpoint.

    Give one horizon: --steps, --tokens, --flops or --seconds. Ctrl-C saves; --resume continues.
    """
    from fastcompress.training.distributed import is_first_process

    directory = Path(run_dir)
    model, training, source = given_settings(config_file, assignments, options)
    if not resume:  # a run that goes on knows its text and its codec
        if not (corpus or shards):
            corpus, shards = source.get("corpus"), shards_of(source)
        codec_spec = codec_spec or source.get("codec")
    if resume:
        _need_run(directory)
    if resume and not (corpus or shards):
        data = RunData.load(directory)
    else:
        need_one(corpus=corpus, shards=tuple(shards))
        data = RunData.given(corpus, text_key, max_bytes, shards)
        if resume:
            data = data.of_run(directory)
    if max_bytes is not None and not corpus:
        raise click.UsageError("--max-bytes goes with --corpus")
    if (shards or resume) and codec_spec:
        raise click.UsageError(f"--codec does not go with --{'resume' if resume else 'shards'}, which has its own")
    for name in ("preset", "depth"):
        if resume and name in model:
            raise click.UsageError(f"--{name} does not go with --resume: the run has its model")
    try:
        if resume:
            codec, model_config, config = _stored_settings(directory, model, training)
        else:
            need_one(**{name: training.get(name) for name in HORIZONS})
            _refuse_existing_run(directory)
            codec, model_config, config = _new_settings(data.codec(codec_spec or "byte"), model, training)
        _check_memory(model_config, config)
        with tracked(trackers, directory) as track:
            result = _train(data, codec, model_config, config, directory, resume, track)
    except (KeyboardInterrupt, SystemExit):
        if (directory / "config.json").exists() and is_first_process():
            click.echo(f"stopped; go on with: {_resume_command(directory)}", err=True)
        raise
    if not is_first_process():  # of those that torchrun started
        return
    if resume and not result.new_steps:
        click.echo(f"{directory}: done already, with {count(result.steps, 'step')}; no step was made", err=True)
    _show(result, directory, codec, as_json)


def given_settings(
    config_file: str | None, assignments: tuple[str, ...], options: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Return the settings of model, training and data from the file, --set and options, the later overriding."""
    full_names = setting_names()
    settings: dict[str, Any] = {}
    for name, value in (read_toml(Path(config_file)) if config_file is not None else {}).items():
        lay_over(settings, name if isinstance(value, dict) else full_names.get(name, name), value)
    for name, value in map(parse_setting, assignments):
        lay_over(settings, full_names.get(name, name), value)
    for name, value in options.items():
        if value is not None:
            lay_over(settings, f"model.{name}" if name in MODEL_OPTIONS else full_names[name], value)
    model, data = settings.pop("model", {}), settings.pop("data", {})
    return model, settings, data


def shards_of(source: dict[str, Any]) -> list[str]:
    """Return the directories of shards in the section data of a file of settings, each perhaps with a weight.

    Raises ConfigError if they are not names.
    """
    from fastcompress.errors import ConfigError

    shards = source.get("shards", [])
    shards = [shards] if isinstance(shards, str) else shards
    if not isinstance(shards, list) or not all(isinstance(part, str) for part in shards):
        raise ConfigError(f"data.shards is {shards!r}; it must be DIRECTORY or a list of DIRECTORY:WEIGHT")
    return shards


def _new_settings(
    codec: Codec, model: dict[str, Any], training: dict[str, Any]
) -> tuple[Codec, ModelConfig, TrainConfig]:
    from fastcompress.models.kinds import make_model_config

    config = TrainConfig.from_json(training)
    return codec, make_model_config(model, codec), config


def _stored_settings(
    directory: Path, model: dict[str, Any], training: dict[str, Any]
) -> tuple[Codec, ModelConfig, TrainConfig]:
    """Return the run's settings, overridden by those given; a new horizon replaces the old one."""
    from fastcompress.errors import MismatchError
    from fastcompress.models.kinds import DEFAULT_KIND, model_config_from_json
    from fastcompress.training.run_directory import RunDirectory

    run = RunDirectory(directory)
    stored = run.read_config()
    codec = run.load_codec()
    run.check_codec(codec)
    config = TrainConfig.from_json(stored["train"])
    if any(name in training for name in HORIZONS):
        training = {**dict.fromkeys(HORIZONS), **training}
    fields = model_config_from_json(stored["model"]).to_json()
    kind = fields.get("kind", DEFAULT_KIND)
    if model.get("kind", kind) != kind:
        raise MismatchError(
            f"the run's model is of kind {kind}, not {model['kind']}; leave model.kind out, or begin another run"
        )
    model_fields = {**fields, **model}
    return codec, model_config_from_json(model_fields), config.override(training)


def _resume_command(directory: Path) -> str:
    return shlex.join(["fastcompress", "train", "--run-dir", str(directory), "--resume"])


def _need_run(directory: Path) -> None:
    """Raise DataError, with a command to start a run, if there is nothing to resume."""
    from fastcompress.errors import DataError

    if not (directory / "config.json").exists():
        command = shlex.join(["fastcompress", "train", "--run-dir", str(directory), "--corpus"])
        raise DataError(f"{directory}: holds no run to resume; start one with: {command} FILE --steps 1000")


def _refuse_existing_run(directory: Path) -> None:
    """Refuse a folder that holds a run before the text is read; the trainer would only after."""
    from fastcompress.errors import OutputError

    if (directory / "config.json").exists():
        raise OutputError(f"{directory}: holds a run already; go on with --resume, or choose another --run-dir")


def _check_memory(model_config: ModelConfig, config: TrainConfig) -> None:
    """Refuse a run that cannot fit before the text is encoded; the trainer would only after."""
    from fastcompress.training.device import choose_device
    from fastcompress.training.memory import check_memory

    check_memory(model_config, config, choose_device(config.machine.device))


def _train(
    data: RunData,
    codec: Codec,
    model_config: ModelConfig,
    config: TrainConfig,
    directory: Path,
    resume: bool,
    track: Callable[[dict[str, Any]], None],
) -> TrainResult:
    from fastcompress.errors import OutputError
    from fastcompress.training.train import train as train_model

    has_begun = False

    def begin() -> None:
        nonlocal has_begun
        has_begun = True
        if not resume:
            data.save(directory)

    def foretell(forecast: Forecast) -> None:
        click.echo(f"{directory}: {forecast}", err=True)
        for name, figures in zip(data.names, forecast.reading, strict=True):
            click.echo(f"{name}: {figures}", err=True)

    def show(record: dict[str, Any]) -> None:
        track(record)
        if record["event"] == "eval" and not sys.stderr.isatty():
            click.echo(
                f"step {record['step']}: {record['validation_bits_per_byte']:.4f} bits per byte on "
                f"validation ({count(record['validation_bytes'], 'byte')}), {record['flops']:.3g} FLOPs, "
                f"{record['seconds']:.0f} s",
                err=True,
            )

    tokens = data.train_tokens(codec)
    validation = data.documents("validation", codec)
    try:
        return train_model(
            model_config,
            codec,
            tokens,
            validation,
            config,
            directory,
            resume=resume,
            on_ready=begin,
            on_metrics=show,
            on_forecast=foretell,
            progress=True,
        )
    except OutputError as error:  # a full disk, say: the last checkpoint is whole
        raise OutputError(
            f"{error}; then go on with: {_resume_command(directory)}" if has_begun else str(error)
        ) from error


def _show(result: TrainResult, directory: Path, codec: Codec, as_json: bool) -> None:
    best = result.best_bits_per_byte
    num_parameters = sum(parameter.numel() for parameter in result.model.parameters())
    summary = {
        "run_directory": str(directory),
        "codec": codec.name,
        "num_parameters": num_parameters,
        "steps": result.steps,
        "tokens": result.tokens,
        "flops": result.flops,
        "seconds": result.seconds,
        "tokens_per_second": result.tokens_per_second,
        "best_step": result.best_step,
        "validation_bits_per_byte": best,
    }
    text = (
        f"{directory}: {result.steps:,} steps, {result.tokens:,} tokens, {result.flops:.3g} FLOPs, "
        f"{result.seconds:.0f} s ({result.tokens_per_second:,.0f} tokens/s); {num_parameters:,} parameters\n"
        f"best on validation: {best:.4f} bits per byte, at step {result.best_step}\n"
        f"next: fastcompress eval {directory}, or: fastcompress generate {directory}"
    )
    show_result(summary, text, as_json)
