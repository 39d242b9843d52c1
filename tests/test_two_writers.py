"""Two programs that write one run or one study at once: the second is refused, the first goes on undisturbed."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path

import pytest

from fastcompress._locks import locked
from fastcompress.codec import ByteCodec
from fastcompress.data.shards import TokenDataset
from fastcompress.errors import OutputError
from fastcompress.models.gpt import GPTConfig
from fastcompress.study.arms import STUDIES
from fastcompress.study.runner import run_study
from fastcompress.training.config import TrainConfig
from fastcompress.training.train import train
from tests.forked_commands import Command, Server

TEXT = [b"a text of some length, to train on " * 20]
MODEL = ["--layers", "1", "--heads", "1", "--width", "16", "--context", "16", "--batch-size", "2", "--device", "cpu"]
LONG = "1000000"


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "corpus.txt"
    path.write_bytes(TEXT[0])
    return path


def wait_for(path: Path, process: Command) -> None:
    deadline = time.monotonic() + 120
    while not path.exists():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)


def stop(process: Command) -> None:
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)


@pytest.mark.slow
def test_a_second_train_on_a_run_is_refused(tmp_path: Path, corpus: Path, forked_commands: Server) -> None:
    run, command = tmp_path / "run", forked_commands.start
    options = ["--corpus", corpus, "--run-dir", run, "--steps", LONG, "--eval-every", LONG, *MODEL]
    first = command("train", *options)
    wait_for(run / "last.safetensors", first)
    before = (run / "config.json").read_bytes(), (run / "last.safetensors").read_bytes()
    for second in (command("train", *options), command("train", "--run-dir", run, "--resume")):
        _, said = second.communicate(timeout=120)
        assert second.returncode == 1
        assert said.startswith(f"error: {run}: ")
        assert len(said.splitlines()) == 1
    assert f"process {first.pid} on " in said
    assert ((run / "config.json").read_bytes(), (run / "last.safetensors").read_bytes()) == before
    readers = [command("eval", run), command("generate", run, "--max-tokens", 3)]  # reading needs no lock
    for reader in readers:
        _, said = reader.communicate(timeout=120)
        assert reader.returncode == 0, said
    assert first.poll() is None
    stop(first)
    assert not (run / ".lock").exists()


@pytest.mark.slow
def test_two_new_runs_at_once_leave_one(tmp_path: Path, corpus: Path, forked_commands: Server) -> None:
    run, command = tmp_path / "run", forked_commands.start
    both = [
        command("train", "--corpus", corpus, "--run-dir", run, "--steps", 300, "--seed", seed, *MODEL)
        for seed in (1, 2)
    ]
    said = [process.communicate(timeout=120)[1] for process in both]
    codes = [process.returncode for process in both]
    assert sorted(codes) == [0, 1], said
    winner = 1 + codes.index(0)
    assert json.loads((run / "config.json").read_text())["train"]["seed"] == winner
    steps = [json.loads(line)["step"] for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert steps == sorted(steps)
    assert steps[-1] == 300


@pytest.mark.slow
def test_a_killed_run_can_be_resumed_at_once(tmp_path: Path, corpus: Path, forked_commands: Server) -> None:
    run, command = tmp_path / "run", forked_commands.start
    options = ["--corpus", corpus, "--run-dir", run, "--steps", LONG, "--eval-every", LONG, *MODEL]
    first = command("train", *options)
    wait_for(run / "last.safetensors", first)
    first.kill()
    first.communicate()
    assert (run / ".lock").exists()
    second = command("train", "--run-dir", run, "--resume", "--steps", 10)
    _, said = second.communicate(timeout=120)
    assert second.returncode == 0, said


def test_the_library_refuses_a_second_writer(tmp_path: Path) -> None:
    model = GPTConfig.modern(vocab_size=257, num_layers=1, num_heads=1, width=16, context_length=16)
    config = TrainConfig(steps=2, batch_size=2, device="cpu", self_check=False)
    data = TokenDataset.from_documents(TEXT, ByteCodec())

    def start(resume: bool) -> None:
        train(model, ByteCodec(), data, TEXT, config, tmp_path / "run", resume=resume, progress=False)

    (tmp_path / "run").mkdir()
    with locked(tmp_path / "run"), pytest.raises(OutputError, match="is writing to it"):
        start(resume=False)
    start(resume=False)
    before = {path: path.read_bytes() for path in (tmp_path / "run").iterdir()}
    with locked(tmp_path / "run"), pytest.raises(OutputError, match="is writing to it"):
        start(resume=True)
    assert {path: path.read_bytes() for path in (tmp_path / "run").iterdir()} == before


def test_a_second_study_in_a_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    with locked(tmp_path / "out"), pytest.raises(OutputError, match="is writing to it"):
        run_study(STUDIES["quick"], tmp_path / "out", device="cpu", progress=False)
    assert not (tmp_path / "out" / "arms" / "study.json").exists()
