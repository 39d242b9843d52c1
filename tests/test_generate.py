"""Generation: what is drawn, when it stops, and that text appears only in whole characters."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from fastcompress.codec import ByteCodec, CharCodec
from fastcompress.errors import ConfigError, DataError, MismatchError
from fastcompress.evaluation.generate import Sampler, generate, generate_batch, in_order
from fastcompress.models.gpt import GPT, GPTConfig
from fastcompress.models.tokens import NextTokenModel

END = 256


class ScriptedModel(NextTokenModel):
    """Predicts a fixed sequence of bytes after whatever the prompt was, then the end of document."""

    vocab_size, context_length = 257, 1000

    def __init__(self, script: bytes, prompt: bytes = b"") -> None:
        super().__init__()
        self.script = [*script, END]
        self.num_given = 1 + len(prompt)
        self.lengths: list[int] = []

    def forward(self, tokens: Tensor) -> Tensor:
        self.lengths.append(tokens.size(1))
        logits = torch.zeros(*tokens.shape, 257)
        logits[:, -1, self.script[tokens.size(1) - self.num_given]] = 100.0
        return logits


def small_gpt(context_length: int = 8) -> GPT:
    torch.manual_seed(3)
    model = GPT(GPTConfig.modern(vocab_size=257, context_length=context_length, num_layers=1, num_heads=2, width=16))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.5)
    return model


def test_text_streams_in_whole_characters() -> None:
    text = "a é 日本 😀!"
    pieces = list(generate(ScriptedModel(text.encode()), ByteCodec(), b"", max_tokens=100))
    assert pieces == list(text)


def test_a_character_the_prompt_began_is_completed() -> None:
    prompt, rest = "x 日".encode()[:-1], "日".encode()[-1:] + b"!"
    pieces = list(generate(ScriptedModel(rest, prompt), ByteCodec(), prompt, max_tokens=9))
    assert pieces == ["日", "!"]


@pytest.mark.parametrize("data", [b"ab\xff\xfec", b"\xe6\x97", b"ok\xf0\x9f\x98", b"\xc3(", b"\x80"])
def test_invalid_bytes_show_as_replacement_characters(data: bytes) -> None:
    pieces = list(generate(ScriptedModel(data), ByteCodec(), b"", max_tokens=20))
    assert "".join(pieces) == data.decode("utf-8", "replace")
    assert all(pieces)


def test_it_stops_at_the_end_of_document_or_at_max_tokens() -> None:
    model = ScriptedModel(b"hello")
    assert "".join(generate(model, ByteCodec(), b"", max_tokens=100)) == "hello"
    assert len(model.lengths) == 6
    assert "".join(generate(ScriptedModel(b"hello"), ByteCodec(), b"", max_tokens=3)) == "hel"
    assert list(generate(ScriptedModel(b"hello"), ByteCodec(), b"", max_tokens=0)) == []
    assert list(generate(ScriptedModel(b"", b"\xe6"), ByteCodec(), b"\xe6", max_tokens=5)) == []


def test_an_empty_prompt_begins_a_document() -> None:
    shown: list[list[int]] = []

    class Spy(ScriptedModel):
        def forward(self, tokens: Tensor) -> Tensor:
            shown.append(tokens[0].tolist())
            return super().forward(tokens)

    list(generate(Spy(b"hi"), ByteCodec(), b"", max_tokens=5))
    assert shown == [[END], [END, ord("h")], [END, ord("h"), ord("i")]]


def test_the_window_slides_as_in_evaluations() -> None:
    """Context 8, stride 4: the ids of a window begin at the smallest multiple of 4 that leaves 8 or fewer."""
    shown: list[list[int]] = []

    class Spy(ScriptedModel):
        context_length = 8

        def forward(self, tokens: Tensor) -> Tensor:
            shown.append(tokens[0].tolist())
            logits = torch.zeros(*tokens.shape, 257)
            logits[:, -1, ord("a") + len(shown)] = 100.0
            return logits

    prompt = b"a prompt that is longer than the context"
    text = "".join(generate(Spy(b""), ByteCodec(), prompt, max_tokens=12))
    sequence = [END, *prompt, *text.encode()]
    assert len(text) == len(shown) == 12
    for number, window in enumerate(shown):
        end = 1 + len(prompt) + number
        begin = next(begin for begin in range(0, end, 4) if end - begin <= 8)
        assert window == sequence[begin:end]


def test_characters_of_an_alphabet() -> None:
    codec = CharCodec(["a", "日"])

    class Cycle(NextTokenModel):
        vocab_size, context_length = 3, 4

        def forward(self, tokens: Tensor) -> Tensor:
            return 50.0 * torch.nn.functional.one_hot((tokens + 1) % 3, 3).float()

    assert list(generate(Cycle(), codec, b"", max_tokens=9)) == ["a", "日"]
    with pytest.raises(DataError, match="'b'"):
        generate(Cycle(), codec, b"ab", max_tokens=9)


def test_a_seed_decides_and_global_randomness_is_left_alone() -> None:
    model = small_gpt()

    def sample(seed: int) -> str:
        return "".join(generate(model, ByteCodec(), b"x", max_tokens=30, seed=seed))

    torch.manual_seed(5)
    before = torch.get_rng_state()
    first = sample(1)
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(6)
    assert sample(1) == first
    assert sample(2) != first


def test_nothing_leaks_between_two_pieces() -> None:
    """The caller's grad mode and the model's mode are its own while the generator waits."""
    model = small_gpt().train()
    pieces = generate(model, ByteCodec(), b"x", max_tokens=30, seed=1)
    next(pieces)
    assert model.training
    assert not torch.is_inference_mode_enabled()
    assert torch.is_grad_enabled()


# --- Sampling --------------------------------------------------------------------------------------------

LOGITS = torch.tensor([0.0, 3.0, 1.0, 2.0, -1.0])


def draws(num: int = 4000, **settings: float | int | None) -> Counter[int]:
    sampler = Sampler(**{"temperature": 1.0, "top_k": None, "top_p": None, "seed": 0, **settings})  # type: ignore[arg-type]
    return Counter(sampler.draw(LOGITS) for _ in range(num))


@pytest.mark.parametrize("temperature", [0.5, 1.0, 3.0])
def test_temperature_divides_the_logits(temperature: float) -> None:
    counts = draws(temperature=temperature)
    expected = (LOGITS / temperature).softmax(dim=0)
    for token, probability in enumerate(expected.tolist()):
        assert counts[token] / 4000 == pytest.approx(probability, abs=4 * (probability / 4000) ** 0.5)


def test_zero_temperature_takes_the_likeliest_and_the_lowest_id_on_ties() -> None:
    assert draws(50, temperature=0.0) == {1: 50}
    sampler = Sampler(temperature=0.0, top_k=None, top_p=None, seed=0)
    assert sampler.draw(torch.tensor([1.0, 2.0, 2.0])) == 1
    assert draws(50, temperature=1e-30) == {1: 50}


def test_top_k_keeps_k() -> None:
    assert draws(50, top_k=1) == {1: 50}
    counts = draws(top_k=2)
    assert set(counts) == {1, 3}
    assert counts[1] / 4000 == pytest.approx(float(torch.sigmoid(torch.tensor(1.0))), abs=0.03)
    assert set(draws(top_k=99)) == {0, 1, 2, 3, 4}


def test_an_infinite_temperature_draws_all_that_are_possible_alike() -> None:
    sampler = Sampler(temperature=float("inf"), seed=1)
    counts = Counter(sampler.draw(torch.tensor([0.0, float("-inf"), 9.0])) for _ in range(400))
    assert set(counts) == {0, 2}
    assert counts[0] == pytest.approx(200, abs=60)


def test_top_p_keeps_the_fewest_that_reach_p() -> None:
    """Probabilities, in order: 0.636, 0.234, 0.086, 0.032, 0.012."""
    assert set(draws(top_p=0.01)) == {1}
    assert set(draws(top_p=0.63)) == {1}
    assert set(draws(top_p=0.65)) == {1, 3}
    assert set(draws(top_p=0.9)) == {1, 3, 2}
    assert set(draws(top_p=1.0)) == {0, 1, 2, 3, 4}
    assert set(draws(top_k=2, top_p=0.9)) == {1, 3}


@pytest.mark.parametrize(("top_p", "kept"), [(0.25, {0}), (0.5, {0, 1}), (0.75, {0, 1, 2}), (1.0, {0, 1, 2, 3})])
def test_top_p_stops_where_p_is_reached_exactly(top_p: float, kept: set[int]) -> None:
    """Four equal logits have probability 1/4 each, sums of which are exact in float32."""
    sampler = Sampler(temperature=1.0, top_k=None, top_p=top_p, seed=0)
    assert {sampler.draw(torch.zeros(4)) for _ in range(200)} == kept


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"temperature": -0.1}, "temperature"),
        ({"temperature": float("nan")}, "temperature"),
        ({"top_k": 0}, "top_k"),
        ({"top_p": 0.0}, "top_p"),
        ({"top_p": 1.1}, "top_p"),
        ({"max_tokens": -1}, "max_tokens"),
        ({"seed": 1 << 70}, "seed"),
        ({"stop": "ab"}, "stop is 'ab'; it must be a list"),
    ],
)
def test_a_bad_setting_is_named_at_once(setting: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        generate(small_gpt(), ByteCodec(), b"", **{"max_tokens": 1, **setting})


@pytest.mark.parametrize(
    "setting",
    [{"max_tokens": 2.5}, {"temperature": "1"}, {"temperature": True}, {"top_k": 1.5}, {"seed": 1.5}],
    ids=str,
)
def test_a_setting_of_a_wrong_type_is_named_at_once(setting: dict[str, Any]) -> None:
    (name,) = setting
    with pytest.raises(TypeError, match=f"{name} is .*; it must be a"):
        generate(small_gpt(), ByteCodec(), b"", **{"max_tokens": 1, **setting})
    prompt: Any = "a"
    with pytest.raises(TypeError, match="a prompt is of type str; it must be bytes"):
        generate(small_gpt(), ByteCodec(), prompt, max_tokens=1)


def test_settings_may_be_numbers_of_numpy() -> None:
    numbers: dict[str, Any] = {
        "max_tokens": np.int64(5),
        "seed": np.uint8(1),
        "temperature": np.float32(0.5),
        "top_k": np.int32(3),
    }
    plain: dict[str, Any] = {"max_tokens": 5, "seed": 1, "temperature": 0.5, "top_k": 3}
    model = small_gpt()
    texts = ["".join(generate(model, ByteCodec(), b"a", **settings)) for settings in (numbers, plain)]
    assert texts[0] == texts[1]


def test_another_codecs_model_is_refused() -> None:
    with pytest.raises(MismatchError, match="vocab_size is 257, but codec char-2 and the end of document need 3"):
        generate(small_gpt(), CharCodec(["a", "b"]), b"", max_tokens=1)


# --- Stop strings and several prompts ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "stop", "shown"),
    [
        ("one END two", ["END"], "one "),
        ("one EN", ["END"], "one EN"),  # held back, then shown: it was no stop string
        ("aab", ["ab"], "a"),
        ("aaab!", ["aab", "b!"], "a"),
        ("日本 stop", ["本"], "日"),
        ("first\n\nsecond", ["\n\n", "second"], "first"),
        ("x", ["x"], ""),
    ],
)
def test_text_ends_before_a_stop_string(text: str, stop: list[str], shown: str) -> None:
    pieces = list(generate(ScriptedModel(text.encode()), ByteCodec(), b"", max_tokens=100, stop=stop))
    assert "".join(pieces) == shown
    assert all(pieces)


def test_a_stop_string_ends_the_drawing_and_may_not_be_empty() -> None:
    model = ScriptedModel(b"abcdef")
    assert "".join(generate(model, ByteCodec(), b"", max_tokens=100, stop=["c"])) == "ab"
    assert len(model.lengths) == 3
    with pytest.raises(ConfigError, match=r"stop is \[''\]; it must be"):
        generate(model, ByteCodec(), b"", max_tokens=1, stop=[""])


def test_prompts_together_are_continued_as_alone() -> None:
    """Lanes of unequal lengths, beyond the context, one of which stops early."""
    model, prompts = small_gpt(), [b"one", b"", b"a prompt that is longer than the context", "日".encode()[:-1]]
    settings = {"max_tokens": 25, "temperature": 0.7, "top_k": 9, "stop": ["a"]}
    together = [""] * len(prompts)
    for lane, text in generate_batch(model, ByteCodec(), prompts, seed=4, **settings):  # type: ignore[arg-type]
        assert text
        together[lane] += text
    alone = ["".join(generate(model, ByteCodec(), prompt, seed=4 + lane, **settings))  # type: ignore[arg-type]
             for lane, prompt in enumerate(prompts)]  # fmt: skip
    assert together == alone
    assert len(set(together)) == len(prompts)
    assert list(generate_batch(model, ByteCodec(), [], max_tokens=3)) == []


def test_pieces_in_the_order_of_lanes() -> None:
    pieces = [(1, "b"), (0, "a"), (2, "c"), (1, "B"), (0, "A")]
    assert list(in_order(iter(pieces), 4)) == [(0, "a"), (0, "A"), (1, "bB"), (2, "c")]
