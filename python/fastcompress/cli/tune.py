"""fastcompress tune"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fastcompress.cli.inputs import CODEC_HELP, corpus_options, need_one
from fastcompress.cli.output import json_option, show_result
from fastcompress.cli.run_data import RunData
from fastcompress.cli.train import given_settings, shards_of
from fastcompress.cli.train_options import training_options
from fastcompress.training.config import HORIZONS
from fastcompress.training.settings_file import parse_setting

if TYPE_CHECKING:
    from fastcompress.study.tune import Search

NUM_EVALS = 2  # of a trial, beside those at its start and its end: only its final score counts


@click.command(
    short_help="Search for a learning rate, batch size and model size.",
    epilog="\b\nExamples:\n"
    "  fastcompress tune --corpus tiny-shakespeare --flops 1e14 -o tuned\n"
    "  fastcompress tune --corpus tiny-shakespeare --flops 1e14 -o tuned --size width=192 --size width=384",
)
@click.option("-o", "--output", required=True, help="Folder for the table, the best settings and the trials.")
@corpus_options
@click.option("--shards", metavar="DIRECTORY", help="Shards written by encode, instead of --corpus and --codec.")
@click.option("--codec", "codec_spec", metavar="CODEC", help=f"{CODEC_HELP}  [default: byte]")
@click.option("--config", "config_file", metavar="FILE", help="Settings to start from, in TOML, as for train.")
@click.option("--set", "assignments", metavar="NAME=VALUE", multiple=True,
              help="Any setting, such as model.mlp=gelu. Overrides --config; other options override both.")  # fmt: skip
@click.option("--learning-rates", metavar="RATE,RATE,...",
              help="Rates of matrices, at --batch-size.  [default: --learning-rate times 1/4 to 4]")  # fmt: skip
@click.option("--batch-sizes", metavar="ROWS,ROWS,...", help="Rows per step.  [default: --batch-size times 1/4 to 4]")
@click.option("--size", "sizes", metavar="NAME=VALUE,...", multiple=True,
              help="Settings of a model to try; repeat for others, smallest first.  [default: one model]")  # fmt: skip
@click.option("--strategy", type=click.Choice(["walk", "grid"]), default="walk", show_default=True,
              help="walk: one axis at a time, to better neighbours; grid: all combinations.")  # fmt: skip
@click.option(
    "--max-trials", type=click.IntRange(min=1), default=30, show_default=True, help="Largest number of trials."
)
@training_options
@json_option
def tune(
    output: str,
    corpus: str | None,
    text_key: str,
    max_bytes: int | None,
    shards: str | None,
    codec_spec: str | None,
    config_file: str | None,
    assignments: tuple[str, ...],
    learning_rates: str | None,
    batch_sizes: str | None,
    sizes: tuple[str, ...],
    strategy: str,
    max_trials: int,
    as_json: bool,
    **options: Any,
) -> None:
    """Search for the best settings under one budget per trial (--tokens, --flops or --seconds).

    Learning rates are scaled by the square root of the ratio of batch sizes.
    The same command continues a search that was stopped.
    """
    model, training, source = given_settings(config_file, assignments, options)
    if not (corpus or shards):
        corpus, several = source.get("corpus"), shards_of(source)
        if len(several) > 1:
            raise click.UsageError("data.shards names several directories; tune searches on one")
        shards = several[0] if several else None
    codec_spec = codec_spec or source.get("codec")
    need_one(corpus=corpus, shards=shards)
    need_one(**{name: training.get(name) for name in HORIZONS if name != "steps"})
    if shards and codec_spec:
        raise click.UsageError("--codec does not go with --shards, which has its own")
    data = RunData.given(corpus, text_key, max_bytes, shards)
    search = _search(model, training, {
        "learning_rates": _numbers("--learning-rates", learning_rates, float),
        "batch_sizes": _numbers("--batch-sizes", batch_sizes, int),
        "sizes": [dict(map(parse_setting, size.split(","))) for size in sizes],
        "strategy": strategy,
        "max_trials": max_trials,
    })  # fmt: skip
    try:
        report = _run(search, data, codec_spec or "byte", Path(output))
    except (KeyboardInterrupt, SystemExit):
        click.echo("stopped; the same command goes on from here", err=True)
        raise
    show_result(report, (Path(output) / "tune.txt").read_text() + _next(Path(output), report), as_json)


def _search(model: dict[str, Any], training: dict[str, Any], axes: dict[str, Any]) -> Search:
    from fastcompress.study.tune import Search
    from fastcompress.training.config import TrainConfig

    evaluation = {"num_evals": NUM_EVALS, **training.get("evaluation", {})}
    config = TrainConfig.from_json({**training, "evaluation": evaluation})
    return Search(model=model, training=config, **axes)


def _numbers(flag: str, text: str | None, kind: type[Any]) -> Sequence[Any]:
    try:
        numbers = [kind(word) for word in text.split(",")] if text is not None else []
    except ValueError:
        raise click.UsageError(f"{flag} is {text}; it must be numbers with commas between them") from None
    if any(not 0 < number < float("inf") for number in numbers):
        raise click.UsageError(f"{flag} is {text}; each must be more than 0")
    return numbers


def _run(search: Search, data: RunData, codec_spec: str, output: Path) -> dict[str, Any]:
    """Encode the text, once, and search."""
    from fastcompress.data.shards import TokenDataset, write_shards
    from fastcompress.errors import DataError, FormatError
    from fastcompress.study.folder import make_folder
    from fastcompress.study.tune import tune as run_search

    codec = data.codec(codec_spec)
    validation = data.documents("validation", codec)
    if data.directories:
        return run_search(search, data.directories[0][0], validation, output)
    make_folder(output, output)
    tokens = output / "tokens" / f"{data.loaded.fingerprint[:12]}-{codec.fingerprint[:12]}"
    try:
        TokenDataset.open(tokens, "train", codec=codec)
    except (DataError, FormatError):  # not there yet, or not whole
        write_shards(tokens, "train", data.loaded.contents("train"), codec, overwrite=True)
    return run_search(search, tokens, validation, output)


def _next(output: Path, report: dict[str, Any]) -> str:
    best = output / "best.toml"
    return "" if report["best"] is None else f"next: fastcompress train --config {best} --corpus ... --run-dir ..."
