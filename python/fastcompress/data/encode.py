"""Encoding of documents in parallel, with the same results in the same order for any number of threads.

Documents are encoded in batches: one thread reads them, several encode them, and the caller takes the ids in order. The
reader is at most some megabytes of text ahead, or one document if that is larger, so memory does not grow with the
input.
"""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fastcompress._arguments import as_num_threads, shown
from fastcompress.errors import DataError, with_place

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from fastcompress.codec import Codec

    Ids = npt.NDArray[np.uint32]

# Each task encodes a batch of about this size: little memory, but long beside the few milliseconds in which a thread
# that has encoded one may wait for the interpreter.
_BATCH_BYTES = 1 << 22
_SMALL_BATCH_BYTES = 1 << 18
_LONG_BYTES = 1 << 24
_DOCUMENT_BYTES = 256  # what a document takes in a batch beside its text, so that a batch of empty ones ends, too
_AHEAD_BYTES = 48 << 20
# A reader that waits for a pipe, say, cannot be interrupted; it ends with the process.
_STOP_SECONDS = 1.0


@dataclass
class Batch:
    """Documents that are encoded together.

    Attributes:
        texts: The documents.
        names: What errors call them; () for no names.
        ends_shard: Whether the last one is the last of its shard.
        end: Anything that the maker of the batch keeps with it.
    """

    texts: list[bytes]
    names: Sequence[str] = ()
    ends_shard: bool = False
    end: Any = None

    @property
    def num_bytes(self) -> int:
        """The number of bytes of the documents."""
        return sum(map(len, self.texts))


class Batcher:
    """A rule for where batches and shards end: shards by raw bytes alone, so that they depend only on the documents."""

    def __init__(self, shard_bytes: int | None = None, batch_bytes: int = _BATCH_BYTES) -> None:
        """Make a rule.

        Args:
            shard_bytes: The number of bytes with which a shard is full; None for a single shard.
            batch_bytes: The number of bytes with which a batch is full.
        """
        self._shard_bytes = shard_bytes
        self._batch_bytes = batch_bytes
        self._batch = self._shard = 0

    def ends(self, num_bytes: int) -> tuple[bool, bool]:
        """Count a document of so many bytes; return whether it is the last of its batch and of its shard."""
        self._batch += num_bytes + _DOCUMENT_BYTES
        self._shard += num_bytes
        ends_shard = self._shard_bytes is not None and self._shard >= self._shard_bytes
        ends_batch = ends_shard or self._batch >= self._batch_bytes
        if ends_batch:
            self._batch = 0
        if ends_shard:
            self._shard = 0
        return ends_batch, ends_shard


def batches_of(documents: Iterable[bytes], batcher: Batcher) -> Iterator[Batch]:
    """Yield documents in batches, by a rule. Raises TypeError for documents that are not bytes."""
    batch = Batch([])
    for document in _checked(documents):
        batch.texts.append(document)
        ends_batch, batch.ends_shard = batcher.ends(len(document))
        if ends_batch:
            yield batch
            batch = Batch([])
    if batch.texts:
        yield batch


def _checked(documents: Iterable[bytes]) -> Iterator[bytes]:
    """Yield documents. Raises TypeError for a str, whose length is not its number of bytes, and for other types."""
    if isinstance(documents, str | bytes | bytearray | memoryview) or not isinstance(documents, Iterable):
        raise TypeError(f"documents is {shown(documents)}; it must be an iterable of bytes")
    for document in documents:
        if not isinstance(document, bytes):
            raise TypeError(f"a document is {shown(document)}; it must be bytes")
        yield document


def training_encoder(codec: Codec) -> Callable[[bytes], Ids]:
    """Return what encodes documents of a dataset: `codec.encode`, unless the codec has another form for training."""
    encode: Callable[[bytes], Ids] = getattr(codec, "encode_for_training", codec.encode)
    return encode


def encode_texts(codec: Codec, texts: Sequence[bytes], names: Sequence[str] = ()) -> list[Ids]:
    """Encode documents of a dataset: the ids of each, in order.

    Args:
        codec: The codec. One with an `encode_batch` encodes several documents in a single call.
        texts: The documents.
        names: What errors call them; () for no names.

    Raises:
        DataError: The codec cannot encode one of them, or it does not fit into memory.
    """
    together: Callable[[Sequence[bytes]], list[Ids]] | None = getattr(codec, "encode_batch", None)
    is_long = len(texts) == 1 and len(texts[0]) >= _LONG_BYTES  # a codec may share it between threads
    if together is not None and not is_long and not hasattr(codec, "encode_for_training"):
        return together(texts)
    encode = training_encoder(codec)
    encoded: list[Ids] = []
    try:
        encoded += map(encode, texts)
    except DataError as error:
        if not names:
            raise
        raise with_place(error, names[len(encoded)]) from error
    except MemoryError as error:
        name = f"{names[len(encoded)]}: " if names else ""
        raise DataError(f"{name}a document and its ids do not fit into memory; divide it into several") from error
    return encoded


def encode_documents(
    documents: Iterable[bytes], codec: Codec, *, num_threads: int | None = None
) -> Iterator[tuple[bytes, Ids]]:
    """Yield (document, its ids) in order, reading ahead by a few batches of 256 KiB.

    Args:
        documents: The documents; read as they are needed, with more than one thread in a thread of their own.
        codec: The codec that encodes them.
        num_threads: At least 1, or None for one per core, at most 8. Threads help codecs that release the GIL: with
            two, BPE is 1.6 times as fast (18 MB of English, 4,096 ids), bytes and characters not at all.

    Raises ConfigError if `num_threads` is less than 1. An error of the codec is raised after all documents of the
    batches before it.
    """
    num_threads = _threads(num_threads)
    if num_threads == 1:  # one by one, with nothing read ahead
        encode = training_encoder(codec)
        for document in _checked(documents):
            yield document, encode(document)
        return
    batches = batches_of(documents, Batcher(batch_bytes=_SMALL_BATCH_BYTES))
    ahead_bytes = 2 * num_threads * _SMALL_BATCH_BYTES
    with closing(encoded_batches(batches, codec, num_threads=num_threads, ahead_bytes=ahead_bytes)) as encoded:
        for batch, ids in encoded:
            yield from zip(batch.texts, ids, strict=True)


def encoded_batches(
    batches: Iterable[Batch], codec: Codec, *, num_threads: int | None = None, ahead_bytes: int = _AHEAD_BYTES
) -> Generator[tuple[Batch, list[Ids]]]:
    """Yield (batch, the ids of its documents) in order.

    The batches are read in one thread, ahead of the caller, and encoded in others. Errors of both are raised here,
    after everything before them. When the iterator is closed, all of them end.

    Args:
        batches: The batches.
        codec: The codec that encodes them.
        num_threads: The number of threads that encode: at least 1, or None for one per core, at most 8.
        ahead_bytes: The number of bytes of text that may be read before they are taken.
    """
    budget = _Budget(ahead_bytes)
    # The queue is bounded by the budget, for which every batch counts at least one byte.
    pending: queue.SimpleQueue[tuple[Batch, Future[list[Ids]]] | BaseException | None] = queue.SimpleQueue()
    pool = ThreadPoolExecutor(_threads(num_threads))

    def read() -> None:
        try:
            for batch in batches:
                if not budget.take(_cost(batch)):
                    break
                pending.put((batch, pool.submit(encode_texts, codec, batch.texts, batch.names)))
            pending.put(None)
        except BaseException as error:
            pending.put(error)
        finally:
            if isinstance(batches, Generator):  # its files are closed here, not when it is collected
                batches.close()

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    try:
        while (item := pending.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            batch, future = item
            yield batch, future.result()
            budget.give_back(_cost(batch))
            del item, batch, future  # not kept while the next batch is awaited
    finally:
        budget.close()
        reader.join(_STOP_SECONDS)
        pool.shutdown(wait=True, cancel_futures=True)


def _threads(num_threads: int | None) -> int:
    return as_num_threads(num_threads) or min(8, os.cpu_count() or 1)


def _cost(batch: Batch) -> int:
    return batch.num_bytes + _DOCUMENT_BYTES * len(batch.texts) + 1


class _Budget:
    """Bytes that may be in work at a time; a batch that is larger than all of them is in work alone."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._taken = 0
        self._is_closed = False
        self._changed = threading.Condition()

    def take(self, num_bytes: int) -> bool:
        """Wait until so many bytes are free, and take them; return False if the work is to stop instead."""
        with self._changed:
            while self._taken and self._taken + num_bytes > self._limit and not self._is_closed:
                self._changed.wait()
            self._taken += num_bytes
            return not self._is_closed

    def give_back(self, num_bytes: int) -> None:
        with self._changed:
            self._taken -= num_bytes
            self._changed.notify()

    def close(self) -> None:
        with self._changed:
            self._is_closed = True
            self._changed.notify()
