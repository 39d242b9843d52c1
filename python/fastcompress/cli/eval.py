"""fastcompress eval"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fastcompress.cli.inputs import corpus_options
from fastcompress.cli.output import count, json_option, progress_bar, show_result
from fastcompress.cli.run_data import RunData

if TYPE_CHECKING:
    from fastcompress.evaluation.bits_per_byte import Evaluation
    from fastcompress.training.checkpoint import Run


@click.command(
    "eval",
    short_help="Bits per byte of a trained model.",
    epilog="\b\nExample:\n  fastcompress eval runs/a --split validation --stride 64",
)
@click.argument("run_directory", metavar="RUN")
@corpus_options
@click.option("--split", type=click.Choice(["train", "validation", "test"]), default="validation", show_default=True)
@click.option("--stride", type=int, help="Tokens a window moves on; fewer: slower, but more context."
              "  [default: half the context]")  # fmt: skip
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
    batch_size: int,
    which: str,
    device: str,
    as_json: bool,
) -> None:
    """Bits per byte of a RUN's model on a split of a corpus: by default of the one it was trained on.

    Every document is scored whole and alone, and every symbol counts, the end of the document too.
    """
    if max_bytes and not corpus:
        raise click.UsageError("--max-bytes goes with --corpus")
    from fastcompress.evaluation.bits_per_byte import evaluate as score
    from fastcompress.evaluation.flops import count_flops
    from fastcompress.training.checkpoint import load_run

    directory = Path(run_directory)
    run = load_run(directory, which="last" if which == "last" else "best", device=device)
    data = RunData.given(corpus, text_key, max_bytes) if corpus else RunData.load(directory)
    documents = data.documents(split, run.codec)
    with _progress(run, documents, stride):
        result = score(run.model, run.codec, documents, stride=stride, batch_size=batch_size)
    symbols_per_byte = (result.num_tokens + result.num_documents) / result.num_bytes
    flops_per_byte = count_flops(run.model).forward_per_token * symbols_per_byte
    report = {
        "run_directory": run_directory,
        "checkpoint": which,
        "step": run.step,
        "codec": run.codec.name,
        "corpus": data.name,
        "split": split,
        **result.to_json(),
        "forward_flops_per_byte": flops_per_byte,
    }
    show_result(report, _text(report, result), as_json)


@contextlib.contextmanager
def _progress(run: Run, documents: list[bytes], stride: int | None) -> Iterator[None]:
    """A bar that counts the windows that go through the model."""
    from fastcompress.evaluation.bits_per_byte import scoring_windows

    context = run.model.context_length
    lengths = [len(run.codec.encode(document)) + 1 for document in documents]
    step = min(max(1, stride or context // 2), context)
    total = sum(1 for length in lengths for _ in scoring_windows(length, context, step))
    with progress_bar("scoring", total, "window") as advance:
        hook = run.model.register_forward_pre_hook(lambda module, inputs: advance(len(inputs[0])))
        try:
            yield
        finally:
            hook.remove()


def _text(report: dict[str, Any], result: Evaluation) -> str:
    meaning = (
        "exact: no other tokens spell these bytes"
        if result.is_exact
        else "an upper bound: other tokens spell the same bytes too"
    )
    return (
        f"{report['corpus']}, {report['split']}: {count(result.num_documents, 'document')}, "
        f"{count(result.num_bytes, 'byte')}, {count(result.num_tokens, 'token')} of {report['codec']} "
        f"({result.num_bytes / result.num_tokens:.2f} bytes each)\n"
        f"bits per byte: {result.bits_per_byte:.4f} ({meaning})\n"
        f"without the end of documents: {result.bits_per_byte_text:.4f}\n"
        f"perplexity a token: {result.perplexity_per_token:.3f} (compares within {report['codec']} only)\n"
        f"forward FLOPs a byte: {report['forward_flops_per_byte']:,.0f}\n"
        f"window {result.context_length} tokens, stride {result.stride}; checkpoint {report['checkpoint']}, "
        f"step {report['step']:,}"
    )
