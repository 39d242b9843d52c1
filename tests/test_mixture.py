"""Mixtures: exact proportions at every prefix, each dataset in its own order, one codec, and the command line."""

from __future__ import annotations

import json
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from fastcompress.cli import main
from fastcompress.cli.run_data import RunData
from fastcompress.codec import ByteCodec, CharCodec
from fastcompress.data import Mixture, RowLoader, TokenDataset, TokenRows, write_splits
from fastcompress.data.mixture import Assignment
from fastcompress.data.packing import PACKINGS, Packing, pack
from fastcompress.errors import ConfigError, MismatchError

CODEC = ByteCodec()
ROWS = TokenRows(CODEC, 8)


def dataset_of(byte: int, num_documents: int = 40) -> TokenDataset:
    """Documents of one byte, so that a row says which dataset it is from."""
    return TokenDataset.from_documents([bytes([byte]) * (9 + number % 5) for number in range(num_documents)], CODEC)


def sources(batch: dict[str, np.ndarray]) -> list[int]:
    """The byte of each row's dataset."""
    return [int(row[row < 256].max()) for row in batch["input"]]


counts = st.lists(st.integers(1, 1000), min_size=1, max_size=6)


@given(counts, st.integers(0, 2**40), st.integers(1, 400))
def test_every_prefix_has_the_proportions_and_every_dataset_its_samples_in_order(
    weights: list[int], seed: int, num_samples: int
) -> None:
    assignment = Assignment(weights, seed)
    seen: Counter[int] = Counter()
    for sample in range(num_samples):
        number, visit = assignment.place(sample)
        assert visit == seen[number]
        seen[number] += 1
        for dataset, weight in enumerate(weights):
            assert abs(seen[dataset] - Fraction((sample + 1) * weight, sum(weights))) < len(weights)


@given(counts, st.integers(0, 2**40), st.integers(0, 2**60))
def test_a_whole_period_has_each_dataset_its_number_of_times(weights: list[int], seed: int, period: int) -> None:
    """At any distance from the beginning, and without counting up to there."""
    assignment = Assignment(weights, seed)
    total = sum(weights)
    places = [assignment.place(period * total + sample)[0] for sample in range(min(total, 500))]
    if total <= 500:
        assert Counter(places) == Counter(dict(enumerate(weights)))


def test_the_assignment_never_changes() -> None:
    places = [Assignment([5, 3, 2], 7).place(sample) for sample in range(12)]
    assert places == [(1, 0), (0, 0), (2, 0), (0, 1), (1, 1), (0, 2), (2, 1), (0, 3), (1, 2), (0, 4), (1, 3), (0, 5)]


def test_weights_count_as_they_are_written() -> None:
    data = dataset_of(1)
    assert Mixture([(data, 1), (data, 0.3)]).counts == [10, 3]
    assert Mixture([(data, 0.1), (data, 0.2), (data, 0.7)]).counts == [1, 2, 7]
    assert Mixture([(data, Fraction(1, 3)), (data, np.float32(1))]).counts == [1, 3]
    assert Mixture([(data, 2.5)]).counts == [1]
    assert Mixture([(data, 1e-30), (data, 1)]).shares == pytest.approx([1e-30, 1])


@pytest.mark.parametrize("weight", [0, -1, float("nan"), float("inf"), "much", None])
def test_a_weight_that_is_not_positive_is_refused(weight: Any) -> None:
    with pytest.raises(ConfigError, match=r"weight is .*; it must be a positive number"):
        Mixture([(dataset_of(1), 1), (dataset_of(2), weight)])


def test_datasets_of_other_codecs_and_no_dataset_are_refused() -> None:
    other = TokenDataset.from_documents([b"text"], CharCodec("tex"))
    with pytest.raises(MismatchError, match=r"dataset 1 of the mixture, .* is of another codec than dataset 0"):
        Mixture([(dataset_of(1), 1), (other, 1)])
    with pytest.raises(ConfigError, match="parts is empty"):
        Mixture([])


@pytest.mark.parametrize("packing", PACKINGS)
@pytest.mark.parametrize("order", [1, 2])
def test_a_loader_draws_rows_in_proportion_and_walks_each_dataset_by_its_own_order(
    packing: Packing, order: int
) -> None:
    first, second = dataset_of(1), dataset_of(2, num_documents=9)
    mixed, rows = pack(Mixture([(first, 1), (second, 0.25)]), ROWS, packing)
    settings = {"seed": 3, "order": order}
    loader = RowLoader(mixed, rows, batch_size=20, **settings)
    batches = [loader.batch(step) for step in range(25)]
    assert all(abs(sources(batch).count(2) - 4) <= 1 for batch in batches)
    assert sum(sources(batch).count(2) for batch in batches) == 100
    own = RowLoader(pack(first, ROWS, packing)[0], rows, batch_size=1, **settings)
    drawn = [row for batch in batches for row, byte in zip(batch["input"], sources(batch), strict=True) if byte == 1]
    alone = [own.batch(step)["input"][0] for step in range(400)]
    assert all((one == two).all() for one, two in zip(drawn, alone, strict=True))
    assert loader.epochs(25) == pytest.approx([400 / loader.figures[0].num_rows, 100 / loader.figures[1].num_rows])
    assert loader.epoch(25) == max(loader.epochs(25))
    assert loader.num_windows == sum(figures.num_rows for figures in loader.figures)
    num_bytes = [part.num_bytes / rows.num_events(part) for part in loader.datasets]
    assert loader.text_per_epoch == (1.0, pytest.approx(0.8 * num_bytes[0] + 0.2 * num_bytes[1]))


def test_an_epoch_of_a_dataset_in_a_mixture_has_each_of_its_windows_once() -> None:
    words = [f"{number:03}" for number in range(90)]
    data = TokenDataset.from_documents([" ".join(words).encode()], CODEC)
    loader = RowLoader(Mixture([(dataset_of(1), 2), (data, 1)]), ROWS, batch_size=3, seed=9, order=2)
    rows = [row.tobytes() for step in range(loader.figures[1].num_rows)
            for row in loader.batch(step)["input"] if 1 not in row]  # fmt: skip
    assert len(rows) == len(set(rows)) == loader.figures[1].num_rows


def test_a_mixed_batch_is_a_pure_function_and_divides_among_ranks() -> None:
    mixture = Mixture([(dataset_of(1), 1), (dataset_of(2), 2), (dataset_of(3), 0.5)])
    straight = RowLoader(mixture, ROWS, batch_size=12, seed=1, order=2)
    batches = [straight.batch(step)["input"] for step in range(8)]
    for step in (7, 0, 3):
        for world_size in (2, 3):
            for rank in range(world_size):
                part = RowLoader(mixture, ROWS, batch_size=12, seed=1, order=2, rank=rank, world_size=world_size)
                assert (part.batch(step)["input"] == batches[step][rank::world_size]).all()
    other = RowLoader(mixture, ROWS, batch_size=12, seed=2, order=2)
    assert any((other.batch(step)["input"] != batches[step]).any() for step in range(3))


@pytest.mark.parametrize("packing", PACKINGS)
def test_documents_of_a_mixed_batch_are_numbered_through(packing: Packing) -> None:
    texts = [[bytes([byte]) * (byte % 6 + 1) for byte in numbers] for numbers in (range(30), range(30, 50))]
    mixture = Mixture([(TokenDataset.from_documents(part, CODEC), 1) for part in texts])
    assert mixture.num_documents == 50
    dataset, rows = pack(mixture, ROWS, packing)
    loader = RowLoader(dataset, rows, batch_size=4, seed=1, order=2)
    for step in range(10):
        batch, found = loader.batch(step), loader.documents(step)
        column = batch["target"] if packing == "best_fit" else batch["input"]
        named = {int(token) for token in column[batch["weight"] > 0] if token < 256}
        assert named <= set(found)
        assert len(set(found) - named) <= (column == 256).sum()


def test_fingerprints_know_datasets_and_weights() -> None:
    first, second = dataset_of(1), dataset_of(2)
    mixtures = [[(first, 1), (second, 1)], [(second, 1), (first, 1)], [(first, 2), (second, 1)], [(first, 1)]]
    assert len({Mixture(parts).fingerprint for parts in mixtures}) == 4
    assert Mixture([(first, 2), (second, 2)]).fingerprint == Mixture(mixtures[0]).fingerprint


# --- the command line ------------------------------------------------------------------------------------

OPTIONS = "--device cpu --layers 1 --heads 1 --width 16 --context 16 --batch-size 4 --steps 6 --log-every 2"
SMALL = [*OPTIONS.split(), "--no-self-check"]


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b:2"):  # a colon in a name is no weight
        texts = [f"{name} {index} and so on and on.".encode() for index in range(40)]
        write_splits(tmp_path / name, {"train": texts[:30], "validation": texts[30:]}, CODEC)
    return tmp_path


def run(*arguments: str) -> Any:
    return CliRunner().invoke(main, ["train", *arguments], catch_exceptions=False)


def test_train_mixes_folders_of_shards_by_weight(folders: Path) -> None:
    options = ["--run-dir", "run", "--shards", "a", "--shards", "b:2:0.25"]
    done = run(*options, *SMALL)
    assert done.exit_code == 0, done.output
    assert "a: " in done.output
    assert "rows per epoch, " in done.output
    stored = json.loads((folders / "run" / "data.json").read_text())
    assert stored["shards"] == [f"{folders / 'a'}:1.0", f"{folders / 'b:2'}:0.25"]
    config = json.loads((folders / "run" / "config.json").read_text())
    assert config["data"]["training"]["documents"] == 60
    lines = [json.loads(line) for line in (folders / "run" / "metrics.jsonl").read_text().splitlines()]
    trained = [line for line in lines if line["event"] == "train"]
    datasets = [TokenDataset.open(folders / name, "train") for name in ("a", "b:2")]
    windows = [dataset.num_tokens // 16 for dataset in datasets]
    assert trained[-1]["epochs"] == pytest.approx([0.8 * 24 / windows[0], 0.2 * 24 / windows[1]])
    assert run("--run-dir", "run", "--resume", "--steps", "8").exit_code == 0
    refused = CliRunner().invoke(main, ["train", "--run-dir", "run", "--resume", "--shards", "a", "--steps", "9"])
    assert refused.exit_code != 0
    assert "its training text is not what the run began with" in refused.output


def test_validation_text_of_a_mixture_is_of_every_folder_in_turns(folders: Path) -> None:
    data = RunData.given(None, "text", None, ["a", "b:2:0.5"])
    documents = data.documents("validation", CODEC)
    assert len(documents) == 20
    assert [document[:1] for document in documents[:4]] == [b"a", b"b", b"a", b"b"]
    assert data.names == [str(folders / "a"), str(folders / "b:2")]
    assert data.num_trained_on([b"a 3 and so on and on.", b"b:2 4 and so on and on.", b"c"], CODEC) == 2


def test_settings_in_a_file_name_folders_too(folders: Path) -> None:
    (folders / "run.toml").write_text('[data]\nshards = ["a", "b:2:0.25"]\n')
    assert run("--config", "run.toml", "--run-dir", "run", *SMALL).exit_code == 0
    stored = json.loads((folders / "run" / "data.json").read_text())
    assert len(stored["shards"]) == 2
    (folders / "one.toml").write_text('[data]\nshards = "b:2"\n')
    assert run("--config", "one.toml", "--run-dir", "one", *SMALL).exit_code == 0
    assert json.loads((folders / "one" / "data.json").read_text())["shards"] == str(folders / "b:2")
    (folders / "bad.toml").write_text("[data]\nshards = [1, 2]\n")
    refused = CliRunner().invoke(main, ["train", "--config", "bad.toml", "--run-dir", "bad", *SMALL])
    assert refused.exit_code != 0
    assert "data.shards is [1, 2]" in refused.output


def test_folders_of_other_codecs_and_bad_weights_are_refused(folders: Path) -> None:
    texts = [b"text"] * 30
    write_splits(folders / "c", {"train": texts, "validation": texts[:2]}, CharCodec("tex"))
    for arguments, message in ((["c"], "was not encoded by this byte codec"), (["a:0"], "weight is 0.0")):
        options = [part for name in arguments for part in ("--shards", name)]
        refused = CliRunner().invoke(main, ["train", "--run-dir", "run", "--shards", "a", *options, *SMALL])
        assert refused.exit_code != 0
        assert message in refused.output
