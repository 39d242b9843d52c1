"""Decoding: what a stepper predicts is what an evaluation with the same stride charges, with a cache or without."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from fastcompress.codec import ByteCodec, ChatCodec, Codec, EqualInfoCodec, LZPCodec, codec_from_spec
from fastcompress.data import TokenRows
from fastcompress.equal_info import Codebook
from fastcompress.errors import ConfigError
from fastcompress.evaluation import event_nats
from fastcompress.models import GPT, Cache, GPTConfig, LanguageModel, NextTokenModel
from fastcompress.models.trunk import Context

CODEC = ByteCodec()
TEXT = b"a text that is longer than the context of the model"
PRESETS = {"workshop": GPTConfig.workshop, "modern": GPTConfig.modern}


class Uncached(GPT):
    """The same model, which reads its window anew for each symbol."""

    def new_cache(self, lanes: int) -> Cache | None:
        return None

    def next_logits(self, tokens: Tensor, last: Tensor, cache: Cache | None, positions: Tensor | None) -> Tensor:
        return NextTokenModel.next_logits(self, tokens, last, cache, positions)


def make_gpt(preset: str, kind: type[GPT] = GPT) -> GPT:
    torch.manual_seed(2)
    model = kind(PRESETS[preset](vocab_size=257, context_length=8, num_layers=2, num_heads=2, width=16))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.4)
    return model


def stepwise_nats(model: LanguageModel, codec: Codec, documents: list[bytes], stride: int | None) -> list[list[float]]:
    """What each id of each document costs, all documents growing together."""
    stepper = model.stepper(codec, len(documents), stride)
    stepper.begin([b""] * len(documents))
    sequences = [[*codec.encode(document).tolist(), codec.vocab_size] for document in documents]
    nats: list[list[float]] = [[] for _ in documents]
    pieces = [b""] * len(documents)
    for step in range(max(map(len, sequences))):
        log_p = stepper.weights().double().log_softmax(-1)  # [lanes, V]
        symbols = [sequence[min(step, len(sequence) - 1)] for sequence in sequences]
        for lane, symbol in enumerate(symbols):
            if step < len(sequences[lane]):
                nats[lane].append(-float(log_p[lane, symbol]))
        pieces = [piece + new for piece, new in zip(pieces, stepper.push(symbols), strict=True)]
    assert pieces == documents
    assert stepper.done == [True] * len(documents)
    return nats


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("stride", [1, 3, 4, 8])
def test_stepping_costs_what_scoring_costs(preset: str, stride: int) -> None:
    """Lanes of unequal lengths, one of which outgrows the context again and again."""
    model, documents = make_gpt(preset), [TEXT, b"", b"short"]
    scored = event_nats(model, TokenRows(CODEC, 8), documents, stride=stride, batch_size=2)
    for kind in (GPT, Uncached):
        stepped = stepwise_nats(make_gpt(preset, kind), CODEC, documents, stride)
        for costs, expected in zip(stepped, scored, strict=True):
            assert costs == pytest.approx(expected.tolist(), rel=1e-3, abs=1e-3)


@pytest.mark.parametrize("preset", PRESETS)
def test_cached_logits_are_the_uncached_ones(preset: str) -> None:
    prompts = [b"one", b"a longer prompt than the context", b""]
    steppers = [make_gpt(preset, kind).stepper(CODEC, 3) for kind in (GPT, Uncached)]
    for stepper in steppers:
        stepper.begin(prompts)
    for step in range(20):
        cached, uncached = (stepper.weights() for stepper in steppers)
        torch.testing.assert_close(cached, uncached, rtol=1e-3, atol=1e-3)
        symbols = [(7 * step + lane) % 256 for lane in range(3)]
        assert steppers[0].push(symbols) == steppers[1].push(symbols) == [bytes([symbol]) for symbol in symbols]
        if step % 5 == 0:  # two ids at once: the cache is one behind
            assert steppers[0].push(symbols) == steppers[1].push(symbols)


def test_a_cached_step_reads_one_position() -> None:
    model, shapes = make_gpt("modern"), []
    model.trunk.register_forward_pre_hook(lambda _, inputs: shapes.append(tuple(inputs[0].shape[:2])))
    stepper = model.stepper(CODEC, 2)
    stepper.begin([b"abc", b"de"])
    for _ in range(7):
        stepper.push([int(weights.argmax()) % 256 for weights in stepper.weights()])
    # At 9 ids the window of the first lane moves on by 4, and a step later that of the second.
    assert shapes == [(2, 4), (2, 1), (2, 1), (2, 1), (2, 1), (2, 8), (2, 6)]


def test_documents_in_one_row_do_not_see_each_other() -> None:
    """The mask and positions that packing needs: two documents in a row cost what they cost alone."""
    model = make_gpt("workshop").eval()
    ids = torch.randint(257, (1, 8))
    packed = Context(ids, torch.tensor([[0, 1, 2, 0, 1, 2, 3, 4]]), torch.tensor([[0, 0, 0, 1, 1, 1, 1, 1]]))
    hidden = model.hidden(packed)
    alone = torch.cat([model.hidden(Context(ids[:, :3])), model.hidden(Context(ids[:, 3:]))], dim=1)
    torch.testing.assert_close(hidden, alone, rtol=1e-4, atol=1e-4)


def test_bad_requests_are_named() -> None:
    model = make_gpt("modern")
    with pytest.raises(ConfigError, match=r"stride must be in 1 \.\. 8"):
        model.stepper(CODEC, stride=9)
    with pytest.raises(ConfigError, match="lanes is 0"):
        model.stepper(CODEC, lanes=0)
    with pytest.raises(ConfigError, match="1 prompts were given for 2 lanes"):
        model.stepper(CODEC, lanes=2).begin([b"a"])


class Silent(NextTokenModel):
    """A model of any vocabulary that predicts nothing."""

    context_length = 8

    def __init__(self, codec: Codec) -> None:
        super().__init__()
        self.vocab_size = codec.vocab_size + 1


BOOK = Codebook.train(TEXT * 30, bits=16)
STREAMED: dict[str, Codec] = {
    "byte": CODEC, "chat": ChatCodec(CODEC), "equal-info": EqualInfoCodec(BOOK), "lzp": LZPCodec(),
    "halves": EqualInfoCodec(BOOK, token_bits=8), "buckets": codec_from_spec("lz77-buckets"),
}  # fmt: skip


@pytest.mark.parametrize("name", STREAMED)
def test_pushed_ids_give_the_bytes_of_decoding_all(name: str) -> None:
    codec = STREAMED[name]
    ids = codec.encode(TEXT * 3).tolist()
    prompt, rest = ids[:9], ids[9:]
    stepper = Silent(codec).stepper(codec, 2)
    stepper.begin_tokens([[codec.vocab_size, *prompt], [codec.vocab_size]])  # type: ignore[attr-defined]
    known = [codec.decode(prompt), b""]
    for number, (one, other) in enumerate(zip(rest, ids, strict=False), start=1):
        found = stepper.push([one, other])
        whole = [codec.decode(ids[: 9 + number]), codec.decode(ids[:number])]
        assert found == [data[len(before) :] for data, before in zip(whole, known, strict=True)]
        known = whole
    assert stepper.push([codec.vocab_size] * 2) == [b"", b""]
    assert known[0] == TEXT * 3


def test_decoding_a_long_text_takes_linear_time(monkeypatch: pytest.MonkeyPatch) -> None:
    decoded = 0

    def counted(self: ByteCodec, tokens: Any) -> bytes:
        nonlocal decoded
        decoded += len(tokens)
        return bytes(np.asarray(tokens, np.uint8))

    monkeypatch.setattr(ByteCodec, "decode", counted)
    stepper = Silent(CODEC).stepper(CODEC)
    stepper.begin([TEXT])
    for symbol in TEXT * 20:
        stepper.push([symbol])
    assert decoded == len(TEXT) * 21
