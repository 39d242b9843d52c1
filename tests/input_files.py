"""Files of every type that is read, made with plain Python (and pyarrow): the list of texts itself is the oracle."""

from __future__ import annotations

import bz2
import csv
import gzip
import importlib.util
import io
import json
import lzma
import os
from collections.abc import Callable

import pytest

from fastcompress import archive
from fastcompress.data.inputs import DocumentReader

HAS_PYARROW = importlib.util.find_spec("pyarrow") is not None
# In CI it must be there.
needs_pyarrow = pytest.mark.skipif(
    not HAS_PYARROW and os.environ.get("CI") != "true", reason="pyarrow is not installed (extra data)"
)
TEXTS = ["to be\nor not", "", 'quoted "text", with, commas\r\n', "naïve \U0001f600\x00\u2028", "x" * 200_000, "\ttab\t"]


def json_lines_of(texts: list[str]) -> bytes:
    return b"".join(json.dumps({"id": None, "text": text}).encode() + b"\n" for text in texts)


def separated_of(delimiter: str) -> Callable[[list[str]], bytes]:
    def write(texts: list[str]) -> bytes:
        file = io.StringIO(newline="")
        writer = csv.writer(file, delimiter=delimiter, quoting=csv.QUOTE_ALL)
        writer.writerow(["label", "text"])
        writer.writerows([["a label", text] for text in texts])
        return file.getvalue().encode()

    return write


def table_of(texts: list[str | None], kind: str = "string") -> object:
    import pyarrow as pa

    types = {
        "string": pa.string(), "large_string": pa.large_string(), "binary": pa.binary(),
        "string_view": pa.string_view(), "dictionary": pa.dictionary(pa.int32(), pa.string()),
    }  # fmt: skip
    column = pa.array(texts, types[kind]) if kind == "string_view" else pa.array(texts, pa.string()).cast(types[kind])
    return pa.table({"label": list(range(len(texts))), "text": column})


def parquet_of(texts: list[str | None], kind: str = "string") -> bytes:
    from pyarrow import parquet

    file = io.BytesIO()
    parquet.write_table(table_of(texts, kind), file, row_group_size=4)
    return file.getvalue()


def arrow_of(texts: list[str | None], kind: str = "string", *, stream: bool = True) -> bytes:
    import pyarrow as pa

    table, file = table_of(texts, kind), io.BytesIO()
    with (pa.ipc.new_stream if stream else pa.ipc.new_file)(file, table.schema) as writer:
        writer.write_table(table, max_chunksize=4)
    return file.getvalue()


def zstd(data: bytes) -> bytes:
    import pyarrow as pa

    return pa.Codec("zstd").compress(data, asbytes=True)


PACK = {
    "": lambda data: data, ".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress, ".zst": zstd,
    ".fcz": archive.compress,
}  # fmt: skip
MAKE = {
    ".jsonl": json_lines_of,
    ".csv": separated_of(","),
    ".tsv": separated_of("\t"),
    ".parquet": parquet_of,
    ".arrow": arrow_of,
    ".feather": lambda texts: arrow_of(texts, stream=False),
}
OF_PYARROW = (".parquet", ".arrow", ".feather", ".zst")
KINDS = [
    pytest.param(kind, packing, marks=[needs_pyarrow] if {kind, packing} & set(OF_PYARROW) else [])
    for kind in MAKE
    for packing in PACK
]
PACKINGS = [pytest.param(packing, marks=[needs_pyarrow] if packing in OF_PYARROW else []) for packing in PACK]
TEXT_KINDS = [pytest.param(".txt", *packing.values, marks=packing.marks) for packing in PACKINGS]


def texts_in(*inputs: object, **settings: object) -> list[str]:
    return [document.data.decode() for document in DocumentReader(list(inputs), **settings)]  # type: ignore[arg-type]
