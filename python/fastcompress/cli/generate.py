"""fastcompress generate"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import click

from fastcompress.cli.output import echo_text, json_option

Command = TypeVar("Command", bound=Callable[..., Any])
_OPTIONS = [
    click.option("--temperature", type=float, default=1.0, show_default=True, help="0: the likeliest token, always."),
    click.option("--top-k", type=int, help="Draw among the k likeliest tokens only."),
    click.option("--top-p", type=float, help="Draw among the likeliest tokens that hold this share together."),
    click.option("--seed", type=click.IntRange(0, 2**63 - 1), default=0, show_default=True,
                 help="Another seed, another text."),
    click.option("--which", type=click.Choice(["best", "last"]), default="best", show_default=True,
                 help="Which checkpoint of the run."),
    click.option("--device", default="auto", show_default=True, help="auto, cpu, cuda, cuda:1 or mps."),
]  # fmt: skip


def sampling_options(command: Command) -> Command:
    """Give a command the options that decide how text is drawn, and from which checkpoint."""
    for option in _OPTIONS[::-1]:
        command = option(command)
    return command


@click.command(
    short_help="Continue a text with a trained model.",
    epilog="\b\nExamples:\n"
    '  fastcompress generate runs/a --prompt "ROMEO:" --temperature 0.8 --top-k 20\n'
    '  fastcompress generate runs/a --prompt "ROMEO:" --prompt "JULIET:" --stop "\\n\\n"',
)
@click.argument("run_directory", metavar="RUN")
@click.option("--prompt", "prompts", multiple=True,
              help="Text to continue; several are drawn together.  [default: the beginning of a document]")  # fmt: skip
@click.option("--max-tokens", type=int, default=500, show_default=True,
              help="Stop after this many tokens; of lz-blt, after as many fields of tokens.")  # fmt: skip
@click.option("--stop", multiple=True, metavar="TEXT",
              help="End before this text (\\n is a line break); may be given several times.")  # fmt: skip
@sampling_options
@json_option
def generate(
    run_directory: str,
    prompts: tuple[str, ...],
    max_tokens: int,
    stop: tuple[str, ...],
    which: str,
    device: str,
    as_json: bool,
    **sampling: Any,
) -> None:
    """Continue a text with the model of a RUN; the text appears as it is drawn.

    The texts of several prompts come one after the other, with an empty line between them; prompt number i is drawn
    with seed + i.
    """
    from fastcompress.models.threads import choose_threads, limited_threads
    from fastcompress.training.checkpoint import load_run

    run = load_run(Path(run_directory), which="last" if which == "last" else "best", device=device)
    prompts = prompts or ("",)
    sampling |= {"max_tokens": max_tokens, "stop": [text.replace("\\n", "\n") for text in stop]}
    num_threads = choose_threads(len(prompts), run.model.config.context_length, run.model.config.width)
    with limited_threads(num_threads):  # the pieces are drawn as they are taken
        pieces = _pieces(run, prompts, sampling)
        if as_json:
            _show_json(prompts, pieces, sampling["seed"], run.step)
        else:
            _show(prompts, pieces)


def _pieces(run: Any, prompts: tuple[str, ...], sampling: dict[str, Any]) -> Iterator[tuple[int, str]]:
    """The new text in pieces, each with the number of its prompt, which only grows."""
    from fastcompress.evaluation.generate import generate as draw
    from fastcompress.evaluation.generate import generate_batch, in_order

    data = [os.fsencode(prompt) for prompt in prompts]  # what the shell gave need not be UTF-8
    if len(data) == 1:
        return ((0, text) for text in draw(run.model, run.codec, data[0], **sampling))
    return in_order(generate_batch(run.model, run.codec, data, **sampling), len(data))


def _show_json(prompts: tuple[str, ...], pieces: Iterator[tuple[int, str]], seed: int, step: int) -> None:
    texts = [""] * len(prompts)
    for number, text in pieces:
        texts[number] += text
    results = [
        {"prompt": prompt, "text": text, "seed": seed + number}
        for number, (prompt, text) in enumerate(zip(prompts, texts, strict=True))
    ]
    click.echo(json.dumps({**results[0], "step": step} if len(results) == 1 else {"texts": results, "step": step}))


def _show(prompts: tuple[str, ...], pieces: Iterator[tuple[int, str]]) -> None:
    at = 0
    click.echo(os.fsencode(prompts[0]), nl=False)
    for number, text in pieces:
        while at < number:
            at += 1
            _begin(prompts[at])
        echo_text(text)
    for prompt in prompts[at + 1 :]:
        _begin(prompt)
    echo_text("\n")


def _begin(prompt: str) -> None:
    echo_text("\n\n")
    click.echo(os.fsencode(prompt), nl=False)
