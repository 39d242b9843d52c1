"""The count of floating-point operations per byte of text.

Models answer for themselves (``models/flops.py``); a codec's auxiliary model, such as the M1 of equal-info windows, is
charged here, in two ways: amortized, where it was run once to compile the codec, and for every byte, as published.
"""

from __future__ import annotations

from typing import Any

from fastcompress.codec import AuxiliaryModel, Codec
from fastcompress.evaluation.bits_per_byte import Evaluation
from fastcompress.models.flops import TRAINING_PER_FORWARD, Flops, count_flops
from fastcompress.models.protocol import LanguageModel

__all__ = ["TRAINING_PER_FORWARD", "Flops", "auxiliary_of", "charge_training", "count_flops", "forward_per_byte"]


def auxiliary_of(codec: Codec) -> AuxiliaryModel | None:
    """Return the model behind a codec, if it has one."""
    auxiliary: AuxiliaryModel | None = getattr(codec, "auxiliary", None)
    return auxiliary


def forward_per_byte(model: LanguageModel, codec: Codec, score: Evaluation) -> dict[str, float]:
    """Return the operations of the forward pass per byte of the scored text.

    Args:
        model, codec: What was scored.
        score: The score.

    Returns:
        ``forward_flops_per_byte``: the model alone. If the codec has an auxiliary model, also
        ``forward_flops_per_byte_with_auxiliary``, where that is run for every byte, and ``auxiliary_making_flops``,
        which were spent once.
    """
    own = model.flops().forward_per_token * (score.num_tokens + score.num_documents) / score.num_bytes
    auxiliary = auxiliary_of(codec)
    if auxiliary is None:
        return {"forward_flops_per_byte": own}
    return {
        "forward_flops_per_byte": own,
        "forward_flops_per_byte_with_auxiliary": own + auxiliary.flops_per_byte,
        "auxiliary_making_flops": auxiliary.making_flops,
    }


def charge_training(flops: float, num_bytes: int, codec: Codec) -> dict[str, Any]:
    """Charge a run for its codec's auxiliary model.

    Args:
        flops: The operations of the run itself.
        num_bytes: The bytes of text that it read, repeated ones included.
        codec: Its codec.

    Returns:
        Nothing if the codec has no auxiliary model. Else ``making``, what that cost once; ``amortized``, the run with
        this; and ``every_byte``, the run with this and a forward pass of the auxiliary model for each byte.
    """
    auxiliary = auxiliary_of(codec)
    if auxiliary is None:
        return {}
    once = flops + auxiliary.making_flops
    return {
        "making": auxiliary.making_flops,
        "amortized": once,
        "every_byte": once + auxiliary.flops_per_byte * num_bytes,
    }
