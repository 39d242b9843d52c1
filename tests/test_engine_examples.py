"""The examples of docs/engines.md that need another project's engine, where it is installed."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from fastcompress import BPE
from fastcompress.data import TOKEN_FORMATS, BatchEncoder

PAGE = Path(__file__).parent.parent / "docs" / "engines.md"
BLOCK = re.compile(r"<!-- not run: needs (\w+),[^>]*-->\n```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
EXAMPLES = BLOCK.findall(PAGE.read_text(encoding="utf-8"))
TEXT = "To be, or not to be: that is the question. "


@pytest.fixture
def encoder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> BatchEncoder:
    """An encoder of a vocabulary in the file tokenizer.json, in a temporary folder to be in."""
    BPE.train(TEXT * 9, vocab_size=280).to_huggingface(tmp_path / "tokenizer.json")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "huggingface"))
    return BatchEncoder("tokenizer.json")


def test_the_page_has_an_example_for_each_engine() -> None:
    assert [name for name, _ in EXAMPLES] == ["datasets", "pyspark", "datatrove", "ray"]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "code"), EXAMPLES, ids=[name for name, _ in EXAMPLES])
def test_examples_run(name: str, code: str, encoder: BatchEncoder, monkeypatch: pytest.MonkeyPatch) -> None:
    if importlib.util.find_spec(name) is None:
        pytest.skip(f"{name} is not installed")
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)  # its workers' interpreter; otherwise any python3 on PATH
    namespace: dict[str, Any] = {"__name__": "__main__", "encode_batch": encoder}
    exec(compile(code, f"engines.md, {name}", "exec"), namespace)


def test_datasets_names_its_cache_after_the_codec(encoder: BatchEncoder) -> None:
    fingerprint = pytest.importorskip("datasets.fingerprint")
    once, again = (fingerprint.Hasher.hash(BatchEncoder("tokenizer.json")) for _ in range(2))
    BPE.train(TEXT * 9, vocab_size=270).to_huggingface("tokenizer.json")
    assert once == again != fingerprint.Hasher.hash(BatchEncoder("tokenizer.json"))


@pytest.mark.slow
def test_datatrove_writes_the_same_file(encoder: BatchEncoder, tmp_path: Path) -> None:
    tokenizer = pytest.importorskip("datatrove.pipeline.tokens.tokenizer")
    data = pytest.importorskip("datatrove.data")
    special = BPE.train(TEXT * 9, vocab_size=281, special_tokens=["<|end|>"])
    special.to_huggingface("tokenizer.json")
    texts = [TEXT, "café", TEXT * 3]
    step = tokenizer.DocumentTokenizer("theirs", "tokenizer.json", eos_token="<|end|>", shuffle_documents=False)
    step.run(iter([data.Document(text, str(number)) for number, text in enumerate(texts)]))
    end = special.special_tokens["<|end|>"]
    ids = BatchEncoder("tokenizer.json").encode_rows(texts)
    TOKEN_FORMATS["datatrove"].write(tmp_path / "ours.ds", ids, end_of_text=end)
    for suffix in ("ds", "ds.index"):
        theirs = next((tmp_path / "theirs").glob(f"*.{suffix}"))
        assert theirs.read_bytes() == (tmp_path / f"ours.{suffix}").read_bytes()
