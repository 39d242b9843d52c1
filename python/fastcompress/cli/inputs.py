"""What several commands read: corpora, documents of files, codecs by name."""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from fastcompress.cli.output import count

if TYPE_CHECKING:
    from fastcompress.codec import Codec
    from fastcompress.data.corpora import Corpus, Document

_Command = TypeVar("_Command", bound=Callable[..., Any])

CORPUS_HELP = (
    "python-docs, python-source, tiny-shakespeare, or a path: a text file or JSON lines (.jsonl), also as .gz or "
    ".xz, or a folder."
)
CODEC_HELP = (
    "byte, char (the characters of the whole corpus), bpe-N (N ids, trained on the train split), lz77, "
    "lz77-buckets, lzp, gzip, or the path of a codec.json, a saved vocabulary or a tokenizer.json."
)


def corpus_options(command: _Command) -> _Command:
    """Add --corpus, --text-key and --max-bytes."""
    for option in (
        click.option("--max-bytes", type=click.IntRange(min=1), help="Take this many bytes from the front."),
        click.option("--text-key", default="text", show_default=True, help="Key of the text in JSON lines."),
        click.option("--corpus", metavar="CORPUS", help=f"A corpus to divide into splits: {CORPUS_HELP}"),
    ):
        command = option(command)
    return command


def read_corpus(spec: str, text_key: str, max_bytes: int | None) -> Corpus:
    """Load a corpus and say on standard error what was left out of it."""
    from fastcompress.data.corpora import load_corpus

    corpus = load_corpus(spec, text_key=text_key, max_bytes=max_bytes)
    left_out = [
        count(corpus.num_empty, "empty document") if corpus.num_empty else "",
        count(corpus.num_repeats, "repeated document") if corpus.num_repeats else "",
        count(corpus.num_undeclared, "file") + " of no split (by name)" if corpus.num_undeclared else "",
    ]
    if any(left_out):
        click.echo(f"{corpus.name}: left out: {', '.join(filter(None, left_out))}", err=True)
    return corpus


def all_documents(corpus: Corpus) -> list[Document]:
    """The documents of all splits."""
    return [document for split in (corpus.train, corpus.validation, corpus.test) for document in split]


def file_documents(files: Sequence[str], text_key: str, max_bytes: int | None) -> Iterator[Document]:
    """The documents of files and folders, undivided and in the order given; "-" is standard input."""
    from fastcompress.data.corpora import Document, take_bytes
    from fastcompress.data.sources import path_documents
    from fastcompress.errors import DataError

    def read() -> Iterator[Document]:
        for name in files:
            if name == "-":
                yield Document("standard input", sys.stdin.buffer.read())
            elif not Path(name).exists():
                raise DataError(f"{name}: no such file or folder; to name a corpus, use --corpus")
            else:
                yield from path_documents(Path(name), text_key)

    return take_bytes(read(), max_bytes)


@contextlib.contextmanager
def document_named(documents: Iterable[Document], check: Callable[[bytes], object]) -> Iterator[None]:
    """A DataError in the block gets the name of the document to blame: the first that `check` refuses, too."""
    from fastcompress.errors import DataError

    try:
        yield
    except DataError as error:
        for document in documents:
            if complaint := _complaint(document.data, check):
                raise DataError(f"{document.id}: {complaint}") from error
        raise


def _complaint(data: bytes, check: Callable[[bytes], object]) -> str:
    """What the DataError says that `check` raises, or nothing."""
    from fastcompress.errors import DataError

    try:
        check(data)
    except DataError as error:
        return str(error)
    return ""


def make_codec(spec: str, train: Iterable[Document], everything: Callable[[], Iterable[Document]]) -> Codec:
    """The codec a user names; see CODEC_HELP. `train` teaches bpe-N, `everything` gives char its alphabet."""
    from fastcompress.bpe import BPE
    from fastcompress.codec import CODECS_BY_NAME, BPECodec, CharCodec, codec_from_spec
    from fastcompress.errors import DataError

    if spec == "char":
        documents = list(everything())
        with document_named(documents, lambda data: CharCodec.train([b"any text", data])):
            return CharCodec.train(document.data for document in documents)
    if match := re.fullmatch(r"bpe-(\d{1,9})", spec):
        return BPECodec(BPE.train((document.data for document in train), vocab_size=int(match[1])))
    if spec not in CODECS_BY_NAME and not Path(spec).exists():
        raise DataError(
            f"{spec}: no such codec or file; name {', '.join(CODECS_BY_NAME)}, char, bpe-N (such as bpe-4096), or the "
            "path of a codec.json, a saved vocabulary or a tokenizer.json"
        )
    return codec_from_spec(spec)


def need_one(**given: object) -> None:
    """UsageError unless exactly one of the options named (underscores for hyphens) was given."""
    names = [f"--{name.replace('_', '-')}" if name.islower() else name for name in given]
    present = [name for name, value in zip(names, given.values(), strict=True) if value not in (None, "", ())]
    if len(present) != 1:
        problem = "got " + " and ".join(present) if present else "got none"
        raise click.UsageError(f"give exactly one of {', '.join(names)}; {problem}")
