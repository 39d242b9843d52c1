"""Batches for training: a pure function of (dataset, rows, seed, step), whoever asks and however often.

The stream of tokens is a circle (the last document's end is followed by the first document). An epoch is W =
num_tokens // tokens_per_row windows laid end to end from a random phase, visited in random order; phase and
order come from (seed, epoch) alone. Sample g = step * batch_size + row is window g % W of epoch g // W, so
resuming needs the step and nothing else, and rank r of R takes rows r, r + R, r + 2R, ...: R ranks together
see exactly the batch that one would. What a row holds from its window on is the affair of `fastcompress.data.rows`.

Each epoch leaves out num_tokens % tokens_per_row tokens, elsewhere each time, as the phase moves.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, cast

import numpy as np

from fastcompress.data.rows import TokenRows
from fastcompress.errors import ConfigError, DataError

if TYPE_CHECKING:
    import numpy.typing as npt

    from fastcompress.codec import Codec
    from fastcompress.data.rows import Row, Rows
    from fastcompress.data.shards import TokenDataset


class RowLoader:
    """Serves batches of rows.

    Attributes:
        num_windows: Rows per epoch, W.
        dataset, rows, batch_size, seed, rank, world_size: As given; batch_size counts all ranks' rows.
    """

    def __init__(
        self, dataset: TokenDataset, rows: Rows, *, batch_size: int, seed: int, rank: int = 0, world_size: int = 1
    ) -> None:
        """Raises DataError if the dataset is smaller than one row, ConfigError if a setting is out of range."""
        for name, value in (("batch_size", batch_size), ("world_size", world_size)):
            if value < 1:
                raise ConfigError(f"{name} is {value}; it must be at least 1")
        if seed < 0:
            raise ConfigError(f"seed is {seed}; it must not be negative")
        if not 0 <= rank < world_size:
            raise ConfigError(f"rank is {rank}; it must be in [0, {world_size}) for world_size {world_size}")
        if batch_size % world_size:
            raise ConfigError(
                f"batch_size {batch_size} does not divide among {world_size} ranks; use a multiple of {world_size}"
            )
        if dataset.num_tokens <= rows.tokens_per_row:
            raise DataError(
                f"the corpus holds {dataset.num_tokens} tokens, too few for a context of {rows.tokens_per_row} "
                f"and its target; use a context of at most {dataset.num_tokens - 1}, or more text"
            )
        self.dataset, self.rows = dataset, rows
        self.batch_size, self.seed = batch_size, seed
        self.rank, self.world_size = rank, world_size
        self.num_windows = dataset.num_tokens // rows.tokens_per_row
        self._plans: dict[int, tuple[int, npt.NDArray[np.int64]]] = {}

    def __repr__(self) -> str:
        ranks = f", rank={self.rank}, world_size={self.world_size}" if self.world_size > 1 else ""
        return (
            f"<{type(self).__name__} context_length={self.rows.context_length}, batch_size={self.batch_size}, "
            f"seed={self.seed}{ranks}: {self.num_windows:,} windows per epoch of {self.dataset!r}>"
        )

    def batch(self, step: int) -> Row:
        """Return this rank's rows at `step`, columns of batch_size / world_size rows each.

        Cost: reading the rows; at an epoch's first batch also its permutation, O(W log W).
        """
        if step < 0:
            raise ConfigError(f"step is {step}, must not be negative")
        samples = (step * self.batch_size + row for row in range(self.rank, self.batch_size, self.world_size))
        return self.rows.stack([self.rows.training_row(self.dataset, self._begin(sample)) for sample in samples])

    def documents(self, step: int) -> list[int]:
        """Return the numbers of the documents that the rows of all ranks at `step` are from, in order.

        Cost: O(documents) of the dataset.
        """
        ends = np.array([end for _, end in self.dataset.document_ranges()])  # of each document, where its end id is
        found: set[int] = set()
        for sample in range(step * self.batch_size, (step + 1) * self.batch_size):
            begin = self._begin(sample)
            first, last = np.searchsorted(ends, (begin, begin + self.rows.tokens_per_row - 1))
            found.update(range(first, min(last, len(ends) - 1) + 1))
            beyond = begin + self.rows.tokens_per_row - self.dataset.num_tokens  # the stream is a circle
            if beyond > 0:
                found.update(range(int(np.searchsorted(ends, beyond - 1)) + 1))
        return sorted(found)

    def epoch(self, step: int) -> float:
        """Epochs completed before `step`, such as 1.5 in the middle of the second."""
        return step * self.batch_size / self.num_windows

    def _begin(self, sample: int) -> int:
        """The token at which the row of sample `sample` begins."""
        epoch, index = divmod(sample, self.num_windows)
        phase, order = self._plan(epoch)
        return (phase + int(order[index]) * self.rows.tokens_per_row) % self.dataset.num_tokens

    def _plan(self, epoch: int) -> tuple[int, npt.NDArray[np.int64]]:
        """Phase in [0, num_tokens) and order, a permutation int64[W], of `epoch`.

        Drawn as raw 64-bit words and sorted: unlike NumPy's `permutation`, the same in every release.
        """
        if epoch not in self._plans:
            words = np.random.PCG64(np.random.SeedSequence([self.seed, epoch])).random_raw(self.num_windows + 1)
            order = np.argsort(words[1:], kind="stable")
            # A batch spans two epochs at most times; older plans are never asked for again in training.
            self._plans = {e: plan for e, plan in self._plans.items() if e == epoch - 1}
            self._plans[epoch] = int(words[0]) % self.dataset.num_tokens, order
        return self._plans[epoch]


class TokenLoader(RowLoader):
    """Deprecated: use `RowLoader` with `TokenRows`. Its batches are (inputs, targets)."""

    def __init__(
        self,
        dataset: TokenDataset,
        *,
        context_length: int,
        batch_size: int,
        seed: int,
        rank: int = 0,
        world_size: int = 1,
    ) -> None:
        warnings.warn("TokenLoader is deprecated; use RowLoader with TokenRows", DeprecationWarning, stacklevel=2)
        # Of its codec, training rows need the size of the vocabulary only, which a dataset knows too.
        rows = TokenRows(cast("Codec", dataset), context_length)
        super().__init__(dataset, rows, batch_size=batch_size, seed=seed, rank=rank, world_size=world_size)

    def batch(self, step: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:  # type: ignore[override]
        """Return the inputs and targets of this rank at `step`, int64[batch_size / world_size, context_length] each."""
        columns = super().batch(step)
        return columns["input"], columns["target"]
