"""Parts of a corpus as tasks on a Ray cluster, with the results in the order of the parts.

Plain tasks, and not Ray Data: its blocks are cut by size, and anew by every operator, so a shard of a fixed range of
documents, and a mark that it is complete, have no place in them. A task per part has. The parts depend on the input
alone, so which worker does one, and when, leaves no trace in the output.

- What all parts share, such as the codec, is put into Ray's object store once, and read from there by every worker.
- An error that a part raises is raised here as it is, but for its traceback: that of the first bad part, in order.
- A part whose worker dies (killed, out of memory, its machine lost) is done again elsewhere, `RETRIES` times.
- When an error ends the work, or the generator is closed, no part is begun any more, and those that run are waited for:
  they are not lost, and nothing is written later. (`ray.cancel` would end them sooner. In Ray 2.60 it can end the
  driver, too, by a failed check, where a task is cancelled while it is on its way to a worker.)

Every worker must have this package, and see input and output under the paths that the driver names.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Generator, Iterable
from typing import Any, TypeVar

from fastcompress.data.inputs import InputFile
from fastcompress.errors import ConfigError, WorkerError

_Part = TypeVar("_Part")
_Result = TypeVar("_Result")

RETRIES = 3
"""The number of times that a part is done again after its worker died."""

ENGINES = ("local", "ray")


def check_engine(engine: str, files: Iterable[InputFile] = ()) -> None:
    """Raise ConfigError unless `engine` is one of `ENGINES`, is installed, and can read the files."""
    if engine not in ENGINES:
        raise ConfigError(f"engine is {engine!r}; it must be one of {', '.join(ENGINES)}")
    if engine == "ray":
        _ray()
        if any(file.path is None for file in files):
            raise ConfigError("inputs has '-', but workers cannot read standard input; write it to a file")


def on_cluster(
    function: Callable[..., _Result], parts: Iterable[_Part], *shared: object, threads_per_part: int = 1
) -> Generator[_Result]:
    """Yield ``function(part, *shared)`` of each part, in order, done by the workers of a Ray cluster.

    The cluster is the one that this process is connected to, or that the environment variable RAY_ADDRESS names, or
    else one that is started on this machine.

    Args:
        function: A function of a module that the workers can import. It may be called again for a part, after a call
            that was cut off anywhere.
        parts: Its first arguments; taken a few ahead.
        shared: Its other arguments, which are sent to each machine once.
        threads_per_part: The number of cores that a part occupies, at most all of the largest machine.

    Raises:
        ConfigError: Ray is not installed.
        WorkerError: The worker of a part died, and those that tried again, too.
    """
    ray = _connected()
    cores = max(1, min(threads_per_part, max(_cores(ray), default=1)))  # a task that asks for more would wait for ever
    task = ray.remote(num_cpus=cores, max_retries=RETRIES, retry_exceptions=False, num_returns=2)(_call)
    references = [ray.put(value) for value in shared]
    waiting = enumerate(parts)
    running: dict[Any, int] = {}  # the reference of a task's error, and the index of its part
    results: dict[int, Any] = {}  # the reference of the result of each part that was begun and not yielded
    errors: dict[int, Exception | None] = {}  # of the parts that have ended
    next_index = 0
    try:
        while True:
            while len(running) <= _slots(ray, cores) and not any(errors.values()):
                if (item := next(waiting, None)) is None:
                    break
                index, part = item
                error, results[index] = task.remote(os.getcwd(), function, part, *references)
                running[error] = index
            if not running:
                return
            for done in ray.wait(list(running))[0]:
                errors[running.pop(done)] = _error(ray, done)
            while next_index in errors:
                if (failure := errors.pop(next_index)) is not None:
                    raise failure
                yield _get(ray, results.pop(next_index))
                next_index += 1
    finally:
        if running:
            ray.wait(list(running), num_returns=len(running))


def _call(
    folder: str, function: Callable[..., _Result], part: object, *shared: object
) -> tuple[Exception, None] | tuple[None, _Result]:
    """Return the error of a call or its result, which is not sent to the driver before its turn; runs in a worker.

    It is called in the folder that the driver is in, so that relative paths, also in messages, are the same.
    """
    own = os.getcwd()
    with contextlib.suppress(OSError):  # a machine without that folder, where absolute paths may work all the same
        os.chdir(folder)
    try:
        return None, function(part, *shared)
    except Exception as error:
        return error, None
    finally:
        os.chdir(own)


def _error(ray: Any, reference: Any) -> Exception | None:
    """Return the error that a task returned, or the one that kept it from returning anything."""
    try:
        error: Exception | None = _get(ray, reference)
    except Exception as death:
        return death
    return error


def _get(ray: Any, reference: Any) -> Any:
    """Return what a task returned. Raises WorkerError if it died with its workers."""
    try:
        return ray.get(reference)
    except ray.exceptions.RayTaskError as error:  # from Ray's own part of the work, such as pickling the result
        raise error.cause from None
    except ray.exceptions.RayError as death:
        raise WorkerError(
            f"a part failed {RETRIES + 1} times with its worker ({type(death).__name__}); "
            "give the workers more memory, or look into the logs of Ray"
        ) from death


def _connected() -> Any:
    """Return the module ray, connected to a cluster."""
    ray = _ray()
    if not ray.is_initialized():
        ray.init(logging_level="warning")
    return ray


def _cores(ray: Any) -> list[int]:
    """Return the number of cores of each machine."""
    return [int(node["Resources"].get("CPU", 0)) for node in ray.nodes() if node["Alive"]]


def _slots(ray: Any, cores: int) -> int:
    """Return the number of tasks that run at once. One more is submitted, so that a cluster that can grow does."""
    return max(1, sum(number // cores for number in _cores(ray)))


def _ray() -> Any:
    try:
        import ray
    except ImportError:
        raise ConfigError(
            "engine is 'ray', which is not installed; pip install 'fastcompress[distributed]', or use engine='local'"
        ) from None
    return ray
