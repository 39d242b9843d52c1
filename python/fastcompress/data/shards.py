"""A split of a corpus as tokens: on disk as a folder of shard files, or in memory; read by position.

FORMAT of a directory (one file's format: `fastcompress.data.shard_file`)::

    DIRECTORY/codec.json              the codec that made every id below it (`fastcompress.codec.load_codec`)
    DIRECTORY/train/00000.shard       first shard of the split "train"; documents never cross shards
    DIRECTORY/train/00001.shard       ...
    DIRECTORY/validation/00000.shard

Splits are written under temporary names and renamed when complete: each is there whole or not at all. Several
processes may write to one directory at a time: they encode side by side, and take turns (`DIRECTORY/.lock`) to check
what is there by then and to put their splits in place.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
import sys
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fastcompress._locks import locked
from fastcompress.codec import Codec, load_codec, save_codec
from fastcompress.data.encode import encode_documents
from fastcompress.data.shard_file import (
    ShardFile,
    ShardFileWriter,
    ShardHeader,
    payload_sha256,
    token_dtype,
    write_header,
)
from fastcompress.errors import (
    ConfigError,
    DataError,
    FastcompressError,
    FormatError,
    MismatchError,
    OutputError,
)

if TYPE_CHECKING:
    import numpy.typing as npt

SHARD_TOKENS = 1 << 27
# Pages touched by random reads count as the process's memory until given back. A read can map 2 MiB (measured
# on Linux 6.18, whose page cache uses large folios), and giving back takes 2 us.
_READS_PER_RELEASE = 16
# Others hold the lock for a few renames, or while a file system that has stalled comes back.
_LOCK_SECONDS = 60.0


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


def list_splits(directory: Path) -> list[str]:
    """Names of the splits in `directory`, sorted; empty when it is missing or holds none."""
    if not Path(directory).is_dir():
        return []
    folders = (path for path in Path(directory).iterdir() if not path.name.startswith(".") and path.is_dir())
    return sorted(folder.name for folder in folders if (folder / "00000.shard").exists())


class TokenDataset:
    """A stream of token ids cut into documents, each closed by the end-of-document id `vocab_size`.

    Attributes:
        codec_fingerprint: The fingerprint of the codec that made the ids.
        vocab_size: The number of ids of the codec; the end-of-document id, equal to it, is not counted.
        num_tokens: The number of ids in the stream, end-of-document ids included.
        num_documents, num_bytes: The number of documents, and of their bytes before encoding.

    Reading is thread-safe. A dataset opened from files maps them and holds no copy; it pickles as its path.
    """

    def __init__(
        self,
        segments: Sequence[tuple[npt.NDArray[np.unsignedinteger], npt.NDArray[np.uint64]]],
        *,
        vocab_size: int,
        codec_fingerprint: str,
        num_bytes: int,
        files: Sequence[ShardFile] = (),
        source: tuple[Path, str] | None = None,
    ) -> None:
        """Use `open` or `from_documents`. A segment is (ids, document offsets within them)."""
        self._segments = list(segments)
        self._files = list(files)
        self._source = source
        self._begins = [0, *accumulate(len(tokens) for tokens, _ in segments)]
        self._num_reads = 0
        self.vocab_size = vocab_size
        self.codec_fingerprint = codec_fingerprint
        self.num_bytes = num_bytes
        self.num_tokens = self._begins[-1]
        self.num_documents = sum(len(offsets) - 1 for _, offsets in segments)

    def __repr__(self) -> str:
        where = f"split {self._source[1]!r} of {str(self._source[0])!r}" if self._source is not None else "in memory"
        return (
            f"<TokenDataset {where}: {self.num_documents:,} documents, {self.num_bytes:,} bytes, "
            f"{self.num_tokens:,} tokens of a codec with {self.vocab_size:,} ids>"
        )

    @classmethod
    def open(cls, directory: Path, split: str, *, codec: Codec | None = None, verify: bool = True) -> TokenDataset:
        """Map the split `split` of `directory`.

        With `verify` (one pass over the files, about 1 GB/s) checksums and ids are checked too; without it,
        headers, sizes and offsets only. DataError: no such split. FormatError: a file is missing, foreign,
        truncated or corrupted. MismatchError: files of another codec than `codec` or than codec.json.
        """
        directory = Path(directory)
        folder = directory / split
        paths = sorted(folder.glob("*.shard"))
        if not paths:
            there = ", ".join(list_splits(directory)) or "none"
            raise DataError(f"{directory}: has no split {split!r} (there: {there}); encode the corpus into it")
        expected = load_codec(directory / "codec.json").fingerprint
        if codec is not None and codec.fingerprint != expected:
            raise MismatchError(
                f"{directory}: was not encoded by this {codec.name} codec; encode the corpus again with it"
            )
        files = [ShardFile(path, verify=verify) for path in paths]
        for index, file in enumerate(files):
            header = file.header
            if (header.shard_index, header.num_shards) != (index, len(files)):
                raise FormatError(
                    f"{file.path}: is shard {header.shard_index + 1} of {header.num_shards}, but is number "
                    f"{index + 1} of {len(files)} in its folder; restore the missing files or encode again"
                )
            if header.codec_fingerprint != expected:
                raise MismatchError(f"{file.path}: was not encoded by {directory / 'codec.json'}; encode again")
        return cls(
            [(file.tokens, file.offsets) for file in files],
            vocab_size=files[0].header.vocab_size,
            codec_fingerprint=expected,
            num_bytes=sum(file.header.num_bytes for file in files),
            files=files,
            source=(directory.resolve(), split),
        )

    @classmethod
    def from_documents(
        cls, documents: Iterable[bytes], codec: Codec, *, num_threads: int | None = None
    ) -> TokenDataset:
        """Encode `documents` in memory: 2 bytes a token, or 4 when the vocabulary needs them.

        DataError when there is no document or the codec cannot spell one.
        """
        end = np.array([codec.vocab_size], token_dtype(codec.vocab_size))
        pieces: list[npt.NDArray[np.unsignedinteger]] = []
        lengths: list[int] = []
        num_bytes = 0
        for document, tokens in encode_documents(documents, codec, num_threads=num_threads):
            pieces += [tokens.astype(end.dtype), end]
            lengths.append(len(tokens) + 1)
            num_bytes += len(document)
        if not pieces:
            raise DataError("no documents to encode; give a split that holds at least one")
        offsets = np.array([0, *accumulate(lengths)], np.uint64)
        return cls(
            [(np.concatenate(pieces), offsets)],
            vocab_size=codec.vocab_size,
            codec_fingerprint=codec.fingerprint,
            num_bytes=num_bytes,
        )

    @cached_property
    def fingerprint(self) -> str:
        """The SHA-256 of the checksums of the shards' payloads, so of tokens and borders, as 64 hexadecimal digits.

        At once for shards; one pass for a dataset in memory, which counts as one shard. The same tokens cut
        into other shards have another fingerprint.
        """
        digest = hashlib.sha256(b"fastcompress tokens, version 1\n")
        checksums = [file.header.payload_sha256 for file in self._files]
        for checksum in checksums or [payload_sha256(*segment) for segment in self._segments]:
            digest.update(checksum)
        return digest.hexdigest()

    def read(self, begin: int, end: int) -> npt.NDArray[np.uint32]:
        """Return a copy of the ids at positions [begin, end) of the stream, uint32[end - begin].

        Shards follow one another without a gap. Raises DataError if the range leaves [0, num_tokens], or if an
        unverified file holds an id above the end-of-document id.
        """
        if not 0 <= begin <= end <= self.num_tokens:
            raise DataError(f"tokens [{begin}, {end}) asked of a dataset that holds [0, {self.num_tokens})")
        tokens = np.empty(end - begin, np.uint32)
        position = begin
        segment = bisect_right(self._begins, begin) - 1
        while position < end:
            first = self._begins[segment]
            stop = min(end, self._begins[segment + 1])
            tokens[position - begin : stop - begin] = self._segments[segment][0][position - first : stop - first]
            position = stop
            segment += 1
        if len(tokens) and tokens.max() > self.vocab_size:
            raise DataError(
                f"id {tokens.max()} in tokens [{begin}, {end}) is above the end id {self.vocab_size}; "
                "open the dataset with verify=True to find the damaged file, then encode the corpus again"
            )
        self._release_pages()
        return tokens

    def documents(self) -> Iterator[npt.NDArray[np.uint32]]:
        """Yield the ids of each document in order, without its end-of-document id."""
        for begin, end in self.document_ranges():
            yield self.read(begin, end)

    def document_ranges(self) -> Iterator[tuple[int, int]]:
        """Yield the range [begin, end) of each document's ids in the stream, without its end-of-document id."""
        for (_, offsets), first in zip(self._segments, self._begins, strict=False):
            for begin, end in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
                yield first + begin, first + end - 1

    def _release_pages(self) -> None:
        self._num_reads += 1
        if self._num_reads % _READS_PER_RELEASE == 0:
            for file in self._files:
                file.release_pages()

    def __reduce__(self) -> tuple[Any, ...]:
        if self._source is None:
            arguments = (self._segments, self.vocab_size, self.codec_fingerprint, self.num_bytes)
            return _from_segments, arguments
        return _reopen, (*self._source, self.codec_fingerprint)


def _from_segments(
    segments: Sequence[tuple[npt.NDArray[np.unsignedinteger], npt.NDArray[np.uint64]]],
    vocab_size: int,
    codec_fingerprint: str,
    num_bytes: int,
) -> TokenDataset:
    return TokenDataset(segments, vocab_size=vocab_size, codec_fingerprint=codec_fingerprint, num_bytes=num_bytes)


def _reopen(directory: Path, split: str, codec_fingerprint: str) -> TokenDataset:
    """Unpickle: map the files again, without another pass over them."""
    dataset = TokenDataset.open(directory, split, verify=False)
    if dataset.codec_fingerprint != codec_fingerprint:
        raise MismatchError(f"{directory}: was replaced by shards of another codec; start again")
    return dataset
