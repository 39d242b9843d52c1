"""Conversion of shards to the token files of other trainers, and of those to shards."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from fastcompress.cli.inputs import fixed_codec, split_to_read
from fastcompress.cli.output import check_output, count, progress_bar

if TYPE_CHECKING:
    from collections.abc import Sized

    from fastcompress.codec import Codec
    from fastcompress.data.interop import TokenFormat

    _Ids = TypeVar("_Ids", bound=Sized)

FORMATS = ("nanogpt", "llm.c", "megatron", "datatrove")  # the names in TOKEN_FORMATS, without importing it for --help
SHARDS = "shards"
END_HELP = (
    "The id that marks the boundary of two documents in a token file: a number, the text of a special token, or none.  "
    "[default: <|endoftext|> if the codec has it, else the number of its ids]"
)


def export_shards(
    source: str,
    output: str,
    to: str,
    *,
    split: str | None,
    end: str | None,
    dtype: str | None,
    file_tokens: int | None,
    overwrite: bool,
) -> tuple[dict[str, Any], str]:
    """Write a split of a directory of shards as a token file; return the result for JSON, and as text.

    Args:
        source: The directory.
        output: The file.
        to: The name of the format.
        split: The split; None if there is only one.
        end: The end-of-text id, as END_HELP describes it.
        dtype: The type of the ids; None for what readers of the format expect.
        file_tokens: The number of ids after which another file begins; None for one file.
        overwrite: Whether to replace existing files.
    """
    from fastcompress.codec import load_codec
    from fastcompress.data.interop import TOKEN_FORMATS, write_parts
    from fastcompress.data.shards import TokenDataset

    if output == "-":
        raise click.UsageError("token files cannot be written to standard output; give -o a file name")
    form = TOKEN_FORMATS[to]
    for path in form.files(Path(output)) if output and file_tokens is None else (output,):
        check_output(str(path), overwrite or file_tokens is not None, source)
    dataset = TokenDataset.open(Path(source), split_to_read(Path(source), split))
    codec = load_codec(Path(source) / "codec.json")
    end_id = _end_id(end, codec)
    dtype = dtype or form.dtype_for(max(codec.vocab_size - 1, end_id or 0))
    with progress_bar("converting", dataset.num_tokens, "token") as advance:
        documents = _advancing(dataset.documents(), advance)
        if file_tokens is None:
            form.write(Path(output), documents, dtype=dtype, end_of_text=end_id, overwrite=overwrite)
            num_files = 1
        else:
            num_files = len(
                write_parts(form, Path(output), documents, file_tokens=file_tokens, dtype=dtype, end_of_text=end_id,
                            overwrite=overwrite)
            )  # fmt: skip
    result = {
        "output": output,
        "format": to,
        "num_files": num_files,
        "num_documents": dataset.num_documents,
        "dtype": dtype,
        "end_of_text": end_id,
    }
    mark = "nothing between them" if end_id is None else f"end of text {end_id}"
    files = "" if file_tokens is None else f" in {count(num_files, 'file')}"
    return result, f"{output}: {to}, {count(dataset.num_documents, 'document')}{files}, {dtype}, {mark}"


def import_tokens(
    sources: Sequence[str],
    output: str,
    from_: str | None,
    codec_spec: str | None,
    *,
    split: str | None,
    end: str | None,
    dtype: str | None,
    overwrite: bool,
) -> tuple[dict[str, Any], str]:
    """Write token files as one split of a directory of shards; return the result for JSON, and as text.

    Args:
        sources: The files, in order.
        output: The directory.
        from_: The name of the format; None to tell it from the files.
        codec_spec: The codec that made the ids.
        split: The split; None for train.
        end: The end-of-text id, as END_HELP describes it.
        dtype: The type of the ids; None for what the files say.
        overwrite: Whether to replace the split if it exists.
    """
    from fastcompress.data.shard_writer import write_encoded
    from fastcompress.errors import DataError, with_place

    if output in ("", "-"):
        raise click.UsageError("shards are a directory; give -o its name")
    if not codec_spec:
        raise click.UsageError("token files do not say what made their ids; name the vocabulary with --codec")
    form = _format_of(sources, from_)
    codec = fixed_codec(codec_spec, default_pattern="none")
    end_id = _end_id(end, codec)
    split = split or "train"
    documents = form.documents([Path(source) for source in sources], dtype=dtype, end_of_text=end_id)
    num_documents = 0

    def counted() -> Iterator[Any]:
        nonlocal num_documents
        for ids in documents:
            num_documents += 1
            yield ids

    with progress_bar("converting", unit="token") as advance:
        try:
            write_encoded(Path(output), split, _advancing(counted(), advance), codec, overwrite=overwrite)
        except DataError as error:
            if str(error).startswith("document "):
                raise with_place(error, ", ".join(sources)) from error
            raise
    if num_documents == 1 and end is None:
        click.echo(
            f"no id {end_id} divides the ids, so they are one document; if they are more, give --end-of-text",
            err=True,
        )
    result = {
        "output": output,
        "format": SHARDS,
        "split": split,
        "num_documents": num_documents,
        "codec": codec.name,
        "end_of_text": end_id,
    }
    return result, f"{output}: {SHARDS}, {count(num_documents, 'document')} in split {split}, codec {codec.name}"


def _format_of(sources: Sequence[str], name: str | None) -> TokenFormat:
    from fastcompress.data.interop import TOKEN_FORMATS, detect_format
    from fastcompress.errors import DataError

    if name is not None:
        return TOKEN_FORMATS[name]
    source = sources[0]
    if "\0" in source or not Path(source).exists():
        raise DataError(f"{source}: no such file; name one that exists")
    form = detect_format(Path(source))
    if form is None:
        raise DataError(f"{source}: nothing in it says its format; name it with --from {' or '.join(FORMATS)}")
    return form


def _end_id(text: str | None, codec: Codec) -> int | None:
    """Return the end-of-text id that a user names; see END_HELP."""
    from fastcompress.codec import BPECodec

    special = codec.tokenizer.special_tokens if isinstance(codec, BPECodec) else {}
    if text is None:
        return special.get("<|endoftext|>", codec.vocab_size)
    if text == "none":
        return None
    if text.isdecimal():
        return int(text)
    if text not in special:
        known = ", ".join(special) or "none"
        raise click.UsageError(
            f"--end-of-text {text!r}: is neither a number nor a special token of {codec.name} (they are: {known})"
        )
    return special[text]


def _advancing(documents: Iterable[_Ids], advance: Any) -> Iterator[_Ids]:
    for ids in documents:
        yield ids
        advance(len(ids))
