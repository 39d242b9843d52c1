"""Batches of shards for trainers of other people: a PyTorch `IterableDataset`. The one module of this layer with torch.

    stream = TorchDataset("shards", context_length=1024, batch_size=32, seed=0)
    for batch in DataLoader(stream, batch_size=None, num_workers=2, pin_memory=True):
        loss = model(batch["input"], batch["target"])

Its items are whole batches, those of `fastcompress.data.RowLoader`: step n is a pure function of the dataset, the
settings and n. So the batches and their order are the same for every number of workers (worker w of N serves steps w,
w + N, ..., and a DataLoader takes from its workers in turns), and a run resumes from the number of its next step alone,
on another number of ranks, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor
from torch.utils.data import IterableDataset, get_worker_info

from fastcompress.codec import load_codec
from fastcompress.data.loader import RowLoader
from fastcompress.data.mixture import Mixture
from fastcompress.data.orders import NEWEST_ORDER
from fastcompress.data.packing import Packing, pack
from fastcompress.data.rows import TokenRows
from fastcompress.data.shards import TokenDataset
from fastcompress.errors import ConfigError

if TYPE_CHECKING:
    from fastcompress.codec import Codec


class TorchDataset(IterableDataset[dict[str, Tensor]]):
    """Batches of rows, as dictionaries of tensors: input, target and weight, [batch_size / world_size, S] each.

    Rows packed with their documents apart have position and document, too (`fastcompress.data.packing`). Pass it to a
    `DataLoader` with `batch_size=None`, which then collates nothing; `pin_memory` and `prefetch_factor` work as usual.

    Attributes:
        loader: The `RowLoader` behind it; `loader.figures` says what an epoch leaves out or pads, and
            `loader.documents(step)` which documents a batch holds.
        num_steps: The step before which the stream ends; None if it never does.
    """

    def __init__(
        self,
        source: str | Path | TokenDataset | Mixture,
        *,
        context_length: int,
        batch_size: int,
        seed: int = 0,
        split: str = "train",
        packing: Packing = "none",
        order: int = NEWEST_ORDER,
        start_step: int = 0,
        num_steps: int | None = None,
        rank: int | None = None,
        world_size: int | None = None,
    ) -> None:
        """Make the stream.

        Args:
            source: A directory of shards, which is verified as by `TokenDataset.open`, a dataset, or a mixture.
            context_length: Ids per row, S.
            batch_size: Rows per step, of all ranks together.
            seed: The seed of the order.
            split: The split that is read if `source` is a directory.
            packing: How documents share rows: "none", "best_fit" or "split" (`fastcompress.data.packing`).
            order: The version of the order of rows (`fastcompress.data.orders`).
            start_step: The first step, to go on where another stream stopped.
            num_steps: The step before which the stream ends. Default: it has no end.
            rank, world_size: This process and the number of processes. Default: as in `torch.distributed`, if that is
                initialized, else 0 of 1.

        Raises:
            ConfigError: A setting is out of range, or batches do not divide among the ranks.
            DataError: There is no such split, or a dataset is smaller than a row.
            FormatError, MismatchError: As `TokenDataset.open`.
        """
        super().__init__()
        _check_step("start_step", start_step)
        if num_steps is not None:
            _check_step("num_steps", num_steps)
        if (rank is None) != (world_size is None):
            raise ConfigError(f"rank is {rank} and world_size is {world_size}; they must be given together")
        if isinstance(source, (str, Path)):
            source = TokenDataset.open(Path(source), split, codec=load_codec(Path(source) / "codec.json"))
        # Of a codec, training rows need the size of the vocabulary only, which a dataset knows, too.
        dataset, rows = pack(source, TokenRows(cast("Codec", source), context_length), packing)
        own_rank, own_size = _group() if rank is None or world_size is None else (rank, world_size)
        self.loader = RowLoader(
            dataset, rows, batch_size=batch_size, seed=seed, rank=own_rank, world_size=own_size, order=order
        )
        self.num_steps = num_steps
        self._start = self._next_step = start_step
        self._has_workers = torch.zeros((), dtype=torch.bool).share_memory_()  # type: ignore[no-untyped-call]

    def __repr__(self) -> str:
        return f"<TorchDataset from step {self._next_step}: {self.loader!r}>"

    def __iter__(self) -> Iterator[dict[str, Tensor]]:
        """Yield the batches from the first step on; in a worker of a DataLoader, that worker's part of them."""
        worker = get_worker_info()
        number, count = (0, 1) if worker is None else (worker.id, worker.num_workers)
        if worker is not None:
            self._has_workers.fill_(True)  # in the memory of the process that made the worker, too
        self._next_step = self._start
        while self.num_steps is None or self._next_step + number < self.num_steps:
            columns = self.loader.batch(self._next_step + number)
            self._next_step += count  # before it is handed out: a trainer that has a batch goes on after it
            yield {name: torch.from_numpy(column) for name, column in columns.items()}

    def state_dict(self, step: int | None = None) -> dict[str, Any]:
        """Return what `load_state_dict` needs to go on.

        Args:
            step: The next step. Default: the one after the last batch that this process took from the stream.

        Raises:
            ConfigError: Workers of a DataLoader read the stream ahead, so only the caller knows the next step.
        """
        if step is None:
            if get_worker_info() is None and self._has_workers:
                raise ConfigError("step is None; it must be the next step, since workers of a DataLoader read ahead")
            step = self._next_step
        _check_step("step", step)
        return {"step": step}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a state, on any rank of any number of ranks. Raises ConfigError if it is not one."""
        step = state.get("step")
        if not isinstance(step, int):
            raise ConfigError(f"state is {state!r}; it must be what state_dict returned")
        _check_step("step", step)
        self._start = self._next_step = step


def _group() -> tuple[int, int]:
    """Return this process's rank and the number of processes."""
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return torch.distributed.get_rank(), torch.distributed.get_world_size()
    return 0, 1


def _check_step(name: str, step: int) -> None:
    if step < 0:
        raise ConfigError(f"{name} is {step}; it must not be negative")
