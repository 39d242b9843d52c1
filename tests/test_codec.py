"""Bytes, characters, vocabularies and codec files: what is theirs alone (shared: test_codec_contract.py)."""

from __future__ import annotations

import base64
import json
import unicodedata
from pathlib import Path

import numpy as np
import pytest

from fastcompress.bpe import BPE
from fastcompress.codec import (
    BigramCoverage,
    BPECodec,
    ByteCodec,
    CharCodec,
    Codec,
    CodecKind,
    bigram_coverage,
    codec_from_spec,
    load_codec,
    register_codec,
    save_codec,
)
from fastcompress.errors import ConfigError, DataError, FormatError, MismatchError, OutputError

TEXT = "The cat sat on the mat; the cat sat. Ünïcödé \U0001f600 <|end|> naïve\r\n".encode() * 20


@pytest.fixture(scope="module")
def tokenizer() -> BPE:
    return BPE.train([TEXT], vocab_size=290, special_tokens=("<|end|>",))


def test_bytes_are_their_own_ids():
    assert ByteCodec().encode(bytes(range(256))).tolist() == list(range(256))


def test_characters_are_ranked_by_code_point():
    codec = CharCodec.train(["cab\U0001f600é".encode(), b"", "\U0010ffff".encode()])
    assert codec.characters == "abcé\U0001f600\U0010ffff"
    assert (codec.name, codec.vocab_size) == ("char-6", 6)
    assert codec.encode("é\U0001f600a".encode()).tolist() == [3, 4, 0]
    assert codec.byte_lengths([0, 3, 4, 5]).tolist() == [1, 2, 4, 4]
    assert codec.fingerprint == CharCodec(list(reversed(codec.characters))).fingerprint
    assert codec.fingerprint != CharCodec(["a"]).fingerprint


@pytest.mark.parametrize(
    ("character", "named"),
    [("z", r"'z' \(U\+007A\)"), ("\u1234", r"'ሴ' \(U\+1234\)"), ("\x00", r"'\\x00' \(U\+0000\)"),
     ("\U0010ffff", r"\(U\+10FFFF\)")],
)  # fmt: skip
def test_unknown_characters_are_named_with_their_byte_offset(character, named):
    codec = CharCodec(["a", "é"])
    with pytest.raises(DataError, match=rf"{named} at byte 5 .* use the byte codec"):
        codec.encode(f"éaé{character}z".encode())


@pytest.mark.parametrize("data", [b"ab\xffcd", b"ab\xed\xa0\x80", b"ab\xc3", b"ab\xc0\x80"])
def test_invalid_utf8_is_named_with_its_offset(data):
    for call in (CharCodec(["a", "b"]).encode, lambda data: CharCodec.train([data])):
        with pytest.raises(DataError, match=rf"byte 0x{data[2]:02X} at offset 2 is not valid UTF-8"):
            call(data)


def test_alphabets_that_are_none():
    with pytest.raises(DataError, match="no characters"):
        CharCodec.train([b"", b""])
    for characters, message in (
        ([], "empty"),
        (["a", "b", "a"], "'a' occurs twice"),
        (["ab"], "'ab' is not one character"),
        (["\ud800"], "is not one character"),
    ):
        with pytest.raises(ConfigError, match=message):
            CharCodec(characters)


def test_decomposed_characters_stay_decomposed():
    data = unicodedata.normalize("NFD", "é").encode()
    codec = CharCodec.train([data])
    assert codec.vocab_size == 2
    assert codec.decode(codec.encode(data)) == data


def test_tiny_shakespeare_has_65_characters(data_directory):
    data = (data_directory / "tinyshakespeare.txt").read_bytes()
    codec = CharCodec.train([data])
    assert (codec.name, codec.vocab_size) == ("char-65", 65)
    assert codec.characters.startswith("\n !$&',-.3:;?ABC")
    tokens = codec.encode(data)
    assert codec.decode(tokens) == data
    # Counted apart, with a set of two-character strings.
    text = data.decode()
    pairs = {text[i : i + 2] for i in range(len(text) - 1)}
    assert bigram_coverage(tokens, 65) == BigramCoverage(len(pairs), 65 * 65, len(text))


def test_special_token_text_is_ordinary_text(tokenizer):
    codec = BPECodec(tokenizer)
    special = tokenizer.special_tokens["<|end|>"]
    tokens = codec.encode(b"a<|end|>b")
    assert special not in tokens
    assert codec.decode(tokens) == b"a<|end|>b"
    assert codec.decode([special]) == b"<|end|>"
    assert codec.byte_lengths([special]).tolist() == [7]


def test_fingerprints_tell_vocabularies_apart(tokenizer):
    others = [
        BPE.train([TEXT], vocab_size=291, special_tokens=("<|end|>",)),
        BPE.train([TEXT], vocab_size=290),
        BPE.train([TEXT], vocab_size=290, special_tokens=("<|END|>",)),
        BPE.train([TEXT], vocab_size=290, special_tokens=("<|end|>",), pattern="gpt2"),
    ]
    codecs = [ByteCodec(), CharCodec(["a"]), BPECodec(tokenizer), *map(BPECodec, others)]
    assert len({codec.fingerprint for codec in codecs}) == len(codecs)


# --- Files -----------------------------------------------------------------------------------------------


def test_vocabularies_that_change_text(tokenizer, tmp_path):
    """A tokenizer.json is a codec, too; one that normalizes spells only text that is normal as it is."""
    path = tmp_path / "tokenizer.json"
    tokenizer.to_huggingface(path)
    codec = codec_from_spec(str(path))
    assert codec.lossless
    assert codec.encode(TEXT).tolist() == BPECodec(tokenizer).encode(TEXT).tolist()
    path.write_text(path.read_text(encoding="utf-8").replace('"normalizer": null', '"normalizer": {"type": "NFC"}'))
    codec = codec_from_spec(str(path))
    assert not codec.lossless
    assert codec.decode(codec.encode("é".encode())) == "é".encode()
    assert codec.byte_lengths(codec.encode("é".encode())).sum() == 2
    with pytest.raises(DataError, match=r"byte for byte.*normalize the text first"):
        codec.encode("e\u0301".encode())
    save_codec(codec, tmp_path / "codec.json")
    assert load_codec(tmp_path / "codec.json").fingerprint == codec.fingerprint


def test_specs_name_bytes_and_saved_vocabularies(tokenizer, tmp_path):
    assert codec_from_spec("byte").fingerprint == ByteCodec().fingerprint
    tokenizer.save(tmp_path / "words.bpe")
    assert codec_from_spec(str(tmp_path / "words.bpe")).fingerprint == BPECodec(tokenizer).fingerprint
    (tmp_path / "song.mp3").write_bytes(b"ID3" + bytes(100))
    with pytest.raises(FormatError, match=r"song\.mp3: not a saved vocabulary \(\.bpe\), tokenizer\.json, rank file"):
        codec_from_spec(str(tmp_path / "song.mp3"))
    for call in (codec_from_spec, load_codec):
        with pytest.raises(DataError, match="nothing: no such codec"):
            call(str(tmp_path / "nothing"))
        with pytest.raises(DataError, match="cannot be read"):
            call(str(tmp_path))


def edited(codec: Codec, path: Path, **changes: object) -> Path:
    save_codec(codec, path)
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    return path


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"format": "other"}, FormatError, "not a codec file"),
        ({"version": 2}, FormatError, "codec format version 2, this build reads 1"),
        ({"kind": "lz99"}, FormatError, "unknown codec kind 'lz99'; known: .*byte"),
        ({"kind": ["char"]}, FormatError, "unknown codec kind"),
        ({"state": {}}, FormatError, "the char codec's state is damaged"),
        ({"state": {"characters": 7}}, FormatError, "the char codec's state is damaged"),
        ({"state": {"characters": "aab"}}, FormatError, "'a' occurs twice"),
        ({"state": None}, FormatError, "the char codec's state is damaged"),
        ({"state": {"characters": "abd"}}, MismatchError, "does not match its fingerprint"),
        ({"fingerprint": None}, MismatchError, "does not match its fingerprint"),
        ({"kind": "byte"}, MismatchError, "does not match its fingerprint"),
    ],
)
def test_damaged_codec_files_are_refused(tmp_path, changes, error, message):
    with pytest.raises(error, match=rf"codec\.json: .*{message}"):
        load_codec(edited(CharCodec(["a", "b", "c"]), tmp_path / "codec.json", **changes))


def test_damaged_vocabularies_are_refused(tmp_path, tokenizer):
    path = tmp_path / "codec.json"
    blob = tokenizer.to_bytes()
    states: list[object] = ["%%%", "", 5, base64.b64encode(blob[:-1]).decode()]
    for position in range(0, len(blob), 97):
        flipped = bytearray(blob)
        flipped[position] ^= 1
        states.append(base64.b64encode(flipped).decode())
    for state in states:
        with pytest.raises((FormatError, MismatchError), match=r"codec\.json: "):
            load_codec(edited(BPECodec(tokenizer), path, state={"vocabulary": state}))


@pytest.mark.parametrize("blob", [b"", b"{", b"[1]", b"null", b"\xff\xfe", b"[" * 100_000])
def test_foreign_files_are_refused(tmp_path, blob):
    (tmp_path / "codec.json").write_bytes(blob)
    with pytest.raises(FormatError, match=r"codec\.json: not a codec file"):
        load_codec(tmp_path / "codec.json")


def test_unwritable_outputs_and_unknown_kinds_are_named(tmp_path):
    with pytest.raises(OutputError, match="cannot be written"):
        save_codec(ByteCodec(), tmp_path / "no such folder" / "codec.json")

    class Unregistered(ByteCodec):
        pass

    with pytest.raises(ConfigError, match="Unregistered is not a registered kind"):
        save_codec(Unregistered(), tmp_path / "codec.json")
    with pytest.raises(ConfigError, match="'byte' is registered already"):
        register_codec(CodecKind("byte", ByteCodec, lambda codec: {}, lambda state: ByteCodec()))


# --- Bigrams ---------------------------------------------------------------------------------------------


def test_bigrams_are_counted_over_chunks(monkeypatch):
    tokens = np.random.default_rng(0).integers(0, 50, 1000)
    pairs = set(zip(tokens[:-1].tolist(), tokens[1:].tolist(), strict=True))
    for chunk in (1, 7, 999, 1000, 4096):
        monkeypatch.setattr("fastcompress.codec.bigrams._CHUNK_TOKENS", chunk)
        assert bigram_coverage(tokens, 50) == BigramCoverage(len(pairs), 2500, 1000)
    assert bigram_coverage(tokens, 50).fraction == len(pairs) / 2500


def test_bigrams_of_large_vocabularies_need_no_square():
    tokens = np.array([99_999, 99_999, 0, 99_999, 99_999], np.uint32)
    assert bigram_coverage(tokens, 100_000) == BigramCoverage(3, 10**10, 5)
    for short in ([], [5]):
        assert bigram_coverage(short, 10) == BigramCoverage(0, 100, len(short))
    with pytest.raises(DataError, match=r"must be in \[0, 99999\)"):
        bigram_coverage(tokens, 99_999)
