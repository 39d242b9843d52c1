"""Encoding on a local Ray cluster of two processes: the bytes, errors and crash safety of the local engine."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from fastcompress import BPE
from fastcompress.cli import main
from fastcompress.codec import BPECodec, ByteCodec, CharCodec, Codec, save_codec
from fastcompress.data import TokenDataset, encode_dataset
from fastcompress.data.dataset_parts import EncodeProgress
from fastcompress.errors import ConfigError, DataError, FastcompressError, OutputError, WorkerError
from tests import cluster_parts

TEXT = "To be, or not to be, that is the question: café {number}. "
OPTIONS: dict[str, Any] = {"shard_bytes": 3000, "on_error": "skip"}


@pytest.fixture
def inputs(tmp_path: Path) -> Path:
    """Files of several types and sizes; some rows have no text, and one file is damaged."""
    folder = tmp_path / "inputs"
    folder.mkdir()
    for number in range(8):
        (folder / f"{number}.txt").write_text(TEXT.format(number=number) * (5 + 30 * (number % 3)))
        rows = [{"text": TEXT.format(number=row) * (row % 7)} if row % 5 else {"other": row} for row in range(40)]
        (folder / f"{number}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "damaged.txt.gz").write_bytes(b"\x1f\x8b\x08\x00 cut off")
    return folder


@pytest.fixture
def codec() -> BPECodec:
    return BPECodec(BPE.train(TEXT * 20, vocab_size=270))


def files_of(folder: Path) -> dict[str, str]:
    """The names of all files below a folder, but for locks, and the checksums of their contents."""
    paths = [path for path in folder.rglob("*") if path.is_file() and path.name != ".lock"]
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


@pytest.mark.slow
@pytest.mark.usefixtures("cluster")
def test_a_cluster_writes_the_bytes_of_the_local_engine(inputs: Path, codec: BPECodec, tmp_path: Path) -> None:
    states: dict[str, list[EncodeProgress]] = {"local": [], "ray": []}
    for engine, shown in states.items():
        encode_dataset(inputs, tmp_path / engine, codec, engine=engine, progress=shown.append, **OPTIONS)
    local = files_of(tmp_path / "local")
    assert files_of(tmp_path / "ray") == local
    assert sum(name.endswith(".shard") for name in local) >= 10
    assert states["ray"][-1] == states["local"][-1]
    assert states["ray"][-1].skipped > 8
    assert len({state.documents for state in states["ray"]}) >= 5, "progress is shown part by part"
    texts = [path.read_bytes() for path in sorted(inputs.glob("*.txt"))]
    documents = {codec.decode(ids) for ids in TokenDataset.open(tmp_path / "ray", "train").documents()}
    assert documents >= set(texts)


@pytest.mark.slow
@pytest.mark.usefixtures("cluster")
def test_relative_paths_mean_the_same(
    inputs: Path, codec: BPECodec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for engine in ("local", "ray"):
        encode_dataset("inputs", engine, codec, engine=engine, **OPTIONS)
    assert files_of(tmp_path / "ray") == files_of(tmp_path / "local")


@pytest.mark.slow
@pytest.mark.usefixtures("cluster")
def test_errors_are_those_of_the_local_engine(inputs: Path, tmp_path: Path) -> None:
    (inputs / "3.txt").write_text("z")
    codecs: list[Codec] = [BPECodec(BPE.train(TEXT, vocab_size=260)), CharCodec(sorted(set(TEXT + "0123456789")))]
    for number, codec in enumerate(codecs):  # a row without text; a character that is not in the alphabet
        errors: list[tuple[type, str]] = []
        for engine in ("local", "ray"):
            output = tmp_path / f"{engine}-{number}"
            on_error = "fail" if number == 0 else "skip"
            with pytest.raises(FastcompressError) as caught:
                encode_dataset(inputs, output, codec, engine=engine, shard_bytes=3000, on_error=on_error)
            errors.append((caught.type, str(caught.value)))
            assert not (output / "train").exists()
        assert errors[0] == errors[1]
        assert errors[0][0] is DataError


@pytest.mark.slow
def test_the_local_engine_finishes_what_a_cluster_began(
    cluster: Any,
    inputs: Path,
    codec: BPECodec,
    tmp_path: Path,
) -> None:
    """A driver that is killed in the middle leaves parts that are done; neither engine does them again."""
    encode_dataset(inputs, tmp_path / "whole", codec, **OPTIONS)
    save_codec(codec, tmp_path / "codec.json")
    script = (
        "import sys, os, signal\n"
        "from fastcompress.codec import load_codec\n"
        "from fastcompress.data import encode_dataset\n"
        "seen = []\n"
        "def stop(state):\n"
        "    seen.append(state)\n"
        "    if len(seen) == 3: os.kill(os.getpid(), signal.SIGKILL)\n"
        "encode_dataset(sys.argv[1], sys.argv[2], load_codec(sys.argv[3]), engine='ray', progress=stop,"
        " shard_bytes=3000, on_error='skip')\n"
    )
    arguments = [str(inputs), str(tmp_path / "resumed"), str(tmp_path / "codec.json")]
    path = [str(Path(__file__).parent.parent / "python"), *sys.path]
    address = cluster.get_runtime_context().gcs_address
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, path)), "RAY_ADDRESS": address}
    done = subprocess.run([sys.executable, "-c", script, *arguments], env=environment, capture_output=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()
    wait_for_workers(tmp_path / "resumed")
    result = encode_dataset(inputs, tmp_path / "resumed", codec, **OPTIONS)
    assert result.resumed_shards >= 2
    assert files_of(tmp_path / "resumed") == files_of(tmp_path / "whole")


@pytest.mark.slow
@pytest.mark.usefixtures("cluster")
def test_the_parts_of_killed_workers_are_done_again(inputs: Path, tmp_path: Path) -> None:
    """A worker dies in the middle of a part whose first shards are done."""
    rows = [{"text": f"{'die' if number == 70 else 'live'} {number} " * 20} for number in range(100)]
    (inputs / "0.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    encode_dataset(inputs, tmp_path / "local", ByteCodec(), **OPTIONS)
    (tmp_path / "marks").mkdir()
    fatal = cluster_parts.FatalCodec(str(tmp_path / "marks"), num_deaths=2)
    encode_dataset(inputs, tmp_path / "ray", fatal, engine="ray", **OPTIONS)
    assert len(list((tmp_path / "marks").iterdir())) == 2
    written = {folder: files_of(tmp_path / folder) for folder in ("local", "ray")}
    assert written["ray"].pop("codec.json") != written["local"].pop("codec.json")
    assert written["ray"] == written["local"]


@pytest.mark.slow
@pytest.mark.usefixtures("cluster")
def test_a_part_whose_workers_always_die_is_a_typed_error(inputs: Path, tmp_path: Path) -> None:
    (inputs / "3.txt").write_text("die")
    (tmp_path / "marks").mkdir()
    fatal = cluster_parts.FatalCodec(str(tmp_path / "marks"), num_deaths=4)
    with pytest.raises(WorkerError, match="a part failed 4 times with its worker"):
        encode_dataset(inputs, tmp_path / "ray", fatal, engine="ray", **OPTIONS)
    assert not (tmp_path / "ray" / "train").exists()
    encode_dataset(inputs, tmp_path / "ray", fatal, engine="ray", **OPTIONS)  # its worker lives now
    encode_dataset(inputs, tmp_path / "local", ByteCodec(), **OPTIONS)
    written = {folder: files_of(tmp_path / folder / "train") for folder in ("local", "ray")}
    assert written["ray"] == written["local"]


@pytest.mark.slow
@pytest.mark.usefixtures("cluster")
def test_the_command_encodes_on_the_cluster(inputs: Path, tmp_path: Path) -> None:
    common = ["encode", str(inputs), "--codec", "byte", "--on-error", "skip", "--shard-bytes", "3000"]
    for engine in ("local", "ray"):
        done = CliRunner().invoke(main, [*common, "-o", str(tmp_path / engine), "--engine", engine])
        assert done.exit_code == 0, done.output
    assert files_of(tmp_path / "ray") == files_of(tmp_path / "local")


@pytest.mark.parametrize("arguments", [["--corpus", "python-docs", "-o", "x"], ["-", "-o", "x"], ["a.txt", "-o", "-"]])
def test_the_command_refuses_what_a_cluster_cannot_do(arguments: list[str]) -> None:
    done = CliRunner().invoke(main, ["encode", *arguments, "--codec", "byte", "--engine", "ray"])
    assert done.exit_code == 2
    assert "--engine ray encodes FILES into shards" in done.output


def wait_for_workers(folder: Path) -> None:
    """Wait until nothing below a folder changes any more."""
    before = None
    while before != (now := files_of(folder)):
        before = now
        time.sleep(1.0)


@pytest.mark.slow
@pytest.mark.usefixtures("cluster")
def test_a_cluster_reads_no_standard_input(codec: BPECodec, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="workers cannot read standard input"):
        encode_dataset("-", tmp_path / "shards", codec, engine="ray")
    assert not (tmp_path / "shards").exists()
    (tmp_path / "file").write_text("x")
    with pytest.raises(OutputError, match="it is a file, not a folder"):
        encode_dataset(tmp_path / "file", tmp_path / "file", codec, engine="ray")
