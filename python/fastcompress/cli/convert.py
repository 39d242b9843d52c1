"""fastcompress convert"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from fastcompress.cli.output import check_output, count, json_option, show_result

if TYPE_CHECKING:
    from fastcompress.bpe import BPE

_FORMATS = {".json": "tokenizer.json", ".tiktoken": "rank file", ".bpe": "vocabulary"}


@click.command(
    short_help="Turn a vocabulary into another format.",
    epilog="\b\nExamples:\n"
    "  fastcompress convert tokenizer.json -o model.bpe\n"
    "  fastcompress convert docs.bpe -o tokenizer.json\n"
    "  fastcompress convert llama3.tiktoken --pattern llama3 --special-token '<|eot_id|>=128009' -o llama3.bpe",
)
@click.argument("source")
@click.option("--pattern", help="Of a rank file, which does not say it: a name such as cl100k, or a regex.")
@click.option("--special-token", "special_tokens", multiple=True, metavar="TEXT=ID",
              help="Of a rank file, which has none; repeatable.")  # fmt: skip
@click.option("-o", "--output", required=True,
              help="Its end says the format: .json a tokenizer.json, .tiktoken a rank file, .bpe our own.")  # fmt: skip
@json_option
def convert(source: str, pattern: str | None, special_tokens: tuple[str, ...], output: str, as_json: bool) -> None:
    """Turn a BPE vocabulary into another format, with equal ids.

    SOURCE is a saved vocabulary, a codec.json, a tokenizer.json, a rank file of tiktoken (.tiktoken), or the name of
    one, such as cl100k_base. A rank file holds neither pattern nor special tokens: they are lost there.
    """
    form = Path(output).suffix
    if form not in _FORMATS:
        raise click.UsageError(f"{output}: the output's name must end in {', '.join(_FORMATS)}, which says the format")
    check_output(output)
    tokenizer = _read(source, pattern, dict(map(_special_token, special_tokens)))
    {".json": tokenizer.to_huggingface, ".tiktoken": tokenizer.to_tiktoken, ".bpe": tokenizer.save}[form](output)
    result = {
        "output": output,
        "format": _FORMATS[form],
        "vocab_size": tokenizer.vocab_size,
        "pattern": tokenizer.pattern,
        "special_tokens": tokenizer.special_tokens,
    }
    text = f"{output}: {_FORMATS[form]}, {count(tokenizer.vocab_size, 'id')}, pattern {tokenizer.pattern}"
    if form == ".tiktoken":
        text += f"; read it with that pattern and {count(len(tokenizer.special_tokens), 'special token')}"
    show_result(result, text, as_json)


def _special_token(option: str) -> tuple[str, int]:
    text, equals, number = option.rpartition("=")
    if not equals or not number.isdecimal():
        raise click.UsageError(f"--special-token {option!r}: give TEXT=ID, such as '<|end|>=50256'")
    return text, int(number)


def _read(source: str, pattern: str | None, special_tokens: dict[str, int]) -> BPE:
    from fastcompress.bpe import BPE
    from fastcompress.codec import BPECodec, codec_from_spec
    from fastcompress.errors import DataError
    from fastcompress.formats.published_ranks import PUBLISHED_ENCODINGS

    if source in PUBLISHED_ENCODINGS or source.endswith(".tiktoken"):
        return BPE.from_tiktoken(source, pattern=pattern, special_tokens=special_tokens or None)
    if pattern or special_tokens:
        raise click.UsageError(f"{source} says its pattern and special tokens itself; leave the options out")
    codec = codec_from_spec(source)
    if not isinstance(codec, BPECodec):
        raise DataError(f"{source}: {codec.name} is no BPE vocabulary, and only those can be converted")
    return codec.tokenizer
