"""The residual stream, and what blocks may know beside it.

A pre-norm transformer adds to its stream what each branch of each block returns: x <- x + f(x). The trunk does the
adding and the blocks return f(x) alone, so that a trunk may combine the branches otherwise (Attention Residuals weigh
all earlier ones) with the same blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch
from torch import Tensor, nn


class Cache:
    """What the modules of a model keep between two steps of decoding, in buffers of fixed shape.

    Attributes:
        lanes: Sequences that are decoded together.
        length: Most positions of each.
        constants: What a model computes once for all steps, by name.
    """

    def __init__(self, lanes: int, length: int) -> None:
        self.lanes, self.length = lanes, length
        self.constants: dict[str, Tensor] = {}
        self._kept: dict[nn.Module, tuple[Tensor, Tensor]] = {}
        self._histories: dict[nn.Module, Tensor] = {}

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

    def remember(self, module: nn.Module, x: Tensor, positions: Tensor) -> Tensor:
        """Write values of any shape at their positions and return the whole buffer.

        Args:
            module: Whose they are; each module has a buffer of its own.
            x: ``[lanes, T, ...]``.
            positions: ``int64[lanes, T]``, in [0, length).

        Returns:
            ``[lanes, length, ...]``; what lies after a lane's last position means nothing.
        """
        if module not in self._histories:
            self._histories[module] = x.new_zeros(self.lanes, self.length, *x.shape[2:])
        history = self._histories[module]  # [lanes, length, ...]
        lanes = torch.arange(self.lanes, device=positions.device)[:, None]  # [lanes, 1]
        history[lanes, positions] = x
        return history


@dataclass(frozen=True)
class Context:
    """What blocks may know beside the stream: B rows of T positions.

    Attributes:
        ids: ``int64[B, T]``, the symbols that the stream began with.
        positions: ``int64[B, T]``; None: 0 .. T - 1 in every row.
        documents: ``int64[B, T]``, the number of the document that a position belongs to: a position sees those of its
            own document only. None: all of a row are of one.
        cache: Earlier positions, when decoding; None: the rows are whole.
        shared: What modules leave for later ones in the same pass, by name.
    """

    ids: Tensor
    positions: Tensor | None = None
    documents: Tensor | None = None
    cache: Cache | None = None
    shared: dict[str, Any] = field(default_factory=dict, compare=False)

    def visible(self, window: int | None = None) -> Tensor | None:
        """Which positions each position sees, ``bool[B or 1, 1, T, positions]``.

        Args:
            window: At most this many, the position itself included; None: all up to and including itself.

        Returns:
            None if each position sees all up to and including itself.
        """
        if self.cache is None and self.documents is None and window is None:
            return None
        name = f"visible {window}"
        if name not in self.shared:
            self.shared[name] = self._visible(window)
        mask: Tensor = self.shared[name]
        return mask

    def _visible(self, window: int | None) -> Tensor:
        if self.cache is not None:
            assert self.positions is not None, "decoding needs positions"
            kept = torch.arange(self.cache.length, device=self.ids.device)  # [length]
            distance = self.positions[:, :, None] - kept  # [B, T, length]
        else:
            order = torch.arange(self.ids.size(1), device=self.ids.device)  # [T]
            distance = (order[:, None] - order)[None]  # [1, T, T]
        seen = distance >= 0
        if window is not None:
            seen = seen & (distance < window)
        if self.documents is not None:
            seen = seen & (self.documents[:, :, None] == self.documents[:, None, :])  # [B, T, T]
        return seen[:, None]  # [B or 1, 1, T, positions]

    def earlier(self, module: nn.Module, x: Tensor, distances: Sequence[int], fill: float) -> list[Tensor]:
        """Values of the same document some positions before each, for every distance.

        Args:
            module: Whose values they are: under this the cache keeps those of earlier passes.
            x: ``[B, T, ...]``, the values of this pass.
            distances: Positions to go back, 1 or more.
            fill: The value where the document has no such position.

        Returns:
            Tensors like ``x``, one for each distance.
        """
        if self.cache is not None:
            assert self.positions is not None, "decoding needs positions"
            history = self.cache.remember(module, x, self.positions)  # [B, length, ...]
            rows = torch.arange(len(x), device=x.device)[:, None]  # [B, 1]
            wanted = [self.positions - distance for distance in distances]  # int64[B, T] each
            found = [(history[rows, where.clamp(min=0)], where >= 0) for where in wanted]
        else:
            rolled = [(x.roll(distance, 1), distance) for distance in distances]
            found = [(values, self._reaches(distance)) for values, distance in rolled]
        shape = (..., *(None,) * (x.dim() - 2))
        return [values.masked_fill(~exists[shape], fill) for values, exists in found]

    def _reaches(self, distance: int) -> Tensor:
        """Whether a position's document had begun ``distance`` positions before it, ``bool[B or 1, T]``."""
        exists = (torch.arange(self.ids.size(1), device=self.ids.device) >= distance)[None]  # [1, T]
        if self.documents is not None:
            exists = exists & (self.documents == self.documents.roll(distance, 1))  # [B, T]
        return exists


def in_stream_type(x: Tensor) -> Tensor:
    """Convert what begins a residual stream: to bfloat16 under its autocast, which moves half as many bytes as float32.

    bfloat16 has float32's exponents, and each block's norm is computed in float32, so what is lost is a rounding of
    2^-9 for each branch that is added. Elsewhere the stream keeps its type.
    """
    device = x.device.type
    is_bfloat16 = torch.is_autocast_enabled(device) and torch.get_autocast_dtype(device) == torch.bfloat16
    return x.bfloat16() if is_bfloat16 else x


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
                x = x + branch(x, context).to(x.dtype)  # [B, T, D]
        return x
