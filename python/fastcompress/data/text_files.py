"""Detection of files that are not text, by their names and first bytes.

Files that would be nonsense as text (archives, databases, arrays, images) are refused with a DataError that says what
to do instead.
"""

from __future__ import annotations

from pathlib import Path

from fastcompress.errors import DataError

_SAMPLE_BYTES = 1 << 16

_UNPACK = "unpack it"
_DECOMPRESS = "decompress it (only .gz, .bz2, .xz, .zst and .fcz are read as they are)"
_TABLE = "write its text as JSON lines (.jsonl)"
_SOURCE = "name the text it was made of"
_NO_TEXT = "name text"
_CONVERT = "convert it to UTF-8 (iconv)"

# Names of files that would be nonsense as text, and what to do with them.
_FOREIGN_SUFFIXES = {
    (".zip", ".tar", ".tar.gz", ".tgz", ".tar.xz", ".txz", ".tar.bz2", ".tar.zst", ".7z", ".rar"): _UNPACK,
    (".lz4", ".br"): _DECOMPRESS,
    (".orc", ".avro", ".sqlite", ".xlsx"): _TABLE,
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
    (0, b"\x04\x22\x4d\x18", "compressed by lz4", _DECOMPRESS),
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


def check_start(name: str, start: bytes) -> None:
    """Raise DataError if a file of this name, or with these first bytes, is something other than text."""
    lowered = name.lower()
    for suffixes, remedy in _FOREIGN_SUFFIXES.items():
        if lowered.endswith(suffixes):
            raise DataError(f"{name}: is not text ({Path(name).suffix}); {remedy}, or leave it out")
    for offset, magic, what, remedy in _FOREIGN_STARTS:
        if start.startswith(magic, offset):
            raise DataError(f"{name}: is not text but {what}; {remedy}, or leave it out")


def check_named_json(name: str, start: bytes) -> None:
    """Raise DataError for JSON that the user names as a text. (Inside folders it is taken as text.)

    Args:
        name: The name of a .json file.
        start: Its first bytes, decompressed.
    """
    if start.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] in (b"[", b"{"):
        raise DataError(
            f"{name}: is JSON, not text; {_TABLE}, one object per line, or rename it to end in .txt to use it as it is"
        )


def why_not_text(data: bytes) -> tuple[str, str] | None:
    """Return why `data` is probably not text to learn from; None if it may be.

    Counts NUL characters, which are valid UTF-8 but hardly occur in files of text, and bytes that are not UTF-8.

    Returns:
        The reason, a clause such as "begins like UTF-16 text", and what to do if it should be text.
    """
    sample = data[:_SAMPLE_BYTES]
    num_replaced = sample.count(b"\xef\xbf\xbd")  # U+FFFD that the text itself has
    num_nul, num_invalid = sample.count(0), sample.decode("utf-8", "replace").count("\ufffd") - num_replaced
    if (num_nul + num_invalid) * 10 <= len(sample):
        return None
    if sample.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "begins like UTF-16 text", _CONVERT
    kinds = {"NUL characters": num_nul, "not UTF-8": num_invalid}
    what = " or ".join(kind for kind, number in kinds.items() if number)
    remedy = f"remove the NUL characters (tr -d '\\000'), {_CONVERT}" if num_nul > num_invalid else _CONVERT
    return f"does not look like text (more than a tenth of it is {what})", remedy
