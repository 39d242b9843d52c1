"""Matrix products in 8-bit floating point, for cards that multiply it twice as fast as bfloat16.

Both factors of a product become float8 with one scale each (Micikevicius et al., "FP8 Formats for Deep Learning",
arXiv 2209.05433): with a the largest magnitude of a tensor and m that of the format,

    x8 = round(x m / a),    X W^T = (a_x / m) (a_w / m) X8 W8^T,

summed in float32. Values and weights are e4m3 (m = 448, three bits of fraction), gradients e5m2 (m = 57,344, two bits
but more range). Scales come from the tensors at hand, so a run has no state beside its weights and resumes as others
do. Only training multiplies this way, and only what it would multiply in bfloat16: evaluations see the weights as they
are.

Cards take the first factor by rows and the second by columns. The backward pass multiplies over events and over
outputs, so it reads transposed copies of what the forward pass kept.

Where a layer reads K numbers that `RMSNorm` divided by their root mean square, none exceeds K^(1/2), so the scale is
known beforehand and rounding costs no pass of its own. That is cheap enough for the forward product alone, whose factor
the backward pass wants in bfloat16 anyway, so that gradients are of the rounded products but not rounded themselves.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

VALUES, GRADIENTS = torch.float8_e4m3fn, torch.float8_e5m2
ALIGNMENT = 16  # both sizes of a factor are multiples of it


class Float8Linear(nn.Linear):
    """A linear layer whose three products, forward and backward, are in float8 while gradients are wanted."""

    def product(self, x: Tensor) -> Tensor:
        """Return ``x [N, K] @ weight.T``, ``[N, O]``."""
        product: Tensor = _Product.apply(x, self.weight)  # type: ignore[no-untyped-call]
        return product

    def forward(self, x: Tensor) -> Tensor:
        """Map ``x [..., K]`` to ``[..., O]``, in the type that autocast would give."""
        device = x.device.type
        dtype = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else x.dtype
        flat = x.flatten(0, -2).to(dtype)  # [N, K]
        if not (torch.is_grad_enabled() and is_for(flat)):
            return super().forward(x)  # [..., O]
        product = self.product(flat)  # [N, O]
        if self.bias is not None:
            product = product + self.bias.to(dtype)  # [N, O]
        return product.view(*x.shape[:-1], -1)  # [..., O]


class Float8NormedLinear(Float8Linear):
    """A linear layer of inputs with a root mean square of at most 1, whose forward product is in float8."""

    def product(self, x: Tensor) -> Tensor:
        """Return ``x [N, K] @ weight.T``, ``[N, O]``."""
        product: Tensor = _NormedProduct.apply(x, self.weight)  # type: ignore[no-untyped-call]
        return product


def is_for(factor: Tensor) -> bool:
    """Return whether products of a matrix are computed in float8 in place of bfloat16."""
    return factor.dtype == torch.bfloat16 and not any(size % ALIGNMENT for size in factor.shape)


def multiply_in_float8(model: nn.Module) -> int:
    """Let the linear layers of a model, in place, multiply in float8, and return how many do.

    Layers with a size that is not a multiple of 16 stay as they are, and so does what multiplies with a weight itself,
    as heads do (``Kernels.float8``).
    """
    return _replace(model.modules(), Float8Linear)


def multiply_normed_in_float8(layers: Iterable[nn.Linear]) -> int:
    """Let layers that read what `RMSNorm` gives, in place, multiply it in float8, and return how many do.

    Layers with a size that is not a multiple of 16 stay as they are.
    """
    return _replace(layers, Float8NormedLinear)


def _replace(modules: Iterable[nn.Module], kind: type[Float8Linear]) -> int:
    count = 0
    for module in modules:
        if type(module) is nn.Linear and not (module.in_features % ALIGNMENT or module.out_features % ALIGNMENT):
            module.__class__ = kind
            count += 1
    return count


def to_float8(x: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Return a tensor in a float8 format and its scale, ``float32[]``: x is about their product."""
    most = torch.finfo(dtype).max
    scale = x.abs().amax().float().clamp_min(1e-30) / most  # []
    return (x.float() / scale).clamp(-most, most).to(dtype), scale


def float8_product(left: Tensor, right: Tensor, left_scale: Tensor, right_scale: Tensor, dtype: torch.dtype) -> Tensor:
    """Return ``left [M, K] @ right [N, K].T`` of two float8 matrices stored by rows, times the scales, [M, N]."""
    product: Tensor = torch._scaled_mm(
        left, right.t(), scale_a=left_scale, scale_b=right_scale, out_dtype=dtype, use_fast_accum=True
    )
    return product


class _Product(torch.autograd.Function):
    """``x [N, K] @ weight [O, K].T``, differentiable by both."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
        x8, x_scale = to_float8(x, VALUES)  # [N, K]
        weight8, weight_scale = to_float8(weight, VALUES)  # [O, K]
        ctx.save_for_backward(x8, x_scale, weight8, weight_scale)
        return float8_product(x8, weight8, x_scale, weight_scale, x.dtype)  # [N, O]

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor]:
        (gradient,) = gradients  # [N, O]
        x8, x_scale, weight8, weight_scale = ctx.saved_tensors
        gradient8, scale = to_float8(gradient, GRADIENTS)  # [N, O]
        by_columns = weight8.t().contiguous()  # [K, O]
        of_x = float8_product(gradient8, by_columns, scale, weight_scale, gradient.dtype)  # [N, K]
        rows, events = gradient8.t().contiguous(), x8.t().contiguous()  # [O, N], [K, N]
        of_weight = float8_product(rows, events, scale, x_scale, gradient.dtype)  # [O, K]
        return of_x, of_weight


class _NormedProduct(torch.autograd.Function):
    """``x [N, K] @ weight [O, K].T`` of normalized x, differentiable by both as if nothing had been rounded."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        most = torch.finfo(VALUES).max
        scale = math.sqrt(x.size(1)) / most
        x8 = (x.float() / scale).clamp(-most, most).to(VALUES)  # [N, K]; rounding to bfloat16 may exceed the bound
        weight8, weight_scale = to_float8(weight, VALUES)  # [O, K]
        return float8_product(x8, weight8, torch.full_like(weight_scale, scale), weight_scale, x.dtype)  # [N, O]

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor]:
        (gradient,) = gradients  # [N, O]
        x, weight = ctx.saved_tensors
        return gradient @ weight.to(gradient.dtype), gradient.t() @ x  # [N, K], [O, K]
