"""LZ77: parses against the definition, and back; incremental parsers as state machines; legality; hostile tokens."""

from __future__ import annotations

import json
import pickle
import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    precondition,
    rule,
)

from fastcompress import lz77
from fastcompress.errors import ConfigError, FormatError
from tests.reference import lz77 as oracle

VECTORS = Path(__file__).parent / "vectors" / "lz77.json"

params_strategy = st.builds(
    lambda window, min_length, extra, depth, parse: lz77.Params(
        window, min_length, None if extra is None else min_length + extra, depth, parse
    ),
    window=st.sampled_from([1, 3, 4, 50, None]),
    min_length=st.sampled_from([1, 2, 3, 4, 9]),
    extra=st.sampled_from([0, 1, 5, None]),
    depth=st.sampled_from([1, 2, 8, None]),
    parse=st.sampled_from(["greedy", "lazy"]),
)
texts = st.one_of(
    st.binary(max_size=60),
    st.text("ab", max_size=60).map(str.encode),
    st.lists(st.sampled_from([b"abc", b"abcd", b"b", b"aaaa", b"xyz"]), max_size=30).map(b"".join),
)


def settings_of(params: lz77.Params) -> oracle.Settings:
    return oracle.Settings(params.window, params.min_length, params.max_length, params.depth, params.parse == "lazy")


def rows(tokens: lz77.LZTokens) -> list[tuple[int, int, int]]:
    return [tuple(token) for token in tokens]


@given(texts, params_strategy)
def test_parse_is_the_defined_one_and_comes_back(data: bytes, params: lz77.Params) -> None:
    tokens = lz77.parse(data, params)
    assert rows(tokens) == oracle.parse(data, settings_of(params))
    assert lz77.reconstruct(tokens) == data == oracle.reconstruct(rows(tokens))
    assert tokens.num_bytes == len(data)


@given(texts, params_strategy, st.integers(1, 9))
def test_literal_runs_group_and_come_back(data: bytes, params: lz77.Params, max_run: int) -> None:
    tokens = lz77.parse(data, params)
    runs = lz77.literal_runs(tokens, max_run)
    assert runs.tokens() == tokens
    literal = runs.kind == lz77.LITERAL
    assert (runs.length[literal] <= max_run).all()
    spelled = b"".join(
        runs.literals[value : value + length].tobytes() if kind == lz77.LITERAL else b"?"
        for kind, value, length in zip(runs.kind, runs.value.tolist(), runs.length.tolist(), strict=True)
    )
    assert spelled == b"".join(bytes([v]) if k == lz77.LITERAL else b"?" for k, v, _ in rows(tokens))
    for i in np.flatnonzero(literal[1:] & literal[:-1]):  # only full runs are followed by another
        assert runs.length[i] == max_run


def test_parse_batch_is_parse_of_each_for_every_number_of_threads() -> None:
    rng = random.Random(1)
    data = [bytes(rng.choices(b"abc", k=rng.randrange(300))) for _ in range(50)] + [b"", "é".encode()]
    for num_threads in (1, 2, 7, None):
        tokens, offsets = lz77.parse_batch(data, num_threads=num_threads)
        for i, text in enumerate(data):
            assert tokens[int(offsets[i]) : int(offsets[i + 1])] == lz77.parse(text)
    tokens, offsets = lz77.parse_batch([])
    assert len(tokens) == 0
    assert offsets.tolist() == [0]


@given(texts, params_strategy)
def test_stable_counts_are_those_of_a_parser_byte_by_byte(data: bytes, params: lz77.Params) -> None:
    parser = lz77.IncrementalParser(params)
    expected = [parser.num_stable]
    for i in range(len(data)):
        parser.append(data[i : i + 1])
        expected.append(parser.num_stable)
    counts = lz77.stable_counts(data, params)
    assert counts.dtype == np.uint32
    assert counts.tolist() == expected
    both, offsets = lz77.stable_counts_batch([data, b"", data[:5]], params, num_threads=2)
    assert offsets.tolist() == [0, len(data) + 1, len(data) + 2, len(data) + 2 + min(5, len(data)) + 1]
    assert both.tolist() == [*expected, 0, *expected[:6]]


class Operations(RuleBasedStateMachine):
    """Any sequence of append, truncate, fork and push_token: always the parse of the bytes there are."""

    parsers = Bundle("parsers")

    @initialize(target=parsers, params=params_strategy)
    def begin(self, params: lz77.Params) -> tuple[lz77.IncrementalParser, bytearray]:
        self.all = [(lz77.IncrementalParser(params), bytearray())]
        return self.all[0]

    @rule(stream=parsers, data=st.one_of(st.text("ab", max_size=12).map(str.encode), st.binary(max_size=3)))
    def append(self, stream: tuple[lz77.IncrementalParser, bytearray], data: bytes) -> None:
        parser, text = stream
        before = rows(parser.tokens())[: parser.num_stable]
        if len(data) % 2:
            parser.append(data)
        else:
            num_kept, tail = parser.extend(data)
            assert num_kept == len(before)
            assert [*before, *tail] == rows(parser.tokens())
        text += data
        assert rows(parser.tokens())[: len(before)] == before
        assert parser.num_stable >= len(before)

    @rule(stream=parsers, fraction=st.floats(0, 1))
    def truncate(self, stream: tuple[lz77.IncrementalParser, bytearray], fraction: float) -> None:
        parser, text = stream
        del text[int(len(text) * fraction) :]
        parser.truncate(len(text))

    @rule(target=parsers, stream=parsers)
    def fork(self, stream: tuple[lz77.IncrementalParser, bytearray]) -> tuple[lz77.IncrementalParser, bytearray]:
        forked = stream[0].fork(), bytearray(stream[1])
        self.all.append(forked)
        return forked

    @precondition(lambda self: len(self.all) > 1)
    @rule(stream=consumes(parsers))
    def drop(self, stream: tuple[lz77.IncrementalParser, bytearray]) -> None:
        self.all = [other for other in self.all if other[0] is not stream[0]]

    @rule(stream=parsers, token=st.builds(lz77.Token, st.integers(0, 1), st.integers(0, 100), st.integers(0, 12)))
    def push_token(self, stream: tuple[lz77.IncrementalParser, bytearray], token: lz77.Token) -> None:
        parser, text = stream
        if parser.params.parse == "lazy":
            with pytest.raises(ConfigError, match="greedy"):
                parser.is_legal(token)
            return
        history = rows(parser.tokens())
        malformed = (token.kind == 0 and token.length != 1) or (
            token.kind == 1 and (token.length == 0 or not 0 < token.value <= len(text))
        )
        legal = not malformed and oracle.is_legal(history, tuple(token), settings_of(parser.params))
        assert parser.is_legal(token) == legal
        if legal:
            parser.push_token(token)
            text += oracle.reconstruct([*history, tuple(token)])[len(text) :]
            assert rows(parser.tokens()) == [*history, tuple(token)]
        else:
            with pytest.raises(ConfigError, match="not legal"):
                parser.push_token(token)

    @invariant()
    def equal_the_parse(self) -> None:
        for parser, text in self.all:
            expected = oracle.parse(bytes(text), settings_of(parser.params))
            assert rows(parser.tokens()) == expected
            assert parser.num_bytes == len(text)
            most = max(1 if parser.params.parse == "greedy" else 2, parser.params.min_length - 1)
            assert len(expected) - most <= parser.num_stable <= len(expected)
            assert parser.stable_bytes == sum(length for *_, length in expected[: parser.num_stable])


TestOperations = Operations.TestCase
TestOperations.settings = settings(max_examples=150, stateful_step_count=30, deadline=None)


@settings(deadline=None)
@given(texts, params_strategy.filter(lambda params: params.parse == "greedy"))
def test_legal_sets_are_those_of_the_definition(data: bytes, params: lz77.Params) -> None:
    data = data[:20]
    parser = lz77.IncrementalParser(params)
    parser.append(data)
    history = rows(parser.tokens())
    for byte in {*data, 0, 255}:
        assert parser.legal_literals()[byte] == oracle.is_legal(history, (0, byte, 1), settings_of(params))
    distances = set(parser.legal_distances().tolist())
    for distance in range(1, len(data) + 2):
        lengths = parser.legal_lengths(distance)
        assert (lengths is not None) == (distance in distances)
        for length in range(1, 14):
            legal = lengths is not None and lengths[0] <= length and (lengths[1] is None or length <= lengths[1])
            assert parser.is_legal(lz77.Token.match(distance, length)) == legal
            defined = distance <= len(data) and oracle.is_legal(history, (1, distance, length), settings_of(params))
            assert legal == defined
    kinds = parser.legal_kinds()
    assert (lz77.LITERAL in kinds) == parser.legal_literals().any()
    assert (lz77.MATCH in kinds) == bool(distances)


def test_batch_of_streams() -> None:
    rng = np.random.default_rng(1)
    params = lz77.Params(min_length=2)
    batch = lz77.ParserBatch(5, params)
    texts = [b""] * 5
    for step in range(60):
        column = rng.integers(97, 99, (5, 3) if step % 2 else 5).astype(np.uint8)
        batch.append(column)
        texts = [text + column[i].tobytes() for i, text in enumerate(texts)]
        if step % 10 == 9:
            sources = rng.integers(0, 5, 5).tolist()
            batch.select(sources)
            texts = [texts[i] for i in sources]
            batch.truncate(2, len(texts[2]) // 2)
            texts[2] = texts[2][: len(texts[2]) // 2]
        for i, text in enumerate(texts):
            assert batch.fork(i).tokens() == lz77.parse(text, params)
        assert batch.num_bytes.tolist() == list(map(len, texts))
    assert (batch.num_stable >= batch.num_bytes // 40).all()
    with pytest.raises(ConfigError, match="one row per stream"):
        batch.append(np.zeros(4, np.uint8))
    with pytest.raises(TypeError, match="uint8"):
        batch.append(np.zeros(5))
    with pytest.raises(IndexError, match="stream is 5; it must be below 5"):
        batch.fork(5)


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        ([(2, 0, 1)], "kind 2"),
        ([(0, 256, 1)], "a byte is 0 to 255"),
        ([(0, 1, 2)], "length 2"),
        ([(1, 1, 1)], "distance 1 after 0 bytes"),
        ([(0, 1, 1), (1, 2, 1)], "distance 2 after 1 bytes"),
        ([(0, 1, 1), (1, 0, 1)], "distance 0"),
        ([(0, 1, 1), (1, 1, 0)], "length 0"),
        ([(0, 1, 1), (1, 1, 1000)], "past the 1000 bytes"),
        ([(0, 1, 1), *[(1, 1, 2**32 - 1)] * 1000], "past the 1000 bytes"),
    ],
)
def test_hostile_tokens_are_refused(tokens: list[tuple[int, int, int]], message: str) -> None:
    with pytest.raises(FormatError, match=message):
        lz77.reconstruct(lz77.LZTokens.from_tokens(map(lz77.Token._make, tokens)), max_bytes=1000)


def test_bad_settings_are_refused() -> None:
    for bad in ({"window": 0}, {"min_length": 0}, {"min_length": 65}, {"min_length": None}, {"max_length": 3},
    {"depth": 0}, {"parse": "optimal"}, {"window": -1}, {"window": 2**32}, {"depth": 1.5}):  # fmt: skip
        with pytest.raises(ConfigError):
            lz77.Params(**bad)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="at least 1"):
        lz77.literal_runs(lz77.parse(b""), 0)
    parser = lz77.IncrementalParser()
    parser.append(b"abc")
    with pytest.raises(ConfigError, match="num_bytes is 4; it must be 0 to 3"):
        parser.truncate(4)
    with pytest.raises(ConfigError):
        parser.truncate(-1)
    assert lz77.reconstruct(parser.tokens()) == b"abc"
    assert pickle.loads(pickle.dumps(lz77.Params(None, 3, None, None, "lazy"))) == lz77.Params(
        None, 3, None, None, "lazy"
    )


def test_statistics_of_a_parse() -> None:
    tokens = lz77.LZTokens.from_tokens(
        [lz77.Token.literal(97), lz77.Token.match(1, 5), lz77.Token.match(6, 4), lz77.Token.literal(0)]
    )
    stats = lz77.statistics(tokens)
    assert (stats.num_bytes, stats.num_tokens, stats.num_literals, stats.num_matches) == (11, 4, 2, 2)
    assert stats.length_histogram.tolist() == [0, 0, 2]
    assert stats.distance_histogram.tolist() == [1, 0, 1]
    assert stats.bytes_per_token == 11 / 4
    assert stats.literal_byte_share == 2 / 11
    assert stats.literal_token_share == 0.5
    assert stats.effective_context(2) == (6 + 9 + 5) / 3
    assert stats.effective_context(9) == 11
    empty = lz77.statistics(lz77.parse(b""))
    assert empty.bytes_per_token == 0 == empty.literal_byte_share
    with pytest.raises(ConfigError):
        stats.effective_context(0)


def test_golden_vectors() -> None:
    """FORMAT.md's version 1, frozen: these never change."""
    for vector in json.loads(VECTORS.read_text()):
        params = lz77.Params(**vector["params"])
        data = bytes.fromhex(vector["data"])
        assert [list(token) for token in lz77.parse(data, params)] == vector["tokens"]
        assert [list(token) for token in oracle.parse(data, settings_of(params))] == vector["tokens"]


def test_exact_search_is_quick_on_hostile_texts() -> None:
    """Nothing is quadratic: a million equal bytes, two alternating ones, a de Bruijn-like counter."""
    counter = b"".join(i.to_bytes(3, "big") for i in range(300_000))
    for data in (bytes(1_000_000), b"ab" * 500_000, counter):
        for params in (lz77.Params(None, 1, None, None), lz77.Params(None, 3, None, 64, "lazy")):
            assert lz77.reconstruct(lz77.parse(data, params)) == data


def test_settings_span_the_range_that_studies_need(data_directory: Path) -> None:
    """Bytes a token on the first 100 kB, which seed 000 puts at 2.4 to 2.5 without naming its settings."""
    data = (data_directory / "tinyshakespeare.txt").read_bytes()[:100_000]

    def bytes_per_token(window: int, min_length: int) -> float:
        tokens = lz77.parse(data, lz77.Params(window=window, min_length=min_length))
        assert lz77.reconstruct(tokens) == data
        return lz77.statistics(tokens).bytes_per_token

    grid = {(window, m): bytes_per_token(window, m) for window in (256, 1024, 4096, 65536) for m in (2, 3, 4, 6)}
    assert min(grid.values()) < 2.3
    assert max(grid.values()) > 4
    assert 2.2 < grid[1024, 3] < 2.5 < grid[4096, 4] < 2.7
    for m in (2, 3, 4, 6):  # a longer window never holds fewer occurrences
        assert [grid[window, m] for window in (256, 1024, 4096, 65536)] == sorted(
            grid[window, m] for window in (256, 1024, 4096, 65536)
        )
