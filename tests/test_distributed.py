"""Two processes train what one process trains: `distributed_runs.py` holds what they do, here is what must come out."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from fastcompress.training.checkpoint import load_run, read_checkpoint
from tests import distributed_runs as runs

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not torch.distributed.is_available(), reason="this torch has no torch.distributed"),
    pytest.mark.skipif(sys.platform != "linux", reason="two gloo processes on Linux stand for all"),
]
KINDS = runs.KINDS
shards = pytest.mark.skipif("fsdp" not in KINDS, reason="this torch has no FSDP2 on CPUs")
# Sums over two halves of a batch are rounded otherwise than sums over all of it, and the difference grows over 8 steps.
ROUNDING = 2e-4


def start_both(arguments: list[str], **environment: str) -> list[subprocess.CompletedProcess[str]]:
    """Run a Python command as ranks 0 and 1, as torchrun would."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    common = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2"}
    processes = []
    for rank in ("0", "1"):
        variables = {**os.environ, **common, "OMP_NUM_THREADS": "1", "RANK": rank, "LOCAL_RANK": rank, **environment}
        processes.append(
            subprocess.Popen(
                [sys.executable, *arguments], env=variables, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
            )
        )
    finished = []
    try:
        for process in processes:
            output, errors = process.communicate(timeout=300)
            finished.append(subprocess.CompletedProcess(arguments, process.returncode, output, errors))
    finally:
        for process in processes:
            process.kill()
    return finished


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What both processes left behind, and the runs of one process beside it."""
    folder = tmp_path_factory.mktemp("runs")
    runs.start(folder / "one")
    runs.start(folder / "one-tied", runs.TIED)
    for name, (model, settings) in runs.OPTIONS.items():
        runs.start(folder / f"one-{name}", model, **settings, steps=4)
    for kind in KINDS:
        with pytest.raises(KeyboardInterrupt):
            runs.start(folder / f"{kind}-taken", on_metrics=stop_at_step_3)
    runs.pretrain(folder / "pretrained")
    chats = [{"messages": [{"role": "user", "content": f"{i}?"}, {"role": "assistant", "content": f"no, {i * i}."}]}
             for i in range(40)]  # fmt: skip
    (folder / "chats.jsonl").write_text("\n".join(map(json.dumps, chats)))
    assert runs.finetune(folder, folder / "one-sft")["code"] == 0
    for process in start_both(["-m", "tests.distributed_runs", str(folder)]):
        assert process.returncode == 0, process.stderr
        assert "Warning" not in process.stderr
    return folder


def stop_at_step_3(record: dict[str, Any]) -> None:
    if record["event"] == "train" and record["step"] == 3:
        raise KeyboardInterrupt


def of_rank(folder: Path, rank: int) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / f"rank-{rank}.json").read_text())
    return found


def records(directory: Path) -> list[dict[str, Any]]:
    clock = {"seconds", "tokens_per_second", "bytes_per_second", "mfu", "peak_memory_bytes"}
    lines = (directory / "metrics.jsonl").read_text().splitlines()
    return [{name: value for name, value in json.loads(line).items() if name not in clock} for line in lines]


def assert_near(directory: Path, other: Path) -> None:
    """Both have the same records, figures up to rounding."""
    for found, expected in zip(records(directory), records(other), strict=True):
        assert found["event"] == expected["event"]
        figures = {name: value for name, value in expected.items() if isinstance(value, float)}
        assert found == {**expected, **{name: pytest.approx(value, rel=ROUNDING) for name, value in figures.items()}}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["", "-parts"])
def test_two_processes_train_as_one_does(folder: Path, kind: str, name: str) -> None:
    """Losses, gradient norms and scores, each logged once; whole batches and micro-batches alike."""
    assert_near(folder / f"{kind}{name}", folder / "one")
    for other in KINDS:
        assert_near(folder / f"{kind}{name}", folder / f"{other}{name}")


def test_gradients_may_come_together_during_the_backward_pass(folder: Path) -> None:
    assert_near(folder / "ddp-overlapped", folder / "one")


@shards
def test_a_small_model_is_gathered_at_once(folder: Path) -> None:
    """The same losses from one gathering of weights, and gradients brought together once."""
    assert_near(folder / "fsdp-whole", folder / "one-tied")
    assert of_rank(folder, 0)["fsdp"]["reductions of the whole"] == 1


@pytest.mark.parametrize("kind", KINDS)
def test_a_tied_head_and_activation_checkpointing_train_alike(folder: Path, kind: str) -> None:
    assert_near(folder / f"{kind}-tied", folder / "one-tied")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", runs.OPTIONS)
def test_every_option_trains_as_in_one_process(folder: Path, kind: str, name: str) -> None:
    """Memories, spelled bytes, residuals, gates and windows; AdamW, and Muon, which needs whole matrices."""
    assert_near(folder / f"{kind}-{name}", folder / f"one-{name}")


@shards
@pytest.mark.parametrize("name", runs.OPTIONS)
def test_the_optimizers_state_is_that_of_one_process(folder: Path, name: str) -> None:
    found = read_checkpoint(folder / f"fsdp-{name}" / "last.safetensors").tensors
    expected = read_checkpoint(folder / f"one-{name}" / "last.safetensors").tensors
    kept = {key for key in expected if key.startswith("optimizer/")}
    assert {key: found[key].shape for key in kept} == {key: expected[key].shape for key in kept}
    for key in kept:  # gradients after the first step see weights that Muon rounded to bfloat16
        difference = (found[key] - expected[key]).double().norm()
        assert difference <= 2e-2 * expected[key].double().norm() + 1e-6, key


@pytest.mark.parametrize("kind", KINDS)
def test_the_checkpoint_is_that_of_one_process(folder: Path, kind: str) -> None:
    expected = read_checkpoint(folder / "one" / "last.safetensors")
    found = read_checkpoint(folder / kind / "last.safetensors")
    others = {name for name in found.tensors if name.startswith("random/1/")}
    assert {name: tensor.shape for name, tensor in found.tensors.items() if name not in others} == {
        name: tensor.shape for name, tensor in expected.tensors.items()
    }
    assert others == {"random/1/cpu"}
    for name, tensor in found.tensors.items():
        if name.startswith("model/"):
            torch.testing.assert_close(tensor, expected.tensors[name], rtol=0, atol=1e-4)
    assert load_run(folder / kind).validation_bits_per_byte == pytest.approx(
        load_run(folder / "one").validation_bits_per_byte, rel=ROUNDING
    )


def test_all_ranks_return_the_same(folder: Path) -> None:
    first, second = of_rank(folder, 0), of_rank(folder, 1)
    for kind in KINDS:
        assert first[kind]["steps"] == [8, 8, 8]
        assert first[kind] == second[kind]
    best = load_run(folder / "ddp-dropout").model
    assert first["ddp"]["weights"] == pytest.approx(sum(float(p.detach().double().sum()) for p in best.parameters()))


@pytest.mark.parametrize("kind", KINDS)
def test_ctrl_c_on_one_rank_stops_all_and_the_run_goes_on_to_the_bit(folder: Path, kind: str) -> None:
    """Each rank's dropout too: its generator is in the checkpoint."""
    for rank in (0, 1):
        assert of_rank(folder, rank)[kind]["interrupted"].startswith("KeyboardInterrupt")
    assert records(folder / f"{kind}-stopped") == records(folder / f"{kind}-dropout")


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_of_two_goes_on_with_one(folder: Path, kind: str, tmp_path: Path) -> None:
    shutil.copytree(folder / f"{kind}-left", tmp_path / "run")
    step = read_checkpoint(tmp_path / "run" / "last.safetensors").state["progress"]["step"]
    assert 0 < step < 8
    assert runs.start(tmp_path / "run", resume=True).new_steps == 8 - step
    assert_near(tmp_path / "run", folder / "one")


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_of_one_goes_on_with_two(folder: Path, kind: str) -> None:
    assert_near(folder / f"{kind}-taken", folder / "one")


@pytest.mark.parametrize("way", runs.WAYS)
@pytest.mark.parametrize("micro_batch_size", [1, 2, 4])
def test_gradients_are_averaged_over_the_events_of_all_ranks(folder: Path, way: str, micro_batch_size: int) -> None:
    """Rank 1 has 3 events a row that count, rank 0 has 16: the mean of their means would be another gradient."""
    expected = runs.gradients("ddp", 8)
    batch = {name: column[::2] for name, column in runs.uneven_batch().items()}  # of rank 0 alone
    assert float(batch["weight"].sum()) / float(runs.uneven_batch()["weight"].sum()) > 0.8
    for rank in (0, 1):
        found = load_file(folder / f"gradients-{way}-{micro_batch_size}-{rank}.safetensors")
        assert found.keys() == expected.keys()
        for name, gradient in expected.items():
            torch.testing.assert_close(found[name], gradient, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("way", runs.WAYS)
def test_accumulation_communicates_gradients_once_a_step(folder: Path, way: str) -> None:
    in_parts, whole = of_rank(folder, 0)[f"{way} reductions"]
    assert in_parts == whole > 0


@shards
def test_an_overflow_on_one_rank_skips_the_step_on_all(folder: Path) -> None:
    """Under loss scaling and FSDP, where each rank sees its own part of the gradients. Under DDP all see the same."""
    assert of_rank(folder, 0)["overflow"]
    assert of_rank(folder, 1)["overflow"]


def test_an_error_of_the_first_rank_is_one_on_every_rank(folder: Path) -> None:
    first, second = of_rank(folder, 0), of_rank(folder, 1)
    assert first["again"] == second["again"]
    assert first["again"].startswith("OutputError")
    assert "holds a run already" in first["again"]
    assert first["odd"] == second["odd"] == (
        "ConfigError: batch_size 7 does not divide among 2 ranks; use a multiple of 2"
    )  # fmt: skip


def test_an_error_in_a_callback_stops_every_rank(folder: Path) -> None:
    """Between two steps, after an evaluation, before the first step; Ctrl-C and an exit, too."""
    first, second = of_rank(folder, 0)["callbacks"], of_rank(folder, 1)["callbacks"]
    assert first == second
    wrong = "WrongCallbackError: not there"
    assert first == {
        **dict.fromkeys(("train", "eval", "forecast"), wrong), "interrupt": "KeyboardInterrupt: enough",
        "exit": "SystemExit: 3",
    }  # fmt: skip
    assert [record["step"] for record in records(folder / "wrong-1") if record["event"] == "train"] == [1]


def test_finetuning_in_two_processes_is_that_of_one(folder: Path) -> None:
    first, second = of_rank(folder, 0)["sft"], of_rank(folder, 1)["sft"]
    assert (
        [result["code"] for result in first] == [result["code"] for result in second] == [0, 1, *[0] * len(KINDS[1:])]
    )
    assert "holds a run already" in first.pop(1)["told"]
    second.pop(1)
    for name, result, other in zip(("sft", *[f"sft-{kind}" for kind in KINDS[1:]]), first, second, strict=True):
        assert_near(folder / name, folder / "one-sft")
        assert json.loads(result["output"])["steps"] == 4
        assert result["told"].count("training on") == 1
        assert (other["output"], other["told"]) == ("", "")


@pytest.mark.skipif("fsdp" in KINDS, reason="this torch has FSDP2 on CPUs")
def test_fsdp_is_refused_where_torch_has_none(folder: Path) -> None:
    assert of_rank(folder, 0)["refused"] == of_rank(folder, 1)["refused"]
    assert "cannot do on a cpu; use ddp, or a newer torch" in of_rank(folder, 0)["refused"]


def test_a_run_that_diverges_stops_on_every_rank(folder: Path) -> None:
    first, second = of_rank(folder, 0)["diverged"], of_rank(folder, 1)["diverged"]
    assert first == second
    assert first.startswith("DivergenceError")
    assert (folder / "diverged" / "diverged.safetensors").exists()


def test_a_budget_of_time_ends_on_all_ranks_at_once(folder: Path) -> None:
    assert of_rank(folder, 0)["seconds"] == of_rank(folder, 1)["seconds"] > 1


def test_more_than_three_epochs(folder: Path) -> None:
    assert of_rank(folder, 0)["epochs"] == 8
    assert records(folder / "epochs")[-2]["epoch"] > 3


def test_only_the_first_rank_calls_back(folder: Path) -> None:
    (forecast,) = of_rank(folder, 0)["forecasts"]
    assert "in each of 2 processes; 8 steps, about" in forecast
    assert of_rank(folder, 1)["forecasts"] == []


def test_the_command_under_torchrun_says_everything_once(tmp_path: Path) -> None:
    text = tmp_path / "book.txt"
    text.write_bytes(b"".join(runs.TEXT) * 8)
    settings = "--steps 2 --batch-size 4 --layers 1 --heads 2 --width 16 --context 16 --device cpu --json"
    command = ["-m", "fastcompress.cli", "train", "--corpus", str(text), "--run-dir", str(tmp_path / "run")]
    first, second = start_both([*command, *settings.split()])
    assert (first.returncode, second.returncode) == (0, 0), first.stderr + second.stderr
    assert json.loads(first.stdout)["steps"] == 2
    assert "2 steps, about" in first.stderr
    assert second.stdout == ""
    assert "steps" not in second.stderr
