"""The contract of `Codec`, run over every codec: invariants 1, 2 and 7, arguments, identity, copies and files."""

from __future__ import annotations

import copy
import functools
import itertools
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastcompress.codec
from fastcompress.arithmetic import ContextMixer
from fastcompress.bpe import BPE
from fastcompress.codec import (
    ArithmeticCodec,
    AuxiliaryModel,
    BPECodec,
    ByteCodec,
    CharCodec,
    ChatCodec,
    Codec,
    CompiledPaperCodec,
    EntropyByteCodec,
    EqualInfoCodec,
    GreedyDictionaryCodec,
    GzipCodec,
    LZ77Codec,
    LZPCodec,
    PaperEqualInfoCodec,
    ProxyCodec,
    WindowsCodec,
    codec_from_spec,
    load_codec,
    save_codec,
)
from fastcompress.equal_info import Codebook, CountModel
from fastcompress.equal_info.compiled_paper import CompiledWindows
from fastcompress.equal_info.paper import PaperWindows, frequencies
from fastcompress.errors import ConfigError, DataError
from fastcompress.greedy_dictionary import GreedyDictionary
from fastcompress.lz77 import Params

SAMPLE = "It was the best of times, it was the worst of times; <|end|> ééé 123 1234 \U0001f600\n".encode() * 9
CHARACTERS = sorted(set(SAMPLE.decode()))


@functools.cache
def mixer(window: int | None = None) -> ContextMixer:
    return ContextMixer.train(SAMPLE * 3, log2_table_bytes=14, reset_interval=window).freeze()


@functools.cache
def codebook(bits: int, pattern: str | None = None) -> Codebook:
    return Codebook.train(SAMPLE, bits=bits, pattern=pattern, num_rounds=1)


def paper(token_bits: int) -> PaperEqualInfoCodec:
    windows = PaperWindows(frequencies(CountModel(SAMPLE, 2), 14), 16, precision=14)
    return PaperEqualInfoCodec(windows, "a count model of the sample", token_bits)


def compiled_paper(token_bits: int) -> CompiledPaperCodec:
    windows = CompiledWindows.of_model(CountModel(SAMPLE, 2), max_symbols=20)
    return CompiledPaperCodec(windows, token_bits, auxiliary=AuxiliaryModel(1e9, 10.0))


@dataclass(frozen=True)
class Case:
    """A codec to test, and which promises it makes beyond the common ones."""

    make: Callable[[], Codec]
    decodes_prefixes: bool = True  # any first ids of an encoding decode to a prefix of the text
    is_saved: bool = True


CASES = {
    "byte": Case(ByteCodec),
    "byte-entropy": Case(lambda: EntropyByteCodec.train([SAMPLE], order=3, max_contexts=200)),
    "char": Case(lambda: CharCodec(CHARACTERS)),
    "bpe-bytes": Case(lambda: BPECodec(BPE.train([SAMPLE], vocab_size=256))),
    "bpe-special": Case(lambda: BPECodec(BPE.train([SAMPLE], vocab_size=290, special_tokens=("<|end|>",)))),
    "bpe-unsplit": Case(lambda: BPECodec(BPE.train([SAMPLE], vocab_size=300, pattern="none"))),
    "lz77": Case(LZ77Codec),
    "lz77-small": Case(lambda: LZ77Codec(Params(window=20, min_length=1, max_length=3, depth=2))),
    "lz77-long-minimum": Case(lambda: LZ77Codec(Params(window=300, min_length=9, max_length=40))),
    "lz77-lazy": Case(lambda: LZ77Codec(Params(min_length=1, parse="lazy"))),
    "buckets": Case(lambda: LZ77Codec(alphabet="buckets")),
    "buckets-unlimited": Case(
        lambda: LZ77Codec(Params(window=None, min_length=2, max_length=None, depth=None, parse="lazy"), "buckets")
    ),
    "buckets-small": Case(lambda: LZ77Codec(Params(window=5, min_length=3, max_length=3), "buckets")),
    "lzp": Case(LZPCodec),
    "lzp-small": Case(lambda: LZPCodec(order=1, min_length=1, max_length=4)),
    "lzp-other": Case(lambda: LZPCodec(order=2, min_length=5)),
    "gzip": Case(GzipCodec),
    "gzip-quick": Case(lambda: GzipCodec(1)),
    "gzip-16": Case(lambda: GzipCodec(token_bits=16)),
    "equal-info-10": Case(lambda: EqualInfoCodec(codebook(10))),
    "equal-info-16": Case(lambda: EqualInfoCodec(codebook(16))),
    "equal-info-halves": Case(lambda: EqualInfoCodec(codebook(16), token_bits=8)),
    "equal-info-pattern": Case(lambda: EqualInfoCodec(codebook(10, "cl100k"))),
    "dictionary": Case(lambda: GreedyDictionaryCodec(GreedyDictionary.train(SAMPLE, 310, num_rounds=2))),
    "dictionary-unsplit": Case(
        lambda: GreedyDictionaryCodec(GreedyDictionary.train(SAMPLE, 300, within_words=False, num_rounds=1))
    ),
    **{
        f"windows-{bits}-by-{token_bits}": Case(
            lambda bits=bits, token_bits=token_bits: WindowsCodec(mixer(16), bits, token_bits),  # type: ignore[misc]
            decodes_prefixes=False,
        )
        for bits, token_bits in ((24, 8), (32, 16), (64, 16), (104, 8), (128, 16))
    },
    "arithmetic-8": Case(lambda: ArithmeticCodec(mixer(), 8), decodes_prefixes=False),
    "arithmetic-16": Case(lambda: ArithmeticCodec(mixer(), 16), decodes_prefixes=False),
    "chat-byte": Case(lambda: ChatCodec(ByteCodec())),
    "chat-char": Case(lambda: ChatCodec(CharCodec(CHARACTERS))),
    "chat-lzp": Case(lambda: ChatCodec(LZPCodec())),
    "proxy-dictionary": Case(lambda: ProxyCodec(GreedyDictionaryCodec(GreedyDictionary.train(SAMPLE, 300)))),
    "proxy-lz77": Case(lambda: ProxyCodec(LZ77Codec(), raw_share=0.5, piece_bytes=30)),
    "paper-16": Case(lambda: paper(16), is_saved=False),
    "paper-halves": Case(lambda: paper(8), is_saved=False),
    "paper-compiled": Case(lambda: compiled_paper(16)),
    "paper-compiled-halves": Case(lambda: compiled_paper(8)),
}
CODECS: dict[str, Codec] = {name: case.make() for name, case in CASES.items()}
every_codec = pytest.mark.parametrize("name", CASES)
few = settings(max_examples=25, deadline=None)

# Text of the sample's characters, so that every codec has ids for it; and bytes of every kind.
texts = st.one_of(
    st.text(CHARACTERS, max_size=60),
    st.lists(st.sampled_from(["it was ", "the best ", "of", "ééé", "<|end|>", " ", "aaaa" * 20]), max_size=20).map(
        "".join
    ),
).map(lambda text: "".join(character for character in text if character in CHARACTERS).encode())
any_bytes = st.one_of(
    st.binary(max_size=120),
    texts,
    st.tuples(texts, st.integers(0, 20), st.binary(max_size=3)).map(lambda t: t[2] + t[0][t[1] :]),
    st.sampled_from([bytes(range(256)), bytes(3000), b"\xff", b"\xed\xa0\x80 \xc3 \xf0\x9f"]),
)


def some_text(codec: Codec) -> str:
    """A short text that the codec encodes: published windows refuse most."""
    candidates = (SAMPLE[begin : begin + size].decode() for size in (12, 3, 2, 1) for begin in range(40))
    return next(text for text in candidates if encode(codec, text) is not None)


def encode(codec: Codec, data: str | bytes) -> list[int] | None:
    """The ids; None for text that a codec that is not lossless refuses."""
    try:
        return codec.encode(data).tolist()
    except DataError:
        assert not codec.lossless
        return None


def test_every_codec_of_the_package_is_here() -> None:
    exported = [getattr(fastcompress.codec, name) for name in fastcompress.codec.__all__]
    types = {value for value in exported if isinstance(value, type) and hasattr(value, "byte_lengths")} - {Codec}
    assert {type(codec) for codec in CODECS.values()} == types


@every_codec
def test_what_a_codec_says_of_itself(name: str) -> None:
    codec = CODECS[name]
    assert isinstance(codec, Codec)
    assert isinstance(codec.name, str)
    assert codec.name
    assert len(bytes.fromhex(codec.fingerprint)) == 32
    assert type(codec.vocab_size) is int
    assert 1 <= codec.vocab_size < 1 << 32
    assert isinstance(codec.lossless, bool)
    assert isinstance(codec.unambiguous, bool)
    assert codec.max_unstable_tokens is None or codec.max_unstable_tokens >= 0


BY_TOKEN = {
    "byte", "byte-entropy", "char", "bpe-bytes", "bpe-special", "bpe-unsplit", "equal-info-10", "equal-info-16",
    "equal-info-pattern", "chat-byte", "chat-char", "dictionary", "dictionary-unsplit",
}  # fmt: skip


def test_codecs_that_decode_by_token_say_so() -> None:
    assert {name for name, codec in CODECS.items() if getattr(codec, "decodes_by_token", False)} == BY_TOKEN


def test_codecs_that_are_not_incremental_say_so() -> None:
    """Those whose prefixes do not decode, and those that nothing can follow."""
    found = {name for name, codec in CODECS.items() if not getattr(codec, "is_incremental", True)}
    not_prefixes = {name for name, case in CASES.items() if not case.decodes_prefixes}
    assert found == not_prefixes | {"gzip", "gzip-quick", "gzip-16"}


@pytest.mark.parametrize("name", sorted(BY_TOKEN))
@few
@given(data=texts, seed=st.integers(0, 1000))
def test_codecs_that_decode_by_token_do(name: str, data: bytes, seed: int) -> None:
    codec = CODECS[name]
    for ids in (codec.encode(data), np.random.default_rng(seed).integers(codec.vocab_size, size=50)):
        assert codec.decode(ids) == b"".join(codec.decode([token]) for token in ids)


def test_no_two_are_taken_for_one_another() -> None:
    assert len({codec.fingerprint for codec in CODECS.values()}) == len(CODECS)
    assert len(set(CODECS.values())) == len(CODECS)


# --- Encoding and decoding -------------------------------------------------------------------------------


@every_codec
@few
@given(data=any_bytes)
def test_round_trip(name: str, data: bytes) -> None:
    codec, case = CODECS[name], CASES[name]
    if encode(codec, data) is None:
        return
    ids = codec.encode(data)
    assert (ids.dtype, ids.ndim) == (np.uint32, 1)
    assert (ids < codec.vocab_size).all()
    assert codec.decode(ids) == data
    assert codec.encode(data).tolist() == ids.tolist()
    lengths = codec.byte_lengths(ids)
    assert (lengths.dtype, lengths.shape) == (np.int64, ids.shape)
    assert (lengths >= 0).all()
    assert lengths.sum() == len(data)
    if case.decodes_prefixes and len(ids) < 300:
        ends = itertools.accumulate(lengths.tolist(), initial=0)
        assert [codec.decode(ids[:count]) for count in range(len(ids) + 1)] == [data[:end] for end in ends]


@every_codec
def test_the_sample_and_nothing(name: str) -> None:
    codec = CODECS[name]
    if not isinstance(codec, PaperEqualInfoCodec):  # it refuses most texts
        assert codec.decode(codec.encode(SAMPLE)) == SAMPLE
    end = [] if not isinstance(codec, GzipCodec) else [3, 0] if codec.token_bits == 8 else [3 << 8]
    end = [codec.bytes_mark] if isinstance(codec, ProxyCodec) else end
    assert codec.encode(b"").tolist() == end  # deflate marks its end, and a proxy bytes
    assert codec.decode(codec.encode(b"")) == codec.decode(codec.encode("")) == b""
    for nothing in ([], (), np.zeros(0, np.uint32), np.zeros(0)):
        assert codec.decode(nothing) == b""
        assert codec.byte_lengths(nothing).tolist() == []
        assert codec.byte_lengths(nothing).dtype == np.int64


@every_codec
@few
@given(data=any_bytes, more=any_bytes)
def test_all_but_the_unstable_tail_stays_on_append(name: str, data: bytes, more: bytes) -> None:
    codec = CODECS[name]
    before, after = encode(codec, data), encode(codec, data + more)
    if codec.max_unstable_tokens is None or before is None or after is None:
        return
    num_stable = max(0, len(before) - codec.max_unstable_tokens)
    assert before[:num_stable] == after[:num_stable]


# --- Arguments -------------------------------------------------------------------------------------------


@every_codec
def test_text_is_str_or_bytes(name: str) -> None:
    codec = CODECS[name]
    text = some_text(codec)
    expected = codec.encode(text.encode()).tolist()
    data = bytearray(text.encode())
    for same in (text, data, memoryview(data), np.frombuffer(data, np.uint8)):
        assert codec.encode(same).tolist() == expected  # type: ignore[arg-type]
    assert encode(codec, "é") == encode(codec, "é".encode())


@every_codec
def test_surrogates_are_refused(name: str) -> None:
    for text, position in (("a\ud83db", 1), ("\udcff", 0), ("\ud83d\ude00", 0)):
        with pytest.raises(DataError, match=rf"a surrogate, '\\u{ord(text[position]):04x}', at position {position}"):
            CODECS[name].encode(text)


@every_codec
@pytest.mark.parametrize(
    "wrong",
    [5, None, [97], ["a"], np.zeros(3), np.zeros(3, np.uint16), object()],
    ids=lambda value: type(value).__name__,
)
def test_what_is_no_text_is_a_type_error(name: str, wrong: object) -> None:
    with pytest.raises(TypeError, match="it must be str or bytes"):
        CODECS[name].encode(wrong)  # type: ignore[arg-type]


@every_codec
def test_ids_out_of_range_are_named_with_their_position(name: str) -> None:
    codec = CODECS[name]
    end = codec.vocab_size
    for call in (codec.decode, codec.byte_lengths):
        for bad in (end, 2**32 - 1, 2**32, 2**32 + 1, 2**63 - 1, 2**63, 2**64, 10**30, -1, -(2**32), -(10**30)):
            with pytest.raises(DataError, match=rf"id {bad} at position 2 is outside \[0, {end}\) of {codec.name}"):
                call([0, 1, bad, 0])
        with pytest.raises(DataError, match="id -1 at position 1"):
            call([0, -1, 2**63])
        for dtype in (np.int64, np.uint64):
            with pytest.raises(DataError, match=f"id {end} at position 0"):
                call(np.array([end], dtype))


@every_codec
@pytest.mark.parametrize(
    "wrong",
    [
        [0.5],
        [1.0],
        np.array([1.0]),
        np.array([np.nan]),
        [[1, 2]],
        [[]],
        [[1], [2, 3]],
        ["1"],
        "12",
        b"12",
        [b"1"],
        [True],
        [None],
        None,
        5,
        np.zeros((2, 0), np.uint32),
        np.array([1], object),
    ],
    ids=repr,
)
def test_ids_of_a_wrong_type_are_a_type_error(name: str, wrong: object) -> None:
    codec = CODECS[name]
    for call in (codec.decode, codec.byte_lengths):
        with pytest.raises(TypeError, match="they must be one-dimensional integers"):
            call(wrong)  # type: ignore[arg-type]


@every_codec
@pytest.mark.parametrize("dtype", [np.int16, np.uint16, np.int64, np.uint64, ">u4"])
def test_ids_of_any_integer_type(name: str, dtype: str) -> None:
    codec = CODECS[name]
    data = some_text(codec).encode()
    ids = codec.encode(data)
    if ids.max() <= np.iinfo(dtype).max:
        wide = np.repeat(ids.astype(dtype), 2)[::2]  # not contiguous either
        assert codec.decode(wide) == codec.decode(ids.tolist()) == codec.decode(tuple(ids.tolist())) == data
        assert codec.byte_lengths(wide).tolist() == codec.byte_lengths(ids).tolist()


@every_codec
@few
@given(ids=st.lists(st.integers(0, 2**32 - 1), max_size=30), small=st.booleans())
def test_ids_from_nowhere_decode_or_are_refused(name: str, ids: list[int], small: bool) -> None:
    codec = CODECS[name]
    given_ids = np.array(ids, np.uint64) % np.uint64(min(codec.vocab_size, 400) if small else codec.vocab_size)
    try:
        data = codec.decode(given_ids)
    except DataError:
        return
    assert codec.byte_lengths(given_ids).sum() == len(data)


# --- Identity --------------------------------------------------------------------------------------------


@every_codec
def test_equality_is_that_of_type_and_fingerprint(name: str) -> None:
    codec, again = CODECS[name], CASES[name].make()
    assert codec == again
    assert hash(codec) == hash(again)
    assert codec != "byte"
    assert codec.__eq__(None) is NotImplemented  # type: ignore[comparison-overlap]
    assert all(codec != other for key, other in CODECS.items() if key != name)


@every_codec
def test_repr_says_type_settings_and_fingerprint(name: str) -> None:
    codec = CODECS[name]
    shown = repr(codec)
    assert shown.startswith(f"<{type(codec).__name__} ")
    assert f"vocab_size={codec.vocab_size}" in shown
    assert f"fingerprint={codec.fingerprint[:12]}" in shown
    assert " at 0x" not in shown
    assert len(shown) < 400


def test_reprs() -> None:
    fingerprint = ByteCodec.fingerprint[:12]
    assert repr(ByteCodec()) == f"<ByteCodec vocab_size=256 fingerprint={fingerprint}>"
    assert "order=1 min_length=1 max_length=4" in repr(CODECS["lzp-small"])
    assert "window_bits=64 token_bits=16" in repr(CODECS["windows-64-by-16"])
    assert "params=Params(window=20, min_length=1, max_length=3, depth=2, parse='greedy')" in repr(CODECS["lz77-small"])
    assert "alphabet='fields'" in repr(CODECS["lz77-small"])


@every_codec
def test_copies_and_pickles_are_equal(name: str) -> None:
    codec = CODECS[name]
    assert copy.copy(codec) == copy.deepcopy(codec) == codec
    if type(codec) is PaperEqualInfoCodec:  # its model is a function, which pickle refuses
        with pytest.raises((pickle.PicklingError, AttributeError)):
            pickle.dumps(codec)
        return
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        again = pickle.loads(pickle.dumps(codec, protocol))
        assert again == codec
        assert (again.name, again.max_unstable_tokens) == (codec.name, codec.max_unstable_tokens)
        assert encode(again, SAMPLE) == encode(codec, SAMPLE)


@every_codec
def test_saved_codecs_come_back(name: str, tmp_path: Path) -> None:
    codec, path = CODECS[name], tmp_path / "codec.json"
    path.write_text("what was here before")
    if not CASES[name].is_saved:
        with pytest.raises(ConfigError, match="registered"):
            save_codec(codec, path)
        return
    save_codec(codec, path)
    again = load_codec(path)
    assert again == codec == codec_from_spec(str(path))
    assert (again.name, again.max_unstable_tokens) == (codec.name, codec.max_unstable_tokens)
    assert encode(again, SAMPLE) == encode(codec, SAMPLE)
    assert [entry.name for entry in tmp_path.iterdir()] == ["codec.json"]
