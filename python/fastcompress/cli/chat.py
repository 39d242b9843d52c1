"""fastcompress chat"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from fastcompress.cli.generate import sampling_options
from fastcompress.cli.output import count, echo_text

FORGET = "/new"


@click.command(
    short_help="Talk to a model that was finetuned on chats.",
    epilog="\b\nExamples:\n"
    "  fastcompress chat runs/a-chat --temperature 0.7\n"
    "  fastcompress chat runs/a-chat --which last --top-p 0.9",
)
@click.argument("run_directory", metavar="RUN")
@click.option("--system", metavar="TEXT", help="A message before the first question.")
@click.option("--max-tokens", type=int, default=500, show_default=True, help="Largest number of tokens in an answer.")
@sampling_options
def chat(run_directory: str, system: str | None, max_tokens: int, which: str, device: str, **sampling: Any) -> None:
    """Ask the model of a RUN one question per line, from the terminal or a pipe. Answers appear as they are drawn.

    Each answer takes the whole conversation into account. Once the context is full, the oldest questions and answers
    are dropped. /new starts over. The end of input (Ctrl-D) ends the chat.
    """
    from fastcompress.evaluation.chat import Conversation
    from fastcompress.evaluation.generate import Sampler
    from fastcompress.models.threads import choose_threads, limited_threads
    from fastcompress.training.checkpoint import load_run

    run = load_run(Path(run_directory), which="last" if which == "last" else "best", device=device)

    def begin() -> Conversation:
        return Conversation(run.model, run.codec, system=system, max_tokens=max_tokens, sampler=Sampler(**sampling))

    conversation = begin()
    is_terminal = sys.stdin.isatty()
    with limited_threads(choose_threads(1, run.model.config.context_length, run.model.config.width)):
        for question in _questions(is_terminal):
            if question == FORGET:
                conversation = begin()
            else:
                _answer(conversation, question, goes_on=is_terminal)


def _questions(is_terminal: bool) -> Iterator[str]:
    """Yield the lines of standard input that are not empty. Raises DataError if piped input is not UTF-8."""
    from fastcompress.errors import DataError

    while True:
        if is_terminal:
            try:
                line = input("> ")
            except EOFError:
                click.echo(err=True)
                return
        else:
            data = sys.stdin.buffer.readline()
            if not data:
                return
            try:
                line = data.decode("utf-8")
            except UnicodeDecodeError:
                raise DataError("standard input is not UTF-8; convert the questions to UTF-8") from None
        if line.strip():
            yield line.strip()


def _answer(conversation: Any, question: str, *, goes_on: bool) -> None:
    """Show an answer. A question that does not fit ends the command, unless it came from a terminal."""
    from fastcompress.errors import DataError

    forgotten = conversation.num_forgotten
    try:
        pieces = conversation.ask(question)
    except DataError as error:
        if not goes_on:
            raise
        click.echo(f"error: {error}", err=True)
        return
    if conversation.num_forgotten > forgotten:
        click.echo(f"(the context is full: {count(conversation.num_forgotten, 'old message')} forgotten)", err=True)
    for text in pieces:
        echo_text(text)
    echo_text("\n")
