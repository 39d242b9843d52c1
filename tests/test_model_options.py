"""Every option of the GPT, alone and together: against a plain reference, and in all that a model must keep."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from click.testing import CliRunner
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from fastcompress.cli import main
from fastcompress.codec import ByteCodec, CharCodec, LZ77Codec
from fastcompress.data import TokenDataset
from fastcompress.errors import ConfigError
from fastcompress.models import GPT, PRESETS, Cache, Context, GPTConfig, Kernels, NextTokenModel, make_model_config
from fastcompress.models.cross_entropy import next_token_loss
from fastcompress.models.engram import Engram, table_sizes
from fastcompress.models.spelled_bytes import SpelledBytes
from fastcompress.models.threads import limited_threads
from fastcompress.models.tokens import token_bytes
from fastcompress.models.trunk import Reach
from fastcompress.training import TrainConfig, load_run, train
from fastcompress.training.selfcheck import self_check
from tests.reference import gpt as reference

# Ids 0 to 7; 0, 3 and 6 differ in case and accents only, and an "é" has two bytes.
CODEC = CharCodec(["e", "a", "b", "E", " ", "c", "é"])
TOKENS = token_bytes(CODEC)
SHAPE: dict[str, Any] = {
    "vocab_size": 8, "num_layers": 3, "num_heads": 4, "width": 16, "context_length": 12,
    "engram_rows": 5, "engram_heads": 2,
}  # fmt: skip
OPTIONS: dict[str, dict[str, Any]] = {
    "defaults": {},
    "learned positions": {"positions": "learned"},
    "another base": {"rotary_base": 100.0},
    "LayerNorm": {"norm": "layernorm", "bias": True},
    "RMSNorm with gain": {"norm": "rmsnorm_gain"},
    "GELU": {"mlp": "gelu", "bias": True},
    "ReLU squared": {"mlp": "relu2", "bias": True},
    "no QK norm": {"qk_norm": False},
    "soft cap": {"softcap": 2.0},
    "norm epsilon": {"norm_epsilon": 0.03},
    "LayerNorm's epsilon": {"norm": "layernorm", "norm_epsilon": 0.03},
    "tied head": {"tied_head": True},
    "grouped queries": {"kv_heads": 2},
    "one head of keys": {"kv_heads": 1, "bias": True},
    "windows": {"window": 3, "window_pattern": "SSL"},
    "chunks": {"window": 3, "window_pattern": "CL", "kv_heads": 2},
    "value residual": {"value_residual": True, "kv_heads": 2},
    "gates": {"attention_gate": True},
    "exclusive": {"exclusive_attention": "plain", "kv_heads": 2},
    "exclusive, gated": {"exclusive_attention": "gated"},
    "attention residuals": {"attention_residuals": "full"},
    "attention residuals, block": {"attention_residuals": "block", "residual_groups": 2},
    "more groups than branches": {"attention_residuals": "block", "residual_groups": 50},
    "spelled bytes": {"spelled_bytes": 2},
    "spelled bytes, tied": {"spelled_bytes": 1, "tied_head": True},
    "Engram": {"engram_layers": (0, 2)},
    "Engram, bigrams": {"engram_layers": (1,), "engram_orders": (2,), "engram_width": 8},
    "all": {
        "norm": "rmsnorm_gain", "mlp": "relu2", "bias": True, "softcap": 3.0, "kv_heads": 2, "window": 5,
        "window_pattern": "SL", "value_residual": True, "attention_gate": True, "exclusive_attention": "gated",
        "attention_residuals": "block", "residual_groups": 3, "spelled_bytes": 2, "engram_layers": (1,),
    },
}  # fmt: skip

every_option = pytest.mark.parametrize("name", OPTIONS)


@pytest.fixture(autouse=True)
def _seed() -> Iterator[None]:
    torch.manual_seed(3)
    with limited_threads(1):  # these models are so small that threads only wait for each other
        yield


class Uncached(GPT):
    """The same model, which reads its window anew for each symbol."""

    def new_cache(self, lanes: int) -> Cache | None:
        return None

    def next_logits(self, tokens: Tensor, last: Tensor, cache: Cache | None, positions: Tensor | None) -> Tensor:
        return NextTokenModel.next_logits(self, tokens, last, cache, positions)


def configure(name: str) -> GPTConfig:
    return GPTConfig(**{**SHAPE, **OPTIONS[name]})


def make(name: str, kernels: Kernels = Kernels(), kind: type[GPT] = GPT) -> GPT:  # noqa: B008
    """A model in which every parameter is random and large enough to matter."""
    generator = torch.Generator().manual_seed(5)
    model = kind(configure(name), kernels)
    model.read_codec(CODEC)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.4)
    return model.eval()


def gradients(loss: Tensor, model: GPT) -> dict[str, Tensor]:
    named = dict(model.named_parameters())
    found = torch.autograd.grad(loss, list(named.values()), allow_unused=True)
    return {name: torch.zeros_like(p) if g is None else g for (name, p), g in zip(named.items(), found, strict=True)}


@pytest.mark.slow
@every_option
@pytest.mark.parametrize("attention", ["sdpa", "plain"])
def test_logits_and_gradients_are_those_of_the_reference(name: str, attention: Any) -> None:
    """Two documents in a row, in double precision."""
    model = make(name, Kernels(attention)).double()
    ids, targets = torch.randint(8, (2, 1, 10))
    documents = [0] * 4 + [1] * 6
    batch = {
        "input": ids, "target": targets, "document": torch.tensor([documents]),
        "position": torch.tensor([[*range(4), *range(6)]]),
    }  # fmt: skip
    found = model.make_head()(model.hidden(Context(ids, batch["position"], batch["document"])))[0]  # [T, V]
    expected = reference.logits(model.config, dict(model.named_parameters()), ids[0].tolist(), documents, TOKENS)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)
    losses = model.nats(batch)  # in float32, as always
    torch.testing.assert_close(losses[0], next_token_loss(expected, targets[0], reduction="none"), rtol=1e-4, atol=1e-4)
    direction = torch.randn(found.shape, dtype=torch.float64)
    right = gradients((expected * direction).sum(), model)
    for parameter, gradient in gradients((found * direction).sum(), model).items():
        torch.testing.assert_close(
            gradient, right[parameter], rtol=1e-4, atol=1e-4, msg=lambda m, p=parameter: f"{p}: {m}"
        )
    options = {
        n for n in right if any(part in n for part in ("value_res", "gate.", "exclu", "reads", "spell", "memory"))
    }
    assert all(right[n].any() for n in options), "a parameter of an option that does nothing"


@every_option
def test_a_stream_of_bfloat16_costs_its_rounding(name: str) -> None:
    """As on cards: the stream is bfloat16 under autocast, and every part of the model keeps it so."""
    model, batch = make(name), {"input": torch.randint(8, (4, 12)), "target": torch.randint(8, (4, 12))}
    exact = model.nats(batch)
    types = set()
    for block in model.blocks:
        block.attention.register_forward_hook(lambda module, inputs, output: types.add(inputs[0].dtype))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        nats = model.nats(batch)
    assert types == {torch.bfloat16}
    assert nats.dtype == torch.float32
    torch.testing.assert_close(nats, exact, rtol=0.1, atol=0.2)
    assert all(gradient.isfinite().all() for gradient in gradients(nats.sum(), model).values())


@every_option
def test_later_ids_change_nothing_before_them(name: str) -> None:
    model, ids = make(name), torch.randint(8, (4, 12))
    before = model(ids)
    assert before.shape == (4, 12, 8)
    for position in (1, 6, 11):
        changed = ids.clone()
        changed[:, position:] = (changed[:, position:] + torch.randint(1, 8, (4, 12 - position))) % 8
        after = model(changed)
        torch.testing.assert_close(after[:, :position], before[:, :position], rtol=1e-5, atol=1e-5)
        assert not torch.allclose(after[:, position:], before[:, position:], atol=1e-3)
        torch.testing.assert_close(model(ids[:, :position]), before[:, :position], rtol=1e-4, atol=1e-4)


@every_option
def test_cached_logits_are_the_uncached_ones(name: str) -> None:
    """Lanes of unequal lengths, one of which outgrows the context again and again; and two ids at once."""
    steppers = [make(name, kind=kind).stepper(CODEC, 3) for kind in (GPT, Uncached)]
    for stepper in steppers:
        stepper.begin([b"ab", b"a beca bE c ab", b""])
    for step in range(8):
        cached, uncached = (stepper.weights() for stepper in steppers)
        torch.testing.assert_close(cached, uncached, rtol=1e-4, atol=1e-4)
        symbols = [(3 * step + lane) % 7 for lane in range(3)]
        for stepper in steppers:
            stepper.push(symbols)
            if step == 3:
                stepper.push(symbols)


@every_option
def test_documents_of_a_row_cost_what_they_cost_alone(name: str) -> None:
    model, ids, targets = make(name), *torch.randint(8, (2, 1, 11))
    packed = model.nats({
        "input": ids, "target": targets,
        "position": torch.tensor([[*range(5), *range(6)]]), "document": torch.tensor([[7] * 5 + [8] * 6]),
    })  # fmt: skip
    parts = [model.nats({"input": ids[:, part], "target": targets[:, part]}) for part in (slice(5), slice(5, None))]
    torch.testing.assert_close(packed, torch.cat(parts, dim=1), rtol=1e-4, atol=1e-4)


@every_option
def test_flops_are_what_the_counter_counts(name: str) -> None:
    """On the path that is written out, which computes scores beyond windows, too: these are known and taken off."""
    model, config = make(name, Kernels("plain")).train(), configure(name)
    ids = torch.randint(8, (1, config.context_length))
    outside = sum(4 * 16 * 12 * (12 - (config.reach_of(layer).size or 12)) for layer in range(config.num_layers))
    with FlopCounterMode(display=False) as forward:
        loss = next_token_loss(model(ids), ids)
    with FlopCounterMode(display=False) as backward:
        loss.backward()
    assert model.flops().forward == forward.get_total_flops() - outside
    assert model.flops().training == forward.get_total_flops() + backward.get_total_flops() - 3 * outside


@every_option
def test_half_precision_is_close(name: str) -> None:
    """Cached and whole: every part must get along with values of two types."""
    model, ids = make(name).requires_grad_(False), torch.randint(8, (4, 12))
    cache, positions = model.new_cache(4), torch.arange(12).expand(4, 12)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        whole, cached = model(ids), model.next_logits(ids, torch.full((4,), 11), cache, positions)
    exact = model(ids)
    assert float((whole.float() - exact).norm() / exact.norm()) < 0.1
    assert float((cached.float() - exact[:, -1]).norm() / exact[:, -1].norm()) < 0.1


@every_option
def test_size_settings_and_start(name: str) -> None:
    config = configure(name)
    model = GPT(config)
    model.read_codec(CODEC)
    assert config.size().parameters == model.num_parameters()
    assert GPTConfig.from_json(json.loads(json.dumps(config.to_json()))) == config
    assert hash(config) == hash(configure(name))
    loss = next_token_loss(model(torch.randint(8, (16, 12))), torch.randint(8, (16, 12)))
    assert float(loss.detach()) == pytest.approx(math.log(8), abs=0.2)
    self_check(model, TrainConfig(steps=1))


@pytest.mark.parametrize("name", ["spelled bytes", "Engram", "exclusive, gated"])
def test_what_starts_at_zero_starts_as_the_model_without(name: str) -> None:
    model, plain = GPT(configure(name)), GPT(configure("defaults"))
    model.read_codec(CODEC)
    missing = model.load_state_dict(plain.state_dict(), strict=False).missing_keys
    assert missing
    ids = torch.randint(8, (2, 12))
    with torch.no_grad():
        for of_both in zip(plain.blocks, model.blocks, strict=True):
            for block in of_both:
                block.attention.output.weight.normal_(generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(model(ids), plain(ids))
    assert not torch.equal(make(name)(ids), make("defaults")(ids))


@pytest.mark.parametrize("name", ["all", "Engram", "spelled bytes, tied", "attention residuals"])
def test_a_run_keeps_its_options(name: str, tmp_path: Path) -> None:
    """Loaded, it predicts the same; stopped and resumed, it learns the same to the bit."""
    texts = [b"a cab be a bec", b"abe cabE ace be"] * 8
    data = TokenDataset.from_documents(texts, CODEC)

    def stop(record: dict[str, Any]) -> None:
        if record["step"] == 3:
            raise KeyboardInterrupt

    def run(folder: str, **passed: Any) -> Any:
        config = TrainConfig(steps=6, batch_size=4, learning_rate=0.02, num_evals=1, log_every=1, device="cpu")
        return train(configure(name), CODEC, data, texts[:2], config, tmp_path / folder, progress=False, **passed)

    whole = run("whole").model.eval()
    with pytest.raises(KeyboardInterrupt):
        run("parts", on_metrics=stop)
    resumed = run("parts", resume=True).model.eval()
    loaded = load_run(tmp_path / "parts", which="last").model
    assert loaded.config == configure(name)
    ids = torch.randint(8, (2, 12))
    assert torch.equal(resumed(ids), whole(ids))
    assert torch.equal(loaded(ids), whole(ids))


def test_a_window_ends_where_it_says() -> None:
    """With one layer, an id reaches its own position and the next window - 1, no other."""
    config = GPTConfig(**{**SHAPE, "num_layers": 1, "window": 3})
    model = GPT(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.4)
    ids = torch.randint(8, (1, 12))
    changed = ids.clone()
    changed[0, 4] = (ids[0, 4] + 1) % 8
    reached = (model(changed) - model(ids)).abs().amax(-1)[0] > 1e-6
    assert reached.nonzero().flatten().tolist() == [4, 5, 6]


def test_windows_alternate_by_layer() -> None:
    config = GPTConfig(**{**SHAPE, "num_layers": 5, "window": 4, "window_pattern": "SSL"})
    assert [config.reach_of(layer).size for layer in range(5)] == [4, 4, None, 4, 4]
    assert [GPTConfig(**SHAPE).reach_of(layer) for layer in range(3)] == [Reach()] * 3


@pytest.mark.parametrize("length", [12, 10, 2])
def test_chunks_as_rows_are_chunks_by_masks(length: int) -> None:
    """Rows of whole chunks, rows with a rest, rows within a chunk: values and gradients."""
    models = [make("chunks", Kernels(kind)) for kind in ("sdpa", "plain")]
    assert models[0].blocks[0].attention.reach == Reach(3, in_chunks=True)
    ids = torch.randint(8, (2, length))
    found, expected = (model(ids) for model in models)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
    direction = torch.randn(found.shape)
    ours, theirs = (gradients((out * direction).sum(), m) for out, m in zip((found, expected), models, strict=True))
    for name, gradient in ours.items():
        torch.testing.assert_close(gradient, theirs[name], rtol=1e-3, atol=1e-3)


def test_a_chunk_ends_where_it_says() -> None:
    """With one layer, an id reaches the rest of its own chunk, whether the row is of whole chunks or not."""
    model = GPT(GPTConfig(**{**SHAPE, "num_layers": 1, "window": 4, "window_pattern": "C"}))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.4)
    for length in (12, 11):
        ids = torch.randint(8, (1, length))
        changed = ids.clone()
        changed[0, 5] = (ids[0, 5] + 1) % 8
        reached = (model(changed) - model(ids)).abs().amax(-1)[0] > 1e-6
        assert reached.nonzero().flatten().tolist() == [5, 6, 7]


def test_exclusive_attention_leaves_nothing_along_the_value() -> None:
    attention = make("exclusive").blocks[0].attention
    mixed, value = torch.randn(2, 4, 5, 4), torch.randn(2, 2, 5, 4)
    left = attention.exclusive(mixed, value)
    own = value.repeat_interleave(2, dim=1)
    torch.testing.assert_close((left * own).sum(-1), torch.zeros(2, 4, 5), atol=1e-5, rtol=0.0)
    torch.testing.assert_close(attention.exclusive(mixed, torch.zeros_like(value)), mixed)


def test_attention_residuals_start_as_averages() -> None:
    model = GPT(configure("attention residuals"))
    x, context = torch.randn(2, 5, 16), Context(torch.zeros(2, 5, dtype=torch.int64))
    torch.testing.assert_close(model.trunk(x, context), x / 7)  # six branches add zeros


def test_tokens_share_the_vectors_of_their_bytes() -> None:
    spelled = SpelledBytes(4, 3, 8)
    spelled.read_tokens([b"ab", b"abcd", b"b", b""])
    with torch.no_grad():
        spelled.vectors.weight.normal_()
    rows = spelled.vectors.weight.detach()
    sums = spelled().detach()
    torch.testing.assert_close(sums[0], rows[97] + rows[256 + 98])
    torch.testing.assert_close(sums[1], sums[0] + rows[512 + 99])  # its fourth byte does not count
    assert torch.equal(sums[2], rows[98])
    assert not sums[3].any()
    for ids in (torch.tensor([[3, 1]]), torch.tensor([[3, 1, 0], [1, 2, 1]])):  # fewer and more than there are tokens
        found = spelled(ids)
        assert torch.equal(found, sums[ids])
        spelled.vectors.weight.grad = None
        (found * torch.arange(1.0, 9.0)).sum().backward()
        by_hand = torch.zeros_like(rows)
        for token in ids.flatten().tolist():
            for piece in spelled.pieces[token].tolist():
                by_hand[piece] += torch.arange(1.0, 9.0) * (piece != 768)
        torch.testing.assert_close(spelled.vectors.weight.grad, by_hand)


def test_hashes_know_order_and_distance() -> None:
    memory = Engram(16, 50, memory_width=16, orders=(2, 3), num_heads=2, rows=1000, salt=0)
    assert memory.table.num_embeddings == sum(table_sizes(1000, 4)) == 1009 + 1013 + 1019 + 1021
    rows = memory.hash(Context(torch.tensor([[4, 5, 6, 1, 5, 6, 1, 6, 5, 4, 5, 6]])))[0].tolist()
    assert rows[2][:2] == rows[5][:2] == rows[11][:2]  # 5 6
    assert rows[2][2:] == rows[11][2:]  # 4 5 6
    assert rows[2][2] != rows[5][2]  # 1 5 6
    assert rows[5][0] != rows[8][0]  # 6 5
    other = Engram(16, 50, memory_width=16, orders=(2, 3), num_heads=2, rows=1000, salt=1)
    assert other.hash(Context(torch.tensor([[4, 5]])))[0].tolist() != rows[:2]
    assert max(max(row) for row in rows) < memory.table.num_embeddings


def test_a_model_that_spells_needs_a_codec_whose_ids_have_bytes() -> None:
    with pytest.raises(ConfigError, match="does not know their bytes; call read_codec first"):
        GPT(configure("spelled bytes"))(torch.zeros(1, 3, dtype=torch.int64))
    with pytest.raises(ConfigError, match=r"codec is lz77.*; it must give each id bytes of its own"):
        token_bytes(LZ77Codec())
    assert token_bytes(ByteCodec()) == [bytes([b]) for b in range(256)] + [b""]


@pytest.mark.parametrize("preset", PRESETS)
def test_a_preset_is_what_settings_make_of_it(preset: str) -> None:
    config = make_model_config({"preset": preset, "num_layers": 2, "num_heads": 2, "width": 32}, ByteCodec())
    assert config == GPTConfig.from_preset(preset, vocab_size=257, num_layers=2, num_heads=2, width=32)
    assert config.build().num_parameters() == config.size().parameters
    self_check(config.build(), TrainConfig(steps=1))


def test_presets_have_the_published_sizes() -> None:
    gpt2 = GPTConfig.from_preset("gpt2", vocab_size=50_257)
    assert gpt2.size().parameters == 124_439_808
    assert (gpt2.num_layers, gpt2.num_heads, gpt2.width, gpt2.context_length) == (12, 12, 768, 1024)
    fineweb = GPTConfig.from_preset("fineweb", vocab_size=32_768)
    assert 110e6 < fineweb.size().parameters < 120e6
    assert fineweb.context_length == 512
    llama = GPTConfig.from_preset("llama", vocab_size=300)
    assert (llama.positions, llama.norm, llama.mlp) == ("rope", "rmsnorm_gain", "swiglu")
    assert (llama.qk_norm, llama.bias, llama.tied_head, llama.dropout) == (False, False, False, 0.0)
    assert GPTConfig.from_preset("modern", vocab_size=9) == GPTConfig(vocab_size=9)
    with pytest.raises(
        ConfigError, match="preset must be one of gpt2, workshop, modern, llama, fineweb, speedrun, not 'big'"
    ):
        GPTConfig.from_preset("big", vocab_size=9)


def test_depth_decides_the_shape_and_settings_win_over_it() -> None:
    config = make_model_config({"depth": 4, "width": 512, "preset": "gpt2"}, ByteCodec())
    assert (config.num_layers, config.num_heads, config.width) == (4, 4, 512)
    assert make_model_config({"depth": 3}, ByteCodec()).width == 192
    twelve = make_model_config({"depth": 12, "preset": "gpt2"}, ByteCodec())
    assert twelve == GPTConfig.from_preset("gpt2", vocab_size=257)
    for depth in (0, 2.5, True):
        with pytest.raises(ConfigError, match=r"depth is .*; it must be a whole number of at least 1"):
            make_model_config({"depth": depth}, ByteCodec())


def test_the_command_line_takes_preset_depth_and_options(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_bytes(b"a cab be a bec " * 60)
    run = ["train", "--run-dir", str(tmp_path / "run"), "--device", "cpu"]
    chosen = ["--preset", "fineweb", "--depth", "1", "--context", "16", "--set", "model.engram_layers=[0]",
              "--set", "model.spelled_bytes=1", "--set", "model.softcap=15"]  # fmt: skip
    new = [*run, "--corpus", str(tmp_path / "text.txt"), "--steps", "1", "--batch-size", "2", *chosen]
    result = CliRunner().invoke(main, new)
    assert result.exit_code == 0, result.output
    config = load_run(tmp_path / "run").model.config
    assert config == GPTConfig.from_preset(
        "fineweb", vocab_size=257, num_layers=1, num_heads=1, width=64, context_length=16, engram_layers=(0,),
        spelled_bytes=1, softcap=15,
    )  # fmt: skip
    for option in (["--depth", "2"], ["--preset", "gpt2"]):
        result = CliRunner().invoke(main, [*run, "--resume", *option])
        assert result.exit_code == 2
        assert f"{option[0]} does not go with --resume: the run has its model" in result.output
    assert CliRunner().invoke(main, [*run, "--resume", "--steps", "2"]).exit_code == 0


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"kv_heads": 3}, "num_heads 4 must be a multiple of kv_heads 3"),
        ({"kv_heads": 0}, "kv_heads must be a whole number of at least 1"),
        ({"window": 0}, "window must be a whole number of at least 1"),
        ({"window": 2, "window_pattern": "SX"}, "window_pattern is 'SX'; it must be letters S, C and L"),
        ({"window_pattern": ""}, "window_pattern is ''"),
        ({"softcap": 0.0}, "softcap must be more than 0"),
        ({"norm_epsilon": 0}, "norm_epsilon must be more than 0"),
        ({"rotary_base": math.inf}, "rotary_base must be more than 0 and finite"),
        ({"exclusive_attention": "yes"}, "exclusive_attention must be one of off, plain, gated"),
        ({"attention_residuals": True}, "attention_residuals must be one of off, full, block"),
        ({"residual_groups": 0}, "residual_groups"),
        ({"spelled_bytes": -1}, "spelled_bytes"),
        ({"engram_layers": [3]}, r"engram_layers is \[3\]; layers are 0 .. 2"),
        ({"engram_layers": [1, 1]}, "it must be a list of different whole numbers"),
        ({"engram_layers": 1}, "engram_layers is 1; it must be a list"),
        ({"engram_layers": ["1"]}, "its numbers must be whole and at least 0"),
        ({"engram_orders": [1]}, "its numbers must be whole and at least 2"),
        ({"engram_layers": [1], "engram_orders": []}, "engram_width is 16; it must be a multiple"),
        ({"engram_layers": [1], "engram_width": 10}, "it must be a multiple of orders x heads, 4"),
        ({"engram_heads": 0}, "engram_heads"),
        ({"engram_heads": 65}, "engram_heads is 65; it must be at most 64"),
        ({"engram_rows": 1 << 31}, "engram_rows is 2147483648; it must be at most 1073741824"),
        ({"engram_orders": [2, 17]}, "its numbers must be at most 16"),
        ({"spelled_bytes": 257}, "spelled_bytes is 257; it must be at most 256"),
        ({"mlp": "relu"}, "mlp must be one of gelu, swiglu, relu2"),
    ],
)
def test_a_bad_option_is_named(setting: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        GPTConfig.from_json({**SHAPE, **setting})
