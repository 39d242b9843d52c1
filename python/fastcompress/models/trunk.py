"""The residual stream, and what blocks may know beside it.

A pre-norm transformer adds to its stream what each branch of each block returns: x <- x + f(x). The trunk does the
adding and the blocks return f(x) alone, so that a trunk may combine the branches otherwise (Attention Residuals weigh
all earlier ones) with the same blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor, nn


class Cache:
    """What the modules of a model keep between two steps of decoding, in buffers of fixed shape.

    Attributes:
        lanes: Sequences that are decoded together.
        length: Most positions of each.
    """

    def __init__(self, lanes: int, length: int) -> None:
        self.lanes, self.length = lanes, length
        self._kept: dict[nn.Module, tuple[Tensor, Tensor]] = {}

    def extend(self, module: nn.Module, key: Tensor, value: Tensor, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Write keys and values at their positions and return the whole buffers.

        Args:
            module: Whose they are; each module has buffers of its own.
            key, value: ``float[lanes, H, T, K]``.
            positions: ``int64[lanes, T]``, in [0, length).

        Returns:
            Keys and values, ``float[lanes, H, length, K]``; what lies after a lane's last position means nothing.
        """
        if module not in self._kept:
            shape = (self.lanes, key.size(1), self.length, key.size(3))
            self._kept[module] = key.new_zeros(shape), value.new_zeros(shape)
        keys, values = self._kept[module]  # [lanes, H, length, K] each
        lanes = torch.arange(self.lanes, device=positions.device)[:, None]  # [lanes, 1]
        keys[lanes, :, positions] = key.transpose(1, 2)  # [lanes, T, H, K]
        values[lanes, :, positions] = value.transpose(1, 2)  # [lanes, T, H, K]
        return keys, values


@dataclass(frozen=True)
class Context:
    """What blocks may know beside the stream: B rows of T positions.

    Attributes:
        ids: ``int64[B, T]``, the symbols that the stream began with.
        positions: ``int64[B, T]``; None: 0 .. T - 1 in every row.
        documents: ``int64[B, T]``, the number of the document that a position belongs to: a position sees those of its
            own document only. None: all of a row are of one.
        cache: Earlier positions, when decoding; None: the rows are whole.
    """

    ids: Tensor
    positions: Tensor | None = None
    documents: Tensor | None = None
    cache: Cache | None = None

    def visible(self) -> Tensor | None:
        """Which positions each position sees, ``bool[B, 1, T, positions]``; None: all up to and including itself."""
        if self.cache is not None:
            assert self.positions is not None, "decoding needs positions"
            kept = torch.arange(self.cache.length, device=self.ids.device)  # [length]
            return (kept <= self.positions[:, :, None])[:, None]  # [B, 1, T, length]
        if self.documents is None:
            return None
        same = self.documents[:, :, None] == self.documents[:, None, :]  # [B, T, T]
        return same.tril()[:, None]  # [B, 1, T, T]


Branch = Callable[[Tensor, Context], Tensor]  # (stream [B, T, D], context) -> what to add to it [B, T, D]


class HasBranches(Protocol):
    """A block as the trunk sees it."""

    branches: Iterable[Branch]


class Trunk(nn.Module):
    """Blocks around a residual stream; ``x [B, T, D] -> [B, T, D]``."""

    def __init__(self, blocks: Iterable[nn.Module]) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(blocks)

    def forward(self, x: Tensor, context: Context) -> Tensor:
        block: Any
        for block in self.blocks:
            for branch in block.branches:
                x = x + branch(x, context)  # [B, T, D]
        return x
