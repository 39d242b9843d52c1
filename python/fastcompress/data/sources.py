"""Sources of documents: the texts that come with CPython, Tiny Shakespeare, text files, JSON lines and folders.

Every function yields documents one at a time, in an order that depends on names and contents only.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import json
import lzma
import os
import sys
import sysconfig
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from fastcompress._files import write_atomically
from fastcompress.data.text_files import check_named_file, open_text
from fastcompress.errors import DataError, FormatError, MissingFileError
from fastcompress.formats.download import download

TINY_SHAKESPEARE_URL = "https://raw.githubusercontent.com/karpathy/char-rnn/master/data/tinyshakespeare/input.txt"
TINY_SHAKESPEARE_SHA256 = "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed"
_TINY_SHAKESPEARE_BYTES = 1_115_394
# Larger files are generated tables and not source code; one of them, pydoc's topics, is the corpus python-docs.
_LARGEST_SOURCE_BYTES = 1 << 18
_NO_SOURCE_FOLDERS = {"test", "tests", "idle_test", "site-packages", "dist-packages", "__pycache__"}
_SITE_FILES = ("sitecustomize.py", "usercustomize.py", "_sysconfigdata")


@dataclass(frozen=True)
class Document:
    """A text, or any other bytes, and its origin.

    >>> Document("greeting.txt", b"Hello!")
    <Document 'greeting.txt': 6 bytes, b'Hello!'>

    Attributes:
        id: A name for people, such as that of the file; fingerprints do not depend on it.
        data: The contents.
        whole_sha256: If this is only the beginning of a longer document, the SHA-256 of that document; otherwise None.
    """

    id: str
    data: bytes
    whole_sha256: bytes | None = None

    def __repr__(self) -> str:
        begin = repr(self.data[:40]) + ("..." if len(self.data) > 40 else "")
        return f"<Document {self.id!r}: {len(self.data):,} bytes, {begin}>"


def python_docs() -> Iterator[Document]:
    """Yield the prose of CPython's built-in help (`help("topics")`) in parts of about 1,500 bytes, 0.3 MB in all.

    Each topic is cut between paragraphs into the documents "topic#00", "topic#01" and so on; otherwise the largest
    topic would be a seventh of the corpus. Two kinds of paragraphs are omitted, because they would put much of the
    held-out text into the training text as well: those of more than 24 bytes that occurred before, apart from line
    breaks and indentation (topics quote each other at length), and tables, whose rules are all alike.

    Raises DataError if this Python was installed without the topics.
    """
    try:
        from pydoc_data.topics import topics
    except ImportError:
        raise DataError(
            "python-docs: this Python comes without pydoc_data; install its full standard library "
            "(Debian: libpython3-stdlib), or name a file"
        ) from None
    part_bytes, short_bytes = 1500, 24
    seen: set[bytes] = set()
    for name in sorted(topics):
        parts: list[bytes] = []
        for paragraph in topics[name].encode().split(b"\n\n"):
            words = b" ".join(paragraph.split())
            if not words or words in seen or words.startswith(b"+--"):
                continue
            if len(words) > short_bytes:
                seen.add(words)
            paragraph = paragraph.strip(b"\n")
            if parts and len(parts[-1]) + 2 + len(paragraph) < part_bytes:
                parts[-1] += b"\n\n" + paragraph
            else:
                parts.append(paragraph)
        for number, part in enumerate(parts):
            yield Document(f"{name}#{number:02}", part + b"\n")


def python_source() -> Iterator[Document]:
    """Yield the .py files of the standard library, about 11 MB.

    Tests, installed packages and files above 256 KiB are left out. Raises DataError if there are no such files.
    """
    root = Path(sysconfig.get_paths()["stdlib"])
    paths = []
    for folder, subfolders, files in os.walk(root):
        subfolders[:] = [s for s in subfolders if s not in _NO_SOURCE_FOLDERS and not s.startswith("config-")]
        paths += [Path(folder, f) for f in files if f.endswith(".py") and not f.startswith(_SITE_FILES)]
    paths.sort(key=lambda path: path.relative_to(root).as_posix())
    found = False
    for path in paths:
        if path.is_file() and path.stat().st_size <= _LARGEST_SOURCE_BYTES:
            found = True
            yield Document(path.relative_to(root).as_posix(), _read_bytes(path))
    if not found:
        raise DataError(f"python-source: no .py files in {root} (a zipped standard library?); name a folder")


def tiny_shakespeare() -> Iterator[Document]:
    """Yield Tiny Shakespeare, one document of 1,115,394 bytes.

    It is read from the folder that FASTCOMPRESS_DATA names, or else from the user's cache, or else downloaded into that
    cache. Raises DataError if it cannot be downloaded, or FASTCOMPRESS_DATA has another file of that name.
    """
    name = "tinyshakespeare.txt"
    folder = os.environ.get("FASTCOMPRESS_DATA")
    if folder and (given := Path(folder, name)).exists():
        data = _read_bytes(given)
        if hashlib.sha256(data).hexdigest() != TINY_SHAKESPEARE_SHA256:
            raise DataError(f"{given}: is not Tiny Shakespeare (its SHA-256 differs); restore or remove it")
        yield Document(name, data)
        return
    cached = cache_folder() / name
    data = _read_bytes(cached) if cached.exists() else b""
    if hashlib.sha256(data).hexdigest() != TINY_SHAKESPEARE_SHA256:
        data = _download_tiny_shakespeare(cached)
        with contextlib.suppress(OSError):  # If the cache cannot be written, the next run downloads the file again.
            cached.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(cached, data)
    yield Document(name, data)


def cache_folder() -> Path:
    """Return this package's folder among the user's caches, by the convention of the platform; it may not exist."""
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or "~/AppData/Local"
    elif sys.platform == "darwin":
        base = "~/Library/Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "fastcompress"


def _download_tiny_shakespeare(cached: Path) -> bytes:
    try:
        data = download(TINY_SHAKESPEARE_URL, _TINY_SHAKESPEARE_BYTES + 1)
    except MissingFileError as error:
        reason = str(error).removeprefix(f"{TINY_SHAKESPEARE_URL}: ").removeprefix("the download failed: ")
        problem = f"cannot be downloaded ({reason})"
    else:
        if hashlib.sha256(data).hexdigest() == TINY_SHAKESPEARE_SHA256:
            return data
        problem = "was downloaded, but its SHA-256 is wrong"
    raise DataError(
        f"tiny-shakespeare: {problem}; get {TINY_SHAKESPEARE_URL} elsewhere and either name that file as the corpus, "
        f"or put it at {cached}, or put it as tinyshakespeare.txt into a folder and name the folder in the environment "
        "variable FASTCOMPRESS_DATA"
    )


def path_documents(path: Path, text_key: str = "text") -> Iterator[Document]:
    """Yield the documents of a path: the files of a folder, the rows of JSON lines, or any other file as a whole.

    Files compressed as .gz, .xz or .fcz are decompressed.

    Args:
        path: A file or folder.
        text_key: The key of the text in a row of JSON lines.

    Raises:
        DataError: A file cannot be read, or is recognized as something other than text (see `text_files`): another
            compression, an archive, a table, an array, an image, shards.
        FormatError: A compressed file is damaged.
    """
    if path.is_dir():
        yield from folder(path, folder_files(path), text_key)
    else:
        with reading(path):
            check_named_file(path)
        yield from _file_documents(path, path.name, text_key)


def _file_documents(path: Path, document_id: str, text_key: str) -> Iterator[Document]:
    if is_json_lines(path):
        yield from json_lines(path, text_key)
    else:
        with reading(path), open_text(path) as file:
            data = file.read()
        yield Document(document_id, data)


def is_json_lines(path: Path) -> bool:
    """Return whether the name is that of JSON lines: .jsonl, .jsonl.gz, .jsonl.xz or .jsonl.fcz."""
    return path.name.lower().endswith((".jsonl", ".jsonl.gz", ".jsonl.xz", ".jsonl.fcz"))


def json_lines(path: Path, text_key: str) -> Iterator[Document]:
    """Yield one document per line: the string under a key of the JSON object in that line.

    Only "\\n" ends a line. Blank lines are skipped. A document's id is the row's "id" if that is a string, or else the
    name of the file and the number of the line.

    Args:
        path: The file, which may be compressed.
        text_key: The key of the text.

    Raises:
        DataError: The file cannot be read, or a line has no such string; the line's number is named.
        FormatError: A compressed file is damaged.
    """
    with reading(path), open_text(path) as file:
        for number, line in enumerate(file, 1):
            if line.strip():
                yield _row_document(line, f"{path}: line {number}", f"{path.name}:{number}", text_key)


@contextlib.contextmanager
def reading(path: str | Path) -> Iterator[None]:
    """Turn errors of reading and decompressing `path` in the block into errors of this package."""
    try:
        yield
    except DataError:
        raise
    except (lzma.LZMAError, gzip.BadGzipFile, zlib.error, EOFError, FormatError) as error:
        raise FormatError(f"{path}: damaged or truncated ({error}); get the file again") from error
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}); name a readable file") from error


def _row_document(line: bytes, where: str, default_id: str, text_key: str) -> Document:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{where} is not JSON ({error}); correct or remove the line") from None
    if not isinstance(row, dict) or not isinstance(row.get(text_key), str):
        raise DataError(f"{where} has no string under {text_key!r}; name the key that holds the text")
    try:
        data = row[text_key].encode()
    except UnicodeEncodeError as error:
        raise DataError(f"{where} has half a surrogate pair ({error.reason}); correct or remove the line") from None
    row_id = row.get("id")
    return Document(row_id if isinstance(row_id, str) else default_id, data)


def folder_files(root: Path) -> list[Path]:
    """Return the regular files below `root`, sorted by relative path, without hidden files and folders."""
    paths = []
    for folder, subfolders, files in os.walk(root):
        subfolders[:] = [name for name in subfolders if not name.startswith(".")]
        paths += [Path(folder, name) for name in files if not name.startswith(".")]
    return sorted((p for p in paths if p.is_file()), key=lambda path: path.relative_to(root).as_posix())


def folder(root: Path, paths: list[Path], text_key: str) -> Iterator[Document]:
    """Yield the documents of several files, each as `path_documents` reads it.

    Args:
        root: The folder to which the ids of documents are relative.
        paths: Files below it.
        text_key: The key of the text in JSON lines.
    """
    for path in paths:
        yield from _file_documents(path, path.relative_to(root).as_posix(), text_key)


def _read_bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}); name a readable file") from error
