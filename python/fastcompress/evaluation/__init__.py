"""Scores of models in bits per raw byte, and text from them. Needs the extra `train`."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from fastcompress._fronts import show as _show

if _TYPE_CHECKING:
    from fastcompress.evaluation.bits_per_byte import Evaluation, bits_per_byte, evaluate, event_nats
    from fastcompress.evaluation.chat import Conversation
    from fastcompress.evaluation.drift import PointerDrift, pointer_drift, unknown_words
    from fastcompress.evaluation.generate import Sampler, generate, generate_batch
    from fastcompress.evaluation.receipts import Receipt, make_receipt, read_receipt

__all__ = [
    "Conversation",
    "Evaluation",
    "PointerDrift",
    "Receipt",
    "Sampler",
    "bits_per_byte",
    "evaluate",
    "event_nats",
    "generate",
    "generate_batch",
    "make_receipt",
    "pointer_drift",
    "read_receipt",
    "unknown_words",
]

_show(
    __name__,
    {
        "Conversation": "chat",
        "Evaluation": "bits_per_byte",
        "PointerDrift": "drift",
        "Receipt": "receipts",
        "Sampler": "generate",
        "bits_per_byte": "bits_per_byte",
        "evaluate": "bits_per_byte",
        "event_nats": "bits_per_byte",
        "generate": "generate",
        "generate_batch": "generate",
        "make_receipt": "receipts",
        "pointer_drift": "drift",
        "read_receipt": "receipts",
        "unknown_words": "drift",
    },
)
