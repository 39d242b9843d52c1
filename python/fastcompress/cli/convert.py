"""The command convert."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from fastcompress.cli.inputs import fixed_codec
from fastcompress.cli.output import check_output, count, force_option, json_option, show_result
from fastcompress.cli.vocabularies import OUTPUT_HELP, format_of, how_to_read, save_vocabulary

if TYPE_CHECKING:
    from fastcompress.bpe import BPE


@click.command(
    short_help="Convert a vocabulary to another format.",
    epilog="\b\nExamples:\n"
    "  fastcompress convert tokenizer.json -o model.bpe\n"
    "  fastcompress convert docs.bpe -o tokenizer.json\n"
    "  fastcompress convert llama3.tiktoken --pattern llama3 --special-token '<|eot_id|>=128009' -o llama3.bpe",
)
@click.argument("source")
@click.option("--pattern", help="Pattern of a rank file, which does not store one: a name such as cl100k, or a regex.")
@click.option("--special-token", "special_tokens", multiple=True, metavar="TEXT=ID",
              help="Special token of a rank file, which stores none; may be repeated.")  # fmt: skip
@click.option("-o", "--output", required=True, help=OUTPUT_HELP)
@force_option()
@json_option
def convert(
    source: str,
    pattern: str | None,
    special_tokens: tuple[str, ...],
    output: str,
    overwrite: bool,
    as_json: bool,
) -> None:
    """Convert a BPE vocabulary to another format; its ids stay the same.

    SOURCE is a saved vocabulary (.bpe), codec.json, tokenizer.json, rank file (.tiktoken), or the name of a published
    vocabulary, such as cl100k_base. A rank file stores neither the pattern nor special tokens.
    """
    check_output(output, overwrite, source)
    form = format_of(output)
    tokenizer = _read(source, pattern, dict(map(_special_token, special_tokens)))
    save_vocabulary(tokenizer, output, overwrite)
    result = {
        "output": output,
        "format": form,
        "vocab_size": tokenizer.vocab_size,
        "pattern": tokenizer.pattern,
        "special_tokens": tokenizer.special_tokens,
    }
    text = f"{output}: {form}, {count(tokenizer.vocab_size, 'id')}, pattern {tokenizer.pattern}"
    show_result(result, text + how_to_read(tokenizer, output), as_json)


def _special_token(option: str) -> tuple[str, int]:
    text, equals, number = option.rpartition("=")
    if not equals or not number.isdecimal():
        raise click.UsageError(f"--special-token {option!r}: give TEXT=ID, such as '<|end|>=50256'")
    return text, int(number)


def _read(source: str, pattern: str | None, special_tokens: dict[str, int]) -> BPE:
    from fastcompress.bpe import BPE
    from fastcompress.codec import BPECodec
    from fastcompress.errors import ConfigError, DataError
    from fastcompress.formats.published_ranks import PUBLISHED_ENCODINGS

    if pattern or special_tokens:
        if source not in PUBLISHED_ENCODINGS and not source.endswith(".tiktoken"):
            raise click.UsageError(f"{source} states its pattern and special tokens itself; leave the options out")
        if pattern or source in PUBLISHED_ENCODINGS:
            if source not in PUBLISHED_ENCODINGS and not Path(source).is_file():
                raise DataError(f"{source}: no such file; name one that exists")
            return BPE.from_tiktoken(source, pattern=pattern, special_tokens=special_tokens or None)
    try:
        codec = fixed_codec(source)
    except ConfigError as error:
        if not source.endswith(".tiktoken"):
            raise
        raise DataError(f"{source}: a rank file does not store its pattern; give --pattern, such as cl100k") from error
    if not isinstance(codec, BPECodec):
        raise DataError(f"{source}: {codec.name} is not a BPE vocabulary; only those can be converted")
    if special_tokens:  # a published rank file, but with other special tokens
        return BPE.from_tiktoken(source, pattern=codec.tokenizer.pattern, special_tokens=special_tokens)
    return codec.tokenizer
