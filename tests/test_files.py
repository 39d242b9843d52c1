"""Writing whole files: through links, into pipes, over what is there, and not at all after an error."""

from __future__ import annotations

import errno
import os
import stat
import threading
from pathlib import Path

import pytest

from fastcompress._files import open_atomically, write_atomically
from fastcompress.errors import DataError, OutputError


def test_an_existing_file_is_replaced_and_keeps_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "a"
    (tmp_path / "plain").touch()
    write_atomically(path, b"one")
    assert path.stat().st_mode == (tmp_path / "plain").stat().st_mode
    path.chmod(0o640)
    before = path.stat().st_ino
    write_atomically(path, b"two")
    assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (b"two", 0o640)
    assert path.stat().st_ino != before  # whoever reads the old one reads it to its end
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a", "plain"]


def test_a_link_stays_and_its_target_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    target, link, dangling = tmp_path / "folder" / "target", tmp_path / "link", tmp_path / "dangling"
    target.write_bytes(b"old")
    link.symlink_to(target)
    dangling.symlink_to(tmp_path / "folder" / "new")
    write_atomically(link, b"through a link")
    write_atomically(dangling, b"made")
    assert (link.is_symlink(), target.read_bytes()) == (True, b"through a link")
    assert (dangling.is_symlink(), (tmp_path / "folder" / "new").read_bytes()) == (True, b"made")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_is_written_and_stays_one(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()), daemon=True)
    reader.start()
    write_atomically(pipe, b"through a pipe")
    reader.join(5)
    assert read == [b"through a pipe"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), DataError("bad"), OSError(28, "No space left on device")])
def test_after_an_error_the_old_file_is_there(tmp_path: Path, error: BaseException) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"old")
    expected = OutputError if isinstance(error, OSError) else type(error)

    def write() -> None:
        with open_atomically(path) as file:
            file.write(b"half")
            raise error

    with pytest.raises(expected):
        write()
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["a"]


def test_places_that_cannot_be_written_are_named(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "file").touch()
    for name in ("nowhere/a", "file/a", "loop", "."):
        with pytest.raises(OutputError, match="cannot be written"):
            write_atomically(tmp_path / name, b"x")


def test_without_overwrite_no_file_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "a"
    write_atomically(path, b"new", overwrite=False)
    with pytest.raises(OutputError, match="exists already"):
        write_atomically(path, b"newer", overwrite=False)
    path.unlink()

    def write() -> None:
        with open_atomically(path, overwrite=False) as file:
            file.write(b"mine")
            path.write_bytes(b"of another program, meanwhile")

    with pytest.raises(OutputError, match="exists already"):
        write()
    assert path.read_bytes() == b"of another program, meanwhile"
    assert [p.name for p in tmp_path.iterdir()] == ["a"]


@pytest.mark.parametrize(
    ("number", "remedy"),
    [
        (errno.ENOSPC, "free some space"),
        (errno.EDQUOT, "free some space"),
        (errno.EACCES, "choose a place that you may write to"),
        (errno.EROFS, "choose a place that you may write to"),
        (errno.ENAMETOOLONG, "choose a shorter name"),
        (errno.ENOENT, "choose a folder that exists"),
    ],
)
def test_the_remedy_is_that_of_the_error(tmp_path: Path, number: int, remedy: str) -> None:
    def write() -> None:
        with open_atomically(tmp_path / "a"):
            raise OSError(number, os.strerror(number))

    with pytest.raises(OutputError, match=f"cannot be written .{os.strerror(number)}.; {remedy}"):
        write()
