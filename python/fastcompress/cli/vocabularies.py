"""Files of BPE vocabularies, whose names select their format."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from fastcompress.bpe import BPE

FORMATS = {"codec.json": "codec", ".json": "tokenizer.json", ".tiktoken": "rank file", ".bpe": "vocabulary"}
OUTPUT_HELP = (
    "Output file. Its name selects the format: .bpe (fastcompress), .json (tokenizer.json), .tiktoken (rank file), or "
    "codec.json (fastcompress, for any codec)."
)


def format_of(output: str) -> str:
    """Return the format, a value of FORMATS, that the name of an output selects. Raises UsageError for other names."""
    for suffix, form in FORMATS.items():
        if output.lower().endswith(suffix):
            return form
    raise click.UsageError(
        f"{output}: the output's name must end in .bpe (fastcompress), .json (tokenizer.json), .tiktoken (rank file) "
        "or codec.json, which selects the format"
    )


def save_vocabulary(tokenizer: BPE, output: str, overwrite: bool) -> None:
    """Write a vocabulary in the format that the output's name selects.

    Args:
        tokenizer: The vocabulary.
        output: The file.
        overwrite: Whether to replace an existing file.

    Raises:
        OutputError: The file cannot be written, or exists.
        ConfigError: The format cannot express the vocabulary.
    """
    from fastcompress._files import replacing
    from fastcompress.codec import BPECodec, save_codec
    from fastcompress.errors import OutputError

    write = {
        "codec": lambda path: save_codec(BPECodec(tokenizer), path),
        "tokenizer.json": tokenizer.to_huggingface,
        "rank file": tokenizer.to_tiktoken,
        "vocabulary": tokenizer.save,
    }[format_of(output)]
    with replacing(output, overwrite=overwrite) as temporary:
        try:
            write(temporary)
        except OutputError as error:
            raise OutputError(str(error).replace(str(temporary), output)) from error


def how_to_read(tokenizer: BPE, output: str) -> str:
    """Return a clause about what is needed to read the file but not stored in it; empty for most formats."""
    if format_of(output) != "rank file":
        return ""
    specials = len(tokenizer.special_tokens)
    tokens = f" and {specials:,} special token{'s' * (specials != 1)}" if specials else ""
    return f"; read it with pattern {tokenizer.pattern}{tokens}, which a rank file does not store"
