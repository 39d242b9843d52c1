"""Writing splits of a corpus as shard files, each there whole or not at all.

Splits are written under temporary names and renamed when complete. Several processes may write to one directory at a
time: they encode side by side, and take turns (`DIRECTORY/.lock`) to check what is there by then and to put their
splits in place.
"""

from __future__ import annotations

import os
import secrets
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from fastcompress._locks import locked
from fastcompress.codec import Codec, load_codec, save_codec
from fastcompress.data.encode import encode_documents
from fastcompress.data.shard_file import ShardFileWriter, ShardHeader, write_header
from fastcompress.errors import ConfigError, DataError, FastcompressError, MismatchError, OutputError

SHARD_TOKENS = 1 << 27
# Others hold the lock for a few renames, or while a file system that has stalled comes back.
_LOCK_SECONDS = 60.0


def list_splits(directory: Path) -> list[str]:
    """Names of the splits in `directory`, sorted; empty when it is missing or holds none."""
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
    """Encode `documents` and write them as the split `split` of `directory`, all or nothing.

    Args:
        directory: created when missing; one directory holds splits of one codec.
        documents: raw bytes, read once, a few batches ahead; an empty one becomes a lone end-of-document id.
        shard_tokens: a new file starts at the first document border at or past this many tokens; at least 1.
        num_threads: for encoding; None takes one a core, at most 8. The files are the same for any number.
        overwrite: replace an existing split instead of raising.
        progress: called after every document with (raw bytes, tokens) of that document.

    Memory: a few documents with their tokens, and 8 bytes a document of the current shard.
    Raises OutputError when the split exists or cannot be written, MismatchError when the directory holds
    splits of another codec, DataError when there is no document or the codec cannot spell one.
    """
    directory = Path(directory)

    def check() -> list[str]:
        _check_split(directory, split, codec, overwrite)
        return [split]

    _write(directory, {split: documents}, check, codec, shard_tokens, num_threads, progress)


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
    """Make `splits` all that `directory` holds: the splits of one corpus, written all or nothing.

    Arguments and errors as in `write_shards`, but OutputError when the directory holds any split, and with
    `overwrite` all its splits are replaced, also those of another codec or not in `splits`.
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

    _write(directory, splits, check, codec, shard_tokens, num_threads, progress)


def _check_split(directory: Path, split: str, codec: Codec, overwrite: bool) -> None:
    _check_folder(directory, split, overwrite)
    if any(name != split for name in list_splits(directory)):
        known = load_codec(directory / "codec.json")
        if known.fingerprint != codec.fingerprint:
            raise MismatchError(
                f"{directory}: holds splits of codec {known.name}, not {codec.name}; choose another directory"
            )


def _check_folder(directory: Path, split: str, overwrite: bool) -> None:
    if not split.isidentifier():
        raise ConfigError(f"split is {split!r}; it must consist of letters, digits and underscores, such as 'train'")
    folder = directory / split
    if folder.exists() and not overwrite:
        raise OutputError(f"{folder}: already exists; choose another directory, or pass overwrite=True")
    if folder.exists() and not (folder.is_dir() and all(path.suffix == ".shard" for path in folder.iterdir())):
        raise OutputError(f"{folder}: is not a directory of shards only; choose another directory")


def _write(
    directory: Path,
    splits: Mapping[str, Iterable[bytes]],
    check: Callable[[], Sequence[str]],
    codec: Codec,
    shard_tokens: int,
    num_threads: int | None,
    progress: Callable[[int, int], None] | None,
) -> None:
    """Write `splits` beside those that are there, then put them in place of the splits that `check` returns.

    `check` raises if they must not be written. It is asked before the work, and again when nobody else can write.
    """
    if shard_tokens < 1:
        raise ConfigError(f"shard_tokens is {shard_tokens}; it must be at least 1")
    check()
    try:
        directory.mkdir(parents=True, exist_ok=True)
        temporary = directory / f".{secrets.token_hex(8)}.partial"
        temporary.mkdir()
        try:
            for split, documents in splits.items():
                (temporary / split).mkdir()
                _write_files(temporary / split, documents, codec, shard_tokens, num_threads, progress)
            save_codec(codec, temporary / "codec.json")
            with locked(directory, wait_seconds=_LOCK_SECONDS):
                _put_in_place(directory, temporary, splits, check())
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
    except FastcompressError:
        raise
    except OSError as error:
        raise OutputError(
            f"{directory}: cannot be written ({error.strerror}); free space there, or choose another directory"
        ) from error


def _put_in_place(directory: Path, new: Path, splits: Iterable[str], old: Iterable[str]) -> None:
    """Move the splits `old` and their codec out of `directory`, and `splits` and theirs from `new` into it.

    If a move fails, those before it are undone.
    """
    names, leaving = list(splits), [name for name in old if (directory / name).exists()]
    codec_file = directory / "codec.json"
    if not codec_file.exists() or codec_file.read_bytes() != (new / "codec.json").read_bytes():
        names.insert(0, "codec.json")
        leaving += ["codec.json"] if codec_file.exists() else []
    # Beside `new`, which is deleted whatever happens: these are deleted only when the new ones are in place.
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
    """Rename a file or folder to a name that is free, and note it in `moved`. FileExistsError if it is not free.

    On POSIX rename() replaces files and empty folders without a word, so the name is claimed by a call that does not.
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
    documents: Iterable[bytes],
    codec: Codec,
    shard_tokens: int,
    num_threads: int | None,
    progress: Callable[[int, int], None] | None,
) -> None:
    headers: list[ShardHeader] = []
    writer: ShardFileWriter | None = None

    def path_of(index: int) -> Path:
        return folder / f"{index:05d}.shard"

    try:
        for document, tokens in encode_documents(documents, codec, num_threads=num_threads):
            if writer is None:
                writer = ShardFileWriter(
                    path_of(len(headers)), vocab_size=codec.vocab_size, codec_fingerprint=codec.fingerprint
                )
            writer.add(tokens, len(document))
            if writer.num_tokens >= shard_tokens:
                headers.append(writer.finish())
                writer = None
            if progress is not None:
                progress(len(document), len(tokens))
        if writer is not None:
            headers.append(writer.finish())
    finally:
        if writer is not None:
            writer.close()
    if not headers:
        raise DataError("no documents to encode; give a split that holds at least one")
    for index, header in enumerate(headers):
        write_header(path_of(index), header, shard_index=index, num_shards=len(headers))
