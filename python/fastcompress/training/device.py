"""The device of a run, its precision and compilation, and a clock for training time only.

Choices are pure functions of the machine's properties, so those for GPUs are tested without a GPU.
"""

from __future__ import annotations

import contextlib
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any, Literal

import torch

from fastcompress.errors import ConfigError
from fastcompress.models.protocol import Kernels
from fastcompress.training.config import MachineConfig, PrecisionChoice
from fastcompress.training.loss import LossFunction
from fastcompress.training.loss import loss_of as loss_of  # where both were before
from fastcompress.training.loss import weighted_loss as weighted_loss

Precision = Literal["float32", "bfloat16", "float16"]

_DTYPES: dict[Precision, torch.dtype] = {
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
}
# Ampere is the first generation that multiplies bfloat16; older cards emulate it, slowly.
_FIRST_BFLOAT16_CAPABILITY = (8, 0)
_FIRST_FLOAT8_CAPABILITY = (8, 9)


def choose_device(name: str) -> torch.device:
    """Return the device of a name; ``"auto"`` is the best available. Raises ConfigError if this machine lacks it."""
    has_mps = torch.backends.mps.is_available()
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "mps" if has_mps else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise ConfigError(f"unknown device {name!r}: use auto, cpu, cuda, cuda:1 or mps") from error
    num_cards = torch.cuda.device_count() if torch.cuda.is_available() else 0
    present = {"cpu": True, "mps": has_mps, "cuda": (device.index or 0) < num_cards}
    if not present.get(device.type, False):
        raise ConfigError(f"device {name!r} is not available here: use auto or cpu, or install a torch that has it")
    return device


def choose_precision(choice: PrecisionChoice, device_type: str, capability: tuple[int, int] | None = None) -> Precision:
    """Return the precision of the forward pass.

    Args:
        choice: ``MachineConfig.precision``.
        device_type: ``"cuda"``, ``"mps"`` or ``"cpu"``.
        capability: CUDA compute capability, such as (7, 5) for a T4; None off CUDA.

    Raises:
        ConfigError: A half-precision format that this device does not train in.
    """
    if choice == "auto":
        if device_type != "cuda":
            return "float32"
        return "bfloat16" if (capability or (0, 0)) >= _FIRST_BFLOAT16_CAPABILITY else "float16"
    if choice == "float16" and device_type != "cuda":
        raise ConfigError(f"float16 training needs a CUDA card, not {device_type}: use precision auto or float32")
    if choice == "bfloat16" and device_type == "mps":
        raise ConfigError("bfloat16 training is not supported on mps: use precision auto or float32")
    return choice


def kernels_of(machine: MachineConfig) -> Kernels:
    """Return the kernels that the settings of a machine select."""
    return Kernels(machine.attention, machine.logits_at_once, machine.float8)


def check_float8(machine: MachineConfig, precision: Precision, capability: tuple[int, int] | None) -> None:
    """Raise ConfigError if a run in ``precision``, on a card of a compute capability, cannot multiply in float8."""
    if machine.float8 == "off":
        return
    if (capability or (0, 0)) < _FIRST_FLOAT8_CAPABILITY:
        raise ConfigError(
            f"float8 is {machine.float8!r}, which needs a CUDA card of compute capability 8.9 or more (Ada, Hopper); "
            "set it to off"
        )
    if precision != "bfloat16":
        raise ConfigError(f"float8 is {machine.float8!r}, which needs precision bfloat16, not {precision}")


def capability_of(device: torch.device) -> tuple[int, int] | None:
    """Return the CUDA compute capability, or None for other devices."""
    return torch.cuda.get_device_capability(device) if device.type == "cuda" else None


def autocast_for(precision: Precision, device_type: str) -> contextlib.AbstractContextManager[Any]:
    """Return a reusable context in which matrix products run in ``precision``; for float32 it does nothing."""
    if precision == "float32":
        return contextlib.nullcontext()
    return torch.autocast(device_type, dtype=_DTYPES[precision])


def scaler_for(precision: Precision, device_type: str) -> torch.amp.GradScaler:
    """Return a loss scaler for float16, whose gradients could underflow; otherwise one that does nothing."""
    return torch.amp.GradScaler(device_type, enabled=precision == "float16")


def compiled_or_eager(
    loss: LossFunction,
    warm_up: Callable[[LossFunction], None],
    compiler: Callable[[LossFunction], LossFunction] | None = None,
) -> LossFunction:
    """Compile ``loss``; if that fails, return ``loss`` itself with a warning that says why.

    Args:
        loss: The eager function.
        warm_up: Runs a loss function forward and backward at the run's shape and raises if the result is unusable.
            (Compilation is lazy, so only a pass shows whether it works.)
        compiler: The compiler. Default: ``torch.compile`` with static shapes, after its caches are cleared.
    """
    compiler = compiler or _torch_compile
    try:
        compiled = compiler(loss)
        warm_up(compiled)
    except Exception as error:  # a compiler back end can fail with anything, a missing C compiler among it
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        warnings.warn(f"torch.compile failed, training runs uncompiled and slower: {reason}", stacklevel=2)
        return loss
    return compiled


def _torch_compile(loss: LossFunction) -> LossFunction:
    # Models trained one after another in a process share their code, and torch gives up on code that it has
    # compiled for eight of them; what was compiled for finished ones is of no use.
    torch.compiler.reset()
    compiled: LossFunction = torch.compile(loss, dynamic=False)
    return compiled


class Stopwatch:
    """A clock for training, including work on the device; it stops for evaluation, checkpoints and compilation."""

    def __init__(self, device: torch.device, seconds: float = 0.0) -> None:
        self.device = device
        self._seconds = seconds  # before the current stretch
        self._started: float | None = None

    def start(self) -> None:
        synchronize(self.device)
        self._started = time.perf_counter()

    def stop(self) -> None:
        """Stop, after waiting for the device, so that all work submitted is timed. Stopping twice is harmless."""
        synchronize(self.device)
        self._seconds, self._started = self.read(), None

    def read(self) -> float:
        """Return the seconds so far, without waiting for the device."""
        return self._seconds if self._started is None else self._seconds + time.perf_counter() - self._started

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        self.stop()
        try:
            yield
        finally:
            self.start()


def cards_of(device: torch.device) -> list[int]:
    """Return the CUDA cards whose random generators ``device`` uses, as ``torch.random.fork_rng`` expects them."""
    if device.type != "cuda":
        return []
    return [device.index if device.index is not None else torch.cuda.current_device()]


def synchronize(device: torch.device) -> None:
    """Wait until ``device`` has finished all submitted work."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    elif device.type == "mps":
        torch.mps.synchronize()
