"""fastcompress generate"""

from __future__ import annotations

import os
from pathlib import Path

import click

from fastcompress.cli.output import echo_text, json_option


@click.command(
    short_help="Continue a text with a trained model.",
    epilog='\b\nExample:\n  fastcompress generate runs/a --prompt "ROMEO:" --temperature 0.8 --top-k 20',
)
@click.argument("run_directory", metavar="RUN")
@click.option("--prompt", default="", help="Text to continue.  [default: the beginning of a document]")
@click.option("--max-tokens", type=int, default=500, show_default=True, help="Stop after this many tokens.")
@click.option("--temperature", type=float, default=1.0, show_default=True, help="0: the likeliest token, always.")
@click.option("--top-k", type=int, help="Draw among the k likeliest tokens only.")
@click.option("--top-p", type=float, help="Draw among the likeliest tokens that hold this share together.")
@click.option(
    "--seed", type=click.IntRange(0, 2**63 - 1), default=0, show_default=True, help="Another seed, another text."
)
@click.option("--which", type=click.Choice(["best", "last"]), default="best", show_default=True,
              help="Which checkpoint of the run.")  # fmt: skip
@click.option("--device", default="auto", show_default=True, help="auto, cpu, cuda, cuda:1 or mps.")
@json_option
def generate(
    run_directory: str,
    prompt: str,
    max_tokens: int,
    temperature: float,
    top_k: int | None,
    top_p: float | None,
    seed: int,
    which: str,
    device: str,
    as_json: bool,
) -> None:
    """Continue a text with the model of a RUN; the text appears as it is drawn."""
    import json

    from fastcompress.evaluation.generate import generate as draw
    from fastcompress.models.threads import choose_threads, limited_threads
    from fastcompress.training.checkpoint import load_run

    run = load_run(Path(run_directory), which="last" if which == "last" else "best", device=device)
    pieces = draw(
        run.model, run.codec, os.fsencode(prompt), max_tokens=max_tokens, temperature=temperature,
        top_k=top_k, top_p=top_p, seed=seed,
    )  # fmt: skip
    num_threads = choose_threads(1, run.model.config.context_length, run.model.config.width)
    with limited_threads(num_threads):  # the pieces are drawn as they are taken
        if as_json:
            click.echo(json.dumps({"prompt": prompt, "text": "".join(pieces), "seed": seed, "step": run.step}))
            return
        click.echo(os.fsencode(prompt), nl=False)  # bytes: what the shell gave need not be UTF-8
        for piece in pieces:
            echo_text(piece)
        echo_text("\n")
