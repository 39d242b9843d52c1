"""The inputs that several commands share: corpora, documents of files, texts, and codecs by name."""

from __future__ import annotations

import contextlib
import difflib
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from fastcompress.cli.output import count
from fastcompress.cli.streams import stdin

if TYPE_CHECKING:
    from fastcompress.codec import Codec
    from fastcompress.data.corpora import Corpus, Document
    from fastcompress.data.inputs import Skipped

_Command = TypeVar("_Command", bound=Callable[..., Any])

CORPUS_HELP = (
    "python-docs, python-source, repeated-patterns, tiny-shakespeare, or a path: a text file, JSON lines (.jsonl) or a "
    "table (.csv, .tsv, .parquet, .arrow), which may be compressed as .gz, .bz2, .xz, .zst or .fcz, a folder of such "
    "files, or a pattern that matches some."
)
_CODEC_PATHS = (
    "a published vocabulary such as cl100k_base, o200k_base or gpt2, or the path of a saved vocabulary (.bpe), "
    "tokenizer.json, rank file (.tiktoken; my.tiktoken:cl100k names its pattern), codebook, dictionary or codec.json."
)
CODEC_HELP = (
    "byte, char (the characters of the whole corpus), bpe-N (N ids, trained on the train split), byte-entropy, "
    "equal-info-9 to equal-info-16, equal-info-16-by-8, equal-info-32-by-16 or any other windows of 24 to 128 bits in "
    "tokens of 8 or 16, arithmetic-8, arithmetic-16 (these from the train split, too), lz77, lz77-buckets, lzp, gzip, "
    f"gzip-16, {_CODEC_PATHS} With proxy- before one of these, nine tenths of the training text are in its ids and the "
    "rest is bytes, which the model is then scored on and writes."
)
FIXED_CODEC_HELP = f"byte, lz77, lz77-buckets, lzp, gzip, gzip-16, {_CODEC_PATHS}"
_SKIPPED_SHOWN = 10
_LEARNED_CODECS = ("char", "bpe-N (such as bpe-4096)")


def corpus_options(command: _Command) -> _Command:
    """Add --corpus, --text-key and --max-bytes."""
    for option in (
        click.option("--max-bytes", type=click.IntRange(min=1), help="Use only the first this many bytes."),
        click.option(
            "--text-key",
            default="text",
            show_default=True,
            help="Key of the text in JSON lines, or its column.",
        ),
        click.option("--corpus", metavar="CORPUS", help=f"A corpus to divide into splits: {CORPUS_HELP}"),
    ):
        command = option(command)
    return command


def on_error_option(command: _Command) -> _Command:
    """Add --on-error, for documents that cannot be read."""
    return click.option(
        "--on-error",
        type=click.Choice(["fail", "skip"]),
        default="fail",
        show_default=True,
        help="What to do about a document that cannot be read.",
    )(command)


def read_corpus(spec: str, text_key: str, max_bytes: int | None, on_error: str = "fail") -> Corpus:
    """Load a corpus, and report on standard error the documents that were left out."""
    from fastcompress.data.corpora import NAMED_CORPORA, load_corpus
    from fastcompress.errors import DataError

    close = difflib.get_close_matches(spec.lower(), NAMED_CORPORA, n=1, cutoff=0.7)
    if close and spec not in NAMED_CORPORA and not Path(spec).exists():
        raise DataError(f"{spec}: no such file, folder or corpus; did you mean {close[0]}?")

    skipped: list[Skipped] = []
    corpus = load_corpus(spec, text_key=text_key, max_bytes=max_bytes, on_error=on_error, on_skip=skipped.append)
    report_skipped((one.problem for one in skipped), len(skipped))
    left_out = [
        count(corpus.num_empty, "empty document") if corpus.num_empty else "",
        count(corpus.num_repeats, "repeated document") if corpus.num_repeats else "",
        count(corpus.num_undeclared, "file") + " of no split (by name)" if corpus.num_undeclared else "",
    ]
    if any(left_out):
        click.echo(f"{corpus.name}: left out: {', '.join(filter(None, left_out))}", err=True)
    return corpus


def all_documents(corpus: Corpus) -> list[Document]:
    """Return the documents of all splits."""
    return [document for split in (corpus.train, corpus.validation, corpus.test) for document in split]


def file_documents(
    files: Sequence[str], text_key: str, max_bytes: int | None, on_error: str = "fail", *, reports: bool = True
) -> Iterator[Document]:
    """Yield the documents of files, folders and patterns in the order given; "-" is standard input.

    Args:
        files: The names.
        text_key: The key or column of the text.
        max_bytes: Yield only the first this many bytes; None for all.
        on_error: "skip" to go on after a document that cannot be read; "fail" to raise its error.
        reports: Whether to say on standard error what was skipped.

    Raises:
        DataError: A file does not exist, cannot be read or is not text.
        FormatError: A compressed file is damaged.
    """
    from fastcompress.data.corpora import take_bytes
    from fastcompress.data.inputs import DocumentReader, find_files

    reader = DocumentReader(files, text_key=text_key, on_error=on_error, stdin=stdin())

    def read() -> Iterator[Document]:
        try:
            for name in files:
                check_input(name)
                for file in find_files(name):
                    yield from reader.documents(file)
        finally:
            if reports:
                report_skipped((skipped.problem for skipped in reader.skipped), len(reader.skipped))

    return take_bytes(read(), max_bytes)


def check_input(name: str) -> None:
    """Raise DataError, with a remedy for the command line, for a name of no file, folder or pattern."""
    from fastcompress.data.corpora import NAMED_CORPORA
    from fastcompress.data.inputs import STDIN, is_pattern
    from fastcompress.errors import DataError

    if name != STDIN and not Path(name).exists() and not is_pattern(name):
        remedy = f"use --corpus {name}" if name in NAMED_CORPORA else "name one that exists, or use --corpus"
        raise DataError(f"{name}: no such file or folder; {remedy}")


def report_skipped(problems: Iterable[str], number: int, place: str = "") -> None:
    """Report on standard error what was skipped: the first few problems and, if there are more, how many.

    Args:
        problems: The problems, at least the first few.
        number: How many there are.
        place: Where all of them are listed; "" for nowhere.
    """
    for problem in itertools.islice(problems, _SKIPPED_SHOWN):
        click.echo(f"skipped: {problem}", err=True)
    if number > _SKIPPED_SHOWN or (place and number):
        listed = f"; {place} lists them" if place else ""
        click.echo(f"skipped: {count(number, 'document')} in all{listed}", err=True)


@contextlib.contextmanager
def document_named(documents: Iterable[Document], check: Callable[[bytes], object]) -> Iterator[None]:
    """Name a document in a DataError of the block: the first one for which `check` raises a DataError as well."""
    from fastcompress.errors import DataError

    try:
        yield
    except DataError as error:
        for document in documents:
            if complaint := _complaint(document.data, check):
                raise DataError(f"{document.id}: {complaint}") from error
        raise


def _complaint(data: bytes, check: Callable[[bytes], object]) -> str:
    """Return the message of the DataError that `check` raises, or an empty str."""
    from fastcompress.errors import DataError

    try:
        check(data)
    except DataError as error:
        return str(error)
    return ""


def make_codec(spec: str, train: Iterable[Document], everything: Callable[[], Iterable[Document]]) -> Codec:
    """Return the codec that a user names, as CODEC_HELP describes.

    Args:
        spec: The name or path.
        train: The documents that bpe-N and those of `codec.learned` learn from.
        everything: Returns all documents, whose characters are the alphabet of char.

    Raises:
        DataError: There is no such codec, or nothing to learn it from.
        FormatError: A file is malformed.
        ConfigError: A setting is out of range.
    """
    from fastcompress.bpe import BPE
    from fastcompress.codec import BPECodec, CharCodec, ProxyCodec
    from fastcompress.codec.learned import LEARNED_NAMES, is_learned, learn_codec
    from fastcompress.errors import FastcompressError, with_place

    if spec.startswith("proxy-") and not Path(spec).exists():
        return ProxyCodec(make_codec(spec.removeprefix("proxy-"), train, everything))
    if spec == "char":
        documents = list(everything())
        with document_named(documents, lambda data: CharCodec.train([b"any text", data])):
            return CharCodec.train(document.data for document in documents)
    if match := re.fullmatch(r"bpe-(\d{1,9})", spec):
        texts = learnable(train, "use --codec byte")
        try:
            return BPECodec(BPE.train((document.data for document in texts), vocab_size=int(match[1])))
        except FastcompressError as error:
            raise with_place(error, spec) from error
    if is_learned(spec):
        return learn_codec(spec, (document.data for document in learnable(train, "use --codec byte")))
    return fixed_codec(spec, other_names=(*_LEARNED_CODECS, *LEARNED_NAMES))


def fixed_codec(spec: str, *, default_pattern: str | None = None, other_names: Sequence[str] = ()) -> Codec:
    """Return the codec that a user names, unless it must be learned from a corpus; see `codec_from_spec`."""
    from fastcompress.codec import codec_from_spec
    from fastcompress.codec.learned import is_learned
    from fastcompress.compat.tiktoken import encoding_name_for_model
    from fastcompress.errors import DataError

    if not other_names and (spec == "char" or re.fullmatch(r"bpe-\d+", spec) or is_learned(spec)):
        raise DataError(
            f"{spec}: is learned from a corpus, so its ids have no meaning without one; name the codec.json that "
            "fastcompress encode wrote beside the shards"
        )
    try:
        return codec_from_spec(spec, default_pattern=default_pattern, other_names=other_names)
    except DataError:
        if Path(spec).exists():
            raise
        try:
            encoding = encoding_name_for_model(re.sub(r"^gpt-?(?=[345])", "gpt-", spec.lower()))
        except KeyError:
            encoding = ""
        if encoding:
            raise DataError(f"{spec}: is the name of a model; name its vocabulary, {encoding}") from None
        raise


def is_learned_spec(spec: str) -> bool:
    """Return whether `make_codec` learns this codec from documents."""
    from fastcompress.codec.learned import is_learned

    spec = spec.removeprefix("proxy-")
    has_learned_name = spec == "char" or re.fullmatch(r"bpe-\d+", spec) is not None or is_learned(spec)
    return has_learned_name and not Path(spec).exists()


def learnable(documents: Iterable[Document], remedy: str) -> Iterator[Document]:
    """Yield documents to learn from. Raises DataError, with the remedy, for a file that does not look like text.

    Rows of tables and of JSON lines are text already, whatever characters they hold.
    """
    from fastcompress.data.text_files import why_not_text
    from fastcompress.errors import DataError

    for document in documents:
        if not document.is_row and (found := why_not_text(document.data)):
            reason, conversion = found
            raise DataError(f"{document.id}: {reason}; {conversion}, or {remedy}")
        yield document


def read_text(file: str) -> bytes:
    """Return the text of a file, decompressed if it is compressed, or of standard input for "-".

    Raises DataError if it cannot be read or is not text, FormatError if it is damaged.
    """
    from fastcompress.data import readers
    from fastcompress.errors import DataError

    if file == "-":
        return readers.read_text(None, stdin())
    if not Path(file).exists():
        raise DataError(f"{file}: no such file; name one that exists")
    if Path(file).is_dir():
        raise DataError(f"{file}: is a folder; name a file in it")
    return readers.read_text(Path(file))


def split_to_read(directory: Path, split: str | None, otherwise: str = "") -> str:
    """Return the split of a directory of shards that a user means.

    Args:
        directory: The directory.
        split: The split that the user names; None for the only one.
        otherwise: What else could be done if there are no shards, for the error, such as ", or ...".

    Raises:
        UsageError: There are several splits, and none is named.
        DataError: There are no shards.
    """
    from fastcompress.data.shards import list_splits
    from fastcompress.errors import DataError

    splits = list_splits(directory)
    if not splits:
        kind = "no shards there" if directory.is_dir() else "not a folder" if directory.exists() else "no such folder"
        raise DataError(f"{directory}: {kind}; name a folder that fastcompress encode wrote{otherwise}")
    if split is None and len(splits) > 1:
        raise click.UsageError(f"{directory} holds the splits {', '.join(splits)}; name one with --split")
    return split or splits[0]


def need_one(**given: object) -> None:
    """Raise UsageError unless exactly one of the named options was given; underscores stand for hyphens."""
    names = [f"--{name.replace('_', '-')}" if name.islower() else name for name in given]
    present = [name for name, value in zip(names, given.values(), strict=True) if value not in (None, "", ())]
    if len(present) != 1:
        problem = "got " + " and ".join(present) if present else "got none"
        raise click.UsageError(f"give exactly one of {', '.join(names)}; {problem}")
