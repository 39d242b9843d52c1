"""The figures of a run in TensorBoard and Weights & Biases, if they are installed; off by default.

Trackers receive the records of ``metrics.jsonl``, which remains the authoritative copy. A tracker that fails during a
run is dropped with a warning, and the run continues.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol, get_args

from fastcompress.errors import ConfigError

TrackerName = Literal["tensorboard", "wandb"]
TRACKERS: tuple[TrackerName, ...] = get_args(TrackerName)
_MODULES = {"tensorboard": "torch.utils.tensorboard", "wandb": "wandb"}
_PROJECT = "fastcompress"


class Tracker(Protocol):
    """A service that shows figures."""

    def log(self, figures: Mapping[str, float], step: int) -> None:
        """Show figures by name, at a step."""
        ...

    def close(self) -> None:
        """Write what is left."""
        ...


class TensorBoard:
    """Event files in the run's folder ``tensorboard``; steps that a resumed run repeats replace the older ones."""

    def __init__(self, module: Any, directory: Path, first_step: int) -> None:
        self._writer = module.SummaryWriter(log_dir=str(directory / "tensorboard"), purge_step=first_step)

    def log(self, figures: Mapping[str, float], step: int) -> None:
        for name, value in figures.items():
            self._writer.add_scalar(name, value, step)

    def close(self) -> None:
        self._writer.close()


class WeightsAndBiases:
    """A run in the project ``fastcompress``, named after the folder; a resumed run continues it."""

    def __init__(self, module: Any, directory: Path, first_step: int) -> None:
        config = json.loads((directory / "config.json").read_bytes())
        self._run = module.init(
            project=_PROJECT, name=directory.resolve().name, id=config.get("run"), resume="allow", dir=str(directory),
            config={part: config[part] for part in ("model", "train", "codec", "data") if part in config},
        )  # fmt: skip

    def log(self, figures: Mapping[str, float], step: int) -> None:
        self._run.log(dict(figures), step=step)

    def close(self) -> None:
        self._run.finish()


_KINDS: dict[str, Callable[[Any, Path, int], Tracker]] = {"tensorboard": TensorBoard, "wandb": WeightsAndBiases}


@contextlib.contextmanager
def tracked(names: Sequence[str], directory: Path) -> Iterator[Callable[[dict[str, Any]], None]]:
    """Yield a function for ``on_metrics`` of ``train`` that passes each record on, and close the trackers afterwards.

    Args:
        names: Names from ``TRACKERS``; may be empty.
        directory: The run's folder.

    Raises:
        ConfigError: There is no such tracker, or it is not installed.
    """
    modules = {name: _module(name) for name in dict.fromkeys(names)}
    trackers: dict[str, Tracker] = {}

    def on_metrics(record: dict[str, Any]) -> None:
        for name in list(modules):
            with _left_out_on_error(name, modules, trackers):
                if name not in trackers:  # only now does the folder hold the run
                    trackers[name] = _KINDS[name](modules[name], Path(directory), record["step"])
                trackers[name].log(figures_of(record), record["step"])

    try:
        yield on_metrics
    finally:
        for name in list(trackers):
            with _left_out_on_error(name, modules, trackers):
                trackers[name].close()


def figures_of(record: Mapping[str, Any]) -> dict[str, float]:
    """Return the numbers of a record by the names that trackers show, such as "train/loss" and "eval/seconds".

    >>> figures_of({"event": "train", "step": 3, "loss": 2.5, "train_bits_per_byte": None})
    {'train/loss': 2.5}
    """
    numbers = {name: value for name, value in record.items() if isinstance(value, (int, float)) and name != "step"}
    return {f"{record['event']}/{name}": float(value) for name, value in numbers.items()}


def _module(name: str) -> Any:
    if name not in _MODULES:
        raise ConfigError(f"there is no tracker {name!r}; the trackers are {', '.join(TRACKERS)}")
    try:
        return importlib.import_module(_MODULES[name])
    except ImportError as error:
        raise ConfigError(f"{name} cannot be used ({error}); install it: pip install {name}") from error


@contextlib.contextmanager
def _left_out_on_error(name: str, modules: dict[str, Any], trackers: dict[str, Tracker]) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # of a package that is not ours, perhaps for want of a network
        modules.pop(name, None)
        trackers.pop(name, None)
        warnings.warn(f"{name} failed and is left out from here on: {error}", stacklevel=4)
