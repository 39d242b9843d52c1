"""Oracle: score documents one symbol at a time, each from its own context, in float64."""

from __future__ import annotations

import torch

from fastcompress.codec import Codec
from fastcompress.models.tokens import NextTokenModel


def reference_symbol_nats(
    model: NextTokenModel, codec: Codec, documents: list[bytes], stride: int
) -> list[list[float]]:
    """-ln p of every symbol, a list a document, its end-of-document symbol last.

    Symbol i is scored in the first window that reaches it; windows start at 0, stride, 2 stride, ...
    """
    result = []
    for data in documents:
        sequence = [codec.vocab_size, *codec.encode(data).tolist(), codec.vocab_size]
        nats = []
        for i in range(len(sequence) - 1):
            begin = 0
            while i >= begin + model.context_length:
                begin += stride
            with torch.no_grad():
                logits = model(torch.tensor([sequence[begin : i + 1]]))[0, -1].double()
            nats.append(float(logits.logsumexp(0) - logits[sequence[i + 1]]))
        result.append(nats)
    return result
