"""What calls are given: malformed columns, wrong types, text that cannot be encoded, and bytes after a code."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fastcompress as fc
from fastcompress import _core, arithmetic, lz77
from fastcompress.errors import ColumnError, ConfigError, DataError, FormatError, SurrogateError

TABLE = arithmetic.quantize(np.ones(256))
BOOK = fc.equal_info.Codebook.train(b"to be or not to be, that is the question: " * 20, bits=9)
GOOD = [(0, 97, 1), (0, 98, 1), (1, 2, 9), (0, 99, 1)]


def columns(rows: list[tuple[int, int, int]], dtype: Any = np.int64) -> lz77.LZTokens:
    return lz77.LZTokens(*np.array(rows, dtype).T)


@pytest.mark.parametrize("dtype", [np.int64, np.int16, np.uint8, np.uint64, ">u4", ">i8", "<i2"])
def test_columns_of_any_integers_and_layouts(dtype: Any) -> None:
    expected = lz77.reconstruct(lz77.LZTokens.from_tokens(map(lz77.Token._make, GOOD)))
    tokens = columns(GOOD, dtype)  # columns of a table, so not contiguous
    assert lz77.reconstruct(tokens) == expected == b"ab" + b"ab" * 4 + b"a" + b"c"
    assert lz77.statistics(tokens).num_bytes == 12
    assert lz77.literal_runs(tokens).tokens() == tokens.checked()
    assert lz77.reconstruct(lz77.LZTokens(*map(list, zip(*GOOD, strict=True)))) == expected  # type: ignore[arg-type]
    assert lz77.reconstruct(lz77.LZTokens([], [], [])) == b""  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("place", "row", "message"),
    [
        (3, (0, 2**32 + 3, 1), r"token 3 .*value\[3\] is 4294967299"),
        (2, (256 + 1, 2, 9), r"token 2 .*kind\[2\] is 257"),
        (2, (1, 2, 2**32 + 9), r"token 2 .*length\[2\] is 4294967305"),
        (1, (0, -1, 1), r"token 1 .*value\[1\] is -1"),
        (1, (-1, 98, 1), r"token 1 .*kind\[1\] is -1"),
        (1, (5, 98, 1), "token 1 is of kind 5"),
        (1, (0, 98, 3), "token 1 is a literal of length 3"),
        (2, (1, 0, 9), "token 2 is a match of distance 0"),
    ],
)
def test_the_first_malformed_token_is_named(place: int, row: tuple[int, int, int], message: str) -> None:
    rows = list(GOOD)
    rows[place] = row
    rows += [(0, 2**40, 1), (77, 0, 0)]
    for call in (lz77.reconstruct, lz77.statistics, lz77.literal_runs):
        with pytest.raises(FormatError, match=message):
            call(columns(rows))
    with pytest.raises(FormatError, match=message):
        _core.lz77.bucket_encode(*np.array(rows, np.int64).T, lz77.Params(min_length=2).core)


@pytest.mark.parametrize(
    "bad",
    [np.ones(4), np.array(["a"] * 4), np.ones((4, 1), int), np.ones(4, bool), np.array([1] * 4, object), 7, "abcd"],
)
def test_what_is_no_row_of_integers(bad: Any) -> None:
    kind, value, length = np.array(GOOD).T
    for tokens in (
        lz77.LZTokens(bad, value, length),
        lz77.LZTokens(kind, bad, length),
        lz77.LZTokens(kind, value, bad),
    ):
        for call in (lz77.reconstruct, lz77.statistics, lz77.literal_runs):
            with pytest.raises((FormatError, TypeError)) as caught:
                call(tokens)
            assert isinstance(caught.value, ColumnError)
    for decode in (
        lambda ids: _core.lz77.bucket_decode(ids, lz77.Params().core),
        lambda ids: _core.lz77.lzp_decode(ids, _core.lz77.LzpParams(4, 2, 258), 100),
    ):
        with pytest.raises(ColumnError, match="ids"):
            decode(bad)


def test_columns_of_unequal_length() -> None:
    kind, value, length = np.array(GOOD).T
    for call in (lz77.reconstruct, lz77.statistics):
        with pytest.raises(ColumnError, match="4, 3 and 4"):
            call(lz77.LZTokens(kind, value[:3], length))
    with pytest.raises(ColumnError, match="4, 4 and 0"):
        _core.lz77.bucket_encode(kind, value, length[:0], lz77.Params().core)


def test_tokens_that_no_parse_with_these_params_has() -> None:
    for rows, message in (([(1, 2000, 9)], "the window is 1000"), ([(1, 5, 3)], "min_length"), ([(1, 5, 300)], "258")):
        with pytest.raises(FormatError, match=message):
            _core.lz77.bucket_encode(*np.array(rows).T, lz77.Params(window=1000).core)


def test_ids_out_of_range_are_named() -> None:
    for bad in (-1, 2**32 + 3, 2**63 - 1):
        with pytest.raises(FormatError, match=rf"ids\[1\] is {bad}"):
            _core.lz77.bucket_decode(np.array([65, bad]), lz77.Params().core)
        with pytest.raises(fc.errors.UnknownTokenError, match="position 1"):
            BOOK.decode(np.array([65, bad]))
        with pytest.raises(DataError):
            arithmetic.Encoder().encode(np.array([65, bad]), TABLE)
        with pytest.raises(DataError, match=r"symbols\[1\] is"):
            arithmetic.AdaptiveFrequencies(100).update(np.array([65, bad]))


WRONG: list[tuple[str, Callable[[], object], str]] = [
    ("is_legal", lambda: lz77.IncrementalParser().is_legal((12, 5)), r"token is \(12, 5\) \(tuple\)"),  # type: ignore[arg-type]
    ("push_token", lambda: lz77.IncrementalParser().push_token("abc"), "token is 'abc'"),  # type: ignore[arg-type]
    ("from_tokens", lambda: lz77.LZTokens.from_tokens([(0, 1.5, 1)]), "three|integers kind"),  # type: ignore[list-item]
    ("parse", lambda: lz77.parse("text", 65536), "params is 65536"),  # type: ignore[arg-type]
    ("parse 5", lambda: lz77.parse(5), "expected str or bytes, not int"),  # type: ignore[arg-type]
    ("parse_batch", lambda: lz77.parse_batch("text"), "texts is 'text'"),
    ("stable_counts_batch", lambda: lz77.stable_counts_batch("text"), "texts is 'text'"),
    ("truncate", lambda: lz77.IncrementalParser().truncate(1.5), "num_bytes is 1.5"),  # type: ignore[arg-type]
    ("select", lambda: lz77.ParserBatch(2).select([0, "1"]), "stream is '1'"),  # type: ignore[list-item]
    ("reconstruct", lambda: lz77.reconstruct(b"abc"), "tokens is b'abc'"),  # type: ignore[arg-type]
    ("max_run", lambda: lz77.literal_runs(lz77.parse(b"a"), 1.5), "max_run is 1.5"),  # type: ignore[arg-type]
    ("encode", lambda: arithmetic.Encoder().encode([1], TABLE, precision=16), "encode_weights"),  # type: ignore[call-arg]
    ("encode floats", lambda: arithmetic.Encoder().encode([1.5], TABLE), "symbols must be"),
    ("table", lambda: arithmetic.Encoder().encode([1], "table"), "cumulative frequencies"),
    ("precision", lambda: arithmetic.Encoder().encode_weights([0], [1, 2], precision="x"), "precision"),  # type: ignore[arg-type]
    ("restore", lambda: arithmetic.Encoder().restore(7), r"restore\(snapshot\)"),  # type: ignore[arg-type]
    ("Decoder", lambda: arithmetic.Decoder(5), "code is 5"),  # type: ignore[arg-type]
    ("decode", lambda: arithmetic.Decoder(b"").decode(TABLE, 1.5), "num_symbols is 1.5"),  # type: ignore[arg-type]
    ("mixer", lambda: arithmetic.ContextMixer(log2_table_bytes=16.0), "log2_table_bytes is 16.0"),  # type: ignore[arg-type]
    ("mixer str", lambda: arithmetic.ContextMixer(log2_table_bytes=12).update("text"), "data is of type str"),  # type: ignore[arg-type]
    ("codebook", lambda: fc.equal_info.Codebook.train(b"", bits=9.5), "bits is 9.5"),  # type: ignore[arg-type]
    ("pattern", lambda: fc.equal_info.Codebook.train(b"", 9, 7), "pattern is 7"),  # type: ignore[arg-type]
    ("batch", lambda: BOOK.encode_batch("text"), "texts is 'text'"),
    ("ids", lambda: BOOK.decode([1.5]), "ids are float64 of shape .*; they must be"),
    ("threads", lambda: BOOK.encode(b"", num_threads="2"), "num_threads is '2'"),  # type: ignore[arg-type]
    ("level", lambda: fc.compress(b"", level=1.5), "level is 1.5"),  # type: ignore[arg-type]
    ("level bool", lambda: fc.compress(b"", level=True), "level is True"),
    ("method", lambda: fc.compress(b"", 5), "method is 5"),  # type: ignore[arg-type]
    ("compress", lambda: fc.compress(None), "expected str or bytes, not NoneType"),  # type: ignore[arg-type]
    ("decompress", lambda: fc.decompress(fc.compress(b""), max_output=1.5), "max_output is 1.5"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("name", "call", "message"), WRONG, ids=[name for name, *_ in WRONG])
def test_wrong_types_are_named_in_our_words(name: str, call: Callable[[], object], message: str) -> None:
    with pytest.raises(TypeError, match=message) as caught:
        call()
    assert "incompatible function arguments" not in str(caught.value)
    assert len(str(caught.value)) < 300


def test_one_bound_for_threads() -> None:
    for call in (
        lambda n: fc.compress(b"", num_threads=n),
        lambda n: fc.decompress(fc.compress(b""), num_threads=n),
        lambda n: lz77.parse_batch([b""], num_threads=n),
        lambda n: lz77.stable_counts_batch([b""], num_threads=n),
        lambda n: BOOK.encode(b"", num_threads=n),
        lambda n: arithmetic.ContextMixer(log2_table_bytes=12).distributions([b""], num_threads=n),
    ):
        for bad in (0, -1, 1 << 16, 1 << 70):
            with pytest.raises(ConfigError, match=rf"num_threads is {bad}; it must be 1 to 65535"):
                call(bad)
        call(np.int64(3))
        call(None)


@pytest.mark.parametrize("text", ["a\ud83db", "\udc00", "x\ud83d\ude00"])
def test_what_gives_text_back_refuses_surrogates(text: str) -> None:
    for call in (
        fc.compress,
        fc.archive.Compressor().update,
        lz77.parse,
        lambda t: lz77.parse_batch(["fine", t]),
        lambda t: lz77.stable_counts_batch(["fine", t]),
        lz77.IncrementalParser().append,
        BOOK.encode,
        lambda t: BOOK.encode_batch([t]),
        lambda t: fc.equal_info.Codebook.train([t], bits=9),
    ):
        with pytest.raises(SurrogateError, match="position") as caught:
            call(text)
        assert isinstance(caught.value, ValueError | DataError)
        assert caught.value.start == next(i for i, c in enumerate(text) if 0xD800 <= ord(c) < 0xE000)
    assert fc.pretokenizer.split(text, "cl100k")  # replaces, as tiktoken does


class TestWhereACodeEnds:
    @pytest.mark.parametrize("num_symbols", [0, 1, 5, 37, 4000])
    @pytest.mark.parametrize("weights", [np.ones(256), [97, 2, 1], [2**23, 1], [1]])
    def test_num_bytes_read(self, weights: Any, num_symbols: int) -> None:
        table = arithmetic.quantize(weights, 24 if len(weights) == 2 else None)
        symbols = np.random.default_rng(1).integers(0, len(weights), num_symbols)
        encoder = arithmetic.Encoder()
        encoder.encode(symbols, table)
        code = encoder.finish()
        for given in (code, iter([code[:3], code[3:]]), [code[i : i + 1] for i in range(len(code))]):
            decoder = arithmetic.Decoder(given)
            assert decoder.decode(table, num_symbols).tolist() == symbols.tolist()
            decoder.finish()
            assert decoder.num_bytes_read == len(code)
        padded = arithmetic.Decoder(code + bytes(6))
        assert padded.decode(table, num_symbols).tolist() == symbols.tolist()
        assert padded.num_bytes_read == len(code)
        with pytest.raises(FormatError, match=rf"6 bytes follow the code, which ends after {len(code)} bytes"):
            padded.finish()
        allowed = arithmetic.Decoder(code + bytes(6), allow_trailing=True)
        allowed.decode(table, num_symbols)
        allowed.finish()
        garbage = arithmetic.Decoder(code + b"garbage")
        with pytest.raises(FormatError):  # noqa: PT012 - the first symbols after which nothing fits, or the end
            garbage.decode(table, num_symbols)
            garbage.finish()

    def test_models_know_their_end(self) -> None:
        mixer, counts = arithmetic.ContextMixer(log2_table_bytes=12), arithmetic.AdaptiveFrequencies(100)
        for data in (b"", b"to be or not to be" * 20):
            assert mixer.decode(mixer.encode(data), len(data)) == data
            with pytest.raises(FormatError, match="bytes follow the code"):
                mixer.decode(mixer.encode(data) + bytes(9), len(data))
        symbols = np.arange(100)
        assert (counts.decode(counts.encode(symbols), 100) == symbols).all()
        with pytest.raises(FormatError, match="bytes follow the code"):
            counts.decode(counts.encode(symbols) + bytes(9), 100)


@pytest.mark.parametrize("precision", [2, 8, 16, 24])
def test_the_bound_of_what_a_code_costs(precision: int) -> None:
    rng = np.random.default_rng(precision)
    for weights in ([1] * 3, [2**24, 1], rng.random(4), [2**20, 2**10, 1]):
        table = arithmetic.quantize(weights, precision)
        shares = np.diff(table.astype(np.int64)) / 2**precision
        for symbols in (np.zeros(20_000, int), rng.choice(len(shares), 20_000, p=shares)):
            encoder = arithmetic.Encoder()
            encoder.encode(symbols, table)
            ideal = -math.fsum(np.log2(shares)[symbols])
            bound = ideal + 1.5 * len(symbols) * 2 ** (precision - 32) + 1
            assert encoder.num_bits_if_finished < bound + 1e-6
            assert 8 * len(encoder.finish()) < bound + 8


def test_reprs_say_settings_and_state() -> None:
    mixer = arithmetic.ContextMixer(log2_table_bytes=12)
    parser = lz77.IncrementalParser()
    parser.append(b"abc")
    for thing, expected in (
        (parser, "num_bytes=3"),
        (lz77.ParserBatch(3), "3 streams"),
        (lz77.Params(), "window=65536"),
        (arithmetic.Encoder(), "num_bits_if_finished=0"),
        (arithmetic.Decoder(b""), "num_bytes_read=0"),
        (mixer, "adaptive, num_bytes=0"),
        (arithmetic.AdaptiveFrequencies(5), "num_symbols=5"),
        (BOOK, "bits=9"),
        (fc.archive.Compressor(level=3), "level=3"),
        (fc.archive.Decompressor(max_output=5), "max_output=5"),
    ):
        assert expected in repr(thing)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (lambda: lz77.LZTokens.of([lz77.Token.literal(97)]), "from_tokens"),
        (lambda: arithmetic.Encoder().bits_if_closed, "num_bits_if_finished"),
        (lambda: arithmetic.ContextMixer(log2_table_bytes=12, window=9), "reset_interval"),
        (lambda: BOOK.forbidden_first([1]), "illegal_next_bytes"),
        (lambda: BOOK.forbidden_first_in([1]), "illegal_next_bytes_in_text"),
        (lambda: fc.equal_info.Codebook.train(b"a" * 99, 9, refinements=1), "num_rounds"),
    ],
)
def test_old_names_work_for_a_version(old: Callable[[], object], new: str) -> None:
    with pytest.warns(DeprecationWarning, match=new):
        old()
