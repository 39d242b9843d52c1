"""Arithmetic coding by integers: a message of symbols takes the bits that a model's frequencies say, on every machine.

`quantize` makes frequencies of weights, `Encoder` and `Decoder` code with them, `ContextMixer` and
`AdaptiveFrequencies` are models that learn from what they code.
``cpp/fastcompress/arithmetic/FORMAT.md`` has the derivation and the format.
"""

from fastcompress.arithmetic.coder import Decoder, Encoder
from fastcompress.arithmetic.models import AdaptiveFrequencies, ContextMixer
from fastcompress.arithmetic.quantize import (
    LOG_UNIT,
    MAX_PRECISION,
    MAX_SYMBOLS,
    default_precision,
    quantize,
    quantize_logits,
)

__all__ = [
    "LOG_UNIT",
    "MAX_PRECISION",
    "MAX_SYMBOLS",
    "AdaptiveFrequencies",
    "ContextMixer",
    "Decoder",
    "Encoder",
    "default_precision",
    "quantize",
    "quantize_logits",
]
