"""Queries, keys and values of one projection, normalized and rotated, in one pass over memory each way.

For a head's vector z in R^K at position p, with halves z_1 and z_2, angles a_p in R^(K/2), c = cos a_p, s = sin a_p,

    r = (|z|^2 / K + epsilon)^(-1/2),    n = r z,    y_1 = n_1 c - n_2 s,    y_2 = n_2 c + n_1 s.

That is y = R n with a rotation R, which keeps products, so the slope of what is made of y by z is

    dz = r R^T (dy - y (dy . y) / K).

The backward pass thus reads y, which attention keeps anyway, and r; the projection itself need not be kept. Left to the
compiler, norms, rotations and the joining of the three gradients were five kernels, which took an H200 twice the time
that moving the numbers takes, and kept 3 KB more for each token and layer of width 768.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

try:
    import triton  # type: ignore[import-not-found, unused-ignore]
    import triton.language as tl  # type: ignore[import-not-found, unused-ignore]
except ImportError:  # torch for CPUs comes without it
    HAS_KERNEL = False
else:
    HAS_KERNEL = True

BLOCK, WARPS = 8, 4  # tokens of a program, and its warps


def fits(projected: Tensor, head_dim: int) -> bool:
    """Return whether the kernels are for a projection: in half precision, on a card, with heads of their sizes."""
    is_half = projected.dtype in (torch.bfloat16, torch.float16)
    return HAS_KERNEL and projected.is_cuda and is_half and is_head_size(head_dim)


def is_head_size(head_dim: int) -> bool:
    """Return whether the kernels are for heads of a size: powers of two, from 16 on."""
    return head_dim >= 16 and head_dim & (head_dim - 1) == 0


@torch.library.custom_op("fastcompress::fused_heads", mutates_args=())
def fused_heads(
    projected: Tensor,
    cos: Tensor,
    sin: Tensor,
    positions: Tensor | None,
    num_heads: int,
    kv_heads: int,
    epsilon: float,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Split a projection into heads, and normalize and rotate those of queries and keys; differentiable by the first.

    Args:
        projected: ``float[B, T, (H + 2 G) K]``: H heads of queries, G of keys, G of values.
        cos, sin: ``float[positions, K]``, the buffers of `Rotary`.
        positions: ``int64[B, T]``; None: 0 .. T - 1 in each row.
        num_heads: H.
        kv_heads: G.
        epsilon: Of the norm.

    Returns:
        Queries ``[B, T, H, K]``, keys and values ``[B, T, G, K]`` of the type of ``projected``, and r,
        ``[B, T, H + G]``, float32 or wider.
    """
    query, key, value, scale = _room(projected, num_heads, kv_heads)
    rows, length, _, head_dim = query.shape
    projected = projected.contiguous()
    if HAS_KERNEL and projected.is_cuda:
        where = None if positions is None else positions.contiguous()
        _place[_grid(rows * length)](
            projected, cos, sin, where, query, key, value, scale, rows * length, length, epsilon,
            where is not None, num_heads, kv_heads, head_dim // 2, BLOCK, num_warps=WARPS,
        )  # fmt: skip
    else:
        parts = projected.view(rows, length, -1, head_dim)  # [B, T, H + 2 G, K]
        placed = parts[:, :, : num_heads + kv_heads].to(scale.dtype)  # [B, T, H + G, K]
        scale.copy_((placed.square().mean(-1) + epsilon).rsqrt())
        placed = _rotated(placed * scale[..., None], cos, sin, positions)
        query.copy_(placed[:, :, :num_heads])
        key.copy_(placed[:, :, num_heads:])
        value.copy_(parts[:, :, num_heads + kv_heads :])
    return query, key, value, scale


@fused_heads.register_fake
def _(
    projected: Tensor,
    cos: Tensor,
    sin: Tensor,
    positions: Tensor | None,
    num_heads: int,
    kv_heads: int,
    epsilon: float,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    return _room(projected, num_heads, kv_heads)


@torch.library.custom_op("fastcompress::fused_heads_backward", mutates_args=())
def _fused_heads_backward(
    of_query: Tensor,
    of_key: Tensor,
    of_value: Tensor,
    query: Tensor,
    key: Tensor,
    scale: Tensor,
    cos: Tensor,
    sin: Tensor,
    positions: Tensor | None,
) -> Tensor:
    """Return the gradient of the projection, ``[B, T, (H + 2 G) K]``, from those of queries, keys and values."""
    rows, length, num_heads, head_dim = query.shape
    kv_heads = key.size(2)
    of_query, of_key, of_value, query, key = (
        x.contiguous() for x in (of_query, of_key, of_value, query, key)
    )  # views of attention's own order of axes need no copy
    of_projected = query.new_empty(rows, length, (num_heads + 2 * kv_heads) * head_dim)
    if HAS_KERNEL and query.is_cuda:
        where = None if positions is None else positions.contiguous()
        _place_backward[_grid(rows * length)](
            of_query, of_key, of_value, query, key, scale, cos, sin, where, of_projected, rows * length, length,
            where is not None, num_heads, kv_heads, head_dim // 2, BLOCK, num_warps=WARPS,
        )  # fmt: skip
        return of_projected
    placed = torch.cat((query, key), 2).to(scale.dtype)  # [B, T, H + G, K]
    slope = torch.cat((of_query, of_key), 2).to(scale.dtype)  # [B, T, H + G, K]
    slope = slope - placed * (slope * placed).mean(-1, keepdim=True)
    slope = scale[..., None] * _rotated(slope, cos, -sin, positions)
    return of_projected.copy_(torch.cat((slope.to(query.dtype), of_value), 2).flatten(2))


@_fused_heads_backward.register_fake
def _(
    of_query: Tensor,
    of_key: Tensor,
    of_value: Tensor,
    query: Tensor,
    key: Tensor,
    scale: Tensor,
    cos: Tensor,
    sin: Tensor,
    positions: Tensor | None,
) -> Tensor:
    rows, length, num_heads, head_dim = query.shape
    return query.new_empty(rows, length, (num_heads + 2 * key.size(2)) * head_dim)


def _keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor, Tensor, Tensor]) -> None:
    _, cos, sin, positions, *_ = inputs
    query, key, _, scale = output
    ctx.mark_non_differentiable(scale)
    ctx.save_for_backward(query, key, scale, cos, sin, positions)


def _backward(
    ctx: Any, of_query: Tensor, of_key: Tensor, of_value: Tensor, _: Tensor | None
) -> tuple[Tensor | None, ...]:
    of_projected: Tensor = _fused_heads_backward(of_query, of_key, of_value, *ctx.saved_tensors)
    return of_projected, *[None] * 6


fused_heads.register_autograd(_backward, setup_context=_keep)


def _room(projected: Tensor, num_heads: int, kv_heads: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return tensors like the results of `fused_heads`, with arbitrary numbers; r is in float32 or wider."""
    rows, length, width = projected.shape
    head_dim = width // (num_heads + 2 * kv_heads)
    query, key, value = (
        projected.new_empty(rows, length, heads, head_dim) for heads in (num_heads, kv_heads, kv_heads)
    )
    full = torch.promote_types(projected.dtype, torch.float32)
    return query, key, value, projected.new_empty(rows, length, num_heads + kv_heads, dtype=full)


def _rotated(x: Tensor, cos: Tensor, sin: Tensor, positions: Tensor | None) -> Tensor:
    """Rotate ``x [B, T, heads, K]``; ``-sin`` rotates back."""
    where = slice(x.size(1)) if positions is None else positions
    turned: Tensor = x * cos[where].unsqueeze(-2) + x.roll(x.size(-1) // 2, -1) * sin[where].unsqueeze(-2)
    return turned


def _grid(num_tokens: int) -> tuple[int]:
    return (-(-num_tokens // BLOCK),)


if HAS_KERNEL:

    @triton.jit  # type: ignore[untyped-decorator, unused-ignore]
    def _places(  # type: ignore[no-untyped-def]
        cos,
        sin,
        positions,
        num_tokens,
        length,
        has_positions: tl.constexpr,
        num_heads: tl.constexpr,
        kv_heads: tl.constexpr,
        half: tl.constexpr,
        block: tl.constexpr,
    ):
        """The tokens of this program, which of them exist, the cosines and sines of their positions, [block, K/2] each.

        Then the places of the first half of their first head: in the projection, in queries, and in keys or values.
        """
        tokens = tl.program_id(0).to(tl.int64) * block + tl.arange(0, block)
        is_token = tokens < num_tokens
        where = tl.load(positions + tokens, mask=is_token, other=0) if has_positions else tokens % length
        lanes = tl.arange(0, half)[None, :]
        at = where[:, None] * (2 * half) + lanes
        c, s = tl.load(cos + at), tl.load(sin + at + half)  # the second half of sines has no minus
        in_row = tokens[:, None] * ((num_heads + 2 * kv_heads) * 2 * half) + lanes
        in_query = tokens[:, None] * (num_heads * 2 * half) + lanes
        in_key = tokens[:, None] * (kv_heads * 2 * half) + lanes
        return tokens, is_token, c, s, in_row, in_query, in_key

    @triton.jit  # type: ignore[untyped-decorator, unused-ignore]
    def _place(  # type: ignore[no-untyped-def]
        projected,
        cos,
        sin,
        positions,
        query,
        key,
        value,
        scale,
        num_tokens,
        length,
        epsilon,
        has_positions: tl.constexpr,
        num_heads: tl.constexpr,
        kv_heads: tl.constexpr,
        half: tl.constexpr,
        block: tl.constexpr,
    ):
        """Some tokens, all heads: the angles are read once."""
        tokens, is_token, c, s, row, to_query, to_key = _places(
            cos, sin, positions, num_tokens, length, has_positions, num_heads, kv_heads, half, block
        )
        mask = is_token[:, None]
        for head in tl.static_range(num_heads + kv_heads):
            first = tl.load(projected + row + head * 2 * half, mask=mask, other=0.0).to(tl.float32)
            second = tl.load(projected + row + (head * 2 + 1) * half, mask=mask, other=0.0).to(tl.float32)
            r = tl.rsqrt(tl.sum(first * first + second * second, axis=1) / (2 * half) + epsilon)
            tl.store(scale + tokens * (num_heads + kv_heads) + head, r, mask=is_token)
            first, second = first * r[:, None], second * r[:, None]
            if head < num_heads:
                to = query + to_query + head * 2 * half
            else:
                to = key + to_key + (head - num_heads) * 2 * half
            tl.store(to, (first * c - second * s).to(query.dtype.element_ty), mask=mask)
            tl.store(to + half, (second * c + first * s).to(query.dtype.element_ty), mask=mask)
        for head in tl.static_range(2 * kv_heads):
            at = row + ((num_heads + kv_heads) * 2 + head) * half
            tl.store(value + to_key + head * half, tl.load(projected + at, mask=mask), mask=mask)

    @triton.jit  # type: ignore[untyped-decorator, unused-ignore]
    def _place_backward(  # type: ignore[no-untyped-def]
        of_query,
        of_key,
        of_value,
        query,
        key,
        scale,
        cos,
        sin,
        positions,
        of_projected,
        num_tokens,
        length,
        has_positions: tl.constexpr,
        num_heads: tl.constexpr,
        kv_heads: tl.constexpr,
        half: tl.constexpr,
        block: tl.constexpr,
    ):
        """The gradients of some tokens, all heads, side by side as the projection has them."""
        tokens, is_token, c, s, row, to_query, to_key = _places(
            cos, sin, positions, num_tokens, length, has_positions, num_heads, kv_heads, half, block
        )
        mask = is_token[:, None]
        for head in tl.static_range(num_heads + kv_heads):
            if head < num_heads:
                at = to_query + head * 2 * half
                placed, slopes = query, of_query
            else:
                at = to_key + (head - num_heads) * 2 * half
                placed, slopes = key, of_key
            first = tl.load(placed + at, mask=mask, other=0.0).to(tl.float32)
            second = tl.load(placed + at + half, mask=mask, other=0.0).to(tl.float32)
            slope1 = tl.load(slopes + at, mask=mask, other=0.0).to(tl.float32)
            slope2 = tl.load(slopes + at + half, mask=mask, other=0.0).to(tl.float32)
            along = tl.sum(first * slope1 + second * slope2, axis=1) / (2 * half)
            slope1 -= first * along[:, None]
            slope2 -= second * along[:, None]
            r = tl.load(scale + tokens * (num_heads + kv_heads) + head, mask=is_token, other=0.0)[:, None]
            to = of_projected + row + head * 2 * half
            tl.store(to, (r * (slope1 * c + slope2 * s)).to(query.dtype.element_ty), mask=mask)
            tl.store(to + half, (r * (slope2 * c - slope1 * s)).to(query.dtype.element_ty), mask=mask)
        for head in tl.static_range(2 * kv_heads):
            to = of_projected + row + ((num_heads + kv_heads) * 2 + head) * half
            tl.store(to, tl.load(of_value + to_key + head * half, mask=mask), mask=mask)
