"""Codebooks against the definition: encoding, decoding, legality, files, training, and the likeliest strings."""

from __future__ import annotations

import hashlib
import itertools
import json
import pickle
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastcompress as fc
from fastcompress import pretokenizer
from fastcompress.equal_info import Codebook, CountModel
from fastcompress.equal_info.boundaries import uncut_pairs
from fastcompress.equal_info.models import byte_costs, likeliest_strings
from fastcompress.errors import ConfigError, DataError, FormatError, OutputError, UnknownTokenError
from tests.reference import codebook as oracle

VECTORS = Path(__file__).parent / "vectors" / "codebook.json"
SAMPLE = (
    b"It was the best of times, it was the worst of times, it was the age of wisdom, it was the age of foolishness"
    b"don't ((say)) 123 4567 \xc3\xa9\xc3\xa9\xc3\xa9 \xff\xfe   \n\n  \t it's aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n"
) * 8
PATTERNS = [None, "strict", "cl100k", "whitespace"]
BOOKS = {pattern: Codebook.train(SAMPLE, bits=10, pattern=pattern, num_rounds=3) for pattern in PATTERNS}
texts = st.one_of(
    st.binary(max_size=100),
    st.lists(st.sampled_from([b"it was ", b"the ", b"t", b" ", b"\n", b"  ", b"age", b"aaaa", b"'s", b"12"])).map(
        b"".join
    ),
    st.integers(0, len(SAMPLE)).map(lambda i: SAMPLE[i : i + 60]),
)
each_pattern = pytest.mark.parametrize("pattern", PATTERNS)


def random_book(rng: random.Random, alphabet: bytes, longest: int, bits: int = 9) -> Codebook:
    """Any prefix-closed set: strings over the alphabet, and what it takes to fill up over other bytes."""
    strings = {bytes([b]) for b in range(256)}
    for _ in range(rng.randrange(1, 60)):
        base = rng.choice(sorted(s for s in strings if len(s) < longest and set(s) <= set(alphabet)))
        strings.add(base + bytes([rng.choice(alphabet)]))
    others = itertools.product([b for b in range(256) if b not in alphabet], repeat=2)
    while len(strings) < 2**bits - 1:
        strings.add(bytes(next(others)))
    return Codebook.from_strings(strings, bits)


@each_pattern
@given(data=texts)
def test_encodes_as_defined_and_comes_back(pattern: str | None, data: bytes) -> None:
    book = BOOKS[pattern]
    ids = book.encode(data)
    assert ids.dtype == np.uint32
    pieces = [data] if pattern is None else pretokenizer.split(data, pattern)
    expected = oracle.encode_within(set(book.strings), pieces)
    assert [book.strings[i] for i in ids] == expected
    assert book.decode(ids) == data
    assert book.byte_lengths(ids).tolist() == [len(token) for token in expected]
    narrow = book.encode(data, np.uint16)
    assert narrow.dtype == np.uint16
    assert narrow.tolist() == ids.tolist()
    assert book.decode(narrow) == data


@each_pattern
def test_strings_are_what_a_codebook_is(pattern: str | None) -> None:
    book = BOOKS[pattern]
    assert len(book) == book.num_tokens == len(book.strings) == 1023
    assert list(book.strings) == sorted(set(book.strings))
    assert oracle.is_prefix_closed(set(book.strings))
    assert book.lengths.tolist() == [len(string) for string in book.strings]
    assert (book.bits, book.pattern) == (10, pattern)


@pytest.mark.parametrize("size", [1, 2, 255, 256, 257, 600, 5_000, 70_000, 300_000])
@pytest.mark.parametrize("num_threads", [1, 2, 3])
def test_long_texts_are_joined_exactly(size: int, num_threads: int) -> None:
    """Texts walked in several places at once, those whose parses never meet included."""
    rng = random.Random(size)
    text = bytes(rng.choices(SAMPLE, k=size // 3)) + b"a" * (size - 2 * (size // 3)) + (SAMPLE * 200)[: size // 3]
    book = BOOKS[None]
    ids = book.encode(text, num_threads=num_threads)
    assert book.decode(ids) == text
    position = 0  # greedy: each token is the longest string at its place
    strings = set(book.strings)
    lengths = book.byte_lengths(ids).tolist()
    for n in lengths:
        assert text[position : position + n + 1] not in strings or position + n == len(text)
        position += n
    for pattern in PATTERNS[1:]:
        other = BOOKS[pattern]
        assert other.encode(text, num_threads=num_threads).tolist() == other.encode(text).tolist()
        assert other.decode(other.encode(text)) == text


def test_extreme_texts() -> None:
    book = BOOKS[None]
    pairs = bytes(b for a in range(256) for c in range(256) for b in (a, c))
    runs = Codebook.from_strings([bytes([b]) for b in range(256)] + [b"a" * n for n in range(2, 256)] + [b"ba"], bits=9)
    for text in (b"", b"x", bytes(1 << 20), b"a" * (1 << 20), b"b" + b"a" * (1 << 20), bytes(range(256)), pairs):
        for some in (book, runs, BOOKS["cl100k"]):
            assert some.decode(some.encode(text, num_threads=2)) == text
    assert (
        runs.encode(b"a" * (1 << 20)).tolist()
        == [int(runs.encode(b"a" * 255)[0])] * 4112 + runs.encode(b"a" * 16).tolist()
    )
    assert runs.byte_lengths(runs.encode(b"a" * 1000)).tolist() == [255, 255, 255, 235]


@given(st.lists(texts, max_size=8), st.integers(1, 3))
def test_batches_are_encode_of_each(data: list[bytes], num_threads: int) -> None:
    for book in BOOKS.values():
        ids, offsets = book.encode_batch(data, num_threads=num_threads)
        assert len(offsets) == len(data) + 1
        for i, text in enumerate(data):
            assert ids[offsets[i] : offsets[i + 1]].tolist() == book.encode(text).tolist()


@given(texts, texts)
def test_the_last_token_alone_may_change(data: bytes, more: bytes) -> None:
    before, after = BOOKS[None].encode(data).tolist(), BOOKS[None].encode(data + more).tolist()
    stable = max(0, len(before) - 1)
    assert after[:stable] == before[:stable]


@pytest.mark.parametrize("seed", range(6))
def test_legality_is_exact_without_a_pattern(seed: int) -> None:
    """Every sequence of tokens over two letters: legal step by step if and only if its bytes are encoded to it."""
    rng = random.Random(seed)
    book = random_book(rng, b"ab", 5)
    tokens = [s for s in book.strings if set(s) <= {97, 98}]
    forbidden = {s: book.illegal_next_bytes(book.strings.index(s)) for s in tokens}
    strings = set(book.strings)
    checked = 0
    for sequence in oracle.sequences(tokens, 6):
        legal = all(not forbidden[a][b[0]] for a, b in itertools.pairwise(sequence))
        assert legal == all(oracle.is_legal_step(strings, a, b) for a, b in itertools.pairwise(sequence))
        encoded = [book.strings[i] for i in book.encode(b"".join(sequence))]
        assert legal == (encoded == sequence)
        checked += legal
    assert checked > 100


@each_pattern
@given(data=texts)
def test_encode_makes_legal_steps_only(pattern: str | None, data: bytes) -> None:
    book = BOOKS[pattern]
    ids = book.encode(data)
    firsts = np.array([book.strings[i][0] for i in ids[1:]], np.int64)
    known, any_text = book.illegal_next_bytes_in_text(ids), book.illegal_next_bytes(ids)
    assert known.shape == any_text.shape == (len(ids), 256)
    assert not known[np.arange(len(firsts)), firsts].any()
    assert not any_text[np.arange(len(firsts)), firsts].any()
    if pattern is None:
        assert (known == any_text).all()


@pytest.mark.parametrize("pattern", ["strict", "cl100k"])
def test_with_a_pattern_steps_are_legal_where_borders_say_so(pattern: str) -> None:
    """Sequences are encoded to themselves if and only if no border cuts a token and each step is legal."""
    rng = random.Random(pattern)
    book = random_book(rng, b"a '", 4)
    with_pattern = Codebook.from_strings(book.strings, 9, pattern)
    tokens = [s for s in book.strings if set(s) <= set(b"a '")]
    for _ in range(20000):
        sequence = rng.choices(tokens, k=rng.randrange(1, 5))
        text = b"".join(sequence)
        borders = set(pretokenizer.split_ends(text, pattern).tolist())
        ends = list(itertools.accumulate(map(len, sequence)))
        begins = [0, *ends[:-1]]
        cut = any(begin < border < end for begin, end in zip(begins, ends, strict=True) for border in borders)
        ids = np.array([book.strings.index(s) for s in sequence], np.uint32)
        rows = with_pattern.illegal_next_bytes_in_text(ids)
        legal = not cut and not any(rows[i][b[0]] for i, b in enumerate(sequence[1:]))
        assert legal == (with_pattern.encode(text).tolist() == ids.tolist())


@pytest.mark.parametrize("pattern", [name for name in pretokenizer.PATTERNS if name != "none"])
def test_no_border_falls_between_uncut_pairs(pattern: str) -> None:
    pairs = uncut_pairs(pattern)
    rng = random.Random(pattern)
    pieces = [
        b"a",
        b"B",
        b"s",
        b"'",
        b"'s",
        b"'ll",
        b" ",
        b"  ",
        b"\n",
        b"\t",
        b"1",
        b"!",
        b"(",
        b"\xc3\xa9",
        b"\xc3",
        b"\xe4\xb8\xad",
        b"\xcc\x81",
        b"\xe2\x80\xa8",
        b"/",
        b"\r\n",
    ]
    for before, after in np.argwhere(pairs).tolist():
        for _ in range(5):
            head, tail = (b"".join(rng.choices(pieces, k=rng.randrange(6))) for _ in range(2))
            text = head + bytes([before, after]) + tail
            assert len(head) + 1 not in pretokenizer.split_ends(text, pattern).tolist(), text
    assert pairs.any() or pattern == "deepseek-v3"


def test_files_come_back_and_damage_is_found(tmp_path: Path) -> None:
    book = BOOKS["cl100k"]
    blob = book.to_bytes()
    assert Codebook.from_bytes(blob) == book
    assert Codebook.from_bytes(blob).to_bytes() == blob
    assert book.fingerprint == hashlib.sha256(blob[:-32]).hexdigest() == blob[-32:].hex()
    book.save(tmp_path / "book")
    assert Codebook.load(tmp_path / "book").strings == book.strings
    assert pickle.loads(pickle.dumps(book)) == book
    assert len({some.fingerprint for some in BOOKS.values()}) == len(BOOKS)
    for damaged in (b"", blob[:7], blob[:40], blob[:-1], blob + b"\0", b"x" + blob[1:], blob[:99] + b"\0" + blob[100:]):
        with pytest.raises(FormatError):
            Codebook.from_bytes(damaged)

    def resealed(body: bytes) -> bytes:
        return body + hashlib.sha256(body).digest()

    body = blob[:-32]
    for wrong in (
        body[:8] + b"\2" + body[9:],
        body[:12] + b"\x0b" + body[13:],
        body[:12] + b"\x11" + body[13:],
        body + b"\0\0",
        body[:13] + b"\xff\xff\xff\xff" + body[17:],
        body.replace(b"cl100k", b"xl100k"),
        body[:23] + b"\2" + body[24:],
        body[: 23 + 1023] + b"\1" + body[24 + 1023 :],
    ):
        with pytest.raises(FormatError):
            Codebook.from_bytes(resealed(wrong))
    with pytest.raises(DataError):
        Codebook.load(tmp_path / "none")
    with pytest.raises(OutputError):
        book.save(tmp_path / "none" / "book")


def test_golden_vectors() -> None:
    """Version 1 of the file, and training as it is now."""
    for vector in json.loads(VECTORS.read_text()):
        book = Codebook.from_strings([bytes.fromhex(s) for s in vector["strings"]], vector["bits"], vector["pattern"])
        assert book.fingerprint == vector["fingerprint"]
        for text, ids in vector["texts"]:
            assert book.encode(bytes.fromhex(text)).tolist() == ids


def test_what_is_wrong_is_said() -> None:
    book = BOOKS[None]
    singles = [bytes([b]) for b in range(256)]
    more = [bytes([0, b]) for b in range(254)]
    for strings, bits, message in (
        (singles, 9, "511 strings"),
        (singles + more + [b"abc"], 9, "prefix"),
        (singles + more + [more[0]], 9, "out of order"),
        (singles + more + [b""], 9, "1 to 255"),
        (singles[1:] + [bytes([1, b]) for b in range(256)], 9, "single bytes"),
        (singles, 8, "bits is 8"),
        (singles, 17, "bits is 17"),
    ):
        with pytest.raises(ConfigError, match=message):
            Codebook.from_strings(strings, bits)
    with pytest.raises(ConfigError, match="unknown pattern"):
        Codebook.train(b"text", 9, "english")
    with pytest.raises(ConfigError, match="num_rounds"):
        Codebook.train(b"text", 9, num_rounds=-1)
    with pytest.raises(ConfigError, match="num_threads"):
        book.encode(b"", num_threads=0)
    with pytest.raises(ConfigError, match="dtype"):
        book.encode(b"", np.int64)
    for ids in ([1023], [0, 5, 70000], [-1]):
        for method in (book.decode, book.byte_lengths, book.illegal_next_bytes):
            with pytest.raises(UnknownTokenError, match="is not one of"):
                method(np.array(ids))
    with pytest.raises(UnknownTokenError):
        book.decode(np.array([0, 1023], np.uint16))
    with pytest.raises(TypeError):
        book.decode(np.array([0.5]))
    assert book.decode([]) == b""
    assert book.illegal_next_bytes(0).shape == (256,)


@pytest.mark.parametrize("options", [{}, {"pattern": "strict"}, {"within_words": True}, {"num_rounds": 0}], ids=str)
def test_training_does_not_depend_on_threads(options: dict[str, Any]) -> None:
    documents = [SAMPLE[:700], b"", SAMPLE * 100, b"\x00\x01" * 500]
    one, two = (Codebook.train(documents, 9, num_threads=n, **options) for n in (1, 2))
    assert one.to_bytes() == two.to_bytes()
    assert oracle.is_prefix_closed(set(one.strings))
    assert len(one.strings) == 511


def test_training_learns() -> None:
    text = SAMPLE * 3
    trained = Codebook.train(text, 9)
    counted = Codebook.train(text, 9, num_rounds=0)
    assert len(trained.encode(text)) <= len(counted.encode(text)) < len(text) / 3
    refined = counted.refine(text)
    assert refined.bits == 9
    assert len(refined.encode(text)) <= len(counted.encode(text))
    nothing = Codebook.train([], 9)
    assert len(nothing) == 511
    assert oracle.is_prefix_closed(set(Codebook.train(b"ab", 16).strings))
    assert Codebook.train("é" * 9, 9).encode("é").size == 1


def kind_of_byte(byte: int) -> str:
    if byte in b" \t\n\v\f\r":
        return "white"
    if byte >= 128 or chr(byte).isalpha():
        return "letter"
    return "digit" if chr(byte).isdigit() else "symbol"


def test_words_stay_whole() -> None:
    book = Codebook.train(SAMPLE, 10, within_words=True)
    for string in book.strings:
        word = string[1:] if string[:1] == b" " and not string.isspace() else string
        assert len(set(map(kind_of_byte, word))) == 1, string
    assert book.pattern is None
    assert any(string.startswith(b" t") for string in book.strings)


def counts_of(contexts: list[bytes]) -> npt.NDArray[np.int64]:
    return CountModel(SAMPLE, 2)(contexts)


def test_likeliest_strings_are_those_of_the_definition() -> None:
    rows: dict[bytes, list[int]] = {}
    model = CountModel(SAMPLE, 2)

    def cost(context: bytes) -> list[int]:
        if context not in rows:
            rows[context] = byte_costs(model, [context])[0].tolist()
        return rows[context]

    assert set(likeliest_strings(model, 511, 2)) == oracle.likeliest(cost, 511, 2)
    unbounded = likeliest_strings(model, 1023, 255)
    assert len(unbounded) == len(set(unbounded)) == 1023
    total = {s: sum(cost(s[:i])[s[i]] for i in range(len(s))) for s in unbounded}
    longer = unbounded[256:]
    assert longer == sorted(longer, key=lambda s: (total[s], s))
    worst = (total[longer[-1]], longer[-1])
    taken = set(unbounded)
    for string in unbounded:  # nothing left out is better than the worst taken
        for byte in range(256):
            other = string + bytes([byte])
            assert other in taken or (total[string] + cost(string)[byte], other) > worst


def test_from_a_context_mixer() -> None:
    mixer = fc.arithmetic.ContextMixer.train(SAMPLE, log2_table_bytes=16, reset_interval=8).freeze()
    book = Codebook.from_model(mixer.distributions, 10)
    assert book.decode(book.encode(SAMPLE)) == SAMPLE
    assert len(book.encode(SAMPLE)) < len(Codebook.from_model(CountModel(SAMPLE, 0), 10).encode(SAMPLE))


def test_from_model_does_not_depend_on_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def model(contexts: Sequence[bytes]) -> npt.NDArray[np.int64]:
        asked.append(len(contexts))
        return counts_of(contexts) if len(contexts) < 3 else CountModel(SAMPLE, 2)(contexts)

    book = Codebook.from_model(model, 11)
    assert sum(asked) < 2 * 2047
    monkeypatch.setattr("fastcompress.equal_info.models._BATCH", 1)
    again = Codebook.from_model(CountModel(SAMPLE, 2), 11)
    assert again.to_bytes() == book.to_bytes()
    uniform = Codebook.from_model(lambda contexts: np.ones((len(contexts), 256)), 9)
    assert list(uniform.strings[:256]) == [b"\0"] + [bytes([0, b]) for b in range(255)]
    for bad in (np.zeros((1, 256)), np.full((1, 256), np.nan), -np.ones((1, 256)), np.ones((1, 255))):
        with pytest.raises(DataError, match="weights"):
            Codebook.from_model(lambda contexts, row=bad: np.repeat(row, len(contexts), 0), 9)


@given(st.lists(st.integers(1, 2**32), min_size=1, max_size=20))
def test_costs_are_logarithms(numerators: list[int]) -> None:
    from fastcompress.equal_info.models import _log2

    values = np.array(numerators, np.uint64)
    assert np.abs(_log2(values) / 2**24 - np.log2(values.astype(np.float64))).max() < 2**-22
    assert (_log2(values) <= 32 << 24).all()


@settings(max_examples=20)
@given(st.integers(0, 10**6))
def test_random_codebooks_encode_as_defined(seed: int) -> None:
    rng = random.Random(seed)
    book = random_book(rng, b"abc", 8)
    strings = set(book.strings)
    for size in (10, 100, 3000):
        text = bytes(rng.choices(b"abc", k=size))
        encoded = [book.strings[i] for i in book.encode(text)]
        assert encoded == oracle.encode(strings, text) if size < 3000 else b"".join(encoded) == text


def test_is_public() -> None:
    assert fc.equal_info.Codebook is Codebook
