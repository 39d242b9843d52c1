"""`fastcompress inspect`: what a file or folder is, by its header."""

from __future__ import annotations

import json
import lzma
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fastcompress import BPE, compress
from fastcompress.codec import BPECodec, ByteCodec, save_codec
from fastcompress.data.shards import write_splits
from fastcompress.equal_info import Codebook
from fastcompress.greedy_dictionary import GreedyDictionary
from tests.test_cli import TINY_RUN, error_of, run

TEXT = "Chapter 1\nThe quick brown fox jumps over the lazy dog; naïve café, 12 345.\n" * 20


@pytest.fixture
def inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def inspected(path: object) -> dict[str, Any]:
    """What the command says as JSON; the lines for people say the same kind."""
    found: dict[str, Any] = json.loads(run("inspect", path, "--json").stdout)
    lines = run("inspect", path).stdout.splitlines()
    assert lines[0] == f"{path}: {found['kind']}"
    assert len(lines) == len(found) - 1
    return found


def test_vocabularies_and_codecs(inside: Path) -> None:
    bpe = BPE.train(TEXT, vocab_size=300, special_tokens=["<|end|>"], pattern="gpt2")
    bpe.save("a")  # known by its first bytes
    bpe.to_huggingface("tokenizer.json")
    for name in ("a", "tokenizer.json"):
        found = inspected(name)
        assert (found["kind"], found["vocab_size"], found["pattern"]) == ("vocabulary", 300, "gpt2")
        assert found["special_tokens"] == ["<|end|>"]
        assert found["longest_token_bytes"] == max(len(bpe.token_bytes(i)) for i in range(300))
        assert found["file_bytes"] == Path(name).stat().st_size
    assert inspected("a")["fingerprint"] == BPECodec(bpe).fingerprint
    BPE.train(TEXT, vocab_size=300).to_tiktoken("ranks")
    found = inspected("ranks")
    assert (found["codec"], found["pattern"]) == ("bpe-300", "not stored in a rank file")
    Codebook.train(TEXT, bits=9).save("book")
    assert inspected("book")["codec"] == "equal-info-9"
    GreedyDictionary.from_strings([bytes([b]) for b in range(256)] + [b"not"]).save("words")
    assert inspected("words")["vocab_size"] == 257
    save_codec(ByteCodec(), "codec.json")
    assert inspected("codec.json") == {
        "path": "codec.json",
        "kind": "codec",
        "codec": "byte",
        "vocab_size": 256,
        "lossless": True,
        "unambiguous": True,
        "fingerprint": ByteCodec.fingerprint,
        "file_bytes": Path("codec.json").stat().st_size,
    }


def test_shards(inside: Path) -> None:
    write_splits(inside / "shards", {"train": [b"to be", b"or"], "test": [b"not"]}, ByteCodec())
    found = inspected("shards")
    assert (found["kind"], found["codec"]) == ("token shards", "byte")
    assert found["train"] == "2 documents, 7 bytes, 9 tokens with ends of documents, 1 file"
    shard = inspected("shards/train/00000.shard")
    assert (shard["kind"], shard["shard"]) == ("token shard", "1 of 1")
    assert (shard["num_documents"], shard["num_bytes"], shard["num_tokens"]) == (2, 7, 9)
    assert shard["fingerprint"] == ByteCodec.fingerprint


def test_archives_and_texts(inside: Path) -> None:
    (inside / "text.fcz").write_bytes(packed := compress(TEXT, level=3))
    found = inspected("text.fcz")
    assert (found["method"], found["level"], found["content_bytes"]) == ("lz", 3, len(TEXT.encode()))
    assert found["ratio"] == round(len(TEXT.encode()) / len(packed), 3)
    (inside / "book.txt").write_text(TEXT)
    assert inspected("book.txt") == {"path": "book.txt", "kind": "text", "file_bytes": len(TEXT.encode())}
    (inside / "empty").write_bytes(b"")
    assert inspected("empty")["kind"] == "text"
    row = json.dumps({"text": TEXT * 9, "lang": "en"}).encode()  # a line longer than what is read of a header
    (inside / "rows.jsonl.xz").write_bytes(lzma.compress(row + b"\n{}\n"))
    assert inspected("rows.jsonl.xz")["keys"] == ["text", "lang"]


def test_study_reports(inside: Path) -> None:
    (inside / "study").mkdir()
    shutil.copy(Path(__file__).parent / "vectors" / "study.json", inside / "study" / "report.json")
    for path in ("study", "study/report.json"):
        found = inspected(path)
        assert (found["kind"], found["name"], found["corpus"]) == ("study report", "quick", "python-docs")
        assert found["arm byte"] == "2.6096 bits per byte"


@pytest.mark.slow
def test_runs(inside: Path) -> None:
    pytest.importorskip("torch")
    (inside / "book.txt").write_text(TEXT)
    run("train", "--corpus", "book.txt", "--codec", "byte", "--steps", 2, *TINY_RUN, "--run-dir", "run")
    for path in ("run", "run/config.json"):
        found = inspected(path)
        assert (found["kind"], found["codec"], found["last_step"]) == ("run", "byte", 2)
        assert found["checkpoints"] == ["best.safetensors", "last.safetensors"]
        assert 0 < found["best_bits_per_byte"] < 10
        assert "width 16" in found["model"]


def test_what_is_not_known(inside: Path) -> None:
    (inside / "folder").mkdir()
    assert "a folder without shards, a run or a study" in error_of("inspect", "folder")
    (inside / "zip").write_bytes(b"PK\x03\x04" + bytes(99))
    assert "a ZIP archive" in error_of("inspect", "zip")
    (inside / "noise").write_bytes(bytes(range(128, 256)) * 9)
    assert "does not look like text" in error_of("inspect", "noise")
    (inside / "config.json").write_text('{"format": "fastcompress-run"')
    assert "damaged" in error_of("inspect", "config.json")
    (inside / "cut.fcz").write_bytes(compress(TEXT)[:50])
    error_of("inspect", "cut.fcz")


def test_it_needs_no_torch(inside: Path) -> None:
    save_codec(ByteCodec(), "codec.json")
    script = (
        "import sys; sys.modules['torch'] = None; from fastcompress.cli import main; main(['inspect', 'codec.json'])"
    )
    assert b"byte" in subprocess.run([sys.executable, "-c", script], capture_output=True, check=True).stdout
