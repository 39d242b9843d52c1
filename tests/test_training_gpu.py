"""What only a CUDA card can show: half precision, compilation, its generators. Run with ``pytest -m gpu``."""

from __future__ import annotations

import json
import math
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch

from fastcompress.codec import ByteCodec, LZ77Codec
from fastcompress.data.shards import TokenDataset
from fastcompress.evaluation.bits_per_byte import evaluate
from fastcompress.evaluation.generate import generate
from fastcompress.models.gpt import GPT, GPTConfig
from fastcompress.models.kinds import KINDS, make_model_config
from fastcompress.training.checkpoint import load_run
from fastcompress.training.config import TrainConfig
from fastcompress.training.device import autocast_for, loss_of
from fastcompress.training.optimizer import OptimizerStep, make_optimizer
from fastcompress.training.selfcheck import self_check
from fastcompress.training.train import TrainResult, train

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA card"),
]

CODEC = ByteCodec()
TEXT = [f"{i} sheep jumped over {i * 7} fences; then {i} more did. ".encode() * 20 for i in range(100)]
DATA = TokenDataset.from_documents(TEXT, CODEC)
PRESETS = {"workshop": GPTConfig.workshop, "modern": GPTConfig.modern}
SMALL = {
    "vocab_size": 257,
    "num_layers": 2,
    "num_heads": 2,
    "width": 64,
    "context_length": 64,
    "dropout": 0.0,
}
CONFIG = TrainConfig(
    steps=30, batch_size=16, learning_rate=3e-3, eval_every=10, log_every=1, compile="off", device="cuda"
)


def run(directory: Path, preset: str = "modern", **changes: Any) -> TrainResult:
    passed = {name: changes.pop(name) for name in ("resume", "on_metrics") if name in changes}
    model = PRESETS[preset](**{**SMALL, "dropout": changes.pop("dropout", 0.0)})
    config = CONFIG.override(changes)
    return train(model, CODEC, DATA, TEXT[:3], config, directory, progress=False, **passed)


def losses(directory: Path) -> list[float]:
    records = map(json.loads, (directory / "metrics.jsonl").read_text().splitlines())
    return [record["loss"] for record in records if record["event"] == "train"]


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("precision", ["auto", "bfloat16", "float16", "float32"])
def test_every_precision_learns(tmp_path: Path, preset: str, precision: str) -> None:
    """Loss scaling, too, on a card that does not need it; micro-batches and dropout on."""
    result = run(tmp_path, preset, precision=precision, micro_batch_size=8, dropout=0.1)
    scores = [point["validation_bits_per_byte"] for point in result.curve]
    assert scores[-1] < 0.75 * scores[0]
    assert all(math.isfinite(score) for score in scores)
    assert next(result.model.parameters()).device.type == "cuda"


def test_bfloat16_stays_near_float32(tmp_path: Path) -> None:
    run(tmp_path / "half", precision="bfloat16")
    run(tmp_path / "full", precision="float32")
    assert losses(tmp_path / "half") == pytest.approx(losses(tmp_path / "full"), rel=0.05)


@pytest.mark.parametrize("preset", PRESETS)
def test_compiled_training_is_eager_training(tmp_path: Path, preset: str) -> None:
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="torch.compile failed")  # what the fallback says
        run(tmp_path / "compiled", preset, compile="on", precision="float32")
    run(tmp_path / "eager", preset, compile="off", precision="float32")
    assert losses(tmp_path / "compiled") == pytest.approx(losses(tmp_path / "eager"), rel=0.02)


@pytest.mark.parametrize("kind", ["adamw", "muon"])
def test_a_recorded_step_is_the_step(tmp_path: Path, kind: str) -> None:
    """With micro-batches, a schedule whose rates change, and evaluations between replays."""
    settings = {"compile": "on", "optimizer": {"kind": kind}, "micro_batch_size": 8, "eval_every": 7}
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="the step cannot be recorded")
        run(tmp_path / "recorded", **settings)
    run(tmp_path / "launched", cuda_graph="off", **settings)
    assert losses(tmp_path / "recorded") == pytest.approx(losses(tmp_path / "launched"), rel=0.02)


@pytest.mark.parametrize("kind", KINDS)
def test_steps_of_every_kind_are_compiled_and_recorded(tmp_path: Path, kind: str) -> None:
    """A kind of which one of both fails trains all the same, several times slower; the warning alone says so."""
    windows = {"window": 16} if kind == "gpt" else {"local_window": 16, "local_heads": 2}
    codec = LZ77Codec() if kind == "lz-blt" else CODEC
    shape = {"kind": kind, "num_layers": 1, "num_heads": 2, "width": 64, "context_length": 64}
    model = make_model_config({**shape, **windows}, codec)
    data = TokenDataset.from_documents(TEXT, codec)
    config = CONFIG.override({"compile": "on", "optimizer": {"kind": "muon"}})
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="torch.compile failed")
        warnings.filterwarnings("error", message="the step cannot be recorded")
        result = train(model, codec, data, TEXT[:3], config, tmp_path, progress=False)
    scores = [point["validation_bits_per_byte"] for point in result.curve]
    assert scores[-1] < scores[0]


@pytest.mark.parametrize("compile_choice", ["off", "on"])
def test_resume_goes_on_where_it_stopped(tmp_path: Path, compile_choice: str) -> None:
    """Dropout is on: the card's generator must come back. Atomic additions make a card's sums inexact."""

    def stop(record: dict[str, Any]) -> None:
        if record["step"] == 15:
            raise KeyboardInterrupt

    settings = {"dropout": 0.2, "compile": compile_choice}
    run(tmp_path / "whole", **settings)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "parts", on_metrics=stop, **settings)
    run(tmp_path / "parts", resume=True, **settings)
    assert losses(tmp_path / "parts") == pytest.approx(losses(tmp_path / "whole"), rel=0.02)
    assert len(losses(tmp_path / "parts")) == 30


def test_global_generators_are_left_alone(tmp_path: Path) -> None:
    before = torch.get_rng_state(), torch.cuda.get_rng_state()
    run(tmp_path, steps=2, dropout=0.1)
    assert torch.equal(torch.get_rng_state(), before[0])
    assert torch.equal(torch.cuda.get_rng_state(), before[1])


def test_nothing_in_a_step_waits_for_the_card() -> None:
    """At most one synchronisation a step would halve the speed of small models; there must be none."""
    model = GPT(GPTConfig.modern(**SMALL)).cuda()
    step = OptimizerStep(
        loss_of(model),
        make_optimizer(model, CONFIG),
        micro_batch_size=8,
        clip_norm=1.0,
        autocast=autocast_for("bfloat16", "cuda"),
    )
    batch = model.random_batch(16, 64)
    step(batch, 1e-3)
    torch.cuda.set_sync_debug_mode("error")
    try:
        for _ in range(3):
            step(batch, 1e-3)
    finally:
        torch.cuda.set_sync_debug_mode("default")


@pytest.mark.parametrize("preset", PRESETS)
def test_self_check_passes_on_the_card(preset: str) -> None:
    self_check(GPT(PRESETS[preset](**SMALL)).cuda(), CONFIG)


def test_scores_and_text_agree_with_the_cpu(tmp_path: Path) -> None:
    run(tmp_path)
    scores, texts = [], []
    for device in ("cpu", "cuda"):
        model = load_run(tmp_path, device=device).model
        scores.append(evaluate(model, CODEC, TEXT[:5]).bits_per_byte)
        texts.append("".join(generate(model, CODEC, b"7 sheep", max_tokens=40, temperature=0.0)))
    assert scores[1] == pytest.approx(scores[0], rel=1e-3)
    assert texts[0][:10] == texts[1][:10]


def test_a_finished_run_moves_between_devices(tmp_path: Path) -> None:
    run(tmp_path, steps=10)
    result = run(tmp_path, steps=20, resume=True, device="cpu", precision="float32")
    assert result.steps == 20
    assert losses(tmp_path)[-1] < losses(tmp_path)[0]
