"""The command encode."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fastcompress.cli.inputs import (
    CODEC_HELP,
    all_documents,
    check_input,
    corpus_options,
    document_named,
    file_documents,
    is_learned_spec,
    make_codec,
    need_one,
    on_error_option,
    read_corpus,
    report_skipped,
)
from fastcompress.cli.output import count, force_option, json_option, open_output, progress_bar, show_result
from fastcompress.cli.streams import stdin

if TYPE_CHECKING:
    from fastcompress.codec import Codec
    from fastcompress.data.corpora import Document
    from fastcompress.data.dataset_parts import EncodeProgress

_BYTES_PER_TOKEN = 4  # of --shard-tokens, which was replaced by --shard-bytes


@click.command(
    short_help="Encode text to token ids.",
    epilog="\b\nExamples:\n"
    "  fastcompress encode --corpus tiny-shakespeare --codec char -o shards\n"
    "  fastcompress encode 'pages/*.jsonl.zst' --codec docs.bpe -o shards\n"
    "  fastcompress encode book.txt --codec docs.bpe -o -",
)
@click.argument("files", nargs=-1, metavar="[FILES]...")
@corpus_options
@on_error_option
@click.option("--codec", "codec_spec", required=True, metavar="CODEC", help=CODEC_HELP)
@click.option("-o", "--output", required=True,
              help="Directory for shards, or - to print ids as text, one line per document.")  # fmt: skip
@click.option("--split", default="train", show_default=True, help="Name of the split that FILES become.")
@click.option("--shard-bytes", type=click.IntRange(min=1), default=1 << 28, show_default=True,
              help="Start another shard after this many bytes of documents.")  # fmt: skip
@click.option("--shard-tokens", type=click.IntRange(min=1), hidden=True)
@force_option("Replace shards that exist: all splits, or with FILES only the one.")
@click.option("--threads", type=click.IntRange(min=1), help="Number of threads.  [default: all cores, at most 8]")
@click.option("--engine", type=click.Choice(["local", "ray"]), default="local", show_default=True,
              help="Encode FILES on this machine, or on the Ray cluster that RAY_ADDRESS names.")  # fmt: skip
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
    shard_bytes: int,
    shard_tokens: int | None,
    overwrite: bool,
    threads: int | None,
    engine: str,
    as_json: bool,
) -> None:
    """Encode text to token ids: shards to train on, or numbers to look at.

    --corpus is divided into the splits train, validation and test, in a directory of their own. FILES are not divided:
    they become the one split that --split names. They are text files, JSON lines (.jsonl) or tables (.csv, .tsv,
    .parquet, .arrow), which may be compressed as .gz, .bz2, .xz, .zst or .fcz, folders of such files, or patterns that
    match some; - is standard input. An end-of-document id follows each document.

    FILES may be of any size. A run that was killed is finished by the same command again, which goes on where it
    stopped; only standard input starts over. What --on-error skip leaves out is listed in OUTPUT/SPLIT/skipped.jsonl.
    """
    need_one(FILES=files, corpus=corpus)
    if not output:
        raise click.UsageError("the output's name is empty; give -o a directory, or -")
    if shard_tokens is not None:
        click.echo("warning: --shard-tokens is deprecated and counts as 4 bytes a token; use --shard-bytes", err=True)
        shard_bytes = _BYTES_PER_TOKEN * shard_tokens
    if engine != "local" and (corpus or output == "-" or "-" in files):
        raise click.UsageError(f"--engine {engine} encodes FILES into shards; not --corpus, and not from or to -")
    source = _Source(files, text_key, max_bytes, on_error)
    target = _Target(output, split, shard_bytes, threads, engine, overwrite, as_json)
    if corpus:
        _encode_corpus(corpus, source, codec_spec, target)
    else:
        _encode_files(source, codec_spec, target)


@dataclass(frozen=True)
class _Source:
    """The options of what is read."""

    files: tuple[str, ...]
    text_key: str
    max_bytes: int | None
    on_error: str

    def documents(self, *, reports: bool) -> Iterator[Document]:
        return file_documents(self.files, self.text_key, self.max_bytes, self.on_error, reports=reports)


@dataclass(frozen=True)
class _Target:
    """The options of what is written."""

    output: str
    split: str
    shard_bytes: int
    threads: int | None
    engine: str
    overwrite: bool
    as_json: bool


def _encode_corpus(corpus: str, source: _Source, codec_spec: str, target: _Target) -> None:
    loaded = read_corpus(corpus, source.text_key, source.max_bytes, source.on_error)
    codec = make_codec(codec_spec, loaded.split("train"), lambda: all_documents(loaded))
    splits = {name: loaded.split(name) for name in ("train", "validation", "test") if loaded.num_bytes(name)}
    if target.output == "-":
        _print_ids(itertools.chain(*splits.values()), codec)
    else:
        _write_loaded(splits, codec, target, whole=True)


def _encode_files(source: _Source, codec_spec: str, target: _Target) -> None:
    for name in source.files:
        check_input(name)
    if "-" in source.files and is_learned_spec(codec_spec):  # standard input is read once, so it is kept
        kept = list(source.documents(reports=True))
        codec = make_codec(codec_spec, kept, lambda: kept)
        if target.output == "-":
            _print_ids(kept, codec)
        else:
            _write_loaded({target.split: kept}, codec, target, whole=False)
        return
    codec = make_codec(codec_spec, source.documents(reports=False), lambda: source.documents(reports=False))
    if target.output != "-":
        _write_files(source, codec, target)
    elif "-" in source.files:
        _print_ids(list(source.documents(reports=True)), codec)
    else:
        for _ in source.documents(reports=False):  # so that nothing is printed if one cannot be read
            pass
        _print_ids(source.documents(reports=True), codec)


def _print_ids(documents: Iterable[Document], codec: Codec) -> None:
    with open_output("-") as file:
        for document in documents:
            with document_named([document], codec.encode):
                ids = codec.encode(document.data)
            file.write(" ".join(map(str, ids.tolist())).encode() + b"\n")


def _write_loaded(splits: Mapping[str, Sequence[Document]], codec: Codec, target: _Target, *, whole: bool) -> None:
    """Write documents that are in memory. If `whole`, they are a whole corpus and become the only splits."""
    from fastcompress.data.shards import TokenDataset, write_shards, write_splits

    contents = {name: [document.data for document in documents] for name, documents in splits.items()}
    started = time.monotonic()
    num_bytes = sum(len(data) for documents in contents.values() for data in documents)
    with (
        document_named(itertools.chain(*splits.values()), codec.encode),
        progress_bar("encoding", num_bytes) as advance,
    ):
        settings: dict[str, Any] = {
            "shard_bytes": target.shard_bytes,
            "num_threads": target.threads,
            "overwrite": target.overwrite,
            "progress": lambda num_bytes, num_tokens: advance(num_bytes),
        }
        if whole:
            write_splits(Path(target.output), contents, codec, **settings)
        else:
            [(name, documents)] = contents.items()
            write_shards(Path(target.output), name, documents, codec, **settings)
    seconds = time.monotonic() - started
    written = {name: TokenDataset.open(Path(target.output), name, codec=codec, verify=False) for name in splits}
    sizes = {name: (data.num_documents, data.num_bytes, data.num_tokens) for name, data in written.items()}
    _show(sizes, codec, target, seconds, is_corpus=whole)


def _write_files(source: _Source, codec: Codec, target: _Target) -> None:
    from fastcompress.data import encode_dataset
    from fastcompress.data.manifest import SKIPPED

    started = time.monotonic()
    with progress_bar("encoding") as advance:
        read, before = 0, None

        def show(state: EncodeProgress) -> None:
            nonlocal read, before
            before = state.tokens if before is None else before  # an interrupted run has made most of these
            rate = (state.tokens - before) / max(time.monotonic() - started, 1e-9) / 1e6
            skipped = f", {state.skipped:,} skipped" if state.skipped else ""
            advance(state.bytes_read - read, state.bytes_total, f"{rate:.1f} million tokens/s{skipped}")
            read = state.bytes_read

        result = encode_dataset(
            source.files, target.output, codec, split=target.split, text_key=source.text_key, on_error=source.on_error,
            shard_bytes=target.shard_bytes, max_bytes=source.max_bytes, num_threads=target.threads,
            overwrite=target.overwrite, progress=show, stdin=stdin(), engine=target.engine,
        )  # fmt: skip
    manifest = result.manifest
    listed = Path(target.output, target.split, SKIPPED)
    if manifest.skipped and not result.was_complete:
        with listed.open(encoding="utf-8") as lines:
            report_skipped((json.loads(line)["problem"] for line in lines), manifest.skipped, str(listed))
    if result.was_complete:
        click.echo(f"{target.output}: {target.split}: is there already, made of the same; nothing was done", err=True)
    elif result.resumed_shards:
        done = count(result.resumed_shards, "shard")
        click.echo(f"{target.output}: went on after {done} of an interrupted run", err=True)
    is_whole = not (result.was_complete or result.resumed_shards)
    sizes = {target.split: (manifest.documents, manifest.bytes, manifest.tokens)}
    _show(sizes, codec, target, result.seconds if is_whole else None, skipped=manifest.skipped)


def _show(
    sizes: dict[str, tuple[int, int, int]],
    codec: Codec,
    target: _Target,
    seconds: float | None,
    *,
    skipped: int = 0,
    is_corpus: bool = False,
) -> None:
    """Show the numbers of documents, bytes and tokens of each split, and the rate if all was done in `seconds`."""
    documents, num_bytes, tokens = (sum(column) for column in zip(*sizes.values(), strict=True))
    result = {
        "output": target.output,
        "codec": codec.name,
        "fingerprint": codec.fingerprint,
        "vocab_size": codec.vocab_size,
        "splits": {
            name: {"documents": documents, "bytes": num_bytes, "tokens": tokens}
            for name, (documents, num_bytes, tokens) in sizes.items()
        },
        "skipped": skipped,
        "seconds": seconds,
    }
    lines = [
        f"{target.output}: {name}: {count(documents, 'document')}, {count(num_bytes, 'byte')}, {count(tokens, 'token')}"
        for name, (documents, num_bytes, tokens) in sizes.items()
    ]
    ids = tokens - documents  # without those that end documents
    rates = ""
    if seconds and ids:
        rates = (
            f"{num_bytes / ids:.3f} bytes/token, {num_bytes / seconds / 1e6:.1f} MB/s, "
            f"{ids / seconds / 1e6:.2f} million tokens/s"
        )
    if rates and is_corpus:
        lines.append(rates)
    show_result(result, "\n".join(lines), target.as_json)
    if rates and not is_corpus and not target.as_json:
        click.echo(rates, err=True)
