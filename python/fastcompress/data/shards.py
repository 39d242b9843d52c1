"""The tokens of one split of a corpus, in shard files or in memory, which can be read at any position.

FORMAT of a directory (`fastcompress.data.shard_file` defines that of a file)::

    DIRECTORY/codec.json              the codec that made every id below it (`fastcompress.codec.load_codec`)
    DIRECTORY/train/00000.shard       first shard of the split "train"; documents never cross shards
    DIRECTORY/train/00001.shard       ...
    DIRECTORY/train/manifest.json     the list of these shards (`fastcompress.data.manifest`), written after them
    DIRECTORY/validation/00000.shard

`fastcompress.data.encode_dataset` writes such directories from files, `fastcompress.data.shard_writer` from memory.
Shards of version 1, which know their number themselves, have no manifest; they are read as well.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fastcompress._deprecated import renamed_names
from fastcompress.codec import Codec, load_codec
from fastcompress.data.encode import encode_documents
from fastcompress.data.manifest import MANIFEST, Manifest
from fastcompress.data.shard_file import (
    ShardFile,
    payload_sha256,
    token_dtype,
)
from fastcompress.data.shard_writer import SHARD_BYTES, list_splits, write_encoded, write_shards, write_splits
from fastcompress.errors import (
    DataError,
    FormatError,
    MismatchError,
)

if TYPE_CHECKING:
    import numpy.typing as npt

# Pages that were read count as memory of the process until they are released. A read can map 2 MiB (measured on
# Linux 6.18, whose page cache uses large folios); releasing the pages takes 2 us.
_READS_PER_RELEASE = 16

__all__ = ["SHARD_BYTES", "TokenDataset", "list_splits", "write_encoded", "write_shards", "write_splits"]


class TokenDataset:
    """A stream of token ids, in which the id `vocab_size` ends each document.

    Safe to share between threads. A dataset opened from files maps them into memory without a copy; pickling it stores
    only the path.

    >>> from fastcompress.codec import ByteCodec
    >>> dataset = TokenDataset.from_documents([b"to", b"be"], ByteCodec())
    >>> dataset.read(0, 6).tolist()
    [116, 111, 256, 98, 101, 256]

    Attributes:
        codec_fingerprint: The fingerprint of the codec that made the ids.
        vocab_size: The number of ids of the codec, without the end-of-document id.
        num_tokens: The number of ids in the stream, end-of-document ids included.
        num_documents: The number of documents.
        num_bytes: The number of bytes of the documents before encoding.
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
        """Wrap segments, each of ids and the offsets of documents in them. Use `open` or `from_documents` instead."""
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
        """Map a split of a directory into memory.

        Args:
            directory: The directory that `write_shards` or `write_splits` wrote.
            split: The name of the split, such as "train".
            codec: The codec that the ids must be from; None to accept any.
            verify: Whether to check checksums and ids too, in one pass over the files at about 1 GB/s. Headers, sizes
                and offsets are always checked.

        Raises:
            DataError: There is no such split.
            FormatError: A file is missing, truncated, damaged or not a shard.
            MismatchError: The files were not encoded by `codec`, or not by the codec of codec.json.
        """
        directory = Path(directory)
        folder = directory / split
        manifest = Manifest.read(folder)
        if manifest is None and not any(folder.glob("*.shard")):
            there = ", ".join(list_splits(directory)) or "none"
            is_begun = (directory / f".{split}.unfinished").exists()
            remedy = "run the interrupted encoding again to finish it" if is_begun else "encode the corpus into it"
            raise DataError(f"{directory}: has no split {split!r} (splits: {there}); {remedy}")
        expected = load_codec(directory / "codec.json").fingerprint
        if codec is not None and codec.fingerprint != expected:
            raise MismatchError(
                f"{directory}: was not encoded by this {codec.name} codec; encode the corpus again with it"
            )
        files = _open_first_version(folder, verify) if manifest is None else _open_listed(folder, manifest, verify)
        for file in files:
            if file.header.codec_fingerprint != expected:
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
        """Encode documents in memory, in 2 bytes per token, or 4 if the vocabulary has more than 65,535 ids.

        Args:
            documents: The documents, read once.
            codec: The codec that encodes them.
            num_threads: As for `encode_documents`. Does not change the result.

        Raises:
            DataError: There are no documents, or the codec cannot encode one.
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
            raise DataError("there are no documents to encode; give at least one")
        offsets = np.array([0, *accumulate(lengths)], np.uint64)
        return cls(
            [(np.concatenate(pieces), offsets)],
            vocab_size=codec.vocab_size,
            codec_fingerprint=codec.fingerprint,
            num_bytes=num_bytes,
        )

    @cached_property
    def fingerprint(self) -> str:
        """The SHA-256 of the checksums of all shards, and so of tokens and document boundaries; 64 hexadecimal digits.

        A dataset in memory counts as one shard, which takes one pass over it. The same tokens divided into other shards
        have another fingerprint.
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
            raise DataError(f"the range is [{begin}, {end}); it must be within [0, {self.num_tokens})")
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


def _open_listed(folder: Path, manifest: Manifest, verify: bool) -> list[ShardFile]:
    """Open the shards that a manifest lists. Raises FormatError if one is missing, or is another one."""
    files = []
    for shard in manifest.shards:
        path = folder / shard.name
        if not path.exists():
            raise FormatError(f"{path}: is missing; restore the missing files or encode again")
        file = ShardFile(path, verify=verify)
        if file.header.checksum != shard.checksum:
            raise FormatError(f"{path}: is not the file that {MANIFEST} lists; restore it, or encode the corpus again")
        files.append(file)
    return files


def _open_first_version(folder: Path, verify: bool) -> list[ShardFile]:
    """Open shards of version 1. Raises FormatError if one is missing, or if they are of version 2."""
    files = [ShardFile(path, verify=verify) for path in sorted(folder.glob("*.shard"))]
    for index, file in enumerate(files):
        header = file.header
        if header.num_shards is None:
            raise FormatError(f"{folder}: has no {MANIFEST}; restore it, or encode the corpus again")
        if (header.shard_index, header.num_shards) != (index, len(files)):
            raise FormatError(
                f"{file.path}: is shard {header.shard_index + 1} of {header.num_shards}, but is number "
                f"{index + 1} of {len(files)} in its folder; restore the missing files or encode again"
            )
    return files


def _from_segments(
    segments: Sequence[tuple[npt.NDArray[np.unsignedinteger], npt.NDArray[np.uint64]]],
    vocab_size: int,
    codec_fingerprint: str,
    num_bytes: int,
) -> TokenDataset:
    return TokenDataset(segments, vocab_size=vocab_size, codec_fingerprint=codec_fingerprint, num_bytes=num_bytes)


def _reopen(directory: Path, split: str, codec_fingerprint: str) -> TokenDataset:
    """Unpickle a dataset: map the files again, without verifying them."""
    dataset = TokenDataset.open(directory, split, verify=False)
    if dataset.codec_fingerprint != codec_fingerprint:
        raise MismatchError(f"{directory}: was replaced by shards of another codec; start again")
    return dataset


__getattr__ = renamed_names(__name__, {"SHARD_TOKENS": "SHARD_BYTES"})
