"""A search over learning rate, batch size and model size under one budget.

Output folder:

    tune.txt, tune.json    the table of trials and what they cost; written anew after every trial
    best.toml              the settings of the best one: `fastcompress train --config best.toml` takes them
    search.json            the budget, the text and the seed, which every trial here shares
    trials/<trial>/        its run and its result (``trials.py``)

The strategy "walk" starts in the middle of the values and moves along one axis at a time (size, batch size, rate) to a
neighbour that scores better, until none does. At its end, each neighbour of the best trial has been tried; if the best
value is at the end of an axis, the report says so. "grid" tries all combinations.

Learning rates refer to the first batch size: at another one, the rates of all groups and the weight decay follow the
square-root rule (``training/scaling.py``), so that the axes depend less on each other.

A search that was stopped continues when it is run again with the same settings: finished trials are read from their
results, and an unfinished one resumes from its last checkpoint. A search with other values of the axes reuses finished
trials, too.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from fastcompress import __version__
from fastcompress._files import write_atomically
from fastcompress._locks import locked
from fastcompress.codec import load_codec
from fastcompress.data.shards import TokenDataset
from fastcompress.errors import ConfigError
from fastcompress.models.settings import check_choices, check_counts
from fastcompress.study.folder import make_folder, read_object, refuse_differences, to_bytes
from fastcompress.study.trials import Result, Trial, make_trial
from fastcompress.study.tune_report import table_of, toml_of
from fastcompress.training.batches import first_documents
from fastcompress.training.config import HORIZONS, TrainConfig
from fastcompress.training.device import choose_device
from fastcompress.training.run_directory import documents_fingerprint
from fastcompress.training.scaling import scale_rates, scale_to_batch

FORMAT, VERSION = "fastcompress-tune", 1
STEPS_OF_DEFAULT_AXES = (0.25, 0.5, 1.0, 2.0, 4.0)
AXES = ("size", "batch_size", "learning_rate")

Point = tuple[int, int, int]  # indices of a size, a batch size and a learning rate
Strategy = Literal["walk", "grid"]


@dataclass(frozen=True, kw_only=True)
class Search:
    """The space, budget and strategy of a search. Raises ConfigError if one of them is invalid.

    Attributes:
        training: The budget (``tokens``, ``flops`` or ``seconds``) and the settings that the search starts from.
        model: Settings of the model, as ``make_model_config`` takes them.
        learning_rates: Rates of matrices, at the batch size of ``training``; other groups keep their ratio to it.
            Default: the learning rate of ``training`` times 1/4 to 4.
        batch_sizes: Rows per step. Default: the batch size of ``training`` times 1/4 to 4.
        sizes: Settings that override ``model``, from the smallest model to the largest. Default: ``model`` alone.
        strategy: "walk" or "grid".
        max_trials: Largest number of trials.
    """

    training: TrainConfig
    model: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    learning_rates: Sequence[float] = ()
    batch_sizes: Sequence[int] = ()
    sizes: Sequence[Mapping[str, Any]] = ()
    strategy: Strategy = "walk"
    max_trials: int = 30

    def __post_init__(self) -> None:
        check_choices(self, strategy=Strategy)
        check_counts(self, "max_trials")
        if self.training.steps is not None:
            raise ConfigError(f"steps is {self.training.steps}; a search needs a budget of tokens, flops or seconds")
        for name in ("learning_rates", "batch_sizes", "sizes"):
            values = getattr(self, name)
            if any(value in values[:index] for index, value in enumerate(values)):
                raise ConfigError(f"{name} has a value twice; give each once")

    @property
    def axes(self) -> tuple[list[Mapping[str, Any]], list[int], list[float]]:
        """The sizes, batch sizes and learning rates to try; the latter two in ascending order."""
        rate, batch_size = self.training.optimizer.learning_rate, self.training.batch_size
        return (
            list(self.sizes or [{}]),
            sorted(self.batch_sizes or {max(1, round(batch_size * step)) for step in STEPS_OF_DEFAULT_AXES}),
            sorted(self.learning_rates or [rate * step for step in STEPS_OF_DEFAULT_AXES]),
        )

    @property
    def start(self) -> Point:
        """The point where a walk starts: a size in the middle, and the values nearest to those of ``training``."""
        sizes, batch_sizes, rates = self.axes
        return (
            (len(sizes) - 1) // 2,
            _nearest(batch_sizes, self.training.batch_size),
            _nearest(rates, self.training.optimizer.learning_rate),
        )

    def settings(self, point: Point) -> tuple[dict[str, Any], TrainConfig]:
        """Return the settings of the model and of the run at a point."""
        sizes, batch_sizes, rates = self.axes
        size, batch_size, rate = sizes[point[0]], batch_sizes[point[1]], rates[point[2]]
        optimizer = scale_rates(self.training.optimizer, rate / self.training.optimizer.learning_rate)
        return {**self.model, **size}, scale_to_batch(
            dataclasses.replace(self.training, optimizer=optimizer), batch_size
        )


def _nearest(values: Sequence[float], value: float) -> int:
    return min(range(len(values)), key=lambda index: abs(math.log(values[index] / value)))


def tune(
    search: Search,
    tokens: Path,
    validation: Sequence[bytes],
    output: Path,
    *,
    progress: bool = True,
    isolate: bool = True,
) -> dict[str, Any]:
    """Run a search, or continue it, and return its report, which is also written to ``output``.

    Args:
        search: The search.
        tokens: A folder of shards with a split "train", as ``write_shards`` makes it.
        validation: Raw documents; every trial is scored on the first ``eval_bytes`` of them.
        output: The folder of the search; made if it is missing.
        progress: Print a line for each trial, and show progress bars.
        isolate: Run each trial in a process of its own; a script that runs a search then needs the usual
            ``if __name__ == "__main__":``.

    Raises:
        OutputError: ``output`` cannot be written, holds a search on another budget, text or seed, or another process
            writes to it.
        ConfigError: Every trial failed; the message has the first error.
        FormatError: A file in ``output`` is damaged.
    """
    directory = Path(output)
    make_folder(directory / "trials", directory)
    sample = tuple(first_documents(validation, search.training.evaluation.eval_bytes))
    with locked(directory):
        common = _common_settings(search, tokens, sample)
        _claim(directory, common)
        results: dict[Point, Result] = {}
        report: dict[str, Any] = {}

        def score(point: Point) -> float:
            nonlocal report
            if point not in results:
                if len(results) >= search.max_trials:
                    raise _EnoughTrialsError
                model, training = search.settings(point)
                trial = Trial(directory / "trials", Path(tokens), sample, model, search.axes[0][point[0]], training)
                results[point] = make_trial(trial, progress=progress, isolate=isolate)
                report = _write(directory, search, common, results, is_complete=False)
                _say(results[point], len(results), progress)
            bits = results[point]["bits_per_byte"]
            return math.inf if bits is None else float(bits)

        try:
            (_walk if search.strategy == "walk" else _grid)(search, score)
        except _EnoughTrialsError:
            return report
        if all(result["bits_per_byte"] is None for result in results.values()):
            raise ConfigError(f"no trial could be made; the first one: {next(iter(results.values()))['error']}")
        return _write(directory, search, common, results, is_complete=True)


class _EnoughTrialsError(Exception):
    """The search has reached its number of trials."""


def _grid(search: Search, score: Callable[[Point], float]) -> None:
    sizes, batch_sizes, rates = (range(len(axis)) for axis in search.axes)
    for point in itertools.product(sizes, batch_sizes, rates):
        score(point)


def _walk(search: Search, score: Callable[[Point], float]) -> None:
    """Move along one axis at a time to a better neighbour until there is none."""
    best = search.start
    score(best)
    while True:
        before = best
        for axis in range(len(AXES)):
            best = _climb(best, axis, len(search.axes[axis]), score)
        if best == before:
            return


def _climb(point: Point, axis: int, length: int, score: Callable[[Point], float]) -> Point:
    """Move up an axis while the score improves, otherwise down."""
    for direction in (1, -1):
        start = point
        while 0 <= point[axis] + direction < length:
            moved = list(point)
            moved[axis] += direction
            neighbour: Point = (moved[0], moved[1], moved[2])
            if not score(neighbour) < score(point):
                break
            point = neighbour
        if point != start:
            return point
    return point


def _common_settings(search: Search, tokens: Path, sample: Sequence[bytes]) -> dict[str, Any]:
    """Return what all trials in a folder share, so that their scores can be compared."""
    codec = load_codec(Path(tokens) / "codec.json")
    return {
        "budget": {name: getattr(search.training, name) for name in HORIZONS if name != "steps"},
        "seed": search.training.seed,
        "codec": {"name": codec.name, "fingerprint": codec.fingerprint},
        "training_text": TokenDataset.open(Path(tokens), "train", codec=codec).fingerprint,
        "validation": {"bytes": sum(map(len, sample)), "fingerprint": documents_fingerprint(sample)},
        "device_kind": choose_device(search.training.machine.device).type,
        "package_version": __version__,
    }


def _claim(directory: Path, common: dict[str, Any]) -> None:
    path = directory / "search.json"
    if path.exists():
        refuse_differences(directory, read_object(path, "choose another output folder, or delete it"), common)
    else:
        write_atomically(path, to_bytes(common))


def _write(
    directory: Path, search: Search, common: dict[str, Any], results: Mapping[Point, Result], *, is_complete: bool
) -> dict[str, Any]:
    """Write the report of the trials so far, and return it."""
    scored = {point: result for point, result in results.items() if result["bits_per_byte"] is not None}
    best = min(scored, key=lambda point: float(scored[point]["bits_per_byte"]), default=None)
    lengths = [len(axis) for axis in search.axes]
    report = {
        "format": FORMAT,
        "version": VERSION,
        **common,
        "strategy": search.strategy,
        "is_complete": is_complete,
        "trials": list(results.values()),
        "best": None if best is None else results[best]["name"],
        "at_the_end_of": [
            name for name, index, length in zip(AXES, best or (), lengths, strict=False)
            if length > 1 and index in (0, length - 1)
        ],
        "cost": {
            "trials": len(results),
            "flops": sum(result["flops"] for result in results.values()),
            "seconds": sum(result["seconds"] for result in results.values()),
        },
    }  # fmt: skip
    write_atomically(directory / "tune.json", to_bytes(report))
    write_atomically(directory / "tune.txt", table_of(report).encode())
    if best is not None:
        write_atomically(directory / "best.toml", toml_of(*search.settings(best)).encode())
    return report


def _say(result: Result, number: int, enabled: bool) -> None:
    if enabled:
        size = "".join(f", {name} {value}" for name, value in result["size"].items())
        score = f"{result['bits_per_byte']:.4f} bits per byte" if result["error"] is None else result["error"]
        line = f"[{number}] batch {result['batch_size']}, rate {result['learning_rate']:.3g}{size}: {score}"
        print(line, file=sys.stderr, flush=True)
