"""fastcompress train"""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fastcompress.cli.inputs import CODEC_HELP, corpus_options, need_one
from fastcompress.cli.output import count, json_option, show_result
from fastcompress.cli.run_data import RunData

if TYPE_CHECKING:
    from fastcompress.codec import Codec
    from fastcompress.models.gpt import GPTConfig
    from fastcompress.training.config import TrainConfig
    from fastcompress.training.loop import TrainResult

# Option name to the field of GPTConfig or TrainConfig it sets; the rest of the fields keep their defaults.
_MODEL_FIELDS = ("context_length", "num_layers", "num_heads", "width", "dropout")
_TRAIN_FIELDS = (
    "steps", "flops", "seconds", "batch_size", "micro_batch_size", "learning_rate", "weight_decay", "warmup",
    "cooldown", "precision", "compile", "device", "num_threads", "eval_every", "eval_bytes", "seed",
)  # fmt: skip
_HORIZONS = ("steps", "flops", "seconds")


@click.command(
    short_help="Train a GPT and keep its checkpoints.",
    epilog="\b\nExamples:\n"
    "  fastcompress train --corpus tiny-shakespeare --codec char --steps 5000 --run-dir runs/a\n"
    "  fastcompress train --run-dir runs/a --resume",
)
@click.option("--run-dir", required=True, help="Where the run lives: settings, codec, metrics, checkpoints.")
@click.option("--resume", is_flag=True, help="Go on with the run in --run-dir; its settings need no repeating.")
@corpus_options
@click.option("--shards", metavar="DIRECTORY", help="Instead of --corpus and --codec: what encode wrote.")
@click.option("--codec", "codec_spec", metavar="CODEC", help=f"{CODEC_HELP}  [default: byte]")
@click.option("--steps", type=int, help="Train for this many steps.")
@click.option("--flops", type=float, help="Train for as many steps as fit into this many floating-point operations.")
@click.option("--seconds", type=float, help="Train for this long on the clock. Evaluations count; they are held to a "
              "quarter of it, apart from the first and the last one.")  # fmt: skip
@click.option("--preset", type=click.Choice(["workshop", "modern"]),
              help="workshop: GPT-2; modern: RoPE, RMSNorm, SwiGLU, QK norm.  [default: modern]")  # fmt: skip
@click.option("--layers", "num_layers", type=int, help="Transformer blocks.  [default: 6]")
@click.option("--heads", "num_heads", type=int, help="Attention heads.  [default: 6]")
@click.option("--width", type=int, help="Size of the residual stream.  [default: 384]")
@click.option("--context", "context_length", type=int, help="Tokens the model sees.  [default: 256]")
@click.option("--dropout", type=float, help="[default: 0.2 for workshop, 0 for modern]")
@click.option("--batch-size", type=int, help="Sequences a step.  [default: 64]")
@click.option("--micro-batch-size", type=int, help="Sequences at once; smaller needs less memory.")
@click.option("--learning-rate", type=float, help="Peak learning rate.  [default: 0.001]")
@click.option("--weight-decay", type=float, help="[default: 0.1]")
@click.option("--warmup", type=float, help="Fraction of the run.  [default: 0.02]")
@click.option("--cooldown", type=float, help="Fraction of the run.  [default: 0.4]")
@click.option("--eval-every", type=int, help="Steps between evaluations.  [default: 20 over the run]")
@click.option(
    "--eval-bytes", type=int, help="Validation bytes of these evaluations; --seconds may cut them.  [default: 262144]"
)
@click.option("--precision", type=click.Choice(["auto", "float32", "bfloat16", "float16"]))
@click.option("--compile", type=click.Choice(["auto", "on", "off"]), help="torch.compile; auto: on CUDA.")
@click.option("--device", help="auto, cpu, cuda, cuda:1 or mps.  [default: auto]")
@click.option(
    "--threads", "num_threads", type=int, help="CPU threads.  [default: 1 for small models, else one per core]"
)
@click.option("--seed", type=int, help="Seed for initial weights, dropout and batch order.  [default: 0]")
@json_option
def train(
    run_dir: str,
    resume: bool,
    corpus: str | None,
    text_key: str,
    max_bytes: int | None,
    shards: str | None,
    codec_spec: str | None,
    preset: str | None,
    as_json: bool,
    **settings: Any,
) -> None:
    """Train a GPT on a corpus, or on shards, and keep its best and its last checkpoint.

    Give one horizon: --steps, --flops or --seconds. Ctrl-C saves; --resume goes on.
    """
    directory = Path(run_dir)
    given = {name: value for name, value in settings.items() if value is not None}
    if resume:
        _need_run(directory)
    if resume and not (corpus or shards):
        data = RunData.load(directory)
    else:
        need_one(corpus=corpus, shards=shards)
        data = RunData.given(corpus, text_key, max_bytes, shards)
        if resume:
            data = data.of_run(directory)
    if max_bytes is not None and not corpus:
        raise click.UsageError("--max-bytes goes with --corpus")
    if (shards or resume) and codec_spec:
        raise click.UsageError(f"--codec does not go with --{'resume' if resume else 'shards'}, which has its own")
    if resume and preset:
        raise click.UsageError("--preset does not go with --resume: the run has its model")
    try:
        if resume:
            codec, model_config, config = _stored_settings(directory, given)
        else:
            need_one(**{name: given.get(name) for name in _HORIZONS})
            _refuse_existing_run(directory)
            codec, model_config, config = _new_settings(data.codec(codec_spec or "byte"), preset, given)
        _check_memory(model_config, config)
        result = _train(data, codec, model_config, config, directory, resume)
    except (KeyboardInterrupt, SystemExit):
        if (directory / "config.json").exists():
            click.echo(f"stopped; go on with: {_resume_command(directory)}", err=True)
        raise
    if resume and not result.new_steps:
        click.echo(f"{directory}: done already, with {count(result.steps, 'step')}; no step was made", err=True)
    _show(result, directory, codec, as_json)


def _new_settings(codec: Codec, preset: str | None, given: dict[str, Any]) -> tuple[Codec, GPTConfig, TrainConfig]:
    from fastcompress.models.gpt import GPTConfig
    from fastcompress.training.config import TrainConfig

    model = {name: given[name] for name in _MODEL_FIELDS if name in given}
    make = GPTConfig.workshop if preset == "workshop" else GPTConfig.modern
    config = TrainConfig.from_json({name: given[name] for name in _TRAIN_FIELDS if name in given})
    return codec, make(vocab_size=codec.vocab_size + 1, **model), config


def _stored_settings(directory: Path, given: dict[str, Any]) -> tuple[Codec, GPTConfig, TrainConfig]:
    """The run's own settings with the options given laid over them; a new horizon replaces the old one."""
    from fastcompress.models.gpt import GPTConfig
    from fastcompress.training.config import TrainConfig
    from fastcompress.training.run_directory import RunDirectory

    run = RunDirectory(directory)
    stored = run.read_config()
    model, train = stored["model"], stored["train"]
    codec = run.load_codec()
    run.check_codec(codec)
    if any(name in given for name in _HORIZONS):
        train |= dict.fromkeys(_HORIZONS)
    model |= {name: given[name] for name in _MODEL_FIELDS if name in given}
    train |= {name: given[name] for name in _TRAIN_FIELDS if name in given}
    return codec, GPTConfig.from_json(model), TrainConfig.from_json(train)


def _resume_command(directory: Path) -> str:
    return shlex.join(["fastcompress", "train", "--run-dir", str(directory), "--resume"])


def _need_run(directory: Path) -> None:
    """Say what to type if there is nothing to resume."""
    from fastcompress.errors import DataError

    if not (directory / "config.json").exists():
        command = shlex.join(["fastcompress", "train", "--run-dir", str(directory), "--corpus"])
        raise DataError(f"{directory}: holds no run to resume; start one with: {command} FILE --steps 1000")


def _refuse_existing_run(directory: Path) -> None:
    """Before the text is read: the trainer would refuse only after."""
    from fastcompress.errors import OutputError

    if (directory / "config.json").exists():
        raise OutputError(f"{directory}: holds a run already; go on with --resume, or choose another --run-dir")


def _check_memory(model_config: GPTConfig, config: TrainConfig) -> None:
    """Before the text is encoded: the trainer would refuse only after."""
    from fastcompress.training.device import choose_device
    from fastcompress.training.memory import check_memory

    check_memory(model_config, config, choose_device(config.device))


def _train(
    data: RunData,
    codec: Codec,
    model_config: GPTConfig,
    config: TrainConfig,
    directory: Path,
    resume: bool,
) -> TrainResult:
    from fastcompress.errors import OutputError
    from fastcompress.training.loop import train as train_model

    has_begun = False

    def begin() -> None:
        nonlocal has_begun
        has_begun = True
        if not resume:
            data.save(directory)

    def show(record: dict[str, Any]) -> None:
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
