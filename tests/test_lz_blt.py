"""LZ-BLT: fields and legal tokens by definition, no byte of the future, exact parses, three ways to continue a text."""

from __future__ import annotations

import dataclasses
import itertools
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fastcompress import lz77
from fastcompress.codec import ByteCodec, LZ77Codec
from fastcompress.data import TokenDataset
from fastcompress.data.lz_buckets import Buckets
from fastcompress.data.lz_fields import END, Choices, LZFields
from fastcompress.data.lz_rows import TARGET_LEGAL, LZRows
from fastcompress.errors import ConfigError, MismatchError
from fastcompress.evaluation import evaluate, generate
from fastcompress.evaluation.drift import pointer_drift, unknown_words
from fastcompress.evaluation.generate import Sampler
from fastcompress.evaluation.receipts import make_receipt
from fastcompress.lz77 import Token
from fastcompress.models import Kernels, make_model_config
from fastcompress.models.lz_blt import LZBLT, LZBLTConfig
from fastcompress.models.lz_blt_decoding import LaneTokens, LZStepper
from fastcompress.models.threads import limited_threads
from fastcompress.training import TrainConfig, load_run, train
from fastcompress.training.selfcheck import redraw_weights, self_check

sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))
import recompression

PARAMS = lz77.Params(window=40, min_length=3, max_length=14, depth=4)
CODEC = LZ77Codec(PARAMS)
SMALL = {
    "kind": "lz-blt", "context_length": 24, "width": 32, "num_layers": 1, "num_heads": 2, "local_width": 16,
    "encoder_layers": 1, "decoder_layers": 1, "local_heads": 2, "local_window": 6, "cross_attention": True,
}  # fmt: skip
GENERATIONS = ("sample", "recompress", "legal")
PROMPTS = [b"a be", b"to be or not to be, that is the question: a", b""]
documents = st.one_of(
    st.text("ab", max_size=40).map(str.encode),
    st.lists(st.sampled_from([b"the ", b"they", b" ", b"abcabc", b"a"]), max_size=14).map(b"".join),
    st.binary(max_size=20),
)


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """Models this small are slower on several."""
    with limited_threads(1):
        yield


def make(codec: LZ77Codec = CODEC, **changes: object) -> LZBLT:
    """A model in which every path is active."""
    torch.manual_seed(0)
    model = make_model_config({**SMALL, **changes}, codec).build()
    assert isinstance(model, LZBLT)
    redraw_weights(model)
    with torch.no_grad():
        model.start.normal_()
    return model.eval()


def first_row(rows: LZRows, document: bytes) -> dict[str, np.ndarray]:  # type: ignore[type-arg]
    return next(iter(rows.scoring_rows(document, rows.context_length)))


def costs(model: LZBLT, rows: LZRows, texts: list[bytes]) -> torch.Tensor:
    """The nats of the first events of documents, float32[documents, S]."""
    batch = rows.stack([first_row(rows, text) for text in texts])
    with torch.no_grad():
        return model.nats({name: torch.from_numpy(column) for name, column in batch.items()})


def states_of(model: LZBLT, rows: LZRows, texts: list[bytes]) -> torch.Tensor:
    """What the tokens of documents are predicted from, float32[documents, S, d]."""
    with torch.no_grad():
        return model(torch.from_numpy(rows.stack([first_row(rows, text) for text in texts])["input"]))


@pytest.mark.parametrize("count", [1, 7, 8, 9, 40, 255, 1000])
def test_numbers_are_buckets_and_digits(count: int) -> None:
    """And a symbol stands for the numbers that have it, given the symbols before."""
    buckets = Buckets(count)
    numbers = np.arange(count)
    symbols = buckets.symbols(numbers)
    assert buckets.numbers(symbols).tolist() == numbers.tolist()
    assert (symbols.max(0) < buckets.sizes).all()
    for number in {0, count // 2, count - 1}:
        for field, size in enumerate(buckets.sizes):
            begin, end = buckets.ranges(symbols[[number]], field)
            same = (symbols[:, :field] == symbols[number, :field]).all(1)
            for symbol in range(size):
                expected = numbers[same & (symbols[:, field] == symbol)].tolist()
                assert list(range(begin[0, symbol], end[0, symbol])) == expected


def paths(fields: LZFields, choices_of: object) -> set[Token]:
    """All tokens that legal symbols spell."""
    found: set[Token] = set()
    unfinished: list[list[int]] = [[]]
    while unfinished:
        prefix = unfinished.pop()
        if prefix[:1] == [END]:
            continue
        if len(prefix) == fields.num_fields:
            found.add(fields.token(prefix))
            continue
        row = np.array([prefix + [0] * (fields.num_fields - len(prefix))])
        choices = choices_of(prefix)  # type: ignore[operator]
        symbols = np.flatnonzero(fields.legal(row, len(prefix), choices)[0]).tolist()
        unfinished += [[*prefix, symbol] for symbol in symbols]
    return found


@settings(max_examples=12, deadline=None)
@given(st.text("ab", max_size=14).map(str.encode), st.sampled_from([1, 2, 3]))
def test_legal_symbols_spell_the_legal_tokens(text: bytes, min_length: int) -> None:
    """Of greedy parses by `is_legal`, and without masks all that can be decoded."""
    codec = LZ77Codec(lz77.Params(window=9, min_length=min_length, max_length=6, depth=2))
    rows = LZRows(codec, 8, "fixed", 2, 2, canonical=True)
    parser = lz77.IncrementalParser(codec.params)
    parser.append(text)
    matches = [Token.match(d, n) for d, n in itertools.product(range(1, 10), range(min_length, 7))]
    tokens = [Token.literal(byte) for byte in range(256)] + matches

    def canonical(prefix: list[int]) -> Choices:
        choices = rows.choices(parser)
        if len(prefix) >= rows.fields.length_field and prefix[0] == lz77.MATCH:
            choices = rows.with_distance(choices, parser, rows.fields.distance(prefix))
        return choices

    assert paths(rows.fields, canonical) == {token for token in tokens if parser.is_legal(token)}
    room = np.array([len(text)])
    possible = {token for token in tokens if token.kind == lz77.LITERAL or token.value <= len(text)}
    assert paths(rows.fields, lambda _: rows.fields.any_match(room)) == possible


@pytest.mark.parametrize("canonical", [False, True])
def test_training_rows_are_windows_of_documents(canonical: bool) -> None:
    """Also where a row begins within a document: what is legal depends on all that stands before."""
    texts = [b"to be or not to be, to be", b"abcabcabcabc", b"", b"that is the question, that is it" * 2]
    rows = LZRows(CODEC, 9, "match", 1, 4, canonical=canonical)
    data = TokenDataset.from_documents(texts, CODEC)
    whole = dataclasses.replace(rows, context_length=200)
    parts = [first_row(whole, text) for text in texts]
    expected = {name: np.concatenate([part[name] for part in parts]) for name in ("input", "target", TARGET_LEGAL)}
    ids = data.read(0, data.num_tokens)
    start = int(np.flatnonzero(ids == rows.end_of_document)[0]) + 1  # documents follow each other, each with one end
    for begin in range(data.num_tokens - 9):
        row = rows.training_row(data, begin)
        assert {name: (column.dtype, column.shape) for name, column in row.items()} == rows.columns
        for name in ("input", "target", TARGET_LEGAL):
            place = begin + 1 - (start if ids[0] == rows.end_of_document else 0)
            if place >= 0 and place + 9 <= len(expected[name]):
                np.testing.assert_array_equal(row[name], expected[name][place : place + 9])


@pytest.mark.slow
@pytest.mark.parametrize("grouping", ["fixed", "match"])
@pytest.mark.parametrize("canonical", [False, True])
def test_later_bytes_change_no_cost_of_stable_tokens(grouping: str, canonical: bool) -> None:
    """Raw bytes after the first n are changed, and parsed anew: tokens that are stable after n bytes cost the same."""
    model = make(grouping=grouping, canonical=canonical)
    rows = model.config.rows(CODEC)
    text = b"to be or not to be, to be, that is"
    nats, states = costs(model, rows, [text]), states_of(model, rows, [text])
    for num_bytes in (0, 3, 9, 15, 18, 22, 30):
        num_stable = int(lz77.stable_counts(text, PARAMS)[num_bytes])
        changed = [text[:num_bytes] + suffix for suffix in (b"", b"x", b"e, to", b"or not")]
        after = costs(model, rows, changed)[:, :num_stable]
        torch.testing.assert_close(after, nats[:, :num_stable].expand_as(after), rtol=1e-5, atol=1e-5)
        after = states_of(model, rows, changed)[:, : num_stable + 1]  # and what the next token is predicted from
        torch.testing.assert_close(after, states[:, : num_stable + 1].expand_as(after), rtol=1e-5, atol=1e-5)
    assert not torch.allclose(nats[:, 3:5], costs(model, rows, [b"xx" + text[2:]])[:, 3:5], atol=1e-3)


@pytest.mark.slow
def test_probabilities_of_the_next_token_sum_to_one() -> None:
    """Over all tokens of greedy parses and the end, each from the cost of the text with that token."""
    codec = LZ77Codec(lz77.Params(window=12, min_length=2, max_length=6, depth=3))
    model = make(codec, canonical=True)
    rows = model.config.rows(codec)
    tokens = [Token.literal(byte) for byte in range(256)]
    tokens += [Token.match(distance, length) for distance in range(1, 13) for length in range(2, 7)]
    for context in (b"", b"abcabcabc", b"aaaaaaaaaa", b"abababcabab"):
        parser = lz77.IncrementalParser(codec.params)
        parser.append(context)
        texts = [context]
        for token in filter(parser.is_legal, tokens):
            fork = parser.fork()
            fork.push_token(token)
            texts.append(lz77.reconstruct(fork.tokens()))
        assert len(set(texts)) == len(texts) > 200
        event = len(parser.tokens())
        nats = costs(model, rows, texts)[:, event]
        assert float((-nats.double()).exp().sum()) == pytest.approx(1.0, abs=1e-5)


def beginnings(codec: LZ77Codec, text: bytes) -> list[list[Token]]:
    """The shortest sequences of tokens of greedy parses whose bytes begin with a text: each reaches its end at last."""
    params, found = codec.params, []
    matches = [
        Token.match(distance, length)
        for distance in range(1, (params.window or 0) + 1)
        for length in range(params.min_length, (params.max_length or 0) + 1)
    ]
    open_parsers = [lz77.IncrementalParser(params)]
    while open_parsers:
        parser = open_parsers.pop()
        at = parser.num_bytes
        if at >= len(text):
            found.append(list(parser.tokens()))
            continue
        for token in filter(parser.is_legal, [Token.literal(text[at]), *matches]):
            fork = parser.fork()
            fork.push_token(token)
            whole = lz77.reconstruct(fork.tokens())
            if whole[: len(text)] == text[: len(whole)]:
                open_parsers.append(fork)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("context", [b"", b"aaa", b"ababa", b"abcabcabc"])
def test_probabilities_of_the_next_byte_sum_to_one(context: bytes) -> None:
    """Of texts that begin with the context, those that go on with each byte and the one that ends make up the whole.

    A text begins with some bytes as often as with any of the sequences of tokens that reach their end first.
    """
    codec = LZ77Codec(lz77.Params(window=6, min_length=2, max_length=5, depth=3))
    model = make(codec, canonical=True)
    rows = model.config.rows(codec)

    def chance(texts: list[bytes]) -> torch.Tensor:
        """The probabilities that a text begins with each of some, float64[texts]."""
        sequences = [(number, tokens) for number, text in enumerate(texts) for tokens in beginnings(codec, text)]
        nats = costs(model, rows, [lz77.reconstruct(lz77.LZTokens.from_tokens(tokens)) for _, tokens in sequences])
        total = torch.zeros(len(texts), dtype=torch.float64)
        for (number, tokens), row in zip(sequences, nats.double(), strict=True):
            total[number] += (-row[: len(tokens)].sum()).exp()
        return total

    (whole,) = chance([context])
    follows = chance([context + bytes([byte]) for byte in range(256)]) / whole  # [256]
    num_tokens = len(lz77.parse(context, codec.params))
    end = (-costs(model, rows, [context])[0, : num_tokens + 1].double().sum()).exp() / whole
    assert follows.min() > 0
    assert float(follows.sum() + end) == pytest.approx(1.0, abs=1e-5)
    if len(context) > 3:  # copies are among the ways to go on
        assert len(beginnings(codec, context)) > 1


def test_a_patch_reaches_tokens_beyond_the_window() -> None:
    model = make(cross_attention=False)
    one, other = (torch.zeros(1, 24, model.fields.num_fields, dtype=torch.int64) for _ in range(2))
    other[0, 0, 1] = 5
    with torch.no_grad():
        assert not torch.allclose(model(one)[:, 20:], model(other)[:, 20:], atol=1e-4)


@pytest.mark.parametrize("changes", [{}, {"grouping": "match", "min_tokens": 1, "max_tokens": 5}])
def test_self_checks_pass(changes: dict[str, object]) -> None:
    config = make_model_config({**SMALL, **changes}, CODEC)
    model = config.build()
    self_check(model, TrainConfig(steps=1))
    size, roles = config.size(), model.parameter_roles()
    assert size.parameters == model.num_parameters()
    assert size.matrix_parameters == sum(p.numel() for n, p in model.named_parameters() if roles[n] == "matrix")
    assert roles["head.1.weight"] == "head"
    assert roles["embedding.tables.1.weight"] == "embedding"


def test_flops_are_those_that_run() -> None:
    """Plain attention over whole windows, which the counter of torch can see."""
    from torch.utils.flop_counter import FlopCounterMode

    model = make_model_config({**SMALL, "local_window": 24}, CODEC).build(Kernels("plain"))
    batch = model.random_batch(1, 24)
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        model.nats(batch)
    assert counter.get_total_flops() == model.flops().forward


class Uncached(LZBLT):
    def new_cache(self, lanes: int) -> None:  # type: ignore[override]
        return None


def drawn_together(steppers: list[LZStepper], num_symbols: int, compare: object = None) -> list[bytes]:
    """Draw from the first stepper and push to all; return the bytes of each lane."""
    samplers = [Sampler(seed=lane, temperature=0.7) for lane in range(steppers[0].lanes)]
    pieces = [b""] * steppers[0].lanes
    for _ in range(num_symbols):
        weights = [stepper.weights() for stepper in steppers]
        for other in weights[1:]:
            torch.testing.assert_close(weights[0], other, rtol=1e-4, atol=1e-4)
        ends = weights[0].size(1) == 3  # no document ends, so that lanes go on
        symbols = [
            sampler.draw(row[:END] if ends and row[:END].isfinite().any() else row)
            for sampler, row in zip(samplers, weights[0], strict=True)
        ]
        found = [stepper.push(symbols) for stepper in steppers]
        assert all(each == found[0] for each in found)
        pieces = [piece + new for piece, new in zip(pieces, found[0], strict=True)]
    return pieces


@pytest.mark.parametrize("generation", GENERATIONS)
@pytest.mark.parametrize("grouping", ["fixed", "match"])
def test_cached_decoding_is_the_uncached_one(generation: str, grouping: str) -> None:
    """Lanes of unequal lengths that outgrow the row, and contexts that change at their ends."""
    cached = make(grouping=grouping, min_tokens=2, max_tokens=5)
    uncached = Uncached(cached.config)
    uncached.load_state_dict(cached.state_dict())
    steppers = [model.eval().stepper(CODEC, 3, 7, generation) for model in (cached, uncached)]  # type: ignore[arg-type]
    for stepper in steppers:
        stepper.begin(PROMPTS)
    pieces = drawn_together(steppers, 26 * cached.fields.num_fields)
    texts = [prompt + piece for prompt, piece in zip(PROMPTS, pieces, strict=True)]
    for lane, text in enumerate(steppers[0].texts):
        assert bytes(text.text) == texts[lane]
        drift = pointer_drift(text.drawn, PROMPTS[lane], PARAMS)
        if generation == "sample":
            assert text.tokens == [*lz77.parse(PROMPTS[lane], PARAMS), *text.drawn]
        else:
            assert text.tokens == list(lz77.parse(texts[lane], PARAMS))
        assert (drift.share == 0) == (generation == "legal" or drift.num_pointers == 0)


tokens = st.one_of(
    st.sampled_from(b"ab").map(Token.literal), st.builds(Token.match, st.integers(1, 12), st.integers(2, 6))
)


@settings(max_examples=60, deadline=None)
@given(documents, st.lists(tokens, max_size=30), st.sampled_from(["greedy", "lazy"]), st.integers(1, 4))
def test_compressing_again_is_parsing_from_scratch(
    prompt: bytes, drawn: list[Token], parse: str, min_length: int
) -> None:
    codec = LZ77Codec(lz77.Params(window=12, min_length=min_length, max_length=9, depth=2, parse=parse))  # type: ignore[arg-type]
    lane = LaneTokens(LZRows(codec, 8, "fixed", 2, 2), prompt, "recompress")
    text = prompt
    for token in drawn:
        if token.value > len(text) and token.kind == lz77.MATCH:
            continue
        before, lane.num_kept = list(lane.tokens), len(lane.tokens)
        text += lane.push(token)
        assert bytes(lane.text) == text
        assert lane.tokens == list(lz77.parse(text, codec.params))
        expected = next((i for i, (a, b) in enumerate(zip(before, lane.tokens, strict=False)) if a != b), None)
        assert lane.num_kept == (min(len(before), len(lane.tokens)) if expected is None else expected)


def test_compressing_again_is_cheap() -> None:
    """At 16 kB of text. Parsing from scratch takes 200 times as long here, and 110 to 120 times in English text."""
    random = np.random.default_rng(0)
    words = [bytes(random.integers(97, 123, length).tolist()) for length in random.integers(2, 9, 600)]
    text = b" ".join(words[index] for index in random.zipf(1.3, 12000) % 600)
    pieces = recompression.pieces_after(text, 16384, 300)
    ways = (recompression.from_scratch, recompression.incremental)
    scratch, incremental = (min(way(text[:16384], pieces) for _ in range(5)) for way in ways)
    assert scratch > 50 * incremental


def test_a_context_that_changes_is_cut_back_exactly() -> None:
    """Against a new stepper that reads the text from its beginning, at a step at which four tokens become one."""
    codec = LZ77Codec(lz77.Params(window=64, min_length=4, max_length=20))
    model = make(codec)
    stepper = model.stepper(codec, 1, generation="recompress")
    stepper.begin([b"abcdefgh, "])
    stepper.weights()
    for byte in b"efgh":
        symbols = [lz77.LITERAL, byte] + [0] * (model.fields.num_fields - 2)
        for symbol in symbols:
            stepper.push([symbol])
        kept, number = stepper.texts[0].num_kept, len(stepper.texts[0].tokens)
        fresh = model.stepper(codec, 1)
        fresh.begin([bytes(stepper.texts[0].text)])
        torch.testing.assert_close(stepper.weights(), fresh.weights(), rtol=1e-4, atol=1e-4)
    assert (kept, number) == (10, 11)  # the match in place of the literals e, f, g; the last step read one token
    assert stepper.texts[0].tokens[-1] == Token.match(6, 4)


def test_ways_to_continue_are_the_same_for_a_seed() -> None:
    texts = {}
    for generation in GENERATIONS:
        model = make(generation=generation)
        made = ["".join(generate(model, CODEC, b"to be or", max_tokens=150, seed=seed)) for seed in (2, 2, 3)]
        assert made[0] == made[1] != made[2]
        texts[generation] = made[0]
    assert len(set(texts.values())) > 1


def test_a_symbol_that_is_not_legal_ends_a_document() -> None:
    stepper = make().stepper(CODEC, 2)
    stepper.begin([b"", b""])
    stepper.push([lz77.LITERAL, lz77.MATCH])  # there is nothing to copy
    assert stepper.done == [False, True]
    stepper.push([300, 0])
    assert stepper.done == [True, True]


@pytest.mark.parametrize("canonical", [False, True])
def test_receipts_are_what_is_claimed(canonical: bool) -> None:
    """Scores and steppers have the same probabilities, through windows and masks."""
    model = make(canonical=canonical, context_length=12)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(0.7)
    receipt = make_receipt(model, CODEC, [b"to be or not to be, to be", b"", b"aaaaaaaaaaab" * 5], name="m", lanes=2)
    assert abs(receipt.code_bytes - receipt.claimed_bits_per_byte * receipt.num_bytes / 8) < 1.5


def test_a_mask_makes_a_bound_exact_and_no_worse() -> None:
    model = make()
    text = [b"to be or not to be, to be that is the question"]
    bound = evaluate(model, CODEC, text)
    exact = evaluate(model, CODEC, text, rows=dataclasses.replace(model.config, canonical=True).rows(CODEC))
    assert (bound.is_exact, exact.is_exact) == (False, True)
    assert exact.nats < bound.nats


@pytest.mark.slow
def test_the_whole_way_of_a_run(tmp_path: Path) -> None:
    """It learns a document by heart, to under 0.05 bits per byte, resumes, is kept, scored and continues it."""
    document = b"She sells sea shells by the sea shore; the shells she sells are sea-shore shells."
    changes = {"context_length": 40, "local_window": 16, "cross_attention": False}
    config = make_model_config({**SMALL, **changes}, CODEC)
    data = TokenDataset.from_documents([document] * 8, CODEC)
    settings = TrainConfig(
        steps=140, batch_size=2, learning_rate=0.02, optimizer="adamw", num_evals=1, device="cpu", self_check=False
    )

    def stop(record: dict[str, object]) -> None:
        if record["step"] == 40:
            raise KeyboardInterrupt

    whole = train(config, CODEC, data, [document], settings, tmp_path / "whole", progress=False)
    with pytest.raises(KeyboardInterrupt):
        train(config, CODEC, data, [document], settings, tmp_path / "run", progress=False, on_metrics=stop)
    result = train(config, CODEC, data, [document], settings, tmp_path / "run", progress=False, resume=True)
    assert 0 < result.new_steps < 140
    assert result.best_bits_per_byte == whole.best_bits_per_byte < 0.05
    loaded = load_run(tmp_path / "run")
    assert loaded.model.config == config
    score = evaluate(loaded.model, CODEC, [document], batch_size=2)
    assert score.bits_per_byte < 0.05
    assert not score.is_exact
    text = "".join(generate(loaded.model, CODEC, document[:16], max_tokens=120, temperature=0.0))
    assert text
    assert document[16:].startswith(text.encode())
    assert json.loads((tmp_path / "run" / "config.json").read_text())["model"]["kind"] == "lz-blt"


def test_drift_is_counted() -> None:
    literals = [Token.literal(byte) for byte in b"abcdefg"]
    drift = pointer_drift([Token.match(7, 4), Token.match(7, 3), Token.match(3, 3)], b"abcdefg")
    assert (drift.num_pointers, drift.num_drifted) == (3, 3)  # the parser makes one match of 7, and literals
    assert pointer_drift([*literals, Token.match(7, 7)], b"").share == 0.0
    assert pointer_drift([], b"abc").share == 0.0
    assert unknown_words("the Kingdom the", "the King, the dom") == 0.5
    with pytest.raises(ConfigError, match="training_text has no words"):
        unknown_words("a", "...")


def test_bad_settings_are_refused() -> None:
    lazy = LZ77Codec(dataclasses.replace(PARAMS, parse="lazy"))
    for codec in (ByteCodec(), LZ77Codec(PARAMS, "buckets")):
        with pytest.raises(ConfigError, match="it must be lz77-fields, whose ids are whole LZ77 tokens"):
            make_model_config(SMALL, codec)
    with pytest.raises(ConfigError, match="grouping is 'words'; it must be one of fixed, match"):
        make_model_config({**SMALL, "grouping": "words"}, CODEC)
    with pytest.raises(ConfigError, match=r"model.min_tokens is 3; it must be at most model.max_tokens, 2"):
        make_model_config({**SMALL, "min_tokens": 3, "max_tokens": 2}, CODEC)
    with pytest.raises(ConfigError, match="parse is 'lazy'; it must be 'greedy'"):
        make_model_config({**SMALL, "canonical": True}, lazy)
    with pytest.raises(ConfigError, match="generation must be one of sample, recompress, legal"):
        make_model_config({**SMALL, "generation": "greedy"}, CODEC)
    with pytest.raises(ConfigError, match="parse is 'lazy'; it must be 'greedy'"):
        make(lazy).stepper(lazy, generation="legal")
    with pytest.raises(ConfigError, match=r"stride must be in 1 \.\. 24"):
        make().stepper(CODEC, 1, 25)
    with pytest.raises(MismatchError, match="use the codec that the model was trained with"):
        evaluate(make(), LZ77Codec(), [b"ab"])
    assert LZBLTConfig.from_json(make().config.to_json()) == make().config
