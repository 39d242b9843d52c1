"""Writing of one shard file, which has its name only when it is complete."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import numpy as np

from fastcompress.data.shard_file import HEADER_BYTES, ShardHeader, token_dtype
from fastcompress.errors import DataError

if TYPE_CHECKING:
    import numpy.typing as npt

TEMPORARY_PREFIX = ".unfinished-"


class ShardFileWriter:
    """A writer of one shard file from front to back, in memory that grows by 8 bytes per document.

    Until `finish` has returned, the file has another name, which `TEMPORARY_PREFIX` begins, and no header.
    """

    def __init__(
        self, path: Path, *, vocab_size: int, codec_fingerprint: str, shard_index: int = 0, part_index: int = 0
    ) -> None:
        """Begin a file. What an earlier writer of the same file left unfinished is replaced.

        Args:
            path: The name that the file gets.
            vocab_size: The number of ids of the codec.
            codec_fingerprint: The fingerprint of the codec.
            shard_index: The index of the file in its part.
            part_index: The index of the part.
        """
        self._path = path
        self._temporary = path.with_name(TEMPORARY_PREFIX + path.name)
        self._vocab_size = vocab_size
        self._fingerprint = codec_fingerprint
        self._indices = shard_index, part_index
        self._dtype = token_dtype(vocab_size)
        self._offsets: list[npt.NDArray[np.uint64]] = [np.zeros(1, np.uint64)]
        self._end = np.array([vocab_size], np.uint32)
        self._num_tokens = self._num_bytes = 0
        self._sha256 = hashlib.sha256()
        self._temporary.unlink(missing_ok=True)
        self._file: BinaryIO = self._temporary.open("xb")
        self._file.write(bytes(HEADER_BYTES))

    def add(self, documents: Sequence[npt.NDArray[np.integer]], num_bytes: int) -> None:
        """Append documents.

        Args:
            documents: The ids of each, without its end-of-document id.
            num_bytes: The number of their bytes before encoding, in all.

        Raises:
            DataError: An id is out of range.
        """
        if not documents:
            return
        ids = np.concatenate([array for document in documents for array in (document, self._end)])
        lengths = np.array([len(document) + 1 for document in documents], np.uint64)
        # In one pass if they are unsigned: only the ends that were added are outside the vocabulary.
        is_signed = np.issubdtype(ids.dtype, np.signedinteger)
        num_outside = np.count_nonzero(ids >= self._vocab_size)
        if num_outside != len(documents) or (is_signed and int(ids.min()) < 0):
            raise DataError(f"a codec of {self._vocab_size} ids encoded to id {_worst(ids)}; report this bug")
        self._write(np.ascontiguousarray(ids, self._dtype).data)
        self._offsets.append(np.cumsum(lengths, dtype=np.uint64) + np.uint64(self._num_tokens))
        self._num_tokens += len(ids)
        self._num_bytes += num_bytes

    def finish(self) -> ShardHeader:
        """Complete the file, wait until it is on the disk, give it its name, and return its header."""
        self._write(bytes(-self._file.tell() % 8))
        offsets = np.concatenate(self._offsets).astype("<u8", copy=False)
        self._write(offsets.data)
        shard_index, part_index = self._indices
        header = ShardHeader(
            num_tokens=self._num_tokens,
            num_documents=len(offsets) - 1,
            num_bytes=self._num_bytes,
            vocab_size=self._vocab_size,
            codec_fingerprint=self._fingerprint,
            payload_sha256=self._sha256.digest(),
            shard_index=shard_index,
            part_index=part_index,
        )
        self._file.seek(0)
        self._file.write(header.to_bytes())
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        os.replace(self._temporary, self._path)
        sync_folder(self._path.parent)
        return header

    def discard(self) -> None:
        """Remove the file, unless it is finished."""
        with contextlib.suppress(OSError):  # a full disk: closing writes the rest of the buffer
            self._file.close()
        self._temporary.unlink(missing_ok=True)

    def _write(self, blob: bytes | memoryview) -> None:
        self._file.write(blob)
        self._sha256.update(blob)


def _worst(ids: npt.NDArray[np.integer]) -> int:
    return min(int(ids.min()), 0) or int(ids.max())


def sync_folder(folder: Path) -> None:
    """Wait until the names in a folder are on the disk, where the system can say so."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with contextlib.suppress(OSError):  # file systems without this
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
