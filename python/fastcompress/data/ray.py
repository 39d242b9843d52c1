"""Parts of a corpus as tasks on a Ray cluster, with the results in the order of the parts.

Plain tasks, and not Ray Data: its blocks are cut by size, and anew by every operator, so a shard of a fixed range of
documents, and a mark that it is complete, have no place in them. A task per part has. The parts depend on the input
alone, so which worker does one, and when, leaves no trace in the output.

- What all parts share, such as the codec, is put into Ray's object store once, and read from there by every worker.
- An error that a part raises is raised here, the same object but for its traceback: that of the first part, in order.
- A part whose worker dies (killed, out of memory, its machine lost) is done again elsewhere, `RETRIES` times.
- When an error ends the work, or the generator is closed, parts that run are interrupted and waited for, so that none
  writes anything later.

Every worker must have this package, and see input and output under the paths that the driver names.
"""

from __future__ import annotations

import contextlib
import os
from collections import deque
from collections.abc import Callable, Generator, Iterable
from typing import Any, TypeVar

from fastcompress.errors import ConfigError, WorkerError

_Part = TypeVar("_Part")
_Result = TypeVar("_Result")

RETRIES = 3
"""The number of times that a part is done again after its worker died."""

_PARTS_PER_CORE = 4  # submitted ahead, so that no core waits for the driver, and few are lost when one fails

ENGINES = ("local", "ray")


def check_engine(engine: str) -> None:
    """Raise ConfigError unless `engine` is one of `ENGINES` and is installed."""
    if engine not in ENGINES:
        raise ConfigError(f"engine is {engine!r}; it must be one of {', '.join(ENGINES)}")
    if engine == "ray":
        _ray()


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
    ray = _ray()
    if not ray.is_initialized():
        ray.init(logging_level="warning")
    machines = [int(node["Resources"].get("CPU", 0)) for node in ray.nodes() if node["Alive"]]
    cores = max(1, min(threads_per_part, max(machines, default=1)))  # a task that asks for more would wait for ever
    remote = ray.remote(num_cpus=cores, max_retries=RETRIES, retry_exceptions=False)(_call)
    references = [ray.put(value) for value in shared]
    limit = max(2, sum(machines) * _PARTS_PER_CORE // cores)
    running: deque[Any] = deque()
    try:
        for part in parts:
            running.append(remote.remote(os.getcwd(), function, part, *references))
            if len(running) >= limit:
                yield _result(ray, running)
        while running:
            yield _result(ray, running)
    finally:
        _stop(ray, running)


def _call(folder: str, function: Callable[..., _Result], part: object, *shared: object) -> _Result:
    """Call a function in the folder that the driver is in, so that relative paths, also in messages, are the same."""
    own = os.getcwd()
    with contextlib.suppress(OSError):  # a machine without that folder, where absolute paths may work all the same
        os.chdir(folder)
    try:
        return function(part, *shared)
    finally:
        os.chdir(own)


def _result(ray: Any, running: deque[Any]) -> Any:
    """Wait for the first task, remove it and return its result. Raises its error."""
    try:
        result = ray.get(running[0])
    except ray.exceptions.RayTaskError as error:
        raise error.cause from None
    except ray.exceptions.RayError as error:
        raise WorkerError(
            f"a part failed {RETRIES + 1} times with its worker ({type(error).__name__}); "
            "give the workers more memory, or look into the logs of Ray"
        ) from error
    running.popleft()
    return result


def _stop(ray: Any, running: deque[Any]) -> None:
    """Interrupt the tasks, and wait until none runs."""
    with contextlib.suppress(ray.exceptions.RayError):  # without a cluster, nothing runs
        for reference in running:
            ray.cancel(reference)
        if running:
            ray.wait(list(running), num_returns=len(running))


def _ray() -> Any:
    try:
        import ray
    except ImportError:
        raise ConfigError(
            "engine is 'ray', which is not installed; pip install 'fastcompress[distributed]', or use engine='local'"
        ) from None
    return ray
