"""Every id equal to tiktoken's, for the rank files at hand, on every text of the test corpora."""

from __future__ import annotations

import json
import lzma
import random
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import tiktoken

from fastcompress import BPE
from fastcompress.formats.rank_file import read_rank_file
from fastcompress.pretokenizer import PATTERNS
from tests.random_text import CODE_POINTS, random_strings

VOCABULARIES = {
    "r50k_base": "r50k",
    "p50k_base": "p50k",
    "cl100k_base": "cl100k",
    "o200k_base": "o200k",
    "llama3": "llama3",
    "qwen": "qwen2",
}
SPECIAL = {"<|endoftext|>": 250_000, "<|fim_prefix|>": 250_001}
CORPORA = [
    "english/train-00.jsonl.xz",
    "english/train-01.jsonl.xz",
    "english/train-02.jsonl.xz",
    "english/train-03.jsonl.xz",
    "english/val.jsonl.xz",
    "english/test.jsonl.xz",
    "code/code-train.jsonl.xz",
    "code/code-val.jsonl.xz",
    "multilingual/multi-train.jsonl.xz",
    "multilingual/multi-val.jsonl.xz",
    "sft/sft-train.jsonl.xz",
    "sft/sft-val.jsonl.xz",
    "sft/eval-gsm8k-test.jsonl.xz",
    "sft/eval-mbpp-test.jsonl.xz",
    "sft/eval-humaneval.jsonl.xz",
    "tinyshakespeare.txt",
    "canterbury/canterbury.tar.xz",
]


def read_texts(path: Path) -> Iterator[str]:
    """The documents of a corpus file; without a `text` field, every line; of an archive, each file's first megabyte."""
    if path.suffix == ".txt":
        yield path.read_text(encoding="utf-8")
    elif ".tar" in path.name:
        with tarfile.open(path) as archive:
            for member in archive:
                if file := archive.extractfile(member):
                    yield file.read().decode("utf-8", "replace")[: 1 << 20]
    else:
        with lzma.open(path, "rt", encoding="utf-8", newline="\n") as lines:
            for line in lines:
                yield json.loads(line).get("text", line)


@pytest.fixture(scope="module")
def tokenizers(
    data_directory: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, tuple[BPE, tiktoken.Encoding]]:
    pairs = {}
    for name, pattern in VOCABULARIES.items():
        path = tmp_path_factory.mktemp("ranks") / f"{name}.tiktoken"
        path.write_bytes(lzma.decompress((data_directory / "vocabs" / f"{name}.tiktoken.xz").read_bytes()))
        tok = BPE.from_tiktoken(path, pattern=pattern, special_tokens=SPECIAL)
        reference = tiktoken.Encoding(
            name, pat_str=PATTERNS[tok.pattern], mergeable_ranks=read_rank_file(path), special_tokens=SPECIAL
        )
        pairs[name] = tok, reference
    return pairs


@pytest.mark.slow
@pytest.mark.parametrize("corpus", [corpus for corpus in CORPORA if "english/train" not in corpus])
def test_ids_equal_tiktokens(
    corpus: str, data_directory: Path, tokenizers: dict[str, tuple[BPE, tiktoken.Encoding]]
) -> None:
    texts = list(read_texts(data_directory / corpus))
    for name in ("r50k_base", "cl100k_base", "o200k_base"):
        compare_ids(name, corpus, texts, *tokenizers[name])


@pytest.mark.campaign
@pytest.mark.parametrize("corpus", CORPORA)
@pytest.mark.parametrize("name", VOCABULARIES)
def test_all_ids_equal_tiktokens(
    name: str, corpus: str, data_directory: Path, tokenizers: dict[str, tuple[BPE, tiktoken.Encoding]]
) -> None:
    compare_ids(name, corpus, list(read_texts(data_directory / corpus)), *tokenizers[name])


def compare_ids(name: str, corpus: str, texts: list[str], tok: BPE, reference: tiktoken.Encoding) -> None:
    assert texts
    tokens, offsets = tok.encode_batch_to_numpy(texts, disallowed_special=())
    for begin in range(0, len(texts), 2000):  # in parts, since tiktoken's lists are large
        part = texts[begin : begin + 2000]
        for i, expected in enumerate(reference.encode_ordinary_batch(part, num_threads=2), start=begin):
            ids = tokens[int(offsets[i]) : int(offsets[i + 1])]
            if not np.array_equal(ids, np.array(expected, np.uint32)):
                pytest.fail(f"{name}: document {i} of {corpus} has other ids than tiktoken's: {texts[i][:200]!r} ...")


@pytest.mark.campaign
@pytest.mark.parametrize("name", VOCABULARIES)
def test_a_million_random_strings(
    name: str, data_directory: Path, tokenizers: dict[str, tuple[BPE, tiktoken.Encoding]]
) -> None:
    """Half of their pieces reach for the rules of the patterns, half are snippets of real text and any code points."""
    tok, reference = tokenizers[name]
    draw = random.Random(name)
    real = "\n".join(text for corpus in CORPORA if "val" in corpus for text in read_texts(data_directory / corpus))
    begins = (draw.randrange(len(real)) for _ in range(300_000))
    alphabet = [real[begin : begin + draw.randrange(1, 20)] for begin in begins] + draw.sample(CODE_POINTS, 100_000)
    for seed in range(20):
        texts = random_strings(alphabet, 50_000, seed, share=0.5)
        expected = reference.encode_ordinary_batch(texts, num_threads=2)
        tokens, offsets = tok.encode_batch_to_numpy(texts, disallowed_special=())
        if np.array_equal(tokens, np.concatenate([np.array(ids, np.uint32) for ids in expected])):
            assert np.array_equal(np.diff(offsets.astype(np.int64)), [len(ids) for ids in expected])
            continue
        wrong = next(text for text, ids in zip(texts, expected, strict=True) if tok.encode_ordinary(text) != ids)
        pytest.fail(f"{name}: other ids than tiktoken's for {wrong!r}")


def test_golden_ids(data_directory: Path, tokenizers: dict[str, tuple[BPE, tiktoken.Encoding]]) -> None:
    """Ids computed once by tiktoken 0.14, so that they hold without the tiktoken at hand."""
    lines = lzma.decompress((data_directory / "vocabs/golden-ids.jsonl.xz").read_bytes()).decode().split("\n")
    cases = [json.loads(line) for line in lines[1:] if line]
    assert len(cases) > 300
    for case in cases:
        for name, (tok, _) in tokenizers.items():
            assert tok.encode_ordinary(case["text"]) == case["ids"][name]


def outcome(encode: Callable[..., list[int]], text: str, allowed: object) -> object:
    try:
        return encode(text, allowed_special=allowed)
    except ValueError:
        return ValueError


def test_special_tokens_as_in_tiktoken(tokenizers: dict[str, tuple[BPE, tiktoken.Encoding]]) -> None:
    texts = [
        "",
        "a<|endoftext|>b",
        "<|endoftext|><|fim_prefix|>",
        " \n<|endoftext|> \n",
        "<|endoftext|",
        "\udbc0<|endoftext|>",
    ]
    for tok, reference in tokenizers.values():
        for text in texts:
            for allowed in (set(), "all", {"<|endoftext|>"}):
                outcomes = [outcome(encode, text, allowed) for encode in (tok.encode, reference.encode)]
                assert outcomes[0] == outcomes[1]
                ids = tok.encode(text, allowed_special=allowed, disallowed_special=())
                assert ids == reference.encode(text, allowed_special=allowed, disallowed_special=())
                assert tok.decode(ids) == reference.decode(ids)
