"""The folder a run leaves behind: config.json, codec.json, metrics.jsonl, last.safetensors, best.safetensors.

A run never overwrites another: a folder that holds one is refused unless the run is to be resumed, and a
resumed run must be the same run: same model, same batches, same codec.
"""

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path
from typing import Any

from fastcompress.codec import Codec, save_codec
from fastcompress.errors import DataError, FormatError, MismatchError, OutputError
from fastcompress.models.gpt import GPTConfig
from fastcompress.training.config import TrainConfig

FORMAT = "fastcompress-run"
VERSION = 1
# The settings that decide which tokens a step sees; the others may change when a run is resumed.
_FIXED_TRAIN_SETTINGS = ("batch_size", "seed")


@dataclasses.dataclass(frozen=True)
class RunDirectory:
    """Paths of a run's files."""

    path: Path

    @property
    def config(self) -> Path:
        return self.path / "config.json"

    @property
    def codec(self) -> Path:
        return self.path / "codec.json"

    @property
    def metrics(self) -> Path:
        return self.path / "metrics.jsonl"

    @property
    def last(self) -> Path:
        return self.path / "last.safetensors"

    @property
    def best(self) -> Path:
        return self.path / "best.safetensors"

    def prepare(self, model_config: GPTConfig, config: TrainConfig, codec: Codec, *, resume: bool) -> None:
        """Create the folder, or check that the run in it is the one to resume; write its config.json and codec.json.

        Raises:
            OutputError: It holds a run and ``resume`` is off, or it cannot be written.
            DataError: ``resume`` is on and it holds no run.
            MismatchError: The run in it has another model, codec, batch size or seed.
            FormatError: Its config.json is not one.
        """
        if resume:
            self._check_same_run(model_config, config, codec)
        else:
            for file in (self.config, self.codec, self.metrics, self.last, self.best):
                if file.exists():
                    raise OutputError(
                        f"{self.path}: holds a run already ({file.name}): resume it, or choose another directory"
                    )
        content = {
            "format": FORMAT,
            "version": VERSION,
            "model": model_config.to_json(),
            "train": config.to_json(),
            "codec": {"name": codec.name, "fingerprint": codec.fingerprint},
        }
        temporary = self.config.with_name(f"{self.config.name}.{os.getpid()}.partial")
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            temporary.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
            os.replace(temporary, self.config)
        except OSError as error:
            raise OutputError(
                f"{self.path}: cannot be written ({error.strerror}): choose another run directory"
            ) from error
        save_codec(codec, self.codec)

    def _check_same_run(self, model_config: GPTConfig, config: TrainConfig, codec: Codec) -> None:
        stored = _read_config(self.config)
        _check_same("model", stored["model"], model_config.to_json(), self.path)
        fixed = {name: getattr(config, name) for name in _FIXED_TRAIN_SETTINGS}
        _check_same("training", {name: stored["train"].get(name) for name in fixed}, fixed, self.path)
        if stored["codec"].get("fingerprint") != codec.fingerprint:
            raise MismatchError(
                f"{self.path}: was trained with codec {stored['codec'].get('name')}, not this "
                f"{codec.name}: use that codec, or another directory"
            )


def _check_same(kind: str, stored: dict[str, Any], given: dict[str, Any], path: Path) -> None:
    for name in sorted(set(stored) | set(given)):
        if stored.get(name) != given.get(name):
            raise MismatchError(
                f"{path}: its {kind} setting {name} is {stored.get(name)!r}, not {given.get(name)!r}: "
                "resume with the same, or choose another directory"
            )


def _read_config(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise DataError(f"{path.parent}: holds no run to resume: start one without resume") from error
    except (OSError, ValueError) as error:
        raise FormatError(
            f"{path}: cannot be read as JSON ({error}): restore it, or choose another directory"
        ) from error
    if not isinstance(content, dict) or (content.get("format"), content.get("version")) != (FORMAT, VERSION):
        raise FormatError(f"{path}: not a run's configuration of version {VERSION}: choose another directory")
    if not all(isinstance(content.get(part), dict) for part in ("model", "train", "codec")):
        raise FormatError(f"{path}: lacks its model, train or codec part: restore it, or choose another directory")
    return content
