"""The public surface of the drop-in against tiktoken's own: modules, names, signatures, and the module `load`."""

from __future__ import annotations

import base64
import hashlib
import importlib
import inspect
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from fastcompress.compat import tiktoken as compat

tiktoken = pytest.importorskip("tiktoken")

MODULES = ["", ".core", ".load", ".model", ".registry"]
# Names that tiktoken's modules import, or keep for themselves.
NOT_PUBLIC = {"Any", "AbstractSet", "Callable", "Collection", "Literal", "NoReturn", "Sequence", "TYPE_CHECKING"} | {
    "ThreadPoolExecutor", "annotations", "functools", "importlib", "pkgutil", "threading", "tiktoken", "tiktoken_ext",
    "base64", "hashlib", "os", "ENCODING_CONSTRUCTORS",
}  # fmt: skip


def public(thing: object) -> list[str]:
    return [name for name in dir(thing) if not name.startswith("_") and name not in NOT_PUBLIC]


def modules(name: str) -> tuple[ModuleType, ModuleType]:
    return importlib.import_module(f"fastcompress.compat.tiktoken{name}"), importlib.import_module(f"tiktoken{name}")


@pytest.mark.parametrize("name", MODULES)
def test_names_of_modules(name: str) -> None:
    ours, theirs = modules(name)
    assert not [attribute for attribute in public(theirs) if not hasattr(ours, attribute)]
    if not name:
        assert ours.__version__ == theirs.__version__


def shape(function: Any) -> list[tuple[str, Any, bool]]:
    return [
        (name, parameter.kind, parameter.default is inspect.Parameter.empty)
        for name, parameter in inspect.signature(function).parameters.items()
    ]


@pytest.mark.parametrize("name", MODULES)
def test_signatures_of_functions(name: str) -> None:
    ours, theirs = modules(name)
    for attribute in public(theirs):
        if inspect.isfunction(getattr(theirs, attribute)):
            assert shape(getattr(ours, attribute)) == shape(getattr(theirs, attribute)), attribute


def test_the_class() -> None:
    for attribute in ["__init__", *public(tiktoken.Encoding)]:
        ours, theirs = getattr(compat.Encoding, attribute), getattr(tiktoken.Encoding, attribute)
        if callable(theirs):
            assert shape(ours) == shape(theirs), attribute
        else:
            assert not callable(ours), attribute
    for name in ("name", "max_token_value"):
        assert name in compat.Encoding.__annotations__


def test_constants() -> None:
    assert compat.model.MODEL_TO_ENCODING == tiktoken.model.MODEL_TO_ENCODING
    assert compat.model.MODEL_PREFIX_TO_ENCODING == tiktoken.model.MODEL_PREFIX_TO_ENCODING
    assert set(compat.list_encoding_names()) == set(tiktoken.list_encoding_names())


def test_encodings_that_were_made(tiktoken_cache: Path) -> None:
    encoding = compat.get_encoding("gpt2")
    assert compat.registry.ENCODINGS["gpt2"] is encoding


# ---------------------------------------------------------------------- special tokens on ids of ranks

RANKS = {bytes([byte]): byte for byte in range(256)} | {b"ab": 256, b"abc": 257}


@pytest.mark.parametrize("special_tokens", [{"<x>": 97}, {"<x>": 257, "<y>": 300}, {"<x>": 256, "<y>": 256}])
def test_a_special_token_with_the_id_of_a_rank(special_tokens: dict[str, int]) -> None:
    settings: Any = {"pat_str": r"\w+|\W+", "mergeable_ranks": RANKS, "special_tokens": special_tokens}
    ours, theirs = compat.Encoding("toy", **settings), tiktoken.Encoding("toy", **settings)
    text = "abc<x>ab<y>a"
    assert ours.n_vocab == theirs.n_vocab
    assert ours.token_byte_values() == theirs.token_byte_values()
    for allowed in ("all", {"<x>"}, set()):
        ids = theirs.encode(text, allowed_special=allowed, disallowed_special=())
        assert ours.encode(text, allowed_special=allowed, disallowed_special=()) == ids
        assert ours.decode(ids) == theirs.decode(ids)
        assert ours.decode_with_offsets(ids) == theirs.decode_with_offsets(ids)
    for token in [*special_tokens, "ab", b"abc"]:
        assert ours.encode_single_token(token) == theirs.encode_single_token(token)
    for token_id in {*special_tokens.values(), 97, 256}:
        assert ours.decode_single_token_bytes(token_id) == theirs.decode_single_token_bytes(token_id)
        assert ours.is_special_token(token_id) == theirs.is_special_token(token_id)
    copy = type(ours._tokenizer).from_bytes(ours._tokenizer.to_bytes())
    assert copy.encode(text, allowed_special="all") == theirs.encode(text, allowed_special="all")


# ---------------------------------------------------------------------- load


def test_loading_and_dumping(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", "")  # tiktoken's keeps local files, too
    path = str(tmp_path / "toy.tiktoken")
    compat.load.dump_tiktoken_bpe(RANKS, path)
    content = compat.load.read_file(path)
    assert content == tiktoken.load.read_file(path)
    assert content.splitlines()[256] == base64.b64encode(b"ab") + b" 256"
    digest = hashlib.sha256(content).hexdigest()
    assert compat.load.check_hash(content, digest)
    assert not compat.load.check_hash(content + b"x", digest)
    for hash_given in (None, digest):
        assert compat.load.load_tiktoken_bpe(path, hash_given) == RANKS
    with pytest.raises(ValueError, match="SHA-256"):
        compat.load.load_tiktoken_bpe(path, "0" * 64)
    for bad in (b"no rank\n", b"YQ==\n", b"YQ== x\n", b"YQ== 1 2\n"):
        (tmp_path / "bad").write_bytes(bad)
        with pytest.raises(ValueError, match="bad"):
            compat.load.load_tiktoken_bpe(str(tmp_path / "bad"))
    with pytest.raises(FileNotFoundError):
        compat.load.load_tiktoken_bpe(str(tmp_path / "missing"))
    with pytest.raises(OSError, match="cannot be written"):
        compat.load.dump_tiktoken_bpe(RANKS, str(tmp_path / "missing" / "file"))


def test_the_cache_of_downloads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("FASTCOMPRESS_OFFLINE", "1")
    address = "https://example.com/x.tiktoken"
    with pytest.raises(FileNotFoundError, match="FASTCOMPRESS_OFFLINE"):
        compat.load.read_file_cached(address)
    cached = compat.load.address_path(tmp_path, address)
    cached.write_bytes(b"YQ== 0\n")
    assert compat.load.read_file_cached(address) == tiktoken.load.read_file_cached(address) == b"YQ== 0\n"
    with pytest.raises(FileNotFoundError):  # with another hash it is fetched anew
        compat.load.read_file_cached(address, "0" * 64)
    monkeypatch.setattr(compat.load, "download", lambda address: b"Yg== 0\n")
    cached.unlink()
    assert compat.load.load_tiktoken_bpe(address) == {b"b": 0}
    assert cached.read_bytes() == b"Yg== 0\n"


def test_the_two_files_of_gpt2(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", "")
    vocab_bpe, encoder_json = tmp_path / "vocab.bpe", tmp_path / "encoder.json"
    characters = sorted(compat.load.ALPHABET)
    vocab_bpe.write_text("#version\na b\n\u0120 ab\n", encoding="utf-8")
    ids = {token: rank for rank, token in enumerate([*characters, "ab", "\u0120ab", "<|endoftext|>"])}
    encoder_json.write_text(json.dumps(ids), encoding="utf-8")
    expected = tiktoken.load.data_gym_to_mergeable_bpe_ranks(str(vocab_bpe), str(encoder_json))
    assert compat.load.data_gym_to_mergeable_bpe_ranks(str(vocab_bpe), str(encoder_json)) == expected
    ids["a"], ids["b"] = ids["b"], ids["a"]
    encoder_json.write_text(json.dumps(ids), encoding="utf-8")
    with pytest.raises(AssertionError):
        compat.load.data_gym_to_mergeable_bpe_ranks(str(vocab_bpe), str(encoder_json))
    for load in (compat.load, tiktoken.load):
        ranks = load.data_gym_to_mergeable_bpe_ranks(str(vocab_bpe), str(encoder_json), clobber_one_byte_tokens=True)
        assert ranks[b"a"] == ids["a"]
