"""Activation checkpointing: the inside of a block is recomputed in the backward pass instead of being kept.

Each part of a block (``spread.block_parts``: an attention, an MLP) keeps only its input. The forward pass of the blocks
runs twice, a third more operations, with the same generator states and therefore the same results.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from fastcompress.training.spread import block_parts


@contextlib.contextmanager
def recomputed(model: nn.Module) -> Iterator[None]:
    """Within this context, keep only the inputs of the parts of a model's blocks."""
    parts = list(block_parts(model))
    for part in parts:
        part.forward = _recomputing(part.forward)
    try:
        yield
    finally:
        for part in parts:
            del part.forward


def _recomputing(forward: Callable[..., Any]) -> Callable[..., Any]:
    def outer(*arguments: Any, **named: Any) -> Any:
        if not torch.is_grad_enabled():
            return forward(*arguments, **named)
        return checkpoint(forward, *arguments, use_reentrant=False, **named)

    return outer
