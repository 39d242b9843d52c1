"""Batches for training: a pure function of (dataset, seed, step), whoever asks and however often.

The stream of tokens is a circle (the last document's end is followed by the first document). An epoch is W =
num_tokens // context_length windows laid end to end from a random phase, visited in random order; phase and
order come from (seed, epoch) alone. Sample g = step * batch_size + row is window g % W of epoch g // W, so
resuming needs the step and nothing else, and rank r of R takes rows r, r + R, r + 2R, ...: R ranks together
see exactly the batch that one would.

Each epoch leaves out num_tokens % context_length tokens, elsewhere each time, as the phase moves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fastcompress.errors import ConfigError, DataError

if TYPE_CHECKING:
    import numpy.typing as npt

    from fastcompress.data.shards import TokenDataset


class TokenLoader:
    """Serves windows of `context_length` tokens and their successors.

    Attributes:
        num_windows: Windows per epoch, W.
        context_length, batch_size, seed, rank, world_size: as given; batch_size counts all ranks' rows.
    """

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
        """Raises DataError if the dataset is smaller than one window, ConfigError if a setting is out of range."""
        for name, value in (
            ("context_length", context_length),
            ("batch_size", batch_size),
            ("world_size", world_size),
        ):
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
        if dataset.num_tokens <= context_length:
            raise DataError(
                f"the corpus holds {dataset.num_tokens} tokens, too few for a context of {context_length} "
                f"and its target; use a context of at most {dataset.num_tokens - 1}, or more text"
            )
        self.dataset = dataset
        self.context_length = context_length
        self.batch_size = batch_size
        self.seed = seed
        self.rank = rank
        self.world_size = world_size
        self.num_windows = dataset.num_tokens // context_length
        self._plans: dict[int, tuple[int, npt.NDArray[np.int64]]] = {}

    def __repr__(self) -> str:
        ranks = f", rank={self.rank}, world_size={self.world_size}" if self.world_size > 1 else ""
        return (
            f"<TokenLoader context_length={self.context_length}, batch_size={self.batch_size}, seed={self.seed}{ranks}"
            f": {self.num_windows:,} windows per epoch of {self.dataset!r}>"
        )

    def batch(self, step: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return the inputs and targets of this rank at `step`, both int64[batch_size / world_size, context_length].

        targets[i, t] is the token after inputs[i, t]; inputs[i, t + 1] equals targets[i, t].
        Cost: reading the rows; at an epoch's first batch also its permutation, O(W log W).
        """
        if step < 0:
            raise ConfigError(f"step is {step}, must not be negative")
        rows = range(self.rank, self.batch_size, self.world_size)
        windows = np.empty((len(rows), self.context_length + 1), np.int64)
        for i, row in enumerate(rows):
            self._read_window(step * self.batch_size + row, out=windows[i])
        # Copies, so that changing one in place never changes the other.
        return windows[:, :-1].copy(), windows[:, 1:].copy()

    def epoch(self, step: int) -> float:
        """Epochs completed before `step`, such as 1.5 in the middle of the second."""
        return step * self.batch_size / self.num_windows

    def _read_window(self, sample: int, out: npt.NDArray[np.int64]) -> None:
        """Fill out[context_length + 1] with the window of sample `sample`; it may wrap around the end."""
        epoch, index = divmod(sample, self.num_windows)
        phase, order = self._plan(epoch)
        num_tokens = self.dataset.num_tokens
        begin = (phase + int(order[index]) * self.context_length) % num_tokens
        before_end = min(len(out), num_tokens - begin)
        out[:before_end] = self.dataset.read(begin, begin + before_end)
        out[before_end:] = self.dataset.read(0, len(out) - before_end)

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
