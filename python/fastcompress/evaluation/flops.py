"""The count of floating-point operations, which models answer for themselves (``models/flops.py``)."""

from fastcompress.models.flops import TRAINING_PER_FORWARD, Flops, count_flops

__all__ = ["TRAINING_PER_FORWARD", "Flops", "count_flops"]
