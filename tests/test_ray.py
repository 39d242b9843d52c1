"""Parts on a local Ray cluster of two processes: order, errors, killed workers, and exact counts."""

from __future__ import annotations

import importlib.util
import os
import pickle
import random
import time
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastcompress import BPE
from fastcompress.data import count_pretokens
from fastcompress.data.inputs import Skipped
from fastcompress.data.ray import on_cluster
from fastcompress.errors import ConfigError, DataError, WorkerError
from tests import cluster_parts

texts_of_few = st.lists(st.text(alphabet="ab \n", max_size=30), min_size=2, max_size=8)


@given(texts=texts_of_few, seed=st.integers(0, 1 << 32), huggingface=st.booleans())
@settings(max_examples=80, deadline=None)
def test_any_parts_in_any_order_give_the_same_vocabulary(texts: list[str], seed: int, huggingface: bool) -> None:
    """Texts of two letters, in which pairs tie all the time."""
    chance = random.Random(seed)
    parts: list[list[str]] = [[] for _ in range(chance.randint(1, 5))]
    for text in texts:
        chance.choice(parts).append(text)
    chance.shuffle(parts)
    tables = [pickle.loads(pickle.dumps(BPE.count_pretokens(part, pattern="gpt2"))) for part in parts]
    options: dict[str, Any] = {"vocab_size": 400, "min_frequency": 1, "max_token_length": 20}
    options["tie_break"] = "huggingface" if huggingface else "lowest_id"
    whole = BPE.train(texts, pattern="gpt2", **options)
    assert BPE.train(reduce(add, tables), **options).to_bytes() == whole.to_bytes()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Inputs of several types, one of which has rows without text."""
    folder = tmp_path / "inputs"
    folder.mkdir()
    for number in range(5):
        (folder / f"{number}.txt").write_text(f"part {number}: to be or not to be <|end|> " * (number + 1))
    (folder / "5.jsonl").write_text('{"text": "to be"}\n{"text": null}\n{"text": "or not"}\n')
    return folder


def test_counts_of_inputs_are_those_of_their_texts(folder: Path) -> None:
    texts = [path.read_text() for path in sorted(folder.glob("*.txt"))] + ["to be", "or not"]
    skipped: list[Skipped] = []
    counts = count_pretokens(folder, special_tokens=["<|end|>"], on_error="skip", on_skip=skipped.append)
    assert counts == BPE.count_pretokens(texts, special_tokens=["<|end|>"])
    assert [item.index for item in skipped] == [1]
    with pytest.raises(DataError, match="line 2 has no string under 'text'"):
        count_pretokens(folder)


def test_engine_is_a_known_one(folder: Path) -> None:
    with pytest.raises(ConfigError, match="engine is 'dask'; it must be one of local, ray"):
        count_pretokens(folder, engine="dask")


@pytest.mark.skipif(importlib.util.find_spec("ray") is not None, reason="ray is installed")
def test_without_ray_the_error_says_what_to_install(folder: Path) -> None:
    with pytest.raises(ConfigError, match=r"pip install 'fastcompress\[distributed\]'"):
        count_pretokens(folder, engine="ray")


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 64])
def test_results_come_in_the_order_of_the_parts(
    cluster: Any, threads: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    results = list(on_cluster(cluster_parts.square, range(20), 7, threads_per_part=threads))
    assert [result for result, _, _ in results] == [part * part + 7 for part in range(20)]
    processes = {process for _, process, _ in results}
    assert len(processes) >= (2 if threads == 1 else 1)
    assert os.getpid() not in processes
    assert {folder for _, _, folder in results} == {str(tmp_path)}


@pytest.mark.slow
def test_parts_of_killed_workers_are_done_again(cluster: Any, tmp_path: Path) -> None:
    assert list(on_cluster(cluster_parts.killed_once, range(4), tmp_path)) == [0, 1, 2, 3]
    assert {path.name for path in tmp_path.iterdir()} == {"1", "3"}
    with pytest.raises(WorkerError, match="a part failed 4 times with its worker"):
        list(on_cluster(cluster_parts.killed_once, [99], tmp_path))


@pytest.mark.slow
def test_the_error_is_that_of_the_first_part(cluster: Any, tmp_path: Path) -> None:
    results = on_cluster(cluster_parts.fails, range(50), tmp_path)
    assert [next(results), next(results)] == [0, 1]
    with pytest.raises(DataError, match=r"^part 2: bad text$"):
        next(results)
    ended = sorted(path.name for path in tmp_path.iterdir())
    assert len(ended) < 12  # those that waited were never begun
    time.sleep(0.5)
    assert sorted(path.name for path in tmp_path.iterdir()) == ended, "a part went on after the error"


@pytest.mark.slow
def test_nothing_goes_on_after_closing(cluster: Any, tmp_path: Path) -> None:
    results = on_cluster(cluster_parts.fails, [0, *range(4, 50)], tmp_path)
    assert next(results) == 0
    results.close()
    ended = sorted(path.name for path in tmp_path.iterdir())
    assert len(ended) < 10
    time.sleep(0.5)
    assert sorted(path.name for path in tmp_path.iterdir()) == ended


@pytest.mark.slow
def test_a_cluster_counts_the_same(cluster: Any, folder: Path) -> None:
    options: dict[str, Any] = {"special_tokens": ["<|end|>"], "on_error": "skip"}
    skipped: dict[str, list[Skipped]] = {"local": [], "ray": []}
    counts = {
        engine: count_pretokens(folder, engine=engine, on_skip=skipped[engine].append, **options) for engine in skipped
    }
    assert counts["ray"].to_bytes() == counts["local"].to_bytes()
    assert skipped["ray"] == skipped["local"] != []
    vocabularies = [BPE.train(table, vocab_size=270, special_tokens=["<|end|>"]) for table in counts.values()]
    assert vocabularies[0].to_bytes() == vocabularies[1].to_bytes()
    errors = []
    for engine in skipped:
        with pytest.raises(DataError, match="line 2") as caught:
            count_pretokens(folder, engine=engine)
        errors.append((type(caught.value), str(caught.value)))
    assert errors[0] == errors[1]
    with pytest.raises(ConfigError, match="workers cannot read standard input"):
        count_pretokens(["-"], engine="ray")
