"""The command convert: vocabularies between formats, and shards to and from the token files of other trainers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fastcompress.cli.convert_tokens import END_HELP, FORMATS, SHARDS, export_shards, import_tokens
from fastcompress.cli.inputs import fixed_codec
from fastcompress.cli.output import check_output, count, force_option, json_option, show_result
from fastcompress.cli.vocabularies import OUTPUT_HELP, format_of, how_to_read, save_vocabulary

if TYPE_CHECKING:
    from fastcompress.bpe import BPE


@click.command(
    short_help="Convert a vocabulary, or shards, to another format.",
    epilog="\b\nExamples:\n"
    "  fastcompress convert tokenizer.json -o model.bpe\n"
    "  fastcompress convert docs.bpe -o tokenizer.json\n"
    "  fastcompress convert llama3.tiktoken --pattern llama3 --special-token '<|eot_id|>=128009' -o llama3.bpe\n"
    "  fastcompress convert shards --to nanogpt -o train.bin\n"
    "  fastcompress convert fineweb_train_*.bin --to shards --codec gpt2 -o fineweb",
)
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE...")
@click.option("--pattern", help="Pattern of a rank file, which does not store one: a name such as cl100k, or a regex.")
@click.option("--special-token", "special_tokens", multiple=True, metavar="TEXT=ID",
              help="Special token of a rank file, which stores none; may be repeated.")  # fmt: skip
@click.option("--to", type=click.Choice([*FORMATS, SHARDS]),
              help="Format of ids: SOURCE is a directory of shards to write as a token file, or with --to shards the "
              "token files to read.")  # fmt: skip
@click.option("--from", "from_", type=click.Choice(FORMATS),
              help="Format of the token files.  [default: told by the files, except nanogpt]")  # fmt: skip
@click.option("--codec", "codec_spec", metavar="CODEC", help="The vocabulary that made the ids of the token files.")
@click.option("--split", help="The split of the shards.  [default: the only one, or train with --to shards]")
@click.option("--end-of-text", metavar="ID", help=END_HELP)
@click.option("--dtype", type=click.Choice(["uint16", "uint32"]),
              help="Type of the ids of a token file.  [default: what its readers expect]")  # fmt: skip
@click.option("--file-tokens", type=click.IntRange(min=1),
              help="Begin another token file after this many ids: x.bin becomes x_000000.bin, x_000001.bin and so on.  "
              "[default: one file]")  # fmt: skip
@click.option("-o", "--output", required=True, help=OUTPUT_HELP + " With --to, the token file, or directory of shards.")
@force_option()
@json_option
def convert(
    sources: tuple[str, ...],
    pattern: str | None,
    special_tokens: tuple[str, ...],
    to: str | None,
    output: str,
    overwrite: bool,
    as_json: bool,
    **token_options: Any,
) -> None:
    """Convert a BPE vocabulary, or a directory of shards, to another format; ids stay the same.

    Without --to, SOURCE is a saved vocabulary (.bpe), codec.json, tokenizer.json, rank file (.tiktoken), or the name of
    a published vocabulary, such as cl100k_base. A rank file stores neither the pattern nor special tokens.

    With --to, shards become a token file of another trainer: nanogpt (.bin), llm.c (.bin, also for modded-nanogpt),
    megatron (.bin and .idx) or datatrove (.ds and its index). With --to shards, such files become shards.
    """
    if to is None:
        given = [name for name, value in token_options.items() if value is not None]
        if given or len(sources) > 1:
            what = f"--{given[0].rstrip('_').removesuffix('_spec').replace('_', '-')}" if given else "a second SOURCE"
            raise click.UsageError(f"{what} goes with --to")
        if Path(sources[0]).is_dir():
            raise click.UsageError(f"{sources[0]} is a folder; if it holds shards, name a format with --to")
        _convert_vocabulary(sources[0], pattern, special_tokens, output, overwrite, as_json)
        return
    if pattern or special_tokens:
        raise click.UsageError("--pattern and --special-token are for vocabularies; leave them out with --to")
    result, text = _convert_tokens(sources, to, output, overwrite, **token_options)
    show_result(result, text, as_json)


def _convert_tokens(
    sources: tuple[str, ...],
    to: str,
    output: str,
    overwrite: bool,
    *,
    from_: str | None,
    codec_spec: str | None,
    split: str | None,
    end_of_text: str | None,
    dtype: str | None,
    file_tokens: int | None,
) -> tuple[dict[str, Any], str]:
    if to == SHARDS:
        if file_tokens is not None:
            raise click.UsageError("--file-tokens is for token files; leave it out with --to shards")
        return import_tokens(sources, output, from_, codec_spec, split=split, end=end_of_text, dtype=dtype,
                             overwrite=overwrite)  # fmt: skip
    if from_ or codec_spec or len(sources) > 1:
        raise click.UsageError(
            f"--to {to} reads one directory of shards, which names its codec; convert token files to shards first"
        )
    return export_shards(sources[0], output, to, split=split, end=end_of_text, dtype=dtype, file_tokens=file_tokens,
                         overwrite=overwrite)  # fmt: skip


def _convert_vocabulary(
    source: str,
    pattern: str | None,
    special_tokens: tuple[str, ...],
    output: str,
    overwrite: bool,
    as_json: bool,
) -> None:
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
