"""Locks on folders: one writer at a time, whatever process or thread it is, and none left by the dead."""

from __future__ import annotations

import errno
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from fastcompress import _locks
from fastcompress._locks import locked
from fastcompress.errors import OutputError

HOLD = """
import sys, time
from fastcompress._locks import locked
with locked(sys.argv[1]):
    print("held", flush=True)
    {}
"""


def holder(folder: Path, then: str = "time.sleep(60)") -> subprocess.Popen[str]:
    """A process that holds the lock of `folder` when this returns."""
    process = subprocess.Popen([sys.executable, "-c", HOLD.format(then), folder], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_another_process_is_refused_and_named(tmp_path: Path) -> None:
    process = holder(tmp_path)
    with pytest.raises(OutputError, match=rf"process {process.pid} on .* is writing to it; wait"), locked(tmp_path):
        pass
    process.kill()
    process.wait()


def test_a_killed_holder_leaves_no_lock(tmp_path: Path) -> None:
    process = holder(tmp_path)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert (tmp_path / ".lock").exists()
    with locked(tmp_path):
        pass
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_child_that_outlives_its_parent_holds_nothing(tmp_path: Path) -> None:
    """As a DataLoader's worker does when its parent is killed."""
    # The child says itself that it runs: until then it has had no chance to close its copy of the lock's file.
    then = "import os\n    if os.fork() == 0: print(os.getpid(), flush=True)\n    time.sleep(60)"
    process = holder(tmp_path, then)
    assert process.stdout is not None
    child = int(process.stdout.readline())
    try:
        process.kill()
        process.wait()
        os.kill(child, 0)  # it lives
        with locked(tmp_path):
            pass
    finally:
        os.kill(child, signal.SIGKILL)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_child_that_ends_does_not_unlock(tmp_path: Path) -> None:
    with locked(tmp_path):
        process = multiprocessing.get_context("fork").Process(target=time.sleep, args=(0,))
        process.start()
        process.join()
        with pytest.raises(OutputError, match="is writing"):
            holder_of_nothing(tmp_path)


def holder_of_nothing(folder: Path) -> None:
    """Take the lock in a fresh process; its error becomes this process's."""
    result = subprocess.run([sys.executable, "-c", HOLD.format("pass"), folder], capture_output=True, text=True)
    if result.returncode:
        raise OutputError(result.stderr.splitlines()[-1])


def test_another_thread_is_refused(tmp_path: Path) -> None:
    errors: list[BaseException] = []

    def write() -> None:
        try:
            with locked(tmp_path):
                pass
        except OutputError as error:
            errors.append(error)

    with locked(tmp_path):
        thread = threading.Thread(target=write)
        thread.start()
        thread.join()
    assert len(errors) == 1


def test_waiting_takes_over_when_the_holder_is_done(tmp_path: Path) -> None:
    process = holder(tmp_path, "time.sleep(0.3)")
    with locked(tmp_path, wait_seconds=30):
        assert process.wait() == 0
        holders = (tmp_path / ".lock").read_bytes()
    assert str(os.getpid()).encode() in holders
    assert not list(tmp_path.iterdir())


COUNT = """
import sys
from pathlib import Path
from fastcompress._locks import locked
counter = Path(sys.argv[1]) / "counter"
for _ in range(60):
    with locked(sys.argv[1], wait_seconds=60):
        counter.write_text(str(int(counter.read_text()) + 1))
"""


def test_no_two_processes_hold_it_at_once(tmp_path: Path) -> None:
    """A lock file that is removed and made anew must not let two in: an increment would get lost."""
    (tmp_path / "counter").write_text("0")
    processes = [subprocess.Popen([sys.executable, "-c", COUNT, tmp_path]) for _ in range(4)]
    assert [process.wait() for process in processes] == [0] * 4
    assert (tmp_path / "counter").read_text() == "240"


def test_without_locks_there_is_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(_locks.fcntl, "flock", refuse)
    with pytest.warns(UserWarning, match="no locks"), locked(tmp_path):
        pass


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match=r"nosuch: cannot be written \(No such file"), locked(tmp_path / "nosuch"):
        pass


def test_an_error_in_the_block_passes_and_unlocks(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), locked(tmp_path):
        raise ZeroDivisionError
    with locked(tmp_path):
        pass
