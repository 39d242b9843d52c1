"""The trainer's parts on their own: settings, schedule, optimizer step, and what a GPU machine chooses."""

from __future__ import annotations

import dataclasses
import math
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from fastcompress.codec import ByteCodec
from fastcompress.data.shards import TokenDataset
from fastcompress.errors import ConfigError
from fastcompress.models.gpt import GPT, GPTConfig
from fastcompress.models.protocol import Batch
from fastcompress.training import device as devices
from fastcompress.training.config import TrainConfig
from fastcompress.training.device import (
    Stopwatch,
    autocast_for,
    choose_device,
    choose_precision,
    compiled_or_eager,
    loss_of,
    scaler_for,
)
from fastcompress.training.optimizer import OptimizerStep, make_optimizer
from fastcompress.training.schedule import Horizon, learning_rate_multiplier
from fastcompress.training.train import train

MODEL = GPTConfig.workshop(vocab_size=257, num_layers=1, num_heads=2, width=16, context_length=8, bias=True)

# --- Settings --------------------------------------------------------------------------------------------


def test_settings_survive_json() -> None:
    config = TrainConfig(flops=1e12, micro_batch_size=8, schedule="cosine", clip_norm=None)
    assert TrainConfig.from_json(config.to_json()) == config
    with pytest.raises(ConfigError, match=r"unknown training setting 'lr'; known: .*learning_rate"):
        TrainConfig.from_json({"steps": 1, "lr": 1e-3})


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "exactly one horizon of steps, tokens, flops, seconds; got none"),
        ({"steps": 1, "seconds": 2.0}, "got steps and seconds"),
        ({"steps": 0}, "steps must be a whole number"),
        ({"steps": 1.5}, "steps must be a whole number"),
        ({"flops": -1.0}, "flops must be more than 0"),
        ({"seconds": math.inf}, "seconds must be more than 0 and finite"),
        ({"steps": 1, "learning_rate": math.nan}, "learning_rate"),
        ({"steps": 1, "learning_rate": 0.0}, "learning_rate"),
        ({"steps": 1, "learning_rate": None}, "learning_rate"),
        ({"steps": 1, "learning_rate": "fast"}, "learning_rate"),
        ({"steps": 1, "batch_size": 6, "micro_batch_size": 4}, "micro_batch_size 4 must divide batch_size 6"),
        ({"steps": 1, "micro_batch_size": 0}, "micro_batch_size must be a whole number"),
        ({"steps": 1, "warmup": 0.7, "cooldown": 0.4}, "exceed the horizon"),
        ({"steps": 1, "warmup": -0.1}, "warmup is a fraction"),
        ({"steps": 1, "beta2": 1.0}, "beta2"),
        ({"steps": 1, "weight_decay": -1.0}, "weight_decay"),
        ({"steps": 1, "clip_norm": 0.0}, "clip_norm"),
        ({"steps": 1, "seed": -1}, "seed"),
        ({"steps": 1, "seed": 1.0}, "seed"),
        ({"steps": 1, "eval_bytes": 0}, "eval_bytes"),
        ({"steps": 1, "log_every": 0}, "log_every"),
        ({"steps": 1, "precision": "int8"}, "precision must be one of auto, float32, bfloat16, float16"),
        ({"steps": 1, "compile": True}, "compile must be one of auto, on, off"),
        ({"steps": 1, "schedule": "linear"}, "schedule must be one of"),
    ],
)
def test_a_bad_setting_is_named(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        TrainConfig(**settings)


# --- Schedule --------------------------------------------------------------------------------------------


def test_warmup_stable_decay() -> None:
    def rate(progress: float) -> float:
        return learning_rate_multiplier(progress, "warmup_stable_decay", warmup=0.1, cooldown=0.4, final=0.05)

    assert [rate(p) for p in (0.0, 0.05, 0.1, 0.3, 0.6)] == pytest.approx([0.0, 0.5, 1.0, 1.0, 1.0])
    assert [rate(p) for p in (0.8, 1.0)] == pytest.approx([0.525, 0.05])


def test_cosine() -> None:
    def rate(progress: float) -> float:
        return learning_rate_multiplier(progress, "cosine", warmup=0.2, cooldown=0.4, final=0.1)

    assert [rate(p) for p in (0.1, 0.2, 0.6, 1.0)] == pytest.approx([0.5, 1.0, 0.55, 0.1])


def test_degenerate_lengths() -> None:
    for kind in ("warmup_stable_decay", "cosine"):
        assert learning_rate_multiplier(0.0, kind, warmup=0.0, cooldown=0.0, final=0.5) == 1.0  # type: ignore[arg-type]
        assert learning_rate_multiplier(0.5, kind, warmup=1.0, cooldown=0.0, final=0.5) == 0.5  # type: ignore[arg-type]
    assert learning_rate_multiplier(1.0, "warmup_stable_decay", warmup=0.0, cooldown=0.0, final=0.5) == 1.0
    assert learning_rate_multiplier(1.0, "cosine", warmup=1.0, cooldown=0.0, final=0.5) == 0.5


def test_no_step_is_spent_at_an_end_of_the_horizon() -> None:
    horizon = Horizon(steps=4, seconds=None)
    assert [horizon.progress_within(step, 9.9, 1.0) for step in range(4)] == [0.125, 0.375, 0.625, 0.875]
    horizon = Horizon(steps=None, seconds=10.0)
    assert horizon.progress_within(77, seconds=4.0, seconds_per_step=1.0) == pytest.approx(0.45)
    assert horizon.progress(77, seconds=12.0) == 1.0


def test_a_budget_of_tokens_becomes_the_steps_that_fit() -> None:
    assert Horizon.from_config(TrainConfig(tokens=1000), 10**9, tokens_per_step=64) == Horizon(steps=15, seconds=None)
    with pytest.raises(ConfigError, match=r"tokens is 63, less than one step \(64\)"):
        Horizon.from_config(TrainConfig(tokens=63), 10**9, tokens_per_step=64)


# --- Optimizer -------------------------------------------------------------------------------------------


def test_matrices_decay_and_vectors_do_not() -> None:
    model = GPT(MODEL)
    optimizer = make_optimizer(model, TrainConfig(steps=1, weight_decay=0.5, learning_rate=0.1))
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    for name, parameter in model.named_parameters():
        factor = 1 - 0.1 * 0.5 if parameter.dim() == 2 else 1.0
        torch.testing.assert_close(parameter.detach(), before[name] * factor, msg=name)


def test_each_parameter_is_in_one_group() -> None:
    for config in (MODEL, GPTConfig.modern(vocab_size=257, num_layers=1, num_heads=2, width=16)):
        model = GPT(config)
        grouped = [p for group in make_optimizer(model, TrainConfig(steps=1)).param_groups for p in group["params"]]
        assert len(grouped) == len({id(p) for p in grouped}) == len(list(model.parameters()))


def batch(rows: int = 4) -> dict[str, Tensor]:
    torch.manual_seed(0)
    return {
        "input": torch.randint(257, (rows, 8)),
        "target": torch.randint(257, (rows, 8)),
        "weight": torch.ones(rows, 8),
    }


def make_step(model: nn.Module, **settings: Any) -> OptimizerStep:
    optimizer = make_optimizer(model, TrainConfig(steps=1))
    return OptimizerStep(loss_of(model), optimizer, **{"micro_batch_size": 4, "clip_norm": None, **settings})


def eager_model() -> GPT:
    torch.manual_seed(1)
    return GPT(dataclasses.replace(MODEL, dropout=0.0))


def test_clipping_scales_large_gradients_to_the_limit() -> None:
    model = eager_model()
    step = make_step(model, clip_norm=1e-3)
    _, norm = step(batch(), 0.0)
    clipped = torch.cat([p.grad.flatten() for p in model.parameters()]).norm()
    assert float(norm) > 0.1
    assert float(clipped) == pytest.approx(1e-3, rel=1e-3)
    make_step(model)(batch(), 0.0)
    unclipped = torch.cat([p.grad.flatten() for p in model.parameters()]).norm()
    assert float(unclipped) == pytest.approx(float(norm), rel=1e-5)


def test_the_learning_rate_given_is_the_one_used() -> None:
    model = eager_model()
    before = model.head.weight.detach().clone()
    step = make_step(model)
    step(batch(), 0.0)
    assert torch.equal(model.head.weight, before)
    step(batch(), 0.01)
    moved = (model.head.weight - before).abs().max()
    assert 0.001 < float(moved.detach()) <= 0.011


def test_loss_scaling_changes_no_update() -> None:
    plain, scaled = eager_model(), eager_model()
    make_step(plain, clip_norm=0.5)(batch(), 0.01)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    _, norm = make_step(scaled, clip_norm=0.5, scaler=scaler)(batch(), 0.01)
    assert math.isfinite(float(norm))
    for a, b in zip(plain.parameters(), scaled.parameters(), strict=True):
        torch.testing.assert_close(a, b)


def test_overflowing_scaled_gradients_change_no_weight_and_lower_the_scale() -> None:
    model = eager_model()
    before = [p.detach().clone() for p in model.parameters()]
    scaler = torch.amp.GradScaler("cpu", init_scale=3e38)
    loss, norm = make_step(model, scaler=scaler)(batch(), 0.01)
    assert math.isfinite(float(loss))
    assert not math.isfinite(float(norm))
    assert scaler.get_scale() == pytest.approx(1.5e38)
    for a, b in zip(model.parameters(), before, strict=True):
        assert torch.equal(a, b)


# --- Device choices --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("choice", "device_type", "capability", "precision"),
    [
        ("auto", "cuda", (9, 0), "bfloat16"),  # H100
        ("auto", "cuda", (8, 0), "bfloat16"),  # A100
        ("auto", "cuda", (7, 5), "float16"),  # T4
        ("auto", "cuda", (12, 0), "bfloat16"),
        ("auto", "cpu", None, "float32"),
        ("auto", "mps", None, "float32"),
        ("float32", "cuda", (9, 0), "float32"),
        ("float16", "cuda", (9, 0), "float16"),
        ("bfloat16", "cpu", None, "bfloat16"),
    ],
)
def test_precision(choice: Any, device_type: str, capability: tuple[int, int] | None, precision: str) -> None:
    assert choose_precision(choice, device_type, capability) == precision


@pytest.mark.parametrize(("choice", "device_type"), [("float16", "cpu"), ("float16", "mps"), ("bfloat16", "mps")])
def test_precision_that_a_device_does_not_train_in(choice: Any, device_type: str) -> None:
    with pytest.raises(ConfigError, match=f"{choice} training .* {device_type}.*use precision auto"):
        choose_precision(choice, device_type)


def test_autocast_and_scaler_follow_the_precision() -> None:
    a, b = torch.randn(2, 4, 4)
    for precision, dtype in (("float32", torch.float32), ("bfloat16", torch.bfloat16)):
        context = autocast_for(precision, "cpu")  # type: ignore[arg-type]
        for _ in range(2):  # reusable
            with context:
                assert (a @ b).dtype == dtype
        assert not scaler_for(precision, "cpu").is_enabled()  # type: ignore[arg-type]
    assert scaler_for("float16", "cpu").is_enabled()


def test_auto_takes_the_best_device_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    def machine(*, cuda: int, mps: bool) -> None:
        monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda > 0)
        monkeypatch.setattr(torch.cuda, "device_count", lambda: cuda)
        monkeypatch.setattr(torch.backends.mps, "is_available", lambda: mps)

    machine(cuda=2, mps=False)
    assert choose_device("auto") == torch.device("cuda")
    assert choose_device("cuda:1") == torch.device("cuda:1")
    with pytest.raises(ConfigError, match="'cuda:2' is not available"):
        choose_device("cuda:2")
    machine(cuda=0, mps=True)
    assert choose_device("auto") == torch.device("mps")
    machine(cuda=0, mps=False)
    assert choose_device("auto") == torch.device("cpu")
    for name in ("cuda", "mps", "meta"):
        with pytest.raises(ConfigError, match=f"device '{name}' is not available"):
            choose_device(name)
    with pytest.raises(ConfigError, match="unknown device 'gpu'"):
        choose_device("gpu")


# --- Compilation -----------------------------------------------------------------------------------------


def eager(inputs: Tensor, targets: Tensor) -> Tensor:
    return (inputs - targets).sum()


def test_a_compiler_that_works_is_used() -> None:
    tried: list[object] = []

    def compiled(inputs: Tensor, targets: Tensor) -> Tensor:
        return eager(inputs, targets)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert compiled_or_eager(eager, tried.append, lambda _: compiled) is compiled
    assert tried == [compiled]


def test_a_compiler_that_fails_is_reported_and_left() -> None:
    def no_compiler(_: object) -> Any:
        raise RuntimeError("Failed to find C compiler.\nlong trace")

    def lazy_failure(_: object) -> None:
        raise FloatingPointError

    with pytest.warns(UserWarning, match="runs uncompiled and slower: Failed to find C compiler"):
        assert compiled_or_eager(eager, lambda _: None, no_compiler) is eager
    with pytest.warns(UserWarning, match="runs uncompiled and slower: FloatingPointError"):
        assert compiled_or_eager(eager, lazy_failure, lambda loss: loss) is eager


def losses_of_a_run(directory: Path, compile_choice: str) -> list[float]:
    losses: list[float] = []
    documents = [b"one sentence to learn, and then another"]
    train(
        dataclasses.replace(MODEL, dropout=0.1),
        ByteCodec(),
        TokenDataset.from_documents(documents, ByteCodec()),
        documents,
        TrainConfig(steps=4, batch_size=2, log_every=1, device="cpu", self_check=False, compile=compile_choice),  # type: ignore[arg-type]
        directory,
        progress=False,
        on_metrics=lambda record: losses.append(record["loss"]) if record["event"] == "train" else None,
    )
    return losses


def test_a_failed_compilation_leaves_the_run_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The try-out draws dropout and makes gradients; neither may reach the run."""

    def fails_late(loss: Any) -> Any:
        def compiled(batch: Batch, whole_weight: Tensor) -> Tensor:
            loss(batch, whole_weight).backward()
            raise RuntimeError("no triton here")

        return compiled

    expected = losses_of_a_run(tmp_path / "eager", "off")
    assert losses_of_a_run(tmp_path / "auto", "auto") == expected  # the CPU's choice is not to compile
    monkeypatch.setattr(devices, "_torch_compile", fails_late)
    with pytest.warns(UserWarning, match="no triton here"):
        assert losses_of_a_run(tmp_path / "failed", "on") == expected


@pytest.mark.parametrize("preset", [GPTConfig.workshop, GPTConfig.modern])
def test_the_loss_compiles_as_one_graph(preset: Any) -> None:
    """Dynamo traces forward and loss without a graph break; its eager back end then computes the same."""
    torch.manual_seed(0)
    model = GPT(preset(vocab_size=257, num_layers=1, num_heads=2, width=16, context_length=8, dropout=0.0))
    loss = loss_of(model)
    compiled = torch.compile(loss, dynamic=False, fullgraph=True, backend="eager")
    torch.testing.assert_close(compiled(batch()), loss(batch()))


def test_the_stopwatch_leaves_pauses_out(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(devices.time, "perf_counter", lambda: now[0])
    watch = Stopwatch(torch.device("cpu"), seconds=5.0)
    assert watch.read() == 5.0
    watch.start()
    now[0] += 2.0
    assert watch.read() == 7.0
    with watch.paused():
        now[0] += 50.0
        assert watch.read() == 7.0
    now[0] += 1.0
    watch.stop()
    now[0] += 9.0
    watch.stop()
    assert watch.read() == 8.0
