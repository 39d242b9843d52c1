"""Attention in blocks sees what masks let through, for windows, documents and grouped heads."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.nn.attention.flex_attention import flex_attention

from fastcompress.codec import codec_from_spec
from fastcompress.models import block_attention, make_model_config
from fastcompress.models.attention import plain_attention
from fastcompress.models.block_attention import block_mask, fits
from fastcompress.models.gpt import GPT, GPTConfig
from fastcompress.models.kinds import KINDS
from fastcompress.models.trunk import Cache, Context, Reach
from fastcompress.training.selfcheck import redraw_weights

LOCAL = {
    "num_layers": 1,
    "local_width": 32,
    "encoder_layers": 1,
    "decoder_layers": 1,
    "local_heads": 2,
    "local_window": 9,
}
DOCUMENTS = torch.tensor([[0] * 100 + [1] * 200, [4] * 290 + [5] * 10])


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
@pytest.mark.parametrize("reach", [Reach(), Reach(1), Reach(70), Reach(1000), Reach(70, in_chunks=True)], ids=str)
@pytest.mark.parametrize("documents", [None, DOCUMENTS])
@pytest.mark.parametrize("symbols", [(), (6,)], ids=str)
def test_blocks_see_what_masks_show(reach: Reach, documents: torch.Tensor | None, symbols: tuple[int, ...]) -> None:
    """Uncompiled, on the CPU; four heads of queries share two of keys, and a position has one symbol or six."""
    torch.manual_seed(0)
    context = Context(torch.zeros(2, 300, *symbols, dtype=torch.int64), documents=documents)
    query, key, value = (torch.randn(2, heads, 300, 16) for heads in (4, 2, 2))
    found = flex_attention(query, key, value, block_mask=block_mask(context, reach), enable_gqa=True)
    visible = context.visible(reach)
    torch.testing.assert_close(found, plain_attention(query, key, value, dropout=0.0, visible=visible))


def test_passes_without_gain_keep_the_other_kernels() -> None:
    """On the CPU, uncompiled, with a cache, with dropout: each of them alone is reason enough."""
    query, ids = torch.randn(1, 1, 4, 16), torch.zeros(1, 4, dtype=torch.int64)
    assert not fits(query, Context(ids), Reach(2), 0.0)
    assert not fits(query, Context(ids, positions=ids, cache=Cache(1, 4)), Reach(2), 0.0)


# Of each kind of model, settings with which it attends in windows.
KINDS_IN_WINDOWS: dict[str, tuple[str, dict[str, Any]]] = {
    "gpt": ("byte", {"num_layers": 1, "window": 9}),
    "byte-latent": ("byte", LOCAL),
    "heat": ("byte", LOCAL),
    "lz-blt": ("lz77", LOCAL),
}


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
@pytest.mark.parametrize("kind", KINDS)
def test_losses_of_every_kind_are_one_graph_on_cards(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tracer takes the way of a card, to block attention; without a graph, a step on one is several times slower.

    What it recorded is run without a compiler, on the CPU, and gives what masks give.
    """
    codec_name, settings = KINDS_IN_WINDOWS[kind]
    torch.manual_seed(0)
    shape = {"kind": kind, "context_length": 32, "width": 32, "num_heads": 2}
    model = make_model_config({**shape, **settings}, codec_from_spec(codec_name)).build()
    redraw_weights(model)
    batch = model.random_batch(2, 32)
    num_calls = 0

    def fits_a_card(query: torch.Tensor, context: Context, reach: Reach, dropout: float) -> bool:
        nonlocal num_calls
        num_calls += reach.size is not None
        return reach.size is not None and context.cache is None

    with torch.no_grad():
        expected = model.nats(batch)
        monkeypatch.setattr(block_attention, "fits", fits_a_card)
        found = torch.compile(model.nats, backend="eager", fullgraph=True, dynamic=False)(batch)
    assert num_calls > 0
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA card")
def test_compiled_losses_of_windows_and_documents_are_the_uncompiled_ones() -> None:
    torch.manual_seed(0)
    model = GPT(
        GPTConfig.modern(vocab_size=50, num_layers=2, num_heads=2, width=64, context_length=256, window=40)
    ).cuda()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.2)
    batch = {name: column.cuda() for name, column in model.random_batch(2, 256).items()}
    batch["document"] = torch.arange(256).div(100, rounding_mode="floor").expand(2, 256).cuda()
    batch["position"] = torch.arange(256).remainder(100).expand(2, 256).cuda()
    results = []
    for nats_of in (model.nats, torch.compile(model.nats, dynamic=False)):
        model.zero_grad()
        nats = nats_of(batch)
        nats.sum().backward()
        results.append((nats.detach(), model.embedding.weight.grad.clone()))
    for expected, found in zip(*results, strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-2, atol=1e-2)
