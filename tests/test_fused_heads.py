"""Heads in one pass are heads normalized and rotated one after the other, values and gradients."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from fastcompress.models.attention import CausalSelfAttention, Rotary
from fastcompress.models.fused_heads import HAS_KERNEL, fused_heads
from fastcompress.models.trunk import Context

NEEDS_CARD = pytest.mark.skipif(not (torch.cuda.is_available() and HAS_KERNEL), reason="no CUDA card with Triton")
DEVICES = ["cpu", pytest.param("cuda", marks=[pytest.mark.gpu, NEEDS_CARD])]
EPSILON = 1e-6


def one_after_the_other(
    projected: Tensor, rotary: Rotary, positions: Tensor | None, num_heads: int, kv_heads: int
) -> list[Tensor]:
    """Queries, keys and values, [B, T, heads, K] each, from autograd's own operations."""
    parts = projected.unflatten(-1, (num_heads + 2 * kv_heads, -1)).split([num_heads, kv_heads, kv_heads], dim=2)
    size = parts[0].size(-1)
    placed = [
        rotary(F.rms_norm(part.float(), (size,), eps=EPSILON).transpose(1, 2), positions).transpose(1, 2)
        for part in parts[:2]
    ]
    return [*(part.to(projected.dtype) for part in placed), parts[2]]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize(("num_heads", "kv_heads", "head_dim"), [(1, 1, 32), (6, 6, 128), (6, 2, 64)])
@pytest.mark.parametrize("has_positions", [False, True])
def test_values_and_gradients_are_those_of_single_steps(
    device: str, dtype: torch.dtype, num_heads: int, kv_heads: int, head_dim: int, has_positions: bool
) -> None:
    """Rows of 13 tokens, so that the last block of tokens has room; a vector of zeros is among them."""
    torch.manual_seed(0)
    rotary = Rotary(head_dim, 40).to(device)
    width = (num_heads + 2 * kv_heads) * head_dim
    projected = (3 * torch.randn(3, 13, width, device=device)).to(dtype)
    projected[1, 4] = 0.0
    positions = torch.randint(40, (3, 13), device=device) if has_positions else None
    results: list[list[Tensor]] = []
    for is_fused in (True, False):
        leaf = projected.clone().requires_grad_()
        if is_fused:
            *found, _ = fused_heads(leaf, rotary.cos, rotary.sin, positions, num_heads, kv_heads, EPSILON)
        else:
            found = one_after_the_other(leaf, rotary, positions, num_heads, kv_heads)
        torch.manual_seed(1)
        directions = [torch.randn(part.shape, device=device).to(dtype) for part in found]
        (gradient,) = torch.autograd.grad(
            sum((p * d).float().sum() for p, d in zip(found, directions, strict=True)), leaf
        )
        gradient[1, 4] *= EPSILON**0.5  # a vector of zeros turns by 1 / epsilon^(1/2)
        results.append([*found, gradient])
    rounding = 1e-5 if dtype == torch.float32 else 2e-2
    for found, expected in zip(*results, strict=True):
        torch.testing.assert_close(found.float(), expected.float(), rtol=rounding, atol=rounding)


def test_the_formula_is_the_derivative() -> None:
    """In double precision, by differences."""
    torch.manual_seed(0)
    rotary = Rotary(8, 5).double()
    projected = torch.randn(2, 5, 4 * 8, dtype=torch.float64, requires_grad=True)

    def placed(x: Tensor) -> Any:
        return fused_heads(x, rotary.cos, rotary.sin, None, 2, 1, EPSILON)[:3]

    assert torch.autograd.gradcheck(placed, (projected,))


@pytest.mark.gpu
@NEEDS_CARD
@pytest.mark.parametrize("kv_heads", [4, 2])
def test_attention_on_a_card_is_attention_in_float32(kv_heads: int) -> None:
    """The same layer in bfloat16, compiled or not, within its rounding."""
    torch.manual_seed(0)
    layer = CausalSelfAttention(
        128, 4, 64, rotary=True, qk_norm=True, bias=False, dropout=0.0, kind="sdpa", kv_heads=kv_heads
    ).cuda()
    x = torch.randn(2, 64, 128, device="cuda")
    context = Context(torch.zeros(2, 64, dtype=torch.int64, device="cuda"))
    results = []
    for call, is_half in ((layer, False), (layer, True), (torch.compile(layer, dynamic=False), True)):
        layer.zero_grad()
        with torch.autocast("cuda", dtype=torch.bfloat16, enabled=is_half):
            mixed = call(x, context)
        mixed.float().square().sum().backward()
        results.append((mixed.detach().float(), layer.qkv.weight.grad.clone()))
    for found in results[1:]:
        for ours, expected in zip(found, results[0], strict=True):
            assert (ours - expected).norm() < 0.02 * expected.norm()
