"""Every command over inputs that are missing, empty, a folder, binary, packed, damaged, huge or unreadable, and outputs
that cannot be written: one clear line, a nonzero exit code, never a traceback, and files that exist stay as they were.

Commands are taken from the click group, so that a new one is tried too.
"""

from __future__ import annotations

import gzip
import json
import lzma
import os
import resource
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from fastcompress import BPE, archive
from fastcompress.cli import main
from fastcompress.codec import ByteCodec, LZ77Codec, save_codec
from tests.test_cli import error_of, run

TEXT = b"the quick brown fox jumps over the lazy dog; naive cafe, 12 345.\n" * 40
RANDOM = bytes((i * i * 7 + (i >> 3) * 89 + 131) % 256 for i in range(4000))
COMMANDS: dict[str, click.Command] = dict(main.commands)

# The arguments with which a command reads IN and writes OUT.
READS = {
    "train-tokenizer": "IN --vocab-size 260 -o OUT.bpe",
    "encode": "IN --codec byte -o OUT",
    "decode": "IN -o OUT",
    "convert": "IN -o OUT.bpe",
    "codebook": "IN -o OUT",
    "compress": "IN -o OUT",
    "decompress": "IN -o OUT",
    "train": "--corpus IN --codec byte --steps 1 --layers 1 --heads 1 --width 8 --context 8 --run-dir OUT",
    "tune": "--corpus IN --codec byte --tokens 64 --layers 1 --heads 1 --width 8 --context 8 -o OUT",
    "eval": "IN",
    "generate": "IN --max-tokens 1",
    "receipt": "IN --data IN",
    "study": "quick -o IN",
    "sft": "IN --data IN --run-dir OUT",
    "chat": "IN",
    "export": "IN OUT",
    "import": "IN OUT",
    "view": "IN -o OUT",
    "count": "IN --codec byte",
    "stats": "IN --codec byte -o OUT",
    "inspect": "IN",
    "verify": "IN",
}
# The arguments by which a command reads or writes something else.
READS_ALSO = {
    "convert": [
        "IN --to nanogpt -o OUT",
        "IN --to megatron -o OUT.bin",
        "IN --to llm.c --file-tokens 9 -o OUT.bin",
        "IN --to shards --codec byte -o OUT",
        "IN --from nanogpt --to shards --codec byte -o OUT",
        "IN --from nanogpt --dtype uint32 --end-of-text none --split a --to shards --codec byte -o OUT",
        "IN --from llm.c --to shards --codec byte -o OUT",
        "IN --from megatron --to shards --codec byte -o OUT",
        "IN --from datatrove --to shards --codec byte -o OUT",
    ]
}
TAKES_ANY_BYTES = {"compress", "encode", "view", "train", "count", "stats"}  # binary is fine for these
TAKES_TEXT = TAKES_ANY_BYTES | {"train-tokenizer"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of inputs of every kind, and one file that must not change."""
    files = {
        "empty": b"",
        "random": RANDOM,
        "text.txt": TEXT,
        "text.txt.gz": gzip.compress(TEXT),
        "text.txt.xz": lzma.compress(TEXT),
        "text.txt.fcz": archive.compress(TEXT),
        "packed": archive.compress(TEXT),
        "cut.txt.fcz": archive.compress(TEXT)[:-9],
        "cut.txt.gz": gzip.compress(TEXT)[:-9],
        "text.zip": b"PK\x03\x04" + bytes(30) + TEXT,
        "zip-by-another-name.txt": b"PK\x03\x04" + bytes(30) + TEXT,
        "text.zst": b"\x28\xb5\x2f\xfd" + RANDOM,
        "zstd-by-another-name": b"\x28\xb5\x2f\xfd" + RANDOM,
        "text.lz4": b"\x04\x22\x4d\x18" + RANDOM,
        "lz4-by-another-name": b"\x04\x22\x4d\x18" + RANDOM,
        "text.bz2": b"BZh91AY&SY" + RANDOM,
        "table.orc": b"ORC" + RANDOM,
        "table.parquet": b"PAR1\x15" + RANDOM + b"PAR1",
        "table.arrow": b"ARROW1\x00\x00" + RANDOM + b"ARROW1",
        "table.csv": b"text,label\nfine,1\n" * 9,
        "rows.json": json.dumps([{"text": "one"}, {"text": "two"}]).encode(),
        "rows.jsonl": b'[{"text": "one"}]\n',
        "image.png": b"\x89PNG\r\n\x1a\n" + RANDOM,
        "utf16.txt": TEXT.decode().encode("utf-16"),
        "deep.json": b"[" * 100_000,
        "precious": b"precious",
    }
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    (tmp_path / "a-folder").mkdir()
    return tmp_path


def command_line(name: str, path: object, output: object, arguments: str | None = None) -> list[str]:
    words = shlex.split((arguments or READS[name]).replace("OUT", "{out}").replace("IN", "{in}"))
    return [name, *(word.replace("{out}", str(output)).replace("{in}", str(path)) for word in words)]


def attempt(words: list[str], stdin: bytes | None = b"") -> Result:
    return CliRunner().invoke(main, words, input=stdin)


def check_refusal(result: Result, words: list[str]) -> None:
    """Exit code 1 or 2, and the last line says what is wrong; nothing looks like a bug."""
    assert result.exit_code in (1, 2), (words, result.output)
    assert isinstance(result.exception, SystemExit)
    lines = result.stderr.splitlines()
    assert lines, words
    assert lines[-1].startswith("error: "), result.stderr
    assert sum(line.startswith("error: ") for line in lines) == 1
    for word in ("Traceback", "this is a bug", "NoneType", "object at 0x", "=True"):
        assert word not in result.output, result.output


def test_every_command_is_tried() -> None:
    assert set(READS) == set(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("kind", ["missing", "nowhere/missing", "a-folder", "", "nul\0byte", "x" * 300])
def test_inputs_that_are_no_files(name: str, kind: str, folder: Path) -> None:
    if name == "study":
        pytest.skip("a study reads no input")
    words = command_line(name, folder / kind if kind else "", folder / "out")
    check_refusal(attempt(words), words)
    assert not (folder / "out").is_file()
    assert not (folder / "out.bpe").exists()


@pytest.mark.parametrize("name", COMMANDS)
def test_files_of_every_kind(name: str, folder: Path) -> None:
    """A command works on a file or refuses it; it never fails otherwise, and leaves its input as it is."""
    if name in ("study", "train", "tune"):
        pytest.skip("a study reads no input; train and tune read as encode does, but take seconds")
    for path in sorted(path for path in folder.iterdir() if path.is_file()):
        before = path.read_bytes()
        words = command_line(name, path, folder / f"out-{path.name}")
        result = attempt(words)
        if result.exit_code:
            check_refusal(result, words)
        assert path.read_bytes() == before


@pytest.mark.parametrize(("name", "arguments"), [(name, also) for name in READS_ALSO for also in READS_ALSO[name]])
def test_other_ways_to_read(name: str, arguments: str, folder: Path) -> None:
    """No file of any kind, and nothing that is no file, makes a command fail without an error of its own."""
    inputs = [path for path in sorted(folder.iterdir()) if path.is_file()]
    missing = [folder / kind for kind in ("missing", "nowhere/missing", "a-folder", "nul\0byte", "x" * 300)]
    for number, path in enumerate([*inputs, *missing, ""]):
        before = path.read_bytes() if path in inputs else b""
        words = command_line(name, path, folder / f"out-{number}", arguments)
        result = attempt(words)
        if result.exit_code or path not in inputs:
            check_refusal(result, words)
            assert not (folder / f"out-{number}" / "train").exists()
            assert not (folder / f"out-{number}").is_file()
        assert path not in inputs or path.read_bytes() == before


@pytest.mark.parametrize("name", sorted(TAKES_TEXT - {"compress", "train"}))
def test_what_is_no_text_is_refused_by_name_or_first_bytes(name: str, folder: Path) -> None:
    for file, remedy in (
        ("text.zip", "unpack it"),
        ("zip-by-another-name.txt", "unpack it"),
        ("text.lz4", "decompress it"),
        ("lz4-by-another-name", "decompress it"),
        ("table.orc", "write its text as JSON lines"),
        ("image.png", "name text"),
    ):
        message = error_of(*command_line(name, folder / file, folder / "out"))
        assert message.startswith(f"{folder / file}: is not text")
        assert remedy in message
        assert not (folder / "out").exists()


@pytest.mark.parametrize("file", ["text.txt.gz", "text.txt.xz", "text.txt.fcz", "packed"])
def test_packed_text_is_unpacked(file: str, folder: Path) -> None:
    run(*command_line("train-tokenizer", folder / file, folder / "out"))
    assert BPE.load(folder / "out.bpe") == BPE.train(TEXT, vocab_size=260)
    run("encode", folder / file, "--codec", "byte", "-o", folder / "shards")
    assert run("decode", folder / "shards").stdout_bytes == TEXT
    with (folder / file).open("rb") as stream:
        assert run("encode", "-", "--codec", "byte", "-o", "-", stdin=stream.read()).stdout.split() == [
            str(byte) for byte in TEXT
        ]
    page = run("view", folder / file, "-o", "-").stdout
    assert f"{len(TEXT):,} bytes, all shown" in page


def test_damaged_files_are_refused_by_name(folder: Path) -> None:
    pytest.importorskip("pyarrow", reason="pyarrow is not installed (extra data)")
    for name in ("train-tokenizer", "encode"):
        for file in ("text.zst", "zstd-by-another-name", "text.bz2", "table.parquet", "table.arrow", "cut.txt.gz"):
            message = error_of(*command_line(name, folder / file, folder / "out"))
            assert message.startswith(f"{folder / file}: damaged or truncated (")
            assert not (folder / "out").exists()


def test_json_is_refused_and_a_table_read_where_they_are_named(folder: Path) -> None:
    for name in ("train-tokenizer", "encode"):
        message = error_of(*command_line(name, folder / "rows.json", folder / "out"))
        assert "is JSON, not text" in message
        assert "JSON lines (.jsonl)" in message
        message = error_of(*command_line(name, folder / "table.csv", folder / "out"), "--text-key", "body")
        assert "has no column 'body', only 'text', 'label'; name the column that holds the text" in message
    cells = run("encode", folder / "table.csv", "--codec", "byte", "-o", "-").stdout.splitlines()
    assert [bytes(map(int, line.split())) for line in cells] == [b"fine", *[b"text", b"fine"] * 8]
    inner = folder / "programs"
    inner.mkdir()
    (inner / "package.json").write_bytes(b'{"name": "x"}')
    (inner / "data.csv").write_bytes(b"a,b\n")
    run("encode", inner, "--codec", "byte", "-o", folder / "shards")  # beside programs they are text


def test_tokenizers_learn_from_text_only(folder: Path) -> None:
    for file in ("random", "utf16.txt"):
        words = command_line("train-tokenizer", folder / file, folder / "out")
        message = error_of(*words)
        assert message.startswith(f"{file}: ")
        assert message.endswith("convert it to UTF-8 (iconv), or train on its bytes with --binary")
        run(*words, "--binary")
        (folder / "out.bpe").unlink()
        codec = error_of("encode", folder / file, "--codec", "bpe-260", "-o", "-")
        assert codec.endswith("convert it to UTF-8 (iconv), or use --codec byte")
    assert "UTF-16" in error_of(*command_line("train-tokenizer", folder / "utf16.txt", folder / "out2"))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (bytes(300) + b"word " * 40, "NUL characters); remove the NUL characters (tr -d '\\000'), convert it to UTF-8"),
        (b"\x80\xfe\xff" * 50, "not UTF-8); convert it to UTF-8 (iconv), or use --codec byte"),
        (b"\0\xff words of text" * 9, "NUL characters or not UTF-8); convert it to UTF-8 (iconv), or"),
    ],
)
def test_what_is_said_of_a_file_is_what_is_counted(data: bytes, message: str, inside: Path) -> None:
    (inside / "data.txt").write_bytes(data)
    for codec in ("bpe-260", "byte-entropy", "equal-info-9"):
        said = error_of("encode", "data.txt", "--codec", codec, "-o", "-")
        assert f"data.txt: does not look like text (more than a tenth of it is {message}" in said


@pytest.mark.parametrize("codec", ["bpe-260", "byte-entropy", "equal-info-9"])
@pytest.mark.parametrize("kind", ["jsonl", "csv"])
def test_rows_are_text_whatever_characters_they_hold(kind: str, codec: str, inside: Path) -> None:
    """A JSON string with NUL, and text that was decoded with U+FFFD for some bytes, are as good as any other row."""
    texts = ["\0" * 300 + "word " * 40] if kind == "jsonl" else ["\ufffd" * 300]
    texts += [f"hello world {number} again and again" for number in range(40)]
    rows = [json.dumps({"text": text}) for text in texts] if kind == "jsonl" else ["text", *texts]
    (inside / f"rows.{kind}").write_text("\n".join(rows) + "\n", encoding="utf-8")
    run("encode", "--corpus", f"rows.{kind}", "--codec", codec, "-o", "shards")
    run("encode", f"rows.{kind}", "--codec", codec, "-o", "shards2")
    (inside / f"one.{kind}").write_text("\n".join(rows[: 1 + (kind == "csv")]) + "\n", encoding="utf-8")
    run("encode", "--corpus", f"one.{kind}", "--codec", codec, "-o", "shards3")  # of one row, which is cut


def test_an_input_that_may_not_be_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if os.geteuid() == 0:  # root reads everything: refuse in its place
        import builtins
        import io

        real = io.open

        def refuse(file: object, *args: object, **settings: object) -> object:
            if str(file).endswith("text.txt"):
                raise PermissionError(13, "Permission denied", str(file))
            return real(file, *args, **settings)  # type: ignore[call-overload]

        monkeypatch.setattr(io, "open", refuse)
        monkeypatch.setattr(builtins, "open", refuse)
    else:
        (folder / "text.txt").chmod(0)
    for name in ("train-tokenizer", "encode", "convert", "compress", "decompress", "view", "count", "stats", "inspect"):
        words = command_line(name, folder / "text.txt", folder / "out")
        result = attempt(words)
        check_refusal(result, words)
        assert "Permission denied" in result.stderr


# --- Outputs ---------------------------------------------------------------------------------------------

WRITES = {
    "train-tokenizer": "text.txt --vocab-size 256 -o OUT.bpe",
    "decode": "--codec byte -o OUT",
    "convert": "a.bpe -o OUT.bpe",
    "compress": "text.txt -o OUT",
    "decompress": "text.txt.fcz -o OUT",
    "view": "text.txt -o OUT",
    "stats": "text.txt --codec byte -o OUT",
}


def output_of(name: str, output: object) -> list[str]:
    return [name, *(word.replace("OUT", str(output)) for word in shlex.split(WRITES[name]))]


@pytest.fixture
def inside(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    BPE.train(TEXT, vocab_size=256).save(folder / "a.bpe")
    save_codec(ByteCodec(), folder / "codec.json")
    save_codec(LZ77Codec(), folder / "lz77.json")
    monkeypatch.chdir(folder)
    return folder


@pytest.mark.parametrize("name", WRITES)
def test_an_output_that_exists_is_kept_unless_forced(name: str, inside: Path) -> None:
    output = inside / ("kept.bpe" if ".bpe" in WRITES[name].rpartition("-o")[2] else "kept")
    output.write_bytes(b"precious")
    words = output_of(name, inside / "kept")
    message = error_of(*words, stdin=b"72 105")
    assert message == f"{output}: exists already; choose another output, or replace it with --force"
    assert output.read_bytes() == b"precious"
    for flag in ("--force", "--overwrite"):  # the second is the old name, which help does not show
        output.write_bytes(b"precious")
        run(*words, flag, stdin=b"72 105")
        assert output.read_bytes() != b"precious"
    shown = run(name, "--help").stdout
    assert "--force" in shown
    assert "--overwrite" not in shown
    assert not [path for path in inside.iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize("name", WRITES)
@pytest.mark.parametrize("output", ["nowhere/out", "text.txt/out", "x" * 300, "nul\0byte"])
def test_outputs_that_cannot_be_written(name: str, output: str, inside: Path) -> None:
    words = output_of(name, output)
    result = attempt(words, b"72 105")
    check_refusal(result, words)
    assert (inside / "text.txt").read_bytes() == TEXT


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
@pytest.mark.parametrize("name", ["decode", "compress", "decompress", "view"])
def test_a_full_disk_is_called_that(name: str, inside: Path) -> None:
    message = error_of(*output_of(name, "/dev/full"), stdin=b"72 105")
    assert message == "/dev/full: cannot be written (No space left on device); free some space, or choose another disk"


def test_a_limit_on_the_size_of_files(inside: Path) -> None:
    (inside / "large").write_bytes(os.urandom(200_000))
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, old[1]))
    try:
        result = attempt(["compress", "large", "-o", "out"])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)
    check_refusal(result, [])
    assert "out: cannot be written (File too large); raise the limit on the size of files" in result.stderr
    assert not (inside / "out").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("train-tokenizer text.txt --vocab-size 99999999999999999999 -o x.bpe", "is not in the range"),
        (
            "train-tokenizer text.txt --vocab-size 2000000000 -o x.bpe",
            "--vocab-size is 2000000000; it must be 0 to",
        ),
        (
            "encode text.txt --codec bpe-999999999 -o -",
            "bpe-999999999: vocab_size is 999999999; it must be",
        ),
        ("encode text.txt --codec bpe-9999999999 -o -", "no such codec or file"),
        ("decode --codec lz77", "line 1: id 4294967295 at position 0 is outside"),
        ("compress text.txt --level 10 -o x", "--level"),
    ],
)
def test_numbers_that_are_too_large(words: str, message: str, inside: Path) -> None:
    result = attempt(words.split(), b"4294967295")
    check_refusal(result, [])
    assert message in result.stderr or message.removeprefix("--") in result.stderr


# --- Formats and names -----------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".json", ".tiktoken", ".bpe", ".codec.json"])
def test_the_name_of_an_output_selects_its_format(suffix: str, inside: Path) -> None:
    path = inside / f"made{suffix}"
    run("train-tokenizer", "text.txt", "--vocab-size", 280, "--pattern", "gpt2", "-o", path)
    expected = BPE.train(TEXT, vocab_size=280, pattern="gpt2").encode(TEXT)
    if suffix == ".json":
        assert "model" in json.loads(path.read_bytes())
        assert BPE.from_huggingface(path).encode(TEXT) == expected
    codec = f"{path}:gpt2" if suffix == ".tiktoken" else str(path)
    ids = run("encode", "text.txt", "--codec", codec, "-o", "-").stdout
    assert [int(word) for word in ids.split()] == expected
    assert run("decode", "--codec", path, stdin=ids.encode()).stdout_bytes == TEXT  # decoding needs no pattern
    assert "made" in run("view", "text.txt", "--codec", codec, "-o", "-").stdout


def test_a_rank_file_asks_for_its_pattern(inside: Path) -> None:
    run("convert", "a.bpe", "-o", "a.tiktoken")
    assert "name it after a colon, as in a.tiktoken:cl100k" in error_of(
        "encode", "text.txt", "--codec", "a.tiktoken", "-o", "-"
    )
    assert "give --pattern" in error_of("convert", "a.tiktoken", "-o", "b.bpe")


@pytest.mark.parametrize("command", ["train-tokenizer text.txt --vocab-size 256", "convert a.bpe"])
def test_names_of_no_format_are_refused(command: str, inside: Path) -> None:
    for output in ("x", "x.txt", "tokenizer"):
        assert "must end in .bpe" in error_of(*command.split(), "-o", output, code=2)


def test_published_vocabularies_are_codecs(inside: Path, tiktoken_cache: Path) -> None:
    (inside / "hello.txt").write_bytes(b"hello world")
    assert run("encode", "hello.txt", "--codec", "cl100k_base", "-o", "-").stdout == "15339 1917\n"
    assert run("decode", "--codec", "gpt2", stdin=b"31373 995").stdout_bytes == b"hello world"
    assert "cl100k_base" in run("view", "hello.txt", "--codec", "cl100k_base", "-o", "-").stdout
    run("convert", "cl100k_base", "-o", "a.tiktoken")
    assert run("encode", "hello.txt", "--codec", "a.tiktoken", "-o", "-").stdout == "15339 1917\n"  # known by its hash


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("cl100k", "did you mean cl100k_base"),
        ("o200kbase", "did you mean o200k_base"),
        ("lz-77", "did you mean lz77"),
        ("gpt4", "is the name of a model; name its vocabulary, cl100k_base"),
        ("gpt-4o", "name its vocabulary, o200k_base"),
        ("zzz", "name byte, lz77, lz77-buckets, lzp, gzip, "),
    ],
)
def test_names_that_are_almost_right(name: str, hint: str, inside: Path) -> None:
    for words in (
        ["encode", "text.txt", "--codec", name, "-o", "-"],
        ["decode", "--codec", name],
        ["view", "text.txt", "--codec", name, "-o", "-"],
        ["convert", name, "-o", "x.bpe"],
    ):
        assert hint in error_of(*words)


def test_codecs_that_are_learned_decode_nothing(inside: Path) -> None:
    for name in ("char", "bpe-300"):
        assert "is learned from a corpus" in error_of("decode", "--codec", name)


def test_the_memory_limit_reaches_training(inside: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = {}
    real = BPE.train

    def train(source: object, **settings: object) -> BPE:
        given.update(settings)
        return real(source, **settings)  # type: ignore[arg-type]

    monkeypatch.setattr(BPE, "train", train)
    run("train-tokenizer", "text.txt", "--vocab-size", 256, "--max-memory", 3, "-o", "x.bpe")
    assert given["max_memory_bytes"] == 3 * 1024 * 1024
    run("train-tokenizer", "text.txt", "--vocab-size", 256, "-o", "y.bpe")
    assert given["max_memory_bytes"] is None


# --- Closed streams --------------------------------------------------------------------------------------


def shell(script: str, folder: Path) -> subprocess.CompletedProcess[bytes]:
    command = f"{shlex.quote(sys.executable)} -m fastcompress"
    script = script.replace("fastcompress", command, 1)
    return subprocess.run(["bash", "-c", f"set -o pipefail; {script}"], cwd=folder, capture_output=True, check=False)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("script", "code", "stderr"),
    [
        ("fastcompress compress text.txt -o out >&-", 0, b""),
        ("fastcompress compress text.txt -o out 2>&-", 0, b""),
        ("fastcompress compress text.txt -o out <&- >&- 2>&-", 0, b""),
        ("fastcompress compress text.txt -o out --json >&-", 1, b"error: standard output is closed"),
        ("fastcompress compress text.txt -o - >&-", 1, b"error: standard output is closed"),
        ("fastcompress encode text.txt --codec byte -o - >&-", 1, b"error: standard output is closed"),
        ("fastcompress view text.txt -o - >&-", 1, b"error: standard output is closed"),
        ("fastcompress --help >&-", 1, b"error: standard output is closed"),
        ("fastcompress decompress - <&-", 1, b"error: standard input is closed"),
        ("fastcompress decode --codec byte <&-", 1, b"error: standard input is closed"),
        ("fastcompress train-tokenizer - --vocab-size 256 -o x.bpe <&-", 1, b"error: standard input is closed"),
        ("fastcompress decode nosuch 2>&-", 1, b""),
        ("fastcompress encode text.txt --codec byte -o - | true", 141, b"error: standard output is closed"),
        ("fastcompress encode text.txt --codec byte -o - > /dev/full", 1, b"error: standard output: cannot be written"),
        ("fastcompress compress text.txt -o out > /dev/full", 1, b"error: standard output: cannot be written"),
    ],
)
def test_closed_streams(script: str, code: int, stderr: bytes, folder: Path) -> None:
    (folder / "text.txt").write_bytes(TEXT * 50)  # more than a pipe holds
    done = shell(script, folder)
    assert (done.returncode, done.stderr[: len(stderr)]) == (code, stderr), done.stderr
    assert done.stderr.count(b"\n") == (1 if stderr else 0), done.stderr
    if "-o out" in script:
        assert archive.decompress((folder / "out").read_bytes()) == TEXT * 50
