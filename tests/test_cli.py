"""The command line: what it prints where, exit codes, one-line errors, and whole workflows."""

from __future__ import annotations

import importlib
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from fastcompress import BPE
from fastcompress.cli import main
from fastcompress.cli.output import echo_text
from fastcompress.cli.run_data import RunData
from fastcompress.codec import ByteCodec, load_codec, save_codec
from fastcompress.data.shards import write_shards

COMMANDS = ["train-tokenizer", "encode", "decode", "convert", "train", "generate", "eval", "study", "tune"]
COMMANDS += ["sft", "chat", "export", "import", "codebook", "count", "stats", "inspect"]
TEXT = "The quick brown fox jumps over the lazy dog; naïve café, 12 345.\n" * 60
TINY_MODEL = ["--layers", "1", "--heads", "2", "--width", "16", "--context", "32", "--batch-size", "4"]
TINY_RUN = [*TINY_MODEL, "--eval-bytes", "300", "--device", "cpu"]


def run(*args: object, stdin: bytes | None = None, code: int = 0) -> Result:
    """Run a command in this process; it must exit with `code` and raise nothing else."""
    result = CliRunner().invoke(main, list(map(str, args)), input=stdin)
    assert result.exit_code == code, result.output
    if code:
        assert isinstance(result.exception, SystemExit)
    return result


def error_of(*args: object, code: int = 1, stdin: bytes | None = None) -> str:
    """The one line of an error."""
    result = run(*args, code=code, stdin=stdin)
    assert result.stdout == ""
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
    return result.stderr[len("error: ") : -1]


@pytest.fixture
def text_file(tmp_path: Path) -> Path:
    path = tmp_path / "fox.txt"
    path.write_bytes(TEXT.encode())
    return path


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> Path:
    """A run of six steps on the text, character by character."""
    torch = pytest.importorskip("torch")
    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("trained")
    (folder / "fox.txt").write_bytes(TEXT.encode())
    text_file = folder / "fox.txt"
    run(
        "train",
        "--corpus",
        text_file,
        "--codec",
        "char",
        "--steps",
        6,
        *TINY_RUN,
        "--run-dir",
        folder / "run",
    )
    return folder / "run"


# --- Help, errors, start-up ------------------------------------------------------------------------------


@pytest.mark.parametrize("command", COMMANDS)
def test_every_help_shows_an_example_that_parses(command):
    output = run(command, "--help").stdout
    _, _, examples = output.partition("Example")
    lines = [line.strip() for line in examples.splitlines() if "fastcompress" in line]
    assert lines
    for line in lines:
        words = line.split("fastcompress ", 1)[1].replace('"', "").split()
        assert words[0] == command
        context = main.commands[command].make_context(command, words[1:])
        assert context.params
    assert command in run("--help").stdout


def test_help_is_fast_because_it_imports_no_torch():
    program = (
        "import sys\nfrom fastcompress.cli import main\n"
        "try: main(['--help'])\nexcept SystemExit: pass\n"
        "heavy = {'torch', 'tqdm', 'safetensors', 'fastcompress.data.corpora'} & set(sys.modules)\n"
        "sys.exit(f'imported {heavy}' if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_wrong_usage_is_one_line_and_code_2():
    message = error_of("encode", "--nonsense", code=2)
    assert message.startswith("No such option")
    assert "--nonsense" in message
    assert message.endswith("; see fastcompress encode --help")
    assert "give exactly one of FILES, --corpus; got none" in error_of("encode", "--codec", "byte", "-o", "x", code=2)
    assert "got FILES and --corpus" in error_of("encode", "f", "--corpus", "g", "--codec", "byte", "-o", "x", code=2)
    assert "give exactly one of SHARDS, --codec; got none" in error_of("decode", code=2)
    assert "--steps, --tokens, --flops, --seconds; got none" in error_of(
        "train", "--corpus", "python-docs", "--run-dir", "x", code=2
    )
    assert "'bogus' is not" in error_of("study", "bogus", code=2)
    shards = ["--shards", "x", "--run-dir", "y", "--steps", "1"]
    assert "--max-bytes goes with --corpus" in error_of("train", *shards, "--max-bytes", "5", code=2)
    assert "Usage:" in run(code=2).stderr


def test_errors_are_one_line_unless_a_traceback_is_wanted():
    command = ["decode", "--codec", "no/such/file"]
    remedy = (
        "name byte, lz77, lz77-buckets, lzp, gzip, gzip-16, gpt2, r50k_base, p50k_base, p50k_edit, cl100k_base, "
        "o200k_base, o200k_harmony, or a saved vocabulary (.bpe), tokenizer.json, rank file (.tiktoken), codebook, "
        "dictionary or codec.json"
    )
    assert error_of(*command) == f"no/such/file: no such codec or file; {remedy}"
    for args in ([*command, "--traceback"], ["--traceback", *command]):
        stderr = run(*args, code=1).stderr
        assert stderr.startswith("Traceback")
        assert stderr.splitlines()[-1].startswith("error: no/such/file")


@pytest.mark.parametrize(
    ("raised", "message"),
    [
        (MemoryError(), "out of memory; use a smaller input"),
        (ModuleNotFoundError("No module named 'torch'", name="torch"), "pip install 'fastcompress[train]'"),
        (OSError(28, "No space left on device", "/disk/file"), "/disk/file: No space left on device"),
        (ZeroDivisionError("two\nlines"), "ZeroDivisionError: two lines; this is a bug"),
    ],
)
def test_whatever_goes_wrong_is_one_line(monkeypatch, raised, message):
    def fail(spec, **_):
        raise raised

    monkeypatch.setattr("fastcompress.codec.codec_from_spec", fail)
    assert message in error_of("decode", "--codec", "byte")


def test_interrupting_is_code_130(monkeypatch):
    def interrupt(spec, **_):
        raise KeyboardInterrupt

    monkeypatch.setattr("fastcompress.codec.codec_from_spec", interrupt)
    result = run("decode", "--codec", "byte", code=130)
    assert result.stderr.strip() == "interrupted"


def test_a_missing_torch_names_the_extra(tmp_path):
    program = (
        "import sys\nsys.modules['torch'] = None\nfrom fastcompress.cli import main\n"
        f"main(['generate', {str(tmp_path)!r}])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == "error: this needs torch, which is not installed: pip install 'fastcompress[train]'\n"


# --- Tokenizers, encode, decode --------------------------------------------------------------------------


def test_train_tokenizer_then_encode_then_decode(text_file, tmp_path):
    result = run(
        "train-tokenizer",
        text_file,
        "--vocab-size",
        290,
        "--special-token",
        "<|x|>",
        "-o",
        tmp_path / "a.bpe",
    )
    assert f"bpe-290 from {len(TEXT.encode()):,} bytes" in result.stdout
    made = json.loads(
        run("train-tokenizer", text_file, "--vocab-size", 290, "--special-token", "<|x|>", "--json", "-o",
            tmp_path / "a.codec.json").stdout
    )  # fmt: skip
    codec = load_codec(tmp_path / "a.codec.json")
    assert (made["codec"], made["fingerprint"], made["vocab_size"]) == ("bpe-290", codec.fingerprint, 290)
    assert made["train_bytes"] == len(TEXT.encode())
    for name in ("a.bpe", "a.codec.json"):
        ids = run("encode", text_file, "--codec", tmp_path / name, "-o", "-").stdout
        assert [int(word) for word in ids.split()] == codec.encode(TEXT.encode()).tolist()
        assert run("decode", "--codec", tmp_path / name, stdin=ids.encode()).stdout_bytes == TEXT.encode()


def test_train_tokenizer_by_other_rules_and_from_another(text_file, tmp_path):
    from fastcompress import BPE

    def train(*options: object) -> BPE:
        run("train-tokenizer", text_file, *options, "-o", tmp_path / "made.bpe", "--force")
        return BPE.load(tmp_path / "made.bpe")

    base = train("--vocab-size", 280, "--pattern", "gpt2", "--max-memory", 1)
    assert base == BPE.train(TEXT, vocab_size=280, pattern="gpt2")
    base.save(tmp_path / "base.bpe")
    more = train("--vocab-size", 290, "--continue-from", tmp_path / "base.bpe")
    assert more == BPE.train(TEXT, vocab_size=290, pattern="gpt2")
    theirs = train("--vocab-size", 280, "--tie-break", "huggingface", "--min-frequency", 2, "--max-token-length", 4)
    assert theirs == BPE.train(TEXT, vocab_size=280, tie_break="huggingface", max_token_length=4)
    assert "--pattern: 'cl100k', --continue-from: 'gpt2'" in error_of(
        "train-tokenizer", text_file, "--vocab-size", 290, "--pattern", "cl100k",
        "--continue-from", tmp_path / "base.bpe", "-o", tmp_path / "x.bpe",
    )  # fmt: skip


@pytest.mark.parametrize("codec", ["byte", "char", "bpe-300"])
def test_a_corpus_becomes_shards_and_comes_back(text_file, tmp_path, codec):
    out = tmp_path / "shards"
    command = ["encode", "--corpus", text_file, "--codec", codec, "-o", out, "--json"]
    result = json.loads(run(*command).stdout)
    assert set(result["splits"]) == {"train", "validation"}
    assert result["splits"]["train"]["documents"] == 1
    assert sum(split["bytes"] for split in result["splits"].values()) == len(TEXT.encode())
    assert "already holds the splits train, validation" in error_of(*command)
    run(*command, "--overwrite")
    assert "name one with --split" in error_of("decode", out, code=2)
    parts = [run("decode", out, "--split", split).stdout_bytes for split in ("train", "validation")]
    assert b"".join(parts) == TEXT.encode()
    run("decode", out, "--split", "validation", "-o", tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == parts[1]
    assert "no split 'test' (splits: train, validation)" in error_of("decode", out, "--split", "test")
    assert "copy: not a folder; name a folder that fastcompress encode wrote" in error_of("decode", tmp_path / "copy")
    assert "no such folder; name a folder that fastcompress encode wrote" in error_of("decode", tmp_path / "nosuch")


def test_files_stay_whole_and_in_order(tmp_path):
    for name, data in (
        ("b", b"\x00\xff"),
        ("a", b""),
        ("c.jsonl", b'{"text": "row 1"}\n{"text": "row 2"}\n'),
    ):
        (tmp_path / name).write_bytes(data)
    out = tmp_path / "shards"
    text = run("encode", tmp_path / "b", tmp_path / "a", tmp_path / "c.jsonl", "--codec", "byte", "-o", out).stdout
    assert text == f"{out}: train: 4 documents, 12 bytes, 16 tokens\n"
    assert run("decode", out).stdout_bytes == b"\x00\xffrow 1row 2"
    limited = run("encode", tmp_path / "c.jsonl", "--max-bytes", 7, "--codec", "byte", "-o", "-").stdout
    assert limited == " ".join(map(str, b"row 1")) + "\n" + " ".join(map(str, b"ro")) + "\n"
    assert run("encode", "-", "--codec", "byte", "-o", "-", stdin=b"Hi\n").stdout == "72 105 10\n"
    assert run("encode", tmp_path / "b", tmp_path / "a", "--codec", "byte", "-o", "-").stdout == "0 255\n\n"


def test_bad_ids_on_standard_input_are_named():
    for text, problem in (
        (b"72\n72 x\n", "line 2 is not ids"),
        (b"1.5\n", "line 1 is not ids"),
        (b"9" * 30, "line 1 is not ids"),
        (b"72 256\n", r"line 1: id 256 at position 1 is outside"),
        (b"-1\n", r"line 1: id -1 at position 0 is outside"),
    ):
        result = run("decode", "--codec", "byte", stdin=text, code=1)
        assert f"error: standard input: {problem}" in result.stderr


def test_a_failed_decode_leaves_the_old_file(tmp_path):
    (tmp_path / "out").write_text("precious")
    command = ["decode", "--codec", "byte", "-o", tmp_path / "out"]
    assert "out: exists already; choose another output, or replace it with --force" in error_of(*command, stdin=b"72")
    result = run(*command, "--force", stdin=b"72\nbad\n", code=1)
    assert "line 2 is not ids" in result.stderr
    assert (tmp_path / "out").read_text() == "precious"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert "cannot be written" in error_of("decode", "--codec", "byte", "-o", tmp_path / "no" / "out", stdin=b"72")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_convert(tmp_path):
    (tmp_path / "text.txt").write_text(TEXT, encoding="utf-8")
    bpe, other, ranks, again = (tmp_path / name for name in ("a.bpe", "tokenizer.json", "a.tiktoken", "b.bpe"))
    special = ["--special-token", "<|end|>"]
    run("train-tokenizer", tmp_path / "text.txt", "--vocab-size", 300, "--pattern", "gpt2", *special, "-o", bpe)
    assert json.loads(run("convert", bpe, "-o", other, "--json").stdout)["special_tokens"] == {"<|end|>": 299}
    ids = {run("encode", tmp_path / "text.txt", "--codec", path, "-o", "-").stdout for path in (bpe, other)}
    assert len(ids) == 1
    assert run("decode", "--codec", other, stdin=ids.pop().encode()).stdout_bytes == TEXT.encode()
    assert "read it with pattern gpt2 and 1 special token" in run("convert", other, "-o", ranks).stdout
    run("convert", ranks, "--pattern", "gpt2", "--special-token", "<|end|>=299", "-o", again)
    assert BPE.load(again).encode(TEXT) == BPE.load(bpe).encode(TEXT)
    assert BPE.load(again).special_tokens == {"<|end|>": 299}


def test_what_convert_refuses(tmp_path):
    save_codec(ByteCodec(), tmp_path / "codec.json")
    assert "only those can be converted" in error_of("convert", tmp_path / "codec.json", "-o", tmp_path / "x.bpe")
    assert "must end in .bpe" in error_of("convert", "x.bpe", "-o", tmp_path / "x.txt", code=2)
    assert "give TEXT=ID" in error_of("convert", "x.tiktoken", "--special-token", "a", "-o", tmp_path / "x.bpe", code=2)
    assert "leave the options out" in error_of("convert", "x.bpe", "--pattern", "a", "-o", tmp_path / "x.bpe", code=2)
    (tmp_path / "x.tiktoken").write_bytes(b"YQ== 0\n")
    assert "give --pattern" in error_of("convert", tmp_path / "x.tiktoken", "-o", tmp_path / "x.bpe")
    (tmp_path / "tokenizer.json").write_text('{"model": {"type": "Unigram"}}')
    assert "'Unigram'" in error_of("decode", "--codec", tmp_path / "tokenizer.json", stdin=b"")


def test_decode_writes_into_pipes_and_through_links(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    reader = subprocess.Popen(["cat", tmp_path / "pipe"], stdout=subprocess.PIPE)
    run("decode", "--codec", "byte", "-o", tmp_path / "pipe", stdin=b"72 105")
    assert reader.communicate(timeout=10)[0] == b"Hi"
    assert (tmp_path / "pipe").is_fifo()
    (tmp_path / "target").write_text("old")
    (tmp_path / "link").symlink_to(tmp_path / "target")
    run("decode", "--codec", "byte", "-o", tmp_path / "link", "--force", stdin=b"72 105")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_bytes() == b"Hi"


def test_a_shard_directory_is_one_corpus(text_file, tmp_path):
    out, rows = tmp_path / "shards", tmp_path / "rows.jsonl"
    rows.write_text("".join(json.dumps({"text": f"row {i}"}) + "\n" for i in range(30)))
    run("encode", "--corpus", rows, "--codec", "byte", "-o", out)
    assert {path.name for path in out.iterdir()} == {"codec.json", "train", "validation", "test"}
    shutil.rmtree(out / "validation")
    shutil.rmtree(out / "train")
    other = ["encode", "--corpus", text_file, "--codec", "char", "-o", out]
    assert "already holds the splits test" in error_of(*other)
    assert {path.name for path in out.iterdir()} == {"codec.json", "test"}
    run(*other, "--overwrite")
    assert {path.name for path in out.iterdir()} == {"codec.json", "train", "validation"}
    assert run("decode", out, "--split", "validation").stdout_bytes == TEXT.encode()[len(TEXT.encode()) * 9 // 10 :]


@pytest.mark.parametrize("data", [b"\xff\xfe\x80" * 50, b"\x00" * 100, b"x", b""])
def test_any_bytes_are_encoded_and_come_back(tmp_path, data):
    (tmp_path / "data").write_bytes(data)
    run("encode", tmp_path / "data", "--codec", "byte", "-o", tmp_path / "shards")
    assert run("decode", tmp_path / "shards").stdout_bytes == data
    if len(data) > 50:
        learn = ["train-tokenizer", tmp_path / "data", "--vocab-size", 257, "-o", tmp_path / "a.bpe"]
        assert "convert it to UTF-8 (iconv), or train on its bytes with --binary" in error_of(*learn)
        run(*learn, "--binary")
        ids = run("encode", tmp_path / "data", "--codec", tmp_path / "a.bpe", "-o", "-").stdout
        assert run("decode", "--codec", tmp_path / "a.bpe", stdin=ids.encode()).stdout_bytes == data


def test_errors_name_the_document(tmp_path, text_file):
    folder = tmp_path / "folder"
    folder.mkdir()
    for i in range(9):
        (folder / f"{i}.txt").write_text(f"good text {i} " * 20)
    run("train-tokenizer", text_file, "--vocab-size", 256, "-o", tmp_path / "bytes.json")
    run("encode", "--corpus", folder, "--codec", "char", "-o", tmp_path / "shards")
    alphabet = tmp_path / "shards" / "codec.json"
    (folder / "bin.dat").write_bytes(b"\x00\xff" * 300)
    files = ["encode", folder / "0.txt", folder / "bin.dat", "-o", tmp_path / "out"]
    assert error_of(*files, "--codec", "char").startswith("bin.dat: byte 0xFF at offset 1 is not valid UTF-8")
    assert error_of(*files, "--codec", alphabet).startswith("bin.dat: byte 0xFF at offset 1")
    train = ["train", "--corpus", folder, "--steps", 1, *TINY_RUN, "--run-dir", tmp_path / "run"]
    for codec in ("char", alphabet):
        assert error_of(*train, "--codec", codec).startswith("bin.dat: byte 0xFF at offset 1")
    (folder / "bin.dat").write_text("new: €")
    assert error_of(*train, "--codec", alphabet).startswith("bin.dat: character 'n'")
    assert not (tmp_path / "run").exists()
    # An empty file is nobody's fault but its own.
    (folder / "bin.dat").write_bytes(b"")
    run("encode", folder / "bin.dat", folder / "1.txt", "-o", tmp_path / "out", "--codec", alphabet)


def test_codecs_that_are_none_are_named(text_file):
    message = error_of("encode", text_file, "--codec", "Byte", "-o", "-")
    assert message.startswith(
        "Byte: no such codec or file (did you mean byte?); "
        "name byte, lz77, lz77-buckets, lzp, gzip, gzip-16, char, bpe-N"
    )


def test_a_tokenizer_of_nothing_or_for_nowhere(tmp_path, text_file, monkeypatch):
    (tmp_path / "empty.txt").write_bytes(b"")
    learn = ["train-tokenizer", "--vocab-size", 300, "-o"]
    assert error_of(*learn, tmp_path / "a.bpe", tmp_path / "empty.txt").startswith(f"{tmp_path / 'empty.txt'}: empty, ")
    monkeypatch.setattr("fastcompress.bpe.BPE.train", lambda *_, **__: pytest.fail("trained before it looked"))
    for output, problem in ((tmp_path / "no" / "a.bpe", "there is no folder"), (tmp_path, "it is a folder")):
        assert f"{output}: cannot be written ({problem}" in error_of(*learn, output, text_file)


def test_a_truncated_shard_is_named(text_file, tmp_path):
    run("encode", text_file, "--codec", "byte", "-o", tmp_path / "shards")
    shard = tmp_path / "shards" / "train" / "00000.shard"
    shard.write_bytes(shard.read_bytes()[:-9])
    for command in (["decode"], ["train", "--steps", 1, *TINY_RUN, "--run-dir", tmp_path / "run", "--shards"]):
        message = error_of(*command, tmp_path / "shards")
        assert message.startswith(f"{shard}: ")
        assert "it is truncated" in message
    assert "is not text (.shard)" in error_of("encode", shard, "--codec", "byte", "-o", "-")


def test_bad_input_is_named(tmp_path, text_file):
    (tmp_path / "empty").write_bytes(b"")
    assert "no such file, folder or corpus" in error_of("encode", "--corpus", "nope", "--codec", "byte", "-o", "x")
    assert "use --corpus python-docs" in error_of("encode", "python-docs", "--codec", "byte", "-o", "x")
    assert "empty: holds 1 empty" in error_of("encode", "--corpus", tmp_path / "empty", "--codec", "byte", "-o", "x")
    assert "cannot be written" in error_of("encode", text_file, "--codec", "byte", "-o", text_file)
    assert "support only" in error_of("train-tokenizer", text_file, "--vocab-size", 5000, "-o", tmp_path / "x.bpe")
    assert "cannot be written" in error_of(
        "train-tokenizer", text_file, "--vocab-size", 256, "-o", tmp_path / "no" / "x"
    )


def test_what_was_left_out_is_said(tmp_path):
    rows = "".join(json.dumps({"body": text}) + "\n" for text in ("one", "two", "", "one"))
    (tmp_path / "rows.jsonl").write_text(rows)
    corpus = ["--corpus", tmp_path / "rows.jsonl", "--text-key", "body"]
    result = run("encode", *corpus, "--codec", "byte", "-o", tmp_path / "out")
    assert result.stderr == "rows.jsonl: left out: 1 empty document, 1 repeated document\n"
    folder = tmp_path / "divided"
    folder.mkdir()
    for name in ("train.txt", "validation.txt", "README.md", "notes.txt"):
        (folder / name).write_text(name)
    result = run("encode", "--corpus", folder, "--codec", "byte", "-o", tmp_path / "folder")
    assert result.stderr == "divided: left out: 2 files of no split (by name)\n"
    assert run("decode", tmp_path / "folder", "--split", "train").stdout == "train.txt"


# --- Train, eval, generate -------------------------------------------------------------------------------


def forward_flops_of_the_tiny_run(vocab_size: int) -> int:
    """FLOPs of one token by the shape of TINY_MODEL, 2 per multiply-add."""
    width, context, hidden = 16, 32, 64  # SwiGLU: 8/3 of the width, but at least 64
    attention = 2 * (3 + 1) * width * width + 4 * width * context  # projections; scores and weighted sum
    mlp = 2 * 3 * width * hidden
    return attention + mlp + 2 * width * vocab_size


def test_a_run_is_evaluated_on_its_own_corpus(trained):
    result = json.loads(run("eval", trained, "--device", "cpu", "--json").stdout)
    assert (result["corpus"], result["split"]) == ("fox.txt", "validation")
    assert result["codec"] == f"char-{len(set(TEXT))}"
    assert result["num_bytes"] == len(TEXT.encode()) - len(TEXT.encode()) * 9 // 10
    assert result["is_exact"]
    assert 1 < result["bits_per_byte"] < 8
    symbols = len(TEXT.encode()[-result["num_bytes"] :].decode()) + 1  # each character, and the end of the document
    flops = forward_flops_of_the_tiny_run(vocab_size=len(set(TEXT)) + 1)
    assert result["forward_flops_per_byte"] == pytest.approx(flops * symbols / result["num_bytes"], rel=1e-12)
    text = run("eval", trained, "--device", "cpu", "--stride", 8).stdout
    assert f"forward FLOPs a byte: {result['forward_flops_per_byte']:,.0f}\n" in text
    assert "(exact: no other tokens can spell these bytes)" in text
    assert "stride 8" in text
    assert "no test split" in error_of("eval", trained, "--split", "test")
    assert "stride" in error_of("eval", trained, "--stride", 1000)


def test_a_limit_does_not_move_the_borders_of_splits(trained):
    """The first 2,000 bytes are training text; divided anew, their end would count as validation."""
    command = ["eval", trained, "--device", "cpu", "--json", "--corpus", trained.parent / "fox.txt"]
    whole, limited = run(*command), run(*command, "--max-bytes", 200)
    assert (whole.stderr, limited.stderr) == ("", "")
    assert json.loads(limited.stdout)["num_bytes"] == 200
    assert json.loads(run("eval", trained, "--device", "cpu", "--json").stdout) == json.loads(whole.stdout)


def test_the_run_s_own_limit_holds_when_its_corpus_is_named(text_file, tmp_path):
    corpus = ["--corpus", text_file]
    run("train", *corpus, "--max-bytes", 2000, "--steps", 1, *TINY_RUN, "--run-dir", tmp_path / "run")
    command = ["eval", tmp_path / "run", "--device", "cpu", "--json"]
    named, copied = run(*command, *corpus), tmp_path / "copy.txt"
    assert (json.loads(named.stdout), named.stderr) == (json.loads(run(*command).stdout), "")
    copied.write_bytes(TEXT.encode()[:2000])
    assert run(*command, "--corpus", copied).stderr == ""


def test_scoring_what_was_trained_on_is_warned_of(trained, tmp_path):
    learned, held_out = TEXT.encode()[: len(TEXT.encode()) * 9 // 10], "The lazy dog.\n"
    folder = tmp_path / "folder"
    folder.mkdir()
    for name, text in (("train.txt", b"dog"), ("validation.txt", learned), ("test.txt", held_out.encode())):
        (folder / name).write_bytes(text)
    command = ["eval", trained, "--device", "cpu", "--corpus", folder]
    other = f"is not the text that the run was given ({trained.parent / 'fox.txt'})"
    flattered = run(*command).stderr
    assert other in flattered
    assert "warning: the run was trained on 1 of these 1 document: the figure flatters" in flattered
    fair = run(*command, "--split", "test").stderr
    assert other in fair
    assert "flatters" not in fair
    assert run("eval", trained, "--device", "cpu", "--split", "train").stderr == ""
    shutil.copytree(trained, tmp_path / "run")
    (tmp_path / "run" / "data.json").unlink()
    command[1] = tmp_path / "run"
    assert run(*command).stderr.startswith("warning: the run's own text is not known")


def test_scoring_training_shards_is_warned_of(text_file, tmp_path):
    rows = tmp_path / "rows.jsonl"
    rows.write_text("".join(json.dumps({"text": f"row {i} of the table"}) + "\n" for i in range(20)))
    shards = tmp_path / "shards"
    run("encode", rows, "--codec", "byte", "-o", shards, "--max-bytes", 300)
    run("encode", rows, "--codec", "byte", "-o", shards, "--split", "validation")
    run("train", "--shards", shards, "--steps", 1, *TINY_RUN, "--run-dir", tmp_path / "run")
    num_whole = 10 + (300 - 10 * len("row 1 of the table")) // len("row 10 of the table")
    assert num_whole < 20
    assert f"trained on {num_whole} of these 20 documents" in run("eval", tmp_path / "run", "--device", "cpu").stderr


def test_empty_documents_count_as_trained_on_nowhere(tmp_path):
    """Shards may hold empty documents, and nothing can be learned from one."""
    codec = ByteCodec()
    write_shards(tmp_path / "shards", "train", [b"a row", b"", b"another row"], codec)
    data = RunData.given(None, "text", None, str(tmp_path / "shards"))
    assert data.num_trained_on([b"", b"a row", b""], codec) == 1
    assert data.num_trained_on([b"", b"a new", b"another"], codec) == 0
    assert data.num_trained_on([], codec) == 0


def test_names_of_corpora_win_over_folders(tmp_path, monkeypatch):
    (tmp_path / "python-docs").mkdir()
    (tmp_path / "python-docs" / "a.txt").write_text("a folder that happens to be here")
    monkeypatch.chdir(tmp_path)
    given = RunData.given("python-docs", "text", None)
    assert given.corpus == "python-docs"
    assert given.loaded.num_bytes("train") > 10_000
    assert RunData.given("./python-docs", "text", None).corpus == str((tmp_path / "python-docs").resolve())


def test_generated_text_fits_any_console(trained, monkeypatch):
    drawn = ["é", "→", "\ufffd"]
    module = importlib.import_module("fastcompress.evaluation.generate")  # the package shows the function of that name
    monkeypatch.setattr(module, "generate", lambda *_, **__: iter(drawn))
    result = CliRunner(charset="ascii").invoke(
        main, ["generate", str(trained), "--prompt", "naïve ", "--device", "cpu"]
    )
    assert result.stdout_bytes.decode("utf-8") == "naïve é→\ufffd\n"  # to a file or a pipe: UTF-8
    assert result.exit_code == 0

    class Terminal(io.TextIOWrapper):
        def isatty(self) -> bool:
            return True

    terminal = Terminal(io.BytesIO(), encoding="cp1252")
    monkeypatch.setattr("sys.stdout", terminal)
    echo_text("é → \ufffd")
    assert terminal.buffer.getvalue() == "é ? ?".encode("cp1252")


def test_a_small_model_generates_on_one_thread(trained, monkeypatch):
    import torch

    from fastcompress.models import GPT

    seen, next_logits, before = set(), GPT.next_logits, torch.get_num_threads()

    def noted(*arguments):
        seen.add(torch.get_num_threads())
        return next_logits(*arguments)

    monkeypatch.setattr(GPT, "next_logits", noted)
    torch.set_num_threads(3)
    try:
        run("generate", trained, "--device", "cpu", "--max-tokens", 3)
        assert (seen, torch.get_num_threads()) == ({1}, 3)
    finally:
        torch.set_num_threads(before)


def test_seeds_that_are_too_large_are_wrong_usage(trained):
    for command in (["generate", trained], ["study", "quick"]):
        assert "is not in the range" in error_of(*command, "--seed", 2**63, code=2)


def test_generated_text_follows_the_prompt_and_the_seed(trained):
    command = ["generate", trained, "--prompt", "The café", "--max-tokens", 12, "--device", "cpu"]
    first = run(*command).stdout
    assert first.startswith("The café")
    assert run(*command).stdout == first
    assert run(*command, "--seed", 1).stdout != first
    as_json = json.loads(run(*command, "--json").stdout)
    assert as_json["prompt"] + as_json["text"] + "\n" == first
    assert run(*command, "--temperature", 0, "--top-k", 5, "--top-p", 0.9).stdout.startswith("The café")
    several = [*command, "--prompt", "dog; ", "--stop", "\\n", "--stop", "e"]
    texts = json.loads(run(*several, "--json").stdout)["texts"]
    assert [(text["prompt"], text["seed"]) for text in texts] == [("The café", 0), ("dog; ", 1)]
    assert not any(stop in text["text"] for text in texts for stop in "e\n")
    assert run(*several).stdout == "\n\n".join(text["prompt"] + text["text"] for text in texts) + "\n"
    assert "--stop is ['']; it must be" in error_of("generate", trained, "--stop", "")
    assert "'€' (U+20AC) at byte 0" in error_of("generate", trained, "--prompt", "€")
    assert "--top-p is 2.0; it must be in" in error_of("generate", trained, "--top-p", 2)


def test_runs_that_are_none_are_named(tmp_path):
    for command in ("eval", "generate"):
        assert "best.safetensors" in error_of(command, tmp_path / "nothing")
    command = f"fastcompress train --run-dir {tmp_path} --corpus FILE --steps 1000"
    nothing = f"{tmp_path}: holds no run to resume; start one with: {command}"
    assert error_of("train", "--resume", "--run-dir", tmp_path) == nothing
    assert error_of("train", "--resume", "--run-dir", tmp_path, "--corpus", "python-docs") == nothing
    assert "nowhere: holds no run to resume" in error_of("train", "--resume", "--run-dir", tmp_path / "nowhere")
    (tmp_path / "config.json").write_text("{}")
    assert "data.json: is missing" in error_of("train", "--resume", "--run-dir", tmp_path)
    (tmp_path / "data.json").write_text("[]")
    assert "data.json: cannot be read" in error_of("train", "--resume", "--run-dir", tmp_path)


def test_a_run_is_not_overwritten(trained, text_file):
    before = (trained / "data.json").read_bytes()
    message = error_of("train", "--corpus", text_file, "--steps", 1, *TINY_RUN, "--run-dir", trained)
    assert "holds a run already; go on with --resume" in message
    assert (trained / "data.json").read_bytes() == before


def test_resuming_needs_only_the_directory(trained, tmp_path):
    copy = tmp_path / "run"
    shutil.copytree(trained, copy)
    result = json.loads(run("train", "--resume", "--run-dir", copy, "--steps", 8, "--json").stdout)
    assert result["steps"] == 8
    assert "--codec does not go with --resume" in error_of(
        "train", "--resume", "--run-dir", copy, "--codec", "byte", code=2
    )
    assert "width is 16, not 32" in error_of("train", "--resume", "--run-dir", copy, "--width", 32)
    assert "the run's model is of kind gpt, not heat; leave model.kind out" in error_of(
        "train", "--resume", "--run-dir", copy, "--steps", 9, "--set", "model.kind=heat"
    )
    # The text changed under the run.
    data = json.loads((copy / "data.json").read_text())
    other = tmp_path / "other.txt"
    other.write_text(TEXT + "more")
    again = ["train", "--resume", "--run-dir", copy, "--steps", 9]
    assert "its text is not what the run began with" in error_of(*again, "--corpus", other)
    (copy / "data.json").write_text(json.dumps(data | {"corpus": str(other)}))
    assert "its text is not what the run began with" in error_of("train", "--resume", "--run-dir", copy, "--steps", 9)


def test_a_run_does_not_go_on_with_other_shards(trained, tmp_path):
    copy = tmp_path / "run"
    shutil.copytree(trained, copy)
    (tmp_path / "other.txt").write_text(TEXT.replace("12 345", "54 321"))
    codec = ["--codec", copy / "codec.json"]
    run("encode", "--corpus", tmp_path / "other.txt", *codec, "-o", tmp_path / "other")
    run("encode", "--corpus", trained.parent / "fox.txt", *codec, "-o", tmp_path / "same")
    again = ["train", "--resume", "--run-dir", copy, "--steps", 8, "--shards"]
    assert "its training text is not what the run began with" in error_of(*again, tmp_path / "other")
    assert json.loads(run(*again, tmp_path / "same", "--json").stdout)["steps"] == 8


def test_a_done_run_says_so(trained, tmp_path):
    copy = tmp_path / "run"
    shutil.copytree(trained, copy)
    (copy / "metrics.jsonl").unlink()
    before = {path.name: path.read_bytes() for path in copy.iterdir()}
    for steps in ([], ["--steps", 3]):
        result = run("train", "--resume", "--run-dir", copy, *steps)
        assert "done already, with 6 steps; no step was made" in result.stderr
        assert "best on validation: " in result.stdout
    assert {path.name: path.read_bytes() for path in copy.iterdir()} == before


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (["--heads", 7], "must be a multiple of --heads 7"),
        (["--context", 100_000], "too few for a context"),
        (["--steps", 0], "steps must be a whole number of at least 1, not 0"),
        (["--device", "cuda:99"], "cuda:99"),
    ],
)
def test_a_refused_run_leaves_no_folder(text_file, tmp_path, change, message):
    command = ["train", "--corpus", text_file, "--steps", 1, *TINY_RUN, "--run-dir", tmp_path / "run"]
    assert message in error_of(*command, *change)
    assert not (tmp_path / "run").exists()


def test_a_checkpoint_of_another_codec_is_named(trained, tmp_path):
    shutil.copytree(trained, tmp_path / "run")
    save_codec(ByteCodec(), tmp_path / "run" / "codec.json")
    for command in ("eval", "generate"):
        assert "was trained with codec char-" in error_of(command, tmp_path / "run")
    assert "was trained with codec char-" in error_of("train", "--resume", "--run-dir", tmp_path / "run", "--steps", 9)


def test_training_on_shards(text_file, tmp_path):
    run("encode", "--corpus", text_file, "--codec", "bpe-280", "-o", tmp_path / "shards")
    command = ["train", "--shards", tmp_path / "shards", "--steps", 2, "--preset", "workshop", *TINY_RUN]
    result = run(*command, "--run-dir", tmp_path / "run", "--json")
    assert json.loads(result.stdout)["codec"] == "bpe-280"
    assert "step 2: " in result.stderr
    assert "bits per byte on validation" in result.stderr
    text = run("eval", tmp_path / "run", "--device", "cpu").stdout
    assert "(an upper bound: other tokens spell the same bytes too)" in text
    assert "--codec does not go with --shards" in error_of(
        *command, "--codec", "byte", "--run-dir", tmp_path / "b", code=2
    )


def test_a_corpus_smaller_than_the_context_is_an_error(tmp_path):
    (tmp_path / "short.txt").write_text("too short")
    message = error_of(
        "train", "--corpus", tmp_path / "short.txt", "--steps", 1, *TINY_RUN, "--run-dir", tmp_path / "run"
    )
    assert "9 tokens, too few for a context of 32" in message


def test_study_passes_its_options_on(monkeypatch, tmp_path):
    runner = pytest.importorskip("fastcompress.study.runner")
    calls = []

    def run_study(name, output, *, seed, seeds, device, progress):
        calls.append((name, output, seed, seeds, device, progress))
        if seed == 9:
            raise KeyboardInterrupt
        return output / "report.html"

    monkeypatch.setattr(runner, "run_study", run_study)
    stopped = run("study", "quick", "--seed", 9, code=130).stderr
    assert stopped.split("\n")[:1] == ["stopped; the same command goes on from here"]
    calls.clear()
    assert run("study", "quick").stdout == f"{Path('study-quick', 'report.html')}: open it in a browser\n"
    output = run("study", "shakespeare", "-o", tmp_path, "--seed", 3, "--seeds", 2, "--device", "cpu", "--json").stdout
    assert json.loads(output) == {
        "report": str(tmp_path / "report.html"),
        "study": "shakespeare",
        "seed": 3,
        "seeds": 2,
    }
    assert calls == [
        ("quick", Path("study-quick"), 0, 1, "auto", True),
        ("shakespeare", tmp_path, 3, 2, "cpu", True),
    ]


# --- Real processes --------------------------------------------------------------------------------------


def command_line(*args: object) -> list[str]:
    return [sys.executable, "-m", "fastcompress.cli", *map(str, args)]


def test_pipes_of_real_processes_are_exact(tmp_path):
    data = bytes(range(256)) * 40 + b"\r\n\x1a"
    (tmp_path / "data").write_bytes(data)
    ids = subprocess.run(
        command_line("encode", tmp_path / "data", "--codec", "byte", "-o", "-"),
        capture_output=True,
        check=True,
    )
    back = subprocess.run(command_line("decode", "--codec", "byte"), input=ids.stdout, capture_output=True, check=True)
    assert back.stdout == data
    assert back.stderr == b""


def test_a_closed_pipe_is_no_traceback(tmp_path):
    (tmp_path / "data").write_bytes(b"x" * 2_000_000)
    process = subprocess.Popen(
        command_line("encode", tmp_path / "data", "--codec", "byte", "-o", "-"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stdout.read(3) == b"120"
    process.stdout.close()
    assert process.stderr is not None
    assert process.stderr.read() == b""
    assert process.wait(timeout=20) in (0, 1)  # releases of click differ
    process.stderr.close()


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="sends SIGINT")
def test_ctrl_c_leaves_a_run_that_resumes(text_file, tmp_path, forked_commands):
    pytest.importorskip("torch")
    directory = tmp_path / "a run"
    options = ["--corpus", text_file, "--seconds", 60, "--eval-every", 20, *TINY_RUN, "--run-dir", directory]
    process = forked_commands.start("train", *options)
    deadline = time.monotonic() + 60
    while not (directory / "last.safetensors").exists() and time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=30)
    assert process.returncode == 130
    assert f"stopped; go on with: fastcompress train --run-dir '{directory}' --resume" in stderr
    assert stderr.rstrip().endswith("interrupted")
    assert "stopping after this step and saving; once more to stop at once" in stderr
    assert "Traceback" not in stderr
    stopped_at = json.loads((directory / "metrics.jsonl").read_text().splitlines()[-1])["step"]
    steps = stopped_at + 50
    result = json.loads(run("train", "--run-dir", directory, "--resume", "--steps", steps, "--json").stdout)
    assert result["steps"] == steps
