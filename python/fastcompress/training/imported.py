"""Runs of models that were trained elsewhere."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from fastcompress.codec import Codec
from fastcompress.models.protocol import LanguageModel
from fastcompress.training.checkpoint import model_tensors, write_checkpoint
from fastcompress.training.config import TrainConfig
from fastcompress.training.progress import Progress
from fastcompress.training.run_directory import RunDirectory


def write_run(directory: Path, model: LanguageModel, codec: Codec) -> None:
    """Write a model that was trained elsewhere as a run for ``load_run``. Raises OutputError as ``train`` does."""
    run, config = RunDirectory(Path(directory)), TrainConfig(steps=1)
    rows = model.config.rows(codec)
    with run.locked(create=True):
        identity = run.prepare(model.config, rows, config, {}, resume=False)
        state = {
            "model": model.config.to_json(),
            "train": config.to_json(),
            "codec": {"name": codec.name, "fingerprint": codec.fingerprint},
            "rows": {"fingerprint": rows.fingerprint},
            "progress": dataclasses.asdict(Progress()),
            "run": identity,
        }
        write_checkpoint(run.best, model_tensors(model), state)
