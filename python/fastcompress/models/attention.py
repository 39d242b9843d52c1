"""Causal self-attention and its variants: positions, grouped heads, windows, value residuals, gates.

Shapes use B = sequences in the batch, T = positions, D = width, H = query heads, G = heads of keys and values (G = H
unless queries are grouped), K = D / H, U = positions of keys and values.
"""

from __future__ import annotations

import math
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from fastcompress.models import block_attention, fused_heads
from fastcompress.models.protocol import AttentionKind
from fastcompress.models.trunk import WHOLE_REACH, Context, Reach

ExclusiveKind = Literal["off", "plain", "gated"]

ROTARY_BASE = 10_000.0  # wavelengths from 2 pi to about 2 pi * base positions
RMS_EPSILON = 1e-6


def at_least_float32(x: Tensor) -> Tensor:
    """Return numbers in half precision as float32, others as they are."""
    return x if x.dtype == torch.float64 else x.float()


class Rotary(nn.Module):
    """Rotary position embedding: rotate each pair of head dimensions by an angle that grows with the position.

    Su et al., "RoFormer" (arXiv 2104.09864). Pairs are (i, i + K/2). Scores then depend on distance only. The
    first of a pair becomes x cos - y sin, the second y cos + x sin; ``sin`` holds the signs, too.
    """

    cos: Tensor
    sin: Tensor

    def __init__(self, head_dim: int, context_length: int, base: float = ROTARY_BASE) -> None:
        super().__init__()
        frequency = base ** (-torch.arange(0, head_dim, 2, dtype=torch.float32) / head_dim)  # [K/2]
        angle = torch.outer(torch.arange(context_length, dtype=torch.float32), frequency)  # [T, K/2]
        cos, sin = angle.cos(), angle.sin()  # [T, K/2] each
        self.register_buffer("cos", torch.cat((cos, cos), dim=-1), persistent=False)  # [T, K]
        self.register_buffer("sin", torch.cat((-sin, sin), dim=-1), persistent=False)  # [T, K]

    def forward(self, x: Tensor, positions: Tensor | None = None) -> Tensor:
        """Rotate ``x float[B, H, T, K]`` for ``positions int64[B, T]``; None: 0 .. T - 1."""
        if positions is None:
            cos, sin = self.cos[: x.size(-2)], self.sin[: x.size(-2)]  # [T, K]
        else:
            cos, sin = self.cos[positions][:, None], self.sin[positions][:, None]  # [B, 1, T, K]
        # A shifted copy, not halves joined: compilers make one pass without branches of it.
        other: Tensor = x.roll(x.size(-1) // 2, -1)  # [B, H, T, K]
        rotated: Tensor = x * cos + other * sin  # [B, H, T, K]
        return rotated


def plain_attention(
    query: Tensor, key: Tensor, value: Tensor, *, dropout: float, visible: Tensor | None = None
) -> Tensor:
    """Compute attention without a fused kernel: the oracle of that kernel, and visible to torch's FLOP counter.

    Args:
        query: ``float[B, H, T, K]``.
        key, value: ``float[B, G, U, K]``; query head h reads head h // (H / G).
        dropout: Dropout probability of the attention weights.
        visible: ``bool[..., T, U]``, what each query sees; None: causal, T = U.
    """
    num_positions = query.size(-2)
    if key.size(1) != query.size(1):
        key, value = (z.repeat_interleave(query.size(1) // z.size(1), dim=1) for z in (key, value))  # [B, H, U, K]
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.size(-1))  # [B, H, T, U]
    if visible is None:
        visible = torch.ones(num_positions, num_positions, dtype=torch.bool, device=query.device).tril()  # [T, T]
    weights = scores.masked_fill(~visible, float("-inf")).softmax(dim=-1)  # [B, H, T, U]
    return F.dropout(weights, dropout) @ value  # [B, H, T, K]


def fused_attention(
    query: Tensor, key: Tensor, value: Tensor, *, dropout: float, visible: Tensor | None = None
) -> Tensor:
    """Compute what `plain_attention` does by the fastest kernel that torch has here."""
    mixed: Tensor = F.scaled_dot_product_attention(
        query,
        key,
        value,
        attn_mask=visible,
        dropout_p=dropout,
        is_causal=visible is None,
        enable_gqa=key.size(1) != query.size(1),
    )
    return mixed


class ValueResidual(nn.Module):
    """Mix the first layer's values into a later layer's: ``v = a v_1 + b v_l``, a and b learned from 1/2.

    Zhou et al., "Value Residual Learning" (arXiv 2410.17897), its learnable variant.
    """

    def __init__(self, *, is_first: bool) -> None:
        super().__init__()
        self.shares = None if is_first else nn.Parameter(torch.full((2,), 0.5))  # [2]

    def forward(self, value: Tensor, context: Context) -> Tensor:
        """Mix ``value [B, G, T, K]``; the first layer leaves its own for the others."""
        if self.shares is None:
            context.shared["first values"] = value
            return value
        first: Tensor = context.shared["first values"]  # [B, G, T, K]
        return self.shares[0] * first + self.shares[1] * value  # [B, G, T, K]


class ExclusiveAttention(nn.Module):
    """Remove from each head's output its projection on the position's own value: ``y - g (y . v) v / |v|^2``.

    Zhai, "Exclusive Self Attention" (arXiv 2603.09078), where g = 1. Gated: g = tanh(a) with a learned a per
    head. It starts at 0, so the model starts equal to the one without. v is the value that attention averages,
    including value residuals.
    """

    def __init__(self, num_heads: int, *, gated: bool) -> None:
        super().__init__()
        self.gate = nn.Parameter(torch.zeros(num_heads)) if gated else None  # [H]

    def forward(self, mixed: Tensor, value: Tensor) -> Tensor:
        """Project ``mixed [B, H, T, K]``; ``value [B, G, T, K]`` holds the values of the same positions."""
        batch, _, num_positions, head_dim = mixed.shape
        grouped = mixed.reshape(batch, value.size(1), -1, num_positions, head_dim)  # [B, G, H/G, T, K]
        own = F.normalize(value, dim=-1)[:, :, None]  # [B, G, 1, T, K]
        along = (grouped * own).sum(-1, keepdim=True) * own  # [B, G, H/G, T, K]
        along = along.reshape(mixed.shape)  # [B, H, T, K]
        if self.gate is not None:
            along = self.gate.tanh()[:, None, None] * along  # [B, H, T, K]
        left: Tensor = mixed - along  # [B, H, T, K]
        return left


class CausalSelfAttention(nn.Module):
    """Multi-head self-attention in which position t sees positions 0 .. t only, or those of them within reach.

    Args:
        width: D, a multiple of ``num_heads``.
        num_heads: H, the number of query heads.
        context_length: Largest number of positions.
        rotary: Rotate queries and keys by their positions.
        qk_norm: Divide queries and keys by their root mean square.
        bias: Biases in the projections.
        dropout: Dropout probability of the attention weights.
        kind: The kernel.
        rotary_base: See `Rotary`.
        kv_heads: G, heads of keys and values, each read by H / G heads of queries (Ainslie et al., "GQA",
            arXiv 2305.13245); None: H.
        reach: The positions that each position sees.
        value_residual: Mixes values with the first layer's; None for no mixing.
        gate: Multiply each head's output by ``sigmoid(x W)``, one number per head and position (Qiu et al., "Gated
            Attention", arXiv 2505.06708).
        exclusive: Remove each position's own value from its output (`ExclusiveAttention`).
    """

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
        rotary_base: float = ROTARY_BASE,
        kv_heads: int | None = None,
        reach: Reach = WHOLE_REACH,
        value_residual: ValueResidual | None = None,
        gate: bool = False,
        exclusive: ExclusiveKind = "off",
    ) -> None:
        super().__init__()
        self.num_heads, self.kv_heads, self.context_length = num_heads, kv_heads or num_heads, context_length
        self.qk_norm, self.dropout, self.kind, self.reach = qk_norm, dropout, kind, reach
        self.head_dim = head_dim = width // num_heads
        self.sizes = (width, self.kv_heads * head_dim, self.kv_heads * head_dim)  # of queries, keys and values
        self.qkv = nn.Linear(width, sum(self.sizes), bias=bias)
        self.output = nn.Linear(width, width, bias=bias)
        self.rotary = Rotary(head_dim, context_length, rotary_base) if rotary else None
        self.value_residual = value_residual
        self.gate = nn.Linear(width, num_heads, bias=False) if gate else None
        self.exclusive = None if exclusive == "off" else ExclusiveAttention(num_heads, gated=exclusive == "gated")

    def forward(self, x: Tensor, context: Context) -> Tensor:
        query, key, value = self.project(x, context)  # [B, H, T, K], 2 x [B, G, T, K]
        own = value  # [B, G, T, K]
        if context.cache is not None:
            assert context.positions is not None
            key, value = context.cache.extend(self, key, value, context.positions)  # [B, G, C, K] each
        mixed = self.attend(query, key, value, context)  # [B, H, T, K]
        if self.exclusive is not None:
            mixed = self.exclusive(mixed, own)  # [B, H, T, K]
        if self.gate is not None:
            mixed = mixed * self.gate(x).sigmoid().transpose(1, 2)[..., None]  # [B, H, T, K]
        joined: Tensor = self.output(mixed.transpose(1, 2).flatten(2))  # [B, T, D]
        return joined

    def project(self, x: Tensor, context: Context) -> tuple[Tensor, Tensor, Tensor]:
        """Return queries [B, H, T, K], keys and values [B, G, T, K] of ``x [B, T, D]``, ready for attention."""
        projected = self.qkv(x)  # [B, T, (H + 2 G) K]
        if self.qk_norm and self.rotary is not None and fused_heads.fits(projected, self.head_dim):
            angles, heads = (self.rotary.cos, self.rotary.sin), (self.num_heads, self.kv_heads)
            placed = fused_heads.fused_heads(projected, *angles, context.positions, *heads, RMS_EPSILON)
            query, key, value = (part.transpose(1, 2) for part in placed[:3])
        else:
            split = projected.split(self.sizes, dim=-1)  # [B, T, H K], 2 x [B, T, G K]
            query, key, value = (
                part.unflatten(-1, (heads, -1)).transpose(1, 2)
                for part, heads in zip(split, (self.num_heads, self.kv_heads, self.kv_heads), strict=True)
            )
            query, key = (self.place(z, context).to(value.dtype) for z in (query, key))
        if self.value_residual is not None:
            value = self.value_residual(value, context)
        return query, key, value

    def place(self, x: Tensor, context: Context) -> Tensor:
        """Rotate queries or keys ``x [B, H, T, K]`` and normalize them, in float32 if x is in half precision.

        A rotation keeps the norm, so both orders give the same up to rounding. In compiled code the norm comes first:
        the backward pass then needs x only, and not the rotated float32 numbers, which the compiler would keep.
        """
        norm_is_first = torch.compiler.is_compiling()
        if self.qk_norm and norm_is_first:
            x = self.normalized(at_least_float32(x))  # [B, H, T, K]
        if self.rotary is not None:  # float32 angles promote half-precision values; the norm below keeps that
            x = self.rotary(x, context.positions)  # [B, H, T, K]
        if self.qk_norm and not norm_is_first:
            x = self.normalized(x)  # [B, H, T, K]
        return x

    def normalized(self, x: Tensor) -> Tensor:
        """Divide ``x [B, H, T, K]`` by its root mean square, which bounds every score by sqrt(K)."""
        return F.rms_norm(x, (x.size(-1),), eps=RMS_EPSILON)  # [B, H, T, K]

    def attend(self, query: Tensor, key: Tensor, value: Tensor, context: Context) -> Tensor:
        """Average values by attention over what each position sees, [B, H, T, K]."""
        dropout = self.dropout if self.training else 0.0
        if self.kind == "sdpa" and self.is_in_whole_chunks(query, context):
            return self.attend_in_chunks(query, key, value, dropout)
        if self.kind == "sdpa" and block_attention.fits(query, context, self.reach, dropout):
            return block_attention.block_attention(query, key, value, context, self.reach)
        visible = context.visible(self.reach)  # bool[B or 1, 1, T, U]; None: causal
        if self.kind == "plain":
            return plain_attention(query, key, value, dropout=dropout, visible=visible)
        return fused_attention(query, key, value, dropout=dropout, visible=visible)

    def is_in_whole_chunks(self, query: Tensor, context: Context) -> bool:
        """Return whether this pass is one of rows that fall into chunks without a rest."""
        chunk = self.reach.size if self.reach.in_chunks else None
        is_plain = context.cache is None and context.documents is None and context.positions is None
        return chunk is not None and is_plain and query.size(2) % chunk == 0

    def attend_in_chunks(self, query: Tensor, key: Tensor, value: Tensor, dropout: float) -> Tensor:
        """Attend within each chunk as if it were a row of its own, [B, H, T, K]: any kernel can, and skips the rest."""
        rows, heads, positions, size = query.shape
        chunk = self.reach.size or positions
        query, key, value = (
            x.reshape(rows, x.size(1), -1, chunk, size).transpose(1, 2).flatten(0, 1) for x in (query, key, value)
        )  # [B N, H, C, K], 2 x [B N, G, C, K]
        mixed = fused_attention(query, key, value, dropout=dropout)  # [B N, H, C, K]
        return mixed.view(rows, -1, heads, chunk, size).transpose(1, 2).reshape(rows, heads, positions, size)

    def activation_flops_per_token(self) -> int:
        """Count scores and weighted sum, 2 per multiply-add, at the full window (no causal discount)."""
        return 4 * self.sizes[0] * min(self.reach.size or self.context_length, self.context_length)
