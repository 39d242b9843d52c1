"""Batches: shifted targets, every window once an epoch, one global batch for every number of ranks."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastcompress.codec import ByteCodec
from fastcompress.data.loader import RowLoader
from fastcompress.data.rows import TokenRows
from fastcompress.data.shards import TokenDataset
from fastcompress.errors import ConfigError, DataError


class TokenLoader(RowLoader):
    """Rows of bytes, as (inputs, targets)."""

    def __init__(self, dataset: TokenDataset, *, context_length: int, **settings: int) -> None:
        super().__init__(dataset, TokenRows(ByteCodec(), context_length), **settings)

    def batch(self, step: int) -> tuple[np.ndarray, np.ndarray]:
        columns = super().batch(step)
        assert set(columns) == set(self.rows.columns) == {"input", "target", "weight"}
        for name, (dtype, shape) in self.rows.columns.items():
            assert columns[name].dtype == dtype
            assert columns[name].shape[1:] == shape
        assert (columns["weight"] == 1.0).all()
        return columns["input"], columns["target"]


def dataset_of(num_tokens: int) -> TokenDataset:
    """A stream of `num_tokens` ids whose every window of 4 ids is different: byte pairs count up."""
    data = b"".join(bytes([i // 251, i % 251]) for i in range(num_tokens // 2 + 1))[: num_tokens - 1]
    return TokenDataset.from_documents([data], ByteCodec())


shapes = st.tuples(st.integers(1, 40), st.integers(0, 300)).map(lambda p: (p[0], p[0] + 1 + p[1]))


@given(shapes, st.integers(0, 2**70), st.integers(0, 50), st.integers(1, 6))
def test_targets_are_the_inputs_shifted_along_the_circular_stream(shape, seed, step, batch_size):
    context_length, num_tokens = shape
    dataset = dataset_of(num_tokens)
    loader = TokenLoader(dataset, context_length=context_length, batch_size=batch_size, seed=seed)
    inputs, targets = loader.batch(step)
    assert inputs.dtype == targets.dtype == np.int64
    assert inputs.shape == targets.shape == (batch_size, context_length)
    assert (inputs[:, 1:] == targets[:, :-1]).all()
    stream = dataset.read(0, num_tokens)
    circle = np.concatenate([stream, stream])
    windows = {tuple(circle[i : i + context_length + 1]) for i in range(num_tokens)}
    for row in range(batch_size):
        assert (*inputs[row], targets[row, -1]) in windows


@given(shapes, st.integers(0, 2**64), st.integers(0, 30), st.sampled_from([2, 4]), st.integers(1, 3))
def test_ranks_interleave_to_the_batch_of_one(shape, seed, step, world_size, rows):
    context_length, num_tokens = shape
    dataset = dataset_of(num_tokens)
    settings = {"context_length": context_length, "batch_size": rows * world_size, "seed": seed}
    whole = TokenLoader(dataset, **settings).batch(step)
    for rank in range(world_size):
        part = TokenLoader(dataset, **settings, rank=rank, world_size=world_size).batch(step)
        for mine, all_rows in zip(part, whole, strict=True):
            assert (mine == all_rows[rank::world_size]).all()


@given(shapes, st.integers(0, 2**32), st.integers(0, 3))
def test_an_epoch_covers_each_window_once(shape, seed, epoch):
    context_length, num_tokens = shape
    data = np.random.default_rng(0).integers(0, 256, num_tokens - 1, dtype=np.uint8).tobytes()
    dataset = TokenDataset.from_documents([data], ByteCodec())
    loader = TokenLoader(dataset, context_length=context_length, batch_size=1, seed=seed)
    first = epoch * loader.num_windows
    rows = [loader.batch(first + i)[0][0] for i in range(loader.num_windows)]
    assert loader.epoch(first) == epoch
    stream = dataset.read(0, num_tokens)
    circle = np.concatenate([stream, stream])
    # Some rotation of the circle, cut into windows, is exactly what the epoch served.
    served = sorted(tuple(row) for row in rows)
    used = loader.num_windows * context_length
    rotations = (circle[phase : phase + used].reshape(-1, context_length) for phase in range(num_tokens))
    assert any(served == sorted(map(tuple, windows)) for windows in rotations)


def test_resuming_and_asking_in_any_order_give_the_same_batches():
    dataset = dataset_of(500)
    settings = {"context_length": 8, "batch_size": 12, "seed": 3}
    loader = TokenLoader(dataset, **settings)
    straight = [loader.batch(step) for step in range(20)]  # 20 * 12 samples: three epochs and a bit
    for step in (19, 0, 7, 6, 13):
        fresh = TokenLoader(dataset, **settings).batch(step)
        again = loader.batch(step)
        for one, two, three in zip(straight[step], fresh, again, strict=True):
            assert (one == two).all()
            assert (one == three).all()


def test_seeds_and_epochs_differ():
    dataset = dataset_of(2000)
    loaders = [TokenLoader(dataset, context_length=10, batch_size=200, seed=seed) for seed in (0, 1)]
    batches = [loaders[0].batch(0)[0], loaders[0].batch(1)[0], loaders[1].batch(0)[0]]
    assert loaders[0].num_windows == 200  # so a step is an epoch
    for i, one in enumerate(batches):
        for two in batches[:i]:
            assert (one != two).any()


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, "5448a72ab8dfa41570ed42f784ffdefd70d0eb9d846308fe321d600c0ea38bfe"),  # order 1
        ({"order": 1}, "5448a72ab8dfa41570ed42f784ffdefd70d0eb9d846308fe321d600c0ea38bfe"),
        ({"order": 2}, "4f18c1621d995af3ed027ee916e6e8760bb39c1c982b7274b00f1a40988dada2"),
    ],
)
def test_batches_are_the_same_in_every_release(settings, expected):
    loader = TokenLoader(dataset_of(1000), context_length=16, batch_size=32, seed=1234, **settings)
    digest = hashlib.sha256(b"".join(loader.batch(step)[0].astype("<i8").tobytes() for step in range(4)))
    assert digest.hexdigest() == expected


def test_changing_the_inputs_leaves_the_targets():
    inputs, targets = TokenLoader(dataset_of(100), context_length=8, batch_size=2, seed=0).batch(0)
    before = targets.copy()
    inputs[:] = -1
    assert (targets == before).all()


def test_a_corpus_smaller_than_the_context_says_so():
    assert dataset_of(65).num_tokens == 65
    TokenLoader(dataset_of(65), context_length=64, batch_size=1, seed=0).batch(0)
    with pytest.raises(DataError, match=r"65 tokens.* context of 65 .*at most 64"):
        TokenLoader(dataset_of(65), context_length=65, batch_size=1, seed=0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"batch_size": 6, "world_size": 4}, "batch_size 6 does not divide among 4 ranks"),
        ({"batch_size": 0}, "batch_size is 0"),
        ({"context_length": 0}, "context_length is 0"),
        ({"world_size": 0}, "world_size is 0"),
        ({"rank": 1}, r"rank is 1; it must be in \[0, 1\)"),
        ({"rank": -1}, "rank is -1"),
        ({"seed": -1}, "seed is -1"),
    ],
)
def test_settings_out_of_range_are_named(change, message):
    settings = {"context_length": 8, "batch_size": 4, "seed": 0, **change}
    with pytest.raises(ConfigError, match=message):
        TokenLoader(dataset_of(100), **settings)


def test_a_negative_step_is_refused():
    with pytest.raises(ConfigError, match="step is -1"):
        TokenLoader(dataset_of(100), context_length=8, batch_size=4, seed=0).batch(-1)
