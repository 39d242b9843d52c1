"""Rows of texts: JSON lines, CSV, Parquet and Arrow, each read as a stream.

A reader yields a `Row` for each document, in order. What is wrong with a single row is said in the row, so that those
after it can still be read; what is wrong with the whole file is raised as a DataError.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import IO, Any, NamedTuple

from fastcompress.data.compression import pyarrow_for
from fastcompress.errors import DataError

# Rows of Parquet are read in batches of about this size, and of this many rows at most.
_BATCH_BYTES = 1 << 22
_BATCH_ROWS = 1024
_SLICE_ROWS = 256
_READ_BYTES = 1 << 20
# The largest field of a CSV file. Python's csv has one limit for the whole process, which is only ever raised here.
_LARGEST_FIELD = (1 << 31) - 1
_LIST_OF_COLUMNS = 8
_FIX_LINE = "correct or remove the line"
_FIX_ROW = "correct or remove the row"
_TO_UTF8 = "convert it to UTF-8 (iconv)"


class Row(NamedTuple):
    """A row of a file, or the whole file.

    Attributes:
        text: The contents; b"" if there is a problem.
        number: The number of the line or row, from 1; None for the whole file.
        id: The row's own name, if it has one.
        problem: A clause that says what is wrong and what to do; "" if all is well.
    """

    text: bytes
    number: int | None = None
    id: str | None = None
    problem: str = ""


def whole_file(file: IO[bytes], name: str, field: str) -> Iterator[Row]:
    """Yield the file as a single row. Raises DataError if it does not fit into memory."""
    try:
        text = file.read()
    except MemoryError:
        raise DataError(f"{name}: does not fit into memory; divide it into several files, or into rows") from None
    yield Row(text)


def json_lines(file: IO[bytes], name: str, field: str) -> Iterator[Row]:
    r"""Yield a row per line: the string under a key of the JSON object in that line.

    Only "\n" ends a line. Blank lines are skipped. A row's id is the object's "id" if that is a string.
    """
    for number, line in enumerate(file, 1):
        if number == 1:
            check_encoding(line, name)
        if line.strip():
            yield _json_row(line, number, field)


def _json_row(line: bytes, number: int, field: str) -> Row:
    return _plain_json_row(line, number, field) or _any_json_row(line, number, field)


def _plain_json_row(line: bytes, number: int, field: str) -> Row | None:
    r"""Return the row of a line that is a plain object in UTF-8, in which no Latin-1 is escaped; None for others.

    Latin-1 carries the bytes of UTF-8 through the parser unchanged, which is faster than decoding and encoding them.
    """
    if line[:2] != b'{"' or not field.isascii():
        return None
    try:
        row = json.loads(line.decode("latin-1"))
        text = row[field]
        row_id = row.get("id")
        if not isinstance(text, str) or (isinstance(row_id, str) and not row_id.isascii()):
            return None
        if not line.isascii():
            line.decode()
        if not text.isascii() and b"\\u00" in line:  # perhaps not a byte of UTF-8, but a character such as "\u00e9"
            return None
        return Row(text.encode("latin-1"), number, row_id if isinstance(row_id, str) else None)
    except (ValueError, RecursionError, KeyError):
        return None


def _any_json_row(line: bytes, number: int, field: str) -> Row:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        return Row(b"", number, problem=f"is not JSON ({error}); {_FIX_LINE}")
    text = row.get(field) if isinstance(row, dict) else None
    if not isinstance(text, str):
        is_null = isinstance(row, dict) and text is None and field in row
        remedy = _FIX_LINE if is_null else "name the key that holds the text"
        return Row(b"", number, problem=f"has no string under {field!r}{' but null' if is_null else ''}; {remedy}")
    try:
        data = text.encode()
    except UnicodeEncodeError as error:
        return Row(b"", number, problem=f"has half a surrogate pair ({error.reason}); {_FIX_LINE}")
    row_id = row.get("id")
    return Row(data, number, row_id if isinstance(row_id, str) else None)


def looks_like_json_lines(start: bytes, field: str) -> bool:
    """Return whether the first bytes of a file begin an object with this key, in its first line."""
    line = start.removeprefix(b"\xef\xbb\xbf").lstrip().partition(b"\n")[0]
    return line.startswith(b"{") and json.dumps(field).encode() in line


def comma_separated(file: IO[bytes], name: str, field: str) -> Iterator[Row]:
    """Yield a row per record of a CSV file with a header: the value of the column that the field names."""
    return _separated(file, name, field, ",")


def tab_separated(file: IO[bytes], name: str, field: str) -> Iterator[Row]:
    """Yield a row per record of a TSV file with a header, quoted as CSV is."""
    return _separated(file, name, field, "\t")


def _separated(file: IO[bytes], name: str, field: str, delimiter: str) -> Iterator[Row]:
    # Python's csv, because pyarrow's knows no line numbers and refuses a record that is larger than its blocks. Latin-1
    # carries any bytes through it unchanged; delimiters, quotes and ends of lines are the same bytes in UTF-8.
    if csv.field_size_limit() < _LARGEST_FIELD:
        csv.field_size_limit(_LARGEST_FIELD)
    is_end = False

    def lines() -> Iterator[str]:
        nonlocal is_end
        yield from (line.decode("latin-1") for line in _checked_lines(file, name))
        is_end = True

    records = csv.reader(lines(), delimiter=delimiter, strict=True)
    try:
        header = next(records, [])
    except csv.Error as error:
        raise DataError(f"{name}: line 1 is not CSV ({error}); correct the header") from None
    names = [column.encode("latin-1").decode("utf-8", "replace") for column in header]
    column = column_of(names, name, field)
    while True:
        number = records.line_num + 1
        try:
            record = next(records, None)
        except csv.Error as error:
            problem = f"is not CSV ({error}); {_FIX_LINE}"
            if is_end:  # a quote that is never closed has taken in the rest of the file
                raise DataError(f"{name}: line {number} {problem}") from None
            yield Row(b"", number, problem=problem)
            continue
        if record is None:
            return
        if len(record) == len(names):
            yield checked_utf8(record[column].encode("latin-1"), number)
        elif record:
            yield Row(b"", number, problem=f"has {len(record)} values for {len(names)} columns; {_FIX_LINE}")


def _checked_lines(file: IO[bytes], name: str) -> Iterator[bytes]:
    for number, line in enumerate(file):
        if number == 0:
            check_encoding(line, name)
            line = line.removeprefix(b"\xef\xbb\xbf")
        yield line


def has_column(start: bytes, field: str, delimiter: str) -> bool:
    """Return whether the first line of a CSV file names a column."""
    line = start.removeprefix(b"\xef\xbb\xbf").partition(b"\n")[0].decode("utf-8", "replace")
    try:
        return field in next(csv.reader([line], delimiter=delimiter), [])
    except csv.Error:
        return False


def parquet(file: IO[bytes], name: str, field: str) -> Iterator[Row]:
    """Yield a row per row of a Parquet file, which must be seekable; only pages of one column are in memory."""
    pyarrow_for(name, "Parquet")
    from pyarrow.parquet import ParquetFile

    table = ParquetFile(file, buffer_size=_READ_BYTES, pre_buffer=False, page_checksum_verification=True)
    schema = table.schema_arrow
    column_of(schema.names, name, field)
    kind = _text_kind(schema.field(field).type, name, field)
    num_rows = _rows_at_a_time(table.metadata)
    # One row group after the other: if pyarrow reads several in one go, its heap grows by some 30 MB.
    batches = (
        batch
        for group in range(table.num_row_groups)
        for batch in table.iter_batches(num_rows, row_groups=[group], columns=[field], use_threads=False)
    )
    return _column_rows((batch.column(0) for batch in batches), kind, field)


def _rows_at_a_time(metadata: Any) -> int:
    """Return how many rows of a Parquet file have about `_BATCH_BYTES` bytes, by the sizes in its footer."""
    num_bytes = sum(metadata.row_group(number).total_byte_size for number in range(metadata.num_row_groups))
    num_rows: int = _BATCH_BYTES * metadata.num_rows // max(1, num_bytes)
    return max(1, min(_BATCH_ROWS, num_rows))


def arrow(file: IO[bytes], name: str, field: str) -> Iterator[Row]:
    """Yield a row per row of a seekable file of Arrow record batches: a stream, or an Arrow file (Feather, too)."""
    pyarrow = pyarrow_for(name, "Arrow")
    is_file = file.read(6) == b"ARROW1"
    file.seek(0)
    try:
        reader = pyarrow.ipc.open_file(file) if is_file else pyarrow.ipc.open_stream(file)
        column = column_of(reader.schema.names, name, field)
        kind = _text_kind(reader.schema.field(column).type, name, field)
        batches = (reader.get_batch(n) for n in range(reader.num_record_batches)) if is_file else reader
        yield from _column_rows((batch.column(column) for batch in batches), kind, field)
    except MemoryError:  # the size of a batch is what the file says, wrong or not
        raise DataError(
            f"{name}: a batch of rows does not fit into memory; get the file again, or write it in smaller batches"
        ) from None


def _text_kind(kind: Any, name: str, field: str) -> tuple[Any, bool]:
    """Return the type of bytes as which a column is read, and whether it must be UTF-8. Raises DataError otherwise."""
    import pyarrow

    if pyarrow.types.is_dictionary(kind):
        kind = kind.value_type
    for text, data in (
        (pyarrow.string(), pyarrow.binary()),
        (pyarrow.large_string(), pyarrow.large_binary()),
        (pyarrow.string_view(), pyarrow.binary_view()),
    ):
        if kind in (text, data):
            return data, kind == text
    raise DataError(f"{name}: column {field!r} holds {kind}, not text; name the column that holds the text")


def _column_rows(columns: Iterable[Any], kind: tuple[Any, bool], field: str) -> Iterator[Row]:
    bytes_type, is_string = kind
    number = 0
    for column in columns:
        checked = _checked_bytes(column, bytes_type)
        for begin in range(0, len(checked), _SLICE_ROWS):
            for text in checked.slice(begin, _SLICE_ROWS).to_pylist():
                number += 1
                if text is None:
                    yield Row(b"", number, problem=f"is null under {field!r}; {_FIX_ROW}")
                else:
                    yield checked_utf8(text, number, _FIX_ROW) if is_string else Row(text, number)


def _checked_bytes(column: Any, bytes_type: Any) -> Any:
    """Return a column of strings or bytes as bytes, with all offsets and indices checked.

    Arrow believes a file's offsets; those of a damaged file lead outside of its memory. UTF-8 is not checked here.
    """
    from pyarrow import DictionaryArray, types

    if types.is_dictionary(column.type):
        values, indices = column.dictionary.view(bytes_type), column.indices
        values.validate(full=True)
        indices.validate(full=True)
        return DictionaryArray.from_arrays(indices, values).dictionary_decode()
    column = column.view(bytes_type)
    column.validate(full=True)
    return column


def column_of(names: Sequence[str], name: str, field: str) -> int:
    """Return the position of the column that a field names. Raises DataError unless there is exactly one."""
    found = names.count(field)
    if found == 1:
        return names.index(field)
    if not names:
        raise DataError(f"{name}: is empty, without even names of columns; leave it out")
    shown = ", ".join(map(repr, names[:_LIST_OF_COLUMNS])) + (", ..." if len(names) > _LIST_OF_COLUMNS else "")
    problem = f"has {found} columns {field!r}" if found else f"has no column {field!r}, only {shown}"
    raise DataError(f"{name}: {problem}; name the column that holds the text")


def checked_utf8(text: bytes, number: int, remedy: str = _FIX_LINE) -> Row:
    """Return a row of text, with a problem if it is not UTF-8."""
    try:
        text.decode()
    except UnicodeDecodeError as error:
        return Row(b"", number, problem=f"is not UTF-8 ({error.reason} at byte {error.start} of the text); {remedy}")
    return Row(text, number)


def check_encoding(line: bytes, name: str) -> None:
    """Raise DataError if a file of rows begins as UTF-16 does."""
    if line.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise DataError(f"{name}: line 1 begins like UTF-16 text; {_TO_UTF8}")
