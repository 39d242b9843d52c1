"""Properties of the evaluation protocol, for all document lengths, contexts, strides and batch sizes."""

from __future__ import annotations

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from fastcompress.codec import ByteCodec
from fastcompress.evaluation.bits_per_byte import event_nats, scoring_windows
from fastcompress.models.tokens import NextTokenModel
from tests.reference.bits_per_byte import reference_symbol_nats


class PrefixHashModel(NextTokenModel):
    """Logits that depend on every token of the window so far: any wrong context changes the score."""

    vocab_size = 257

    def __init__(self, context_length: int) -> None:
        super().__init__()
        self.context_length = context_length

    def forward(self, tokens: Tensor) -> Tensor:
        position = torch.arange(1, tokens.size(1) + 1)
        history = (tokens * position).cumsum(dim=1)  # int64[B, T]
        return torch.sin(history[..., None] * torch.arange(1, 258)).float()  # [B, T, 257]


@settings(deadline=None)
@given(st.integers(1, 200), st.integers(1, 40), st.data())
def test_scored_ranges_tile_the_document(num_symbols: int, context_length: int, data: st.DataObject) -> None:
    stride = data.draw(st.integers(1, context_length))
    windows = list(scoring_windows(num_symbols, context_length, stride))
    scored = [position for window in windows for position in range(window.scored, window.end)]
    assert scored == list(range(num_symbols))
    for window in windows:
        assert window.begin <= window.scored < window.end <= num_symbols
        assert window.end - window.begin <= context_length
    for window in windows[1:]:
        assert window.scored - window.begin == context_length - stride


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.binary(max_size=20), min_size=1, max_size=5),
    st.integers(1, 9),
    st.integers(1, 7),
    st.data(),
)
def test_each_symbols_score_is_the_oracles(
    documents: list[bytes], context_length: int, batch_size: int, data: st.DataObject
) -> None:
    stride = data.draw(st.integers(1, context_length))
    model, codec = PrefixHashModel(context_length), ByteCodec()
    nats = np.concatenate(event_nats(model, model.rows(codec), documents, stride=stride, batch_size=batch_size))
    expected = np.concatenate(reference_symbol_nats(model, codec, documents, stride))
    np.testing.assert_allclose(nats, expected, rtol=1e-5, atol=1e-5)
