"""What BPE's methods take and refuse: iterables, types, ids, surrogates; and streams and reprs."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from fastcompress.bpe import BPE, TokenOffsets
from fastcompress.errors import (
    ConfigError,
    DataError,
    FastcompressError,
    FormatError,
    SurrogateError,
    TokenRangeError,
    UnknownTokenError,
)

END, PAD = "<|end|>", "<|pad|>"
WORDS = ["to be or not to be, that is the question", "whether it is nobler in the mind"]
TEXTS = ["to be", "or not", "caf\u00e9", ""]


@pytest.fixture(scope="module")
def tok() -> BPE:
    return BPE.train(WORDS * 9, vocab_size=266, special_tokens=[END, PAD])


@pytest.fixture(scope="module")
def custom() -> BPE:
    return BPE.train(WORDS * 9, vocab_size=266, special_tokens=[END, PAD], pattern=r"\w+|\W+")


# ---------------------------------------------------------------------- iterables are read once


def collections_of(items: list[str]) -> list[Any]:
    return [list(items), tuple(items), iter(items), (item for item in items), dict.fromkeys(items), np.array(items)]


def test_special_tokens_of_any_iterable(tok: BPE) -> None:
    text = f"a{END}b"
    for number in range(6):
        for call in (tok.encode, tok.encode_to_numpy, tok.count, tok.encode_with_offsets):
            with pytest.raises(DataError, match="holds the special token"):
                call(text, disallowed_special=collections_of([PAD, END])[number])
            call(text, allowed_special=collections_of([END])[number])
            call("ab", disallowed_special=collections_of([END])[number])
        for batch in (tok.encode_batch, tok.encode_batch_to_numpy, tok.count_batch):
            with pytest.raises(DataError, match="holds the special token"):  # in the second text, too
                batch(["x", text], disallowed_special=collections_of([PAD, END])[number])
        assert (
            tok.encode_batch([text] * 2, allowed_special=collections_of([END])[number])
            == [tok.encode(text, allowed_special="all")] * 2
        )
        assert (
            tok.encode_batch_with_dropout([text] * 2, 0.0, seed=1, allowed_special=collections_of([END])[number])
            == [tok.encode(text, allowed_special="all")] * 2
        )


def test_batches_of_any_iterable(tok: BPE, custom: BPE) -> None:
    for tokenizer in (tok, custom):
        expected = [tokenizer.encode(text) for text in TEXTS]
        for texts in collections_of(TEXTS):
            assert tokenizer.encode_batch(texts) == expected
        for texts in collections_of(TEXTS):
            ids, offsets = tokenizer.encode_batch_to_numpy(texts)
            assert np.split(ids, offsets[1:-1].astype(int))[2].tolist() == expected[2]
        for texts in collections_of(TEXTS):
            assert tokenizer.count_batch(texts).tolist() == list(map(len, expected))
        for texts in collections_of(TEXTS):
            assert tokenizer.encode_batch_with_dropout(texts, 0.0, seed=1) == expected
        for texts in collections_of(TEXTS):
            ids = tokenizer.encode_batch_with_dropout(texts, 0.5, seed=1)
            assert tokenizer.decode_batch(iter(ids)) == TEXTS
        assert tokenizer.decode_bytes_batch(tuple(expected)) == [text.encode() for text in TEXTS]
        assert tokenizer.decode_batch(np.array([[97, 98], [99, 100]])) == ["ab", "cd"]


@pytest.mark.parametrize("name", ["encode_batch", "encode_batch_to_numpy", "count_batch", "encode_batch_with_dropout"])
def test_batches_that_are_none(tok: BPE, name: str) -> None:
    method: Callable[..., Any] = getattr(tok, name)
    seed = {"seed": 1} if "dropout" in name else {}
    for text in ("text", b"text", bytearray(b"text"), memoryview(b"text")):
        with pytest.raises(TypeError, match=r"texts is one text .*; give a list of texts, or call (encode|count)"):
            method(text, **seed)
    for bad in (5, None, 1.5, np.array("a")):
        with pytest.raises(TypeError, match=r"texts is .*it must be an iterable of str or bytes|0-d array"):
            method(bad, **seed)
    for bad in (5, None, ["a"], 1.5):
        with pytest.raises(TypeError, match=r"texts\[2\] is of type .*; expected str or bytes"):
            method(iter(["a", b"b", bad]), **seed)


# ---------------------------------------------------------------------- types in our words


BAD_TEXTS: list[Any] = [5, None, ["a"], 1.5, ("a",), {"a": 1}]


@pytest.mark.parametrize("text", BAD_TEXTS, ids=str)
def test_texts_that_are_none(tok: BPE, custom: BPE, text: Any) -> None:
    for tokenizer in (tok, custom, BPE.train("", vocab_size=256)):
        for call in (
            tokenizer.encode,
            tokenizer.encode_ordinary,
            tokenizer.encode_to_numpy,
            tokenizer.count,
            tokenizer.encode_with_offsets,
            lambda text, tokenizer=tokenizer: tokenizer.encode(text, disallowed_special=()),
            lambda text, tokenizer=tokenizer: tokenizer.encode_with_dropout(text, seed=1),
        ):
            with pytest.raises(TypeError, match=r"text is of type \w+; expected str or bytes"):
                call(text)


@pytest.mark.parametrize("bad", [True, 1.5, "2", np.float64(2), np.bool_(1), [2]], ids=str)
def test_numbers_of_threads_that_are_none(tok: BPE, bad: Any) -> None:
    for call in (
        lambda: tok.encode("a", num_threads=bad),
        lambda: tok.encode_ordinary("a", num_threads=bad),
        lambda: tok.encode_batch(["a"], bad),
        lambda: tok.encode_batch_to_numpy(["a"], bad),
        lambda: tok.count_batch(["a"], bad),
        lambda: tok.encode_batch_with_dropout(["a"], seed=1, num_threads=bad),
        lambda: tok.decode_batch([[97]], num_threads=bad),
        lambda: tok.decode_bytes_batch([[97]], num_threads=bad),
        lambda: BPE.train("a", vocab_size=256, num_threads=bad),
        lambda: BPE.count_pretokens("a", num_threads=bad),
    ):
        with pytest.raises(TypeError, match=r"num_threads is .*; it must be an integer, or None"):
            call()
    for number in (0, -1, 1 << 16, 1 << 70):
        with pytest.raises(ConfigError, match=r"num_threads is .*; it must be 1 to 65535"):
            tok.encode_batch(["a"], number)
        for encode in (tok.encode, tok.encode_ordinary, tok.encode_to_numpy):
            with pytest.raises(ConfigError, match=r"num_threads is .*; it must be 1 to 65535"):
                encode("a", num_threads=number)
    assert tok.encode_batch(["a"], np.int64(2)) == [[97]]  # type: ignore[arg-type]
    assert tok.encode("a", num_threads=np.uint8(1)) == [97]  # type: ignore[arg-type]


@pytest.mark.parametrize("setting", ["vocab_size", "min_frequency", "max_token_length", "max_memory_bytes"])
def test_settings_of_training(setting: str) -> None:
    for bad in (True, 260.0, "260", [260]):
        with pytest.raises(TypeError, match=f"{setting} is .*; it must be an integer"):
            BPE.train("a b", **{"vocab_size": 256, setting: bad})  # type: ignore[arg-type]
    BPE.train("a b", **{"vocab_size": 256, setting: np.int32(256)})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: BPE.train("a", vocab_size=256, pattern=5), "pattern is 5"),
        (lambda: BPE.train("a", vocab_size=256, on_progress=5), "on_progress is 5"),
        (lambda: BPE.train("a", vocab_size=256, initial_alphabet="a"), "initial_alphabet is"),
        (lambda: BPE.count_pretokens("a", pattern=None), "pattern is None"),
        (lambda: BPE.count_pretokens("a").merge(5), "must be PretokenCounts"),
        (lambda: BPE("cl100k_base"), "make a BPE with BPE.train, from_tiktoken"),
        (lambda: BPE.from_bytes(5), "blob is 5 .int.; it must be bytes"),
        (lambda: BPE.from_bytes("text"), "blob is 'text'"),
        (lambda: type(BPE.count_pretokens("")).from_bytes("x"), "blob is 'x'"),
        (lambda: BPE.from_ranks([1], pattern="gpt2"), "ranks is of type list; it must map"),
        (lambda: BPE.from_ranks({}, pattern=None), "pattern is None"),
        (lambda: BPE.from_ranks({b"a": 1}, pattern="gpt2", special_tokens=["x"]), "must map each text to its id"),
        (lambda: BPE.from_tiktoken(5), "name_or_path is 5"),
        (lambda: BPE.train("", vocab_size=256).decode([97], errors=None), "errors is None"),
        (lambda: BPE.train("", vocab_size=256).decode_batch([[97]], errors=5), "errors is 5"),
        (lambda: BPE.train("", vocab_size=256).decode_stream(5), "errors is 5"),
        (lambda: BPE.train("", vocab_size=256).token_id(5), "token is 5"),
        (lambda: BPE.train("", vocab_size=256).token_bytes("a"), "token id is of type str; it must be an integer"),
        (lambda: BPE.train("", vocab_size=256).token_bytes(True), "token id is of type bool; it must be an integer"),
        (lambda: BPE.train("", vocab_size=256).encode_by_merges("a"), "pretoken is 'a'"),
        (lambda: BPE.train("", vocab_size=256).encode_with_dropout("a", "x", seed=1), "dropout is 'x'"),
        (lambda: BPE.train("", vocab_size=256).encode_with_dropout("a", True, seed=1), "dropout is True"),
        (lambda: BPE.train("", vocab_size=256).encode_with_dropout("a", seed=1.5), "seed is 1.5"),
        (lambda: BPE.train("", vocab_size=256).encode("a", allowed_special=None), "allowed_special must be 'all' or"),
        (lambda: BPE.train("", vocab_size=256).encode("a", disallowed_special="a"), "disallowed_special must be 'all'"),
        (lambda: BPE.train("", vocab_size=256).encode("a", disallowed_special=[5]), "item 0 is 5"),
    ],
)
def test_types_in_our_words(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(TypeError, match=message) as caught:
        call()
    assert "incompatible function arguments" not in str(caught.value)


def test_a_name_that_is_nearly_published() -> None:
    with pytest.raises(ConfigError, match="did you mean 'cl100k_base'"):
        BPE.from_tiktoken("cl100k-base")


# ---------------------------------------------------------------------- ids


@pytest.mark.parametrize(
    ("tokens", "error", "message"),
    [
        ([97, 1.5], TypeError, "token id at position 1 is of type float; it must be an integer"),
        ([97, None], TypeError, "at position 1 is of type NoneType"),
        ([97, "a"], TypeError, "at position 1 is of type str"),
        ([True], TypeError, "at position 0 is of type bool"),
        ([[97]], TypeError, "at position 0 is of type list"),
        ((97, 2.0), TypeError, "at position 1 is of type float"),
        ([97, -1], TokenRangeError, "-1 at position 1"),
        ([97, 1 << 32], TokenRangeError, "4294967296 at position 1"),
        ([97, 1 << 80], TokenRangeError, "at position 1"),
        ([97, 5000], UnknownTokenError, "5000 at position 1"),
        ("ab", TypeError, "tokens is 'ab' .str.; expected a one-dimensional sequence"),
        (b"ab", TypeError, "tokens is b'ab'"),
        (5, TypeError, "tokens is 5"),
        (None, TypeError, "tokens is None"),
        ((i for i in [97]), TypeError, "tokens is of type generator"),
        ({97: 1}, TypeError, "tokens is of type dict"),
        (np.array([97.0]), TypeError, "array of float64; expected integers"),
        (np.array([True]), TypeError, "array of bool"),
        (np.array(["a"]), TypeError, "array of <U1"),
        (np.array([[97]]), TypeError, r"array of shape \(1, 1\)"),
        (np.empty((0, 3), int), TypeError, r"array of shape \(0, 3\)"),
        (np.array(97), TypeError, "one-dimensional"),
        (np.array([97, None]), TypeError, "at position 1 is of type NoneType"),
        (np.array([97, 1.5], object), TypeError, "at position 1 is of type float"),
        (np.array([97, -1]), TokenRangeError, "-1 at position 1"),
        (np.array([97, 1 << 32]), TokenRangeError, "4294967296 at position 1"),
        (np.array([97, 1 << 63], np.uint64), TokenRangeError, "9223372036854775808 at position 1"),
        (np.array([97, 1 << 80], object), TokenRangeError, "at position 1"),
    ],
)
def test_ids_are_never_cast(tok: BPE, tokens: Any, error: type[Exception], message: str) -> None:
    for call in (tok.decode, tok.decode_bytes):
        with pytest.raises(error, match=message):
            call(tokens)
    for batch in (tok.decode_batch, tok.decode_bytes_batch):
        with pytest.raises(error, match=message.replace("tokens is", r"batch\[1\] is")):
            batch([[97], tokens])


def test_ids_of_any_integer_type(tok: BPE) -> None:
    for dtype in (np.uint8, np.int8, np.uint16, np.int16, np.uint32, np.int32, np.uint64, np.int64, object):
        assert tok.decode(np.array([97, 98], dtype)) == "ab"
    assert tok.decode([np.int64(97), np.uint8(98)]) == tok.decode((97, 98)) == "ab"  # type: ignore[list-item]
    assert tok.decode([]) == tok.decode(np.array([])) == tok.decode(()) == ""
    assert tok.decode(np.arange(97, 105)[::2]) == "aceg"


# ---------------------------------------------------------------------- one rule for surrogates


def test_surrogates_in_what_is_encoded_are_replaced(tok: BPE, custom: BPE) -> None:
    for text, same in [("a\ud83db", "a\ufffdb"), ("\ud83d\ude00", "\U0001f600"), ("\ude00\ud83d", "\ufffd\ufffd")]:
        for tokenizer in (tok, custom):
            expected = tokenizer.encode(same)
            assert tokenizer.encode(text) == tokenizer.encode_ordinary(text) == expected
            assert tokenizer.encode_batch([text]) == [expected]
            assert tokenizer.encode_to_numpy(text).tolist() == expected
            assert tokenizer.encode_with_offsets(text).tokens.tolist() == expected
            assert tokenizer.count(text) == tokenizer.count_batch([text])[0] == len(expected)
            assert tokenizer.encode_with_dropout(text, 1.0, seed=1) == list(same.encode())
        assert BPE.count_pretokens(text) == BPE.count_pretokens(same)
        assert BPE.count_pretokens(text, special_tokens=["a"]) == BPE.count_pretokens(same, special_tokens=["a"])


def test_surrogates_in_what_is_looked_up(tok: BPE) -> None:
    for text in ("\ud800", "a\udfff"):
        with pytest.raises(UnknownTokenError, match="surrogate") as caught:
            tok.token_id(text)
        assert isinstance(caught.value, (SurrogateError, KeyError))
        assert pickle.loads(pickle.dumps(caught.value)).start == len(text) - 1
    assert tok.encode("a", allowed_special={"\ud800"}) == [97]
    assert tok.encode("a", disallowed_special={"\ud800"}) == [97]
    assert tok.encode("\ufffd", disallowed_special={"\ud800"}) == [*"\ufffd".encode()]
    with pytest.raises(DataError, match="offset 1"):
        tok.encode("a\ud800", disallowed_special=["\ud800"])


def test_surrogates_in_what_is_stored_are_refused() -> None:
    ranks = {bytes([byte]): byte for byte in range(256)}
    for call in (
        lambda: BPE.train("a", vocab_size=257, special_tokens=["\ud800"]),
        lambda: BPE.train("a", vocab_size=256, pattern="a\ud800+"),
        lambda: BPE.count_pretokens("a", pattern="\ud800"),
        lambda: BPE.count_pretokens("a", special_tokens=["\ud800"]),
        lambda: BPE.from_ranks(ranks, pattern="\ud800"),
        lambda: BPE.from_ranks(ranks, pattern="gpt2", special_tokens={"\ud800": 256}),
    ):
        with pytest.raises(ConfigError, match=r"'.*\\ud800.*'; it must not hold surrogates \(position \d\)"):
            call()


def test_the_error_for_surrogates() -> None:
    with pytest.raises(UnicodeEncodeError) as caught:
        "a\ud83db".encode()
    error = SurrogateError(*caught.value.args)
    assert isinstance(error, (FastcompressError, DataError))
    assert isinstance(error, UnicodeEncodeError)
    assert error.start == 1
    assert str(error).startswith(r"the text has a surrogate, '\ud83d', at position 1")
    for clone in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert str(clone) == str(error)


# ---------------------------------------------------------------------- stream decoder


def test_a_strict_stream_raises_once(tok: BPE) -> None:
    stream = tok.decode_stream("strict")
    assert stream.push(0xE2) == ""
    with pytest.raises(UnicodeDecodeError) as caught:
        stream.push(ord("A"))
    assert caught.value.object == b"\xe2A"
    assert [stream.push(byte) for byte in "B\u00e9".encode()] == ["B", "", "\u00e9"]
    stream.push(0xE2)
    with pytest.raises(UnicodeDecodeError):
        stream.finish()
    assert stream.push(ord("C")) + stream.finish() == "C"
    with pytest.raises(UnicodeDecodeError):
        stream.push(0xFF)
    assert stream.finish() == ""


@pytest.mark.parametrize("errors", ["replace", "ignore", "backslashreplace", "surrogateescape"])
def test_a_stream_equals_decode(tok: BPE, errors: str) -> None:
    ids = [*b"\xe2A\xff\xf0\x9f\x98\x80\xf0\x9f", tok.token_id(END), *b"\xc3"]
    stream = tok.decode_stream(errors)
    for _ in range(2):
        assert "".join(map(stream.push, ids)) + stream.finish() == tok.decode(ids, errors)
    with pytest.raises(UnknownTokenError):
        stream.push(5000)
    with pytest.raises(TypeError, match="must be an integer"):
        stream.push(1.5)  # type: ignore[arg-type]


def test_an_unknown_error_handler(tok: BPE) -> None:
    with pytest.raises(LookupError, match="bogus"):
        tok.decode_stream("bogus")


# ---------------------------------------------------------------------- reprs, old names


def test_reprs_say_settings_and_state(tok: BPE) -> None:
    assert repr(tok).startswith("<BPE vocab_size=266 pattern='cl100k' special_tokens=2 fingerprint=")
    stream = tok.decode_stream("strict")
    stream.push(0xE2)
    assert repr(stream) == "<StreamDecoder errors='strict' held=b'\\xe2'>"
    assert repr(tok.encode_with_offsets("\u00e9")) == "<TokenOffsets num_tokens=2 num_bytes=2>"
    counts = BPE.count_pretokens("a b a", special_tokens=[END])
    assert repr(counts) == "<PretokenCounts pattern='cl100k' distinct=3 special_tokens=['<|end|>']>"


def test_old_names() -> None:
    with pytest.warns(DeprecationWarning, match="from_lengths"):
        TokenOffsets.of(np.array([97], np.uint32), np.array([1]), b"a")


# ---------------------------------------------------------------------- the vocabulary file


def test_metadata_that_is_not_json(tok: BPE) -> None:
    for metadata, message in [('{"a":', "metadata is not JSON"), ("5", "not a JSON object"), ("[" * 9000, "not JSON")]:
        core = type(tok._core).from_merges(
            tokens=[bytes([byte]) for byte in range(256)],
            merges=np.empty((0, 3), np.uint32),
            pattern="gpt2",
            added_tokens=[],
            ignore_merges=False,
            prefix_space=False,
            nfc=False,
            metadata=metadata,
        )
        with pytest.raises(FormatError, match=message):
            BPE.from_bytes(core.serialize())
