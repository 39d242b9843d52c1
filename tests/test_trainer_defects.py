"""Defects that users of other trainers reported, each with a test that it cannot occur here.

Some are shown by tests that stand with what they test:

- nanoGPT #140, #243, #477 (torch.compile is not available, the run dies):
  `test_training_parts.test_a_compiler_that_fails_is_reported_and_left`.
- build-nanogpt #30, modded-nanogpt #31 (`no_sync` in the wrong place), over ranks:
  `test_distributed.test_gradients_are_averaged_over_the_events_of_all_ranks` and
  `test_distributed.test_accumulation_communicates_gradients_once_a_step`.
- OLMo-core #478, torchtitan #4300 (FLOPs that the hardware does not compute, so an MFU above 100 %):
  `test_evaluation.test_counted_flops_are_those_torch_counts`.
- blt #128 (a score far too good, since the cut of the input knows what follows), as a leak of the future:
  `test_selfcheck.test_a_future_leak_is_caught` and `test_training_refuses_a_broken_model`.
- blt #141 (an entropy threshold that gives patches of another length than asked for):
  `test_entropy_patches.test_calibrated_patches_have_the_wanted_size`.
- blt #20 (how the entropy model was trained is not said; texts of one byte fail): `EntropyByteCodec.train` is all there
  is of it; `test_entropy_patches.test_entropies_of_texts`.
- Gradients that are never cleared: `test_selfcheck.test_uncleared_gradients_are_caught`.
"""

from __future__ import annotations

import dataclasses
import hashlib
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from fastcompress.bpe import BPE
from fastcompress.codec import BPECodec, ByteCodec, Codec
from fastcompress.data.loader import RowLoader
from fastcompress.data.rows import TokenRows
from fastcompress.data.shard_writer import write_shards
from fastcompress.data.shards import TokenDataset
from fastcompress.errors import ConfigError, DivergenceError
from fastcompress.evaluation.bits_per_byte import evaluate
from fastcompress.models.gpt import GPTConfig
from fastcompress.training import device as devices
from fastcompress.training.checkpoint import load_run, read_checkpoint
from fastcompress.training.config import TrainConfig
from fastcompress.training.distributed import Ranks
from fastcompress.training.finite import FiniteGuard
from fastcompress.training.forecast import Forecast
from fastcompress.training.memory import fit_to_machine
from fastcompress.training.train import TrainResult, train

TEXT = [f"On day {i} ship {i * i % 37} left; {i * 13 % 101} men came back. ".encode() for i in range(40)]
CODEC = ByteCodec()
MODEL = GPTConfig.modern(vocab_size=257, num_layers=2, num_heads=2, width=32, context_length=16)
CONFIG = TrainConfig(
    steps=6, batch_size=4, learning_rate=5e-3, eval_every=6, log_every=1, device="cpu", num_threads=1, self_check=False
)


def run(directory: Path, text: list[bytes] = TEXT, model: GPTConfig = MODEL, **changes: Any) -> TrainResult:
    passed = {name: changes.pop(name) for name in ("on_metrics", "on_forecast") if name in changes}
    data = TokenDataset.from_documents(text, CODEC)
    return train(model, CODEC, data, TEXT[:2], CONFIG.override(changes), directory, progress=False, **passed)


def losses(directory: Path, **changes: Any) -> list[float]:
    found: list[float] = []
    run(directory, **changes, on_metrics=lambda record: found.append(record.get("loss", 0.0)))
    return found


def batch_hash(loader: RowLoader, step: int) -> str:
    return hashlib.sha256(b"".join(column.tobytes() for column in loader.batch(step).values())).hexdigest()


def loaders(data: TokenDataset, world_size: int, batch_size: int = 4) -> list[RowLoader]:
    rows = TokenRows(CODEC, 16)
    return [
        RowLoader(data, rows, batch_size=batch_size, seed=1, rank=rank, world_size=world_size)
        for rank in range(world_size)
    ]


def test_bits_are_divided_by_the_bytes_of_the_text_whatever_a_tokenizer_says_of_its_tokens() -> None:
    """parameter-golf #897: a tokenizer's table left out the byte of a leading space, and scores came out 20 % low.

    The denominator here is the text itself, and equal for every codec.
    """
    text = [b" leading spaces  and two ", b"", b" "]
    codecs: list[Codec] = [CODEC, BPECodec(BPE.train(TEXT + text, vocab_size=300))]
    for codec in codecs:
        model = GPTConfig.modern(vocab_size=codec.vocab_size + 1, num_layers=1, num_heads=1, width=8).build()
        assert evaluate(model, codec, text).num_bytes == sum(map(len, text))


def test_a_run_passes_through_epochs(tmp_path: Path) -> None:
    """nanochat #360, #371: training hung after the first epoch."""
    epochs: list[float] = []
    result = run(tmp_path, TEXT[:2], steps=12, on_metrics=lambda record: epochs.append(record.get("epoch", 0.0)))
    assert (result.steps, max(epochs) > 3) == (12, True)


def test_equal_runs_read_and_compute_the_same(tmp_path: Path) -> None:
    """litgpt #1368: runs of one seed on several cards diverged. Batches are equal, and so are losses, to the bit.

    `test_distributed` has the same of two processes with dropout, stopped and resumed.
    """
    data = TokenDataset.from_documents(TEXT, CODEC)
    first, second = ([batch_hash(loader, 3) for loader in loaders(data, 2)] for _ in range(2))
    assert first == second
    assert first[0] != first[1]
    dropout = dataclasses.replace(MODEL, dropout=0.1)
    assert losses(tmp_path / "a", model=dropout) == losses(tmp_path / "b", model=dropout)


@pytest.mark.parametrize("world_size", [1, 2, 4])
def test_every_document_is_read_however_many_ranks_there_are(world_size: int) -> None:
    """lingua #61, #55: with more ranks than chunks of data, some ranks read nothing or chunks were left out."""
    data = TokenDataset.from_documents(TEXT, CODEC)  # one segment
    for loader in loaders(data, world_size):
        assert len(loader.batch(0)["input"]) == 4 // world_size
    (whole,) = loaders(data, 1)
    steps = range(-(-whole.num_windows // 4) + 1)
    assert set().union(*(whole.documents(step) for step in steps)) == set(range(len(TEXT)))


def test_ranks_read_other_rows() -> None:
    """nanoGPT #531: ranks drew their rows at random, each for itself, and could read the same ones."""
    data = TokenDataset.from_documents(TEXT, CODEC)
    ranks = loaders(data, 4, batch_size=8)
    begins = [
        {
            loader._places([step * 8 + row])[0][1]
            for step in range(ranks[0].num_windows // 8)
            for row in range(rank, 8, 4)
        }
        for rank, loader in enumerate(ranks)
    ]
    assert sum(map(len, begins)) == len(set().union(*begins)) == ranks[0].num_windows // 8 * 8


@pytest.mark.parametrize("length", [1, 7, 16, 40])
def test_documents_of_a_batch_are_those_that_its_rows_come_from(length: int) -> None:
    """What the finite guard names. Oracle: a list with the number of the document of each token."""
    data = TokenDataset.from_documents([text[:length] for text in TEXT], CODEC)
    (loader,) = loaders(data, 1)
    owner = np.concatenate([np.full(end + 1 - begin, i) for i, (begin, end) in enumerate(data.document_ranges())])
    for step in range(2 * loader.num_windows // 4):
        begins = [begin for _, begin in loader._places(range(4 * step, 4 * step + 4))]
        expected = {int(owner[(begin + i) % data.num_tokens]) for begin in begins for i in range(16)}
        assert loader.documents(step) == sorted(expected)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_reading_a_mapped_file_does_not_enlarge_the_process(tmp_path: Path) -> None:
    """nanoGPT #287, #428: every page of a mapped file that was read stayed, until memory ran out.

    Sixteen reads of up to 2 MiB of pages each may stay at a time, of a file of 96 MB here.
    """

    def mapped() -> int:
        line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("RssFile"))
        return int(line.split()[1]) * 1024

    write_shards(tmp_path, "train", (bytes(1 << 20) for _ in range(48)), CODEC, num_threads=1)
    data = TokenDataset.open(tmp_path, "train", verify=False)
    assert data.num_tokens * 2 > 96e6
    (loader,) = loaders(data, 1)
    before, most = mapped(), 0
    for step in range(400):
        loader.batch(step)
        most = max(most, mapped() - before)
    assert most < 40e6


def test_the_logged_loss_does_not_depend_on_accumulation(tmp_path: Path) -> None:
    """nanoGPT #206: the loss of a micro-batch was logged, or the sum of them; build-nanogpt #30: not their mean."""
    assert losses(tmp_path / "a", micro_batch_size=1) == pytest.approx(losses(tmp_path / "b"), rel=1e-4)


def test_a_batch_is_divided_among_processes_not_cards(monkeypatch: pytest.MonkeyPatch) -> None:
    """nanoGPT #283: accumulation was divided by the number of cards in the machine, of which only some were used."""
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 8)
    monkeypatch.setattr(torch.cuda, "set_device", lambda index: None)
    monkeypatch.setenv("LOCAL_RANK", "1")
    assert Ranks(1, 2, 2).device(torch.device("cuda")) == torch.device("cuda", 1)
    fitted = fit_to_machine(CONFIG.override({"batch_size": 8}), MODEL, torch.device("cpu"), Ranks(1, 2, 2))
    assert fitted.micro_batch == 4
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    with pytest.raises(ConfigError, match="the number of processes on this machine is 2; it must be at most 1"):
        Ranks(1, 2, 2).device(torch.device("cuda"))


def test_a_run_that_is_no_longer_finite_stops_and_says_where(tmp_path: Path) -> None:
    """nanoGPT #167: a run went on for hours with a loss of NaN.

    The guard names the first bad step, although it looks at log lines only, and the documents of its batch; the last
    good checkpoint stays, and the state at the end is kept beside it.
    """
    config = {"learning_rate": 1e30, "warmup": 0.0, "log_every": 5, "eval_every": 50, "steps": 50}
    with pytest.raises(DivergenceError) as caught:
        run(tmp_path, **config)
    found = re.search(r"from step (\d+) on \(its batch, number (\d+), is from the training documents ([\d, ]+)\)",
                      str(caught.value))  # fmt: skip
    assert found is not None
    step = int(found[2])
    assert (int(found[1]), step < 5) == (step + 1, True)
    (loader,) = loaders(TokenDataset.from_documents(TEXT, CODEC), 1)
    own = RowLoader(loader.dataset, loader.rows, batch_size=4, seed=CONFIG.seed, order=2)
    assert [int(number) for number in found[3].split(", ")] == own.documents(step)
    assert read_checkpoint(tmp_path / "last.safetensors").state["progress"]["step"] == 0
    kept = read_checkpoint(tmp_path / "diverged.safetensors")
    assert kept.state["progress"]["step"] == 5
    assert not all(tensor.float().isfinite().all() for tensor in kept.tensors.values())
    assert load_run(tmp_path).step == 0


@pytest.mark.parametrize(
    ("bad", "only_losses", "expected"),
    [
        ({}, False, None),
        ({3: "loss", 5: "norm"}, False, 3),
        ({2: "norm", 4: "loss"}, False, 2),
        ({2: "norm"}, True, None),
    ],
)  # fmt: skip
def test_the_guard_keeps_the_first_bad_step(bad: dict[int, str], only_losses: bool, expected: int | None) -> None:
    """Under loss scaling, which skips such steps, gradients may overflow."""
    guard = FiniteGuard(torch.device("cpu"), only_losses=only_losses)
    for step in range(8):
        values = {name: torch.tensor(float("nan") if bad.get(step) == name else 1.0) for name in ("loss", "norm")}
        guard.watch(step, values["loss"], values["norm"])
    assert guard.first_step() == expected


def test_a_compiler_whose_gradients_are_not_finite_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """modded-nanogpt #268: compiled by one release of torch, gradients were NaN on one kind of card."""

    def spoils(loss: Callable[..., Tensor]) -> Callable[..., Tensor]:
        return lambda batch, weight: loss(batch, weight) * float("nan")

    expected = losses(tmp_path / "eager")
    monkeypatch.setattr(devices, "_torch_compile", spoils)
    with pytest.warns(
        UserWarning, match="uncompiled and slower: the compiled model's loss or gradients are not finite"
    ):
        assert losses(tmp_path / "spoilt", compile="on") == expected


def test_documents_of_no_to_three_bytes(tmp_path: Path) -> None:
    """blt #20, #26: an input of length 1 crashed."""
    text = [b"abc"[:length] for length in (0, 1, 2, 3)] * 20
    result = run(tmp_path, text)
    for document in text[1:4]:
        assert evaluate(result.model, CODEC, [document]).num_bytes == len(document)
    stepper = result.model.stepper(CODEC, lanes=4)
    stepper.begin(text[:4])
    assert stepper.weights().shape == (4, 257)


def test_recomputing_blocks_changes_no_loss(tmp_path: Path) -> None:
    """To the bit, dropout included; and the model that comes back is an ordinary one."""
    dropout = dataclasses.replace(MODEL, dropout=0.1)
    found: list[float] = []
    result = run(
        tmp_path / "a", model=dropout, checkpoint_activations=True,
        on_metrics=lambda record: found.append(record.get("loss", 0.0)),
    )  # fmt: skip
    assert found == losses(tmp_path / "b", model=dropout)
    assert not any("forward" in vars(module) for module in result.model.modules())


def test_memory_and_time_are_said_before_the_run_starts(tmp_path: Path) -> None:
    """The trial passes behind it leave the run as it would be."""
    forecasts: list[Forecast] = []
    dropout = dataclasses.replace(MODEL, dropout=0.1)
    found: list[float] = []
    run(
        tmp_path / "a", model=dropout, on_forecast=forecasts.append,
        on_metrics=lambda record: found.append(record.get("loss", 0.0)),
    )  # fmt: skip
    (forecast,) = forecasts
    assert found == losses(tmp_path / "b", model=dropout)
    assert (forecast.steps, 0 < forecast.seconds < 60, forecast.memory > 1e6) == (6, True, True)
    assert re.fullmatch(r"about 0.0 GB of [\d.]+ GB of memory; 6 steps, about \d+ s", str(forecast))
    run(tmp_path / "c", steps=None, seconds=0.5, eval_every=None, on_forecast=forecasts.append)
    assert forecasts[1].seconds == pytest.approx(0.5, rel=0.5)
