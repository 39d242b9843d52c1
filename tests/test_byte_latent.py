"""Byte-latent models: patches by definition, no byte of the future, exact likelihoods, and the whole way of a run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fastcompress import lz77
from fastcompress.codec import ByteCodec, CharCodec
from fastcompress.data import TokenDataset
from fastcompress.data.patches import PATCHERS, LZ77Patcher, patch_ends, patch_rows
from fastcompress.errors import ConfigError
from fastcompress.evaluation import evaluate, generate
from fastcompress.models import make_model_config
from fastcompress.models.byte_latent import ByteLatent, ByteLatentConfig
from fastcompress.models.quantized import VectorQuantizer
from fastcompress.models.trunk import Context
from fastcompress.training import TrainConfig, load_run, train
from fastcompress.training.selfcheck import redraw_weights, self_check
from tests.reference import patches as reference

CODEC = ByteCodec()
SMALL = {
    "context_length": 48, "width": 32, "num_layers": 1, "num_heads": 2, "local_width": 16, "encoder_layers": 1,
    "decoder_layers": 1, "local_heads": 2, "local_window": 8, "min_bytes": 3, "max_bytes": 9,
}  # fmt: skip
texts = st.one_of(
    st.text("ab c", max_size=50).map(str.encode),
    st.lists(st.sampled_from([b"the ", b"they", b" ", b"\n", b"\xc3\xa9", b"abcabc"]), max_size=14).map(b"".join),
    st.binary(max_size=40),
)


def make(patcher: str = "space", **changes: object) -> ByteLatent:
    """A model in which every path is active."""
    torch.manual_seed(0)
    model = ByteLatentConfig.from_json({**SMALL, "patcher": patcher, **changes}).build()
    redraw_weights(model)
    with torch.no_grad():
        model.start.normal_()
    return model.eval()


def lz77_cut(text: bytes) -> int:
    parser = lz77.IncrementalParser(PATCHERS["lz77"].params)  # type: ignore[attr-defined]
    parser.append(text)
    return parser.stable_bytes


CUTS = {"static": len, "space": reference.space_cut, "lz77": lz77_cut}


@given(st.lists(texts, min_size=1, max_size=3), st.sampled_from(sorted(PATCHERS)), st.integers(1, 5), st.integers(0, 6))
def test_patches_are_the_defined_ones(documents: list[bytes], patcher: str, min_bytes: int, extra: int) -> None:
    """Also of every prefix, so nothing that is known of patches depends on later bytes."""
    ids = [reference.END]
    for document in documents:
        ids += [*document, reference.END]
    found = patch_ends(np.array(ids), PATCHERS[patcher], min_bytes, min_bytes + extra)
    assert found.tolist() == reference.ends(ids, CUTS[patcher], min_bytes, min_bytes + extra)
    for length in (len(ids) // 2, len(ids) - 1):
        part = patch_ends(np.array(ids[:length], np.int64), PATCHERS[patcher], min_bytes, min_bytes + extra)
        assert part.tolist() == found[:length].tolist()
    ends = found[found > 0]
    sizes = np.diff(ends, prepend=0)
    assert (sizes >= min_bytes).all()
    assert (sizes <= min_bytes + extra).all()
    assert (ends <= np.flatnonzero(found) + 1).all()
    assert len(ends) <= len(ids) // min_bytes


NGRAMS = {"ngram_orders": (2, 3, 5), "ngram_rows": 50}
CODES = {"latent_codes": 7}


@pytest.mark.parametrize("patcher", PATCHERS)
@pytest.mark.parametrize("changes", [{}, {"cross_attention": True}, NGRAMS, CODES], ids=str)
def test_a_changed_byte_changes_nothing_before_it(patcher: str, changes: dict[str, object]) -> None:
    """Raw bytes are changed, and patched anew."""
    model = make(patcher, **changes)
    text = b"to be or not to be, that is the question: to be"
    ids = torch.tensor([[reference.END, *text]])
    before = model(ids)
    for position in (1, 7, 20, 33, 47):
        changed = ids.clone()
        changed[0, position:] = torch.tensor(list(b"x !"))[torch.arange(48 - position) % 3]
        after = model(changed)
        torch.testing.assert_close(after[:, :position], before[:, :position], rtol=1e-5, atol=1e-6)
        assert not torch.allclose(after[:, position:], before[:, position:], atol=1e-3)
        torch.testing.assert_close(model(ids[:, :position]), before[:, :position], rtol=1e-4, atol=1e-5)


def test_a_patch_reaches_bytes_beyond_the_window() -> None:
    """Through the large network alone: local windows see 8 bytes in each of two layers."""
    for cross_attention in (False, True):
        model = make("space", cross_attention=cross_attention)
        one, other = (b"first word of it " + b"and then some more of it." for _ in range(2))
        other = b"thirs" + other[5:]
        a, b = (model(torch.tensor([[reference.END, *text]])) for text in (one, other))
        assert not torch.allclose(a[:, 40:], b[:, 40:], atol=1e-4)


@pytest.mark.parametrize("patcher", PATCHERS)
def test_probabilities_of_the_next_byte_sum_to_one(patcher: str) -> None:
    """Each from the cost of the text with that byte, over contexts in which matches begin, go on and end."""
    model = make(patcher)
    rows = model.rows(CODEC)
    for context in (b"", b"abcabcabc", b"a word, a wor", b"aaaaaaaaaaaaaaaaaaaaaaaaaaaa"):
        documents = [context + bytes([byte]) for byte in range(256)] + [context]  # the last ends there
        batch = rows.stack([next(iter(rows.scoring_rows(document, 48))) for document in documents])
        with torch.no_grad():
            nats = model.nats({name: torch.from_numpy(column) for name, column in batch.items()})[:, len(context)]
        total = float((-nats.double()).exp().sum())
        assert total == pytest.approx(1.0, abs=1e-5)


@pytest.mark.parametrize("patcher", PATCHERS)
def test_self_checks_pass(patcher: str) -> None:
    config = ByteLatentConfig.from_json({**SMALL, **NGRAMS, **CODES, "patcher": patcher, "cross_attention": True})
    model = config.build()
    self_check(model, TrainConfig(steps=1))
    size = config.size()
    assert size.parameters == model.num_parameters()
    roles = model.parameter_roles()
    assert size.matrix_parameters == sum(p.numel() for n, p in model.named_parameters() if roles[n] == "matrix")


class Uncached(ByteLatent):
    def new_cache(self, lanes: int) -> None:  # type: ignore[override]
        return None


@pytest.mark.parametrize("patcher", PATCHERS)
@pytest.mark.parametrize("changes", [{}, {"cross_attention": True}, NGRAMS, CODES], ids=str)
def test_cached_logits_are_the_uncached_ones(patcher: str, changes: dict[str, object]) -> None:
    """Lanes of unequal lengths, one of which outgrows the row again and again."""
    cached = make(patcher, **changes)
    uncached = Uncached(cached.config)
    uncached.load_state_dict(cached.state_dict())
    steppers = [model.eval().stepper(CODEC, 3) for model in (cached, uncached)]
    for stepper in steppers:
        stepper.begin([b"a be", b"to be or not to be, that is the question: a", b""])
    text = b"to be, to be or not, aaaaaaaaaaaaaaaaaa a be that is it"
    for step in range(28):
        found, expected = (stepper.weights() for stepper in steppers)
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
        for stepper in steppers:
            stepper.push([text[step], text[(step + 7) % len(text)], text[step // 2]])


def test_ngrams_add_vectors_to_the_bytes_that_end_them() -> None:
    """And nothing at first, so that a model starts as the one without."""
    texts = torch.tensor([[reference.END, *b"a ship, the ship"], [reference.END, *b"the ship, a ship"]])
    with_them, without = make(**NGRAMS), make()
    with_them.load_state_dict(without.state_dict(), strict=False)
    with_them.ngram_table.weight.data.zero_()
    torch.testing.assert_close(with_them(texts), without(texts))
    with_them.ngram_table.weight.data.normal_()
    context = Context(texts)
    added = with_them.embed(context) - with_them.embedding(texts)  # [2, 17, d]
    torch.testing.assert_close(added[0, 16], added[1, 16])  # the last five bytes are " ship" in both
    assert not torch.allclose(added[0, 15], added[1, 15])
    rows = with_them.ngrams(context)[0, 16]  # int64[3]
    torch.testing.assert_close(added[0, 16], with_them.ngram_table.weight[rows].sum(0))
    assert {name: role for name, role in with_them.parameter_roles().items() if role == "memory"} == {
        "ngram_table.weight": "memory"
    }


def test_a_code_stands_for_each_patch() -> None:
    """The most similar one; gradients reach the code, as if it were read, and the patch, as if it were not replaced."""
    quantizer = VectorQuantizer(5, 4)
    x = torch.randn(2, 3, 4, requires_grad=True)
    found = quantizer(x)
    similar = torch.nn.functional.cosine_similarity(x[:, :, None], quantizer.codes.weight, dim=-1)  # [2, 3, 5]
    nearest = quantizer.codes.weight[similar.argmax(-1)]  # [2, 3, 4]
    torch.testing.assert_close(found, nearest / nearest.square().mean(-1, keepdim=True).sqrt(), rtol=1e-4, atol=1e-4)
    slope = torch.randn(2, 3, 4)
    (found * slope).sum().backward()
    (expected,) = torch.autograd.grad((torch.nn.functional.rms_norm(x, (4,), eps=1e-6) * slope).sum(), x)
    torch.testing.assert_close(x.grad, expected)
    assert quantizer.codes.weight.grad is not None
    used = quantizer.codes.weight.grad.abs().sum(1) > 0
    assert used.nonzero().flatten().tolist() == similar.argmax(-1).unique().tolist()


def test_flops_are_those_that_run() -> None:
    """Plain attention over whole windows, which the counter of torch can see."""
    from torch.utils.flop_counter import FlopCounterMode

    from fastcompress.models import Kernels

    model = ByteLatentConfig.from_json({**SMALL, **CODES, "local_window": 48, "cross_attention": True}).build(
        Kernels("plain")
    )
    rows = model.rows(CODEC)
    row = next(iter(rows.scoring_rows(b"to be or not to be, that is the question, or is"[:47], 48)))
    batch = {name: torch.from_numpy(column) for name, column in rows.stack([row]).items()}
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        model.nats(batch)
    assert counter.get_total_flops() == model.flops().forward


@pytest.mark.slow
def test_the_whole_way_of_a_run(tmp_path: Path) -> None:
    """It learns a document by heart, to under 0.05 bits per byte, is kept, scored in windows and continues it."""
    document = b"She sells sea shells by the sea shore; the shells she sells are sea-shore shells."
    config = make_model_config({"kind": "byte-latent", **SMALL, "patcher": "lz77", "context_length": 96}, CODEC)
    data = TokenDataset.from_documents([document] * 8, CODEC)
    settings = TrainConfig(
        steps=320, batch_size=4, learning_rate=0.03, optimizer="muon", num_evals=1, device="cpu", self_check=False
    )
    result = train(config, CODEC, data, [document], settings, tmp_path, progress=False)
    assert result.best_bits_per_byte < 0.05
    loaded = load_run(tmp_path)
    assert isinstance(loaded.model, ByteLatent)
    assert loaded.model.config == config
    score = evaluate(loaded.model, CODEC, [document], stride=96, batch_size=2)
    assert score.bits_per_byte == pytest.approx(result.best_bits_per_byte, rel=1e-3)
    text = "".join(generate(loaded.model, CODEC, document[:20], max_tokens=40, temperature=0.0))
    assert text.encode() == document[20:60]


def test_dropout_acts_in_training_alone() -> None:
    model, plain = make(dropout=0.5), make()
    plain.load_state_dict(model.state_dict())
    batch = model.random_batch(2, 48)
    assert torch.equal(model.nats(batch), plain.nats(batch))
    model.train()
    assert not torch.equal(model.nats(batch), model.nats(batch))


def test_bad_settings_are_refused() -> None:
    with pytest.raises(ConfigError, match="a model of bytes needs byte"):
        make_model_config({"kind": "byte-latent"}, CharCodec("abc"))
    with pytest.raises(ConfigError, match="patcher is 'words'; it must be one of static, space, lz77, entropy"):
        patch_rows(CODEC, 16, "words", 1, 2)
    with pytest.raises(ConfigError, match=r"ngram_orders is \[2, 2\]; it must be a list of different whole numbers"):
        ByteLatentConfig.from_json({"ngram_orders": [2, 2]})
    with pytest.raises(ConfigError, match=r"ngram_orders is \[17\]; its numbers must be at most 16"):
        ByteLatentConfig(ngram_orders=(17,))
    with pytest.raises(ConfigError, match=r"model.min_bytes is 5; it must be at most model.max_bytes, 4"):
        patch_rows(CODEC, 16, "space", 5, 4)
    with pytest.raises(ConfigError, match="local_width is 18; it must be a multiple of twice its 4 heads"):
        ByteLatentConfig(local_width=18)
    with pytest.raises(ConfigError, match=r"dropout must be in \[0, 1\), not 1"):
        ByteLatentConfig(dropout=1)
    assert LZ77Patcher(lz77.Params(window=64)).name != LZ77Patcher().name
