"""Corpora: documents divided into the splits train, validation and test.

Rules of division:

- The SHA-256 of a document's bytes, as a number in [0, 1), decides its split: below 0.05 it is test, below 0.10
  validation, otherwise train. So a text is always in the same split, whatever its name, its position and the other
  documents, and even if a limit cuts its end off.
- If that leaves a split empty, the document with the smallest hash is moved there from the largest split. With two
  or more documents, train and validation are never empty; with three or more, test is not empty either.
- A single document is cut: its last 10 %, from the boundary of a UTF-8 character on, are validation. There is no test.
- A folder is already divided if the names of its files contain two or more of the words train, val (or valid,
  validation, dev) and test, as in "wiki.valid.txt" and "code-train-00.jsonl.xz". This applies to JSON lines, tables and
  text files (.txt, .text, .raw, .tokens or no suffix), compressed or not; for a data set that `datasets.save_to_disk`
  wrote, the names of its folders count. Files whose names contain none of the words
  are left out and counted, or are the training text if no name contains train. If there are no validation files,
  validation is taken from train by the first three rules.

Empty documents are left out, since they have nothing to predict. Of equal documents only one is kept: the one in test,
or else the one in validation, so that no held-out document is also trained on.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from fastcompress._arguments import as_instance, as_integer, as_path
from fastcompress.data import sources
from fastcompress.data.compression import uncompressed_name
from fastcompress.data.documents import Document
from fastcompress.data.inputs import (
    DocumentReader,
    InputFile,
    Skipped,
    find_files,
    folder_files,
    is_pattern,
    is_table,
    split_name,
)
from fastcompress.data.synthetic import repeated_patterns
from fastcompress.errors import ConfigError, DataError

__all__ = ["NAMED_CORPORA", "SPLITS", "Corpus", "Document", "load_corpus", "split_documents", "take_bytes"]

SPLITS = ("train", "validation", "test")
NAMED_CORPORA = {
    "python-docs": sources.python_docs,
    "python-source": sources.python_source,
    "repeated-patterns": repeated_patterns,
    "tiny-shakespeare": sources.tiny_shakespeare,
}
_SPLIT_WORDS = {
    "train": "train", "val": "validation", "valid": "validation", "validation": "validation",
    "dev": "validation", "test": "test",
}  # fmt: skip
# Apart from JSON lines, only files with these suffixes declare a split: "test_cli.py" does not.
_TEXT_SUFFIXES = {".txt", ".text", ".raw", ".tokens"}


@dataclass(frozen=True)
class Corpus:
    """Documents in three splits.

    >>> corpus = split_documents("numbers", (Document(str(i), str(i).encode()) for i in range(100)))
    >>> corpus
    <Corpus 'numbers': documents in train 94 (179 bytes), validation 3 (5 bytes), test 3 (6 bytes)>

    Attributes:
        name: A name for people, such as that of the folder.
        train: The documents to train on.
        validation: The documents to choose settings with.
        test: The documents for the final result.
        num_empty: The number of documents left out because they were empty.
        num_repeats: The number of documents left out because they were equal to another one.
        num_undeclared: The number of files left out because their names declare no split, while those of others do.
        is_single: Whether the corpus was one document, which was cut into train and validation.
    """

    name: str
    train: tuple[Document, ...]
    validation: tuple[Document, ...]
    test: tuple[Document, ...]
    num_empty: int = 0
    num_repeats: int = 0
    num_undeclared: int = 0
    is_single: bool = False

    def __repr__(self) -> str:
        splits = ", ".join(f"{name} {len(getattr(self, name)):,} ({self.num_bytes(name):,} bytes)" for name in SPLITS)
        return f"<Corpus {self.name!r}: documents in {splits}>"

    @cached_property
    def fingerprint(self) -> str:
        """The SHA-256 of the contents of the splits in order, without ids and names, as 64 hexadecimal digits."""
        digest = hashlib.sha256(b"fastcompress corpus, version 1\n")
        for documents in (self.train, self.validation, self.test):
            digest.update(len(documents).to_bytes(8, "little"))
            for document in documents:
                digest.update(len(document.data).to_bytes(8, "little"))
                digest.update(document.data)
        return digest.hexdigest()

    def split(self, name: str) -> tuple[Document, ...]:
        """Return the documents of the split "train", "validation" or "test".

        Raises DataError, which says why, if the split is empty, and ConfigError for another name.
        """
        if name not in SPLITS:
            raise ConfigError(f"name is {name!r}; it must be one of {', '.join(SPLITS)}")
        documents: tuple[Document, ...] = getattr(self, name)
        if not documents:
            reason = "it is one document, whose last 10 % is validation" if self.is_single else "it is too small"
            raise DataError(f"{self.name}: has no {name} split ({reason}); use another split or more documents")
        return documents

    def contents(self, name: str) -> list[bytes]:
        """Return the bytes of a split's documents, as codecs and evaluation take them. Raises as `split` does."""
        return [document.data for document in self.split(name)]

    def num_bytes(self, name: str) -> int:
        """Return the number of bytes in a split, 0 if it is empty."""
        if name not in SPLITS:
            raise ConfigError(f"name is {name!r}; it must be one of {', '.join(SPLITS)}")
        return sum(len(document.data) for document in getattr(self, name))


def load_corpus(
    spec: str | os.PathLike[str],
    *,
    text_key: str = "text",
    max_bytes: int | None = None,
    on_error: str = "fail",
    on_skip: Callable[[Skipped], object] | None = None,
) -> Corpus:
    """Load and divide a corpus.

    Args:
        spec: "python-docs", "python-source", "repeated-patterns" or "tiny-shakespeare", or a path: a text file (one
            document), JSON lines or a table (`fastcompress.data.readers` has all types), a folder of such files, in
            which hidden ones are left out, or a pattern such as "books/*.jsonl.zst".
        text_key: The key of the text in a row of JSON lines, or the column of the text in a table.
        max_bytes: Use only this many bytes from the beginning (of each split, in a folder that is already divided). The
            last document is cut at the boundary of a character. None for no limit.
        on_error: "fail" to raise an error at the first document that cannot be read; "skip" to leave it out.
        on_skip: Called with each that is left out.

    Raises:
        DataError: The corpus does not exist, cannot be read or has no text, or a line is malformed.
        FormatError: A compressed file is damaged.
        ConfigError: `max_bytes` is below 1, or `on_error` another word.

    The contents of python-docs and python-source depend on the release of Python; the fingerprint shows it.
    """
    if max_bytes is not None:
        max_bytes = as_integer(max_bytes, "max_bytes", 1, (1 << 62) - 1, or_none="no limit")
    spec = as_path(spec, "spec")
    if not spec:  # which would be the current folder
        raise DataError(f"spec is empty; name a file or folder, or {', '.join(NAMED_CORPORA)}")
    if spec in NAMED_CORPORA:
        return split_documents(spec, take_bytes(NAMED_CORPORA[spec](), max_bytes))
    path = Path(spec)
    reader = DocumentReader((), text_key=text_key, on_error=on_error, on_skip=on_skip)
    if path.is_dir():
        return _load_files(spec, path.resolve().name, folder_files(path), reader, max_bytes)
    if is_pattern(spec):
        return _load_files(spec, spec, find_files(spec), reader, max_bytes)
    if not path.exists():
        raise DataError(f"{spec}: no such file, folder or corpus; the named ones are {', '.join(NAMED_CORPORA)}")
    return split_documents(path.name, _documents([InputFile(path, path.name)], reader, max_bytes))


def split_documents(name: str, documents: Iterable[Document]) -> Corpus:
    """Divide `documents` by the rules at the head of this module. Raises DataError if there are none."""
    return _make_corpus(name, ((None, document) for document in documents))


def _documents(files: Iterable[InputFile], reader: DocumentReader, max_bytes: int | None) -> Iterator[Document]:
    return take_bytes((document for file in files for document in reader.documents(file)), max_bytes)


def _load_files(spec: str, name: str, files: list[InputFile], reader: DocumentReader, max_bytes: int | None) -> Corpus:
    paths = [file.path for file in files if file.path is not None]
    if any(path.suffix == ".shard" for path in paths):
        raise DataError(f"{spec}: holds token shards, not text; name the text, or train on the shards themselves")
    declared = [_declared_split(path) for path in paths]
    named = set(declared) - {None}
    if len(named) < 2 or (None not in declared and "train" not in named):
        return split_documents(name, _documents(files, reader, max_bytes))
    if "train" not in named:
        declared = [split or "train" for split in declared]
    pairs: list[tuple[str | None, Document]] = []
    for split in reversed(
        SPLITS
    ):  # The first of equal documents is kept, so that it is held out rather than trained on.
        chosen = [file for file, its in zip(files, declared, strict=True) if its == split]
        pairs += [(split, document) for document in _documents(chosen, reader, max_bytes)]
    return replace(_make_corpus(name, pairs), num_undeclared=declared.count(None))


def _declared_split(path: Path) -> str | None:
    """Return the split that a file's name declares, such as "train" for code-train-00.jsonl.xz, or None."""
    name = uncompressed_name(split_name(path))
    _, dot, suffix = name.rpartition(".")
    if not (is_table(path) or dot + suffix in _TEXT_SUFFIXES or not dot or suffix in _SPLIT_WORDS):
        return None
    found = {_SPLIT_WORDS[word] for word in re.split(r"[^a-z]+", name) if word in _SPLIT_WORDS}
    return found.pop() if len(found) == 1 else None


def _make_corpus(name: str, declared: Iterable[tuple[str | None, Document]]) -> Corpus:
    """Divide pairs of a declared split, or None, and a document; of equal documents the first is kept."""
    kept: dict[bytes, tuple[str | None, Document]] = {}
    num_empty = num_repeats = 0
    for split, document in declared:
        as_instance(document, Document, "document")
        digest = document.whole_sha256 or hashlib.sha256(document.data).digest()
        if not document.data:
            num_empty += 1
        elif digest not in kept:
            kept[digest] = split, document
        else:
            num_repeats += 1
    if not kept:
        what = "no documents"
        if num_empty:
            what = "1 empty document" if num_empty == 1 else f"{num_empty} empty documents"
        raise DataError(f"{name}: holds {what}, so there is nothing to train on; name a corpus with text in it")
    if len(kept) == 1:
        begin, end = _cut_single(name, next(iter(kept.values()))[1])
        return Corpus(name, (begin,), (end,), (), num_empty, num_repeats, is_single=True)
    splits: dict[str, dict[bytes, Document]] = {split: {} for split in SPLITS}
    is_declared = any(split is not None for split, _ in kept.values())
    for digest, (split, document) in kept.items():
        splits[split or _split_by_hash(digest)][digest] = document
    if not is_declared:
        _fill_empty_splits(splits, SPLITS[:2] if len(kept) == 2 else SPLITS)
    elif not splits["validation"] and splits["train"]:
        _take_validation(name, splits)
    train, validation, test = (tuple(splits[split].values()) for split in SPLITS)
    return Corpus(name, train, validation, test, num_empty, num_repeats)


def _take_validation(name: str, splits: dict[str, dict[bytes, Document]]) -> None:
    """Move the documents that belong there by hash, at least one, from train to validation; cut a single document."""
    train = splits["train"]
    if len(train) == 1:
        [(digest, document)] = train.items()
        train[digest], splits["validation"][digest] = _cut_single(name, document)
        return
    for digest in [d for d in train if _split_by_hash(d) == "validation"][: len(train) - 1] or [min(train)]:
        splits["validation"][digest] = train.pop(digest)


def _split_by_hash(digest: bytes) -> str:
    twentieth = int.from_bytes(digest[:8], "big") * 20 >> 64
    return {0: "test", 1: "validation"}.get(twentieth, "train")


def _fill_empty_splits(splits: dict[str, dict[bytes, Document]], needed: tuple[str, ...]) -> None:
    """Move the document with the smallest hash from the largest split (on a tie the later one) to each empty split."""
    for split in needed:
        if not splits[split]:
            fullest = max(SPLITS, key=lambda name: (len(splits[name]), SPLITS.index(name)))
            digest = min(splits[fullest])
            splits[split][digest] = splits[fullest].pop(digest)


def _cut_single(name: str, document: Document) -> tuple[Document, Document]:
    data = document.data
    if len(data) < 2:
        raise DataError(f"{name}: holds 1 byte, too little to keep some for validation; give more text")
    position = max(1, len(data) * 9 // 10)
    cut = _character_boundary(data, position) or position
    parts = {"train": data[:cut], "validation": data[cut:]}
    train, validation = (
        Document(f"{document.id}#{split}", part, is_row=document.is_row) for split, part in parts.items()
    )
    return train, validation


def _character_boundary(data: bytes, position: int) -> int:
    """Return the last boundary of a UTF-8 character in [0, position], or `position` if none is near (not UTF-8)."""
    near = range(position, max(-1, position - 4), -1)
    return next((boundary for boundary in near if _is_boundary(data, boundary)), position)


def _is_boundary(data: bytes, position: int) -> bool:
    return position >= len(data) or data[position] & 0xC0 != 0x80


def take_bytes(documents: Iterable[Document], max_bytes: int | None, taken: int = 0) -> Iterator[Document]:
    """Yield documents until they have `max_bytes` bytes in all; the last one is cut between characters.

    If the first character is longer than `max_bytes`, it is kept whole, so that there is always some text.

    Args:
        documents: The documents.
        max_bytes: The limit, or None for all documents.
        taken: The number of bytes of documents that were taken already; they count.
    """
    for document in documents:
        data = document.data
        if max_bytes is not None and taken + len(data) > max_bytes:
            end = _character_boundary(data, max_bytes - taken)
            if end == 0 and taken == 0:
                end = next(cut for cut in range(1, 5) if cut == 4 or _is_boundary(data, cut))
            if end:
                yield replace(document, data=data[:end], whole_sha256=hashlib.sha256(data).digest())
            return
        taken += len(data)
        yield document
