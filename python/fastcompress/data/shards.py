"""A split of a corpus as tokens: on disk as a folder of shard files, or in memory; read by position.

FORMAT of a directory (one file's format: `fastcompress.data.shard_file`)::

    DIRECTORY/codec.json              the codec that made every id below it (`fastcompress.codec.load_codec`)
    DIRECTORY/train/00000.shard       first shard of the split "train"; documents never cross shards
    DIRECTORY/train/00001.shard       ...
    DIRECTORY/validation/00000.shard

`fastcompress.data.shard_writer` writes such directories.
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

from fastcompress.codec import Codec, load_codec
from fastcompress.data.encode import encode_documents
from fastcompress.data.shard_file import (
    ShardFile,
    payload_sha256,
    token_dtype,
)
from fastcompress.data.shard_writer import SHARD_TOKENS, list_splits, write_shards, write_splits
from fastcompress.errors import (
    DataError,
    FormatError,
    MismatchError,
)

if TYPE_CHECKING:
    import numpy.typing as npt

# Pages touched by random reads count as the process's memory until given back. A read can map 2 MiB (measured
# on Linux 6.18, whose page cache uses large folios), and giving back takes 2 us.
_READS_PER_RELEASE = 16

__all__ = ["SHARD_TOKENS", "TokenDataset", "list_splits", "write_shards", "write_splits"]


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
