"""The residual stream, and the context that blocks read with it.

A pre-norm transformer adds the output of each branch of each block to its stream: x <- x + f(x). The blocks return f(x)
and the trunk adds it, so that another trunk can combine the branches of the same blocks differently (Attention
Residuals weigh all earlier ones).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch
from torch import Tensor, nn


class Cache:
    """The state that modules keep between steps of decoding, in buffers of fixed shape.

    Attributes:
        lanes: The number of sequences.
        length: Largest number of positions of each.
        constants: Values that a model computes once for all steps, by name.
    """

    def __init__(self, lanes: int, length: int) -> None:
        self.lanes, self.length = lanes, length
        self.constants: dict[str, Tensor] = {}
        self._kept: dict[nn.Module, tuple[Tensor, Tensor]] = {}
        self._histories: dict[nn.Module, Tensor] = {}

    def extend(self, module: nn.Module, key: Tensor, value: Tensor, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Write keys and values at their positions and return the whole buffers.

        Args:
            module: The module that they belong to; each has buffers of its own.
            key, value: ``float[lanes, H, T, K]``.
            positions: ``int64[lanes, T]``, in [0, length).

        Returns:
            Keys and values, ``float[lanes, H, length, K]``; values after a lane's last position are undefined.
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
            module: The module that they belong to; each has a buffer of its own.
            x: ``[lanes, T, ...]``.
            positions: ``int64[lanes, T]``, in [0, length).

        Returns:
            ``[lanes, length, ...]``; values after a lane's last position are undefined.
        """
        if module not in self._histories:
            self._histories[module] = x.new_zeros(self.lanes, self.length, *x.shape[2:])
        history = self._histories[module]  # [lanes, length, ...]
        lanes = torch.arange(self.lanes, device=positions.device)[:, None]  # [lanes, 1]
        history[lanes, positions] = x
        return history

    def has(self, module: nn.Module) -> bool:
        """Return whether `remember` was called for a module."""
        return module in self._histories

    def history(self, module: nn.Module) -> Tensor:
        """Return what `remember` returned last for a module."""
        return self._histories[module]


@dataclass(frozen=True)
class Reach:
    """The positions that each position sees, of those up to its own.

    Attributes:
        size: The largest number of them, itself included; None: all.
        in_chunks: Those of the position's own chunk of ``size``, where chunks begin at multiples of ``size``; otherwise
            the last ``size``.
    """

    size: int | None = None
    in_chunks: bool = False

    def sees(self, reader: Tensor, read: Tensor) -> Tensor:
        """Return whether positions see others, ``bool``, of the shape that the two have together."""
        seen = reader >= read
        if self.size is None:
            return seen
        if self.in_chunks:
            return seen & (reader // self.size == read // self.size)
        return seen & (reader - read < self.size)


WHOLE_REACH = Reach()


@dataclass(frozen=True)
class Context:
    """The input of blocks besides the stream: B rows of T positions.

    Attributes:
        ids: ``int64[B, T]``, the symbols whose embeddings the stream started from; ``int64[B, T, F]`` if there are F
            of them at each position.
        positions: ``int64[B, T]``; None: 0 .. T - 1 in every row.
        documents: ``int64[B, T]``, the number of each position's document: a position sees its own document only. None
            if each row is one document.
        cache: The cache of earlier positions when decoding; None if rows are whole.
        shared: Values that modules leave for later ones in the same pass, by name.
    """

    ids: Tensor
    positions: Tensor | None = None
    documents: Tensor | None = None
    cache: Cache | None = None
    shared: dict[str, Any] = field(default_factory=dict, compare=False)

    def visible(self, reach: Reach) -> Tensor | None:
        """Return the mask of the positions that each position sees, ``bool[B or 1, 1, T, positions]``.

        Returns:
            None if each position sees all up to and including itself.
        """
        if self.cache is None and self.documents is None and reach.size is None:
            return None
        name = f"visible {reach}"
        if name not in self.shared:
            self.shared[name] = self._visible(reach)
        mask: Tensor = self.shared[name]
        return mask

    def _visible(self, reach: Reach) -> Tensor:
        if self.cache is not None:
            assert self.positions is not None, "decoding needs positions"
            kept = torch.arange(self.cache.length, device=self.ids.device)  # [length]
            seen = reach.sees(self.positions[:, :, None], kept)  # [B, T, length]
        else:
            order = torch.arange(self.ids.size(1), device=self.ids.device)[None]  # [1, T]
            where = self.positions if reach.in_chunks and self.positions is not None else order  # [B or 1, T]
            seen = reach.sees(where[:, :, None], where[:, None])  # [B or 1, T, T]
            seen = seen & (order[:, :, None] >= order[:, None])  # positions may begin again in a row
        if self.documents is not None:
            seen = seen & (self.documents[:, :, None] == self.documents[:, None, :])  # [B, T, T]
        return seen[:, None]  # [B or 1, 1, T, positions]

    def earlier(self, module: nn.Module, x: Tensor, distances: Sequence[int], fill: float) -> list[Tensor]:
        """Return the values of the same document at some distances before each position.

        Args:
            module: The module whose values they are; the cache keeps those of earlier passes under it.
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
        """Return whether a position's document had begun ``distance`` positions before it, ``bool[B or 1, T]``."""
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
    """The interface of a block for the trunk."""

    branches: Iterable[Branch]


class Trunk(nn.Module):
    """A residual stream and its blocks; ``x [B, T, D] -> [B, T, D]``."""

    def __init__(self, blocks: Iterable[nn.Module]) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(blocks)

    def forward(self, x: Tensor, context: Context) -> Tensor:
        block: Any
        for block in self.blocks:
            for branch in block.branches:
                x = x + branch(x, context).to(x.dtype)  # [B, T, D]
        return x
