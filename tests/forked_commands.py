"""Commands of `fastcompress` as processes of their own that do not each start torch, which takes seconds.

A server imports what the commands import and forks for each of them. A command gets the caller's arguments, streams,
folder and environment, and runs and ends as `python -m fastcompress.cli` does. `python FILE SOCKET WORDS...` is the
client for shells: it needs the standard library alone, so it starts at once.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, NoReturn

MESSAGE = 1 << 17  # bytes: arguments and an environment


def request(path: str, words: list[str], environment: dict[str, str], streams: list[int]) -> socket.socket:
    """Ask the server for a command; its process id comes first over the connection, and its exit code at the end."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    connection.connect(path)
    message = json.dumps({"words": words, "folder": os.getcwd(), "environment": environment}).encode()
    socket.send_fds(connection, [message], streams)
    return connection


class Command:
    """A command that runs, with what the tests need of `subprocess.Popen`; its output is text."""

    def __init__(self, path: str, words: list[str]) -> None:
        self._streams: list[IO[str]] = []
        writers = []
        for _ in ("stdout", "stderr"):
            reader, writer = os.pipe()
            writers.append(writer)
            self._streams.append(open(reader, encoding="utf-8"))  # noqa: SIM115  # closed by communicate
        with open(os.devnull) as nothing:
            self._connection = request(path, words, dict(os.environ), [nothing.fileno(), *writers])
        for writer in writers:
            os.close(writer)
        self.pid = int(self._connection.recv(MESSAGE))
        self.returncode: int | None = None

    def poll(self) -> int | None:
        self._connection.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            self._receive()
        return self.returncode

    def communicate(self, timeout: float = 120) -> tuple[str, str]:
        """Wait for the end; return what was written, which must fit into pipes, to standard output and error."""
        self._connection.settimeout(timeout)
        self._receive()
        output, errors = (stream.read() for stream in self._streams)
        for stream in self._streams:
            stream.close()
        self._connection.close()
        return output, errors

    def send_signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _receive(self) -> None:
        if self.returncode is None:
            self.returncode = int(self._connection.recv(MESSAGE))


class Server:
    """The server's process, reached by the socket at `path`."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
        self._process = subprocess.Popen([sys.executable, __file__, "--serve", self.path], env=environment)
        while not path.exists():
            assert self._process.poll() is None, "the server of commands has ended"
            time.sleep(0.02)

    def start(self, *words: object) -> Command:
        return Command(self.path, [*map(str, words)])

    def shell_function(self) -> str:
        """The definition of `fastcompress` for bash."""
        return f'fastcompress() {{ "{sys.executable}" -I -S "{__file__}" "{self.path}" "$@"; }}\n'

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait()


@contextlib.contextmanager
def serving(folder: Path) -> Iterator[Server]:
    server = Server(folder / "socket")
    try:
        yield server
    finally:
        server.stop()


def serve(path: str) -> NoReturn:
    import torch._dynamo  # noqa: F401  # a training run's first step imports it

    import fastcompress.training.train  # noqa: F401
    from fastcompress.cli import main

    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(path + ".new")
    listener.listen(16)
    os.rename(path + ".new", path)
    while True:
        connection, _ = listener.accept()
        with contextlib.suppress(ChildProcessError):  # which says that there is none
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        if os.fork():
            connection.close()
            continue
        listener.close()
        message, streams, _, _ = socket.recv_fds(connection, MESSAGE, 3)
        if child := os.fork():
            watch(connection, child, streams)
        connection.close()
        words = prepare(json.loads(message), streams)
        try:
            main(words, prog_name="fastcompress")
        except SystemExit as end:
            end_process(end.code)


def watch(connection: socket.socket, child: int, streams: list[int]) -> NoReturn:
    """Tell the caller the child's process id and, at its end, its exit code."""
    for stream in streams:  # so that who reads them sees their end
        os.close(stream)
    with contextlib.suppress(BrokenPipeError):  # a caller that no longer listens
        connection.send(str(child).encode())
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        connection.send(str(code).encode())
    os._exit(0)


def prepare(asked: dict[str, Any], streams: list[int]) -> list[str]:
    """Become the process that was asked for; return the command's words."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.environ.clear()
    os.environ.update(asked["environment"])
    os.chdir(asked["folder"])
    words: list[str] = asked["words"]
    sys.argv = ["fastcompress", *words]
    return words


def end_process(code: object) -> NoReturn:
    """End as the interpreter does, without taking torch's modules apart, which takes a second."""
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else 0 if code is None else 1)


if __name__ == "__main__":
    if sys.argv[1] == "--serve":
        serve(sys.argv[2])
    with request(sys.argv[1], sys.argv[2:], dict(os.environ), [0, 1, 2]) as waiting:
        waiting.recv(MESSAGE)
        status = int(waiting.recv(MESSAGE))
    sys.exit(status if status >= 0 else 128 - status)
