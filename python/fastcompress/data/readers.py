"""The types of inputs, known by their names and first bytes, and how each is opened and read.

A new type is one entry of `READERS`, as a new compression is one of `fastcompress.data.compression.COMPRESSIONS`. The
first bytes win over the name, so that a file by a wrong name is read as what it is.
"""

from __future__ import annotations

import contextlib
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from fastcompress.data import tables
from fastcompress.data.compression import compression_of, reading, rejoined, uncompressed_name
from fastcompress.data.text_files import check_named_json, check_start
from fastcompress.errors import DataError

STDIN_NAME = "standard input"
_START_BYTES = 1 << 16  # enough for the first line of most JSON lines
_COPY_BYTES = 1 << 20
_BUFFER_BYTES = 1 << 18  # lines of some kilobytes are read twice as fast as with the default, 8 KiB


@dataclass(frozen=True)
class Reader:
    """How a type of input is recognized and read.

    Attributes:
        kind: The type, as messages name it.
        suffixes: How the names of such files end, before the suffix of a compression.
        read: Yields the rows of an open file, given its name for errors and the field that holds the text.
        starts: How the first bytes of such a file are, where they tell.
        row: What a row is called.
        is_text: Whether the file can be read as one text, too.
        delimiter: What separates the columns of a table that is text.
        seeks: Whether the file must be seekable; then what is compressed is decompressed into a temporary file.
    """

    kind: str
    suffixes: tuple[str, ...]
    read: Callable[[IO[bytes], str, str], Iterator[tables.Row]]
    starts: re.Pattern[bytes] | None = None
    row: str = "line"
    is_text: bool = True
    delimiter: str = ""
    seeks: bool = False


TEXT = Reader("text", (".txt",), tables.whole_file)
JSON_LINES = Reader("JSON lines", (".jsonl", ".ndjson"), tables.json_lines)
CSV = Reader("a CSV table", (".csv",), tables.comma_separated, delimiter=",")
TSV = Reader("a TSV table", (".tsv",), tables.tab_separated, delimiter="\t")
PARQUET = Reader(
    "a Parquet table", (".parquet",), tables.parquet, re.compile(rb"PAR1\x15"), "row", is_text=False, seeks=True
)
# A file begins with its name; a stream with the mark of a message, its size and the head of its schema.
_ARROW_STARTS = re.compile(rb"ARROW1\x00\x00|\xff{4}..\x00\x00\x10\x00{5}\n\x00", re.DOTALL)
ARROW = Reader("an Arrow table", (".arrow", ".feather"), tables.arrow, _ARROW_STARTS, "row", is_text=False, seeks=True)
READERS = (TEXT, JSON_LINES, CSV, TSV, PARQUET, ARROW)


def reader_by_name(name: str) -> Reader:
    """Return the reader of files of this name, which may be compressed; that of text for names that tell nothing."""
    name = uncompressed_name(name)
    return next((reader for reader in READERS if name.endswith(reader.suffixes)), TEXT)


def choose_reader(name: str, start: bytes, field: str, *, is_named: bool = True) -> Reader:
    """Return the reader of a file.

    Args:
        name: The name of the file, or `STDIN_NAME`, which is JSON lines if it begins like it.
        start: Its first bytes, decompressed.
        field: The key or column of the text.
        is_named: Whether the user named the file. In a folder, a CSV file without the column is text as it is, since it
            may lie there beside programs.
    """
    for reader in READERS:
        if reader.starts is not None and reader.starts.match(start):
            return reader
    if name == STDIN_NAME:
        return JSON_LINES if tables.looks_like_json_lines(start, field) else TEXT
    reader = reader_by_name(name)
    is_other_table = reader.delimiter and not is_named and not tables.has_column(start, field, reader.delimiter)
    return TEXT if is_other_table else reader


def open_binary(path: Path) -> IO[bytes]:
    """Open a file to read its bytes."""
    return path.open("rb", buffering=_BUFFER_BYTES)


@contextlib.contextmanager
def opened(
    path: Path | None, stdin: IO[bytes] | None = None, open_file: Callable[[Path], IO[bytes]] = open_binary
) -> Iterator[tuple[bytes, IO[bytes], bool]]:
    """Open a file, decompressed if its first bytes or its name show that it is compressed.

    Args:
        path: The file, or None for standard input.
        stdin: The stream of standard input.
        open_file: Opens a file by its name.

    Yields:
        The first bytes of the contents, the stream of all contents, and whether that is the file itself, which is
        seekable.

    Raises:
        DataError: The file cannot be read, or is recognized as something that is not read here.
        FormatError: A compressed file is damaged. (This can be raised by the stream, too.)
    """
    name = STDIN_NAME if path is None else str(path)
    with contextlib.ExitStack() as stack:
        if path is None:
            if stdin is None:
                raise DataError(f"{name} is closed; name a file")
            raw = stdin
        else:
            raw = stack.enter_context(open_file(path))
        start = raw.read(_START_BYTES)
        check_start(name, start)
        compression = compression_of(name, start)
        if path is None:
            raw = rejoined(start, raw)
        else:
            raw.seek(0)
        if compression is None:
            yield start, raw, path is not None
            return
        if not start:
            raise EOFError(f"it is empty, which no {compression.suffix} file is")
        file = stack.enter_context(contextlib.closing(compression.open(raw, name)))
        start = file.read(_START_BYTES)
        check_start(name, start)
        yield start, rejoined(start, file), False


def read_rows(
    path: Path | None,
    field: str,
    *,
    is_named: bool = True,
    stdin: IO[bytes] | None = None,
    text_reader: Reader = TEXT,
    open_file: Callable[[Path], IO[bytes]] = open_binary,
) -> Iterator[tuple[Reader, tables.Row]]:
    """Yield the rows of a file with its reader. Arguments and errors are those of `opened` and `choose_reader`.

    A file that is one text is read by `text_reader`, which may yield it in parts.
    """
    name = STDIN_NAME if path is None else str(path)
    with reading(name), opened(path, stdin, open_file) as (start, file, is_seekable):
        reader = choose_reader(name, start, field, is_named=is_named)
        if is_named and reader is TEXT and uncompressed_name(name).endswith(".json"):
            check_named_json(name, start)
        with contextlib.ExitStack() as stack:
            if reader.seeks and not is_seekable:
                temporary = stack.enter_context(tempfile.TemporaryFile())
                shutil.copyfileobj(file, temporary, _COPY_BYTES)
                temporary.seek(0)
                file = temporary
            reader = text_reader if reader is TEXT else reader
            for row in reader.read(file, name, field):
                yield reader, row


def read_text(path: Path | None, stdin: IO[bytes] | None = None) -> bytes:
    """Return all of a text file, decompressed but otherwise as it is. Raises as `opened` does, and for tables."""
    name = STDIN_NAME if path is None else str(path)
    with reading(name), opened(path, stdin) as (start, file, _):
        reader = choose_reader(name, start, "")
        if not reader.is_text:
            raise DataError(f"{name}: is not text but {reader.kind}; name text, or leave it out")
        return file.read()
