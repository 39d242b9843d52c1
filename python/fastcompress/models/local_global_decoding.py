"""Decoding a model of symbols and patches symbol by symbol, with what its networks have already read.

The local networks keep keys and values of symbols, the global one those of patches; beside them stay the state of each
symbol, which a patch that becomes known later may end with, and what the global network made of each patch. So a symbol
costs one position of the local networks, and one of the global network only where a patch becomes known with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from fastcompress.data.patches import PATCH_END
from fastcompress.models.trunk import Cache, Context

if TYPE_CHECKING:
    from fastcompress.models.local_global import LocalGlobalModel


class LocalGlobalCache(Cache):
    """What a model of symbols and patches keeps of each lane: besides its symbols, a cache of patches.

    Attributes:
        patches: Of the global network, in places of patches.
    """

    def __init__(self, lanes: int, length: int, num_patches: int) -> None:
        super().__init__(lanes, length)
        self.patches = Cache(lanes, max(1, num_patches))
        self._ids: list[list[int]] = [[] for _ in range(lanes)]

    def write(self, tokens: Tensor, positions: Tensor) -> list[list[int]]:
        """Put ids, ``int64[lanes, T]``, at their positions and return each lane's ids up to the last of these."""
        for lane, (new, begin) in enumerate(zip(tokens.tolist(), positions[:, 0].tolist(), strict=True)):
            self._ids[lane][begin:] = new
        return self._ids


def read_with_cache(model: LocalGlobalModel, tokens: Tensor, positions: Tensor, cache: LocalGlobalCache) -> Tensor:
    """Return what the head reads, ``float[B, T, d]``, for the next symbols of each lane.

    Args:
        model: The model.
        tokens: ``int64[B, T]``; those after a lane's last symbol are overwritten later.
        positions: ``int64[B, T]``, ascending by one.
        cache: Of earlier positions.
    """
    first = positions[:, 0].tolist()
    columns = [model.columns_of(np.array(ids, np.int64)) for ids in cache.write(tokens, positions)]
    ends = [lane[PATCH_END] for lane in columns]
    before = [int((lane[:begin] > 0).sum()) for lane, begin in zip(ends, first, strict=True)]  # patches known already
    closes = np.stack([lane[begin:] > 0 for lane, begin in zip(ends, first, strict=True)])  # bool[B, T]
    known = torch.from_numpy(np.array(before)[:, None] + closes.cumsum(1)).to(tokens.device)  # int64[B, T]
    new_columns = {
        name: torch.from_numpy(np.stack([lane[name][begin:] for lane, begin in zip(columns, first, strict=True)]))
        for name in columns[0]
    }  # int64[B, T] each

    context = Context(tokens, positions, cache=cache)
    x = model.encoder(model.embed(context), context)  # [B, T, d]
    if model.num_patches:
        new = model.patch_states(x, {name: column.to(tokens.device) for name, column in new_columns.items()})
        states = cache.remember(model, new, positions)  # [B, S, d]
        latents = _latents(model, states, ends, before, closes.sum(1), cache)  # [B, P + 1, D]
        x = model.add_patches(x, latents, known)  # [B, T, d]
    hidden: Tensor = model.norms[3](model.decoder(x, context))  # [B, T, d]
    return hidden


def _latents(
    model: LocalGlobalModel,
    states: Tensor,
    ends: list[np.ndarray[tuple[int], np.dtype[np.int64]]],
    before: list[int],
    num_new: np.ndarray[tuple[int], np.dtype[np.int64]],
    cache: LocalGlobalCache,
) -> Tensor:
    """Let the global network read the new patches of each lane, and return all: ``float[B, P + 1, D]``.

    A lane with fewer new ones than another reads places ahead, which are read again when their patches are known, or,
    at the end of the row, its last ones once more.
    """
    kept = cache.patches
    most = max(1, int(num_new.max())) if not kept.has(model) else int(num_new.max())
    if most:
        sources = np.zeros((len(ends), model.num_patches), np.int64)  # of every place, the patch's last symbol
        for lane, row in enumerate(ends):
            found = row[row > 0][: model.num_patches]
            sources[lane, : len(found)] = found - 1
        places = np.minimum(np.array(before)[:, None] + np.arange(most), model.num_patches - 1)  # int64[B, n]
        at = torch.from_numpy(places).to(states.device)
        where = torch.from_numpy(np.take_along_axis(sources, places, 1)).to(states.device)  # int64[B, n]
        read = states.gather(1, where[..., None].expand(-1, -1, states.size(-1)))  # [B, n, d]
        new = model.think(read, Context(where, at, cache=kept))  # [B, n, D]
        latents = kept.remember(model, new, at)  # [B, P, D]
    else:
        latents = kept.history(model)  # [B, P, D]
    start = model.start.to(latents.dtype).expand(len(latents), 1, -1)  # [B, 1, D]
    return torch.cat((start, latents), dim=1)
