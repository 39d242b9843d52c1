"""The command line: what it prints where, exit codes, one-line errors, and whole workflows."""

from __future__ import annotations

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

from fastcompress.cli import main
from fastcompress.codec import load_codec

COMMANDS = ["train-tokenizer", "encode", "decode", "train", "generate", "eval", "study"]
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
    assert "--steps, --flops, --seconds; got none" in error_of(
        "train", "--corpus", "python-docs", "--run-dir", "x", code=2
    )
    assert "'bogus' is not" in error_of("study", "bogus", code=2)
    assert "--max-bytes goes with --corpus" in error_of("eval", "x", "--max-bytes", "5", code=2)
    assert "Usage:" in run(code=2).stderr


def test_errors_are_one_line_unless_a_traceback_is_wanted():
    command = ["decode", "--codec", "no/such/file"]
    assert error_of(*command) == "no/such/file: no such codec file; name a codec.json, a saved BPE vocabulary, or byte"
    for args in ([*command, "--traceback"], ["--traceback", *command]):
        stderr = run(*args, code=1).stderr
        assert stderr.startswith("Traceback")
        assert stderr.splitlines()[-1].startswith("error: no/such/file")


@pytest.mark.parametrize(
    ("raised", "message"),
    [
        (MemoryError(), "out of memory; use a smaller --batch-size"),
        (ModuleNotFoundError("No module named 'torch'", name="torch"), "pip install 'fastcompress[train]'"),
        (OSError(28, "No space left on device", "/disk/file"), "/disk/file: No space left on device"),
        (ZeroDivisionError("two\nlines"), "ZeroDivisionError: two lines; this is a bug"),
    ],
)
def test_whatever_goes_wrong_is_one_line(monkeypatch, raised, message):
    def fail(spec):
        raise raised

    monkeypatch.setattr("fastcompress.codec.codec_from_spec", fail)
    assert message in error_of("decode", "--codec", "byte")


def test_interrupting_is_code_130(monkeypatch):
    def interrupt(spec):
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
            tmp_path / "a.json").stdout
    )  # fmt: skip
    codec = load_codec(tmp_path / "a.json")
    assert (made["codec"], made["fingerprint"], made["vocab_size"]) == ("bpe-290", codec.fingerprint, 290)
    assert made["train_bytes"] == len(TEXT.encode())
    for name in ("a.bpe", "a.json"):
        ids = run("encode", text_file, "--codec", tmp_path / name, "-o", "-").stdout
        assert [int(word) for word in ids.split()] == codec.encode(TEXT.encode()).tolist()
        assert run("decode", "--codec", tmp_path / name, stdin=ids.encode()).stdout_bytes == TEXT.encode()


@pytest.mark.parametrize("codec", ["byte", "char", "bpe-300"])
def test_a_corpus_becomes_shards_and_comes_back(text_file, tmp_path, codec):
    out = tmp_path / "shards"
    command = ["encode", "--corpus", text_file, "--codec", codec, "-o", out, "--json"]
    result = json.loads(run(*command).stdout)
    assert set(result["splits"]) == {"train", "validation"}
    assert result["splits"]["train"]["documents"] == 1
    assert sum(split["bytes"] for split in result["splits"].values()) == len(TEXT.encode())
    assert "exists" in error_of(*command)
    run(*command, "--overwrite")
    assert "name one with --split" in error_of("decode", out, code=2)
    parts = [run("decode", out, "--split", split).stdout_bytes for split in ("train", "validation")]
    assert b"".join(parts) == TEXT.encode()
    run("decode", out, "--split", "validation", "-o", tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == parts[1]
    assert "no split 'test' (there: train, validation)" in error_of("decode", out, "--split", "test")
    assert "no split 'train' (there: none)" in error_of("decode", tmp_path / "copy")


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
    assert limited == " ".join(map(str, b"row 1")) + "\n"
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
    result = run("decode", "--codec", "byte", "-o", tmp_path / "out", stdin=b"72\nbad\n", code=1)
    assert "line 2 is not ids" in result.stderr
    assert (tmp_path / "out").read_text() == "precious"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert "cannot be written" in error_of("decode", "--codec", "byte", "-o", tmp_path / "no" / "out", stdin=b"72")


def test_bad_input_is_named(tmp_path, text_file):
    (tmp_path / "empty").write_bytes(b"")
    assert "no such file, folder or corpus" in error_of("encode", "--corpus", "nope", "--codec", "byte", "-o", "x")
    assert "to name a corpus, use --corpus" in error_of("encode", "python-docs", "--codec", "byte", "-o", "x")
    assert "empty: holds 1 empty" in error_of("encode", "--corpus", tmp_path / "empty", "--codec", "byte", "-o", "x")
    assert "cannot be written" in error_of("encode", text_file, "--codec", "byte", "-o", text_file)
    assert "support only" in error_of("train-tokenizer", text_file, "--vocab-size", 5000, "-o", tmp_path / "x")
    assert "cannot write" in error_of("train-tokenizer", text_file, "--vocab-size", 256, "-o", tmp_path / "no" / "x")


def test_what_was_left_out_is_said(tmp_path):
    rows = "".join(json.dumps({"body": text}) + "\n" for text in ("one", "two", "", "one"))
    (tmp_path / "rows.jsonl").write_text(rows)
    corpus = ["--corpus", tmp_path / "rows.jsonl", "--text-key", "body"]
    result = run("encode", *corpus, "--codec", "byte", "-o", tmp_path / "out")
    assert result.stderr == "rows.jsonl: 1 empty and 1 repeated documents left out\n"


# --- Train, eval, generate -------------------------------------------------------------------------------


def test_a_run_is_evaluated_on_its_own_corpus(trained):
    result = json.loads(run("eval", trained, "--device", "cpu", "--json").stdout)
    assert (result["corpus"], result["split"], result["codec"]) == (
        "fox.txt",
        "validation",
        "char-40",
    ) or result["codec"].startswith("char-")
    assert result["num_bytes"] == len(TEXT.encode()) - len(TEXT.encode()) * 9 // 10
    assert result["is_exact"]
    assert 1 < result["bits_per_byte"] < 8
    assert result["forward_flops_per_byte"] > 0
    text = run("eval", trained, "--device", "cpu", "--stride", 8).stdout
    assert "(exact: no other tokens spell these bytes)" in text
    assert "stride 8" in text
    assert "no test split" in error_of("eval", trained, "--split", "test")
    assert "stride" in error_of("eval", trained, "--stride", 1000)


def test_generated_text_follows_the_prompt_and_the_seed(trained):
    command = ["generate", trained, "--prompt", "The café", "--max-tokens", 12, "--device", "cpu"]
    first = run(*command).stdout
    assert first.startswith("The café")
    assert run(*command).stdout == first
    assert run(*command, "--seed", 1).stdout != first
    as_json = json.loads(run(*command, "--json").stdout)
    assert as_json["prompt"] + as_json["text"] + "\n" == first
    assert run(*command, "--temperature", 0, "--top-k", 5, "--top-p", 0.9).stdout.startswith("The café")
    assert "'€' (U+20AC) at byte 0" in error_of("generate", trained, "--prompt", "€")
    assert "top_p must be in" in error_of("generate", trained, "--top-p", 2)


def test_runs_that_are_none_are_named(tmp_path):
    for command in ("eval", "generate"):
        assert "best.safetensors" in error_of(command, tmp_path / "nothing")
    assert "holds no run" in error_of("train", "--resume", "--run-dir", tmp_path, "--corpus", "python-docs")
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
    # The text changed under the run.
    data = json.loads((copy / "data.json").read_text())
    other = tmp_path / "other.txt"
    other.write_text(TEXT + "more")
    again = ["train", "--resume", "--run-dir", copy, "--steps", 9]
    assert "its text is not what the run began with" in error_of(*again, "--corpus", other)
    (copy / "data.json").write_text(json.dumps(data | {"corpus": str(other)}))
    assert "its text is not what the run began with" in error_of("train", "--resume", "--run-dir", copy, "--steps", 9)


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

    def run_study(name, output, *, seed, device, progress):
        calls.append((name, output, seed, device, progress))
        if seed == 9:
            raise KeyboardInterrupt
        return output / "report.html"

    monkeypatch.setattr(runner, "run_study", run_study)
    stopped = run("study", "quick", "--seed", 9, code=130).stderr
    assert stopped.split("\n")[:1] == ["stopped; the same command goes on from here"]
    calls.clear()
    assert run("study", "quick").stdout == f"{Path('study-quick', 'report.html')}: open it in a browser\n"
    output = run("study", "shakespeare", "-o", tmp_path, "--seed", 3, "--device", "cpu", "--json").stdout
    assert json.loads(output) == {"report": str(tmp_path / "report.html"), "study": "shakespeare", "seed": 3}
    assert calls == [
        ("quick", Path("study-quick"), 0, "auto", True),
        ("shakespeare", tmp_path, 3, "cpu", True),
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


@pytest.mark.skipif(os.name == "nt", reason="sends SIGINT")
def test_ctrl_c_leaves_a_run_that_resumes(text_file, tmp_path):
    pytest.importorskip("torch")
    directory = tmp_path / "a run"
    process = subprocess.Popen(
        command_line(
            "train",
            "--corpus",
            text_file,
            "--seconds",
            60,
            "--eval-every",
            20,
            *TINY_RUN,
            "--run-dir",
            directory,
        ),
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    deadline = time.monotonic() + 60
    while not (directory / "last.safetensors").exists() and time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=30)
    assert process.returncode == 130
    assert f"stopped; go on with: fastcompress train --run-dir '{directory}' --resume" in stderr
    assert stderr.rstrip().endswith("interrupted")
    assert "Traceback" not in stderr
    stopped_at = json.loads((directory / "metrics.jsonl").read_text().splitlines()[-1])["step"]
    steps = stopped_at + 50
    result = json.loads(run("train", "--run-dir", directory, "--resume", "--steps", steps, "--json").stdout)
    assert result["steps"] == steps
