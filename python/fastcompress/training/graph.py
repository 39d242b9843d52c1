"""A training step as one CUDA graph: recorded once, then replayed by a single call.

A step of a small model is several hundred kernels of a few microseconds, which Python launches more slowly than a card
runs them; even at 124M parameters the gaps between kernels are 5 % of a step. A graph repeats the same kernels on the
same memory, so batches are copied to where the recording read them, and learning rates are numbers on the card.
"""

from __future__ import annotations

import warnings

import torch
from torch import Tensor

from fastcompress.models.protocol import Batch
from fastcompress.training.config import MachineConfig
from fastcompress.training.optimizer import OptimizerStep


def can_record(machine: MachineConfig, device: torch.device, num_ranks: int, *, scales_losses: bool) -> bool:
    """Return whether steps under these settings are the same kernels every time. (Under FSDP it was not tried.)"""
    return (
        device.type == "cuda"
        and machine.cuda_graph != "off"
        and (num_ranks == 1 or machine.parallel == "ddp")
        and not scales_losses
        and not machine.checkpoint_activations
    )


class GraphedStep(OptimizerStep):
    """An `OptimizerStep` that is recorded after some steps. If it cannot be, it goes on as it was, with a warning.

    Ranks record their reductions of gradients, too, and replay them together; if one cannot record, none does.
    """

    _graph: torch.cuda.CUDAGraph | None = None
    _num_steps = 0

    def __call__(self, batch: Batch, learning_rate: float) -> tuple[Tensor, Tensor]:
        """Update the weights once; see ``OptimizerStep``."""
        self._num_steps += 1
        if self._num_steps == 1:
            self._prepare()
        if self._num_steps == 1 + self.spread.warm_up_steps:
            self._record(batch)
        if self._graph is None:
            return super().__call__(batch, learning_rate)
        for name, column in batch.items():
            self._inputs[name].copy_(column, non_blocking=True)
        self.set_rates(learning_rate)
        self._graph.replay()
        loss, norm = self._outputs
        return loss.clone(), norm.clone()  # the next replay writes there again

    def close(self) -> None:
        """Release the graph: a process group cannot be destroyed while one holds its communications."""
        if self._graph is not None:
            torch.cuda.synchronize()
            self._graph.reset()
            self._graph = None

    def _prepare(self) -> None:
        """Keep what changes from step to step on the card."""
        for group in self.optimizer.param_groups:
            device = group["params"][0].device
            group["lr"] = torch.tensor(float(group["lr"]), dtype=torch.float32, device=device)
            if "capturable" in group:
                group["capturable"] = True

    def _record(self, batch: Batch) -> None:
        """Record a step, which changes nothing."""
        self._inputs: dict[str, Tensor] = {name: column.clone() for name, column in batch.items()}
        self.optimizer.zero_grad(set_to_none=True)
        torch.cuda.synchronize()
        torch.cuda.empty_cache()  # the graph's memory is its own
        graph, reason = torch.cuda.CUDAGraph(), ""
        try:
            with torch.cuda.graph(graph, capture_error_mode="thread_local"):
                self._outputs: tuple[Tensor, Tensor] = self.update(self._inputs)
        except Exception as error:  # whatever a library does that graphs forbid
            reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        if self.spread.ranks.maximum(float(bool(reason))) > 0:
            reason = reason or "another process cannot"
            warnings.warn(f"the step cannot be recorded as a CUDA graph and runs without: {reason}", stacklevel=3)
            torch.cuda.synchronize()
            self.optimizer.zero_grad(set_to_none=True)
            return
        self._graph = graph
