"""Arguments that people get wrong: refused in our words, with the argument's name, or taken for what they mean."""

from __future__ import annotations

import contextlib
import copy
import io
import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastcompress as fc
from fastcompress import archive, arithmetic, equal_info, greedy_dictionary, lz77, pretokenizer
from fastcompress.bpe import BPE, PretokenCounts
from fastcompress.cli import main
from fastcompress.codec import (
    ArithmeticCodec,
    BPECodec,
    ByteCodec,
    CharCodec,
    EqualInfoCodec,
    GzipCodec,
    LZ77Codec,
    LZPCodec,
    WindowsCodec,
    bigram_coverage,
    codec_from_spec,
)
from fastcompress.data.corpora import load_corpus, split_documents
from fastcompress.data.shards import TokenDataset, write_shards
from fastcompress.errors import ConfigError, DataError, FormatError

TOK = BPE.train(["to be or not to be"] * 8, vocab_size=260, pattern="whitespace")
TABLE = arithmetic.quantize([5, 2, 1])


def any_of(value: object) -> Any:
    return value


WRONG_TYPES: dict[str, tuple[Callable[[], object], str]] = {
    "quantize precision": (lambda: arithmetic.quantize([1, 2], any_of(12.0)), "precision is 12.0"),
    "quantize precision bool": (lambda: arithmetic.quantize([1, 2], True), "precision is True"),
    "quantize_logits precision": (lambda: arithmetic.quantize_logits([1.0, 2.0], "12"), "precision is '12'"),
    "default_precision": (lambda: arithmetic.default_precision(any_of(2.5)), "num_symbols is 2.5"),
    "Decoder str": (lambda: arithmetic.Decoder(any_of("abc")), "code is 'abc'"),
    "Decoder pieces": (lambda: arithmetic.Decoder(any_of([1])).decode(TABLE, 1), "piece of code is 1"),
    "mixer documents": (lambda: arithmetic.ContextMixer.train(any_of(5), log2_table_bytes=12), "source is 5"),
    "mixer path": (lambda: arithmetic.ContextMixer.load(any_of(None)), "path is None"),
    "select": (lambda: lz77.ParserBatch(2).select(any_of(1)), "sources is 1"),
    "train on a mapping": (lambda: BPE.train(any_of({"text": "to be"}), vocab_size=258), "source is of type dict"),
    "save": (lambda: TOK.save(any_of(None)), "path is None"),
    "load": (lambda: BPE.load(any_of(None)), "path is None"),
    "from_huggingface": (lambda: BPE.from_huggingface(any_of([1])), "source is of type list"),
    "codebook from int": (lambda: equal_info.Codebook.from_bytes(any_of(10)), "file is 10"),
    "codebook is_file": (lambda: equal_info.Codebook.is_file(any_of("abc")), "blob is 'abc'"),
    "codebook strings": (lambda: equal_info.Codebook.from_strings(any_of(["a"] * 511), 9), r"strings\[0\] is 'a'"),
    "codebook model": (lambda: equal_info.Codebook.from_model(any_of(None), 9), "model is None"),
    "count model": (lambda: equal_info.CountModel(any_of("abc")), "data is 'abc'"),
    "count model contexts": (lambda: equal_info.CountModel(b"abc")(any_of(["a"])), r"contexts\[0\] is 'a'"),
    "codec spec": (lambda: codec_from_spec(any_of(None)), "spec is None"),
    "gzip": (lambda: GzipCodec(any_of(9.0)), "level is 9.0"),
    "lzp": (lambda: LZPCodec(any_of("4")), "order is '4'"),
    "lz77": (lambda: LZ77Codec(any_of(65536)), "params is 65536"),
    "characters": (lambda: CharCodec(any_of(5)), "characters has 5"),
    "character": (lambda: CharCodec(any_of([1])), "characters has 1"),
    "documents of characters": (lambda: CharCodec.train(any_of(Path("x"))), "documents is of type"),
    "tokenizer": (lambda: BPECodec(any_of("gpt2")), "tokenizer is 'gpt2'"),
    "codebook": (lambda: EqualInfoCodec(any_of("x")), "codebook is 'x'"),
    "windows": (lambda: WindowsCodec(any_of("x")), "mixer is 'x'"),
    "arithmetic": (lambda: ArithmeticCodec(any_of(None)), "mixer is None"),
    "bigrams": (lambda: bigram_coverage(any_of("abc"), 3), "tokens are <U3"),
    "corpus": (lambda: load_corpus(any_of(None)), "spec is None"),
    "corpus limit": (lambda: load_corpus("python-docs", max_bytes=any_of("5")), "max_bytes is '5'"),
    "corpus documents": (lambda: split_documents("x", any_of(["abc"])), "document is 'abc'"),
    "dataset of str": (lambda: TokenDataset.from_documents(any_of(["é"]), ByteCodec()), "document is"),
    "dataset of one": (lambda: TokenDataset.from_documents(any_of(b"abc"), ByteCodec()), "documents is b'abc'"),
    "pattern": (lambda: pretokenizer.split("a b", any_of(None)), "pattern is of type NoneType"),
}


@pytest.mark.parametrize("name", WRONG_TYPES)
def test_wrong_types_are_named(name: str) -> None:
    call, message = WRONG_TYPES[name]
    with pytest.raises(TypeError, match=message) as caught:
        call()
    assert "incompatible function arguments" not in str(caught.value)


OUT_OF_RANGE: dict[str, tuple[Callable[[], object], type[Exception], str]] = {
    "default_precision": (lambda: arithmetic.default_precision(-1), ConfigError, "num_symbols is -1; it must be"),
    "streams": (lambda: lz77.ParserBatch(1 << 62), ConfigError, "num_streams is 4611686018427387904; it must be"),
    "empty spec": (lambda: codec_from_spec(""), DataError, "spec is empty; name byte"),
    "empty corpus": (lambda: load_corpus(""), DataError, "spec is empty; name a file"),
    "model's answer": (lambda: equal_info.Codebook.from_model(any_of(lambda c: "x"), 9), DataError, "returned 'x'"),
    "folder of a mixer": (lambda: arithmetic.ContextMixer.load("."), DataError, "cannot be read"),
    "window float": (lambda: lz77.Params(window=any_of(1e5)), ConfigError, "window is 100000.0"),
    "window bool": (lambda: lz77.Params(window=True), ConfigError, "window is True"),
    "empty window": (lambda: lz77.Params(window=0), ConfigError, "window is 0; it must be"),
}


@pytest.mark.parametrize("name", OUT_OF_RANGE)
def test_values_out_of_range_are_named(name: str) -> None:
    call, kind, message = OUT_OF_RANGE[name]
    with pytest.raises(kind, match=re.escape(message)):
        call()


def test_shard_settings_are_named(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="shard_bytes is '5'"):
        write_shards(tmp_path / "shards", "train", [b"abc"], ByteCodec(), shard_bytes=any_of("5"))
    with pytest.raises(ConfigError, match="split is 5; it must"):
        write_shards(tmp_path / "shards", any_of(5), [b"abc"], ByteCodec())
    assert not (tmp_path / "shards").exists()


def test_what_is_meant_works(tmp_path: Path) -> None:
    params = lz77.Params(window=any_of(np.int64(1000)))
    assert params == lz77.Params(window=1000)
    assert type(params.window) is int
    assert codec_from_spec(any_of(_saved(tmp_path / "x.bpe"))).vocab_size == 260
    TOK.to_huggingface(tmp_path / "tokenizer.json")
    blob = (tmp_path / "tokenizer.json").read_bytes()
    assert BPE.from_huggingface(any_of(bytearray(blob))) == BPE.from_huggingface(blob)
    assert CharCodec.train(any_of(memoryview(b"cab"))).characters == "abc"
    tokens = lz77.parse(b"aaaaaaaa")
    assert tokens[0] == lz77.Token.literal(97)
    assert tokens[-1] == list(tokens)[-1]
    with pytest.raises(IndexError):
        _ = tokens[2]
    lists = lz77.LZTokens(any_of([0, 0]), any_of([97, 98]), any_of([1, 1]))
    assert (lists.num_bytes, list(lists)) == (2, [lz77.Token.literal(97), lz77.Token.literal(98)])

    assert CharCodec(any_of(character for character in "ba")).characters == "ab"  # read once


@pytest.mark.parametrize("name", ["a\0b", "a\ud800b"])
def test_names_that_no_file_can_have_are_refused(name: str) -> None:
    calls: list[Callable[[], object]] = [
        lambda: TOK.save(name),
        lambda: TOK.to_tiktoken(name),
        lambda: TOK.to_huggingface(name),
        lambda: BPE.load(name),
        lambda: BPE.from_tiktoken(name, pattern="gpt2"),
        lambda: BPE.from_huggingface(name),
        lambda: codec_from_spec(name),
        lambda: load_corpus(name),
        lambda: equal_info.Codebook.load(name),
        lambda: greedy_dictionary.GreedyDictionary.load(name),
        lambda: arithmetic.ContextMixer.load(name),
    ]
    for call in calls:
        with pytest.raises(ConfigError, match="must not hold NUL characters or surrogates"):
            call()


def _saved(path: Path) -> Path:
    TOK.save(path)
    return path


def test_copies_are_independent_or_refused() -> None:
    """`copy.copy` made a second object that shared the native state of the first: using one changed the other."""
    parser = lz77.IncrementalParser()
    parser.append(b"abcabcabc")
    for again in (copy.copy(parser), copy.deepcopy(parser)):
        again.append(b"x")
        assert (again.num_bytes, parser.num_bytes) == (10, 9)
    stream = TOK.decode_stream()
    assert stream.push(0xC3) == ""
    for resumed in (copy.copy(stream), copy.deepcopy(stream), pickle.loads(pickle.dumps(stream))):
        assert resumed.push(0xA9) == "é"
    assert stream.finish() == "\ufffd"
    for thing in (
        archive.Compressor(),
        archive.Decompressor(),
        arithmetic.AdaptiveFrequencies(3),
        arithmetic.Decoder(b""),
        lz77.ParserBatch(2),
    ):
        for duplicate in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(TypeError, match=f"{type(thing).__name__} objects cannot be copied or pickled"):
                duplicate(thing)
    with pytest.raises(TypeError, match="IncrementalParser objects cannot be copied or pickled"):
        pickle.dumps(parser)
    mixer = arithmetic.ContextMixer(log2_table_bytes=12)
    again = copy.copy(mixer)
    again.update(b"abc")
    assert mixer.num_bytes == 0


def test_old_names_work() -> None:
    with pytest.warns(DeprecationWarning, match="use max_unstable_tokens"):
        assert any_of(ByteCodec()).unstable_tail == 0
    with pytest.warns(DeprecationWarning, match="use Header"):
        assert archive.ArchiveInfo is archive.Header
    assert isinstance(archive.info(fc.compress(b"to be")), archive.Header)


def test_counts_with_a_damaged_pattern_are_a_format_error(tmp_path: Path) -> None:
    """The name of the pattern is read before the checksum."""
    counts = PretokenCounts("whitespace")
    counts.add("to be or not to be")
    blob = counts.to_bytes()
    begin = blob.index(b"whitespace")
    for position in range(begin, begin + len("whitespace")):
        damaged = blob[:position] + bytes([blob[position] | 0x80]) + blob[position + 1 :]
        (tmp_path / "x.counts").write_bytes(damaged)
        with pytest.raises(FormatError, match="damaged"):
            PretokenCounts.from_bytes(damaged)
        with pytest.raises(FormatError, match=r"x\.counts: "):
            PretokenCounts.load(tmp_path / "x.counts")


def test_the_command_line_names_its_flags(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The remedy of `encode -o` onto a file was to free space; `split` was named as the library calls it."""
    monkeypatch.chdir(tmp_path)
    Path("a.txt").write_text("to be or not to be")

    def error_of(*arguments: str) -> str:
        with pytest.raises(SystemExit) as caught, contextlib.redirect_stderr(io.StringIO()) as errors:
            main(["encode", "a.txt", "--codec", "byte", *arguments])
        assert caught.value.code == 1
        return errors.getvalue()

    assert (
        error_of("-o", "a.txt")
        == "error: a.txt: cannot be written (it is a file, not a folder); choose another directory\n"
    )
    assert error_of("-o", "x", "--split", "a b").startswith("error: --split is 'a b'; it must consist of letters")
    assert Path("a.txt").read_text() == "to be or not to be"
