"""The runs of two processes behind `test_distributed.py`: `python -m tests.distributed_runs FOLDER`, once per rank.

The environment says which rank a process is, as torchrun does. The processes join once and make all runs of a scenario
one after the other, since starting Python and torch is what costs most of the time. What a test wants to know of a rank
beyond the run's own files, that rank writes into `FOLDER/rank-N.json`.
"""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist

from fastcompress.codec import ByteCodec
from fastcompress.data.shards import TokenDataset
from fastcompress.errors import FastcompressError
from fastcompress.models.gpt import GPTConfig
from fastcompress.training.config import TrainConfig
from fastcompress.training.train import TrainResult, train

TEXT = [f"On day {i} ship {i * i % 37} left; {i * 13 % 101} men came back. ".encode() * (1 + i % 4) for i in range(30)]
HELD_OUT = [f"On day {i} ship {i * 5 % 37} came back.".encode() for i in range(4)]
CODEC = ByteCodec()
DATA = TokenDataset.from_documents(TEXT, CODEC)
MODEL = GPTConfig.modern(vocab_size=257, num_layers=2, num_heads=2, width=32, context_length=16)
DROPOUT = dataclasses.replace(MODEL, dropout=0.1)
TIED = dataclasses.replace(MODEL, tied_head=True)
CONFIG = TrainConfig(
    steps=8, batch_size=8, learning_rate=5e-3, eval_every=4, log_every=1, device="cpu", precision="float32",
    compile="off", num_threads=1, eval_batch_size=4, seed=3, self_check=False,
)  # fmt: skip


def start(directory: Path, model: GPTConfig = MODEL, data: TokenDataset = DATA, **changes: Any) -> TrainResult:
    """Train with CONFIG, with changes made to it or passed on."""
    passed = {name: changes.pop(name) for name in ("resume", "on_metrics", "on_forecast") if name in changes}
    return train(model, CODEC, data, HELD_OUT, CONFIG.override(changes), directory, progress=False, **passed)


class UnevenData(TokenDataset):
    """A stream whose rows have weights of their own; see `uneven_rows`."""


def stop_rank(rank: int, step: int) -> None:
    """Send a signal to the reading process of one rank when it reads the batch of a step."""


class InterruptingData(TokenDataset):
    """Text whose reader gets Ctrl-C at the given read on rank 1 alone."""

    at_read = 8 * 3
    num_reads = 0

    def read(self, begin: int, end: int) -> np.ndarray:
        self.num_reads += 1
        if self.num_reads == self.at_read and dist.get_rank() == 1:
            signal.raise_signal(signal.SIGINT)
        return super().read(begin, end)


def main(folder: Path) -> None:
    dist.init_process_group("gloo")
    for name in ("ddp", "fsdp"):
        start(folder / name, parallel=name)
    dist.destroy_process_group()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
