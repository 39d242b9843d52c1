"""Arithmetic coding in integers: the code of a message is as long as a model's frequencies say, and equal everywhere.

`quantize` converts weights to frequencies, `Encoder` and `Decoder` code with them, and `ContextMixer` and
`AdaptiveFrequencies` are models that learn from what they code.
``cpp/fastcompress/arithmetic/FORMAT.md`` has the derivation and the format.

>>> table = quantize([5, 2, 1])
>>> encoder = Encoder()
>>> encoder.encode([0, 0, 1, 0, 2], table)
>>> Decoder(encoder.finish()).decode(table, 5).tolist()
[0, 0, 1, 0, 2]
"""

from fastcompress.arithmetic.coder import Decoder, Encoder
from fastcompress.arithmetic.logits import LOG_UNIT
from fastcompress.arithmetic.models import AdaptiveFrequencies, ContextMixer
from fastcompress.arithmetic.quantize import (
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
