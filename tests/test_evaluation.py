"""Bits per byte and FLOPs: published examples, models whose score is known, and the protocol's promises."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from fastcompress.codec import ByteCodec, CharCodec
from fastcompress.errors import ConfigError, DataError, MismatchError
from fastcompress.evaluation.bits_per_byte import Evaluation, bits_per_byte, evaluate, event_nats
from fastcompress.evaluation.flops import count_flops
from fastcompress.models.gpt import GPT, GPTConfig, next_token_loss
from fastcompress.models.protocol import Kernels
from fastcompress.models.tokens import NextTokenModel
from tests.reference.bits_per_byte import reference_symbol_nats

DOCUMENTS = [b"hello world", b"", b"x", bytes(range(40)), "día 日本".encode(), b"", b"ab" * 30]
BYTES = sum(map(len, DOCUMENTS))


class UniformModel(NextTokenModel):
    """Every symbol equally likely; keeps what it was shown."""

    def __init__(self, vocab_size: int, context_length: int) -> None:
        super().__init__()
        self.vocab_size, self.context_length = vocab_size, context_length
        self.shown: list[Tensor] = []

    def forward(self, tokens: Tensor) -> Tensor:
        self.shown.append(tokens.clone())
        return torch.zeros(*tokens.shape, self.vocab_size)


class BigramModel(NextTokenModel):
    """p(next | last) from a table; needs no context, so no window can change its score."""

    def __init__(self, probabilities: Tensor, context_length: int) -> None:
        super().__init__()
        self.vocab_size, self.context_length = len(probabilities), context_length
        self.log_probabilities = probabilities.log()

    def forward(self, tokens: Tensor) -> Tensor:
        return self.log_probabilities[tokens]


def small_gpt(vocab_size: int = 257, context_length: int = 8) -> GPT:
    torch.manual_seed(1)
    config = GPTConfig.modern(vocab_size=vocab_size, context_length=context_length, num_layers=1, num_heads=2, width=16)
    model = GPT(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.3)
    return model


# --- Bits per byte ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pieces", "loss", "bits"),
    [
        ({"You": 0.5, " should": 0.4, " rewrite": 0.3, " that": 0.6, " in": 0.8, " rust": 0.9}, 0.609, 0.170),
        (
            {"You": 0.5, " sho": 0.4, "uld": 0.7, " re": 0.3, "write": 0.5}
            | {" that": 0.6, " in": 0.8, " r": 0.9, "ust": 0.8},
            0.547,
            0.229,
        ),
    ],
)
def test_worked_examples_of_two_tokenizations(pieces: dict[str, float], loss: float, bits: float) -> None:
    """The finer one has the lower loss a token and the higher bits per byte, over the same 31 bytes."""
    targets = torch.arange(len(pieces))
    p = torch.tensor(list(pieces.values()))
    logits = torch.full((len(pieces), len(pieces)), 0.0)  # the rest of each row's probability, spread evenly
    logits[:] = ((1 - p) / (len(pieces) - 1)).log()[:, None]
    logits[targets, targets] = p.log()
    mean = float(next_token_loss(logits[None], targets[None]))
    num_bytes = len("".join(pieces).encode())
    assert num_bytes == 31
    assert mean == pytest.approx(loss, abs=5e-4)
    assert bits_per_byte(mean * len(pieces), num_bytes) == pytest.approx(bits, abs=5e-4)


@pytest.mark.parametrize("stride", [1, 3, 4, 8])
@pytest.mark.parametrize("batch_size", [1, 3, 64])
def test_a_uniform_model_pays_log2_vocabulary_a_symbol(stride: int, batch_size: int) -> None:
    model = UniformModel(257, context_length=8)
    result = evaluate(model, ByteCodec(), DOCUMENTS, stride=stride, batch_size=batch_size)
    symbols = BYTES + len(DOCUMENTS)
    assert result.bits_per_byte == pytest.approx(math.log2(257) * symbols / BYTES, rel=1e-6)
    assert result.bits_per_byte_text == pytest.approx(math.log2(257), rel=1e-6)
    assert result.perplexity_per_token == pytest.approx(257, rel=1e-5)
    assert (result.num_bytes, result.num_tokens, result.num_documents) == (BYTES, BYTES, len(DOCUMENTS))


def test_a_bigram_model_scores_what_a_hand_computes() -> None:
    """Alphabet a, b and end (2). "ab": p(a|end) p(b|a) p(end|b); "": p(end|end)."""
    table = torch.tensor([[0.1, 0.6, 0.3], [0.5, 0.25, 0.25], [0.7, 0.1, 0.2]])
    codec = CharCodec(["a", "b"])
    result = evaluate(BigramModel(table, context_length=2), codec, [b"ab", b""], stride=1)
    assert result.nats == pytest.approx(-math.log(0.7 * 0.6 * 0.25 * 0.2), rel=1e-6)
    assert result.bits_per_byte == pytest.approx(-math.log2(0.7 * 0.6 * 0.25 * 0.2) / 2, rel=1e-6)
    assert result.bits_per_byte_text == pytest.approx(-math.log2(0.7 * 0.6) / 2, rel=1e-6)


def test_characters_are_divided_by_their_bytes() -> None:
    codec = CharCodec(["a", "日"])
    result = evaluate(UniformModel(3, context_length=4), codec, ["日a日".encode()])
    assert (result.num_bytes, result.num_tokens) == (7, 3)
    assert result.bits_per_byte == pytest.approx(4 * math.log2(3) / 7)


@pytest.mark.parametrize("stride", [1, 4, 5, 8])
@pytest.mark.parametrize("batch_size", [1, 2, 50])
def test_every_symbol_is_scored_once_from_its_own_window(stride: int, batch_size: int) -> None:
    """A real, context-hungry model against the one-symbol-at-a-time oracle: wrong context or order would show."""
    model, codec = small_gpt(), ByteCodec()
    nats = np.concatenate(event_nats(model, model.rows(codec), DOCUMENTS, stride=stride, batch_size=batch_size))
    expected = np.concatenate(reference_symbol_nats(model, codec, DOCUMENTS, stride))
    np.testing.assert_allclose(nats, expected, rtol=1e-4, atol=1e-4)
    result = evaluate(model, codec, DOCUMENTS, stride=stride, batch_size=batch_size)
    assert result.nats == pytest.approx(float(expected.sum()), rel=1e-6)


def test_no_symbol_is_computed_more_often_than_the_stride_asks() -> None:
    """At stride = context the model is shown each symbol once, apart from padding within a batch."""
    model = UniformModel(257, context_length=8)
    evaluate(model, ByteCodec(), [bytes(range(30))], stride=8, batch_size=1)
    shown = torch.cat([tokens.flatten() for tokens in model.shown]).tolist()
    assert sorted(shown) == sorted([256, *range(30)])


def test_windows_of_like_length_share_a_batch() -> None:
    """Padding is computed and thrown away: short documents must not ride with long ones."""
    model = UniformModel(257, context_length=8)
    evaluate(model, ByteCodec(), [b"x" * 7, b"", b"x" * 7, b"", b"x" * 3, b"x" * 3], batch_size=2)
    assert [tuple(tokens.shape) for tokens in model.shown] == [(2, 8), (2, 4), (2, 1)]


def test_more_context_is_used_at_smaller_strides() -> None:
    """A later window's first scored symbol sees context - stride more: a copying model shows it."""

    class CopyFromFourBack(NextTokenModel):
        vocab_size, context_length = 257, 8

        def forward(self, tokens: Tensor) -> Tensor:
            logits = torch.zeros(*tokens.shape, 257)
            for t in range(3, tokens.size(1)):
                logits[range(len(tokens)), t, tokens[:, t - 3]] = 9.0
            return logits

    documents = [b"abcd" * 20]
    scores = [evaluate(CopyFromFourBack(), ByteCodec(), documents, stride=stride).bits_per_byte for stride in (8, 4, 1)]
    assert scores[0] > 1.5 * scores[1]
    assert scores[1] == pytest.approx(scores[2])


def test_default_stride_is_half_the_context_and_is_reported() -> None:
    result = evaluate(UniformModel(257, context_length=8), ByteCodec(), [b"abc"])
    assert (result.stride, result.context_length) == (4, 8)
    assert evaluate(UniformModel(257, context_length=1), ByteCodec(), [b"abc"]).stride == 1


def test_bits_are_exact_only_for_codecs_with_one_spelling() -> None:
    class TwoSpellings(ByteCodec):
        unambiguous = False

    model = UniformModel(257, context_length=8)
    assert evaluate(model, ByteCodec(), [b"abc"]).is_exact
    assert not evaluate(model, TwoSpellings(), [b"abc"]).is_exact


def test_losses_are_float32_under_autocast() -> None:
    """bfloat16 logits, float32 cross entropy: within the logits' own rounding of the exact score."""
    model, codec = small_gpt(), ByteCodec()
    exact = evaluate(model, codec, DOCUMENTS).nats
    autocast = torch.autocast("cpu", dtype=torch.bfloat16)
    assert evaluate(model, codec, DOCUMENTS, autocast=autocast).nats == pytest.approx(exact, rel=0.01)
    assert next_token_loss(torch.zeros(1, 2, 5, dtype=torch.bfloat16), torch.zeros(1, 2, dtype=torch.int64)).dtype == (
        torch.float32
    )


def test_every_module_keeps_its_mode() -> None:
    model = small_gpt().train()
    model.blocks[0].eval()
    evaluate(model, ByteCodec(), [b"abc"])
    assert model.training
    assert not model.blocks[0].training
    assert model.head.training


def test_a_score_survives_json() -> None:
    result = evaluate(UniformModel(257, context_length=8), ByteCodec(), DOCUMENTS)
    assert Evaluation(**json.loads(json.dumps(result.to_json()))) == result


def test_progress_counts_windows() -> None:
    seen: list[tuple[int, int]] = []
    model = UniformModel(257, context_length=8)
    evaluate(model, ByteCodec(), [b"x" * 23, b"", b"y"], stride=8, batch_size=2, progress=lambda *at: seen.append(at))
    assert seen == [(2, 5), (4, 5), (5, 5)]


def test_bad_requests_are_named() -> None:
    model = UniformModel(257, context_length=8)
    for stride in (0, 9, -1):
        with pytest.raises(ConfigError, match=r"stride must be in 1 \.\. 8"):
            evaluate(model, ByteCodec(), [b"abc"], stride=stride)
    with pytest.raises(ConfigError, match="batch_size"):
        evaluate(model, ByteCodec(), [b"abc"], batch_size=0)
    for nothing in ([], [b""], [b"", b""]):
        with pytest.raises(DataError, match="no bytes"):
            evaluate(model, ByteCodec(), nothing)
    with pytest.raises(DataError, match="at least one byte"):
        bits_per_byte(1.0, 0)


def test_another_codecs_model_is_refused() -> None:
    with pytest.raises(MismatchError, match=r"vocab_size is 66, but codec byte .* need 257; use the codec"):
        evaluate(UniformModel(66, context_length=8), ByteCodec(), [b"abc"])


def test_a_codec_that_loses_bytes_is_refused() -> None:
    class Forgetful(ByteCodec):
        def encode(self, data: bytes) -> np.ndarray:
            return super().encode(data[:-1])

    with pytest.raises(DataError, match="document 1: codec byte accounts for 2 of the 3 bytes"):
        evaluate(UniformModel(257, context_length=8), Forgetful(), [b"", b"abc"])


def test_a_loss_that_is_not_finite_is_no_score() -> None:
    class Overflowing(UniformModel):
        def forward(self, tokens: Tensor) -> Tensor:
            return super().forward(tokens).masked_fill((tokens == ord("!"))[..., None], float("nan"))

    model = Overflowing(257, context_length=8)
    assert evaluate(model, ByteCodec(), [b"fine"]).num_bytes == 4
    with pytest.raises(DataError, match="loss on document 1 is not finite"):
        evaluate(model, ByteCodec(), [b"fine", b"oh! no", b"so!"])


# --- FLOPs -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("preset", [GPTConfig.workshop, GPTConfig.modern])
@pytest.mark.parametrize("tied_head", [False, True])
def test_counted_flops_are_those_torch_counts(preset: type, tied_head: bool) -> None:
    """Plain attention at full context, forward and backward: equal, with nothing to explain away.

    The first layer's input gradient, which a model on raw inputs would save, is needed here for the
    embedding.
    """
    config = preset(
        vocab_size=97,
        context_length=16,
        num_layers=3,
        num_heads=2,
        width=32,
        tied_head=tied_head,
    )
    model = GPT(config, Kernels("plain"))
    flops = model.flops()
    assert flops == count_flops(model)
    tokens = torch.randint(97, (5, 16))
    with FlopCounterMode(display=False) as forward:
        loss = next_token_loss(model(tokens), tokens)
    with FlopCounterMode(display=False) as backward:
        loss.backward()
    assert forward.get_total_flops() == flops.forward_per_token * 5 * 16
    assert backward.get_total_flops() == 2 * forward.get_total_flops()
    assert forward.get_total_flops() + backward.get_total_flops() == flops.training_per_token * 5 * 16


def test_flops_of_the_workshop_model_by_formula() -> None:
    """2 x weights (head too) + 4 x layers x width x window: 71 million a trained token."""
    model = GPT(GPTConfig.workshop(vocab_size=66))
    flops = count_flops(model)
    attention = 4 * 6 * 384 * 256
    assert flops.forward_per_token == 2 * (6 * 12 * 384 * 384 + 66 * 384) + attention
    assert flops.training_per_token == 3 * flops.forward_per_token
    assert flops.training_per_token == pytest.approx(71e6, rel=0.01)
    assert flops.by_module["head"] == 2 * 66 * 384
    assert flops.by_module["trunk.blocks.5.attention"] == 4 * 384 * 256


def test_a_matrix_of_an_unknown_module_is_refused() -> None:
    class Hidden(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.matrix = nn.Parameter(torch.zeros(3, 3))

    with pytest.raises(ConfigError, match=r"cannot count the FLOPs of 1 \(Hidden\)"):
        count_flops(nn.Sequential(nn.Linear(3, 3), Hidden()))
