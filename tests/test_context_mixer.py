"""The context mixer and adaptive frequencies: against the definition, there and back, files, hostile input."""

from __future__ import annotations

import bz2
import contextlib
import hashlib
import itertools
import json
import lzma
import pickle
import random
import re
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastcompress.arithmetic.models import AdaptiveFrequencies, ContextMixer
from fastcompress.errors import ConfigError, DataError, FormatError, MissingFileError
from tests.reference import context_mixer as oracle

VECTORS = Path(__file__).parent / "vectors" / "context-mixer.json"
TEXT = b"".join(b"It is %d o'clock, and the Clock of the bell says %d.\n" % (i, i * i % 12) for i in range(40))
# A table of records of 20 bytes, of which the middle changes.
TABLE = b"".join(bytes([1, 2, 3, 250, 9, 8, i % 7, i, 0, 77, 5, 5, 6, 0, 1, 44, i // 3, 9, 13, 200]) for i in range(90))

texts = st.one_of(
    st.binary(max_size=200),
    st.lists(st.sampled_from([b"the ", b"cat ", b"Then", b"\n", b"\x00\x01\x02", b"1234"]), max_size=60).map(b"".join),
)


def small(**params: int | None) -> ContextMixer:
    return ContextMixer(**{"log2_table_bytes": 14, "log2_match_entries": 10} | params)


@pytest.fixture(scope="module")
def trained() -> ContextMixer:
    return ContextMixer.train(TEXT, log2_table_bytes=16)


@settings(max_examples=30, deadline=None)
@given(texts, st.sampled_from([12, 14]), st.sampled_from([None, 10]), st.sampled_from([None, 1, 5, 50]))
def test_it_is_the_defined_model(data: bytes, table: int, match: int | None, window: int | None) -> None:
    mixer = ContextMixer(log2_table_bytes=table, log2_match_entries=match, reset_interval=window)
    defined = oracle.ContextMixer(table, match or 0, window or 0)
    assert mixer.encode(data) == oracle.encode(defined.update(data), data)
    mixer.update(data)
    assert mixer.distribution(data).tolist() == defined.distribution(data)


@pytest.mark.slow
@pytest.mark.parametrize(
    "data", [TEXT + TEXT[::-1] + TEXT, TABLE, TEXT[:700] + TABLE[:900]], ids=["text", "table", "both"]
)
def test_it_is_the_defined_model_where_there_are_matches_tables_and_full_buckets(data: bytes) -> None:
    defined = oracle.ContextMixer(12, 10)
    message = oracle.encode(defined.update(data), data)
    mixer = ContextMixer(log2_table_bytes=12, log2_match_entries=10)
    assert mixer.encode(data) == message
    mixer.update(data)
    defined.freeze()
    frozen = mixer.freeze()
    assert frozen.encode(data[:300]) == oracle.encode(defined.update(data[:300]), data[:300])
    for context in (b"", data[:1], data[:9], data[7:300]):
        assert frozen.distribution(context, 20).tolist() == defined.distribution(context, 20)


def test_the_table_is_seen_as_one() -> None:
    defined = oracle.ContextMixer(12, 10)
    defined.update(TABLE)
    assert defined.match is not None
    record = defined.records.record(defined.match)
    assert record is not None
    assert record.length == 20


def test_golden_vectors() -> None:
    for vector in json.loads(VECTORS.read_text(encoding="utf-8")):
        data = bytes.fromhex(vector["data"])
        mixer = ContextMixer(**vector["params"])
        assert mixer.encode(data).hex() == vector["message"]
        assert mixer.decode(bytes.fromhex(vector["message"]), len(data)) == data
        mixer.update(data)
        frozen = mixer.freeze()
        assert frozen.encode(data).hex() == vector["frozen_message"]
        row = frozen.distribution(data[:5])
        assert hashlib.sha256(row.astype("<u4").tobytes()).hexdigest() == vector["distribution_sha256"]
        assert frozen.fingerprint == vector["fingerprint"]


@settings(deadline=None)
@given(texts, st.booleans(), st.sampled_from([None, 1, 7]))
def test_there_and_back(data: bytes, freeze: bool, window: int | None) -> None:
    mixer = small(reset_interval=window)
    mixer.update(TEXT)
    if freeze:
        mixer = mixer.freeze()
    before = mixer.fingerprint
    message = mixer.encode(data)
    assert mixer.decode(message, len(data)) == data
    assert mixer.fingerprint == before


@pytest.mark.parametrize("freeze", [False, True])
@pytest.mark.parametrize(
    "data",
    [b"", b"\x00", b"\xff", bytes(range(256)) * 3, bytes(2**20), random.Random(1).randbytes(20000)],
    ids=["empty", "zero", "ones", "all", "equal", "noise"],
)
def test_there_and_back_of_extremes(data: bytes, freeze: bool) -> None:
    mixer = small().freeze() if freeze else small()
    message = mixer.encode(data)
    assert mixer.decode(message, len(data)) == data
    if not freeze:
        assert len(message) < len(data) * 1.02 + 8
        assert len(data) < 2**20 or len(message) < 1000


def test_it_compresses_what_it_knows(trained: ContextMixer) -> None:
    new = b"It is 99 o'clock, and the Clock of the bell says 3.\n"
    assert len(trained.freeze().encode(new)) * 8 < 2 * len(new)
    assert len(trained.encode(new)) * 8 < 2 * len(new)
    assert len(small().encode(TEXT)) * 10 < len(TEXT)


@settings(deadline=None)
@given(st.binary(max_size=12), st.integers(8, 24))
def test_distributions_are_the_products_of_bits(trained: ContextMixer, context: bytes, precision: int) -> None:
    row = trained.distribution(context, precision)
    assert row.dtype == np.uint32
    assert row.shape == (256,)
    assert int(row.sum()) == 2**precision
    assert row.min() >= 1
    assert (trained.freeze().distribution(context, precision) == row).all()


def test_distributions_predict_what_encode_pays(trained: ContextMixer) -> None:
    frozen = trained.freeze()
    data = TEXT[30:130]
    contexts = [data[:i] for i in range(len(data))]
    rows = frozen.distributions(contexts, 24)
    assert (rows == np.stack([frozen.distribution(context, 24) for context in contexts])).all()
    assert (rows == frozen.distributions(contexts, 24, num_threads=3)).all()
    bits = -np.log2(rows[np.arange(len(data)), list(data)] / 2**24).sum()
    assert abs(len(frozen.encode(data)) * 8 - bits) < 10
    assert frozen.distributions([]).shape == (0, 256)


def test_frozen_is_frozen(trained: ContextMixer) -> None:
    frozen = trained.freeze()
    assert frozen.is_frozen
    assert not trained.is_frozen
    before = frozen.to_bytes()
    frozen.encode(TEXT)
    frozen.decode(frozen.encode(TEXT), len(TEXT))
    frozen.distribution(TEXT)
    assert frozen.to_bytes() == before
    with pytest.raises(ConfigError, match="frozen"):
        frozen.update(b"more")


def test_windows_are_predicted_alone() -> None:
    mixer = ContextMixer.train([TEXT], log2_table_bytes=16, reset_interval=10).freeze()
    assert (mixer.distribution(TEXT[:10]) == mixer.distribution(b"")).all()
    assert (mixer.distribution(TEXT[:13]) == mixer.distribution(TEXT[10:13])).all()
    assert not (mixer.distribution(TEXT[:9]) == mixer.distribution(b"")).all()


def test_training_on_windows_learns_how_they_begin() -> None:
    text = TEXT * 5
    train, held_out = text[:8000], [text[i : i + 8] for i in range(8001, 10000, 16)]
    windows = ContextMixer.train(train, log2_table_bytes=18, reset_interval=8).freeze()
    whole = ContextMixer.train(train, log2_table_bytes=18).freeze()

    def cost(mixer: ContextMixer) -> float:
        rows = mixer.distributions([piece[:i] for piece in held_out for i in range(8)])
        return float(-np.log2(rows[np.arange(len(rows)), list(b"".join(held_out))] / 2**16).sum())

    assert cost(windows) < 0.9 * cost(whole)


def test_documents_begin_with_an_empty_context() -> None:
    apart = ContextMixer.train([b"abc" * 30, b"xyz" * 30], log2_table_bytes=14)
    by_hand = ContextMixer(log2_table_bytes=14, log2_match_entries=None)
    by_hand.update(b"abc" * 30)
    by_hand.reset()
    by_hand.update(b"xyz" * 10)
    by_hand.update(b"xyz" * 20)
    by_hand.reset()
    assert apart.to_bytes() == by_hand.to_bytes()
    assert apart.fingerprint != ContextMixer.train(b"abc" * 30 + b"xyz" * 30, log2_table_bytes=14).fingerprint


def test_files(tmp_path: Path, trained: ContextMixer) -> None:
    for mixer in (trained, trained.freeze(), small(reset_interval=3)):
        path = tmp_path / "mixer"
        mixer.save(path)
        loaded = ContextMixer.load(path)
        assert loaded.fingerprint == mixer.fingerprint == hashlib.sha256(path.read_bytes()).hexdigest()
        assert (loaded.is_frozen, loaded.reset_interval, loaded.num_bytes) == (
            mixer.is_frozen,
            mixer.reset_interval,
            mixer.num_bytes,
        )
        assert loaded.encode(TEXT) == mixer.encode(TEXT)
        assert pickle.loads(pickle.dumps(mixer)).to_bytes() == mixer.to_bytes()
        path.write_bytes(b"?" + path.read_bytes()[1:])
        with pytest.raises(FormatError, match=r"mixer: not a fastcompress"):
            ContextMixer.load(path)
    with pytest.raises(MissingFileError):
        ContextMixer.load(tmp_path / "none")


def resigned(body: bytes) -> bytes:
    return body + hashlib.sha256(body).digest()


def test_damaged_files_are_refused() -> None:
    mixer = ContextMixer(log2_table_bytes=12)
    mixer.update(TEXT[:300])
    blob = mixer.to_bytes()
    rng = random.Random(2)
    for _ in range(60):
        place = rng.randrange(len(blob))
        with pytest.raises(FormatError):
            ContextMixer.from_bytes(blob[:place] + bytes([blob[place] ^ (1 << rng.randrange(8))]) + blob[place + 1 :])
        with pytest.raises(FormatError):
            ContextMixer.from_bytes(blob[:place])
    for other in (b"", blob + b"\0", resigned(blob), resigned(blob[:-32] + b"\0"), resigned(blob[:-33])):
        with pytest.raises(FormatError):
            ContextMixer.from_bytes(other)


def test_well_signed_nonsense_is_refused_or_works() -> None:
    mixer = ContextMixer(log2_table_bytes=12)
    mixer.update(TEXT[:300])
    body = mixer.to_bytes()[:-32]
    for place, value in [(12, 11), (12, 31), (16, 9), (16, 25), (24, 2), (8, 2), (8, 0)]:
        with pytest.raises(FormatError):
            ContextMixer.from_bytes(resigned(body[:place] + bytes([value]) + body[place + 1 :]))
    rng = random.Random(3)
    for _ in range(60):
        place = rng.randrange(33, len(body))
        bad = resigned(body[:place] + bytes([rng.randrange(256)]) + body[place + 1 :])
        try:
            other = ContextMixer.from_bytes(bad)
        except FormatError:
            continue
        assert other.decode(other.encode(TEXT), len(TEXT)) == TEXT
        assert int(other.distribution(TEXT[:40]).sum()) == 2**16


def test_damaged_messages_end_in_time() -> None:
    mixer = small()
    message = mixer.encode(TEXT)
    with pytest.raises(FormatError, match="ends too early"):
        mixer.decode(message[: len(message) // 3], 10**15)
    with pytest.raises(FormatError):
        mixer.decode(b"", 10**15)
    rng = random.Random(4)
    for _ in range(20):
        with contextlib.suppress(FormatError):
            assert len(mixer.decode(rng.randbytes(100), 500)) == 500


def test_one_frozen_mixer_serves_many_threads(trained: ContextMixer) -> None:
    frozen = trained.freeze()
    pieces = [TEXT[i : i + 200] for i in range(0, 1600, 50)]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(frozen.encode, pieces)) == [frozen.encode(piece) for piece in pieces]


def test_settings_out_of_range() -> None:
    for bad in ({"log2_table_bytes": 11}, {"log2_table_bytes": 31}, {"log2_match_entries": 9}, {"window": 0}):
        with pytest.raises(ConfigError):
            ContextMixer(**bad)
    with pytest.raises(ConfigError):
        small().distribution(b"", 7)
    with pytest.raises(ConfigError):
        small().decode(b"", -1)
    with pytest.raises(TypeError):
        small().encode("text")  # type: ignore[arg-type]


def test_the_targets_on_real_text(data_directory: Path) -> None:
    with lzma.open(data_directory / "code" / "code-val.jsonl.xz", "rt", encoding="utf-8") as lines:
        text = "".join(json.loads(line)["text"] for line in lines).encode()
    best = min(len(lzma.compress(text, preset=9 | lzma.PRESET_EXTREME)), len(bz2.compress(text)))
    assert len(ContextMixer().encode(text)) < 0.9 * best


# Adaptive frequencies.


def defined_frequencies(symbols: list[int], num_symbols: int, increment: int, limit: int, precision: int) -> Fraction:
    """The probability of the whole message, and the check that every table is one."""
    counts = [1] * num_symbols
    probability = Fraction(1)
    for symbol in symbols:
        total = sum(counts)
        ends = [sum(counts[:s]) * 2**precision // total for s in range(num_symbols + 1)]
        assert all(a < b for a, b in itertools.pairwise(ends))
        probability *= Fraction(ends[symbol + 1] - ends[symbol], 2**precision)
        counts[symbol] += increment
        if sum(counts) > limit:
            counts = [(count + 1) // 2 for count in counts]
    return probability


@settings(deadline=None)
@given(st.data())
def test_adaptive_frequencies(data: st.DataObject) -> None:
    num_symbols = data.draw(st.sampled_from([1, 2, 3, 7, 8, 20]))
    symbols = data.draw(st.lists(st.integers(0, num_symbols - 1), max_size=60))
    increment = data.draw(st.sampled_from([1, 5, 32]))
    limit = data.draw(st.sampled_from([2 * num_symbols + 2 * increment, 300, None]))
    model = AdaptiveFrequencies(num_symbols, increment=increment, limit=limit)
    assert model.precision == 16
    message = model.encode(symbols)
    assert model.decode(message, len(symbols)).tolist() == symbols
    probability = defined_frequencies(symbols, num_symbols, increment, limit or 2**16, 16)
    assert len(message) <= int(-np.log2(float(probability)) + 1) // 8 + 2
    counts = [1] * num_symbols
    for symbol in symbols:
        counts[symbol] += increment
        if sum(counts) > (limit or 2**16):
            counts = [(count + 1) // 2 for count in counts]
    model.update(symbols)
    ends = [sum(counts[:s]) * 2**16 // sum(counts) for s in range(num_symbols + 1)]
    assert model.cumulative().tolist() == ends


@pytest.mark.parametrize("num_symbols", [256, 257, 65536, 100_000, 2**22])
def test_adaptive_frequencies_of_large_alphabets(num_symbols: int) -> None:
    rng = np.random.default_rng(5)
    symbols = (rng.pareto(0.7, 20000) * 3).astype(np.int64) % num_symbols
    model = AdaptiveFrequencies(num_symbols)
    assert (model.decode(model.encode(symbols), len(symbols)) == symbols).all()
    model.update(symbols)
    ends = model.cumulative()
    assert ends[0] == 0
    assert ends[-1] == 2**model.precision
    assert (np.diff(ends.astype(np.int64)) >= 1).all()


def test_adaptive_frequencies_refuse() -> None:
    for bad in ({"num_symbols": 0}, {"num_symbols": 2**22 + 1}, {"num_symbols": 5, "increment": 0}):
        with pytest.raises(ConfigError):
            AdaptiveFrequencies(**bad)
    with pytest.raises(ConfigError, match="limit"):
        AdaptiveFrequencies(10, limit=83)
    model = AdaptiveFrequencies(10)
    for symbols in ([10], [-1], [2**40]):
        with pytest.raises(DataError):
            model.encode(symbols)
    with pytest.raises(DataError):
        model.update([0.5])
    with pytest.raises(FormatError):
        model.decode(b"", 10**12)


def test_the_worked_example() -> None:
    """The numbers of one predicted and learned bit, in FORMAT.md and in the head of byte_model.h, are the oracle's."""
    mixer = oracle.ContextMixer(16, 0)
    mixer.update(b"aba")
    mixer.begin_byte()
    mixer.predict()
    mixer.learn(0)
    probability = mixer.predict()
    history, point = mixer.states[0], mixer.nearest
    numbers = [mixer.inputs[0], *mixer.sums, mixer.final_p, probability]
    rows = [weights[row] for weights, row in zip(mixer.weights, mixer.rows, strict=True)]
    final_weights, refinement = mixer.final_weights[mixer.partial], mixer.refinement
    assert mixer.states[1:] == [0] * 8
    assert oracle.HISTORIES[history] == (0, 1, 0)
    mixer.learn(1)
    learned = [mixer.by_history[0][history][0], rows[0][0], rows[1][0], *final_weights, refinement[point]]
    folder = Path(__file__).parent.parent / "cpp" / "fastcompress" / "context_mixer"
    page, head = (folder / "FORMAT.md").read_text(), (folder / "byte_model.h").read_text()
    assert all(re.search(rf"\b{number}\b", page) for number in numbers + learned)
    assert all(re.search(rf"\b{number}\b", head) for number in numbers)
