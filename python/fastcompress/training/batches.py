"""What a run reads: batches on their way to the device, one read ahead, and its validation sample."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType

import torch
from torch import Tensor

from fastcompress.data.corpora import Document, take_bytes
from fastcompress.data.loader import TokenLoader

Batch = tuple[Tensor, Tensor]  # inputs, targets: int64[B, T]


class BatchFeed:
    """``loader``'s batches as tensors on ``device``, one read ahead in a thread (a GPU step is shorter than a read).

    The loader is only ever used by that thread. Batches are those of ``loader.batch(step)`` for any order of
    steps.
    """

    def __init__(self, loader: TokenLoader, device: torch.device) -> None:
        self.loader, self.device = loader, device
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="batches")
        self._ahead: tuple[int, Future[Batch]] | None = None

    def __enter__(self) -> BatchFeed:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._thread.shutdown(wait=True, cancel_futures=True)

    def batch(self, step: int) -> Batch:
        """Return the batch of ``step``. Errors of the loader are raised here."""
        if self._ahead is None or self._ahead[0] != step:
            self._ahead = (step, self._thread.submit(self._read, step))
        inputs, targets = self._ahead[1].result()  # int64[B, T] each
        self._ahead = (step + 1, self._thread.submit(self._read, step + 1))
        return inputs.to(self.device, non_blocking=True), targets.to(self.device, non_blocking=True)

    def _read(self, step: int) -> Batch:
        inputs, targets = (torch.from_numpy(array) for array in self.loader.batch(step))  # int64[B, T] each
        if self.device.type == "cuda":  # only from pinned memory is a copy to the card asynchronous
            return inputs.pin_memory(), targets.pin_memory()
        return inputs, targets


def first_documents(documents: Sequence[bytes], max_bytes: int | None) -> list[bytes]:
    """Return the first documents, up to ``max_bytes`` in all; the last one may be cut, as ``take_bytes`` does."""
    return [document.data for document in take_bytes((Document("", data) for data in documents), max_bytes)]
