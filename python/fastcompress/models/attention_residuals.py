"""Attention Residuals: each branch reads a learned mixture of the outputs of earlier branches instead of their sum.

Kimi Team, "Attention Residuals" (arXiv 2603.15031). With v_0 the embedding and v_i the output of branch i, branch l
reads

    h_l = sum over i < l of a_i v_i,    a = softmax over i of  w_l . RMSNorm(v_i),

and the head reads one more mixture, over all of them. Every w_l starts at zero, so the first mixtures are plain
averages. In the block form, consecutive branches form groups. The sources are v_0, the sums of the completed groups,
and the partial sum of the current one. Groups of one branch give the full form.

Cost: each read is attention over depth, 4 N D operations per position for N sources, and the N sources stay in memory.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from fastcompress.models.attention import RMS_EPSILON
from fastcompress.models.trunk import Context, Trunk


def group_size(num_branches: int, num_groups: int | None) -> int:
    """Return the number of branches per group; None if each is a group of its own."""
    return 1 if num_groups is None else -(-num_branches // num_groups)


def num_sources(num_added: int, num_branches: int, num_groups: int | None) -> int:
    """Return the number of sources after ``num_added`` branches: the embedding, full groups, and a partial one.

    >>> [num_sources(i, 6, 2) for i in range(7)], [num_sources(i, 6, None) for i in range(7)]
    ([1, 2, 2, 2, 3, 3, 3], [1, 2, 3, 4, 5, 6, 7])
    """
    return 1 + -(-num_added // group_size(num_branches, num_groups))


class DepthAttention(nn.Module):
    """A mixture of ``num_sources`` streams, each [B, T, D], with separate weights for each position."""

    def __init__(self, width: int, num_sources: int) -> None:
        super().__init__()
        self.query = nn.Parameter(torch.zeros(width))  # [D]
        self.num_sources = num_sources

    def forward(self, sources: list[Tensor]) -> Tensor:
        values = torch.stack(sources)  # [N, B, T, D]
        keys = F.rms_norm(values, (values.size(-1),), eps=RMS_EPSILON)  # [N, B, T, D]
        scores = torch.einsum("nbtd,d->nbt", keys, self.query.to(keys.dtype))  # [N, B, T]
        weights = scores.float().softmax(dim=0).to(values.dtype)  # [N, B, T]
        return torch.einsum("nbt,nbtd->btd", weights, values).to(values.dtype)  # [B, T, D]

    def activation_flops_per_token(self) -> int:
        """Count scores and weighted sum over the sources, 2 per multiply-add."""
        return 4 * self.num_sources * self.query.numel()


class AttentionResidualTrunk(Trunk):
    """Blocks that read mixtures over depth; ``x [B, T, D] -> [B, T, D]``.

    Args:
        blocks: As for `Trunk`.
        width: D.
        num_groups: The number of groups; None: one for each branch, the full form.
    """

    def __init__(self, blocks: Iterable[nn.Module], width: int, num_groups: int | None = None) -> None:
        super().__init__(blocks)
        every_block: Any = self.blocks
        num_branches = sum(len(block.branches) for block in every_block)
        self.group_size = group_size(num_branches, num_groups)
        # The first branch has one source only; the last read is the head's.
        self.reads = nn.ModuleList(
            DepthAttention(width, num_sources(i, num_branches, num_groups)) for i in range(1, num_branches + 1)
        )

    def forward(self, x: Tensor, context: Context) -> Tensor:
        sources, num_added = [x], 0  # [B, T, D] each
        block: Any
        for block in self.blocks:
            for branch in block.branches:
                added = branch(x, context).to(x.dtype)  # [B, T, D]
                if num_added % self.group_size:
                    sources[-1] = sources[-1] + added
                else:
                    sources.append(added)
                x = self.reads[num_added](sources)  # [B, T, D]
                num_added += 1
        return x
