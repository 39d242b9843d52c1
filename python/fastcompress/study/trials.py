"""A trial of a search: one model trained under a budget and scored, in a process and a folder of its own.

<trial>/run/           its training run, which a resumed search continues
<trial>/result.json    its settings and, once it is done, its result
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fastcompress import __version__
from fastcompress._files import write_atomically
from fastcompress.codec import load_codec
from fastcompress.data.shards import TokenDataset
from fastcompress.errors import ConfigError, DivergenceError, FormatError
from fastcompress.evaluation.bits_per_byte import evaluate
from fastcompress.models.kinds import make_model_config
from fastcompress.models.threads import limited_threads
from fastcompress.study.folder import make_folder, read_object, to_bytes
from fastcompress.study.isolation import CellError, run_isolated
from fastcompress.training.config import TrainConfig
from fastcompress.training.metrics import read_records
from fastcompress.training.train import threads_for, train

Result = dict[str, Any]


@dataclass(frozen=True)
class Trial:
    """One point of a search.

    Attributes:
        folder: The folder of all trials.
        tokens: The folder of the training shards and their codec.
        validation: The documents that every trial is scored on.
        model: Settings of the model, as ``make_model_config`` takes them.
        size: The part of ``model`` in which the models of the search differ.
        training: Settings of the run.
    """

    folder: Path
    tokens: Path
    validation: tuple[bytes, ...]
    model: Mapping[str, Any]
    size: Mapping[str, Any]
    training: TrainConfig

    @property
    def made_from(self) -> dict[str, Any]:
        """Everything that determines the trial's result, except the text and the machine."""
        training = {name: value for name, value in self.training.to_json().items() if name != "machine"}
        content = {"model": dict(self.model), "training": training, "package_version": __version__}
        plain: dict[str, Any] = json.loads(json.dumps(content))
        return plain

    @property
    def name(self) -> str:
        """A name for people, and a digest of ``made_from``."""
        size = "".join(f"-{name}-{value}" for name, value in self.size.items())
        label = f"batch-{self.training.batch_size}-rate-{self.training.optimizer.learning_rate:.3g}{size}"
        digest = hashlib.sha256(json.dumps(self.made_from, sort_keys=True).encode()).hexdigest()
        return f"{re.sub(r'[^A-Za-z0-9.-]+', '_', label)[:80]}-{digest[:8]}"

    @property
    def path(self) -> Path:
        """The trial's own folder."""
        return self.folder / self.name


def make_trial(trial: Trial, *, progress: bool, isolate: bool) -> Result:
    """Run a trial, or continue it, and return its result; a failed one has an ``error`` and no score.

    Args:
        trial: The trial.
        progress: Show a progress bar.
        isolate: Use a process of its own.
    """
    try:
        if not isolate or (trial.path / "result.json").exists():  # there is nothing to train
            return run_trial(trial, progress)
        result: Result = run_isolated(run_trial, trial, progress, name=f"trial {trial.name}")
        return result
    except (ConfigError, CellError, MemoryError) as error:  # too large a batch or model: another machine may do it
        return _result(trial, error=f"{type(error).__name__}: {error}")


def run_trial(trial: Trial, progress: bool) -> Result:
    """Run a trial in this process."""
    path = trial.path / "result.json"
    if path.exists():
        return _stored(path, trial)
    codec = load_codec(trial.tokens / "codec.json")
    tokens = TokenDataset.open(trial.tokens, "train", codec=codec)
    model_config = make_model_config(trial.model, codec)
    make_folder(trial.path, trial.folder)
    run = trial.path / "run"
    try:
        trained = train(
            model_config, codec, tokens, trial.validation, trial.training, run,
            resume=(run / "config.json").exists(), progress=progress,
        )  # fmt: skip
    except DivergenceError as error:
        spent = [{"flops": 0, "seconds": 0.0}, *read_records(run / "metrics.jsonl", 1 << 62)][-1]
        failed = _result(trial, error=str(error), flops=spent["flops"], seconds=spent["seconds"])
        return _keep(path, trial, failed)
    with limited_threads(threads_for(model_config, trial.training)):
        score = evaluate(trained.model, codec, trial.validation, stride=model_config.context_length)
    result = _result(
        trial,
        bits_per_byte=score.bits_per_byte,
        num_parameters=trained.model.num_parameters(),
        steps=trained.steps,
        tokens=trained.tokens,
        passes=trained.tokens / tokens.num_tokens,
        flops=trained.flops,
        seconds=trained.seconds,
    )
    return _keep(path, trial, result)


def _result(trial: Trial, **figures: Any) -> Result:
    """Return the settings and figures of a trial; missing scores are None, missing costs 0."""
    optimizer = trial.training.optimizer
    return {
        "name": trial.name,
        "batch_size": trial.training.batch_size,
        "learning_rate": optimizer.learning_rate,
        "optimizer": dataclasses.asdict(optimizer),
        "model": dict(trial.model),
        "size": dict(trial.size),
        **dict.fromkeys(("bits_per_byte", "num_parameters", "steps", "tokens", "passes", "error")),
        "flops": 0,
        "seconds": 0.0,
        **figures,
    }


def _keep(path: Path, trial: Trial, result: Result) -> Result:
    write_atomically(path, to_bytes({"made_from": trial.made_from, "result": result}))
    return result


def _stored(path: Path, trial: Trial) -> Result:
    content = read_object(path, "delete it: the trial's run is kept and gives it anew")
    result = content.get("result")
    if content.get("made_from") != trial.made_from or not isinstance(result, dict) or "bits_per_byte" not in result:
        raise FormatError(f"{path}: is not this trial's result; delete it")
    return {**result, "size": dict(trial.size)}
