"""The trainer: it learns, stops and resumes to the bit, keeps the best, and names what is wrong."""

from __future__ import annotations

import dataclasses
import io
import json
import math
import re
import signal
import threading
import time
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from fastcompress.codec import ByteCodec, CharCodec
from fastcompress.data.loader import RowLoader
from fastcompress.data.rows import TokenRows
from fastcompress.data.shards import TokenDataset
from fastcompress.errors import ConfigError, DataError, DivergenceError, FormatError, MismatchError, OutputError
from fastcompress.evaluation.bits_per_byte import evaluate
from fastcompress.evaluation.flops import count_flops
from fastcompress.models.gpt import GPT, GPTConfig
from fastcompress.training.batches import BatchFeed
from fastcompress.training.checkpoint import load_run, read_checkpoint, write_checkpoint
from fastcompress.training.config import TrainConfig
from fastcompress.training.interrupt import InterruptGuard
from fastcompress.training.loop import TrainingRun
from fastcompress.training.train import TrainResult, train

CODEC = ByteCodec()
TEXT = [f"{i} sheep jumped over {i * 7} fences; then {i} more did. ".encode() * 4 for i in range(30)]
HELD_OUT = [f"{i} sheep jumped over {i * 3} fences; then one more did.".encode() for i in range(4)]
DATA = TokenDataset.from_documents(TEXT, CODEC)
MODEL = GPTConfig.modern(vocab_size=257, num_layers=1, num_heads=2, width=32, context_length=16, dropout=0.1)
CONFIG = TrainConfig(
    steps=12, batch_size=4, learning_rate=1e-2, eval_every=4, log_every=1, device="cpu", self_check=False
)


@pytest.fixture(autouse=True)
def _one_thread() -> Any:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def run(directory: Path, model: GPTConfig = MODEL, **changes: Any) -> TrainResult:
    """Train with CONFIG, ``changes`` made to it or passed on."""
    passed = {name: changes.pop(name) for name in ("resume", "on_metrics") if name in changes}
    config = dataclasses.replace(CONFIG, **changes)
    return train(model, CODEC, DATA, HELD_OUT, config, directory, progress=False, **passed)


def metrics(directory: Path, event: str) -> list[dict[str, Any]]:
    lines = (directory / "metrics.jsonl").read_text().splitlines()
    return [record for record in map(json.loads, lines) if record["event"] == event]


def timeless(directory: Path) -> list[dict[str, Any]]:
    """All records without what is measured: the clock, and the memory of the process."""
    lines = (directory / "metrics.jsonl").read_text().splitlines()
    measured = {"seconds", "tokens_per_second", "bytes_per_second", "mfu", "peak_memory_bytes"}
    return [{k: v for k, v in json.loads(line).items() if k not in measured} for line in lines]


def weights(path: Path) -> dict[str, torch.Tensor]:
    return read_checkpoint(path).tensors


def assert_same_tensors(a: Path, b: Path) -> None:
    first, second = weights(a), weights(b)
    assert first.keys() == second.keys()
    for name in first:
        assert torch.equal(first[name], second[name]), name


def stop_at(step: int, event: str, stop: Callable[[], None]) -> Callable[[dict[str, Any]], None]:
    def on_metrics(record: dict[str, Any]) -> None:
        if record["step"] == step and record["event"] == event:
            stop()

    return on_metrics


def control_c() -> None:
    raise KeyboardInterrupt


# --- A whole run -----------------------------------------------------------------------------------------


def test_a_run_learns_and_leaves_its_files(tmp_path: Path) -> None:
    seen: list[dict[str, Any]] = []
    result = run(tmp_path / "run", steps=60, eval_every=20, on_metrics=seen.append, self_check=True)
    curve = result.curve
    assert [point["step"] for point in curve] == [0, 20, 40, 60]
    assert curve[0]["train_bits_per_byte"] is None
    assert curve[0]["validation_bits_per_byte"] == pytest.approx(math.log2(257), rel=0.06)
    assert curve[-1]["validation_bits_per_byte"] < 0.6 * curve[0]["validation_bits_per_byte"]
    assert curve[-1]["train_bits_per_byte"] == pytest.approx(curve[-1]["validation_bits_per_byte"], rel=0.25)
    assert (result.steps, result.tokens) == (60, 60 * 4 * 16)
    assert result.flops == count_flops(result.model).training_per_token * result.tokens
    assert result.tokens_per_second == pytest.approx(result.tokens / result.seconds)
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == [
        "best.safetensors",
        "codec.json",
        "config.json",
        "last.safetensors",
        "metrics.jsonl",
    ]
    assert [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()] == seen
    assert not result.model.training


def test_train_bits_per_byte_are_the_loss_over_the_corpus_ratio(tmp_path: Path) -> None:
    run(tmp_path, steps=2)
    line = metrics(tmp_path, "train")[0]
    ratio = DATA.num_tokens / DATA.num_bytes
    assert ratio > 1.0  # ends of documents
    assert line["train_bits_per_byte"] == pytest.approx(line["loss"] / math.log(2) * ratio)
    assert line["epoch"] == pytest.approx(4 / (DATA.num_tokens // 16))


def test_logged_loss_is_the_mean_since_the_last_line(tmp_path: Path) -> None:
    run(tmp_path / "each", steps=6, eval_every=100)
    run(tmp_path / "third", steps=6, eval_every=100, log_every=3)
    each = [line["loss"] for line in metrics(tmp_path / "each", "train")]
    third = [line["loss"] for line in metrics(tmp_path / "third", "train")]
    assert third == pytest.approx([np.mean(each[:3]), np.mean(each[3:])])


def test_the_best_weights_are_kept_and_returned(tmp_path: Path) -> None:
    """A corpus of one sentence is soon learnt by heart, and other text then costs more and more."""
    data = TokenDataset.from_documents([b"All work and no play makes Jack a dull boy. "], CODEC)
    config = dataclasses.replace(CONFIG, steps=60, eval_every=5)
    result = train(MODEL, CODEC, data, HELD_OUT, config, tmp_path, progress=False)
    scores = {point["step"]: point["validation_bits_per_byte"] for point in result.curve}
    assert result.best_step == min(scores, key=lambda step: scores[step])
    assert 0 < result.best_step < 60
    for model in (result.model, load_run(tmp_path).model):
        score = evaluate(model, CODEC, HELD_OUT, stride=16)
        assert score.bits_per_byte == pytest.approx(scores[result.best_step], rel=1e-6)
    last = load_run(tmp_path, which="last")
    assert evaluate(last.model, CODEC, HELD_OUT, stride=16).bits_per_byte == pytest.approx(scores[60], rel=1e-6)
    assert (last.step, load_run(tmp_path).step) == (60, result.best_step)


def test_two_runs_of_one_seed_are_equal_and_leave_global_randomness_alone(tmp_path: Path) -> None:
    torch.manual_seed(11)
    before = torch.get_rng_state()
    run(tmp_path / "a")
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(12)
    run(tmp_path / "b")
    assert timeless(tmp_path / "a") == timeless(tmp_path / "b")
    run(tmp_path / "c", seed=1)
    assert timeless(tmp_path / "a") != timeless(tmp_path / "c")


def test_micro_batches_change_rounding_only(tmp_path: Path) -> None:
    model = dataclasses.replace(MODEL, dropout=0.0)
    losses = []
    for micro in (None, 2, 1):
        run(tmp_path / str(micro), model, micro_batch_size=micro)
        losses.append([line["loss"] for line in metrics(tmp_path / str(micro), "train")])
    assert losses[1] == pytest.approx(losses[0], rel=1e-3)
    assert losses[2] == pytest.approx(losses[0], rel=1e-3)


def test_the_self_check_changes_no_number(tmp_path: Path) -> None:
    run(tmp_path / "with", self_check=True)
    run(tmp_path / "without", self_check=False)
    assert timeless(tmp_path / "with") == timeless(tmp_path / "without")


def test_intermediate_evaluations_read_no_more_than_asked(tmp_path: Path) -> None:
    result = run(tmp_path, eval_bytes=70)
    first = len(HELD_OUT[0])
    assert first < 70 < first + len(HELD_OUT[1])
    documents = [HELD_OUT[0], HELD_OUT[1][: 70 - first]]
    expected = evaluate(load_run(tmp_path, which="last").model, CODEC, documents, stride=16)
    assert result.curve[-1]["validation_bits_per_byte"] == pytest.approx(expected.bits_per_byte, rel=1e-6)


# --- Horizons --------------------------------------------------------------------------------------------


def test_a_flop_budget_becomes_whole_steps(tmp_path: Path) -> None:
    per_step = count_flops(GPT(MODEL)).training_per_token * 4 * 16
    result = run(tmp_path, steps=None, flops=7.9 * per_step)
    assert result.steps == 7
    assert result.flops == 7 * per_step
    with pytest.raises(ConfigError, match="less than one step"):
        run(tmp_path / "small", steps=None, flops=0.5 * per_step)
    assert not (tmp_path / "small").exists()


def test_a_time_budget_is_spent(tmp_path: Path) -> None:
    since = time.perf_counter()
    result = run(tmp_path, steps=None, seconds=2.0, eval_every=None, num_evals=3)
    wall = time.perf_counter() - since
    assert 1.0 < result.seconds <= wall
    assert 3 <= len(result.curve) <= 4
    assert 1.8 < wall < 4.0
    assert result.tokens_per_second == pytest.approx(result.tokens / result.seconds)
    rates = [line["learning_rate"] for line in metrics(tmp_path, "train")]
    assert max(rates) == pytest.approx(1e-2)
    assert rates[-1] < max(rates)


@pytest.mark.parametrize("num_evals", [1, 20])
def test_a_time_budget_includes_evaluations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, num_evals: int) -> None:
    """Twenty evaluations of 0.3 s would take more than the budget; a quarter of it goes to them, and the last one.

    On a clock by which a step takes 0.05 s.
    """
    clock = types.SimpleNamespace(now=0.0)
    monkeypatch.setattr("fastcompress.training.device.time", types.SimpleNamespace(perf_counter=lambda: clock.now))
    make_one_step = TrainingRun.make_one_step

    def timed_step(self: TrainingRun) -> None:
        make_one_step(self)
        clock.now += 0.05

    def timed_evaluate(*arguments: Any, **settings: Any) -> Any:
        clock.now += 0.3
        return evaluate(*arguments, **settings)

    monkeypatch.setattr(TrainingRun, "make_one_step", timed_step)
    monkeypatch.setattr("fastcompress.training.loop.evaluate", timed_evaluate)
    result = run(tmp_path, steps=None, seconds=4.0, eval_every=None, num_evals=num_evals)
    assert clock.now == pytest.approx(4.0, abs=0.05)
    assert len(result.curve) == (2 if num_evals == 1 else 3)
    assert result.curve[0]["step"] == 0
    assert result.curve[-1]["step"] == result.steps
    assert result.seconds == pytest.approx(0.05 * result.steps)  # training alone
    assert result.tokens_per_second == pytest.approx(result.tokens / result.seconds)


def test_a_time_budget_goes_on_where_it_stopped(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, steps=None, seconds=600.0, eval_every=None, on_metrics=stop_at(9, "train", control_c))
    spent = read_checkpoint(tmp_path / "last.safetensors").state["progress"]["wall_seconds"]
    assert spent > 0.0
    since = time.perf_counter()
    result = run(tmp_path, steps=None, seconds=spent + 1.0, eval_every=None, resume=True)
    assert 0.5 < time.perf_counter() - since < 3.0
    assert result.new_steps > 0
    assert run(tmp_path, steps=None, seconds=spent + 1.0, eval_every=None, resume=True).new_steps == 0


@pytest.mark.slow
def test_a_time_budget_cuts_what_is_scored_to_a_tenth(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a clock by which a byte is scored in 1 ms, a budget of 20 s pays for 2,000 bytes an evaluation."""
    clock = types.SimpleNamespace(now=0.0)
    monkeypatch.setattr("fastcompress.training.device.time", types.SimpleNamespace(perf_counter=lambda: clock.now))
    make_one_step, validation = TrainingRun.make_one_step, [b"ab" * 300] * 20
    sizes: list[int] = []

    def timed_step(self: TrainingRun) -> None:
        make_one_step(self)
        clock.now += 3.0

    def timed_evaluate(model: GPT, codec: ByteCodec, documents: list[bytes], **settings: Any) -> Any:
        sizes.append(sum(map(len, documents)))
        clock.now += sizes[-1] / 1000
        return evaluate(model, codec, documents, **settings)

    def run_for(seconds: float, directory: Path, **settings: Any) -> TrainResult:
        config = dataclasses.replace(CONFIG, steps=None, seconds=seconds, eval_every=None, num_evals=1, **settings)
        resume = (directory / "config.json").exists()
        return train(MODEL, CODEC, DATA, validation, config, directory, resume=resume, progress=False)

    monkeypatch.setattr(TrainingRun, "make_one_step", timed_step)
    monkeypatch.setattr("fastcompress.training.loop.evaluate", timed_evaluate)
    result = run_for(20.0, tmp_path / "a")
    assert sizes == [1024, 2000, 2000]
    assert result.steps == 5  # 3 s of evaluations, then steps up to 18 s, then the last evaluation
    assert clock.now == pytest.approx(20.024)
    assert [record["validation_bytes"] for record in metrics(tmp_path / "a", "eval")] == [2000, 2000]

    assert run_for(20.0, tmp_path / "a").new_steps == 0
    assert run_for(40.0, tmp_path / "a").new_steps > 0  # on the same sample, so that scores compare
    assert set(sizes[3:]) == {2000}
    del sizes[:]
    run_for(1000.0, tmp_path / "a", eval_bytes=5000)
    assert sizes[:2] == [1024, 5000]  # another sample: measured again, and now it fits
    del sizes[:]
    assert run_for(1.0, tmp_path / "b").steps == 1
    assert sizes == [1024, 1024, 1024]


def test_the_clock_stands_still_during_evaluations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(*arguments: Any, **settings: Any) -> Any:
        time.sleep(0.3)
        return evaluate(*arguments, **settings)

    monkeypatch.setattr("fastcompress.training.loop.evaluate", slow)
    result = run(tmp_path, steps=3, eval_every=1)
    assert result.seconds < 0.9
    assert result.curve[-1]["seconds"] == pytest.approx(result.seconds, abs=0.1)


def test_tokens_per_second_are_those_of_the_training_clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Step s takes s seconds of a clock that only the test moves, and each evaluation 1,000, which do not count."""
    clock = types.SimpleNamespace(now=50.0)
    monkeypatch.setattr("fastcompress.training.device.time", types.SimpleNamespace(perf_counter=lambda: clock.now))
    make_one_step = TrainingRun.make_one_step

    def timed_step(self: TrainingRun) -> None:
        make_one_step(self)
        clock.now += self.at.step

    def slow_evaluate(*arguments: Any, **settings: Any) -> Any:
        clock.now += 1000.0
        return evaluate(*arguments, **settings)

    monkeypatch.setattr(TrainingRun, "make_one_step", timed_step)
    monkeypatch.setattr("fastcompress.training.loop.evaluate", slow_evaluate)
    tokens = CONFIG.batch_size * MODEL.context_length  # per step

    first = run(tmp_path, steps=4, eval_every=4, log_every=2)
    assert (first.seconds, first.tokens_per_second) == (1 + 2 + 3 + 4, 4 * tokens / 10)
    clock.now += 7.0  # between two calls no time passes for a run
    second = run(tmp_path, steps=7, eval_every=4, log_every=2, resume=True)
    assert (second.seconds, second.tokens_per_second) == (10 + 5 + 6 + 7, 7 * tokens / 28)
    lines = [(record["step"], record["seconds"], record["tokens_per_second"]) for record in metrics(tmp_path, "train")]
    assert lines == [
        (2, 3, 2 * tokens / (1 + 2)),
        (4, 10, 2 * tokens / (3 + 4)),
        (6, 21, 2 * tokens / (5 + 6)),
        (7, 28, tokens / 7),
    ]


def test_evaluations_spread_evenly_by_default(tmp_path: Path) -> None:
    result = run(tmp_path, steps=10, eval_every=None, num_evals=4)
    assert [point["step"] for point in result.curve] == [0, 3, 5, 8, 10]


# --- Stop and resume -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("step", "event"), [(5, "train"), (8, "train"), (8, "eval"), (12, "eval")])
def test_a_resumed_run_is_the_uninterrupted_one_to_the_bit(tmp_path: Path, step: int, event: str) -> None:
    """Dropout is on, so the generator's state must come back too."""
    run(tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "parts", on_metrics=stop_at(step, event, control_c))
    assert read_checkpoint(tmp_path / "parts" / "last.safetensors").state["progress"]["step"] == step
    result = run(tmp_path / "parts", resume=True)
    assert timeless(tmp_path / "parts") == timeless(tmp_path / "whole")
    assert_same_tensors(tmp_path / "parts" / "last.safetensors", tmp_path / "whole" / "last.safetensors")
    assert_same_tensors(tmp_path / "parts" / "best.safetensors", tmp_path / "whole" / "best.safetensors")
    assert [point["step"] for point in result.curve] == [0, 4, 8, 12]


@pytest.mark.parametrize(("number", "error"), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, SystemExit)])
def test_a_signal_finishes_the_step_and_saves(tmp_path: Path, number: int, error: type[BaseException]) -> None:
    """Between two training lines, so the running mean of the loss must come back too."""
    run(tmp_path / "whole", log_every=5)
    handlers = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)

    with pytest.raises(error) as caught:
        run(
            tmp_path / "parts",
            log_every=5,
            on_metrics=stop_at(5, "train", lambda: signal.raise_signal(number)),
        )
    assert not isinstance(caught.value, SystemExit) or caught.value.code == 143
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == handlers
    with pytest.raises(error):
        run(
            tmp_path / "parts",
            log_every=5,
            resume=True,
            on_metrics=stop_at(8, "eval", lambda: signal.raise_signal(number)),
        )
    stopped = read_checkpoint(tmp_path / "parts" / "last.safetensors").state
    assert stopped["progress"]["step"] in (8, 9)
    run(tmp_path / "parts", log_every=5, resume=True)
    assert timeless(tmp_path / "parts") == timeless(tmp_path / "whole")


def test_a_crash_resumes_from_the_last_evaluation(tmp_path: Path) -> None:
    """What was logged after the checkpoint happens again, and stands in the metrics once."""

    def crash() -> None:
        raise RuntimeError("power cut")

    run(tmp_path / "whole")
    with pytest.raises(RuntimeError, match="power cut"):
        run(tmp_path / "parts", on_metrics=stop_at(7, "train", crash))
    assert [line["step"] for line in metrics(tmp_path / "parts", "train")] == [1, 2, 3, 4, 5, 6, 7]
    with (tmp_path / "parts" / "metrics.jsonl").open("a") as file:
        file.write('{"event": "tra')  # torn line
    run(tmp_path / "parts", resume=True)
    assert timeless(tmp_path / "parts") == timeless(tmp_path / "whole")
    assert_same_tensors(tmp_path / "parts" / "last.safetensors", tmp_path / "whole" / "last.safetensors")


def test_a_run_stopped_before_its_first_checkpoint_starts_again(tmp_path: Path) -> None:
    run(tmp_path / "whole")
    run(tmp_path / "parts", steps=1)
    for name in ("last.safetensors", "best.safetensors"):
        (tmp_path / "parts" / name).unlink()
    run(tmp_path / "parts", resume=True)
    assert timeless(tmp_path / "parts") == timeless(tmp_path / "whole")


def test_resuming_a_finished_run_gives_its_result(tmp_path: Path) -> None:
    first = run(tmp_path)
    again = run(tmp_path, resume=True)
    assert (again.steps, again.curve, again.best_step) == (first.steps, first.curve, first.best_step)
    assert again.seconds == pytest.approx(first.seconds, abs=0.05)


def test_a_resumed_run_may_be_longer_and_evaluate_at_other_times(tmp_path: Path) -> None:
    run(tmp_path, steps=4, eval_every=1)
    result = run(tmp_path, steps=12, eval_every=4, resume=True)
    assert [point["step"] for point in result.curve] == [0, 1, 2, 3, 4, 8, 12]
    result = run(tmp_path, steps=20, eval_every=None, num_evals=5, resume=True)
    assert [point["step"] for point in result.curve] == [0, 1, 2, 3, 4, 8, 12, 16, 20]
    assert load_run(tmp_path, which="last").config.steps == 20


def test_a_done_run_stays_as_it_is_when_asked_for_less(tmp_path: Path) -> None:
    first = run(tmp_path, steps=8)
    (tmp_path / "metrics.jsonl").unlink()
    before = {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in tmp_path.iterdir()}
    for steps in (4, 8):
        again = run(tmp_path, steps=steps, resume=True)
        assert (again.new_steps, again.steps, again.curve) == (0, 8, [])
        assert (again.best_step, again.best_bits_per_byte) == (first.best_step, first.best_bits_per_byte)
    assert {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in tmp_path.iterdir()} == before
    assert (first.new_steps, run(tmp_path, steps=10, resume=True).new_steps) == (8, 2)


def test_a_stopped_run_is_not_cut_shorter_than_it_is(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, on_metrics=stop_at(7, "train", control_c))
    before = (tmp_path / "config.json").read_bytes()
    with pytest.raises(ConfigError, match="has made 7 steps, more than the 6 asked for"):
        run(tmp_path, steps=6, resume=True)
    assert (tmp_path / "config.json").read_bytes() == before
    assert run(tmp_path, steps=7, resume=True).steps == 7


def test_the_best_restarts_on_another_validation_sample(tmp_path: Path) -> None:
    """Scores on 20 bytes say nothing about scores on all: without a restart an easy sample stays best for ever."""
    run(tmp_path, steps=8, eval_bytes=20)
    path = tmp_path / "last.safetensors"
    saved = read_checkpoint(path)
    saved.state["progress"]["best_bits_per_byte"] = 0.001
    write_checkpoint(path, saved.tensors, saved.state)
    same = run(tmp_path, steps=12, eval_bytes=20, resume=True)
    assert (same.best_bits_per_byte, [point["step"] for point in same.curve]) == (0.001, [0, 4, 8, 12])
    other = run(tmp_path, steps=16, eval_bytes=None, resume=True)
    assert [point["step"] for point in other.curve] == [0, 4, 8, 12, 12, 16]
    best = min(other.curve[-2:], key=lambda point: point["validation_bits_per_byte"])
    assert (other.best_step, other.best_bits_per_byte) == (best["step"], best["validation_bits_per_byte"])
    score = evaluate(load_run(tmp_path).model, CODEC, HELD_OUT, stride=16)
    assert score.bits_per_byte == pytest.approx(other.best_bits_per_byte, rel=1e-6)


def test_a_finished_run_is_scored_again_on_another_sample(tmp_path: Path) -> None:
    run(tmp_path, eval_bytes=20)
    result = run(tmp_path, eval_bytes=None, resume=True)
    assert (result.new_steps, result.best_step) == (0, 12)
    assert result.best_bits_per_byte == result.curve[-1]["validation_bits_per_byte"]


def test_resuming_on_other_text_names_what_differs(tmp_path: Path) -> None:
    run(tmp_path, steps=2)
    before = (tmp_path / "config.json").read_bytes()
    more = TokenDataset.from_documents([*TEXT, b"more"], CODEC)
    swapped = TokenDataset.from_documents(TEXT[::-1], CODEC)
    for data, held_out, message in (
        (more, HELD_OUT, r"its training text is not what the run began with \(31 documents.*; then 30 documents"),
        (swapped, HELD_OUT, r"its training text .* fingerprint [0-9a-f]{8}; then .* fingerprint [0-9a-f]{8}\)"),
        (DATA, HELD_OUT[:3], r"its validation text is not what the run began with \(3 documents, .*; then 4 documents"),
    ):
        with pytest.raises(MismatchError, match=message):
            train(MODEL, CODEC, data, held_out, CONFIG, tmp_path, resume=True, progress=False)
    assert (tmp_path / "config.json").read_bytes() == before


def test_a_run_that_lost_its_last_checkpoint_does_not_overwrite_its_best(tmp_path: Path) -> None:
    run(tmp_path)
    (tmp_path / "last.safetensors").unlink()
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(DataError, match=r"last\.safetensors is missing.* would overwrite best\.safetensors"):
        run(tmp_path, resume=True)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_lost_best_is_made_again(tmp_path: Path) -> None:
    run(tmp_path)
    (tmp_path / "best.safetensors").unlink()
    result = run(tmp_path, resume=True)
    assert (result.new_steps, result.best_step, load_run(tmp_path).step) == (0, 12, 12)


def test_all_is_checked_before_the_run_is_there(tmp_path: Path) -> None:
    calls: list[list[str]] = []

    def ready() -> None:
        calls.append(sorted(path.name for path in tmp_path.iterdir()))

    with pytest.raises(ConfigError, match="less than one step"):
        train(
            MODEL, CODEC, DATA, HELD_OUT, dataclasses.replace(CONFIG, steps=None, flops=1.0), tmp_path, on_ready=ready
        )
    assert calls == []
    train(MODEL, CODEC, DATA, HELD_OUT, CONFIG, tmp_path, on_ready=ready, progress=False)
    assert calls == [[".lock", "codec.json", "config.json"]]


def test_another_run_is_not_overwritten(tmp_path: Path) -> None:
    run(tmp_path, steps=1)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(OutputError, match=r"holds a run already .*; resume it, or choose another directory"):
        run(tmp_path, steps=2)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"format": "fastcompress-run", "version": 1, "model": 3}'])
def test_a_damaged_configuration_is_not_resumed(tmp_path: Path, content: str) -> None:
    run(tmp_path, steps=1)
    (tmp_path / "config.json").write_text(content)
    with pytest.raises(FormatError, match=r"config\.json"):
        run(tmp_path, resume=True)


def test_nothing_to_resume_is_said(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="holds no run to resume"):
        run(tmp_path / "nowhere", resume=True)
    assert not (tmp_path / "nowhere").exists()


def test_an_unwritable_directory_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(OutputError, match=r"file/run: cannot be written"):
        run(tmp_path / "file" / "run")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"width": 64}, "model setting width is 32, not 64"),
        ({"dropout": 0.0}, "model setting dropout is 0.1, not 0.0"),
        ({"seed": 1}, "training setting seed is 0, not 1"),
        ({"batch_size": 8}, "training setting batch_size is 4, not 8"),
    ],
)
def test_resuming_another_run_names_the_difference(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    run(tmp_path, steps=1)
    of_model = {k: v for k, v in change.items() if k in ("width", "dropout")}
    of_training = {k: v for k, v in change.items() if k not in of_model}
    with pytest.raises(MismatchError, match=message):
        run(tmp_path, dataclasses.replace(MODEL, **of_model), resume=True, **of_training)


def test_resuming_with_another_codec_is_refused(tmp_path: Path) -> None:
    run(tmp_path, steps=1)

    class OtherBytes(ByteCodec):
        name, fingerprint = "other", "0" * 64

    codec = OtherBytes()
    data = TokenDataset.from_documents(TEXT, codec)
    with pytest.raises(MismatchError, match="was trained with codec byte, not this other"):
        train(MODEL, codec, data, HELD_OUT, CONFIG, tmp_path, resume=True, progress=False)


# --- What cannot be trained ------------------------------------------------------------------------------


def test_a_diverged_run_stops_and_keeps_its_last_good_checkpoint(tmp_path: Path) -> None:
    with pytest.raises(DivergenceError, match=r"no longer finite .*: lower learning_rate \(1e\+30\).* step 0"):
        run(tmp_path, learning_rate=1e30, warmup=0.0, log_every=3)
    last = read_checkpoint(tmp_path / "last.safetensors")
    assert last.state["progress"]["step"] == 0
    assert all(torch.isfinite(tensor.float()).all() for tensor in last.tensors.values())


def test_an_interrupted_diverged_run_is_not_saved_over_the_good_one(tmp_path: Path) -> None:
    class InterruptingData(TokenDataset):
        num_calls = 0

        def read(self, begin: int, end: int) -> np.ndarray:
            self.num_calls += 1
            if self.num_calls == 8 * CONFIG.batch_size:  # by the reading thread; Python handles it in the main one
                signal.raise_signal(signal.SIGINT)
            return super().read(begin, end)

    data = InterruptingData.from_documents(TEXT, CODEC)
    config = dataclasses.replace(CONFIG, learning_rate=1e30, warmup=0.0, steps=40, eval_every=40, log_every=40)
    with pytest.raises(KeyboardInterrupt):
        train(MODEL, CODEC, data, HELD_OUT, config, tmp_path, progress=False)
    assert read_checkpoint(tmp_path / "last.safetensors").state["progress"]["step"] == 0


def test_parts_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    chars = CharCodec.train(TEXT)
    with pytest.raises(MismatchError, match="was not encoded by codec char-"):
        train(MODEL, chars, DATA, HELD_OUT, CONFIG, tmp_path / "run", progress=False)
    with pytest.raises(ConfigError, match="vocab_size is 256, but codec byte and the end of document need 257"):
        run(tmp_path / "run", dataclasses.replace(MODEL, vocab_size=256))
    with pytest.raises(DataError, match="no validation text"):
        train(MODEL, CODEC, DATA, [b""], CONFIG, tmp_path / "run", progress=False)
    tiny = TokenDataset.from_documents([b"x"], CODEC)
    with pytest.raises(DataError, match="too few for a context"):
        train(MODEL, CODEC, tiny, HELD_OUT, CONFIG, tmp_path / "run", progress=False)
    assert not (tmp_path / "run").exists()


# --- Parts -----------------------------------------------------------------------------------------------


def test_batches_are_the_loaders_in_any_order() -> None:
    loader, alone = (RowLoader(DATA, TokenRows(CODEC, 16), batch_size=4, seed=3) for _ in range(2))
    with BatchFeed(loader, torch.device("cpu")) as feed:
        for step in (0, 1, 2, 7, 7, 3, 4):
            given, expected = feed.batch(step), alone.batch(step)
            assert given.keys() == expected.keys()
            for name, column in expected.items():
                assert given[name].numpy().dtype == column.dtype
                np.testing.assert_array_equal(given[name].numpy(), column)


def test_a_readers_error_arrives_where_the_batch_is_wanted() -> None:
    class Damaged(TokenDataset):
        def read(self, begin: int, end: int) -> np.ndarray:
            raise DataError("damaged shard")

    loader = RowLoader(Damaged.from_documents(TEXT, CODEC), TokenRows(CODEC, 16), batch_size=4, seed=3)
    with BatchFeed(loader, torch.device("cpu")) as feed, pytest.raises(DataError, match="damaged shard"):
        feed.batch(0)


def test_a_second_signal_acts_at_once() -> None:
    received: list[int] = []
    previous = signal.signal(signal.SIGINT, lambda number, _: received.append(number))
    try:
        with InterruptGuard() as guard:
            guard.check()
            signal.raise_signal(signal.SIGINT)
            assert received == []
            signal.raise_signal(signal.SIGINT)
            assert received == [signal.SIGINT]
            with pytest.raises(KeyboardInterrupt):
                guard.check()
    finally:
        signal.signal(signal.SIGINT, previous)


def test_under_torchrun_a_signal_that_comes_twice_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """It comes from the terminal and from torchrun; later on, it acts as it would without the guard."""
    clock = types.SimpleNamespace(now=0.0)
    monkeypatch.setattr("fastcompress.training.interrupt.time", types.SimpleNamespace(monotonic=lambda: clock.now))
    with InterruptGuard(10.0) as guard:
        for clock.now in (1.0, 2.0):
            signal.raise_signal(signal.SIGINT)
        assert guard.received == signal.SIGINT
        clock.now = 12.0
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


def test_the_first_signal_says_what_happens(capfd: pytest.CaptureFixture[str]) -> None:
    with InterruptGuard():
        signal.raise_signal(signal.SIGINT)
    assert capfd.readouterr().err == "\nstopping after this step and saving; once more to stop at once\n"


def test_a_signal_stops_an_evaluation_between_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And the resumed run makes that evaluation, as if nothing had happened."""
    batches: list[int] = []

    def interrupted(*arguments: Any, progress: Callable[[int, int], None], **settings: Any) -> Any:
        def count(done: int, total: int) -> None:
            batches.append(total)
            if len(batches) == 1:
                signal.raise_signal(signal.SIGINT)
            progress(done, total)

        return evaluate(*arguments, progress=count, **settings)

    run(tmp_path / "whole", eval_batch_size=1)
    monkeypatch.setattr("fastcompress.training.loop.evaluate", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "parts", eval_batch_size=1)
    assert len(batches) == 1 < batches[0]
    monkeypatch.undo()
    run(tmp_path / "parts", eval_batch_size=1, resume=True)
    assert timeless(tmp_path / "parts") == timeless(tmp_path / "whole")


def test_outside_the_main_thread_signals_are_left_alone() -> None:
    results: list[int | None] = []

    def guarded() -> None:
        with InterruptGuard() as guard:
            guard.check()
            results.append(guard.received)

    thread = threading.Thread(target=guarded)
    thread.start()
    thread.join()
    assert results == [None]


def test_no_progress_bar_where_there_is_no_terminal(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    train(MODEL, CODEC, DATA, HELD_OUT, CONFIG, tmp_path, progress=True)
    assert capfd.readouterr() == ("", "")


def test_lines_of_progress_where_there_is_no_terminal(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fastcompress.training.metrics.SECONDS_PER_LINE", 0.0)
    train(MODEL, CODEC, DATA, HELD_OUT, CONFIG, tmp_path, progress=True)
    lines = capfd.readouterr().err.splitlines()
    assert len(lines) == 16
    assert re.fullmatch(r"step 12 of 12, \d+ s: loss \d.*, .* bits/byte, val \d\.\d+, .*tokens/s", lines[-1])
    train(MODEL, CODEC, DATA, HELD_OUT, CONFIG, tmp_path / "quiet", progress=False)
    assert capfd.readouterr().err == ""


def test_the_progress_bar_shows_what_a_person_wants_to_know(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    train(MODEL, CODEC, DATA, HELD_OUT, CONFIG, tmp_path, progress=True)
    last = terminal.getvalue().split("\r")[-1]
    pattern = r"100% \|.*\| 12/12 steps, \d\d:\d\d left, loss \d.*, .* bits/byte, val \d\.\d+, .*tokens/s"
    assert re.search(pattern, last), last


@pytest.mark.parametrize(("part", "name"), [("progress", "step"), ("codec", "fingerprint")])
def test_a_checkpoint_with_damaged_state_is_not_resumed(tmp_path: Path, part: str, name: str) -> None:
    run(tmp_path, steps=1)
    saved = read_checkpoint(tmp_path / "last.safetensors")
    saved.state[part][name + "?"] = saved.state[part].pop(name)
    write_checkpoint(tmp_path / "last.safetensors", saved.tensors, saved.state)
    with pytest.raises(FormatError, match=r"last\.safetensors: its progress is damaged"):
        run(tmp_path, resume=True)
