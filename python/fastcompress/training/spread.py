"""Distribution of a model over the ranks of a run, and the reduction of their gradients.

There are two ways, which compute the same up to rounding: ``"ddp"`` keeps a whole copy on every rank, ``"fsdp"``
(FSDP2, ``torch.distributed.fsdp.fully_shard``) a part of every tensor. Gradients are communicated once a step: after
the backward pass of its last micro-batch or, with FSDP and on request, during that pass.

All average over ranks. Each rank divides its sum of nats by the mean over ranks of their sums of weights, and the
average over ranks of such quotients is (all nats) / (all weights). A mean of each rank's own mean would be something
else wherever ranks have different numbers of events.
"""

from __future__ import annotations

import contextlib
import inspect
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from fastcompress.errors import ConfigError
from fastcompress.models.protocol import Batch, LanguageModel
from fastcompress.training.config import MachineConfig
from fastcompress.training.distributed import ALONE, Ranks
from fastcompress.training.loss import LossFunction, LossModule, loss_of

# Weights up to this size are gathered at once. Gathered part by part they, and their gradients, would take up to twice
# this size less, but a compiled step is cut in two at each part: on two H200s, 124M parameters, 0.58 of the speed.
WHOLE_BYTES = 1 << 30


class Spread:
    """The distribution of a model over ranks; this base class is for one rank.

    Attributes:
        ranks: The processes.
        warm_up_steps: Steps that make the optimizer's state and whatever libraries allocate when they are first called,
            after which a step can be recorded.
    """

    warm_up_steps = 3

    def __init__(self, ranks: Ranks = ALONE) -> None:
        self.ranks = ranks

    def wrap(self, loss: LossModule) -> LossFunction:
        """Distribute the model of ``loss``, in place, and return the loss to call."""
        return loss_of(loss.model)

    def whole_weight(self, weight: Tensor) -> Tensor:
        """Return the divisor of the loss, the mean over ranks of their sums of weights, ``float32[]``."""
        return self.ranks.mean(weight)

    def reduce(self, parameters: Iterable[nn.Parameter]) -> None:
        """Average the gradients over ranks, unless the backward pass did."""

    def whole(self, value: Tensor) -> Tensor:
        """Return the whole model's value of a figure such as a gradient norm, the same on every rank."""
        return value

    def unspread(self, model: LanguageModel) -> LanguageModel:
        """Return a model like ``model`` for a single process: itself, unless it holds parts of tensors."""
        return model

    def micro_batch(self, is_last: bool) -> contextlib.AbstractContextManager[None]:
        """Return the context for the passes of a micro-batch; only the last one of a step reduces gradients."""
        return contextlib.nullcontext()


class Replicated(Spread):
    """A whole copy on every rank; gradients are averaged after the backward pass.

    While cards communicate they have fewer multiprocessors for what runs beside, so where they are fast at it, that
    costs more than waiting. On two H200s with NVLink a step of 58 ms takes 3 ms more this way, 4 ms with `Overlapped`.
    """

    def wrap(self, loss: LossModule) -> LossFunction:
        """Give every rank the first one's weights, and return the loss to call."""
        for parameter in loss.parameters():
            dist.broadcast(parameter.detach(), src=0)
        return super().wrap(loss)

    def reduce(self, parameters: Iterable[nn.Parameter]) -> None:
        """Average the gradients over ranks, in place."""
        gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
        averages = dist.get_backend() == "nccl"
        # As one call of the library. (DistributedDataParallel copies gradients into one tensor for that.)
        with dist._coalescing_manager():  # type: ignore[attr-defined]
            for gradient in gradients:
                dist.all_reduce(gradient, dist.ReduceOp.AVG if averages else dist.ReduceOp.SUM)
        if not averages:
            torch._foreach_div_(gradients, float(self.ranks.size))


class Overlapped(Spread):
    """A whole copy on every rank; gradients are averaged during the backward pass (DistributedDataParallel)."""

    warm_up_steps = 11  # the first ten are timed with events, which a recording forbids

    def wrap(self, loss: LossModule) -> LossFunction:
        """Wrap the loss, so that its backward pass averages gradients."""
        # Buffers are constants that every rank made alike. Newer torch has another word for not sending them.
        ddp = nn.parallel.DistributedDataParallel
        is_new = "forward_sync_buffers" in inspect.signature(ddp).parameters
        settings: dict[str, Any] = {"forward_sync_buffers" if is_new else "broadcast_buffers": False}
        with _side_stream(next(loss.parameters()).device):
            self._module = ddp(loss, gradient_as_bucket_view=True, **settings)
        return self._module

    @contextlib.contextmanager
    def micro_batch(self, is_last: bool) -> Iterator[None]:
        """Communicate gradients in the last micro-batch only."""
        with (
            _silent("The AccumulateGrad node's stream"),
            contextlib.nullcontext() if is_last else self._module.no_sync(),
        ):
            yield


@contextlib.contextmanager
def _side_stream(device: torch.device) -> Iterator[None]:
    """Let gradients gather on another stream than the default one, which no recording of a CUDA graph may wait for.

    Newer torch warns that passes run on others; autograd makes these streams wait for each other.
    """
    if device.type != "cuda":
        yield
        return
    stream, current = torch.cuda.Stream(device), torch.cuda.current_stream(device)  # type: ignore[no-untyped-call]
    stream.wait_stream(current)
    with torch.cuda.stream(stream):
        yield
    current.wait_stream(stream)


class Sharded(Spread):
    """A part of every tensor on each rank (FSDP2)."""

    def wrap(self, loss: LossModule) -> LossFunction:
        """Shard each part of a large model's blocks by itself, so that few are whole at a time, then the rest.

        Raises ConfigError if this torch cannot on this kind of device.
        """
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard, register_fsdp_forward_method

        model = loss.model
        device_type = next(model.parameters()).device.type
        if not can_shard(device_type):
            raise ConfigError(
                f"parallel is fsdp, which torch {torch.__version__} cannot do on a {device_type}; use ddp, or a newer "
                "torch"
            )
        mesh = init_device_mesh(device_type, (self.ranks.size,))
        if not is_gathered_whole(sum(parameter.numel() for parameter in model.parameters())):
            for part in block_parts(model):
                fully_shard(part, mesh=mesh)
        self._model: Any = fully_shard(model, mesh=mesh)
        nats = model.nats
        # A copy, as FSDP warns of results that are views: it puts hooks on them.
        model.nats = lambda batch: nats(batch).clone()  # type: ignore[method-assign]
        register_fsdp_forward_method(model, "nats")
        model.nats = self._scoring_too(model.nats)  # type: ignore[method-assign,assignment]
        return loss

    def _scoring_too(self, nats: Callable[[Batch], Tensor]) -> Callable[[Batch], Tensor]:
        """Return ``nats`` in a form that evaluations can use, too.

        FSDP keeps its buffers, which must not become inference tensors, and shards the outermost parameters again in
        the backward pass only, until when they are not those that the optimizer knows.
        """

        def outer(batch: Batch) -> Tensor:
            if torch.is_grad_enabled():
                return nats(batch)
            with torch.inference_mode(False), torch.no_grad(), _silent(_VIEW_RETURNED):
                found = nats(batch)  # [B, S]
                self._model.reshard()
            return found

        return outer

    def unspread(self, model: LanguageModel) -> LanguageModel:
        """Return a model of the same configuration on the CPU, with arbitrary weights."""
        return model.config.build()

    def whole(self, value: Tensor) -> Tensor:
        """Reduce the figure over ranks."""
        whole: Tensor = value.full_tensor()  # type: ignore[attr-defined]
        return whole

    @contextlib.contextmanager
    def micro_batch(self, is_last: bool) -> Iterator[None]:
        """Communicate gradients in the last micro-batch only."""
        self._model.set_requires_gradient_sync(is_last)
        self._model.set_is_last_backward(is_last)
        with _silent(_VIEW_RETURNED):
            yield


# FSDP hooks what modules return, which the user must not change in place then; no block changes a branch in place.
_VIEW_RETURNED = "FSDP2-wrapped module"


@contextlib.contextmanager
def _silent(message: str) -> Iterator[None]:
    """Hide the warnings that begin so: they are of what is meant."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=message)
        yield


def is_gathered_whole(num_parameters: int) -> bool:
    """Return whether FSDP gathers a model of this size at once, rather than part by part."""
    return 4 * num_parameters <= WHOLE_BYTES


def can_shard(device_type: str) -> bool:
    """Return whether this torch has FSDP2 for a kind of device. That of 2.6 is for cards only."""
    return device_type != "cpu" or hasattr(torch.cpu.Stream, "record_event")


def spread_for(ranks: Ranks, machine: MachineConfig) -> Spread:
    """Return how the settings of a machine spread a model over ``ranks``."""
    if ranks.size == 1:
        return Spread(ranks)
    if machine.parallel == "fsdp":
        return Sharded(ranks)
    return Overlapped(ranks) if machine.overlap_reduction else Replicated(ranks)


def block_parts(model: nn.Module) -> Iterator[nn.Module]:
    """Yield the large parts of a model's blocks: the modules with matrices inside the elements of its lists.

    Each is gathered (FSDP) or recomputed (``recompute.py``) as one, so the model must use it by calling it.
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
