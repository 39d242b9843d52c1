"""Detection of files that are not plain text, by their names and first bytes.

Compressed text (.gz, .xz, .fcz) is decompressed. Files that would be nonsense as text (archives, tables, images) are
refused with a DataError that says what to do instead.
"""

from __future__ import annotations

import gzip
import io
import lzma
from pathlib import Path
from typing import IO

from fastcompress.errors import DataError

_START_BYTES = 1024
_CHUNK_BYTES = 1 << 20
_SAMPLE_BYTES = 1 << 16

_UNPACK = "unpack it"
_DECOMPRESS = "decompress it (only .gz, .xz and .fcz are read as they are)"
_TABLE = "write its text as JSON lines (.jsonl)"
_SOURCE = "name the text it was made of"
_NO_TEXT = "name text"

# Names of files that would be nonsense as text, and what to do with them.
_FOREIGN_SUFFIXES = {
    (".zip", ".tar", ".tar.gz", ".tgz", ".tar.xz", ".txz", ".tar.bz2", ".7z", ".rar"): _UNPACK,
    (".zst", ".bz2", ".lz4", ".br"): _DECOMPRESS,
    (".parquet", ".arrow", ".feather", ".orc", ".avro", ".sqlite", ".xlsx"): _TABLE,
    (".npy", ".npz", ".safetensors", ".pt", ".pth", ".pickle", ".pkl"): _SOURCE,
    (".shard",): "name the text, or train on the folder of shards itself",
}
# Magic bytes and their offset, the kind of file that has them, and what to do with it.
_FOREIGN_STARTS = (
    (0, b"PK\x03\x04", "a ZIP archive", _UNPACK),
    (0, b"PK\x05\x06", "a ZIP archive", _UNPACK),
    (0, b"7z\xbc\xaf\x27\x1c", "a 7z archive", _UNPACK),
    (0, b"Rar!\x1a\x07", "a RAR archive", _UNPACK),
    (257, b"ustar", "a tar archive", _UNPACK),
    (0, b"\x28\xb5\x2f\xfd", "compressed by zstd", _DECOMPRESS),
    (0, b"\x04\x22\x4d\x18", "compressed by lz4", _DECOMPRESS),
    (4, b"1AY&SY", "compressed by bzip2", _DECOMPRESS),
    (0, b"PAR1\x15", "a Parquet table", _TABLE),
    (0, b"ARROW1\x00\x00", "an Arrow table", _TABLE),
    (0, b"Obj\x01", "an Avro table", _TABLE),
    (0, b"SQLite format 3\x00", "an SQLite database", _TABLE),
    (0, b"\x89HDF\r\n\x1a\n", "an HDF5 file", _TABLE),
    (0, b"\x93NUMPY", "a NumPy array", _SOURCE),
    (0, b"\x89PNG\r\n\x1a\n", "a PNG image", _NO_TEXT),
    (0, b"\xff\xd8\xff", "a JPEG image", _NO_TEXT),
    (0, b"GIF89a", "a GIF image", _NO_TEXT),
    (0, b"GIF87a", "a GIF image", _NO_TEXT),
    (8, b"WEBPVP8", "a WebP image", _NO_TEXT),
    (8, b"WAVEfmt ", "a WAVE recording", _NO_TEXT),
    (0, b"II*\x00", "a TIFF image", _NO_TEXT),
    (0, b"MM\x00*", "a TIFF image", _NO_TEXT),
    (4, b"ftyp", "an MP4 or HEIF file", _NO_TEXT),
    (0, b"OggS\x00", "an Ogg file", _NO_TEXT),
    (0, b"fLaC\x00", "a FLAC recording", _NO_TEXT),
    (0, b"%PDF-", "a PDF document", "extract its text (pdftotext)"),
    (0, b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old Office document", "save it as text"),
    (0, b"\x7fELF", "a program", _NO_TEXT),
)
_PACKED = {".gz": b"\x1f\x8b\x08", ".xz": b"\xfd7zXZ\x00", ".fcz": b"\x89FCFCZ\r\n"}


def open_text(path: Path) -> IO[bytes]:
    """Open a text file for reading; decompress it if its name or its first bytes show that it is compressed.

    Raises DataError if the file is recognized as something other than text, and the errors of reading and
    decompressing as they are (see `sources.reading`).
    """
    with path.open("rb") as file:
        start = file.read(_START_BYTES)
    check_start(str(path), start)
    packing = _packing(path.name, start)
    if packing == ".gz":
        return gzip.open(path, "rb")  # type: ignore[return-value]
    if packing == ".xz":
        return lzma.open(path, "rb")
    if packing == ".fcz":
        return _open_archive(path.open("rb"))
    return path.open("rb")


def unpack(name: str, data: bytes) -> bytes:
    """Return text that was read from `name`, decompressed if it is compressed. Raises as `open_text` does."""
    check_start(name, data[:_START_BYTES])
    packing = _packing(name, data[:_START_BYTES])
    if packing == ".gz":
        return gzip.decompress(data)
    if packing == ".xz":
        return lzma.decompress(data)
    return _open_archive(io.BytesIO(data)).read() if packing == ".fcz" else data


def check_start(name: str, start: bytes) -> None:
    """Raise DataError if a file of this name, or with these first bytes, is something other than text."""
    lowered = name.lower()
    for suffixes, remedy in _FOREIGN_SUFFIXES.items():
        if lowered.endswith(suffixes):
            raise DataError(f"{name}: is not text ({Path(name).suffix}); {remedy}, or leave it out")
    for offset, magic, what, remedy in _FOREIGN_STARTS:
        if start.startswith(magic, offset):
            raise DataError(f"{name}: is not text but {what}; {remedy}, or leave it out")


def check_named_file(path: Path) -> None:
    """Raise DataError for a table or JSON that the user names as a text. (Inside folders they are taken as text.)"""
    name = path.name.lower().removesuffix(".gz").removesuffix(".xz").removesuffix(".fcz")
    as_it_is = "or rename it to end in .txt to use it as it is"
    if name.endswith((".csv", ".tsv")):
        raise DataError(f"{path}: is a table, not text; {_TABLE}, {as_it_is}")
    if name.endswith(".json"):
        with open_text(path) as file:
            start = file.read(_START_BYTES).removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
        if start in (b"[", b"{"):
            raise DataError(f"{path}: is JSON, not text; {_TABLE}, one object per line, {as_it_is}")


def why_not_text(data: bytes) -> str | None:
    """Return why `data` is probably not text to learn from, as a clause such as "is UTF-16"; None if it may be."""
    sample = data[:_SAMPLE_BYTES]
    num_bad = sample.count(0) + sample.decode("utf-8", "replace").count("\ufffd")
    if num_bad * 10 <= len(sample):
        return None
    if sample.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "begins like UTF-16 text"
    return "does not look like text (more than a tenth of it is not UTF-8)"


def _packing(name: str, start: bytes) -> str | None:
    """Return the suffix of the format in which a file is compressed, by its first bytes or its name, or None."""
    for suffix, magic in _PACKED.items():
        if start.startswith(magic) or name.lower().endswith(suffix):
            return suffix
    return None


def _open_archive(file: IO[bytes]) -> IO[bytes]:
    from fastcompress.archive import Decompressor

    unpacked, decompressor = io.BytesIO(), Decompressor()
    with file:
        while chunk := file.read(_CHUNK_BYTES):
            unpacked.write(decompressor.update(chunk))
    decompressor.finish()
    unpacked.seek(0)
    return unpacked
