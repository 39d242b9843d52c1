"""What several commands read: corpora, documents of files, codecs by name."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from fastcompress.codec import Codec
    from fastcompress.data.corpora import Corpus

_Command = TypeVar("_Command", bound=Callable[..., Any])

CORPUS_HELP = (
    "python-docs, python-source, tiny-shakespeare, or a path: a text file, JSON lines (.jsonl, .jsonl.gz, "
    ".jsonl.xz), or a folder."
)
CODEC_HELP = (
    "byte, char (the characters of the whole corpus), bpe-N (N ids, trained on the train split), or the path "
    "of a codec.json or a saved vocabulary."
)


def corpus_options(command: _Command) -> _Command:
    """Add --corpus, --text-key and --max-bytes."""
    for option in (
        click.option("--max-bytes", type=click.IntRange(min=1), help="Take documents up to this many bytes."),
        click.option("--text-key", default="text", show_default=True, help="Key of the text in JSON lines."),
        click.option("--corpus", metavar="CORPUS", help=f"A corpus to divide into splits: {CORPUS_HELP}"),
    ):
        command = option(command)
    return command


def read_corpus(spec: str, text_key: str, max_bytes: int | None) -> Corpus:
    """Load a corpus and say on standard error what was left out of it."""
    from fastcompress.data.corpora import load_corpus

    corpus = load_corpus(spec, text_key=text_key, max_bytes=max_bytes)
    if corpus.num_empty or corpus.num_repeats:
        click.echo(
            f"{corpus.name}: {corpus.num_empty} empty and {corpus.num_repeats} repeated documents left out",
            err=True,
        )
    return corpus


def all_documents(corpus: Corpus) -> list[bytes]:
    """The bytes of all documents of all splits."""
    return [document.data for split in (corpus.train, corpus.validation, corpus.test) for document in split]


def file_documents(files: Sequence[str], text_key: str, max_bytes: int | None) -> Iterator[bytes]:
    """The documents of files and folders, undivided and in the order given; "-" is standard input."""
    from fastcompress.data.corpora import Document, take_bytes
    from fastcompress.data.sources import path_documents
    from fastcompress.errors import DataError

    def read() -> Iterator[Document]:
        for name in files:
            if name == "-":
                yield Document("-", sys.stdin.buffer.read())
            elif not Path(name).exists():
                raise DataError(f"{name}: no such file or folder; to name a corpus, use --corpus")
            else:
                yield from path_documents(Path(name), text_key)

    return (document.data for document in take_bytes(read(), max_bytes))


def make_codec(spec: str, train: Iterable[bytes], everything: Callable[[], Iterable[bytes]]) -> Codec:
    """The codec a user names; see CODEC_HELP. `train` teaches bpe-N, `everything` gives char its alphabet."""
    from fastcompress.bpe import BPE
    from fastcompress.codec import BPECodec, CharCodec, codec_from_spec

    if spec == "char":
        return CharCodec.train(everything())
    if match := re.fullmatch(r"bpe-(\d{1,9})", spec):
        return BPECodec(BPE.train(train, vocab_size=int(match[1])))
    return codec_from_spec(spec)


def need_one(**given: object) -> None:
    """UsageError unless exactly one of the options named (underscores for hyphens) was given."""
    names = [f"--{name.replace('_', '-')}" if name.islower() else name for name in given]
    present = [name for name, value in zip(names, given.values(), strict=True) if value]
    if len(present) != 1:
        problem = "got " + " and ".join(present) if present else "got none"
        raise click.UsageError(f"give exactly one of {', '.join(names)}; {problem}")
