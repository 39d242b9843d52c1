"""Every id equal to tiktoken's, for the rank files at hand, on every text of the test corpora."""

from __future__ import annotations

import hashlib
import json
import lzma
import os
import random
import tarfile
import tempfile
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
DIGESTS = Path(__file__).parent / "vectors" / "tiktoken-ids.json"
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
# Those of the tests that always run; the campaign takes all of them.
QUICK_CORPORA = [corpus for corpus in CORPORA if "english/train" not in corpus]
QUICK_VOCABULARIES = ("r50k_base", "cl100k_base", "o200k_base")


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


def digest_of(tokens: np.ndarray, offsets: np.ndarray) -> str:
    """The hash of the ids of documents and of where each document's begin and end."""
    parts = np.ascontiguousarray(tokens, "<u4"), np.ascontiguousarray(offsets, "<u8")
    return hashlib.sha256(parts[0].tobytes() + parts[1].tobytes()).hexdigest()


def load_pair(name: str, data_directory: Path, folder: Path) -> tuple[BPE, tiktoken.Encoding]:
    path = folder / f"{name}.tiktoken"
    path.write_bytes(lzma.decompress((data_directory / "vocabs" / f"{name}.tiktoken.xz").read_bytes()))
    tok = BPE.from_tiktoken(path, pattern=VOCABULARIES[name], special_tokens=SPECIAL)
    reference = tiktoken.Encoding(
        name, pat_str=PATTERNS[tok.pattern], mergeable_ranks=read_rank_file(path), special_tokens=SPECIAL
    )
    return tok, reference


@pytest.fixture(scope="module")
def tokenizers(
    data_directory: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, tuple[BPE, tiktoken.Encoding]]:
    folder = tmp_path_factory.mktemp("ranks")
    return {name: load_pair(name, data_directory, folder) for name in VOCABULARIES}


@pytest.mark.slow
@pytest.mark.parametrize("corpus", QUICK_CORPORA)
def test_ids_equal_tiktokens(
    corpus: str, data_directory: Path, tokenizers: dict[str, tuple[BPE, tiktoken.Encoding]]
) -> None:
    """Digests stand for tiktoken's ids, which take long to compute: `python -m tests.test_bpe_tiktoken` writes them."""
    digests = json.loads(DIGESTS.read_text())
    texts = list(read_texts(data_directory / corpus))
    for name in QUICK_VOCABULARIES:
        tokens, offsets = tokenizers[name][0].encode_batch_to_numpy(texts, disallowed_special=())
        if digest_of(tokens, offsets) != digests[corpus][name]:
            compare_ids(name, corpus, texts, *tokenizers[name])
            pytest.fail(f"{corpus} is another text than the one of {DIGESTS.name}; write the digests anew")


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


def write_digests(data_directory: Path) -> None:
    """Write the digests of tiktoken's ids of the corpora, to which ours are held."""
    digests: dict[str, dict[str, str]] = {}
    with tempfile.TemporaryDirectory() as folder:
        references = {name: load_pair(name, data_directory, Path(folder))[1] for name in QUICK_VOCABULARIES}
    for corpus in QUICK_CORPORA:
        texts = list(read_texts(data_directory / corpus))
        digests[corpus] = {}
        for name, reference in references.items():
            documents = [np.array(ids, np.uint32) for ids in reference.encode_ordinary_batch(texts, num_threads=2)]
            offsets = np.cumsum([0, *map(len, documents)])
            digests[corpus][name] = digest_of(np.concatenate(documents), offsets)
    DIGESTS.write_text(json.dumps(digests, indent=2) + "\n")


if __name__ == "__main__":
    write_digests(Path(os.environ["FASTCOMPRESS_DATA"]))
