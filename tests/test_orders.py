"""The orders of an epoch's windows: permutations, evenly spread, the same for ever, and order 2 without memory."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastcompress.codec import ByteCodec
from fastcompress.data import RowLoader, TokenDataset, TokenRows
from fastcompress.data.orders import NEWEST_ORDER, ORDERS, FeistelPermutation, WindowOrder
from fastcompress.errors import ConfigError
from tests.reference import orders as reference

# The first windows of epochs under order 2, by (seed, epoch, W): they must never change.
GOLDEN = {
    (0, 0, 10): (11749869230777074271, [5, 7, 1, 0, 8]),
    (1234, 7, 1000): (9313488751909004583, [375, 362, 230, 326, 561]),
    (2**70, 3, 10**12): (17310129746124775082, [104062706560, 467127673352, 364852568746, 657504044985, 470539294665]),
}


def permutation_of(num_windows: int, seed: int = 0, epoch: int = 0, version: int = NEWEST_ORDER) -> np.ndarray:
    return WindowOrder(version, [seed], num_windows).epoch(epoch)[1](np.arange(num_windows))


@pytest.mark.parametrize("version", ORDERS)
def test_every_small_epoch_is_a_permutation(version: int) -> None:
    for num_windows in range(1, 600):
        windows = permutation_of(num_windows, seed=num_windows % 7, version=version)
        assert windows.dtype == np.int64
        assert sorted(windows.tolist()) == list(range(num_windows))


@given(st.integers(1, 30_000), st.integers(0, 2**80), st.integers(0, 100))
def test_every_epoch_is_a_permutation(num_windows: int, seed: int, epoch: int) -> None:
    assert (np.sort(permutation_of(num_windows, seed, epoch)) == np.arange(num_windows)).all()


@given(st.integers(1, 2**40), st.lists(st.integers(0, 2**64 - 1), min_size=8, max_size=8), st.data())
def test_order_2_is_what_its_definition_says(num_windows: int, keys: list[int], data: st.DataObject) -> None:
    indices = data.draw(st.lists(st.integers(0, num_windows - 1), min_size=1, max_size=5))
    found = FeistelPermutation(np.array(keys, np.uint64), num_windows)(np.array(indices, np.int64))
    assert found.tolist() == [reference.window(index, keys, num_windows) for index in indices]


@given(st.integers(1, 2**62), st.integers(0, 2**40), st.data())
def test_an_index_has_its_window_whatever_it_is_asked_with(num_windows: int, seed: int, data: st.DataObject) -> None:
    indices = data.draw(st.lists(st.integers(0, num_windows - 1), min_size=1, max_size=20, unique=True))
    permutation = WindowOrder(2, [seed], num_windows).epoch(0)[1]
    windows = permutation(np.array(indices, np.int64)).tolist()
    assert windows == [int(permutation(np.array([index]))[0]) for index in indices]
    assert len(set(windows)) == len(indices)
    assert all(0 <= window < num_windows for window in windows)


@pytest.mark.parametrize("num_windows", [2, 3, 5, 7, 12])
def test_every_window_is_equally_likely_at_every_index(num_windows: int) -> None:
    """Chi-square with (W - 1)**2 degrees of freedom: mean (W - 1)**2, standard deviation sqrt(2) (W - 1)."""
    num_seeds = 1500
    counts = np.zeros((num_windows, num_windows))
    for seed in range(num_seeds):
        counts[np.arange(num_windows), permutation_of(num_windows, seed)] += 1
    expected = num_seeds / num_windows
    chi_square = ((counts - expected) ** 2 / expected).sum()
    assert chi_square < (num_windows - 1) ** 2 + 4 * 2**0.5 * (num_windows - 1)


def test_neighbours_are_scattered() -> None:
    """Differences of consecutive windows are those of a random permutation: rarely small, and of no fixed sign."""
    windows = permutation_of(10_000, seed=5)
    steps = np.diff(windows)
    assert abs((steps > 0).mean() - 0.5) < 0.02
    assert abs(np.abs(steps).mean() / 10_000 - 1 / 3) < 0.01
    assert (np.abs(steps) < 10).mean() < 0.005
    fixed_points = (permutation_of(10_000, seed=6) == np.arange(10_000)).sum()
    assert fixed_points < 10
    other = permutation_of(10_000, seed=5, epoch=1)
    assert abs(np.corrcoef(windows, other)[0, 1]) < 0.05


@pytest.mark.parametrize(("seed", "epoch", "num_windows"), GOLDEN)
def test_order_2_never_changes(seed: int, epoch: int, num_windows: int) -> None:
    word, permutation = WindowOrder(2, [seed], num_windows).epoch(epoch)
    assert (word, permutation(np.arange(5)).tolist()) == GOLDEN[seed, epoch, num_windows]


def test_order_2_needs_no_memory() -> None:
    """A trillion windows."""
    tracemalloc.start()
    permutation = WindowOrder(2, [1], 10**12).epoch(0)[1]
    permutation(np.arange(64))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 200_000


def test_a_permutation_needs_few_passes() -> None:
    """Cycle walking: fewer than one index in sqrt(W) needs a second pass, so a batch rarely does."""
    passes: list[int] = []

    class Counting(FeistelPermutation):
        def _once(self, numbers: np.ndarray) -> np.ndarray:
            passes.append(len(numbers))
            return super()._once(numbers)

    Counting(np.random.PCG64(0).random_raw(8), 10_007)(np.arange(10_007))
    assert passes[0] == 10_007
    assert sum(passes[1:]) < 10_007 / 10_007**0.5 * 1.1


def test_an_unknown_order_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"order is 3; it must be one of 1, 2"):
        WindowOrder(3, [0], 10)


@pytest.mark.parametrize("order", ORDERS)
def test_a_run_that_stopped_on_two_ranks_goes_on_with_one(order: int) -> None:
    dataset = TokenDataset.from_documents([bytes(range(256)) * 3], ByteCodec())
    rows = TokenRows(ByteCodec(), 8)

    def loader(rank: int, world_size: int) -> RowLoader:
        return RowLoader(dataset, rows, batch_size=12, seed=5, rank=rank, world_size=world_size, order=order)

    straight = [loader(0, 1).batch(step)["input"] for step in range(20)]
    for world_sizes in ((2, 1), (1, 3), (4, 6), (12, 1)):
        seen = []
        for step in range(20):
            world_size = world_sizes[step >= 7]  # stopped after step 6
            batch = np.empty_like(straight[step])
            for rank in range(world_size):
                batch[rank::world_size] = loader(rank, world_size).batch(step)["input"]
            seen.append(batch)
        assert all((one == two).all() for one, two in zip(seen, straight, strict=True))


@pytest.mark.parametrize("order", ORDERS)
def test_no_rank_is_without_a_batch(order: int) -> None:
    """The smallest dataset, of one window, serves any number of ranks; a batch of too few rows is refused."""
    dataset = TokenDataset.from_documents([b"12345678"], ByteCodec())
    rows = TokenRows(ByteCodec(), 8)
    for rank in range(5):
        loader = RowLoader(dataset, rows, batch_size=5, seed=0, rank=rank, world_size=5, order=order)
        assert all(loader.batch(step)["input"].shape == (1, 8) for step in range(3))
    with pytest.raises(ConfigError, match="batch_size 4 does not divide among 5 ranks"):
        RowLoader(dataset, rows, batch_size=4, seed=0, rank=4, world_size=5, order=order)
