"""Parts of a data set: consecutive input files that become shards on their own, wherever and by whomever.

Parts depend on the sizes of the input files and on `shard_bytes` alone. A new part begins at the first file after
`shard_bytes` bytes of files. Within a part, a new shard begins at the first document after `shard_bytes` bytes of
documents. So the shards are the same for any number of threads, of workers and of interruptions. Standard input, whose
size is not known, and inputs that are limited by `max_bytes` are in one part.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING

from fastcompress.data.compression import reading
from fastcompress.data.corpora import take_bytes
from fastcompress.data.documents import Document
from fastcompress.data.encode import Batch, Batcher, encoded_batches
from fastcompress.data.hashed_file import HashedFile
from fastcompress.data.inputs import DocumentReader, InputFile, Skipped
from fastcompress.data.manifest import EncodeSettings, Position, ShardRecord
from fastcompress.data.part_log import InputHash, LogLine, PartLog, SkippedRow
from fastcompress.data.readers import STDIN_NAME
from fastcompress.data.shard_file_writer import ShardFileWriter
from fastcompress.errors import DataError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from fastcompress.codec import Codec

_BUFFER_BYTES = 1 << 18


@dataclass(frozen=True)
class Part:
    """Consecutive input files that become shards on their own. It can be pickled.

    Attributes:
        index: The index of the part, from 0.
        first_file: The index of its first file among all inputs.
        files: The files, at least one.
        sizes: Their sizes in bytes; None for standard input.
    """

    index: int
    first_file: int
    files: tuple[InputFile, ...]
    sizes: tuple[int | None, ...]


@dataclass
class EncodeProgress:
    """How far encoding has come.

    Attributes:
        bytes_total: The number of bytes of all input files; None if there is standard input.
        bytes_read: The number of those that were read.
        documents: The number of documents in shards.
        num_bytes: The number of their bytes.
        tokens: The number of their ids, without those that end documents.
        skipped: The number of documents, or rests of files, that were skipped.
    """

    bytes_total: int | None = None
    bytes_read: int = 0
    documents: int = 0
    num_bytes: int = 0
    tokens: int = 0
    skipped: int = 0


def plan_parts(files: Sequence[InputFile], sizes: Sequence[int | None], settings: EncodeSettings) -> list[Part]:
    """Divide input files into parts.

    Args:
        files: The files, in order.
        sizes: Their sizes in bytes; None for standard input.
        settings: The settings, of which `shard_bytes` and `max_bytes` count.
    """
    is_divided = settings.max_bytes is None and None not in sizes
    parts: list[Part] = []
    begin = num_bytes = 0
    for number, size in enumerate(sizes, 1):
        num_bytes += size or 0
        if number == len(files) or (is_divided and num_bytes >= settings.shard_bytes):
            parts.append(Part(len(parts), begin, tuple(files[begin:number]), tuple(sizes[begin:number])))
            begin, num_bytes = number, 0
    return parts


def encode_part(
    part: Part,
    codec: Codec,
    settings: EncodeSettings,
    folder: Path,
    *,
    num_threads: int | None = None,
    stdin: IO[bytes] | None = None,
    progress: Callable[[EncodeProgress], None] | None = None,
) -> None:
    """Turn one part into shards and its log, in a folder; go on where an earlier call was interrupted.

    What is written depends on the part, the codec and the settings alone. Different parts may be worked on at the same
    time, in any processes, but no part by two of them. `PartLog` has what was written.

    Args:
        part: The part.
        codec: The codec that encodes the documents.
        settings: The settings.
        folder: The folder, which exists.
        num_threads: As for `encode_documents`.
        stdin: The stream of standard input; by default that of the process.
        progress: Called with the state after each batch; what was done before this call counts, too.

    Raises:
        DataError: An input cannot be read, or the codec cannot encode a document.
        FormatError: An input, or the log, is damaged.
        OSError: The folder cannot be written.
    """
    log = PartLog(folder, part.index)
    log.prepare()
    if log.is_done:
        return
    state = EncodeProgress(None if None in part.sizes else sum(size or 0 for size in part.sizes))
    for line in log.lines:
        state.skipped += len(line.skipped)
        if line.shard is not None:
            state.documents += line.shard.documents
            state.num_bytes += line.shard.bytes
            state.tokens += line.shard.tokens - line.shard.documents
    reader, writer = _PartReader(part, settings, log, stdin), _PartWriter(part, codec, log)
    try:
        with closing(encoded_batches(reader.batches(), codec, num_threads=num_threads)) as encoded:
            for batch, ids in encoded:
                writer.write(batch, ids)
                state.documents += len(ids)
                state.num_bytes += batch.num_bytes
                state.tokens += sum(map(len, ids))
                state.skipped += len(batch.end.skipped)
                state.bytes_read = reader.bytes_read
                if progress is not None:
                    progress(state)
    finally:
        writer.discard()


@dataclass
class _BatchEnd:
    """What a batch brings besides documents.

    Attributes:
        position: Where the documents after it begin.
        skipped: What was skipped since the batch before.
        inputs: The files whose end was reached since the batch before.
        is_last: Whether it is the last one of the part.
    """

    position: Position
    skipped: list[SkippedRow] = field(default_factory=list)
    inputs: list[InputHash] = field(default_factory=list)
    is_last: bool = False


class _PartReader:
    """The batches of a part, from where its log ends."""

    def __init__(self, part: Part, settings: EncodeSettings, log: PartLog, stdin: IO[bytes] | None) -> None:
        self._part = part
        self._settings = settings
        self._taken = sum(shard.bytes for shard in log.shards)
        self._begin = log.lines[-1].end if log.lines else (part.first_file, 0)
        self._end = _BatchEnd(self._begin)
        self._file = part.first_file  # the index of the file that is read
        self._hashed: HashedFile | None = None
        self._bytes_before = 0  # in the files before that one
        self._stdin = stdin

    @property
    def bytes_read(self) -> int:
        """The number of bytes that were read of the files of the part, or passed over as done."""
        hashed = self._hashed
        return self._bytes_before + (0 if hashed is None else hashed.num_bytes)

    def batches(self) -> Iterator[Batch]:
        """Yield the batches; the last one may have no documents."""
        batcher = Batcher(self._settings.shard_bytes)
        batch, names = Batch([]), []
        documents = take_bytes(self._documents(), self._settings.max_bytes, self._taken)
        for document in documents:
            batch.texts.append(document.data)
            names.append(document.id)
            self._end.position = self._file, document.index + 1
            ends_batch, batch.ends_shard = batcher.ends(len(document.data))
            if ends_batch:
                batch.names, batch.end = names, self._end
                yield batch
                self._end = _BatchEnd(self._end.position)
                batch, names = Batch([]), []
        self._end.is_last = batch.ends_shard = True
        batch.names, batch.end = names, self._end
        yield batch

    def _documents(self) -> Iterator[Document]:
        files = zip(self._part.files, self._part.sizes, strict=True)
        for index, (file, size) in enumerate(files, self._part.first_file):
            self._file = index
            if self._file >= self._begin[0]:
                first_row = self._begin[1] if self._file == self._begin[0] else 0
                yield from self._documents_of(file, first_row)
                self._hash(file, size)
            self._bytes_before += size or 0

    def _documents_of(self, file: InputFile, first_row: int) -> Iterator[Document]:
        def skip(skipped: Skipped) -> None:
            if skipped.index >= first_row:
                self._end.skipped.append((self._file, skipped.index, skipped.problem, skipped.is_rest))

        reader = DocumentReader(
            (),
            text_key=self._settings.text_key,
            on_error=self._settings.on_error,
            on_skip=skip,
            stdin=None if file.path is not None else self._open_stdin(),
            open_file=lambda path: self._open(path.open("rb", buffering=0)),
        )
        for document in reader.documents(file):
            if document.index >= first_row:
                yield document

    def _open_stdin(self) -> IO[bytes] | None:
        stdin: IO[bytes] | None = self._stdin or getattr(sys.stdin, "buffer", None)
        return stdin and self._open(stdin, closes=False)

    def _open(self, raw: IO[bytes], *, closes: bool = True) -> IO[bytes]:
        self._hashed = HashedFile(raw, closes=closes)
        return io.BufferedReader(self._hashed, _BUFFER_BYTES)

    def _hash(self, file: InputFile, size: int | None) -> None:
        """Note the checksum of a file that was read, and check that it has not changed since it was planned."""
        hashed, self._hashed = self._hashed, None
        digest = None
        if hashed is not None:
            with reading(file.path or STDIN_NAME):
                digest = hashed.hexdigest() if file.path is None else hashed.sha256(file.path)
            if size not in (None, hashed.num_bytes):
                raise DataError(f"{file.path}: has changed while it was read; encode it when nothing writes to it")
            size = hashed.num_bytes
        self._end.inputs.append((self._file, size or 0, digest))


class _PartWriter:
    """The shards of a part and its log."""

    def __init__(self, part: Part, codec: Codec, log: PartLog) -> None:
        self._part = part
        self._codec = codec
        self._log = log
        self._begin = log.lines[-1].end if log.lines else (part.first_file, 0)
        self._line = LogLine(self._begin)
        self._writer: ShardFileWriter | None = None

    def write(self, batch: Batch, ids: Sequence[npt.NDArray[np.integer]]) -> None:
        """Write the documents of a batch, and finish the shard if it ends with them."""
        end: _BatchEnd = batch.end
        self._line.skipped += end.skipped
        self._line.inputs += end.inputs
        if ids and self._writer is None:
            self._writer = ShardFileWriter(
                self._log.next_path(), vocab_size=self._codec.vocab_size, codec_fingerprint=self._codec.fingerprint,
                shard_index=len(self._log.shards), part_index=self._part.index,
            )  # fmt: skip
        if self._writer is not None:
            self._writer.add(ids, batch.num_bytes)
        if not batch.ends_shard:
            return
        if self._writer is not None:
            name = self._log.next_path().name
            self._line.shard = ShardRecord.of(name, self._writer.finish(), self._begin, end.position)
            self._writer = None
        self._line.end, self._line.is_done = end.position, end.is_last
        self._log.append(self._line)
        self._begin, self._line = end.position, LogLine(end.position)

    def discard(self) -> None:
        """Remove the shard that is not finished, if there is one."""
        if self._writer is not None:
            self._writer.discard()
