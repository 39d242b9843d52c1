"""Small models get one thread, large ones torch's own number, and what was set before is set again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from fastcompress.codec import ByteCodec
from fastcompress.data.shards import TokenDataset
from fastcompress.models.gpt import GPTConfig
from fastcompress.models.threads import choose_threads, limited_threads
from fastcompress.study.arms import STUDIES
from fastcompress.training.config import TrainConfig
from fastcompress.training.train import threads_for, train

TEXT = [b"a text of some length, to train on " * 20]


@pytest.fixture(autouse=True)
def _three_threads() -> Iterator[None]:
    with limited_threads(3):
        yield


def test_small_passes_get_one_thread_and_large_ones_all() -> None:
    assert choose_threads(8, 128, 128) == 1
    assert choose_threads(64, 256, 384) == 3
    study = STUDIES["quick"]
    model = GPTConfig.modern(vocab_size=257, **study.model)
    assert threads_for(model, TrainConfig(flops=1e12, **study.training)) == 1
    assert threads_for(GPTConfig.modern(vocab_size=257), TrainConfig(steps=1)) == 3
    assert threads_for(model, TrainConfig(steps=1, num_threads=2)) == 2


@pytest.mark.parametrize(("given", "expected"), [(None, 1), (2, 2)])
def test_a_run_has_its_threads_and_leaves_the_others(tmp_path: Path, given: int | None, expected: int) -> None:
    seen: list[int] = []

    def look(record: dict[str, Any]) -> None:
        seen.append(torch.get_num_threads())

    model = GPTConfig.modern(vocab_size=257, num_layers=1, num_heads=1, width=16, context_length=16)
    config = TrainConfig(steps=2, batch_size=2, device="cpu", self_check=False, num_threads=given)
    data = TokenDataset.from_documents(TEXT, ByteCodec())
    train(model, ByteCodec(), data, TEXT, config, tmp_path / "run", on_metrics=look, progress=False)
    assert set(seen) == {expected}
    assert torch.get_num_threads() == 3
