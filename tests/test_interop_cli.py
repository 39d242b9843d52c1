"""The command convert between shards and the token files of other trainers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fastcompress import BPE
from fastcompress.codec import BPECodec, CharCodec
from fastcompress.data.interop import TOKEN_FORMATS
from fastcompress.data.shards import TokenDataset, write_shards
from tests.interop_files import ORACLES, SUFFIXES, lists
from tests.test_cli import error_of, run

TEXTS = [b"to be or not to be", b"", b"that is the question"]


@pytest.fixture
def shards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    bpe = BPE.train(b" ".join(TEXTS) * 5, vocab_size=270, special_tokens=("<|endoftext|>", "<|x|>"))
    bpe.save(tmp_path / "v.bpe")
    write_shards(tmp_path / "shards", "train", TEXTS, BPECodec(bpe))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "shards"


@pytest.mark.parametrize("name", TOKEN_FORMATS)
def test_the_command_converts_both_ways(name: str, shards: Path) -> None:
    file = f"x{SUFFIXES[name]}"
    end = BPE.load("v.bpe").special_tokens["<|endoftext|>"]
    result = json.loads(run("convert", shards, "--to", name, "-o", file, "--json").stdout)
    assert result == {
        "output": file,
        "format": name,
        "num_files": 1,
        "num_documents": 3,
        "dtype": "uint16",
        "end_of_text": end,
    }
    ids = lists(TokenDataset.open(shards, "train").documents())
    written = Path(file).read_bytes()
    assert written == next(iter(ORACLES[name](ids, 2, end).values()))
    assert "exists already" in error_of("convert", shards, "--to", name, "-o", file)
    run("convert", shards, "--to", name, "-o", file, "--force", "--end-of-text", "<|endoftext|>")
    assert Path(file).read_bytes() == written
    told = ["--from", name] if name == "nanogpt" else []
    words = ["convert", file, *told, "--to", "shards", "--codec", "v.bpe"]
    assert "3 documents in split train" in run(*words, "-o", "back").stdout
    back, before = (folder / "train/00000.shard" for folder in (Path("back"), shards))
    assert back.read_bytes() == before.read_bytes()
    assert "already exists; choose another directory, or pass --force" in error_of(*words, "-o", "back")
    run(*words, "-o", "back", "--force")
    run(*words, "-o", "back", "--split", "validation")
    assert "name one with --split" in error_of("convert", "back", "--to", name, "-o", "y.bin", code=2)
    run("convert", "back", "--to", name, "-o", f"y{SUFFIXES[name]}", "--split", "validation", "--dtype", "uint32")
    with pytest.raises(AssertionError):  # without the mark, the end-of-text ids are ids of documents
        assert lists(TOKEN_FORMATS[name].documents([Path(file)])) == ids


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("shards -o x.bin", "if it holds shards, name a format with --to"),
        ("v.bpe --codec byte -o x.bpe", "--codec goes with --to"),
        ("v.bpe --end-of-text 1 -o x.bpe", "--end-of-text goes with --to"),
        ("v.bpe --from nanogpt -o x.bpe", "--from goes with --to"),
        ("v.bpe v.bpe -o x.bpe", "a second SOURCE goes with --to"),
        ("shards --to nanogpt -o -", "cannot be written to standard output"),
        ("shards shards --to nanogpt -o x.bin", "reads one directory of shards"),
        ("shards --to nanogpt --codec byte -o x.bin", "reads one directory of shards"),
        ("shards --to nanogpt --pattern gpt2 -o x.bin", "are for vocabularies"),
        ("shards --to nanogpt --end-of-text zz -o x.bin", "is neither a number nor a special token of bpe-270"),
        ("x.bin --to shards -o out", "name the vocabulary with --codec"),
        ("x.bin --to shards --codec byte -o -", "shards are a directory"),
        ("x.bin --to shards --codec byte --file-tokens 9 -o out", "is for token files"),
        ("v.bpe --file-tokens 9 -o x.bpe", "--file-tokens goes with --to"),
        ("x.bin --to tfrecord -o out", "--to"),
    ],
)
def test_wrong_usage(words: str, message: str, shards: Path) -> None:
    assert message in error_of("convert", *words.split(), code=2)


def test_what_the_command_refuses(shards: Path) -> None:
    def error(words: str) -> str:
        return error_of("convert", *words.split())

    run("convert", shards, "--to", "nanogpt", "-o", "x.bin")
    assert error("x.bin --to shards --codec v.bpe -o out").startswith("x.bin: nothing in it says its format; name it")
    assert error("x.bin --from llm.c --to shards --codec v.bpe -o out").startswith("x.bin: has ")
    message = error("x.bin --from nanogpt --to shards --codec byte -o out")
    assert message.startswith("x.bin: document 1: id ")
    assert "no such file" in error("no.bin --to shards --codec byte -o out")
    assert "v.bpe: not a folder; name a folder that fastcompress encode wrote" in error("v.bpe --to llm.c -o y.bin")
    assert error("shards --to megatron -o y.ds").endswith("it must end in .bin")
    assert "--end-of-text is 70000; it must be 0 to 65535" in error("shards --to nanogpt --end-of-text 70000 -o y.bin")
    assert not Path("out/train").exists()
    assert not list(Path().glob("y*"))


def test_several_files_both_ways(shards: Path) -> None:
    words = ["convert", shards, "--to", "llm.c", "--file-tokens", 1, "-o", "x.bin"]
    assert "3 documents in 2 files, uint16, end of text" in run(*words).stdout
    parts = sorted(path.name for path in Path().glob("x*"))
    assert parts == ["x_000000.bin", "x_000001.bin"]
    assert "x_000000.bin: exists already; choose another output, or pass --force" in error_of(*words)
    run(*words, "--force")
    run("convert", *parts, "--to", "shards", "--codec", "v.bpe", "-o", "back")
    back, before = (folder / "train/00000.shard" for folder in (Path("back"), shards))
    assert back.read_bytes() == before.read_bytes()


def test_a_stream_that_nothing_divides_is_noticed(shards: Path) -> None:
    run("convert", shards, "--to", "llm.c", "--end-of-text", "5", "-o", "x.bin", "--split", "train")
    words = ["convert", "x.bin", "--to", "shards", "--codec", "v.bpe", "-o", "out", "--force"]
    end = BPE.load("v.bpe").special_tokens["<|endoftext|>"]
    assert f"no id {end} divides the ids" in run(*words).stderr
    assert run(*words, "--end-of-text", "none").stderr == ""
    assert TokenDataset.open(Path("out"), "train").num_documents == 1
    assert run(*words, "--end-of-text", "5").stderr == ""
    assert TokenDataset.open(Path("out"), "train").num_documents == 3


def test_wide_ids_need_consent_where_readers_cannot_know(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    alphabet = "".join(map(chr, [*range(0x20, 0x7F), *range(0xE000, 0xE000 + 1), *range(0x20000, 0x20000 + 65_500)]))
    codec = CharCodec.train([alphabet.encode()])
    assert codec.vocab_size > 65_536
    write_shards(tmp_path / "wide", "train", [alphabet[-3:].encode()], codec)
    message = error_of("convert", "wide", "--to", "nanogpt", "--end-of-text", "0", "-o", "x.bin")
    assert "does not fit the uint16 ids of this nanogpt file; pass --dtype 'uint32'" in message
    for name in TOKEN_FORMATS:
        wide = ["--dtype", "uint32"] if name == "nanogpt" else []
        result = run("convert", "wide", "--to", name, *wide, "-o", f"{name}{SUFFIXES[name]}", "--json").stdout
        assert json.loads(result)["dtype"] == "uint32"
        words = ["--from", name, *wide, "--to", "shards", "--codec", "wide/codec.json", "-o", f"back-{name}"]
        run("convert", f"{name}{SUFFIXES[name]}", *words)
        assert (tmp_path / f"back-{name}/train/00000.shard").read_bytes() == (
            tmp_path / "wide/train/00000.shard"
        ).read_bytes()
