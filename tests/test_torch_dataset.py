"""The dataset for trainers of other people: the loader's batches, for any number of workers and ranks."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

from fastcompress.codec import ByteCodec
from fastcompress.data import Mixture, RowLoader, TokenDataset, TokenRows, TorchDataset, write_splits
from fastcompress.data.packing import PACKINGS, Packing, pack
from fastcompress.errors import ConfigError, DataError

CODEC = ByteCodec()
TEXTS = [f"{number} times {number} is {number * number}. ".encode() * (number % 3 + 1) for number in range(60)]
SETTINGS: dict[str, Any] = {"context_length": 16, "batch_size": 6, "seed": 3}
Batches = list[dict[str, torch.Tensor]]


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data") / "shards"
    write_splits(folder, {"train": TEXTS, "validation": TEXTS[:5]}, CODEC)
    return folder


def expected(steps: range, packing: Packing = "none", **settings: int) -> Batches:
    dataset, rows = pack(TokenDataset.from_documents(TEXTS, CODEC), TokenRows(CODEC, 16), packing)
    loader = RowLoader(dataset, rows, **{"batch_size": 6, "seed": 3, "order": 2, **settings})
    return [{name: torch.from_numpy(column) for name, column in loader.batch(step).items()} for step in steps]


def assert_equal(found: Batches, wanted: Batches) -> None:
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted, strict=True):
        assert set(one) == set(other)
        for name, column in one.items():
            assert column.dtype == other[name].dtype
            assert torch.equal(column, other[name])


@pytest.mark.parametrize("num_workers", [0, 1, 2])
@pytest.mark.parametrize("packing", PACKINGS)
def test_workers_serve_the_loaders_batches_in_order(shards: Path, packing: Packing, num_workers: int) -> None:
    stream = TorchDataset(shards, packing=packing, start_step=5, num_steps=12, **SETTINGS)
    loader = DataLoader(stream, batch_size=None, num_workers=num_workers)
    assert_equal(list(loader), expected(range(5, 12), packing))
    assert_equal(list(loader), expected(range(5, 12), packing))  # again from its beginning


def test_processes_that_are_spawned_serve_the_same(shards: Path) -> None:
    stream = TorchDataset(shards, num_steps=3, **SETTINGS)
    loader = DataLoader(stream, batch_size=None, num_workers=1, multiprocessing_context="spawn")
    assert_equal(list(loader), expected(range(3)))
    with pytest.raises(ConfigError, match="step is None"):
        stream.state_dict()
    assert_equal(list(pickle.loads(pickle.dumps(stream))), expected(range(3)))


def test_a_stream_has_no_end_unless_it_is_given_one(shards: Path) -> None:
    stream = TorchDataset(shards, **SETTINGS)
    (figures,) = stream.loader.figures
    batches = iter(DataLoader(stream, batch_size=None))
    steps = 3 * figures.num_rows // 6
    found = [next(batches) for _ in range(steps)]
    assert_equal(found[-2:], expected(range(steps - 2, steps)))
    assert list(TorchDataset(shards, start_step=4, num_steps=4, **SETTINGS)) == []
    few = DataLoader(TorchDataset(shards, num_steps=1, **SETTINGS), batch_size=None, num_workers=2)
    assert_equal(list(few), expected(range(1)))


def test_a_state_goes_on_where_the_trainer_stopped(shards: Path) -> None:
    stream = TorchDataset(shards, **SETTINGS)
    assert stream.state_dict() == {"step": 0}
    batches = iter(DataLoader(stream, batch_size=None))
    seen = [next(batches) for _ in range(4)]
    state = stream.state_dict()
    assert state == {"step": 4}
    for world_size in (1, 2, 3):
        parts = []
        for rank in range(world_size):
            again = TorchDataset(shards, num_steps=9, rank=rank, world_size=world_size, **SETTINGS)
            again.load_state_dict(state)
            assert again.state_dict() == state
            parts.append(list(DataLoader(again, batch_size=None, num_workers=rank)))
        whole = [
            {name: torch.stack([part[name] for part in step], 1).flatten(0, 1) for name in step[0]}
            for step in zip(*parts, strict=True)
        ]
        assert_equal(seen + whole, expected(range(9)))


def test_a_state_is_not_guessed_where_workers_read_ahead(shards: Path) -> None:
    stream = TorchDataset(shards, **SETTINGS)
    batches = iter(DataLoader(stream, batch_size=None, num_workers=2))
    next(batches)
    with pytest.raises(ConfigError, match="step is None; it must be the next step, since workers"):
        stream.state_dict()
    assert stream.state_dict(1) == {"step": 1}


def test_the_state_of_a_worker_is_that_of_all(shards: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A loader that keeps states asks each worker's copy for its own, and gives it back to the same worker."""
    from types import SimpleNamespace

    from fastcompress.data import torch_dataset

    monkeypatch.setattr(torch_dataset, "get_worker_info", lambda: SimpleNamespace(id=1, num_workers=2))
    stream = TorchDataset(shards, start_step=10, num_steps=20, **SETTINGS)
    batches = iter(stream)
    assert_equal([next(batches), next(batches)], [expected(range(20))[step] for step in (11, 13)])
    state = stream.state_dict()
    again = TorchDataset(shards, num_steps=20, **SETTINGS)
    again.load_state_dict(state)
    assert_equal(list(again), [expected(range(20))[step] for step in (15, 17, 19)])


def test_a_stream_reads_datasets_mixtures_and_other_splits(shards: Path) -> None:
    data = TokenDataset.open(shards, "train")
    assert_equal(list(TorchDataset(data, num_steps=3, **SETTINGS)), expected(range(3)))
    mixture = Mixture([(data, 3), (TokenDataset.open(shards, "validation"), 1)])
    loader = RowLoader(mixture, TokenRows(CODEC, 16), batch_size=6, seed=3, order=2)
    mixed = list(DataLoader(TorchDataset(mixture, num_steps=4, **SETTINGS), batch_size=None, num_workers=2))
    assert all((mixed[step]["input"].numpy() == loader.batch(step)["input"]).all() for step in range(4))
    held_out = TorchDataset(str(shards), split="validation", num_steps=1, **SETTINGS)
    assert next(iter(held_out))["weight"].dtype == torch.float32
    assert held_out.loader.documents(0)
    assert "batch_size=6, seed=3" in repr(held_out)
    old = next(iter(TorchDataset(data, order=1, **SETTINGS)))
    assert (old["input"].numpy() == expected(range(1), order=1)[0]["input"].numpy()).all()


def test_ranks_of_a_group_are_used(shards: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.distributed, "get_rank", lambda: 2)
    monkeypatch.setattr(torch.distributed, "get_world_size", lambda: 3)
    batch = next(iter(TorchDataset(shards, **SETTINGS)))
    assert torch.equal(batch["input"], expected(range(1))[0]["input"][2::3])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"start_step": -1}, "start_step is -1; it must not be negative"),
        ({"num_steps": -1}, "num_steps is -1"),
        ({"rank": 0}, "rank is 0 and world_size is None; they must be given together"),
        ({"rank": 0, "world_size": 4}, "batch_size 6 does not divide among 4 ranks"),
        ({"order": 0}, "order is 0; it must be one of 1, 2"),
        ({"packing": "tight"}, "packing is 'tight'"),
        ({"context_length": 0}, "context_length is 0"),
    ],
)
def test_settings_out_of_range_are_named(shards: Path, change: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        TorchDataset(shards, **{**SETTINGS, **change})


def test_bad_states_and_splits_are_refused(shards: Path) -> None:
    stream = TorchDataset(shards, **SETTINGS)
    for state in ({}, {"step": "4"}, {"step": -1}):
        with pytest.raises(ConfigError):
            stream.load_state_dict(state)
    with pytest.raises(ConfigError, match="step is -3"):
        stream.state_dict(-3)
    with pytest.raises(DataError, match="has no split 'test'"):
        TorchDataset(shards, split="test", **SETTINGS)


def test_columns_are_what_models_read(shards: Path) -> None:
    batch = next(iter(TorchDataset(shards, packing="best_fit", **SETTINGS)))
    assert set(batch) == {"input", "target", "weight", "position", "document"}
    assert all(column.shape == (6, 16) for column in batch.values())
    assert np.array_equal(batch["input"][:, 1:][batch["position"][:, 1:] > 0],
                          batch["target"][:, :-1][batch["position"][:, 1:] > 0])  # fmt: skip
