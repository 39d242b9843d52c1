"""Published rank files, from tiktoken's cache folder or else from the network.

A file that tiktoken has fetched is used, and one fetched here serves tiktoken: the folder is the one that
``TIKTOKEN_CACHE_DIR`` names, else ``DATA_GYM_CACHE_DIR``, else ``data-gym-cache`` in the folder for temporary files; a
file's name is the SHA-1 of its address. An empty variable turns the cache off. Files are checked against their known
SHA-256, so it does not matter who wrote them. A file that is not cached is downloaded, unless
``FASTCOMPRESS_OFFLINE`` is set (to anything but ``0``).
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

from fastcompress.errors import FormatError, MissingFileError, OutputError
from fastcompress.formats.download import download
from fastcompress.formats.published_ranks import RankSource

_MAX_BYTES = 1 << 26  # the largest published file has 4 MB


def published_file(sources: Sequence[RankSource]) -> tuple[RankSource, bytes]:
    """Return one of several equivalent files, and its content.

    That is the first one of which the cache has an intact copy. If it has none, the first file is downloaded and put
    into the cache; there is no access to the network otherwise.

    Raises:
        MissingFileError: None of the files is cached, and the first one cannot be downloaded.
        FormatError: The download is not the expected file.
        OutputError: The cache folder that a variable names cannot be written to.
    """
    folder, chosen_by_user = cache_folder()
    for source in sources:
        if folder is not None and (content := _read_intact(cached_path(folder, source), source)) is not None:
            return source, content
    source = sources[0]
    content = _download(source, folder)
    if folder is not None:
        try:
            store(cached_path(folder, source), content)
        except OSError as error:
            if chosen_by_user:  # otherwise the next process downloads it again
                raise OutputError(
                    f"{folder}: the rank file cannot be cached there ({error.strerror or error}); set "
                    "TIKTOKEN_CACHE_DIR to a folder that is writable, or to '' for no cache"
                ) from error
    return source, content


def cached_path(folder: Path, source: RankSource) -> Path:
    """Return the path at which tiktoken keeps a published file."""
    return address_path(folder, source.url)


def address_path(folder: Path, address: str) -> Path:
    """Return the path at which tiktoken keeps what it fetched from an address."""
    return folder / hashlib.sha1(address.encode(), usedforsecurity=False).hexdigest()


def cache_folder() -> tuple[Path | None, bool]:
    """Return the cache's folder, or None for no cache, and whether a variable names it."""
    for variable in ("TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR"):
        if (folder := os.environ.get(variable)) is not None:
            return (Path(folder) if folder else None), True
    import tempfile  # here, since importing it takes longer than most loads need

    return Path(tempfile.gettempdir()) / "data-gym-cache", False


def _read_intact(path: Path, source: RankSource) -> bytes | None:
    """Return the content of a cached file, or None if it cannot be read or is not the published one."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    return content if _is_intact(content, source) else None


def _is_intact(content: bytes, source: RankSource) -> bool:
    return hashlib.sha256(content).hexdigest() == source.sha256


def _download(source: RankSource, folder: Path | None) -> bytes:
    try:
        content = download(source.url, _MAX_BYTES)
    except MissingFileError as error:
        raise _missing(source, folder, str(error).removeprefix(f"{source.url}: ")) from error
    if not _is_intact(content, source):
        raise FormatError(
            f"{source.url}: the download has {len(content)} bytes and a wrong SHA-256; it may be incomplete, or the "
            "answer of a proxy; try again"
        )
    return content


def _missing(source: RankSource, folder: Path | None, reason: str) -> MissingFileError:
    name = source.path.rpartition("/")[2]
    if folder is None:
        return MissingFileError(f"{name} is not available: the cache is off (its variable is ''), and {reason}")
    path = cached_path(folder, source)
    state = "has a wrong SHA-256 (a damaged copy)" if path.exists() else "does not exist"
    return MissingFileError(
        f"{name} is not available: {path} {state}, and {reason}. Where there is a network, fetch {source.url} and "
        "save it there under that name, or set TIKTOKEN_CACHE_DIR to a folder that has it, or give its path instead"
    )


def store(path: Path, content: bytes) -> None:
    """Put a file into the cache in one step.

    A link of that name, which another user of a shared folder may have left, is replaced and not followed.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.{os.urandom(8).hex()}.tmp")
    try:
        with open(temporary, "xb") as file:
            file.write(content)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
