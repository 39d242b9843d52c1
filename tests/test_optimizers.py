"""Optimizers by kind and group, against steps written out in float64, and their state over a stop."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from fastcompress.codec import ByteCodec
from fastcompress.data.shards import TokenDataset
from fastcompress.errors import ConfigError, MismatchError
from fastcompress.models import GPT, GPTConfig
from fastcompress.models.roles import default_roles
from fastcompress.training import AdamWConfig, MuonConfig, TrainConfig, train
from fastcompress.training.config import MachineConfig
from fastcompress.training.device import loss_of
from fastcompress.training.graph import can_record
from fastcompress.training.muon import Muon, orthogonalize
from fastcompress.training.optimizer import OptimizerStep, make_optimizer, parameter_groups
from tests.byte_bigram import ByteBigramConfig

SHAPE: dict[str, Any] = {"vocab_size": 257, "num_layers": 2, "num_heads": 2, "width": 16, "context_length": 8}
TEXT = [f"On day {i} came {i * i % 37} ships with maps. ".encode() * 2 for i in range(20)]
has_torch_muon = pytest.mark.skipif(not hasattr(torch.optim, "Muon"), reason="this torch has no Muon to compare with")


# --- Groups ----------------------------------------------------------------------------------------------


def members(model: nn.Module, settings: AdamWConfig | MuonConfig) -> dict[str, set[str]]:
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    groups = parameter_groups(model, settings)
    return {group["role"]: {names[id(parameter)] for parameter in group["params"]} for group in groups}


@pytest.mark.parametrize("settings", [AdamWConfig(), MuonConfig()])
@pytest.mark.parametrize("tied", [False, True])
def test_the_roles_of_a_gpt(tied: bool, settings: AdamWConfig | MuonConfig) -> None:
    model = GPT(GPTConfig.workshop(**SHAPE, tied_head=tied, bias=True))
    groups = members(model, settings)
    assert groups.get("head", set()) == (set() if tied else {"head.weight"})
    assert groups["embedding"] == {"embedding.weight", "positions.weight"}
    assert all(name.endswith((".bias", "norm.weight")) for name in groups["vector"])
    assert all(name.startswith("trunk.blocks.") and name.endswith(".weight") for name in groups["matrix"])
    assert len(groups["matrix"]) == 2 * 4
    assert sum(map(len, groups.values())) == len(list(model.parameters()))


MEMORIES = GPTConfig.workshop(**SHAPE, spelled_bytes=2, tied_head=False, engram_layers=(0, 1), engram_heads=2,
                             engram_rows=16)  # fmt: skip


@pytest.mark.parametrize("kind", [AdamWConfig, MuonConfig])
def test_memories_and_spelled_bytes_have_groups_of_their_own(kind: type[AdamWConfig] | type[MuonConfig]) -> None:
    model = GPT(MEMORIES)
    groups = {group["role"]: group for group in parameter_groups(model, kind(embedding_rate=0.3, memory_rate=0.5))}
    found = members(model, kind())
    assert found["memory"] == {f"trunk.blocks.{layer}.memory.table.weight" for layer in (0, 1)}
    assert found["spelled"] == {"spelled_input.vectors.weight", "spelled_head.vectors.weight"}
    assert found["embedding"] == {"embedding.weight", "positions.weight"}
    assert "trunk.blocks.1.memory.key.weight" in found["matrix"]
    own = 4e-3 if kind is MuonConfig else 0.3
    assert [groups[role]["lr"] for role in ("memory", "spelled", "embedding")] == [0.5, own, 0.3]
    followed = parameter_groups(model, kind(embedding_rate=0.3, memory_rate=None, spelled_rate=None))
    assert {group["lr"] for group in followed if group["role"] in ("memory", "spelled")} == {0.3}
    assert kind(spelled_rate=0.7).spelled_rate == 0.7
    in_order = [parameter for group in groups.values() for parameter in group["params"]]
    assert len(in_order) == len(set(in_order)) == len(list(model.parameters()))
    for name in ("memory_rate", "spelled_rate"):
        with pytest.raises(ConfigError, match=f"{name} must be more than 0"):
            kind(**{name: 0.0})


def test_memories_may_have_a_decay_of_their_own() -> None:
    def taken(settings: AdamWConfig | MuonConfig) -> dict[str, float]:
        groups = parameter_groups(GPT(MEMORIES), settings)
        return {group["role"]: group["lr"] * group["weight_decay"] for group in groups}

    everywhere = {"embedding": 1e-4, "memory": 1e-4, "spelled": 1e-4, "matrix": 1e-4, "head": 1e-4, "vector": 0.0}
    assert taken(AdamWConfig()) == pytest.approx(everywhere)
    assert taken(AdamWConfig(memory_rate=0.1)) == pytest.approx(everywhere)
    assert taken(AdamWConfig(memory_rate=0.1, memory_decay=0.0)) == pytest.approx({**everywhere, "memory": 0.0})
    assert taken(MuonConfig()) == pytest.approx({**dict.fromkeys(everywhere, 0.0), "matrix": 1e-3})
    with pytest.raises(ConfigError, match="memory_decay must be at least 0"):
        AdamWConfig(memory_decay=-0.1)


def test_a_model_that_says_no_roles_has_those_of_the_rules() -> None:
    groups = members(ByteBigramConfig().build(), MuonConfig())
    assert groups == {
        "embedding": {"previous.weight", "high.weight"},
        "head": {"high_head.weight", "low_head.weight"},
        "vector": {"high_head.bias", "low_head.bias"},
    }

    class Foreign(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.gain = nn.Parameter(torch.ones(()))
            self.mix = nn.Conv1d(4, 4, 3)
            self.forehead = nn.Linear(4, 4, bias=False)
            self.heads = nn.ModuleList([nn.Linear(4, 3, bias=False)])
            self.again = self.forehead  # shared

    assert members(Foreign(), AdamWConfig()) == {
        "matrix": {"mix.weight", "forehead.weight"}, "head": {"heads.0.weight"}, "vector": {"gain", "mix.bias"},
    }  # fmt: skip
    assert members(Foreign(), MuonConfig()) == {
        "matrix": {"forehead.weight"}, "head": {"heads.0.weight"}, "vector": {"gain", "mix.weight", "mix.bias"},
    }  # fmt: skip
    make_optimizer(Foreign(), TrainConfig(steps=1, optimizer="muon"))


@pytest.mark.parametrize("change", [lambda roles: roles.popitem(), lambda roles: roles.update(ghost="matrix"),
                                    lambda roles: roles.update({"head.weight": "neck"})])  # fmt: skip
def test_a_model_that_is_wrong_about_its_parameters_is_refused(change: Any) -> None:
    class Wrong(GPT):
        def parameter_roles(self) -> Any:
            roles: Any = default_roles(self)
            change(roles)
            return roles

    with pytest.raises(ConfigError, match=r"parameter_roles of Wrong is wrong about (head|ghost)"):
        make_optimizer(Wrong(GPTConfig.modern(**SHAPE)), TrainConfig(steps=1))


def test_each_group_has_its_rate_and_its_decay() -> None:
    model = GPT(GPTConfig.workshop(**SHAPE))
    settings = AdamWConfig(learning_rate=0.1, weight_decay=0.5, embedding_rate=0.4, vector_rate=0.05)
    step = OptimizerStep(
        loss_of(model), make_optimizer(model, TrainConfig(steps=1, optimizer=settings)), micro_batch_size=4,
        clip_norm=None,
    )  # fmt: skip
    before = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    step(model.random_batch(4, 8), 0.05)  # half the peak
    assert step.learning_rates == {"embedding": 0.2, "matrix": 0.05, "vector": 0.025}
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    fresh = make_optimizer(model, TrainConfig(steps=1, optimizer=settings))
    before = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    fresh.step()
    for name, parameter in model.named_parameters():  # without gradients there is decay alone, at one pace for all
        factor = 1 - 0.1 * 0.5 if parameter.dim() == 2 else 1.0
        torch.testing.assert_close(parameter.detach(), before[name] * factor, msg=name)


# --- Muon ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(12, 12), (6, 20), (20, 6)])
def test_orthogonalizing_keeps_singular_vectors_and_evens_out_singular_values(shape: tuple[int, int]) -> None:
    torch.manual_seed(0)
    matrices = torch.randn(3, *shape)
    found = orthogonalize(matrices).double()
    for matrix, result in zip(matrices.double(), found, strict=True):
        left, values, right = torch.linalg.svd(matrix, full_matrices=False)
        in_its_basis = left.mT @ result @ right.mT  # near diagonal
        big = values > 0.05 * values.norm()
        assert ((in_its_basis.diagonal()[big] > 0.6) & (in_its_basis.diagonal()[big] < 1.3)).all()
        assert (in_its_basis - in_its_basis.diagonal().diag()).abs().max() < 0.05


def reference_muon(
    weight: Tensor, gradients: list[Tensor], *, rate: float, decay: float, cautious: bool
) -> tuple[Tensor, Tensor]:
    """Muon step by step in float64, and the entries whose update was always clearly of one sign."""
    weight, mean = weight.double(), torch.zeros_like(weight, dtype=torch.float64)
    is_clear = torch.ones_like(weight, dtype=torch.bool)
    for gradient in (g.double() for g in gradients):
        mean = 0.9 * mean + 0.1 * gradient
        x = 0.9 * mean + 0.1 * gradient
        x = x / x.norm()
        for _ in range(5):
            x = 3.4445 * x - 4.7750 * (x @ x.T) @ x + 2.0315 * (x @ x.T) @ (x @ x.T) @ x
        mask = (x * weight >= 0) if cautious else torch.ones_like(weight)
        is_clear &= (x.abs() > 0.03) & (weight.abs() > 0.02)
        weight = weight - rate * decay * mask * weight - rate * max(1.0, weight.size(0) / weight.size(1)) ** 0.5 * x
    return weight, is_clear


@pytest.mark.parametrize("cautious", [False, True])
def test_muon_against_the_reference_and_torch(cautious: bool) -> None:
    torch.manual_seed(0)
    weights = [torch.randn(shape) for shape in ((8, 8), (12, 5), (8, 8), (5, 12))]
    gradients = [[torch.randn_like(weight) for _ in range(4)] for weight in weights]
    kinds: list[Any] = [lambda groups: Muon(groups, momentum=0.9, cautious=cautious)]
    if not cautious and hasattr(torch.optim, "Muon"):
        kinds.append(lambda groups: torch.optim.Muon(groups, momentum=0.9))
    for make in kinds:
        parameters = [nn.Parameter(weight.clone()) for weight in weights]
        optimizer = make([{"params": parameters, "lr": 0.1, "weight_decay": 0.5}])
        for step in range(4):
            for parameter, own in zip(parameters, gradients, strict=True):
                parameter.grad = own[step].clone()
            optimizer.step()
        for parameter, weight, own in zip(parameters, weights, gradients, strict=True):
            expected, is_clear = reference_muon(weight, own, rate=0.1, decay=0.5, cautious=cautious)
            compared = is_clear if cautious else torch.ones_like(is_clear)
            assert compared.sum() > 0.6 * compared.numel()
            # An update has entries of about 0.3 to 1, times 0.1, of which bfloat16 keeps 1 in 256.
            torch.testing.assert_close(
                parameter.detach().double()[compared], expected[compared], atol=0.005, rtol=0
            )  # a decay that is left out once is 0.05 times the weight
            assert (expected - weight).abs().max() > 0.1


@pytest.mark.parametrize("kind", ["adamw", "muon"])
def test_rates_on_the_device_are_rates(kind: str) -> None:
    """As recorded steps have them: a number in memory, not in the program."""
    results = []
    for is_on_device in (False, True):
        torch.manual_seed(0)
        model = GPT(GPTConfig.modern(vocab_size=7, num_layers=1, num_heads=1, width=16, context_length=8))
        config = TrainConfig(steps=9, optimizer={"kind": kind, "cautious_decay": True, "weight_decay": 0.3})
        step = OptimizerStep(loss_of(model), make_optimizer(model, config), micro_batch_size=4, clip_norm=1.0)
        if is_on_device:
            for group in step.optimizer.param_groups:
                group["lr"] = torch.tensor(group["lr"])
        batch = model.random_batch(4, 8)
        for rate in (0.01, 0.02, 0.005):
            step(batch, rate)
        assert step.learning_rates["matrix"] == 0.005
        results.append([parameter.detach().clone() for parameter in model.parameters()])
    for expected, found in zip(*results, strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-4)


def test_steps_are_recorded_where_they_are_the_same_kernels() -> None:
    """Whole copies of a model, no loss scaling, nothing computed again, and only where it is wanted."""
    cuda, cpu = torch.device("cuda"), torch.device("cpu")
    assert can_record(MachineConfig(), cuda, 1, scales_losses=False)
    assert not can_record(MachineConfig(), cpu, 1, scales_losses=False)
    assert can_record(MachineConfig(), cuda, 2, scales_losses=False)
    assert not can_record(MachineConfig(parallel="fsdp"), cuda, 2, scales_losses=False)
    assert can_record(MachineConfig(parallel="fsdp"), cuda, 1, scales_losses=False)
    assert not can_record(MachineConfig(), cuda, 1, scales_losses=True)
    assert not can_record(MachineConfig(cuda_graph="off"), cuda, 1, scales_losses=False)
    assert not can_record(MachineConfig(checkpoint_activations=True), cuda, 1, scales_losses=False)
    with pytest.raises(ConfigError, match="cuda_graph must be one of auto, off, not 'on'"):
        MachineConfig(cuda_graph="on")  # type: ignore[arg-type]


def reference_cautious_adamw(weight: Tensor, gradients: list[Tensor], *, rate: float, decay: float) -> Tensor:
    weight = weight.double()
    mean, square = torch.zeros_like(weight), torch.zeros_like(weight)
    for number, gradient in enumerate((g.double() for g in gradients), 1):
        mean, square = 0.9 * mean + 0.1 * gradient, 0.95 * square + 0.05 * gradient**2
        update = mean / (1 - 0.9**number) / ((square / (1 - 0.95**number)).sqrt() + 1e-8)
        weight = weight - rate * decay * weight * (update * weight >= 0) - rate * update
    return weight


def test_cautious_decay_spares_weights_that_the_update_moves_away_from_zero() -> None:
    torch.manual_seed(0)
    model = nn.Linear(6, 4, bias=False)
    weight = model.weight.detach().clone()
    gradients = [torch.randn_like(weight) for _ in range(5)]
    settings = AdamWConfig(learning_rate=0.1, weight_decay=2.0, cautious_decay=True)
    optimizer = make_optimizer(model, TrainConfig(steps=1, optimizer=settings))
    for gradient in gradients:
        model.weight.grad = gradient.clone()
        optimizer.step()
    expected = reference_cautious_adamw(weight, gradients, rate=0.1, decay=2.0)
    torch.testing.assert_close(model.weight.detach().double(), expected, atol=1e-5, rtol=1e-5)


def test_overflowing_gradients_change_no_weight_under_any_kind() -> None:
    for settings in (AdamWConfig(cautious_decay=True), MuonConfig(), MuonConfig(cautious_decay=True)):
        model = GPT(GPTConfig.workshop(**SHAPE))
        before = [parameter.detach().clone() for parameter in model.parameters()]
        optimizer = make_optimizer(model, TrainConfig(steps=1, optimizer=settings))
        scaler = torch.amp.GradScaler("cpu", init_scale=3e38)
        OptimizerStep(loss_of(model), optimizer, micro_batch_size=4, clip_norm=None, scaler=scaler)(
            model.random_batch(4, 8), 0.1
        )
        assert scaler.get_scale() == pytest.approx(1.5e38)
        assert all(torch.equal(a, b) for a, b in zip(model.parameters(), before, strict=True))


# --- Runs ------------------------------------------------------------------------------------------------


def run(folder: Path, *, resume: bool = False, stop_at: int | None = None, **settings: Any) -> list[float]:
    def stop(record: dict[str, Any]) -> None:
        if record["event"] == "train" and record["step"] == stop_at:
            raise KeyboardInterrupt

    config = TrainConfig(
        **{"steps": 12, "batch_size": 4, "log_every": 1, "device": "cpu", "num_evals": 1, "eval_bytes": 64, **settings}
    )
    data = TokenDataset.from_documents(TEXT, ByteCodec())
    train(GPTConfig.modern(**SHAPE), ByteCodec(), data, TEXT[:1], config, folder, resume=resume, on_metrics=stop,
          progress=False)  # fmt: skip
    records = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [record["loss"] for record in records if record["event"] == "train"]


@pytest.mark.parametrize("settings", [{"optimizer": "muon"}, {"optimizer": "muon", "cautious_decay": True},
                                      {"cautious_decay": True, "embedding_rate": 0.1}])  # fmt: skip
def test_a_stopped_run_goes_on_to_the_same_losses(tmp_path: Path, settings: dict[str, Any]) -> None:
    whole = run(tmp_path / "whole", **settings)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "parts", stop_at=7, **settings)
    assert run(tmp_path / "parts", resume=True, **settings) == whole
    assert whole[-1] < whole[0] - 0.1


def test_a_run_does_not_go_on_with_another_kind_of_optimizer(tmp_path: Path) -> None:
    run(tmp_path, steps=2)
    with pytest.raises(MismatchError, match="training setting optimizer is 'adamw', not 'muon'"):
        run(tmp_path, resume=True, steps=4, optimizer="muon")
