"""fastcompress compress and decompress: files, pipes, what is refused, and one-line errors."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

from fastcompress import archive
from tests.test_cli import error_of, run

DATA = b"the quick brown fox " * 500 + bytes(range(256))


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "book.txt"
    path.write_bytes(DATA)
    return path


def test_there_and_back(source: Path) -> None:
    packed = source.with_name("book.txt.fcz")
    result = run("compress", source)
    assert result.stdout.startswith(f"{packed}: {len(DATA):,} bytes, {packed.stat().st_size:,} compressed")
    assert packed.read_bytes() == archive.compress(DATA)
    source.unlink()
    run("decompress", packed)
    assert source.read_bytes() == DATA


def test_the_other_method(source: Path) -> None:
    run("compress", source, "--method", "cm")
    packed = source.with_name("book.txt.fcz")
    assert archive.info(packed.read_bytes()).method == "cm"
    run("decompress", packed, "--overwrite")
    assert source.read_bytes() == DATA


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="there is no /proc")
def test_files_that_do_not_say_how_long_they_are(tmp_path: Path) -> None:
    run("compress", "/proc/self/status", "-o", tmp_path / "status.fcz")
    assert b"Name:" in archive.decompress((tmp_path / "status.fcz").read_bytes())


def test_options(source: Path, tmp_path: Path) -> None:
    packed, back = tmp_path / "a.fcz", tmp_path / "back"
    result = json.loads(run("compress", source, "-o", packed, "--level", 9, "--threads", 2, "--json").stdout)
    assert result["bytes"] == len(DATA)
    assert result["archive_bytes"] == packed.stat().st_size
    assert packed.read_bytes() == archive.compress(DATA, level=9)
    result = json.loads(run("decompress", packed, "-o", back, "--threads", 1, "--json").stdout)
    assert result == {"output": str(back), "bytes": len(DATA), "archive_bytes": packed.stat().st_size,
                      "ratio": round(len(DATA) / packed.stat().st_size, 4)}  # fmt: skip
    assert back.read_bytes() == DATA


def test_pipes(source: Path) -> None:
    packed = run("compress", "-", stdin=DATA).stdout_bytes
    assert archive.info(packed).content_bytes is None
    assert archive.decompress(packed) == DATA
    assert run("decompress", "-", stdin=packed).stdout_bytes == DATA
    assert run("compress", source, "-o", "-").stdout_bytes == archive.compress(DATA)
    command = [sys.executable, "-m", "fastcompress.cli"]
    first = subprocess.Popen([*command, "compress", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    second = subprocess.Popen([*command, "decompress", "-"], stdin=first.stdout, stdout=subprocess.PIPE)
    assert first.stdin is not None
    first.stdin.write(DATA * 300)
    first.stdin.close()
    assert second.communicate()[0] == DATA * 300
    assert (first.wait(), second.returncode) == (0, 0)


def test_empty_and_large(tmp_path: Path) -> None:
    for data in (b"", random.Random(1).randbytes(3_000_000)):
        path = tmp_path / "file"
        path.write_bytes(data)
        run("compress", path, "--overwrite", "--level", 1)
        run("decompress", tmp_path / "file.fcz", "--overwrite")
        assert path.read_bytes() == data


def test_nothing_is_overwritten(source: Path, tmp_path: Path) -> None:
    packed = tmp_path / "book.txt.fcz"
    packed.write_bytes(b"mine")
    assert "exists already" in error_of("compress", source)
    assert packed.read_bytes() == b"mine"
    run("compress", source, "--overwrite")
    assert "exists already" in error_of("decompress", packed)
    assert "is the input itself" in error_of("compress", source, "-o", source, "--overwrite")
    assert source.read_bytes() == DATA


def test_damage_leaves_no_file(source: Path, tmp_path: Path) -> None:
    packed = tmp_path / "book.txt.fcz"
    run("compress", source)
    blob = bytearray(packed.read_bytes())
    blob[200] ^= 1
    packed.write_bytes(blob)
    source.unlink()
    message = error_of("decompress", packed)
    assert message.startswith(f"{packed}: fcz archive: block 0 ")
    packed.write_bytes(blob[:100])
    assert "copy the whole of it" in error_of("decompress", packed)
    packed.write_bytes(b"")
    assert "it is empty" in error_of("decompress", packed)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["book.txt.fcz"]
    assert "not an fcz archive" in error_of("decompress", "-", stdin=b"hello")


def test_other_errors(source: Path, tmp_path: Path) -> None:
    assert "no such file; name one that exists" in error_of("compress", tmp_path / "none")
    assert "is a folder" in error_of("compress", tmp_path)
    assert "does not end in .fcz" in error_of("decompress", source, code=2)
    assert "'zip' is not one of" in error_of("compress", source, "--method", "zip", code=2)
    assert "it must be 1 to 9" in error_of("compress", source, "--level", 10)
    assert "there is no folder" in error_of("compress", source, "-o", tmp_path / "none" / "a.fcz")
    run("compress", source)
    message = error_of("decompress", tmp_path / "book.txt.fcz", "-o", tmp_path / "b", "--max-output", 100)
    assert "--max-output, 100" in message
    assert not (tmp_path / "b").exists()
