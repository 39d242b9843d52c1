"""The parts a transformer is built from: norms, rotary positions, causal attention, MLPs, a residual block.

Why they stand apart from ``gpt.py``: later models (byte-latent, LZ) reuse them with other wiring, so no part
knows a model's configuration. A block returns what it adds to the residual stream, which the trunk owns
(``trunk.py``). Shapes use B = sequences in the batch, T = positions, D = width, H = heads, K = D / H. FLOPs are counted
from these modules (``flops.py``), so every product with a weight matrix must be an ``nn.Linear``, and a module that
multiplies activations with activations says what that costs through ``activation_flops_per_token``.
"""

from __future__ import annotations

import math
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from fastcompress._deprecated import renamed_names
from fastcompress.models.protocol import AttentionKind
from fastcompress.models.tokens import NextTokenModel  # noqa: F401  (the old LanguageModel)
from fastcompress.models.trunk import Branch, Context

NormKind = Literal["layernorm", "rmsnorm"]
MLPKind = Literal["gelu", "swiglu"]

ROTARY_BASE = 10_000.0  # wavelengths from 2 pi to about 2 pi * base positions
RMS_EPSILON = 1e-6


class RMSNorm(nn.Module):
    """Divide each vector by its root mean square; no learned gain, as the next matrix can scale too."""

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, (x.size(-1),), eps=RMS_EPSILON)  # [..., D]


def make_norm(kind: NormKind, width: int, *, bias: bool) -> nn.Module:
    """The pre-norm of a sublayer; ``bias`` concerns LayerNorm only."""
    return nn.LayerNorm(width, bias=bias) if kind == "layernorm" else RMSNorm()


class Rotary(nn.Module):
    """Rotary position embedding: rotate each pair of head dimensions by an angle that grows with the position.

    Su et al., "RoFormer" (arXiv 2104.09864). Pairs are (i, i + K/2). Scores then depend on distance only.
    """

    cos: Tensor
    sin: Tensor

    def __init__(self, head_dim: int, context_length: int) -> None:
        super().__init__()
        frequency = ROTARY_BASE ** (-torch.arange(0, head_dim, 2, dtype=torch.float32) / head_dim)  # [K/2]
        angle = torch.outer(torch.arange(context_length, dtype=torch.float32), frequency)  # [T, K/2]
        self.register_buffer("cos", angle.cos(), persistent=False)  # [T, K/2]
        self.register_buffer("sin", angle.sin(), persistent=False)  # [T, K/2]

    def forward(self, x: Tensor, positions: Tensor | None = None) -> Tensor:
        """Rotate ``x float[B, H, T, K]`` for ``positions int64[B, T]``; None: 0 .. T - 1."""
        if positions is None:
            cos, sin = self.cos[: x.size(-2)], self.sin[: x.size(-2)]  # [T, K/2]
        else:
            cos, sin = self.cos[positions][:, None], self.sin[positions][:, None]  # [B, 1, T, K/2]
        first, second = x.chunk(2, dim=-1)  # 2 x [B, H, T, K/2]
        return torch.cat((first * cos - second * sin, first * sin + second * cos), dim=-1)  # [B, H, T, K]


def plain_attention(
    query: Tensor, key: Tensor, value: Tensor, *, dropout: float, visible: Tensor | None = None
) -> Tensor:
    """Attention written out: the oracle of the fused kernel, and what the FLOP counter can see.

    Args:
        query: ``float[B, H, T, K]``.
        key, value: ``float[B, H, U, K]``.
        dropout: Of the weights.
        visible: ``bool[..., T, U]``, what each query sees; None: causal, T = U.
    """
    num_positions = query.size(-2)
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.size(-1))  # [B, H, T, U]
    if visible is None:
        visible = torch.ones(num_positions, num_positions, dtype=torch.bool, device=query.device).tril()  # [T, T]
    weights = scores.masked_fill(~visible, float("-inf")).softmax(dim=-1)  # [B, H, T, U]
    return F.dropout(weights, dropout) @ value  # [B, H, T, K]


class CausalSelfAttention(nn.Module):
    """Multi-head self-attention in which position t sees positions 0 .. t only."""

    def __init__(
        self,
        width: int,
        num_heads: int,
        context_length: int,
        *,
        rotary: bool,
        qk_norm: bool,
        bias: bool,
        dropout: float,
        kind: AttentionKind,
    ) -> None:
        super().__init__()
        self.num_heads, self.context_length = num_heads, context_length
        self.qk_norm, self.dropout, self.kind = qk_norm, dropout, kind
        self.qkv = nn.Linear(width, 3 * width, bias=bias)
        self.output = nn.Linear(width, width, bias=bias)
        self.rotary = Rotary(width // num_heads, context_length) if rotary else None

    def forward(self, x: Tensor, context: Context) -> Tensor:
        batch, num_positions, width = x.shape
        qkv = self.qkv(x).view(batch, num_positions, 3, self.num_heads, -1)  # [B, T, 3, H, K]
        query, key, value = qkv.permute(2, 0, 3, 1, 4).unbind(0)  # 3 x [B, H, T, K]
        if self.rotary is not None:  # float32 angles promote half-precision values; the norm below keeps that
            query, key = (self.rotary(z, context.positions) for z in (query, key))  # [B, H, T, K] each
        if self.qk_norm:  # bounds every score by sqrt(K), so no run blows up through attention
            query, key = (F.rms_norm(z, (z.size(-1),), eps=RMS_EPSILON) for z in (query, key))  # [B, H, T, K]
        query, key = query.to(value.dtype), key.to(value.dtype)
        if context.cache is not None:
            assert context.positions is not None
            key, value = context.cache.extend(self, key, value, context.positions)  # [B, H, C, K] each
        mixed = self.attend(query, key, value, context.visible())  # [B, H, T, K]
        joined: Tensor = self.output(mixed.transpose(1, 2).reshape(batch, num_positions, width))  # [B, T, D]
        return joined

    def attend(self, query: Tensor, key: Tensor, value: Tensor, visible: Tensor | None) -> Tensor:
        """Mix values by attention. ``visible``: ``bool[B, 1, T, U]``, what each query sees; None: causal."""
        dropout = self.dropout if self.training else 0.0
        if self.kind == "plain":
            return plain_attention(query, key, value, dropout=dropout, visible=visible)  # [B, H, T, K]
        return F.scaled_dot_product_attention(
            query, key, value, attn_mask=visible, dropout_p=dropout, is_causal=visible is None
        )  # [B, H, T, K]

    def activation_flops_per_token(self) -> int:
        """Scores and weighted sum, 2 per multiply-add, at the full window (no causal discount)."""
        return 4 * self.qkv.in_features * self.context_length


class GeluMLP(nn.Module):
    """GPT-2's MLP: four times the width, GELU between."""

    def __init__(self, width: int, *, bias: bool) -> None:
        super().__init__()
        self.expand = nn.Linear(width, 4 * width, bias=bias)
        self.output = nn.Linear(4 * width, width, bias=bias)

    def forward(self, x: Tensor) -> Tensor:
        hidden = F.gelu(self.expand(x))  # [B, T, 4 D]
        contracted: Tensor = self.output(hidden)  # [B, T, D]
        return contracted


def swiglu_hidden(width: int) -> int:
    """The hidden size of ``SwiGLU``: 8/3 of the width, to the nearest multiple of 64."""
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


class Block(nn.Module):
    """Pre-norm attention and MLP, each with dropout; they return what they add to the residual stream."""

    def __init__(
        self, attention: nn.Module, mlp: nn.Module, norms: tuple[nn.Module, nn.Module], *, dropout: float
    ) -> None:
        super().__init__()
        self.attention_norm, self.mlp_norm = norms
        self.attention, self.mlp = attention, mlp
        self.dropout = nn.Dropout(dropout)

    @property
    def branches(self) -> tuple[Branch, Branch]:
        """What the trunk adds, in order."""
        return self.mix_positions, self.transform

    def mix_positions(self, x: Tensor, context: Context) -> Tensor:
        """Attention over ``x [B, T, D]``: what it adds, [B, T, D]."""
        added: Tensor = self.dropout(self.attention(self.attention_norm(x), context))  # [B, T, D]
        return added

    def transform(self, x: Tensor, context: Context) -> Tensor:
        """The MLP of ``x [B, T, D]``: what it adds, [B, T, D]."""
        added: Tensor = self.dropout(self.mlp(self.mlp_norm(x)))  # [B, T, D]
        return added


__getattr__ = renamed_names(__name__, {"LanguageModel": "NextTokenModel"})
