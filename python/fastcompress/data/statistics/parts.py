"""The texts that are counted, as a stream of parts, each of which belongs to a group such as a language.

A text file may be larger than memory. It is cut before ASCII white space that follows a letter or number, where that
changes neither the ids (`can_cut`) nor the words and characters; a document of a codec that cannot be cut is one part.
"""

from __future__ import annotations

import dataclasses
import os
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

from fastcompress.bpe.training_texts import stream_parts
from fastcompress.codec import BPECodec, ByteCodec, CharCodec, ChatCodec
from fastcompress.data.inputs import InputFile, find_files
from fastcompress.data.readers import STDIN_NAME, TEXT, Reader, read_rows
from fastcompress.data.tables import Row
from fastcompress.errors import ConfigError, DataError
from fastcompress.pretokenizer import PATTERNS

if TYPE_CHECKING:
    from fastcompress.codec import Codec

NO_GROUP = "(none)"
_PART_BYTES = 1 << 20


@dataclass(frozen=True)
class TextPart:
    """A document, or a part of one that is encoded by itself.

    >>> TextPart("fr", "letter.txt", b"bonjour").ends_document
    True

    Attributes:
        group: The name under which it is counted, such as a language or a file.
        document: The document's name, for errors.
        data: The bytes.
        ends_document: Whether it is a document's last part; the parts of a document come one after the other.
    """

    group: str
    document: str
    data: bytes
    ends_document: bool = True


def can_cut(codec: Codec, spellings: Iterable[str] = ()) -> bool:
    """Return whether text that is cut as this module does has the same ids: bytes, characters, and most BPE.

    Args:
        codec: The codec. BPE must have a named pattern, no normalizer, and no added tokens that always match.
        spellings: Texts that must stay whole where they occur.
    """
    if any(re.search(r"\S\s", text) for text in spellings):
        return False
    if isinstance(codec, ChatCodec):
        return can_cut(codec.base)
    if not isinstance(codec, BPECodec):
        return isinstance(codec, ByteCodec | CharCodec)
    bpe = codec.tokenizer
    is_named = bpe.pattern in PATTERNS and bpe.pattern != "none"
    return is_named and bpe.lossless and all(token.special for token in bpe.added_tokens)


def read_parts(
    inputs: Iterable[str | os.PathLike[str]],
    *,
    text_key: str = "text",
    group_key: str | None = None,
    is_cut: bool = False,
    stdin: IO[bytes] | None = None,
) -> Iterator[TextPart]:
    """Yield the texts of files, folders and patterns, in the order in which `DocumentReader` reads them.

    Args:
        inputs: The names; "-" is standard input.
        text_key: The key of the text in JSON lines, or its column.
        group_key: The key or column that names a row's group, such as "lang"; files are then read twice at once. A row
            without a string there is in the group "(none)". None, and for text files: the group is the file.
        is_cut: Whether text files may be cut (`can_cut`).
        stdin: The stream of standard input; by default that of the process.

    Raises:
        DataError: A file does not exist, cannot be read or is not text, or a folder is empty.
        FormatError: A file is damaged.
        ConfigError: A file needs pyarrow, which is not installed, or rows of standard input are to be grouped.
    """
    stdin = stdin or getattr(sys.stdin, "buffer", None)
    text_reader = dataclasses.replace(TEXT, read=_cut_text) if is_cut else TEXT
    for name in inputs:
        files = find_files(name)
        if not files:
            raise DataError(f"{os.fspath(name)}: holds no files; name a folder that holds text")
        for file in files:
            source = STDIN_NAME if file.path is None else str(file.path)
            rows = read_rows(file.path, text_key, is_named=file.is_named, stdin=stdin, text_reader=text_reader)
            yield from _parts_of(rows, source, _group_names(file, group_key))


def _parts_of(rows: Iterator[tuple[Reader, Row]], source: str, groups: Iterator[str] | None) -> Iterator[TextPart]:
    """Yield the parts of a file: one per row, or those of a text, which have no number."""
    last: bytes | None = None
    for reader, row in rows:
        if row.problem:
            raise DataError(f"{source}: {reader.row} {row.number} {row.problem}")
        if row.number is None:
            if last is not None:
                yield TextPart(source, source, last, ends_document=False)
            last = row.text
        else:
            group = source if groups is None else next(groups, NO_GROUP)
            yield TextPart(group, f"{source}: {reader.row} {row.number}", row.text)
    if last is not None:
        yield TextPart(source, source, last)


def _group_names(file: InputFile, group_key: str | None) -> Iterator[str] | None:
    """Return the names of the groups of a file's rows, read beside its texts; None for no grouping."""
    if group_key is None:
        return None
    if file.path is None:
        raise ConfigError("standard input is read once, so its rows cannot be grouped; write it to a file first")
    rows = read_rows(file.path, group_key, is_named=file.is_named)
    return (NO_GROUP if row.problem else row.text.decode("utf-8", "replace") for _, row in rows if row.number)


def _cut_text(file: IO[bytes], name: str, field: str) -> Iterator[Row]:
    """Yield a text in parts; an empty one as one part."""
    is_empty = True
    for part in stream_parts(file, _PART_BYTES, is_cut=True):
        is_empty = False
        yield Row(part)
    if is_empty:
        yield Row(b"")
