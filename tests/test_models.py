"""The GPT and its parts: shapes, causality of both attention paths, initialisation, configuration."""

from __future__ import annotations

import math

import pytest
import torch

from fastcompress.errors import ConfigError
from fastcompress.models.blocks import CausalSelfAttention, ReluSquaredMLP, Rotary, SwiGLU, plain_attention
from fastcompress.models.gpt import GPT, GPTConfig, next_token_loss
from fastcompress.models.protocol import Kernels
from fastcompress.models.trunk import Context

SMALL = {"num_layers": 2, "num_heads": 2, "width": 32, "context_length": 16}
PRESETS = {"workshop": GPTConfig.workshop, "modern": GPTConfig.modern}


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


def scrambled(model: GPT) -> GPT:
    """Weights large enough that every path through the model matters."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.3)
    return model.eval()


@pytest.mark.parametrize("preset", PRESETS)
def test_logits_have_one_row_a_position(preset: str) -> None:
    model = GPT(PRESETS[preset](vocab_size=50, **SMALL))
    for length in (1, 7, 16):
        logits = model(torch.randint(50, (3, length)))
        assert logits.shape == (3, length, 50)
        assert logits.dtype == torch.float32


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("vocab_size", [66, 257, 4097])
def test_initial_loss_is_near_uniform(preset: str, vocab_size: int) -> None:
    """At the study's and at the workshop's width, tied or not: an init that is off by a factor shows here."""
    for width, tied_head in ((128, False), (128, True), (384, True)):
        config = PRESETS[preset](vocab_size=vocab_size, num_layers=2, num_heads=4, width=width, tied_head=tied_head)
        tokens, targets = torch.randint(vocab_size, (2, 4, 64))
        with torch.inference_mode():
            loss = next_token_loss(GPT(config).eval()(tokens), targets)
        assert float(loss) == pytest.approx(math.log(vocab_size), abs=0.2)


@pytest.mark.parametrize("preset", PRESETS)
def test_sdpa_and_plain_attention_agree(preset: str) -> None:
    fused = scrambled(GPT(PRESETS[preset](vocab_size=50, **SMALL)))
    plain = GPT(PRESETS[preset](vocab_size=50, **SMALL), Kernels("plain")).eval()
    plain.load_state_dict(fused.state_dict())
    tokens = torch.randint(50, (2, 13))
    torch.testing.assert_close(fused(tokens), plain(tokens), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("preset", PRESETS)
def test_a_longer_input_leaves_earlier_logits_alone(preset: str) -> None:
    """So padding on the right changes nothing, and training scores what generation draws from."""
    model = scrambled(GPT(PRESETS[preset](vocab_size=50, **SMALL)))
    tokens = torch.randint(50, (2, 16))
    whole = model(tokens)
    for length in (1, 5, 15):
        torch.testing.assert_close(model(tokens[:, :length]), whole[:, :length], rtol=1e-4, atol=1e-4)


def test_plain_attention_averages_what_is_visible() -> None:
    """With equal scores, position t gets the mean of values 0 .. t."""
    value = torch.arange(12.0).view(1, 1, 4, 3)
    mixed = plain_attention(torch.zeros_like(value), torch.zeros_like(value), value, dropout=0.0)
    expected = torch.stack([value[0, 0, : t + 1].mean(dim=0) for t in range(4)])
    torch.testing.assert_close(mixed[0, 0], expected)


def test_rotary_scores_depend_on_distance_only() -> None:
    rotary = Rotary(8, 32)
    query, key = torch.randn(8), torch.randn(8)
    queries = rotary(query.expand(1, 1, 32, 8))[0, 0]
    keys = rotary(key.expand(1, 1, 32, 8))[0, 0]
    scores = queries @ keys.T
    for distance in (0, 1, 9):
        torch.testing.assert_close(scores.diagonal(-distance), scores[distance, 0].expand(32 - distance))
    assert not torch.isclose(scores[1, 0], scores[2, 0])
    torch.testing.assert_close(queries.norm(dim=-1), query.norm().expand(32))


@pytest.mark.slow
def test_compiled_code_normalizes_before_it_rotates() -> None:
    """Which is the same up to rounding, in the backward pass as well."""
    attention = GPTConfig.modern(vocab_size=11, **SMALL).build().blocks[0].get_submodule("attention")
    assert isinstance(attention, CausalSelfAttention)
    x, context = torch.randn(2, 12, 32), Context(torch.zeros(2, 12, dtype=torch.long))
    found = []
    for project in (attention.project, torch.compile(attention.project, backend="eager", fullgraph=True)):
        own = x.clone().requires_grad_()
        query, key, value = project(own, context)  # [2, 2, 12, 16] each
        (query.pow(3).sum() + (key * value).sum()).backward()
        found.append((query.detach(), key.detach(), own.grad))
    for eager, compiled in zip(*found, strict=True):
        assert eager is not None
        torch.testing.assert_close(compiled, eager, rtol=1e-5, atol=1e-5)


def test_the_slope_of_relu_squared_is_that_of_its_formula() -> None:
    """Though it is worked out from the result: also at 0, and where the square is 0 but the number is not."""
    mlp = ReluSquaredMLP(6, bias=False)
    torch.nn.init.eye_(mlp.expand.weight)
    found = []
    for forward in (mlp, lambda x: mlp.output(torch.relu(mlp.expand(x)).square())):
        x = torch.tensor([-2.0, 0.0, 1e-30, 1e-3, 0.3, 5.0], requires_grad=True)
        forward(x).sum().backward()
        found.append(x.grad)
    torch.testing.assert_close(found[0], found[1])


def test_workshop_is_gpt2_at_the_published_size() -> None:
    """6 layers x 384 over 65 characters and the end of document: the well-known 10.7 M parameters."""
    model = GPT(GPTConfig.workshop(vocab_size=66))
    width, layers = 384, 6
    block = 12 * width * width + 2 * width
    assert model.num_parameters() == 66 * width + 256 * width + layers * block + width
    assert model.num_parameters(embedding=False) == layers * block + width
    assert model.head.weight is model.embedding.weight


def test_workshop_shrinks_what_writes_into_the_residual_stream() -> None:
    model = GPT(GPTConfig.workshop(vocab_size=66, num_layers=8, width=256, num_heads=4))
    block = model.blocks[3].requires_grad_(False)
    assert float(block.attention.output.weight.std()) == pytest.approx(0.02 / 4, rel=0.05)
    assert float(block.mlp.output.weight.std()) == pytest.approx(0.02 / 4, rel=0.05)
    assert float(block.mlp.expand.weight.std()) == pytest.approx(0.02, rel=0.05)


def test_modern_blocks_start_as_the_identity() -> None:
    model = GPT(GPTConfig.modern(vocab_size=66, **SMALL))
    x = torch.randn(2, 5, 32)
    context = Context(torch.zeros(2, 5, dtype=torch.int64))
    assert torch.equal(model.trunk(x, context), x)
    for block in model.blocks:
        assert all(torch.equal(branch(x, context), torch.zeros_like(x)) for branch in block.branches)
    assert model.head.weight is not model.embedding.weight


def test_swiglu_costs_what_the_gelu_mlp_costs() -> None:
    for width, hidden in ((16, 64), (128, 320), (384, 1024), (768, 2048)):
        assert SwiGLU(width, bias=False).output.in_features == hidden


def test_bias_means_every_linear_but_the_head() -> None:
    model = GPT(GPTConfig.workshop(vocab_size=20, bias=True, **SMALL))
    names = {name for name, _ in model.named_parameters()}
    assert {"trunk.blocks.0.attention.qkv.bias", "trunk.blocks.1.mlp.output.bias", "final_norm.bias"} <= names
    assert "head.bias" not in names


def test_dropout_acts_in_training_only() -> None:
    tokens = torch.randint(50, (2, 16))
    for attention in ("sdpa", "plain"):
        model = scrambled(GPT(GPTConfig.workshop(vocab_size=50, **SMALL), Kernels(attention)))
        assert torch.equal(model(tokens), model(tokens))
        model.train()
        assert not torch.equal(model(tokens), model(tokens))


def test_half_precision_forward_is_close() -> None:
    """Rotary angles are float32 and promote; the attention kernel must get one type all the same."""
    model = scrambled(GPT(GPTConfig.modern(vocab_size=50, **SMALL)))
    model.requires_grad_(False)
    tokens = torch.randint(50, (2, 16))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits = model(tokens)
    assert logits.dtype == torch.bfloat16
    exact = model(tokens)
    assert float((logits.float() - exact).norm() / exact.norm()) < 0.05


def test_too_long_an_input_says_so() -> None:
    model = GPT(GPTConfig.modern(vocab_size=50, **SMALL))
    with pytest.raises(ConfigError, match="17 tokens exceed the model's context of 16"):
        model(torch.zeros(1, 17, dtype=torch.int64))


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"width": 100, "num_heads": 6}, "width 100 must be a multiple of num_heads 6"),
        ({"width": 9, "num_heads": 3}, "rope needs an even head size"),
        ({"vocab_size": 0}, "vocab_size"),
        ({"num_layers": 2.0}, "num_layers"),
        ({"num_layers": True}, "num_layers"),
        ({"dropout": 1.0}, "dropout"),
        ({"dropout": float("nan")}, "dropout"),
        ({"positions": "alibi"}, "positions must be one of learned, rope"),
        ({"attention": "plain"}, "attention is a setting of the machine"),
        ({"depth": 3}, "unknown model setting 'depth'"),
    ],
)
def test_a_bad_setting_is_named(setting: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        GPTConfig.modern(**{"vocab_size": 50, **setting})


def test_an_unknown_kernel_is_named() -> None:
    with pytest.raises(ConfigError, match="attention must be one of sdpa, plain"):
        Kernels("flash")
    with pytest.raises(ConfigError, match="logits_at_once is 0"):
        Kernels(logits_at_once=0)


@pytest.mark.parametrize("preset", PRESETS)
def test_configuration_survives_json(preset: str) -> None:
    config = PRESETS[preset](vocab_size=50, **SMALL)
    assert GPTConfig.from_json(config.to_json()) == config
    with pytest.raises(ConfigError, match="lacks vocab_size"):
        GPTConfig.from_json({"width": 32})
