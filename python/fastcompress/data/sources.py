"""Corpora with names: the texts that come with CPython, and Tiny Shakespeare.

Every function yields documents one at a time, in an order that depends on names and contents only. For files of the
user see `fastcompress.data.inputs`.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

from fastcompress._files import write_atomically
from fastcompress.data.compression import reading
from fastcompress.data.documents import Document
from fastcompress.data.inputs import path_documents
from fastcompress.errors import DataError, MissingFileError
from fastcompress.formats.download import download

__all__ = ["Document", "path_documents", "python_docs", "python_source", "reading", "tiny_shakespeare"]

TINY_SHAKESPEARE_URL = "https://raw.githubusercontent.com/karpathy/char-rnn/master/data/tinyshakespeare/input.txt"
TINY_SHAKESPEARE_SHA256 = "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed"
_TINY_SHAKESPEARE_BYTES = 1_115_394
# Larger files are generated tables and not source code; one of them, pydoc's topics, is the corpus python-docs.
_LARGEST_SOURCE_BYTES = 1 << 18
_NO_SOURCE_FOLDERS = {"test", "tests", "idle_test", "site-packages", "dist-packages", "__pycache__"}
_SITE_FILES = ("sitecustomize.py", "usercustomize.py", "_sysconfigdata")


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


def _read_bytes(path: Path) -> bytes:
    with reading(path):
        return path.read_bytes()
