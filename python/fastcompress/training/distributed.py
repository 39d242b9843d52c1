"""Runs of several processes: who takes part, what they agree on, and how a model is spread over them.

`torchrun` starts the processes and says through the environment which one each is; `join_ranks` joins them. Every rank
makes the same calls in the same order, each on its own rows of a batch (``data/loader.py``), and four things keep them
together:

- Gradients are averaged over the events of all ranks together. Each rank divides its sum of nats by the mean over ranks
  of their weights, and the average over ranks of such quotients is (all nats) / (all weights), however unevenly the
  events are spread. A mean of each rank's own mean would be something else.
- Whatever depends on a clock, a signal or a file is agreed on before anyone acts on it.
- Only the first rank writes, shows progress and calls back. What it could not do is an error on every rank.
- Each rank draws dropout from a generator of its own.

Two ways to spread a model, which compute the same up to rounding: ``"ddp"`` keeps a whole copy on every rank,
``"fsdp"`` (FSDP2, ``torch.distributed.fsdp.fully_shard``) a part of every tensor. Between the micro-batches of a step
neither communicates gradients; the last one's backward pass does, overlapped with it.
"""

from __future__ import annotations

import contextlib
import os
import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn

from fastcompress.errors import ConfigError
from fastcompress.models.protocol import Batch, LanguageModel
from fastcompress.training.config import ParallelKind
from fastcompress.training.loss import LossFunction, LossModule, loss_of

Result = TypeVar("Result")


class Ranks:
    """The processes of a run, of which this is one.

    Attributes:
        rank: The number of this process, from 0.
        size: The number of processes.
        local_size: The number of them on this machine.
    """

    def __init__(self, rank: int = 0, size: int = 1, local_size: int = 1, control: Any = None) -> None:
        """``control`` is a process group whose messages are tensors on the CPU; None in a run of one process."""
        self.rank, self.size, self.local_size = rank, size, local_size
        self._control = control

    def __repr__(self) -> str:
        return f"<Ranks: {self.rank} of {self.size}>"

    @property
    def is_first(self) -> bool:
        """Whether this rank writes and shows what the run does."""
        return self.rank == 0

    def maximum(self, value: float) -> float:
        """Return the largest of the ranks' values, so that all decide alike by a clock or a signal."""
        if self.size == 1:
            return value
        largest = torch.tensor(value, dtype=torch.float64)
        dist.all_reduce(largest, dist.ReduceOp.MAX, group=self._control)
        return float(largest)

    def mean(self, value: Tensor) -> Tensor:
        """Return the mean of the ranks' tensors, on the device they are on. Does not wait for the device."""
        if self.size == 1:
            return value
        total = value.clone()
        dist.all_reduce(total)
        return total / self.size

    def on_first(self, function: Callable[[], Result]) -> Result:
        """Call a function on the first rank; its result is returned, or its error raised, on every rank."""
        if self.size == 1:
            return function()
        outcome: list[Any] = [None, None]
        if self.is_first:
            try:
                outcome[0] = function()
            except Exception as error:
                outcome[1] = error if _can_be_sent(error) else RuntimeError(str(error))
        own_error = outcome[1]
        dist.broadcast_object_list(outcome, src=0, group=self._control)
        if outcome[1] is not None:
            raise own_error or outcome[1]
        result: Result = outcome[0]
        return result

    def gather(self, value: Tensor) -> list[Tensor]:
        """Return the ranks' tensors, which are on the CPU and of one shape, in order."""
        if self.size == 1:
            return [value]
        parts = [torch.empty_like(value) for _ in range(self.size)]
        dist.all_gather(parts, value, group=self._control)
        return parts

    def whole_tensors(self, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Put tensors of which each rank holds a part together, on the first rank's CPU; the others get none.

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
        """Return this rank's own card where ``device`` names cards in general; other devices are shared.

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

    Args:
        device: The kind of device that the model will be on.

    A process that `torchrun` did not start, and whose program joined no group, is alone.
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
        if not is_joined:
            dist.destroy_process_group()
        elif control is not None:
            dist.destroy_process_group(control)


def _can_be_sent(error: Exception) -> bool:
    try:
        return type(pickle.loads(pickle.dumps(error))) is type(error)
    except Exception:  # an error's pickling is its own code
        return False


# --- a model on several ranks ----------------------------------------------------------------------------


class Spread:
    """How a model's gradients come together; this base class is that of a model on one rank.

    Attributes:
        ranks: The processes.
    """

    def __init__(self, ranks: Ranks = ALONE) -> None:
        self.ranks = ranks

    def wrap(self, loss: LossModule) -> LossFunction:
        """Spread the model of ``loss``, in place, and return the loss to call."""
        return loss_of(loss.model)

    def whole_weight(self, weight: Tensor) -> Tensor:
        """Return what to divide by, from the sum of this rank's weights: the mean over ranks, ``float32[]``."""
        return self.ranks.mean(weight)

    def whole(self, value: Tensor) -> Tensor:
        """Return a figure that is computed from the parameters, on every rank the same."""
        return value

    def unspread(self, model: LanguageModel) -> LanguageModel:
        """Return a model like ``model`` for one process alone: itself, unless it holds parts of tensors."""
        return model

    def micro_batch(self, is_last: bool) -> contextlib.AbstractContextManager[None]:
        """Surround the passes of a micro-batch; only the last one of a step brings the gradients together."""
        return contextlib.nullcontext()


class Replicated(Spread):
    """A whole copy on every rank (DistributedDataParallel)."""

    def wrap(self, loss: LossModule) -> LossFunction:
        """Wrap the loss, so that its backward pass averages gradients."""
        # Buffers are constants that every rank made alike.
        self._module = nn.parallel.DistributedDataParallel(loss, broadcast_buffers=False, gradient_as_bucket_view=True)
        return self._module

    def micro_batch(self, is_last: bool) -> contextlib.AbstractContextManager[None]:
        """Keep gradients to this rank but for the last micro-batch."""
        context: contextlib.AbstractContextManager[None] = (
            contextlib.nullcontext() if is_last else self._module.no_sync()
        )
        return context


class Sharded(Spread):
    """A part of every tensor on each rank (FSDP2)."""

    def wrap(self, loss: LossModule) -> LossFunction:
        """Shard the parts of blocks each on its own, so that few are whole at a time, then what is left."""
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard, register_fsdp_forward_method

        model = loss.model
        device_type = next(model.parameters()).device.type
        mesh = init_device_mesh(device_type, (self.ranks.size,))
        for part in block_parts(model):
            fully_shard(part, mesh=mesh)
        self._model: Any = fully_shard(model, mesh=mesh)
        register_fsdp_forward_method(model, "nats")
        model.nats = _outside_inference_mode(model.nats)  # type: ignore[method-assign]
        return loss

    def unspread(self, model: LanguageModel) -> LanguageModel:
        """Return a model of the same configuration, on the CPU; its weights are any."""
        return model.config.build()

    def whole(self, value: Tensor) -> Tensor:
        """Add up the ranks' parts of a figure."""
        whole: Tensor = value.full_tensor()  # type: ignore[attr-defined]
        return whole

    @contextlib.contextmanager
    def micro_batch(self, is_last: bool) -> Iterator[None]:
        """Keep gradients to this rank but for the last micro-batch."""
        self._model.set_requires_gradient_sync(is_last)
        self._model.set_is_last_backward(is_last)
        yield


def _outside_inference_mode(nats: Callable[[Batch], Tensor]) -> Callable[[Batch], Tensor]:
    """Return ``nats`` for evaluations too: FSDP keeps its buffers, which must not become inference tensors."""

    def outside(batch: Batch) -> Tensor:
        if not torch.is_inference_mode_enabled():
            return nats(batch)
        with torch.inference_mode(False), torch.no_grad():
            return nats(batch)

    return outside


def spread_for(ranks: Ranks, kind: ParallelKind) -> Spread:
    """Return how ``kind`` spreads a model over ``ranks``."""
    if ranks.size == 1:
        return Spread(ranks)
    return Sharded(ranks) if kind == "fsdp" else Replicated(ranks)


def block_parts(model: nn.Module) -> Iterator[nn.Module]:
    """Yield the large parts of a model's blocks: the modules with matrices that the elements of its lists consist of.

    They are what is gathered (FSDP) or computed again (``recompute.py``) as one. Each must be used by calling it.
    """
    blocks: Iterable[nn.Module] = model.children()
    if isinstance(model, nn.ModuleList):
        for block in blocks:
            yield from _parts_of(block)
    else:
        for child in blocks:
            yield from block_parts(child)


def _parts_of(block: nn.Module) -> Iterator[nn.Module]:
    children = list(block.children())
    for part in children or [block]:
        if isinstance(part, nn.ModuleList):
            yield from block_parts(part)
        elif any(parameter.dim() >= 2 for parameter in part.parameters()):
            yield part
