"""fastcompress export and import"""

from __future__ import annotations

from pathlib import Path

import click

from fastcompress.cli.output import force_option


@click.command(
    short_help="Write a model as a Hugging Face transformers folder.",
    epilog="\b\nExample:\n  fastcompress export runs/a hub/a",
)
@click.argument("run_directory", metavar="RUN")
@click.argument("folder")
@click.option("--which", type=click.Choice(["best", "last"]), default="best", show_default=True,
              help="Which checkpoint of the run.")  # fmt: skip
@force_option("Replace the files of a folder that holds some.")
def export(run_directory: str, folder: str, which: str, overwrite: bool) -> None:
    """Write the model of a RUN to a FOLDER that transformers loads, with equal logits and equal ids.

    The model must have RoPE, RMSNorm and SwiGLU (it becomes a Llama, or with QK norm a Qwen3), and its codec must be
    bytes or a byte-pair vocabulary; for anything else, the error names what has no counterpart.
    """
    from fastcompress.errors import OutputError
    from fastcompress.models.exchange import export_huggingface
    from fastcompress.training.checkpoint import load_run

    target = Path(folder)
    if target.exists() and not (target.is_dir() and (overwrite or not any(target.iterdir()))):
        raise OutputError(f"{folder}: exists already; choose another folder, or replace its files with --force")
    run = load_run(Path(run_directory), which="last" if which == "last" else "best")
    export_huggingface(run.model, run.codec, target)
    click.echo(f"{folder}: written; load it with AutoModelForCausalLM.from_pretrained({folder!r})")


@click.command(
    "import",
    short_help="Make a run of a Hugging Face transformers folder.",
    epilog="\b\nExample:\n  fastcompress import hub/a runs/b",
)
@click.argument("folder")
@click.argument("run_directory", metavar="RUN")
def import_run(folder: str, run_directory: str) -> None:
    """Make a RUN of the Llama or Qwen3 model in a FOLDER, such as export wrote, to score, finetune or chat with it."""
    from fastcompress.models.exchange import import_huggingface
    from fastcompress.training.imported import write_run

    model, codec = import_huggingface(Path(folder))
    write_run(Path(run_directory), model, codec)
    click.echo(
        f"{run_directory}: written; {model.num_parameters():,} parameters, codec {codec.name}\n"
        f"next: fastcompress eval {run_directory} --corpus FILE, or: fastcompress generate {run_directory}"
    )
