"""Writing of documents in memory as splits of shard files, in which a split is always complete or absent.

Splits are written under temporary names and renamed when they are complete. Several processes may write to one
directory at the same time: they encode in parallel, and hold a lock (`DIRECTORY/.lock`) while they check what the
directory has by then and rename their splits.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from fastcompress._arguments import as_integer
from fastcompress._deprecated import renamed_argument
from fastcompress._files import remedy_for
from fastcompress._locks import locked
from fastcompress.codec import Codec, load_codec, save_codec
from fastcompress.data.abandoned import MOVES, away_from, remove_abandoned
from fastcompress.data.encode import Batcher, batches_of, encoded_batches
from fastcompress.data.manifest import MANIFEST, SKIPPED, EncodeSettings, Manifest, ShardRecord
from fastcompress.data.shard_file_writer import ShardFileWriter
from fastcompress.errors import ConfigError, DataError, FastcompressError, MismatchError, OutputError, with_place

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    _Encoded = tuple[list[int], Sequence[npt.NDArray[np.integer]], bool]
    """The number of bytes of some documents, their ids, and whether the last one ends its shard."""

SHARD_BYTES = EncodeSettings.shard_bytes
"""The default number of bytes of documents after which the next shard file begins."""

# How many bytes of text a token stands for, where a number of tokens is given by an old argument.
_BYTES_PER_TOKEN = 4

# Another process holds the lock only for a few renames, unless the file system stalls.
LOCK_SECONDS = 60.0


def list_splits(directory: Path) -> list[str]:
    """Return the names of the splits in a directory, sorted; an empty list if it does not exist or has none."""
    if not Path(directory).is_dir():
        return []
    folders = (path for path in Path(directory).iterdir() if not path.name.startswith(".") and path.is_dir())
    return sorted(
        folder.name for folder in folders if (folder / MANIFEST).exists() or (folder / "00000.shard").exists()
    )


def write_shards(
    directory: Path,
    split: str,
    documents: Iterable[bytes],
    codec: Codec,
    *,
    shard_bytes: int | None = None,
    num_threads: int | None = None,
    overwrite: bool = False,
    progress: Callable[[int, int], None] | None = None,
    shard_tokens: int | None = None,
) -> None:
    """Encode documents and write them as one split of a directory, all or nothing.

    Args:
        directory: The directory, which is made if it does not exist. It holds the splits of one codec.
        split: The name of the split: letters, digits and underscores, such as "train".
        documents: The documents, read once, a few batches ahead. An empty one becomes a lone end-of-document id.
        codec: The codec that encodes them.
        shard_bytes: The number of bytes of documents, at least 1, after which the next document begins another file;
            None for 256 MiB.
        num_threads: The number of threads that encode; None for one per core, at most 8. Does not change the files.
        overwrite: Whether to replace the split if it exists.
        progress: Called after each document with its numbers of bytes and tokens.
        shard_tokens: Deprecated: use `shard_bytes`. A token counts as 4 bytes.

    Raises:
        OutputError: The split exists, or cannot be written.
        MismatchError: The directory holds splits of another codec.
        DataError: There are no documents, or the codec cannot encode one.
        ConfigError: An argument is out of range.

    Memory: some megabytes of documents with their tokens, and 8 bytes per document of the current shard.
    """
    directory = Path(directory)

    shard_bytes = _as_shard_bytes(shard_bytes, shard_tokens)

    def check() -> list[str]:
        check_split(directory, split, codec, overwrite)
        return [split]

    _write(directory, {split: _encoded(documents, codec, num_threads, shard_bytes)}, check, codec, progress)


def write_encoded(
    directory: Path,
    split: str,
    documents: Iterable[npt.NDArray[np.integer]],
    codec: Codec,
    *,
    shard_bytes: int | None = None,
    overwrite: bool = False,
    progress: Callable[[int, int], None] | None = None,
    shard_tokens: int | None = None,
) -> None:
    """Write documents that are ids already as one split of a directory, all or nothing.

    Each document is decoded once, to check its ids and to count its bytes. The ids are kept as they are, even if
    `codec` would encode the same bytes to others.

    Args:
        directory: As for `write_shards`.
        split: As for `write_shards`.
        documents: The ids of each document, integers[n], without an end-of-document id; read once.
        codec: The codec that made the ids.
        shard_bytes: As for `write_shards`.
        overwrite: As for `write_shards`.
        progress: As for `write_shards`.
        shard_tokens: As for `write_shards`.

    Raises:
        OutputError: The split exists, or cannot be written.
        MismatchError: The directory holds splits of another codec.
        DataError: There are no documents, or one holds an id that `codec` does not have.
        ConfigError: An argument is out of range.
    """
    directory = Path(directory)

    shard_bytes = _as_shard_bytes(shard_bytes, shard_tokens)

    def check() -> list[str]:
        check_split(directory, split, codec, overwrite)
        return [split]

    _write(directory, {split: _measured(documents, codec, shard_bytes)}, check, codec, progress)


def write_splits(
    directory: Path,
    splits: Mapping[str, Iterable[bytes]],
    codec: Codec,
    *,
    shard_bytes: int | None = None,
    num_threads: int | None = None,
    overwrite: bool = False,
    progress: Callable[[int, int], None] | None = None,
    shard_tokens: int | None = None,
) -> None:
    """Encode the splits of a corpus and write them as the only splits of a directory, all or nothing.

    Args:
        directory: As for `write_shards`.
        splits: The documents of each split, by name.
        codec: As for `write_shards`.
        shard_bytes: As for `write_shards`.
        num_threads: As for `write_shards`.
        overwrite: Whether to replace all splits that the directory holds, even those of another codec or of other
            names.
        progress: As for `write_shards`.
        shard_tokens: As for `write_shards`.

    Raises:
        OutputError: The directory holds any split, or cannot be written.
        DataError: A split has no documents, or the codec cannot encode one.
        ConfigError: An argument is out of range.
    """
    directory = Path(directory)
    shard_bytes = _as_shard_bytes(shard_bytes, shard_tokens)

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

    encoded = {split: _encoded(documents, codec, num_threads, shard_bytes) for split, documents in splits.items()}
    _write(directory, encoded, check, codec, progress)


def _as_shard_bytes(shard_bytes: int | None, shard_tokens: int | None) -> int:
    if shard_tokens is not None:
        shard_tokens = _BYTES_PER_TOKEN * as_integer(shard_tokens, "shard_tokens", 1, 1 << 58)
    shard_bytes = renamed_argument("shard_tokens", shard_tokens, "shard_bytes", shard_bytes)
    return SHARD_BYTES if shard_bytes is None else as_integer(shard_bytes, "shard_bytes", 1, (1 << 62) - 1)


def _encoded(documents: Iterable[bytes], codec: Codec, num_threads: int | None, shard_bytes: int) -> Iterator[_Encoded]:
    batches = batches_of(documents, Batcher(shard_bytes))
    with closing(encoded_batches(batches, codec, num_threads=num_threads)) as encoded:
        for batch, ids in encoded:
            yield list(map(len, batch.texts)), ids, batch.ends_shard


def _measured(documents: Iterable[npt.NDArray[np.integer]], codec: Codec, shard_bytes: int) -> Iterator[_Encoded]:
    batcher = Batcher(shard_bytes)
    for number, tokens in enumerate(documents, 1):
        try:
            num_bytes = len(codec.decode(tokens))
        except DataError as error:
            raise with_place(error, f"document {number:,}") from error
        yield [num_bytes], [tokens], batcher.ends(num_bytes)[1]


def check_split(directory: Path, split: str, codec: Codec, overwrite: bool) -> None:
    """Check that a split may be written to a directory.

    Args:
        directory: The directory, which may exist.
        split: The name of the split.
        codec: The codec of the split.
        overwrite: Whether the split may be replaced.

    Raises:
        OutputError: The split exists and must not be replaced, or is not a folder of shards.
        MismatchError: The directory holds other splits, of another codec.
        ConfigError: The name is none of a split.
    """
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
    if folder.exists() and not (folder.is_dir() and all(map(_is_of_split, folder.iterdir()))):
        raise OutputError(f"{folder}: is not a directory of shards only; choose another directory")


def _is_of_split(path: Path) -> bool:
    return path.suffix == ".shard" or path.name in (MANIFEST, SKIPPED)


def _write(
    directory: Path,
    splits: Mapping[str, Iterable[_Encoded]],
    check: Callable[[], Sequence[str]],
    codec: Codec,
    progress: Callable[[int, int], None] | None,
) -> None:
    """Write splits under a temporary name, then rename them in place of the splits that `check` returns.

    `check` raises an error if the splits must not be written. It is called before the work starts, and again while the
    directory is locked.
    """
    if directory.exists() and not directory.is_dir():
        raise OutputError(f"{directory}: cannot be written (it is a file, not a folder); choose another directory")
    try:
        if directory.exists():
            with locked(directory, wait_seconds=LOCK_SECONDS):
                remove_abandoned(directory)
        check()
        directory.mkdir(parents=True, exist_ok=True)
        temporary = directory / f".{secrets.token_hex(8)}.partial"
        with contextlib.ExitStack() as stack:
            with locked(directory, wait_seconds=LOCK_SECONDS):
                temporary.mkdir()
                stack.callback(shutil.rmtree, temporary, ignore_errors=True)
                stack.enter_context(locked(temporary))
            for split, documents in splits.items():
                (temporary / split).mkdir()
                _write_files(temporary / split, documents, codec, progress)
            save_codec(codec, temporary / "codec.json")
            put_in_place(directory, temporary, splits, check)
    except FastcompressError:
        raise
    except OSError as error:
        raise OutputError(f"{directory}: cannot be written ({error.strerror}); {remedy_for(error)}") from error


def put_in_place(directory: Path, new: Path, splits: Iterable[str], check: Callable[[], Sequence[str]]) -> None:
    """Replace splits of a directory, and its codec.json if it differs, while the directory is locked.

    Args:
        directory: The directory.
        new: The folder of the new splits and their codec.json.
        splits: The names of the new splits.
        check: Returns the names of the splits to remove, or raises an error if nothing must be replaced.
    """
    with locked(directory, wait_seconds=LOCK_SECONDS):
        _put_in_place(directory, new, splits, check())


def _put_in_place(directory: Path, new: Path, splits: Iterable[str], old: Iterable[str]) -> None:
    """Replace splits, as `put_in_place` does. If a move fails, the moves before it are undone."""
    names, leaving = list(splits), [name for name in old if (directory / name).exists()]
    codec_file = directory / "codec.json"
    if not codec_file.exists() or codec_file.read_bytes() != (new / "codec.json").read_bytes():
        names.insert(0, "codec.json")
        leaving += ["codec.json"] if codec_file.exists() else []
    (new / MOVES).write_text(json.dumps(names))
    away = away_from(new)
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
    progress: Callable[[int, int], None] | None,
) -> None:
    """Write a split and its manifest to an empty folder."""
    shards: list[ShardRecord] = []
    writer: ShardFileWriter | None = None
    name = ""
    try:
        for sizes, ids, ends_shard in documents:
            if writer is None:
                name = f"{len(shards):05d}.shard"
                writer = ShardFileWriter(
                    folder / name, vocab_size=codec.vocab_size, codec_fingerprint=codec.fingerprint,
                    shard_index=len(shards),
                )  # fmt: skip
            writer.add(ids, sum(sizes))
            if ends_shard:
                shards.append(ShardRecord.of(name, writer.finish()))
                writer = None
            if progress is not None:
                for num_bytes, tokens in zip(sizes, ids, strict=True):
                    progress(num_bytes, len(tokens))
        if writer is not None:
            shards.append(ShardRecord.of(name, writer.finish()))
            writer = None
    finally:
        if writer is not None:
            writer.discard()
    if not shards:
        raise DataError("there are no documents to encode; give at least one")
    Manifest(codec.name, codec.fingerprint, codec.vocab_size, shards).write(folder)
