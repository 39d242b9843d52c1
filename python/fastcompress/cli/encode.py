"""The command encode."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fastcompress.cli.inputs import (
    CODEC_HELP,
    all_documents,
    corpus_options,
    document_named,
    file_documents,
    make_codec,
    need_one,
    on_error_option,
    read_corpus,
)
from fastcompress.cli.output import count, force_option, json_option, open_output, progress_bar, show_result

if TYPE_CHECKING:
    from fastcompress.codec import Codec
    from fastcompress.data.corpora import Document


@click.command(
    short_help="Encode text to token ids.",
    epilog="\b\nExamples:\n"
    "  fastcompress encode --corpus tiny-shakespeare --codec char -o shards\n"
    "  fastcompress encode book.txt --codec docs.bpe -o -",
)
@click.argument("files", nargs=-1, metavar="[FILES]...")
@corpus_options
@on_error_option
@click.option("--codec", "codec_spec", required=True, metavar="CODEC", help=CODEC_HELP)
@click.option("-o", "--output", required=True,
              help="Directory for shards, or - to print ids as text, one line per document.")  # fmt: skip
@click.option("--split", default="train", show_default=True, help="Name of the split that FILES become.")
@click.option("--shard-tokens", type=click.IntRange(min=1), default=1 << 27, show_default=True,
              help="Start another file after this many tokens.")  # fmt: skip
@force_option("Replace shards that exist: all splits, or with FILES only the one.")
@click.option("--threads", type=click.IntRange(min=1), help="Number of threads.  [default: all cores, at most 8]")
@json_option
def encode(
    files: tuple[str, ...],
    corpus: str | None,
    text_key: str,
    max_bytes: int | None,
    on_error: str,
    codec_spec: str,
    output: str,
    split: str,
    shard_tokens: int,
    overwrite: bool,
    threads: int | None,
    as_json: bool,
) -> None:
    """Encode text to token ids: shards to train on, or numbers to look at.

    --corpus is divided into the splits train, validation and test, in a directory of their own. FILES are not divided:
    they become the one split that --split names. They are text files, JSON lines (.jsonl) or tables (.csv, .tsv,
    .parquet, .arrow), which may be compressed as .gz, .bz2, .xz, .zst or .fcz, folders of such files, or patterns that
    match some; - is standard input. An end-of-document id follows each document.
    """
    need_one(FILES=files, corpus=corpus)
    if not output:
        raise click.UsageError("the output's name is empty; give -o a directory, or -")
    splits: dict[str, Sequence[Document]]
    if corpus:
        loaded = read_corpus(corpus, text_key, max_bytes)
        codec = make_codec(codec_spec, loaded.split("train"), lambda: all_documents(loaded))
        splits = {name: loaded.split(name) for name in ("train", "validation", "test") if loaded.num_bytes(name)}
    else:
        documents = list(file_documents(files, text_key, max_bytes, on_error))
        codec = make_codec(codec_spec, documents, lambda: documents)
        splits = {split: documents}
    with document_named(itertools.chain(*splits.values()), codec.encode):
        if output == "-":
            _print_ids(splits, codec)
            return
        _write(splits, codec, Path(output), shard_tokens, threads, whole=bool(corpus), overwrite=overwrite)
    _show(list(splits), codec, output, as_json)


def _print_ids(splits: dict[str, Sequence[Document]], codec: Codec) -> None:
    with open_output("-") as file:
        for documents in splits.values():
            for document in documents:
                file.write(" ".join(map(str, codec.encode(document.data).tolist())).encode() + b"\n")


def _write(
    splits: dict[str, Sequence[Document]],
    codec: Codec,
    output: Path,
    shard_tokens: int,
    threads: int | None,
    *,
    whole: bool,
    overwrite: bool,
) -> None:
    """Write shards. If `whole`, `splits` are a whole corpus and become the only splits of `output`."""
    from fastcompress.data.shards import write_shards, write_splits

    contents = {name: [document.data for document in documents] for name, documents in splits.items()}
    with progress_bar("encoding", sum(map(_num_bytes, contents.values()))) as advance:
        settings: dict[str, Any] = {
            "shard_tokens": shard_tokens,
            "num_threads": threads,
            "overwrite": overwrite,
            "progress": lambda num_bytes, num_tokens: advance(num_bytes),
        }
        if whole:
            write_splits(output, contents, codec, **settings)
        else:
            [(name, documents)] = contents.items()
            write_shards(output, name, documents, codec, **settings)


def _show(splits: Sequence[str], codec: Codec, output: str, as_json: bool) -> None:
    from fastcompress.data.shards import TokenDataset

    written = {name: TokenDataset.open(Path(output), name, codec=codec, verify=False) for name in splits}
    result = {
        "output": output,
        "codec": codec.name,
        "fingerprint": codec.fingerprint,
        "vocab_size": codec.vocab_size,
        "splits": {
            name: {"documents": data.num_documents, "bytes": data.num_bytes, "tokens": data.num_tokens}
            for name, data in written.items()
        },
    }
    lines = [
        f"{output}: {name}: {count(data.num_documents, 'document')}, {count(data.num_bytes, 'byte')}, "
        f"{count(data.num_tokens, 'token')}"
        for name, data in written.items()
    ]
    show_result(result, "\n".join(lines), as_json)


def _num_bytes(documents: Sequence[bytes]) -> int:
    return sum(map(len, documents))
