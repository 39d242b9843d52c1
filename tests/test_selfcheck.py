"""The self-check passes on what we ship and fails on each bug it exists for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from fastcompress.codec import ByteCodec
from fastcompress.data.shards import TokenDataset
from fastcompress.errors import SelfCheckError
from fastcompress.models import gpt
from fastcompress.models.blocks import CausalSelfAttention
from fastcompress.models.gpt import GPT, GPTConfig
from fastcompress.models.protocol import AttentionKind, Batch, Kernels
from fastcompress.models.trunk import Context
from fastcompress.training.config import TrainConfig
from fastcompress.training.optimizer import OptimizerStep
from fastcompress.training.selfcheck import self_check
from fastcompress.training.train import train

CONFIG = TrainConfig(steps=1)
SMALL = {"vocab_size": 50, "num_layers": 2, "num_heads": 2, "width": 32, "context_length": 16}
PRESETS = [GPTConfig.workshop, GPTConfig.modern]


class SeesAll(CausalSelfAttention):
    """The causal mask forgotten."""

    def attend(self, query: Tensor, key: Tensor, value: Tensor, visible: Tensor | None) -> Tensor:
        return F.scaled_dot_product_attention(query, key, value)


class SeesNext(CausalSelfAttention):
    """The causal mask off by one."""

    def attend(self, query: Tensor, key: Tensor, value: Tensor, visible: Tensor | None) -> Tensor:
        visible = torch.ones(query.size(-2), query.size(-2), dtype=torch.bool).tril(1)
        return F.scaled_dot_product_attention(query, key, value, attn_mask=visible)


class NeverClears(OptimizerStep):
    """optimizer.zero_grad() forgotten."""

    def __init__(self, *arguments: object, **settings: object) -> None:
        super().__init__(*arguments, **settings)  # type: ignore[arg-type]
        self.optimizer.zero_grad = lambda set_to_none=True: None  # type: ignore[method-assign]


class NeverDivides(OptimizerStep):
    """Accumulated losses summed instead of averaged."""

    def gradients(self, batch: Batch) -> Tensor:
        loss = super().gradients(batch)
        for parameter in self.parameters:
            if parameter.grad is not None:
                parameter.grad *= len(batch["input"]) // self.micro_batch_size
        return loss


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("attention", ["sdpa", "plain"])
def test_what_we_ship_passes(preset: Callable[..., GPTConfig], attention: AttentionKind) -> None:
    model = GPT(preset(**SMALL), Kernels(attention))
    before = {name: parameter.clone() for name, parameter in model.named_parameters()}
    self_check(model, CONFIG)
    assert model.training
    for name, parameter in model.named_parameters():
        assert torch.equal(parameter, before[name]), name
        assert parameter.grad is None


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("attention_class", [SeesAll, SeesNext])
def test_a_future_leak_is_caught(preset: Callable[..., GPTConfig], attention_class: type[CausalSelfAttention]) -> None:
    """In one layer of two, and though the modern preset's output projections start at zero."""
    model = GPT(preset(**SMALL))
    model.blocks[1].attention.__class__ = attention_class
    with pytest.raises(SelfCheckError, match="sees the future"):
        self_check(model, CONFIG)


@pytest.mark.parametrize("preset", PRESETS)
def test_uncleared_gradients_are_caught(preset: Callable[..., GPTConfig]) -> None:
    with pytest.raises(SelfCheckError, match="not cleared between steps"):
        self_check(GPT(preset(**SMALL)), CONFIG, NeverClears)


@pytest.mark.parametrize("preset", PRESETS)
def test_undivided_accumulation_is_caught(preset: Callable[..., GPTConfig]) -> None:
    with pytest.raises(SelfCheckError, match="divide each loss"):
        self_check(GPT(preset(**SMALL)), CONFIG, NeverDivides)


@pytest.mark.parametrize("preset", PRESETS)
def test_a_wild_initialisation_is_caught(preset: Callable[..., GPTConfig]) -> None:
    model = GPT(preset(**SMALL))
    with torch.no_grad():
        model.head.weight.normal_(std=1.0)
    with pytest.raises(SelfCheckError, match=r"not near ln\(50\)"):
        self_check(model, CONFIG)


def test_a_model_that_ignores_its_input_is_caught() -> None:
    class Deaf(GPT):
        def hidden(self, context: Context) -> Tensor:
            return super().hidden(Context(torch.zeros_like(context.ids)))

    with pytest.raises(SelfCheckError, match="ignores its input"):
        self_check(Deaf(GPTConfig.modern(**SMALL)), CONFIG)


def test_training_refuses_a_broken_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpt, "CausalSelfAttention", SeesAll)
    documents = [bytes(range(256)) * 4]
    run = tmp_path / "run"
    arguments = (
        GPTConfig.modern(**{**SMALL, "vocab_size": 257}),
        ByteCodec(),
        TokenDataset.from_documents(documents, ByteCodec()),
        documents,
        TrainConfig(steps=1, batch_size=2, device="cpu"),
        run,
    )
    with pytest.raises(SelfCheckError):
        train(*arguments, progress=False)
    assert not run.exists()
