"""Cross entropy from a head's inputs in pieces, so that the logits of a large vocabulary are never all in memory.

Logits, their log-softmax and its gradient are three arrays of events x vocabulary: 780 MiB in float32 for 1,024 events
and 65,537 ids. Computed in pieces of events, only one piece exists at a time; the backward pass recomputes its logits.
If all events fit into one piece, nothing is computed twice. On cards, `fused_cross_entropy` needs one array instead of
three.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from fastcompress.models.fused_cross_entropy import HAS_KERNEL, fused_nats

# Logits in one piece. On CPUs 40 MiB, which the system takes back at once (smaller blocks stay with the process).
_PIECE_ON_CPU = 10 << 20
# On cards a sixteenth of the memory in bfloat16: computing the head again costs more.
_BYTES_OF_A_CARD_PER_LOGIT = 32
_PIECE_ON_AN_ABSENT_CARD = 1 << 31
_ALIGNED_EVENTS = 128  # what the products of half precision on cards want their sizes to be multiples of


@dataclass(frozen=True)
class Head:
    """The last layer of a language model: hidden states ``[..., D]`` to logits ``[..., V]``.

    Attributes:
        rows: ``float[V, D]``.
        softcap: Bound c of the logits, ``c tanh(z / c)`` (Gemma Team, "Gemma 2", arXiv 2408.00118, 2.2); None: there is
            none.
        in_float8: Whether training multiplies in float8 on cards.
    """

    rows: Tensor
    softcap: float | None = None
    in_float8: bool = False

    def __call__(self, hidden: Tensor) -> Tensor:
        logits = F.linear(hidden, self.rows)  # [..., V]
        return logits if self.softcap is None else self.softcap * torch.tanh(logits / self.softcap)  # [..., V]

    def nats(self, hidden: Tensor, targets: Tensor, legal: Tensor | None = None) -> Tensor:
        """Return the cross entropy of ``targets int64[...]`` in nats, ``float32[...]``, from ``hidden [..., D]``.

        ``legal``: as for `only_legal`; None: every id is.
        """
        if legal is not None:
            return next_token_loss(only_legal(self(hidden), legal), targets, reduction="none")
        if hidden.is_cuda and HAS_KERNEL and hidden.dtype != torch.float64:
            flat = fused_nats(
                hidden.flatten(0, -2), self.rows, targets.flatten(), self.softcap, in_float8=self.in_float8
            )  # [...]
            return flat.view_as(targets)
        return next_token_loss(self(hidden), targets, reduction="none")


def next_token_loss(logits: Tensor, targets: Tensor, *, reduction: Literal["mean", "none"] = "mean") -> Tensor:
    """Return the cross entropy in nats, in float32 for logits of any type: a scalar, or ``float32[B, T]``."""
    flat = logits.float().flatten(0, -2)  # [B T, V]
    losses = F.cross_entropy(flat, targets.flatten(), reduction=reduction)  # [] or [B T]
    return losses if reduction == "mean" else losses.view_as(targets)  # [] or [B, T]


def only_legal(logits: Tensor, legal: Tensor) -> Tensor:
    """Set the logits of illegal ids to -inf.

    Args:
        logits: ``float[..., V]``, the last of the end of a document, which is always legal.
        legal: ``uint8[..., (V - 1 + 7) // 8]``, a bit an id, the lowest first.
    """
    bits = unpacked_bits(legal, logits.size(-1) - 1)  # bool[..., V - 1]
    return logits.masked_fill(~F.pad(bits, (0, 1), value=True), float("-inf"))  # [..., V]


def unpacked_bits(packed: Tensor, number: int) -> Tensor:
    """Return the first bits of ``packed uint8[..., n]``, the lowest of each byte first: ``bool[..., number]``."""
    places = torch.arange(8, dtype=torch.uint8, device=packed.device)  # uint8[8]
    return (((packed[..., None] >> places) & 1) != 0).flatten(-2)[..., :number]


def head_nats(
    hidden: Tensor, head: Head, targets: Tensor, logits_at_once: int | None, legal: Tensor | None = None
) -> Tensor:
    """Return the cross entropy of ``targets`` under ``head(hidden)`` in nats, ``float32[B, T]``.

    Args:
        hidden: ``float[B, T, D]``.
        head: Of V rows.
        targets: ``int64[B, T]``, in [0, V).
        logits_at_once: Largest number of logits in a piece; None for one that suits the device.
        legal: ``uint8[B, T, ...]``, as for `only_legal`; None: every id is.
    """
    if logits_at_once is None:
        logits_at_once = piece_of(hidden.device.type)
    piece = max(1, logits_at_once // len(head.rows))  # events
    if hidden.is_cuda and piece > _ALIGNED_EVENTS:
        piece -= piece % _ALIGNED_EVENTS
    if targets.numel() <= piece:
        return head.nats(hidden, targets, legal)  # [B, T]

    flat: list[Tensor] = [hidden.flatten(0, -2), targets.flatten()]
    if legal is not None:
        flat.append(legal.flatten(0, -2))
    pieces = zip(*(torch.split(column, piece) for column in flat), strict=True)
    if not torch.is_grad_enabled():
        return torch.cat([head.nats(*one) for one in pieces]).view_as(targets)  # [B, T]
    parts = [checkpoint(head.nats, *one, use_reentrant=False, preserve_rng_state=False) for one in pieces]
    return torch.cat(parts).view_as(targets)  # [B, T]


def piece_of(device_type: str) -> int:
    """Most logits in one piece on a kind of device; of cards, the present one."""
    if device_type == "cpu":
        return _PIECE_ON_CPU
    if device_type != "cuda" or not torch.cuda.is_available():
        return _PIECE_ON_AN_ABSENT_CARD
    memory = torch.cuda.get_device_properties(torch.cuda.current_device()).total_memory
    return int(memory) // _BYTES_OF_A_CARD_PER_LOGIT


# As torch.compiler.assume_constant_result does, which loads torch's compiler: a second, wherever this is imported.
piece_of._dynamo_marked_constant = True  # type: ignore[attr-defined]


def bytes_per_logit(device_type: str) -> int:
    """Most bytes that a logit takes in training: logits, log-softmax and gradient in float32, or one array of them."""
    return 4 if device_type == "cuda" and HAS_KERNEL else 12
