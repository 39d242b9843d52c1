"""Products in float8: what the rounded factors give, near what bfloat16 gives, and nowhere but in training."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from fastcompress.codec import ByteCodec
from fastcompress.data.shards import TokenDataset
from fastcompress.errors import ConfigError
from fastcompress.models.blocks import normed_layers
from fastcompress.models.cross_entropy import next_token_loss
from fastcompress.models.float8 import (
    GRADIENTS,
    VALUES,
    Float8Linear,
    multiply_in_float8,
    multiply_normed_in_float8,
    to_float8,
)
from fastcompress.models.fused_cross_entropy import HAS_KERNEL, fused_nats
from fastcompress.models.gpt import GPT, GPTConfig
from fastcompress.models.protocol import Kernels
from fastcompress.training.config import MachineConfig
from fastcompress.training.device import check_float8
from fastcompress.training.train import train
from tests.distributed_runs import CONFIG, MODEL, TEXT

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]


def in_bfloat16(device: str) -> contextlib.AbstractContextManager[None]:
    if device == "cuda" and not (torch.cuda.is_available() and HAS_KERNEL):
        pytest.skip("no CUDA card with Triton")
    return torch.autocast(device, dtype=torch.bfloat16)  # type: ignore[no-any-return]


def rounded(x: Tensor, dtype: torch.dtype) -> Tensor:
    """The values that a product sees, float64: the nearest multiples of the scale that the format has."""
    scale = x.abs().max().double() / torch.finfo(dtype).max
    return (x.double() / scale).to(dtype).double() * scale


def far(found: Tensor, expected: Tensor) -> float:
    found, expected = found.detach().double(), expected.detach().double()
    return float((found - expected).norm() / expected.norm())


@pytest.mark.parametrize("dtype", [VALUES, GRADIENTS])
def test_the_largest_value_stays(dtype: torch.dtype) -> None:
    for x in (torch.randn(50, 3), 1e30 * torch.randn(4), torch.tensor([-3.0, 0.0]), torch.zeros(2)):
        eighths, scale = to_float8(x, dtype)
        back = eighths.double() * scale.double()
        assert back.isfinite().all()
        torch.testing.assert_close(back.abs().max(), x.abs().max().double())
        assert far(back, x.double()) < 0.1 or not x.any()


@pytest.mark.parametrize("device", DEVICES)
def test_products_are_those_of_the_rounded_factors(device: str) -> None:
    autocast = in_bfloat16(device)
    torch.manual_seed(0)
    plain = nn.Linear(96, 32, bias=True, device=device)
    layer = nn.Linear(96, 32, bias=True, device=device)
    layer.load_state_dict(plain.state_dict())
    assert multiply_in_float8(nn.Sequential(layer, nn.Linear(8, 16), nn.ReLU())) == 1
    x = torch.randn(4, 16, 96, device=device, dtype=torch.bfloat16, requires_grad=True)
    factor = torch.randn(4, 16, 32, device=device)
    with autocast:
        y = layer(x)
        expected = plain(x.detach())
    assert y.dtype == torch.bfloat16
    (y * factor).sum().backward()
    assert x.grad is not None
    assert layer.weight.grad is not None
    assert layer.bias.grad is not None
    with torch.no_grad():
        x8, weight8 = rounded(x, VALUES), rounded(layer.weight, VALUES)
        gradient8 = rounded(factor.to(torch.bfloat16), GRADIENTS)
    assert far(y, x8 @ weight8.T + layer.bias) < 0.01  # bfloat16's rounding of the result
    assert far(x.grad, gradient8 @ weight8) < 0.01
    assert far(layer.weight.grad, gradient8.flatten(0, 1).T @ x8.flatten(0, 1)) < 0.01
    assert far(layer.bias.grad, factor.flatten(0, 1).sum(0)) < 0.01
    assert 0.005 < far(y, expected) < 0.08  # it is another product, and near
    with autocast, torch.no_grad():
        assert torch.equal(layer(x), expected)  # evaluations see the weights as they are
    assert torch.equal(layer(x.float()), plain(x.float()))  # float32 stays float32
    with autocast:
        assert torch.equal(layer(x[:1, :15]), plain(x[:1, :15]))  # sizes that cards cannot multiply


@pytest.mark.parametrize("device", DEVICES)
def test_normed_inputs_are_rounded_by_their_bound(device: str) -> None:
    """The forward product is of rounded factors, gradients are of bfloat16's; one entry takes a whole row's norm."""
    autocast = in_bfloat16(device)
    torch.manual_seed(0)
    layer = nn.Linear(96, 32, bias=False, device=device)
    assert multiply_normed_in_float8([layer]) == 1
    x = torch.randn(64, 96, device=device)
    x[3] = 0.0
    x[3, 5] = 1.0
    normed = F.rms_norm(x, (96,)).bfloat16().requires_grad_()
    factor = torch.randn(64, 32, device=device)
    with autocast:
        y = layer(normed)
    of_x, of_weight = torch.autograd.grad((y * factor).sum(), (normed, layer.weight))
    scale = 96**0.5 / torch.finfo(VALUES).max
    with torch.no_grad():
        x8 = (normed.double() / scale).clamp(-448, 448).to(VALUES).double() * scale
        assert far(y, x8 @ rounded(layer.weight, VALUES).T) < 0.01
        gradient = factor.bfloat16().double()
        assert far(of_x, gradient @ layer.weight.double()) < 0.01
        assert far(of_weight, gradient.T @ normed.double()) < 0.01
        assert 0.005 < far(y, normed.double() @ layer.weight.double().T) < 0.08


def test_the_layers_that_read_norms() -> None:
    """Of blocks with RMSNorm without gain, the first layers of attention and MLP; of others, none."""
    sizes: dict[str, Any] = {"vocab_size": 257, "num_layers": 2, "num_heads": 2, "width": 32, "context_length": 32}
    for mlp in ("gelu", "swiglu", "relu2"):
        model = GPT(GPTConfig.modern(**sizes, mlp=mlp))
        found = {id(layer) for layer in normed_layers(model)}
        names = [name for name, module in model.named_modules() if id(module) in found]
        assert [name.split(".")[-1] for name in names] == ["qkv", "gate_and_up" if mlp == "swiglu" else "expand"] * 2
    assert not list(normed_layers(GPT(GPTConfig.modern(**sizes, norm="rmsnorm_gain"))))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("softcap", [None, 3.0])
def test_heads(device: str, softcap: float | None) -> None:
    autocast = in_bfloat16(device)
    torch.manual_seed(1)
    hidden = torch.randn(48, 32, device=device, requires_grad=True)
    rows = torch.randn(300, 32, device=device, requires_grad=True)
    targets = torch.randint(300, (48,), device=device)
    factors = torch.rand(48, device=device)
    with autocast:
        nats = fused_nats(hidden, rows, targets, softcap, in_float8=True)
        with torch.no_grad():
            unrounded = fused_nats(hidden, rows, targets, softcap)
            assert torch.equal(fused_nats(hidden, rows, targets, softcap, in_float8=True), unrounded)
    found = torch.autograd.grad((nats * factors).sum(), (hidden, rows))

    seen = [rounded(x.detach().bfloat16(), VALUES).requires_grad_() for x in (hidden, rows)]
    logits = seen[0] @ seen[1].T
    capped = logits if softcap is None else softcap * torch.tanh(logits / softcap)
    exact = next_token_loss(capped, targets, reduction="none")
    assert far(nats, exact.detach()) < 0.01
    of_hidden, of_rows = torch.autograd.grad((exact * factors).sum(), seen)
    assert far(found[0], of_hidden) < 0.08  # slopes have two bits of fraction there
    assert far(found[1], of_rows) < 0.05  # whose factor h is not rounded
    assert 1e-4 < far(nats, unrounded) < 0.1


def test_who_can() -> None:
    hopper, ampere = (9, 0), (8, 0)
    for machine in (MachineConfig(float8="head"), MachineConfig(float8="normed"), MachineConfig(float8="all")):
        check_float8(machine, "bfloat16", hopper)
        with pytest.raises(ConfigError, match=r"float8 is .*8\.9"):
            check_float8(machine, "bfloat16", ampere)
        with pytest.raises(ConfigError, match="needs precision bfloat16, not float32"):
            check_float8(machine, "float32", hopper)
    check_float8(MachineConfig(), "float32", None)
    with pytest.raises(ConfigError, match="float8 must be one of off, head, normed, all, not 'on'"):
        MachineConfig(float8="on")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="float8 must be one of"):
        Kernels(float8="on")  # type: ignore[arg-type]


def test_a_run_on_a_cpu_is_refused(tmp_path: Path) -> None:
    codec = ByteCodec()
    data = TokenDataset.from_documents(TEXT, codec)
    with pytest.raises(ConfigError, match="float8 is 'all', which needs a CUDA card"):
        train(MODEL, codec, data, TEXT[:2], CONFIG.override({"float8": "all"}), tmp_path / "run", progress=False)
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_a_model_learns_as_in_bfloat16() -> None:
    """The same first loss within rounding, and about the same one after some steps, from the same weights and rows."""
    config = GPTConfig.modern(vocab_size=257, num_layers=2, num_heads=2, width=32, context_length=32)
    ids = torch.frombuffer(bytearray(b" ".join(TEXT)[: 8 * 33]), dtype=torch.uint8).long().view(8, 33)
    batch = {"input": ids[:, :-1], "target": ids[:, 1:]}
    last = []
    for float8 in ("off", "all", "normed"):
        torch.manual_seed(0)
        model = GPT(config)
        if float8 == "all":
            assert multiply_in_float8(model) > 0
            assert sum(isinstance(module, Float8Linear) for module in model.modules()) == 8
        elif float8 == "normed":
            assert multiply_normed_in_float8(normed_layers(model)) == 4
        optimizer = torch.optim.AdamW(model.parameters(), 3e-3)
        for _ in range(40):
            with torch.autocast("cpu", dtype=torch.bfloat16):
                loss = model.nats(batch).mean()
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
        last.append(loss.item())
    assert last[0] < 2.5
    assert last[1:] == pytest.approx([last[0]] * 2, rel=0.05)
