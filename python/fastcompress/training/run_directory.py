"""The folder of a run: config.json, codec.json, metrics.jsonl, last.safetensors, best.safetensors.

A run that diverged also leaves diverged.safetensors, its state at the end.

A run never overwrites another: a folder that holds one is refused unless the run is to be resumed, and a resumed run
must be the same: same model, same batches, same codec, same training tokens and validation text.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import secrets
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from fastcompress._locks import locked
from fastcompress.codec import Codec, load_codec, save_codec
from fastcompress.data.mixture import Mixture
from fastcompress.data.rows import Rows
from fastcompress.data.shards import TokenDataset
from fastcompress.errors import ConfigError, DataError, FormatError, MismatchError, OutputError
from fastcompress.models.kinds import model_config_from_json
from fastcompress.models.protocol import ModelConfig
from fastcompress.training import checksum
from fastcompress.training.config import TrainConfig

FORMAT = "fastcompress-run"
VERSION = 1
# The settings that decide which tokens a step sees; the others may change when a run is resumed.
_FIXED_TRAIN_SETTINGS = ("batch_size", "seed", "order", "packing")
_OLDER_ORDER = 1
_OLDER_SETTINGS = {"order": _OLDER_ORDER, "packing": "none"}  # what runs had before these settings existed


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

    @property
    def diverged(self) -> Path:
        return self.path / "diverged.safetensors"

    @contextlib.contextmanager
    def locked(self, *, create: bool) -> Iterator[None]:
        """Keep other writers out of the folder for the length of the block.

        Args:
            create: Make the folder if it is missing; otherwise a missing folder is not locked.

        Raises:
            OutputError: Another process writes to the folder, or it cannot be made.
        """
        if create:
            try:
                self.path.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise OutputError(
                    f"{self.path}: cannot be written ({error.strerror}); choose another run directory"
                ) from error
        with locked(self.path) if self.path.is_dir() else contextlib.nullcontext():
            yield

    def read_config(self) -> dict[str, Any]:
        """Read config.json, a JSON object with objects under "model", "train" and "codec".

        Raises DataError if there is no run, FormatError if the file is damaged, foreign or of another version.
        """
        return _read_config(self.config)

    def prepare(
        self,
        model_config: ModelConfig,
        rows: Rows,
        config: TrainConfig,
        data: dict[str, dict[str, Any]],
        *,
        resume: bool,
    ) -> dict[str, str]:
        """Write config.json and codec.json of a new run, or check that the folder holds the run to resume.

        Returns:
            What each checkpoint stores to identify this run (``check_belongs``).

        Raises:
            OutputError: The folder holds a run and ``resume`` is off, or it cannot be written.
            Others as ``check_same_run``, which comes first if ``resume`` is on.
        """
        if resume:
            self.check_same_run(model_config, rows, config, data)
        else:
            for file in (self.config, self.codec, self.metrics, self.last, self.best):
                if file.exists():
                    raise OutputError(
                        f"{self.path}: holds a run already ({file.name}); resume it, or choose another directory"
                    )
        codec = rows.codec
        stored = self.read_config() if resume else {}
        run_id = str(stored.get("run") or secrets.token_hex(8))  # runs of older versions have none
        content = {
            "format": FORMAT,
            "version": VERSION,
            "model": model_config.to_json(),
            "train": config.to_json(),
            "codec": {"name": codec.name, "fingerprint": codec.fingerprint},
            "rows": {"fingerprint": rows.fingerprint},
            "data": data,
            "run": run_id,
        }
        checksum.write_json(self.config, content)
        if not (resume and self.codec.exists()):  # check_same_run has compared it
            save_codec(codec, self.codec)
        return {"id": run_id, "codec_sha256": _sha256_of(self.codec)}

    def load_codec(self) -> Codec:
        """Load codec.json. Raises DataError if it is missing, FormatError if it is damaged."""
        try:
            return load_codec(self.codec)
        except MismatchError as error:
            raise FormatError(
                f"{self.codec}: damaged (its codec is not the one it names); restore it from a copy, or train again"
            ) from error

    def check_belongs(self, state: dict[str, Any], path: Path) -> None:
        """Check that a checkpoint belongs to the run in this folder, and that codec.json is unchanged since.

        Args:
            state: The checkpoint's state.
            path: Its file, for messages.

        Raises:
            MismatchError: It is another run's.
            FormatError: config.json or codec.json is damaged.
        """
        known = state.get("run", {})  # none in checkpoints of older versions
        if self.config.exists() and "id" in known and self.read_config().get("run", known["id"]) != known["id"]:
            raise MismatchError(f"{path}: belongs to another run than {self.config}; put back the files of one run")
        if self.codec.exists() and known.get("codec_sha256") not in (None, _sha256_of(self.codec)):
            raise FormatError(f"{self.codec}: damaged (its checksum differs); restore it from a copy, or train again")

    def check_same_run(
        self, model_config: ModelConfig, rows: Rows, config: TrainConfig, data: dict[str, dict[str, Any]]
    ) -> None:
        """Check that the run in the folder is the one described.

        Raises:
            DataError: The folder holds no run, or one whose last checkpoint is missing although it has a best one.
            MismatchError: Its run has another model, codec, rows, batch size, seed or text.
            FormatError: Its config.json is not one.
        """
        stored = self.read_config()
        was, now = self._stored_model(stored["model"]), model_config.to_json()
        _check_same("model", {"kind": was["kind"]}, {"kind": now["kind"]}, self.path)
        _check_same("model", was, now, self.path)
        fixed = {name: getattr(config, name) for name in _FIXED_TRAIN_SETTINGS}
        was = {name: stored["train"].get(name, _OLDER_SETTINGS.get(name)) for name in fixed}
        _check_same("training", was, fixed, self.path)
        optimizer = stored["train"].get("optimizer", {}).get("kind", "adamw")  # older runs had no other
        _check_same("training", {"optimizer": optimizer}, {"optimizer": config.optimizer.kind}, self.path)
        self.check_codec(rows.codec)
        if stored.get("rows", {}).get("fingerprint", rows.fingerprint) != rows.fingerprint:  # none in older runs
            raise MismatchError(f"{self.path}: its model read other rows; resume with the version that began the run")
        self._check_same_data(stored.get("data", {}), data)  # none in runs of before it was kept
        if self.best.exists() and not self.last.exists():
            raise DataError(
                f"{self.path}: {self.last.name} is missing, so the run cannot go on, and starting over would "
                f"overwrite {self.best.name}; restore the one, or remove the other"
            )

    def _stored_model(self, fields: dict[str, Any]) -> dict[str, Any]:
        """Return the stored model's fields as this version writes them; fields that older runs lack get defaults."""
        try:
            return model_config_from_json(fields).to_json()
        except (ConfigError, TypeError) as error:
            raise FormatError(
                f"{self.config}: its model is damaged ({error}); restore it, or choose another directory"
            ) from error

    def order(self) -> int:
        """Return the version of the order in which the run visits its rows; errors as ``read_config``."""
        order: int | None = self.read_config()["train"].get("order")
        return _OLDER_ORDER if order is None else order

    def check_codec(self, codec: Codec) -> None:
        """Raise MismatchError unless the run was trained with ``codec``; other errors as ``read_config``."""
        stored = self.read_config()["codec"]
        if stored.get("fingerprint") != codec.fingerprint:
            raise MismatchError(
                f"{self.path}: was trained with codec {stored.get('name')}, not this {codec.name}; use that codec, "
                "or another directory"
            )

    def _check_same_data(self, stored: dict[str, dict[str, Any]], given: dict[str, dict[str, Any]]) -> None:
        for part, was in stored.items():
            now = given[part]
            if was["fingerprint"] != now["fingerprint"]:
                raise MismatchError(
                    f"{self.path}: its {part} text is not what the run began with ({_figures(now)}; then "
                    f"{_figures(was)}); resume with the same text, or choose another directory"
                )


def _sha256_of(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def describe_data(train_data: TokenDataset | Mixture, validation: Sequence[bytes]) -> dict[str, dict[str, Any]]:
    """Describe the data of a run for config.json: sizes for people, fingerprints for checks."""
    return {
        "training": {
            "documents": train_data.num_documents,
            "bytes": train_data.num_bytes,
            "tokens": train_data.num_tokens,
            "fingerprint": train_data.fingerprint,
        },
        "validation": {
            "documents": len(validation),
            "bytes": sum(map(len, validation)),
            "fingerprint": documents_fingerprint(validation),
        },
    }


def documents_fingerprint(documents: Sequence[bytes]) -> str:
    """Return the SHA-256 of the documents and their boundaries, as 64 hexadecimal digits."""
    digest = hashlib.sha256(b"fastcompress documents, version 1\n")
    for document in documents:
        digest.update(len(document).to_bytes(8, "little"))
        digest.update(document)
    return digest.hexdigest()


def _figures(part: dict[str, Any]) -> str:
    figures = ", ".join(f"{part[name]:,} {name}" for name in ("documents", "bytes", "tokens") if name in part)
    return f"{figures}, fingerprint {part['fingerprint'][:8]}"


def _check_same(kind: str, stored: dict[str, Any], given: dict[str, Any], path: Path) -> None:
    for name in sorted(set(stored) | set(given)):
        if stored.get(name) != given.get(name):
            raise MismatchError(
                f"{path}: its {kind} setting {name} is {stored.get(name)!r}, not {given.get(name)!r}; "
                "resume with the same, or choose another directory"
            )


def _read_config(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise DataError(f"{path.parent}: holds no run to resume; start one with resume=False") from error
    except (OSError, ValueError) as error:
        raise FormatError(
            f"{path}: cannot be read as JSON ({error}); restore it, or choose another directory"
        ) from error
    if not isinstance(content, dict) or (content.get("format"), content.get("version")) != (FORMAT, VERSION):
        raise FormatError(f"{path}: not a run's configuration of version {VERSION}; choose another directory")
    if not all(isinstance(content.get(part), dict) for part in ("model", "train", "codec")):
        raise FormatError(f"{path}: lacks its model, train or codec part; restore it, or choose another directory")
    data = content.get("data", {})
    if not isinstance(data, dict) or not all(
        part in ("training", "validation") and isinstance(figures, dict) and isinstance(figures.get("fingerprint"), str)
        for part, figures in data.items()
    ):
        raise FormatError(f"{path}: its data part is damaged; restore it, or choose another directory")
    checksum.verify(path, path.stat().st_size, content, ("format", "version", "model", "train", "codec", "data"))
    return content
