"""fastcompress eval"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fastcompress.cli.inputs import corpus_options
from fastcompress.cli.output import count, json_option, progress_bar, show_result
from fastcompress.cli.run_data import RunData

if TYPE_CHECKING:
    from fastcompress.codec import Codec
    from fastcompress.data.rows import Rows
    from fastcompress.evaluation.bits_per_byte import Evaluation
    from fastcompress.training.checkpoint import Run


@click.command(
    "eval",
    short_help="Score a trained model in bits per byte.",
    epilog="\b\nExample:\n  fastcompress eval runs/a --split validation --stride 64",
)
@click.argument("run_directory", metavar="RUN")
@corpus_options
@click.option("--split", type=click.Choice(["train", "validation", "test"]), default="validation", show_default=True)
@click.option("--stride", type=int, help="Tokens by which a window moves; fewer are slower, but give more context."
              "  [default: half the context]")  # fmt: skip
@click.option("--canonical", is_flag=True, help="Give no probability to ids that the codec's encoder would not give.")
@click.option("--batch-size", type=int, default=32, show_default=True, help="Windows at once; speed only.")
@click.option("--which", type=click.Choice(["best", "last"]), default="best", show_default=True,
              help="Which checkpoint of the run.")  # fmt: skip
@click.option("--device", default="auto", show_default=True, help="auto, cpu, cuda, cuda:1 or mps.")
@json_option
def evaluate(
    run_directory: str,
    corpus: str | None,
    text_key: str,
    max_bytes: int | None,
    split: str,
    stride: int | None,
    canonical: bool,
    batch_size: int,
    which: str,
    device: str,
    as_json: bool,
) -> None:
    """Score a RUN's model in bits per byte on a split of a corpus, by default the one it was trained on.

    Each document is scored whole and by itself, including its end. --max-bytes limits the bytes scored. There is a
    warning if the run was trained on the text.
    """
    from fastcompress.evaluation.flops import forward_per_byte
    from fastcompress.training.batches import first_documents
    from fastcompress.training.checkpoint import load_run

    directory = Path(run_directory)
    run = load_run(directory, which="last" if which == "last" else "best", device=device)
    data, own = _data_of(directory, corpus, text_key)
    documents = data.documents(split, run.codec)
    scored = first_documents(documents, max_bytes)  # of the split: a limit before dividing would move its borders
    if corpus or split != "train":
        for warning in _warnings(data, own, documents[: len(scored)], run.codec):
            click.echo(f"warning: {warning}", err=True)
    result = _score(run, scored, stride, batch_size, canonical=canonical)
    report = {
        "run_directory": run_directory,
        "checkpoint": which,
        "step": run.step,
        "codec": run.codec.name,
        "corpus": data.name,
        "split": split,
        **result.to_json(),
        "gain_over_uniform": result.gain_over_uniform,
        **forward_per_byte(run.model, run.codec, result),
        **_count_wrong(run.codec, scored),
    }
    if report.get("num_wrong_windows"):
        windows = count(report["num_windows"], "window")
        click.echo(f"warning: {report['num_wrong_windows']:,} of {windows} decode to other text", err=True)
    show_result(report, _text(report, result), as_json)


def _score(run: Run, documents: list[bytes], stride: int | None, batch_size: int, *, canonical: bool) -> Evaluation:
    from fastcompress.evaluation.bits_per_byte import evaluate as score
    from fastcompress.models.threads import choose_threads, limited_threads

    num_before = 0
    with progress_bar("scoring", unit="window") as advance:

        def show(num_done: int, num_windows: int) -> None:
            nonlocal num_before
            advance(num_done - num_before, num_windows)
            num_before = num_done

        num_threads = choose_threads(batch_size, run.model.config.context_length, run.model.config.width)
        with limited_threads(num_threads):
            rows = _canonical_rows(run) if canonical else None
            return score(
                run.model, run.codec, documents, stride=stride, batch_size=batch_size, progress=show, rows=rows
            )


def _canonical_rows(run: Run) -> Rows:
    """The rows of the run's model with masks: those of its kind, if that has some, else those of ids."""
    from fastcompress.data.canonical_rows import CanonicalRows
    from fastcompress.errors import ConfigError

    config: Any = run.model.config
    if "canonical" in config.to_json():
        rows: Rows = dataclasses.replace(config, canonical=True).rows(run.codec)
        return rows
    masked = CanonicalRows(run.codec, config.context_length)
    if not masked.columns.keys() >= run.model.rows(run.codec).columns.keys():
        raise ConfigError("canonical is set, but the model does not predict ids of the codec; score it without")
    return masked


def _data_of(directory: Path, corpus: str | None, text_key: str) -> tuple[RunData, RunData | None]:
    """The text to score, and the run's own where that is known; the same where `corpus` names no other."""
    from fastcompress.errors import FastcompressError

    if corpus is None:
        own = RunData.load(directory)
        return own, own
    given = RunData.given(corpus, text_key, None)
    try:
        own = RunData.load(directory)
    except FastcompressError:
        return given, None
    if (given.corpus, given.text_key) == (own.corpus, own.text_key):
        given = dataclasses.replace(own, fingerprint=None)  # with its limit; the text itself may have changed
    return given, given if given.loaded.fingerprint == own.fingerprint else own


def _warnings(data: RunData, own: RunData | None, documents: list[bytes], codec: Codec) -> Iterator[str]:
    """Yield caveats on the figure: text that was trained on, or another text than the run's."""
    from fastcompress.errors import FastcompressError

    if own is None:
        yield "the run's own text is not known, so it was not checked whether it was trained on this one"
        return
    if data is not own:
        yield f"{data.name} is not the text that the run was given ({own.corpus or own.name}); compare with care"
    try:
        num_seen = own.num_trained_on(documents, codec)
    except FastcompressError as error:
        yield f"it was not checked whether the run was trained on this text: {error}"
        return
    if num_seen:
        yield f"the run was trained on {num_seen} of these {count(len(documents), 'document')}: the figure flatters"


def _count_wrong(codec: Any, documents: list[bytes]) -> dict[str, int]:
    """Count the windows of published kinds, and those of them that decode to other text; nothing for other codecs."""
    if not getattr(codec, "keeps_wrong", False):
        return {}
    reports = [codec.windows.report(document) for document in documents]
    return {
        "num_windows": sum(report.num_windows for report in reports),
        "num_wrong_windows": sum(report.num_wrong for report in reports),
    }


def _text(report: dict[str, Any], result: Evaluation) -> str:
    if report.get("num_wrong_windows"):
        meaning = "no bound: some windows decode to other text"
    elif result.is_exact:
        meaning = "exact: no other tokens can spell these bytes"
    else:
        meaning = "an upper bound: other tokens spell the same bytes too"
    learned = charged = boundaries = ""
    if result.boundary_bits_per_byte is not None:
        boundaries = f"of these, for where segments end: {result.boundary_bits_per_byte:.4f}\n"
    if result.gain_over_uniform is not None:
        learned = (
            f"gain over a model that has learned nothing: {result.gain_over_uniform:.4f} "
            f"of {result.uniform_bits_per_byte:.4f} bits per byte\n"
        )
    if "auxiliary_making_flops" in report:
        charged = (
            f"with the codec's model run for every byte: {report['forward_flops_per_byte_with_auxiliary']:,.0f}; "
            f"making the codec took {report['auxiliary_making_flops']:.3g} FLOPs once\n"
        )
    return (
        f"{report['corpus']}, {report['split']}: {count(result.num_documents, 'document')}, "
        f"{count(result.num_bytes, 'byte')}, {count(result.num_tokens, 'token')} of {report['codec']} "
        f"({result.num_bytes / result.num_tokens:.2f} bytes each)\n"
        f"bits per byte: {result.bits_per_byte:.4f} ({meaning})\n"
        f"{boundaries}"
        f"without the end of documents: {result.bits_per_byte_text:.4f}\n"
        f"{learned}"
        f"perplexity a token: {result.perplexity_per_token:.3f} (compares within {report['codec']} only)\n"
        f"forward FLOPs a byte: {report['forward_flops_per_byte']:,.0f}\n"
        f"{charged}"
        f"window {result.context_length} tokens, stride {result.stride}; checkpoint {report['checkpoint']}, "
        f"step {report['step']:,}"
    )
