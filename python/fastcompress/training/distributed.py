"""Runs of several processes: the ranks and their agreements. ``spread.py`` says how they share a model.

`torchrun` starts the processes and numbers them through the environment; `join_ranks` joins them. Every rank makes the
same calls in the same order, each on its own rows of a batch (``data/loader.py``). Four rules keep them together:

- Gradients are averaged over the events of all ranks together, however unevenly the events are spread over them.
- Whatever depends on a clock, a signal or a file is agreed on before anyone acts on it.
- Only the first rank writes, shows progress and calls back. If it fails, every rank raises the error.
- Each rank draws dropout from a generator of its own.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor

from fastcompress.errors import ConfigError

Result = TypeVar("Result")

# Gloo's threads need Python's lock to drop the tensors of their last messages. torch 2.6 waits for these threads while
# it holds that lock, so a group that is destroyed at once hangs.
LEAVE_SECONDS = 0.05


class Ranks:
    """The processes of a run, as one of them sees it.

    Attributes:
        rank: The number of this process, from 0.
        size: The number of processes.
        local_size: The number of them on this machine.
    """

    def __init__(self, rank: int = 0, size: int = 1, local_size: int = 1, control: Any = None) -> None:
        """Describe this process. ``control`` is a process group for tensors on the CPU; None for a single process."""
        self.rank, self.size, self.local_size = rank, size, local_size
        self._control = control

    def __repr__(self) -> str:
        return f"<Ranks: {self.rank} of {self.size}>"

    @property
    def is_first(self) -> bool:
        """True for the rank that writes files and shows progress."""
        return self.rank == 0

    def maximum(self, value: float) -> float:
        """Return the maximum over ranks, so that all make the same decision from a clock or a signal."""
        if self.size == 1:
            return value
        largest = torch.tensor(value, dtype=torch.float64)
        dist.all_reduce(largest, dist.ReduceOp.MAX, group=self._control)
        return float(largest)

    def mean(self, value: Tensor) -> Tensor:
        """Return the mean over ranks of a tensor, on its device. Does not wait for the device."""
        if self.size == 1:
            return value
        total = value.clone()
        dist.all_reduce(total)
        return total / self.size

    def on_first(self, function: Callable[[], Result]) -> Result:
        """Call a function on the first rank; its result is returned, or its error raised, on every rank.

        Ctrl-C and SystemExit are errors, too: otherwise the other ranks would wait for one that has left.
        """
        if self.size == 1:
            return function()
        outcome: list[Any] = [None, None]
        if self.is_first:
            try:
                outcome[0] = function()
            except BaseException as error:
                outcome[1] = error if can_be_sent(error) else RuntimeError(str(error))
        own_error = outcome[1]
        dist.broadcast_object_list(outcome, src=0, group=self._control)
        if outcome[1] is not None:
            raise own_error or outcome[1]
        result: Result = outcome[0]
        return result

    def gather(self, value: Tensor) -> list[Tensor]:
        """Return the tensors of all ranks, in order; they are on the CPU and have equal shapes."""
        if self.size == 1:
            return [value]
        parts = [torch.empty_like(value) for _ in range(self.size)]
        dist.all_gather(parts, value, group=self._control)
        return parts

    def whole_tensors(self, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Assemble distributed tensors on the first rank's CPU; the other ranks get none of them.

        Tensors that every rank holds whole stay where they are.
        """
        whole = {}
        for name, tensor in tensors.items():
            if hasattr(tensor, "full_tensor"):
                tensor = tensor.full_tensor()
                tensor = tensor.cpu() if self.is_first else tensor
            if self.is_first:
                whole[name] = tensor
        return whole

    def seed(self, seed: int, step: int = 0) -> int:
        """Return the seed of this rank's generators from ``step`` on; the first rank's at the start is the run's."""
        if self.is_first and step == 0:
            return seed
        return int(np.random.SeedSequence([seed, self.rank, step]).generate_state(1, np.uint64)[0] >> np.uint64(1))

    def device(self, device: torch.device) -> torch.device:
        """Return this rank's card if ``device`` is "cuda" without a number; other devices are shared.

        Raises:
            ConfigError: There are more processes on this machine than cards.
        """
        if self.size == 1 or device.type != "cuda":
            return device
        index, num_cards = int(os.environ.get("LOCAL_RANK", self.rank)), torch.cuda.device_count()
        if index >= num_cards:
            raise ConfigError(
                f"the number of processes on this machine is {self.local_size}; it must be at most {num_cards}, its "
                "number of cards"
            )
        torch.cuda.set_device(index)
        return torch.device("cuda", index)


ALONE = Ranks()


def is_first_process() -> bool:
    """Return whether this is the first of the processes that `torchrun` started, or the only one."""
    return int(os.environ.get("RANK", 0)) == 0


@contextlib.contextmanager
def join_ranks(device: torch.device) -> Iterator[Ranks]:
    """Join the other processes of this run, and leave them at the end of the block.

    A process that `torchrun` did not start, and whose program joined no group, is the only rank.

    Args:
        device: The kind of device that the model will be on.
    """
    is_joined = dist.is_available() and dist.is_initialized()
    if not is_joined and int(os.environ.get("WORLD_SIZE", 1)) == 1:
        yield ALONE
        return
    if not is_joined:
        dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    control = None
    try:
        size = dist.get_world_size()
        control = dist.new_group(backend="gloo") if size > 1 else None
        yield Ranks(dist.get_rank(), size, int(os.environ.get("LOCAL_WORLD_SIZE", size)), control)
    finally:
        if control is not None:
            time.sleep(LEAVE_SECONDS)
        if not is_joined:
            dist.destroy_process_group()
        elif control is not None:
            dist.destroy_process_group(control)


def can_be_sent(value: object) -> bool:
    """Return whether a value survives pickling; some exceptions do not."""
    try:
        return type(pickle.loads(pickle.dumps(value))) is type(value)
    except Exception:  # pickling runs code of the value's own
        return False
