"""Writing tokenizer.json: what `tokenizers` reads back gives equal ids, for vocabularies of every origin."""

from __future__ import annotations

import base64
import json
import lzma
import random
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer

from fastcompress import BPE
from fastcompress.bpe.rank_merges import merges_of_ranks
from fastcompress.errors import ConfigError
from tests.test_bpe_tiktoken import read_texts
from tests.test_tokenizer_json import CORPUS, added, changed, random_texts


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    path = tmp_path_factory.mktemp("plain") / "tokenizer.json"
    BPE.train(CORPUS, vocab_size=500, pattern="gpt2").to_huggingface(path)
    document: dict[str, Any] = json.loads(path.read_bytes())
    return document


@pytest.mark.parametrize(
    "pattern", ["gpt2", "cl100k", "o200k", "llama3", "qwen2", "deepseek-v3", "strict", "whitespace", "words", "none"]
)
def test_trained_vocabularies(pattern: str, tmp_path: Path) -> None:
    tok = BPE.train(CORPUS, vocab_size=400, pattern=pattern, special_tokens=["<|end|>", "<|pad|>"])
    tok.to_huggingface(tmp_path / "tokenizer.json")
    reference = Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    for text in [*CORPUS, *random_texts(300, 9, ["<|end|>"])]:
        assert reference.encode(text).ids == tok.encode(text, allowed_special="all"), text
    again = BPE.from_huggingface(tmp_path / "tokenizer.json")
    assert again.pattern == pattern
    assert again.special_tokens == tok.special_tokens
    ids = tok.encode(CORPUS[1])
    assert reference.decode(ids) == CORPUS[1]


@pytest.mark.parametrize("alphabet", [None, b"abc"])
def test_vocabularies_trained_in_the_order_of_tokenizers(alphabet: bytes | None, tmp_path: Path) -> None:
    """Special tokens come first there, and no string is learned twice."""
    settings: dict[str, Any] = {"special_tokens": ["<|end|>"], "initial_alphabet": alphabet}
    tok = BPE.train(CORPUS, vocab_size=400, pattern="gpt2", tie_break="huggingface", **settings)
    tok.to_huggingface(tmp_path / "tokenizer.json")
    reference = Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    for text in [*CORPUS, *random_texts(300, 14, ["<|end|>"])]:
        assert reference.encode(text).ids == tok.encode(text, allowed_special="all"), text
    assert tok.encode("<|end|>", allowed_special="all") == [0]


def rank_vocabulary(draw: random.Random) -> dict[bytes, int]:
    """Bytes, then tokens each made of two earlier ones, with many that overlap themselves."""
    tokens = [bytes([byte]) for byte in range(256)]
    common = [b"a", b"b", b" "]
    while len(tokens) < 330:
        token = draw.choice(common) + draw.choice(common)
        if token not in tokens:
            tokens.append(token)
            common.append(token)
    return {token: rank for rank, token in enumerate(tokens)}


def test_rank_vocabularies(tmp_path: Path) -> None:
    draw = random.Random(10)
    path = tmp_path / "x.tiktoken"
    for _ in range(25):
        ranks = rank_vocabulary(draw)
        path.write_bytes(b"".join(base64.b64encode(token) + b" %d\n" % rank for token, rank in ranks.items()))
        tok = BPE.from_tiktoken(path, pattern="none", special_tokens={"<|end|>": 400})
        tok.to_huggingface(tmp_path / "tokenizer.json")
        reference = Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
        for size in (2, 5, 9, 20, 60):
            for _ in range(30):
                text = "".join(draw.choice("ab ") for _ in range(size))
                assert reference.encode(text).ids == tok.encode(text)
        assert reference.encode("a<|end|>").ids == [97, 400]


@pytest.mark.parametrize("pattern", [r"\p{L}+|\p{N}{1,2}+|\s+$", r"^a|[$+]+|\w|\s++$|\s+(?!\S)|\s"])
def test_patterns_without_a_name(pattern: str, tmp_path: Path) -> None:
    """What stands between the matches is dropped there as here."""
    ranks = {bytes([byte]): byte for byte in range(256)} | {b"th": 256, b"the": 257, b"  ": 258}
    tok = BPE.from_ranks(ranks, pattern=pattern)
    tok.to_huggingface(tmp_path / "tokenizer.json")
    reference = Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    for text in [*random_texts(300, 13), "a $+ 12345  \n a", "a\n\n"]:
        assert reference.encode(text).ids == tok.encode(text), text


def test_the_left_one_of_two_pairs_that_overlap_comes_first() -> None:
    ids = {b"a": 0, b"b": 1, b"ab": 2, b"ba": 3, b"aba": 4}
    assert merges_of_ranks(ids) == [(0, 1), (1, 0), (2, 0), (0, 3)]  # ab|a before a|ba: in ab a ba, the left one
    ids = {b"a": 0, b"aa": 1, b"aaa": 2, b"ab": 3, b"bb": 4, b"abb": 5, b"b": 6}
    assert merges_of_ranks(ids) == [(0, 0), (0, 1), (1, 0), (0, 6), (6, 6), (0, 4), (3, 6)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "pattern"),
    [
        ("r50k_base", "gpt2"),
        ("cl100k_base", "cl100k"),
        ("o200k_base", "o200k"),
        ("llama3", "llama3"),
        ("qwen", "qwen2"),
    ],
)
def test_published_rank_files(name: str, pattern: str, data_directory: Path, tmp_path: Path) -> None:
    path = tmp_path / f"{name}.tiktoken"
    path.write_bytes(lzma.decompress((data_directory / f"vocabs/{name}.tiktoken.xz").read_bytes()))
    tok = BPE.from_tiktoken(path, pattern=pattern, special_tokens={"<|endoftext|>": 250_000})
    tok.to_huggingface(tmp_path / "tokenizer.json")
    reference = Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    texts = [*read_texts(data_directory / "multilingual/multi-val.jsonl.xz"), *random_texts(3000, 11)]
    ids = [encoding.ids for encoding in reference.encode_batch_fast(texts)]
    assert ids == tok.encode_batch(texts)


def test_round_trip_keeps_what_decides_no_id(plain: dict[str, Any], tmp_path: Path) -> None:
    post_processor = {
        "type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {"<s>": {"id": "<s>", "ids": [500], "tokens": ["<s>"]}},
    }
    document = changed(
        plain, added_tokens=[added("<s>", 500, special=True, lstrip=True)], post_processor=post_processor
    )
    document["model"]["unk_token"] = "a"
    path = tmp_path / "tokenizer.json"
    BPE.from_huggingface(document).to_huggingface(path)
    assert json.loads(path.read_bytes()) == document
    reference = Tokenizer.from_file(str(path))
    assert reference.encode("the").ids == [500, *BPE.from_huggingface(path).encode("the")]


def test_what_no_file_can_express(tmp_path: Path) -> None:
    ranks = {bytes([byte]): byte for byte in range(256)} | {b"he": 256}
    tok = BPE.from_ranks(ranks, pattern="gpt2", special_tokens={"he": 257})
    with pytest.raises(ConfigError, match="'he' has the id 257, but its text is token 256"):
        tok.to_huggingface(tmp_path / "tokenizer.json")
    assert list(tmp_path.iterdir()) == []
