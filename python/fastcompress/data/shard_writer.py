"""Writing of splits as shard files, in which a split is always complete or absent.

Splits are written under temporary names and renamed when they are complete. Several processes may write to one
directory at the same time: they encode in parallel, and hold a lock (`DIRECTORY/.lock`) while they check what the
directory has by then and rename their splits.
"""

from __future__ import annotations

import os
import secrets
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fastcompress._arguments import as_integer
from fastcompress._files import remedy_for
from fastcompress._locks import locked
from fastcompress.codec import Codec, load_codec, save_codec
from fastcompress.data.encode import encode_documents
from fastcompress.data.shard_file import ShardFileWriter, ShardHeader, write_header
from fastcompress.errors import ConfigError, DataError, FastcompressError, MismatchError, OutputError, with_place

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    _Encoded = tuple[int, npt.NDArray[np.integer]]
    """The number of a document's bytes, and its ids."""

SHARD_TOKENS = 1 << 27
"""The default number of tokens after which the next shard file begins."""

# Another process holds the lock only for a few renames, unless the file system stalls.
_LOCK_SECONDS = 60.0


def list_splits(directory: Path) -> list[str]:
    """Return the names of the splits in a directory, sorted; an empty list if it does not exist or has none."""
    if not Path(directory).is_dir():
        return []
    folders = (path for path in Path(directory).iterdir() if not path.name.startswith(".") and path.is_dir())
    return sorted(folder.name for folder in folders if (folder / "00000.shard").exists())


def write_shards(
    directory: Path,
    split: str,
    documents: Iterable[bytes],
    codec: Codec,
    *,
    shard_tokens: int = SHARD_TOKENS,
    num_threads: int | None = None,
    overwrite: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> None:
    """Encode documents and write them as one split of a directory, all or nothing.

    Args:
        directory: The directory, which is made if it does not exist. It holds the splits of one codec.
        split: The name of the split: letters, digits and underscores, such as "train".
        documents: The documents, read once, a few batches ahead. An empty one becomes a lone end-of-document id.
        codec: The codec that encodes them.
        shard_tokens: The number of tokens, at least 1, after which the next document begins another file.
        num_threads: The number of threads that encode; None for one per core, at most 8. Does not change the files.
        overwrite: Whether to replace the split if it exists.
        progress: Called after each document with its numbers of bytes and tokens.

    Raises:
        OutputError: The split exists, or cannot be written.
        MismatchError: The directory holds splits of another codec.
        DataError: There are no documents, or the codec cannot encode one.
        ConfigError: An argument is out of range.

    Memory: a few documents with their tokens, and 8 bytes per document of the current shard.
    """
    directory = Path(directory)

    def check() -> list[str]:
        _check_split(directory, split, codec, overwrite)
        return [split]

    _write(directory, {split: _encoded(documents, codec, num_threads)}, check, codec, shard_tokens, progress)


def write_encoded(
    directory: Path,
    split: str,
    documents: Iterable[npt.NDArray[np.integer]],
    codec: Codec,
    *,
    shard_tokens: int = SHARD_TOKENS,
    overwrite: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> None:
    """Write documents that are ids already as one split of a directory, all or nothing.

    Each document is decoded once, to check its ids and to count its bytes. The ids are kept as they are, even if
    `codec` would encode the same bytes to others.

    Args:
        directory: As for `write_shards`.
        split: As for `write_shards`.
        documents: The ids of each document, integers[n], without an end-of-document id; read once.
        codec: The codec that made the ids.
        shard_tokens: As for `write_shards`.
        overwrite: As for `write_shards`.
        progress: As for `write_shards`.

    Raises:
        OutputError: The split exists, or cannot be written.
        MismatchError: The directory holds splits of another codec.
        DataError: There are no documents, or one holds an id that `codec` does not have.
        ConfigError: An argument is out of range.
    """
    directory = Path(directory)

    def check() -> list[str]:
        _check_split(directory, split, codec, overwrite)
        return [split]

    _write(directory, {split: _measured(documents, codec)}, check, codec, shard_tokens, progress)


def write_splits(
    directory: Path,
    splits: Mapping[str, Iterable[bytes]],
    codec: Codec,
    *,
    shard_tokens: int = SHARD_TOKENS,
    num_threads: int | None = None,
    overwrite: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> None:
    """Encode the splits of a corpus and write them as the only splits of a directory, all or nothing.

    Args:
        directory: As for `write_shards`.
        splits: The documents of each split, by name.
        codec: As for `write_shards`.
        shard_tokens: As for `write_shards`.
        num_threads: As for `write_shards`.
        overwrite: Whether to replace all splits that the directory holds, even those of another codec or of other
            names.
        progress: As for `write_shards`.

    Raises:
        OutputError: The directory holds any split, or cannot be written.
        DataError: A split has no documents, or the codec cannot encode one.
        ConfigError: An argument is out of range.
    """
    directory = Path(directory)

    def check() -> list[str]:
        there = list_splits(directory)
        if there and not overwrite:
            raise OutputError(
                f"{directory}: already holds the splits {', '.join(there)}; choose another directory, or pass "
                "overwrite=True"
            )
        for split in {*there, *splits}:
            _check_folder(directory, split, overwrite)
        return sorted({*there, *splits})

    encoded = {split: _encoded(documents, codec, num_threads) for split, documents in splits.items()}
    _write(directory, encoded, check, codec, shard_tokens, progress)


def _encoded(documents: Iterable[bytes], codec: Codec, num_threads: int | None) -> Iterator[_Encoded]:
    for document, tokens in encode_documents(documents, codec, num_threads=num_threads):
        yield len(document), tokens


def _measured(documents: Iterable[npt.NDArray[np.integer]], codec: Codec) -> Iterator[_Encoded]:
    for number, tokens in enumerate(documents, 1):
        try:
            num_bytes = len(codec.decode(tokens))
        except DataError as error:
            raise with_place(error, f"document {number:,}") from error
        yield num_bytes, tokens


def _check_split(directory: Path, split: str, codec: Codec, overwrite: bool) -> None:
    _check_folder(directory, split, overwrite)
    if any(name != split for name in list_splits(directory)):
        known = load_codec(directory / "codec.json")
        if known.fingerprint != codec.fingerprint:
            raise MismatchError(
                f"{directory}: holds splits of codec {known.name}, not {codec.name}; choose another directory"
            )


def _check_folder(directory: Path, split: str, overwrite: bool) -> None:
    if not isinstance(split, str) or not split.isidentifier():
        raise ConfigError(f"split is {split!r}; it must consist of letters, digits and underscores, such as 'train'")
    folder = directory / split
    if folder.exists() and not overwrite:
        raise OutputError(f"{folder}: already exists; choose another directory, or pass overwrite=True")
    if folder.exists() and not (folder.is_dir() and all(path.suffix == ".shard" for path in folder.iterdir())):
        raise OutputError(f"{folder}: is not a directory of shards only; choose another directory")


def _write(
    directory: Path,
    splits: Mapping[str, Iterable[_Encoded]],
    check: Callable[[], Sequence[str]],
    codec: Codec,
    shard_tokens: int,
    progress: Callable[[int, int], None] | None,
) -> None:
    """Write splits under a temporary name, then rename them in place of the splits that `check` returns.

    `check` raises an error if the splits must not be written. It is called before the work starts, and again while the
    directory is locked.
    """
    shard_tokens = as_integer(shard_tokens, "shard_tokens", 1, (1 << 62) - 1)
    if directory.exists() and not directory.is_dir():
        raise OutputError(f"{directory}: cannot be written (it is a file, not a folder); choose another directory")
    check()
    try:
        directory.mkdir(parents=True, exist_ok=True)
        temporary = directory / f".{secrets.token_hex(8)}.partial"
        temporary.mkdir()
        try:
            for split, documents in splits.items():
                (temporary / split).mkdir()
                _write_files(temporary / split, documents, codec, shard_tokens, progress)
            save_codec(codec, temporary / "codec.json")
            with locked(directory, wait_seconds=_LOCK_SECONDS):
                _put_in_place(directory, temporary, splits, check())
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
    except FastcompressError:
        raise
    except OSError as error:
        raise OutputError(f"{directory}: cannot be written ({error.strerror}); {remedy_for(error)}") from error


def _put_in_place(directory: Path, new: Path, splits: Iterable[str], old: Iterable[str]) -> None:
    """Replace splits of a directory, and its codec.json if it differs. If a move fails, the moves before it are undone.

    Args:
        directory: The directory.
        new: The folder of the new splits and their codec.json.
        splits: The names of the new splits.
        old: The names of the splits to remove.
    """
    names, leaving = list(splits), [name for name in old if (directory / name).exists()]
    codec_file = directory / "codec.json"
    if not codec_file.exists() or codec_file.read_bytes() != (new / "codec.json").read_bytes():
        names.insert(0, "codec.json")
        leaving += ["codec.json"] if codec_file.exists() else []
    # Not inside `new`, which is always deleted: the old splits are deleted only when the new ones are in place.
    away = new.with_suffix(".old")
    away.mkdir()
    moved: list[tuple[Path, Path]] = []
    try:
        for name in leaving:
            _move(directory / name, away / name, moved)
        for name in names:
            _move(new / name, directory / name, moved)
    except BaseException:
        for source, target in reversed(moved):
            os.rename(target, source)
        away.rmdir()
        raise
    shutil.rmtree(away, ignore_errors=True)


def _move(source: Path, target: Path, moved: list[tuple[Path, Path]]) -> None:
    """Rename a file or folder to an unused name, and add the pair to `moved`. Raises FileExistsError if it is used.

    On POSIX, rename() silently replaces files and empty folders, so the name is first claimed by a call that does not.
    """
    claim: Callable[[], object] = target.mkdir if source.is_dir() else lambda: target.open("xb").close()
    free: Callable[[], object] = target.rmdir if source.is_dir() else target.unlink
    if sys.platform != "win32":  # where rename() refuses by itself
        claim()
    try:
        os.rename(source, target)
    except BaseException:
        if sys.platform != "win32":
            free()
        raise
    moved.append((source, target))


def _write_files(
    folder: Path,
    documents: Iterable[_Encoded],
    codec: Codec,
    shard_tokens: int,
    progress: Callable[[int, int], None] | None,
) -> None:
    headers: list[ShardHeader] = []
    writer: ShardFileWriter | None = None

    def path_of(index: int) -> Path:
        return folder / f"{index:05d}.shard"

    try:
        for num_bytes, tokens in documents:
            if writer is None:
                writer = ShardFileWriter(
                    path_of(len(headers)), vocab_size=codec.vocab_size, codec_fingerprint=codec.fingerprint
                )
            writer.add(tokens, num_bytes)
            if writer.num_tokens >= shard_tokens:
                headers.append(writer.finish())
                writer = None
            if progress is not None:
                progress(num_bytes, len(tokens))
        if writer is not None:
            headers.append(writer.finish())
    finally:
        if writer is not None:
            writer.close()
    if not headers:
        raise DataError("there are no documents to encode; give at least one")
    for index, header in enumerate(headers):
        write_header(path_of(index), header, shard_index=index, num_shards=len(headers))
