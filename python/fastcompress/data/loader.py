"""Batches for training: a pure function of (dataset, rows, seed, step), whoever asks and however often.

The stream of tokens is a circle (the last document's end is followed by the first document). An epoch is W =
num_tokens // tokens_per_row windows laid end to end from a random phase, visited in random order; phase and
order come from (seed, epoch) alone (`fastcompress.data.orders` defines the orders). Sample g = step * batch_size + row
is window g % W of epoch g // W, so resuming needs the step and nothing else, and rank r of R takes rows r, r + R, r +
2R, ...: R ranks together see exactly the batch that one would, and a run may go on with another R. No rank is ever
without a batch: epochs follow one another without end, and a batch that does not divide among the ranks is refused.
What a row holds from its window on is the affair of `fastcompress.data.rows`; the ways to pack documents into rows are
those of `fastcompress.data.packing`.

In a mixture of datasets, `fastcompress.data.mixture` says which dataset sample g is from and that it is the n-th sample
from there; it is then window n % W of epoch n // W of that dataset, whose epochs have nothing to do with the others'.

Each epoch leaves out num_tokens % tokens_per_row tokens, elsewhere each time, as the phase moves.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, cast

import numpy as np

from fastcompress.data.mixture import Assignment, Mixture
from fastcompress.data.orders import WindowOrder
from fastcompress.data.packing import PackedDocuments
from fastcompress.data.rows import TokenRows
from fastcompress.errors import ConfigError, DataError

if TYPE_CHECKING:
    import numpy.typing as npt

    from fastcompress.codec import Codec
    from fastcompress.data.rows import Row, Rows
    from fastcompress.data.shards import TokenDataset


@dataclass(frozen=True)
class EpochFigures:
    """What an epoch of a dataset holds and leaves out.

    Attributes:
        num_rows: Rows per epoch, W.
        num_dropped: Tokens of the dataset that an epoch leaves out.
        num_padding: Places in the rows of an epoch that hold padding.
        num_cut: Documents that are cut although they are packed whole, because they exceed a row; None where windows
            cut documents wherever they end.
    """

    num_rows: int
    num_dropped: int = 0
    num_padding: int = 0
    num_cut: int | None = None

    def __str__(self) -> str:
        parts = [(self.num_rows, "row", "per epoch"), (self.num_dropped, "token", "left out")]
        if self.num_cut is not None:
            parts += [(self.num_padding, "place", "padded"), (self.num_cut, "document", "cut")]
        return ", ".join(f"{number:,} {noun}{'s' * (number != 1)} {end}" for number, noun, end in parts)


class RowLoader:
    """Serves batches of rows.

    Safe to pickle; copies in other processes serve the same batches. For one thread at a time.

    Attributes:
        num_windows: Rows per epoch, W; of a mixture, those of all datasets.
        figures: What an epoch of each dataset holds and leaves out.
        dataset, rows, batch_size, seed, rank, world_size, order: As given; batch_size counts all ranks' rows.
    """

    def __init__(
        self,
        dataset: TokenDataset | PackedDocuments | Mixture,
        rows: Rows,
        *,
        batch_size: int,
        seed: int,
        rank: int = 0,
        world_size: int = 1,
        order: int = 1,
    ) -> None:
        """Make a loader.

        Args:
            dataset: The tokens, or a mixture of datasets.
            rows: How tokens become rows.
            batch_size: Rows per step, of all ranks.
            seed: The seed of the order, not negative.
            rank: Which part of each batch to serve, from 0.
            world_size: The number of parts.
            order: The version of the order: 2 needs no memory; 1, of older releases, needs 16 bytes per window. The
                default remains 1, so that programs that begin with it go on with it.

        Raises:
            DataError: A dataset is smaller than one row.
            ConfigError: A setting is out of range, or batches do not divide among the ranks.
        """
        _check(batch_size, seed, rank, world_size)
        self.dataset, self.rows = dataset, rows
        self.batch_size, self.seed, self.order = batch_size, seed, order
        self.rank, self.world_size = rank, world_size
        datasets = dataset.datasets if isinstance(dataset, Mixture) else [dataset]
        self._assignment = Assignment(dataset.counts if isinstance(dataset, Mixture) else [1], seed)
        self._walks = [
            _Walk(part, rows.tokens_per_row, order, [seed, number] if number else [seed])
            for number, part in enumerate(datasets)
        ]
        self.num_windows = sum(walk.num_windows for walk in self._walks)
        self.figures = tuple(walk.figures for walk in self._walks)

    def __repr__(self) -> str:
        ranks = f", rank={self.rank}, world_size={self.world_size}" if self.world_size > 1 else ""
        return (
            f"<{type(self).__name__} context_length={self.rows.context_length}, batch_size={self.batch_size}, "
            f"seed={self.seed}{ranks}: {self.num_windows:,} windows per epoch of {self.dataset!r}>"
        )

    @property
    def datasets(self) -> list[TokenDataset | PackedDocuments]:
        """The datasets of the mixture, or the one dataset."""
        return [walk.dataset for walk in self._walks]

    @property
    def text_per_epoch(self) -> tuple[float, float]:
        """Events that count and the bytes that they pay for, in their proportion.

        Those of the dataset; of a mixture, 1 and the mean of the datasets' bytes per event, weighted by their shares.
        """
        of_each = [(self.rows.num_events(_tokens(part)), part.num_bytes) for part in self.datasets]
        if not isinstance(self.dataset, Mixture):
            return of_each[0]
        shares = zip(self.dataset.shares, of_each, strict=True)
        return 1.0, sum(share * num_bytes / num_events for share, (num_events, num_bytes) in shares)

    def batch(self, step: int) -> Row:
        """Return this rank's rows at `step`, columns of batch_size / world_size rows each.

        Cost: reading the rows; under order 1, at an epoch's first batch also its permutation, O(W log W).
        """
        if step < 0:
            raise ConfigError(f"step is {step}, must not be negative")
        first = step * self.batch_size
        places = self._places(range(first + self.rank, first + self.batch_size, self.world_size))
        return self.rows.stack(
            [self.rows.training_row(_tokens(self._walks[number].dataset), begin) for number, begin in places]
        )

    def documents(self, step: int) -> list[int]:
        """Return the numbers of the documents that the rows of all ranks at `step` are from, in order.

        The documents of a mixture are numbered through, from dataset to dataset. Cost: O(documents) of the datasets.
        """
        shifts = [0, *accumulate(part.num_documents for part in self.datasets)]
        ranges: dict[int, list[tuple[int, int]]] = {}
        for number, begin in self._places(range(step * self.batch_size, (step + 1) * self.batch_size)):
            ranges.setdefault(number, []).extend(self._walks[number].token_ranges(begin))
        found: set[int] = set()
        for number, parts in ranges.items():
            ends = np.array([end for _, end in self._walks[number].dataset.document_ranges()])  # where end ids are
            for begin, stop in parts:
                first, last = np.searchsorted(ends, (begin, stop - 1)).tolist()
                found.update(range(shifts[number] + first, shifts[number] + min(last, len(ends) - 1) + 1))
        return sorted(found)

    def epoch(self, step: int) -> float:
        """Epochs completed before `step`, such as 1.5 in the middle of the second; in a mixture, the most of any."""
        return max(self.epochs(step))

    def epochs(self, step: int) -> list[float]:
        """Epochs of each dataset completed before `step`; in a mixture, to within a few rows."""
        shares = self.dataset.shares if isinstance(self.dataset, Mixture) else [1]
        samples = step * self.batch_size
        return [share * samples / walk.num_windows for share, walk in zip(shares, self._walks, strict=True)]

    def _places(self, samples: Sequence[int]) -> list[tuple[int, int]]:
        """Return the dataset of each sample, by number, and the token at which its row begins."""
        places = [self._assignment.place(sample) for sample in samples]
        begins = [
            iter(walk.begins([visit for number, visit in places if number == own]))
            for own, walk in enumerate(self._walks)
        ]
        return [(number, next(begins[number])) for number, _ in places]


class _Walk:
    """The rows of one dataset in the order in which they are visited."""

    def __init__(
        self, dataset: TokenDataset | PackedDocuments, tokens_per_row: int, order: int, seeds: Sequence[int]
    ) -> None:
        if dataset.num_tokens <= tokens_per_row:
            raise DataError(
                f"the corpus holds {dataset.num_tokens} tokens, too few for a context of {tokens_per_row} "
                f"and its target; use a context of at most {dataset.num_tokens - 1}, or more text"
            )
        self.dataset, self.tokens_per_row = dataset, tokens_per_row
        self.num_windows = dataset.num_tokens // tokens_per_row
        self._order = WindowOrder(order, seeds, self.num_windows)

    @property
    def figures(self) -> EpochFigures:
        if isinstance(self.dataset, PackedDocuments):
            return EpochFigures(self.num_windows, 0, self.dataset.num_padding, self.dataset.num_cut)
        return EpochFigures(self.num_windows, self.dataset.num_tokens % self.tokens_per_row)

    def begins(self, visits: Sequence[int]) -> list[int]:
        """Return the tokens at which the rows of some visits begin; visit v is index v % W of epoch v // W."""
        indices: dict[int, list[int]] = {}
        for visit in visits:
            epoch, index = divmod(visit, self.num_windows)
            indices.setdefault(epoch, []).append(index)
        begins = {}
        for epoch, of_epoch in indices.items():
            word, permutation = self._order.epoch(epoch)
            phase = word % self.dataset.num_tokens
            windows = permutation(np.array(of_epoch, np.int64)).tolist()
            begins[epoch] = iter([(phase + window * self.tokens_per_row) % self.dataset.num_tokens
                                  for window in windows])  # fmt: skip
        return [next(begins[visit // self.num_windows]) for visit in visits]

    def token_ranges(self, begin: int) -> list[tuple[int, int]]:
        """Return the ranges of tokens of the row that begins at a token; the stream is a circle."""
        if isinstance(self.dataset, PackedDocuments):
            return self.dataset.row_ranges(begin)
        num_tokens, end = self.dataset.num_tokens, begin + self.tokens_per_row
        return [(begin, end)] if end <= num_tokens else [(begin, num_tokens), (0, end - num_tokens)]


def _check(batch_size: int, seed: int, rank: int, world_size: int) -> None:
    """Raise ConfigError if a setting is out of range."""
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


def _tokens(dataset: TokenDataset | PackedDocuments) -> TokenDataset:
    """Pass a dataset to rows, which read packed documents as if their rows were tokens."""
    return cast("TokenDataset", dataset)


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
