"""Attention that skips what windows and documents hide, in whole blocks of positions.

`torch.nn.attention.flex_attention` (He et al., "FlexAttention", arXiv 2412.05496) compiles a rule for which positions
see each other into a kernel that never looks at blocks of 128 x 128 without such a pair. A mask for the other kernels
has B x T x T entries and skips nothing. Only compiled code gains: uncompiled, it would compute all scores.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.attention.flex_attention import BlockMask, create_block_mask, flex_attention

from fastcompress.models.trunk import Context, Reach


def fits(query: Tensor, context: Context, reach: Reach, dropout: float) -> bool:
    """Return whether this pass is one that block attention computes, and computes faster than a mask would."""
    hides = reach.size is not None or context.documents is not None
    head_dim = query.size(-1)
    is_supported = query.is_cuda and dropout == 0.0 and head_dim >= 16 and head_dim & (head_dim - 1) == 0
    return hides and is_supported and context.cache is None and torch.compiler.is_compiling()


def block_attention(query: Tensor, key: Tensor, value: Tensor, context: Context, reach: Reach) -> Tensor:
    """Mix values by attention within documents and a reach.

    Args:
        query: ``float[B, H, T, K]``.
        key, value: ``float[B, G, T, K]``; query head h reads their head h // (H / G).
        context: Of this pass; without a cache.
        reach: The positions that each position sees.

    Returns:
        ``float[B, H, T, K]``.
    """
    name = f"blocks {reach}"
    if name not in context.shared:
        context.shared[name] = block_mask(context, reach)
    is_grouped = key.size(1) != query.size(1)
    mixed: Tensor = flex_attention(query, key, value, block_mask=context.shared[name], enable_gqa=is_grouped)
    return mixed


def block_mask(context: Context, reach: Reach) -> BlockMask:
    """Return which blocks hold positions that see each other; the same rule as ``Context.visible``."""
    documents = context.documents  # int64[B, T]
    positions = context.positions if reach.in_chunks else None  # int64[B, T]; elsewhere distances say enough
    num_rows, num_positions = context.ids.shape[:2]  # what stands at a position may be several symbols

    def sees(row: Tensor, head: Tensor, reader: Tensor, read: Tensor) -> Tensor:
        seen = reader >= read
        if positions is None:
            seen = seen & reach.sees(reader, read)
        else:
            seen = seen & reach.sees(positions[row, reader], positions[row, read])
        if documents is not None:
            seen = seen & (documents[row, reader] == documents[row, read])
        return seen

    rows = None if documents is None and positions is None else num_rows
    return create_block_mask(sees, rows, None, num_positions, num_positions, device=str(context.ids.device))
