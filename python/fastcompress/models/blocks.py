"""The parts of a transformer: norms, MLPs, a residual block; attention is in ``attention.py``.

They are separate from ``gpt.py`` so that other models can combine them differently: no part knows a model's
configuration. A block returns what it adds to the residual stream, which the trunk owns (``trunk.py``). Shapes use
B = sequences in the batch, T = positions, D = width. FLOPs are counted from these modules (``flops.py``), so every
product with a weight matrix must be an ``nn.Linear``, and a module that multiplies activations with activations
reports the cost through ``activation_flops_per_token``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from fastcompress._deprecated import renamed_names
from fastcompress.models.attention import RMS_EPSILON, CausalSelfAttention, Rotary, at_least_float32, plain_attention
from fastcompress.models.trunk import Branch, Context

__all__ = [
    "Block",
    "CausalSelfAttention",
    "GainRMSNorm",
    "GeluMLP",
    "LayerNorm",
    "MLPKind",
    "NormKind",
    "RMSNorm",
    "ReluSquaredMLP",
    "Rotary",
    "SwiGLU",
    "make_mlp",
    "make_norm",
    "mlp_hidden",
    "plain_attention",
    "swiglu_hidden",
]

NormKind = Literal["layernorm", "rmsnorm", "rmsnorm_gain"]
MLPKind = Literal["gelu", "swiglu", "relu2"]

LAYER_NORM_EPSILON = 1e-5


class RMSNorm(nn.Module):
    """Root mean square norm without a learned gain, since the next matrix can scale as well.

    Zhang and Sennrich, "Root Mean Square Layer Normalization" (arXiv 1910.07467). As all norms here, it computes in
    float32 and returns the stream's type.
    """

    def __init__(self, epsilon: float = RMS_EPSILON) -> None:
        super().__init__()
        self.epsilon = epsilon

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(at_least_float32(x), (x.size(-1),), eps=self.epsilon).to(x.dtype)  # [..., D]


class GainRMSNorm(nn.RMSNorm):
    """`RMSNorm` with a learned gain for each channel."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(at_least_float32(x)).to(x.dtype)  # [..., D]


class LayerNorm(nn.LayerNorm):
    """Ba et al., "Layer Normalization" (arXiv 1607.06450)."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(at_least_float32(x)).to(x.dtype)  # [..., D]


def make_norm(kind: NormKind, width: int, *, bias: bool, epsilon: float | None = None) -> nn.Module:
    """Make the pre-norm of a sublayer.

    Args:
        kind: The kind.
        width: D.
        bias: Of LayerNorm.
        epsilon: Added to the mean square; default: 1e-6, or 1e-5 for LayerNorm.
    """
    if kind == "layernorm":
        return LayerNorm(width, eps=LAYER_NORM_EPSILON if epsilon is None else epsilon, bias=bias)
    epsilon = RMS_EPSILON if epsilon is None else epsilon
    return RMSNorm(epsilon) if kind == "rmsnorm" else GainRMSNorm(width, eps=epsilon)


class GeluMLP(nn.Module):
    """GPT-2's MLP: a hidden layer of four times the width, with GELU (Hendrycks and Gimpel, arXiv 1606.08415)."""

    def __init__(self, width: int, *, bias: bool) -> None:
        super().__init__()
        self.expand = nn.Linear(width, 4 * width, bias=bias)
        self.output = nn.Linear(4 * width, width, bias=bias)

    def forward(self, x: Tensor) -> Tensor:
        hidden = F.gelu(self.expand(x))  # [B, T, 4 D]
        contracted: Tensor = self.output(hidden)  # [B, T, D]
        return contracted


class _ReluSquared(torch.autograd.Function):
    """``s = max(0, x)^2``, whose derivative ``2 sqrt(s)`` needs s only, which the product after it keeps anyway."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        positive = F.relu(x)  # [...]
        squared = positive * positive  # [...]; under autocast, cards would compute powers in float32 and keep these
        ctx.save_for_backward(squared)
        return squared

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        (squared,) = ctx.saved_tensors
        slope: Tensor = 2 * squared.sqrt()  # [...]
        return gradient * slope  # [...]


class ReluSquaredMLP(nn.Module):
    """An MLP of four times the width, with ``max(0, x)^2`` (So et al., "Primer", arXiv 2109.08668)."""

    def __init__(self, width: int, *, bias: bool) -> None:
        super().__init__()
        self.expand = nn.Linear(width, 4 * width, bias=bias)
        self.output = nn.Linear(4 * width, width, bias=bias)

    def forward(self, x: Tensor) -> Tensor:
        hidden = _ReluSquared.apply(self.expand(x))  # type: ignore[no-untyped-call]  # [B, T, 4 D]
        contracted: Tensor = self.output(hidden)  # [B, T, D]
        return contracted


def swiglu_hidden(width: int) -> int:
    """Return the hidden size of ``SwiGLU``: 8/3 of the width, to the nearest multiple of 64."""
    return max(64, round(8 * width / 3 / 64) * 64)


class SwiGLU(nn.Module):
    """Gated MLP, ``(silu(x G) * x U) O`` (Shazeer, arXiv 2002.05202).

    Hidden size: 8/3 of the width, to the nearest multiple of 64, so it costs what the GELU MLP costs.
    """

    def __init__(self, width: int, *, bias: bool) -> None:
        super().__init__()
        hidden = swiglu_hidden(width)
        self.gate_and_up = nn.Linear(width, 2 * hidden, bias=bias)
        self.output = nn.Linear(hidden, width, bias=bias)

    def forward(self, x: Tensor) -> Tensor:
        gate, up = self.gate_and_up(x).chunk(2, dim=-1)  # 2 x [B, T, hidden]
        contracted: Tensor = self.output(F.silu(gate) * up)  # [B, T, D]
        return contracted


MLPS: dict[MLPKind, type[GeluMLP | SwiGLU | ReluSquaredMLP]] = {
    "gelu": GeluMLP,
    "swiglu": SwiGLU,
    "relu2": ReluSquaredMLP,
}


def make_mlp(kind: MLPKind, width: int, *, bias: bool) -> nn.Module:
    """Make the MLP of a block."""
    return MLPS[kind](width, bias=bias)


def mlp_hidden(kind: MLPKind, width: int) -> int:
    """Return the hidden size of an MLP."""
    return swiglu_hidden(width) if kind == "swiglu" else 4 * width


class Block(nn.Module):
    """Pre-norm attention and MLP, each with dropout; they return what they add to the residual stream.

    Args:
        attention: ``(x, context) -> [B, T, D]``.
        mlp: ``x -> [B, T, D]``.
        norms: The pre-norms of attention and of the MLP.
        dropout: Dropout probability of what each adds.
        memory: ``(x, context) -> [B, T, D]``, added before attention; None for no memory.
    """

    def __init__(
        self,
        attention: nn.Module,
        mlp: nn.Module,
        norms: tuple[nn.Module, nn.Module],
        *,
        dropout: float,
        memory: nn.Module | None = None,
    ) -> None:
        super().__init__()
        self.attention_norm, self.mlp_norm = norms
        self.attention, self.mlp = attention, mlp
        self.dropout = nn.Dropout(dropout)
        self.memory = memory

    @property
    def branches(self) -> tuple[Branch, ...]:
        """The branches whose outputs the trunk adds, in order."""
        recall = () if self.memory is None else (self.recall,)
        return *recall, self.mix_positions, self.transform

    def recall(self, x: Tensor, context: Context) -> Tensor:
        """Return what the memory adds to ``x [B, T, D]``, [B, T, D]."""
        assert self.memory is not None
        added: Tensor = self.dropout(self.memory(x, context))  # [B, T, D]
        return added

    def mix_positions(self, x: Tensor, context: Context) -> Tensor:
        """Return what attention adds to ``x [B, T, D]``, [B, T, D]."""
        added: Tensor = self.dropout(self.attention(self.attention_norm(x), context))  # [B, T, D]
        return added

    def transform(self, x: Tensor, context: Context) -> Tensor:
        """Return what the MLP adds to ``x [B, T, D]``, [B, T, D]."""
        added: Tensor = self.dropout(self.mlp(self.mlp_norm(x)))  # [B, T, D]
        return added


def normed_layers(model: nn.Module) -> Iterator[nn.Linear]:
    """Yield the linear layers of a model's blocks that read what `RMSNorm` gives."""
    for block in model.modules():
        if isinstance(block, Block):
            if isinstance(block.attention_norm, RMSNorm) and isinstance(block.attention, CausalSelfAttention):
                yield block.attention.qkv
            if isinstance(block.mlp_norm, RMSNorm):
                first = next(block.mlp.children())  # the MLPs of this file begin with the layer that reads their input
                assert isinstance(first, nn.Linear)
                yield first


__getattr__ = renamed_names(__name__, {"LanguageModel": "fastcompress.models.tokens.NextTokenModel"})
