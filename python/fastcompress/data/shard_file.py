"""The file format of a shard: token ids, divided into documents, with checksums.

FORMAT, version 2. All integers are little endian; offsets are in bytes from the start of the file.

====== ===== ============================================================================================
offset bytes field
====== ===== ============================================================================================
0      8     magic ``89 46 43 53 48 0D 0A 1A`` ("\\x89FCSH\\r\\n\\x1a": a text-mode copy breaks it visibly)
8      4     format version, 2
12     4     bytes per token, W: 2 if vocab_size <= 65,535, so that the end-of-document id fits, else 4
16     8     num_tokens, N: end-of-document ids included
24     8     num_documents, D: at least 1
32     8     num_bytes: bytes of the documents before encoding
40     4     vocab_size: the number of ids of the codec, which is also the end-of-document id
44     4     shard_index: the index of this file in its part, from 0
48     4     part_index: the index of the part of the inputs that the documents are from, from 0
52     12    zero
64     32    fingerprint of the codec
96     32    SHA-256 of the payload: every byte from offset 160 to the end of the file
128    32    SHA-256 of bytes [0, 128)
160    N*W   token ids, each at most vocab_size; every document ends in exactly one end-of-document id
...    0..7  zeros up to a multiple of 8
...    8*D+8 document offsets, in tokens: document d is tokens [offset[d], offset[d + 1]), its end id included
====== ===== ============================================================================================

A file says nothing of the files beside it, so that it can be written before it is known how many there will be;
`fastcompress.data.manifest` describes the list of them. Its name is given to it when it is complete and on the disk.

Version 1 is read as well. It differs in the version at offset 8, and in the fields at offsets 44 and 48, which are the
index of the file in its split and the number of files of the split. The last 32 bytes of the header are called the
checksum of the file, since the header in turn holds the checksum of all else.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import mmap
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import numpy as np

from fastcompress.errors import DataError, FormatError

if TYPE_CHECKING:
    import numpy.typing as npt

MAGIC = b"\x89FCSH\r\n\x1a"
VERSION = 2
HEADER_BYTES = 160
_FIELDS = struct.Struct("<8sIIQQQIIII8x32s32s")
_CHUNK_BYTES = 1 << 22


@dataclass(frozen=True, kw_only=True)
class ShardHeader:
    """The fields of a shard file's header, which FORMAT above describes.

    `num_shards` is that of a file of version 1; of version 2, it is None.
    """

    num_tokens: int
    num_documents: int
    num_bytes: int
    vocab_size: int
    codec_fingerprint: str
    payload_sha256: bytes
    shard_index: int = 0
    part_index: int = 0
    num_shards: int | None = None

    @property
    def token_bytes(self) -> int:
        """The number of bytes per token."""
        return token_bytes(self.vocab_size)

    @property
    def offsets_begin(self) -> int:
        """The position of the document offsets, in bytes from the start of the file."""
        return -(-(HEADER_BYTES + self.num_tokens * self.token_bytes) // 8) * 8

    @property
    def file_bytes(self) -> int:
        """The size of the file."""
        return self.offsets_begin + 8 * (self.num_documents + 1)

    @property
    def checksum(self) -> str:
        """The SHA-256 of the fields before it, and so of the whole file, as 64 hexadecimal digits."""
        return self.to_bytes()[-32:].hex()

    def to_bytes(self) -> bytes:
        """Return the header as it is in the file, HEADER_BYTES bytes."""
        version, last = (VERSION, self.part_index) if self.num_shards is None else (1, self.num_shards)
        fields = _FIELDS.pack(
            MAGIC, version, self.token_bytes, self.num_tokens, self.num_documents, self.num_bytes,
            self.vocab_size, self.shard_index, last, 0,
            bytes.fromhex(self.codec_fingerprint), self.payload_sha256,
        )  # fmt: skip
        return fields + hashlib.sha256(fields).digest()

    @classmethod
    def from_bytes(cls, blob: bytes, path: Path) -> ShardHeader:
        """Parse the first HEADER_BYTES bytes of a file. Raises FormatError, which names `path`, if they are invalid."""
        if blob[: len(MAGIC)] != MAGIC:
            raise FormatError(f"{path}: not a shard file (wrong magic); encode the corpus again")
        if len(blob) < HEADER_BYTES:
            raise FormatError(f"{path}: truncated inside its header; encode the corpus again")
        _, version, width, tokens, documents, num_bytes, vocab, index, last, zero, codec, payload = _FIELDS.unpack(
            blob[:128]
        )
        if version not in (1, VERSION):
            raise FormatError(
                f"{path}: shard format version {version}, this build reads versions 1 and {VERSION}; "
                "encode the corpus again, or use the release that wrote it"
            )
        if hashlib.sha256(blob[:128]).digest() != blob[128:HEADER_BYTES]:
            raise FormatError(f"{path}: the header is corrupted (checksum); encode the corpus again")
        header = cls(
            num_tokens=tokens, num_documents=documents, num_bytes=num_bytes, vocab_size=vocab,
            codec_fingerprint=codec.hex(), payload_sha256=payload, shard_index=index,
            part_index=last if version == VERSION else 0, num_shards=last if version == 1 else None,
        )  # fmt: skip
        is_outside = version == 1 and index >= last
        if width != header.token_bytes or zero or not (1 <= documents <= tokens) or is_outside:
            raise FormatError(f"{path}: the header contradicts itself; encode the corpus again")
        return header


def token_bytes(vocab_size: int) -> int:
    """Return the number of bytes per stored id: 2 if the end-of-document id, `vocab_size`, fits in 16 bits, else 4."""
    return 2 if vocab_size <= 0xFFFF else 4


def token_dtype(vocab_size: int) -> np.dtype[np.unsignedinteger]:
    """Return the dtype of stored ids, which is little-endian."""
    return np.dtype(f"<u{token_bytes(vocab_size)}")


def payload_sha256(tokens: npt.NDArray[np.unsignedinteger], offsets: npt.NDArray[np.uint64]) -> bytes:
    """Return the checksum that the header of a file with these ids (of `token_dtype`) and document offsets has."""
    digest = hashlib.sha256(np.ascontiguousarray(tokens).data)
    digest.update(bytes(-tokens.nbytes % 8))
    digest.update(np.asarray(offsets, "<u8").tobytes())
    return digest.digest()


class ShardFile:
    """A memory-mapped shard file, which is checked when it is opened.

    Attributes:
        path: The path of the file.
        header: The header.
        tokens: The ids, uint16[num_tokens] or uint32[num_tokens]; a read-only view of the file.
        offsets: The position of each document in `tokens`, uint64[num_documents + 1]; a read-only view of the file.
    """

    def __init__(self, path: Path, *, verify: bool) -> None:
        """Open a file.

        Args:
            path: The file.
            verify: Whether to read all of it, to check the checksum, the range of ids and the end of each document.

        Raises:
            FormatError: The file is truncated, damaged, of another version, or not a shard.
            DataError: An id is out of range, or too many files are open.
        """
        with _naming_limit(path), path.open("rb") as file:
            self.header = ShardHeader.from_bytes(file.read(HEADER_BYTES), path)
            size = file.seek(0, 2)
            if size != self.header.file_bytes:
                raise FormatError(
                    f"{path}: has {size:,} bytes, but {self.header.file_bytes:,} by its header (it is truncated, or "
                    "bytes were added); encode the corpus again"
                )
            if verify:
                _check_payload(file, path, self.header)
            self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self.path = path
        h = self.header
        self.tokens = np.frombuffer(self._map, token_dtype(h.vocab_size), h.num_tokens, HEADER_BYTES)
        self.offsets = np.frombuffer(self._map, "<u8", h.num_documents + 1, h.offsets_begin)
        self._check_offsets(verify)
        self.release_pages()

    def release_pages(self) -> None:
        """Release the mapped pages to the system's cache, so that random reads do not enlarge the process."""
        if hasattr(mmap, "MADV_DONTNEED"):  # not on Windows, which trims the working set itself
            self._map.madvise(mmap.MADV_DONTNEED)

    def _check_offsets(self, verify: bool) -> None:
        offsets = self.offsets
        if offsets[0] != 0 or offsets[-1] != self.header.num_tokens or not (offsets[1:] > offsets[:-1]).all():
            raise FormatError(f"{self.path}: its document offsets do not ascend; encode the corpus again")
        if verify and (self.tokens[offsets[1:] - 1] != self.header.vocab_size).any():
            raise FormatError(f"{self.path}: a document does not end in its end id; encode the corpus again")


@contextlib.contextmanager
def _naming_limit(path: Path) -> Iterator[None]:
    """Say what to do if a mapped file, which stays open, is one too many."""
    try:
        yield
    except OSError as error:
        if error.errno != errno.EMFILE:
            raise
        raise DataError(
            f"{path}: cannot be opened, because too many files are open; raise their limit (ulimit -n), or encode the "
            "corpus into larger shards"
        ) from error


def _check_payload(file: BinaryIO, path: Path, header: ShardHeader) -> None:
    """Read the payload once, in chunks; check its SHA-256, the range of its ids and the number of end ids."""
    file.seek(HEADER_BYTES)
    digest = hashlib.sha256()
    left = header.num_tokens * header.token_bytes
    num_ends = first = 0
    bad: tuple[int, int] | None = None
    while left:
        chunk = file.read(min(left, _CHUNK_BYTES))
        if len(chunk) < min(left, _CHUNK_BYTES):
            raise FormatError(f"{path}: shrank while it was read; encode the corpus again")
        digest.update(chunk)
        tokens = np.frombuffer(chunk, token_dtype(header.vocab_size))
        num_ends += int(np.count_nonzero(tokens == header.vocab_size))
        if bad is None and tokens.max() > header.vocab_size:
            position = int(np.argmax(tokens > header.vocab_size))
            bad = int(tokens[position]), first + position
        first += len(tokens)
        left -= len(chunk)
    while chunk := file.read(_CHUNK_BYTES):
        digest.update(chunk)
    if digest.digest() != header.payload_sha256:
        raise FormatError(f"{path}: its contents are corrupted (checksum); encode the corpus again")
    if bad is not None:
        raise DataError(
            f"{path}: id {bad[0]} at token {bad[1]} is above the end-of-document id {header.vocab_size}; "
            "encode the corpus again"
        )
    if num_ends != header.num_documents:
        raise FormatError(f"{path}: {num_ends} end ids for {header.num_documents} documents; encode the corpus again")
