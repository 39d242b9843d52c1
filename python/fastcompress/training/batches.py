"""The input of a run: batches on the device, one of them read ahead, and the validation sample."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType

import torch
from torch import Tensor

from fastcompress.data.corpora import Document, take_bytes
from fastcompress.data.loader import RowLoader
from fastcompress.models.protocol import Batch


class BatchFeed:
    """The batches of ``loader`` as tensors on ``device``, one of them read ahead in a thread.

    (A step on a GPU takes less time than reading a batch.) Only that thread uses the loader. Steps may be asked for in
    any order, and the batches are those of ``loader.batch(step)``.
    """

    def __init__(self, loader: RowLoader, device: torch.device) -> None:
        self.loader, self.device = loader, device
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="batches")
        self._ahead: tuple[int, Future[dict[str, Tensor]]] | None = None

    def __enter__(self) -> BatchFeed:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._thread.shutdown(wait=True, cancel_futures=True)

    def batch(self, step: int) -> Batch:
        """Return the batch of ``step``. Errors of the loader are raised by this call."""
        if self._ahead is None or self._ahead[0] != step:
            self._ahead = (step, self._thread.submit(self._read, step))
        batch = self._ahead[1].result()  # columns, [B, S] each
        self._ahead = (step + 1, self._thread.submit(self._read, step + 1))
        return {name: column.to(self.device, non_blocking=True) for name, column in batch.items()}

    def _read(self, step: int) -> dict[str, Tensor]:
        batch = {name: torch.from_numpy(column) for name, column in self.loader.batch(step).items()}
        if self.device.type == "cuda":  # only from pinned memory is a copy to the card asynchronous
            return {name: column.pin_memory() for name, column in batch.items()}
        return batch


def first_documents(documents: Sequence[bytes], max_bytes: int | None) -> list[bytes]:
    """Return the first documents, at most ``max_bytes`` in total; the last one may be cut, as by ``take_bytes``."""
    return [document.data for document in take_bytes((Document("", data) for data in documents), max_bytes)]
