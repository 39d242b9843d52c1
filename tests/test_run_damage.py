"""A run's files carry checksums: a changed byte, a cut, a file of another run are noticed, wherever they are read."""

from __future__ import annotations

import dataclasses
import errno
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from click.testing import CliRunner, Result
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from fastcompress.bpe import BPE
from fastcompress.cli import main
from fastcompress.codec import BPECodec
from fastcompress.data.shards import TokenDataset
from fastcompress.errors import DataError, FastcompressError, FormatError, MismatchError, OutputError
from fastcompress.models.gpt import GPTConfig
from fastcompress.training import checkpoint as checkpoints
from fastcompress.training.checkpoint import load_run, read_checkpoint
from fastcompress.training.config import TrainConfig
from fastcompress.training.train import train
from tests.forked_commands import Server

TEXT = [b"some text to train on, and a little more of it, and more " * 3]
CODEC = BPECodec(BPE.train([TEXT[0].decode()], vocab_size=260))
MODEL = GPTConfig.modern(vocab_size=261, num_layers=1, num_heads=1, width=2, context_length=8)
CONFIG = TrainConfig(steps=3, batch_size=2, device="cpu", self_check=False, log_every=1)
DATA = TokenDataset.from_documents(TEXT, CODEC)


def resume(directory: Path, **changes: Any) -> None:
    config = dataclasses.replace(CONFIG, **{"steps": 5, **changes})
    train(MODEL, CODEC, DATA, TEXT, config, directory, resume=True, progress=False)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("run")
    train(MODEL, CODEC, DATA, TEXT, CONFIG, directory, progress=False)
    return directory


@pytest.fixture
def copy(trained: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(trained, tmp_path / "copy"))


def flip(path: Path, position: int, bits: int) -> None:
    content = bytearray(path.read_bytes())
    content[position] ^= bits
    path.write_bytes(content)


def positions(size: int, dense: int) -> list[int]:
    """Every byte of the front and of the end, and some between."""
    return sorted({*range(min(dense, size)), *range(dense, size, 977), *range(max(0, size - 40), size)})


@pytest.mark.slow
@pytest.mark.parametrize("which", ["best", "last"])
def test_every_changed_byte_of_a_checkpoint_is_noticed(copy: Path, which: Any) -> None:
    path = copy / f"{which}.safetensors"
    content = path.read_bytes()
    head = 8 + int.from_bytes(content[:8], "little")
    for position in positions(len(content), head + 64):
        damaged = bytearray(content)
        damaged[position] ^= (1, 0x20, 0xFF)[position % 3]  # 0x20 changes the case of a letter
        path.write_bytes(damaged)
        with pytest.raises(FormatError, match=rf"{which}\.safetensors: .*(restore|release|name a directory)"):
            read_checkpoint(path)
    path.write_bytes(content)
    read_checkpoint(path)


@pytest.mark.parametrize("name", ["last.safetensors", "best.safetensors", "config.json", "codec.json", "metrics.jsonl"])
def test_a_run_with_a_damaged_file_is_not_resumed(trained: Path, tmp_path: Path, name: str) -> None:
    size = (trained / name).stat().st_size
    checkpointed = size if name != "metrics.jsonl" else metrics_bytes(trained)
    for position in range(0, checkpointed, max(1, checkpointed // 12)):
        copy = Path(shutil.copytree(trained, tmp_path / f"{position}"))
        flip(copy / name, position, 1)
        with pytest.raises(FormatError, match=rf"{name}: "):
            resume(copy)
        assert (copy / "last.safetensors").stat().st_size == (trained / "last.safetensors").stat().st_size


def metrics_bytes(run: Path) -> int:
    return int(read_checkpoint(run / "last.safetensors").state["metrics"]["num_bytes"])


@pytest.mark.parametrize("name", ["best.safetensors", "config.json", "codec.json"])
def test_a_run_with_a_damaged_file_is_not_loaded(trained: Path, tmp_path: Path, name: str) -> None:
    size = (trained / name).stat().st_size
    for position in range(0, size, max(1, size // 40)):
        copy = Path(shutil.copytree(trained, tmp_path / f"{position}"))
        flip(copy / name, position, 1)
        with pytest.raises(FormatError, match=rf"{name}: "):
            load_run(copy)


@pytest.mark.slow
def test_the_command_says_it_in_one_line(tmp_path: Path, forked_commands: Server) -> None:
    corpus, run = tmp_path / "corpus.txt", tmp_path / "run"
    corpus.write_bytes(TEXT[0] * 10)
    size = ["--layers", "1", "--heads", "1", "--width", "8", "--context", "8", "--batch-size", "2", "--device", "cpu"]

    def command(*words: object) -> Result:
        return CliRunner().invoke(main, [*map(str, words)])

    def assert_one_line(code: int, stderr: str) -> None:
        assert code == 1
        assert stderr.startswith(f"error: {run / name}: ")
        assert len(stderr.splitlines()) == 1
        assert "this is a bug" not in stderr

    assert command("train", "--corpus", corpus, "--run-dir", run, "--steps", 3, *size).exit_code == 0
    files = ("last.safetensors", "best.safetensors", "config.json", "codec.json")
    for name in files:
        content = (run / name).read_bytes()
        flip(run / name, len(content) - 9, 1)
        commands = [("train", "--run-dir", run, "--resume", "--steps", 5)]
        if name != "last.safetensors":
            commands.append(("eval", run))
        if name != "last.safetensors":
            commands.append(("generate", run, "--max-tokens", 2))
        for words in commands:
            result = command(*words)
            assert_one_line(result.exit_code, result.stderr)
            assert isinstance(result.exception, SystemExit)
        if name == "last.safetensors":  # once as a process of its own
            process = forked_commands.start(*commands[0])
            _, told = process.communicate()
            assert_one_line(process.returncode, told)
        (run / name).write_bytes(content)
    assert command("eval", run).exit_code == 0


@pytest.mark.parametrize("name", ["last.safetensors", "best.safetensors"])
def test_a_checkpoint_of_another_run_is_refused(copy: Path, tmp_path: Path, name: str) -> None:
    """Same model, codec, data and settings: only the run is another."""
    train(MODEL, CODEC, DATA, TEXT, CONFIG, tmp_path / "other", progress=False)
    shutil.copy(tmp_path / "other" / name, copy / name)
    with pytest.raises(MismatchError, match=rf"{name}: belongs to another run"):
        resume(copy)
    with pytest.raises(MismatchError, match=rf"{name}: belongs to another run"):
        load_run(copy, which="best" if name.startswith("best") else "last")


def test_a_resumed_run_is_still_the_same_run(copy: Path) -> None:
    resume(copy)
    resume(copy, steps=7)
    load_run(copy)
    load_run(copy, which="last")


@pytest.mark.parametrize(
    ("name", "error"), [("last.safetensors", DataError), ("config.json", DataError), ("codec.json", FastcompressError)]
)
def test_a_missing_part_is_named(copy: Path, name: str, error: type[Exception]) -> None:
    (copy / name).unlink()
    if name == "codec.json":
        with pytest.raises(error, match=name):
            load_run(copy)
    else:
        with pytest.raises(error, match=rf"{name}|holds no run"):
            resume(copy)


def without_checksums(directory: Path) -> None:
    """What the version before checksums wrote."""
    for path in directory.glob("*.safetensors"):
        with safe_open(path, "pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            metadata = dict(file.metadata())
        del metadata["sha256"]
        state = json.loads(metadata["state"])
        for name in ("run", "metrics", "rows"):
            del state[name]
        save_file(tensors, path, {**metadata, "state": json.dumps(state)})
    config = json.loads((directory / "config.json").read_text())
    for name in ("sha256", "run", "rows"):
        del config[name]
    (directory / "config.json").write_text(json.dumps(config, indent=1) + "\n")


@pytest.mark.parametrize("use", [load_run, resume])
def test_runs_of_older_versions_load_with_a_word(copy: Path, use: Callable[[Path], object]) -> None:
    expected = read_checkpoint(copy / "best.safetensors").tensors
    without_checksums(copy)
    with pytest.warns(UserWarning, match=r"safetensors: has no checksum, since an older version wrote it"):
        stored = read_checkpoint(copy / "best.safetensors")
    assert all(torch.equal(stored.tensors[name], tensor) for name, tensor in expected.items())
    with pytest.warns(UserWarning, match="has no checksum"):
        use(copy)


@pytest.mark.slow
def test_a_checksum_cannot_be_lost_by_damage(copy: Path) -> None:
    """A damaged field name must not make a new file pass for an old one."""
    for name in ("config.json", "last.safetensors"):
        content = (copy / name).read_bytes()
        for position in range(content.index(b'"sha256"'), content.index(b'"sha256"') + 70):
            for bits in (1, 0x10, 0x20):
                damaged = bytearray(content)
                damaged[position] ^= bits
                (copy / name).write_bytes(damaged)
                with pytest.raises(FormatError, match=rf"{name}: "):
                    resume(copy)
        (copy / name).write_bytes(content)


# --- A disk that is full ---------------------------------------------------------------------------------


@pytest.mark.parametrize("which", ["best", "last"])
def test_a_full_disk_leaves_a_run_that_resumes(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, which: str
) -> None:
    """Interrupted by it or not, a run ends with the same weights."""
    full, free = (Path(shutil.copytree(trained, tmp_path / name)) for name in ("full", "free"))
    before = (full / f"{which}.safetensors").read_bytes()
    write = checkpoints.save_file

    def no_space(tensors: dict[str, torch.Tensor], path: Path, metadata: dict[str, str]) -> None:
        if any(name.startswith("optimizer/") for name in tensors) == (which == "last"):
            path.write_bytes(b"the beginning of a checkpoint")
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write(tensors, path, metadata)

    with monkeypatch.context() as patch:
        patch.setattr(checkpoints, "save_file", no_space)
        problem = r"cannot be written \(No space left on device\); free some space, or choose another disk$"
        with pytest.raises(OutputError, match=rf"{which}\.safetensors: the checkpoint {problem}"):
            resume(full, steps=8)
    assert (full / f"{which}.safetensors").read_bytes() == before
    assert not list(full.glob(".*.tmp"))
    resume(full, steps=8)
    resume(free, steps=8)
    a, b = (load_file(directory / "last.safetensors") for directory in (full, free))
    assert a.keys() == b.keys()
    assert all(torch.equal(a[name], b[name]) for name in a)


@pytest.mark.slow
def test_the_command_names_a_limit_on_file_sizes_and_how_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "text").write_bytes(b"a text to train on, and to stop in the middle of. " * 40)
    start = "--corpus text --codec byte --layers 1 --heads 1 --width 16 --context 8 --batch-size 2 --steps 2"

    monkeypatch.chdir(tmp_path)

    def words_of(options: str) -> list[str]:
        return ["train", "--run-dir", "run", "--device", "cpu", *options.split()]

    def train_limited(options: str) -> subprocess.CompletedProcess[str]:
        script = (
            "import resource, sys\n"
            "resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))\n"
            "from fastcompress.cli import main\n"
            "main(sys.argv[1:])"
        )
        return subprocess.run(
            [sys.executable, "-c", script, *words_of(options)], capture_output=True, text=True, timeout=120
        )

    refused = train_limited(start)
    assert refused.returncode == 1
    assert refused.stderr.splitlines()[-1] == (
        "error: run/best.safetensors: the checkpoint cannot be written (File too large); raise the limit on the size "
        "of files, or choose another disk; then go on with: fastcompress train --run-dir run --resume"
    )
    assert CliRunner().invoke(main, words_of("--resume")).exit_code == 0
    before = {path.name: path.read_bytes() for path in (tmp_path / "run").glob("*.safetensors")}
    refused = train_limited("--resume --steps 4")
    assert "run/best.safetensors: the checkpoint cannot be written (File too large)" in refused.stderr
    assert {path.name: path.read_bytes() for path in (tmp_path / "run").glob("*.safetensors")} == before
    done = CliRunner().invoke(main, words_of("--resume --steps 4"))
    assert (done.exit_code, "run: 4 steps" in done.stdout) == (0, True)
