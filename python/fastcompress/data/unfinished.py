"""An output that is being encoded: the folder in which its parts gather until all are there.

FORMAT: a hidden folder in the directory of the output, which a killed run leaves and the next one goes on with::

    DIRECTORY/.train.unfinished/job.json     the codec, settings and inputs: what another run must share to go on
    DIRECTORY/.train.unfinished/parts/       the shards and the log of each part (`fastcompress.data.part_log`)
    DIRECTORY/.train.unfinished/train/       at the end: the shards by their last names, and the manifest after them
    DIRECTORY/.train.unfinished/codec.json   at the end: the codec

The folder is locked by the run that writes to it. A split takes its place in the directory as a whole.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from fastcompress._files import write_atomically
from fastcompress._locks import LOCK_NAME
from fastcompress.codec import Codec, save_codec
from fastcompress.codec.files import codec_to_json
from fastcompress.data.dataset_parts import Part
from fastcompress.data.manifest import SKIPPED, EncodeSettings, InputRecord, Manifest
from fastcompress.data.part_log import PartLog
from fastcompress.data.shard_file_writer import sync_folder
from fastcompress.errors import DataError, FormatError, MismatchError, OutputError

_VERSION = 1


@dataclass(frozen=True)
class Job:
    """What determines an output.

    Attributes:
        split: The name of the split.
        codec: The codec that encodes it.
        settings: The settings of encoding.
        parts: The parts of its inputs.
    """

    split: str
    codec: Codec
    settings: EncodeSettings
    parts: Sequence[Part]

    @property
    def inputs(self) -> list[InputRecord]:
        """The inputs, in order, without their checksums."""
        return [
            InputRecord(None if file.path is None else str(file.path.absolute()), size)
            for part in self.parts
            for file, size in zip(part.files, part.sizes, strict=True)
        ]

    @property
    def has_stdin(self) -> bool:
        """Whether standard input is one of the inputs; it cannot be read twice."""
        return any(one.path is None for one in self.inputs)


class Unfinished:
    """The folder of an output that is being encoded; see FORMAT above. The caller holds its lock.

    Attributes:
        folder: The folder.
        parts_folder: The folder of the shards and the logs of the parts.
    """

    def __init__(self, folder: Path, job: Job) -> None:
        self.folder = folder
        self.parts_folder = folder / "parts"
        self._job = job
        self._state = json.loads(json.dumps(_describe(job)))

    def open(self, overwrite: bool) -> None:
        """Begin, or go on with what an earlier run has done.

        Raises MismatchError if that run had another codec, or other inputs or settings, unless it may be overwritten.
        """
        path = self.folder / "job.json"
        try:
            earlier: Any = json.loads(path.read_bytes())
        except FileNotFoundError:
            earlier = None  # nothing, or the rest of a run that was killed while it began or was cleared away
        except ValueError as error:
            raise FormatError(f"{path}: is damaged ({error}); remove {self.folder} and start over") from error
        if earlier is not None and earlier != self._state and not overwrite:
            names = ("version", "codec", "settings", "inputs")
            other = next(name for name in names if earlier.get(name) != self._state[name])
            raise MismatchError(
                f"{self.folder}: an interrupted run left it, with other {other}; run that one again to finish it, or "
                "pass overwrite=True to drop it"
            )
        if earlier != self._state or self._job.has_stdin:
            self._clear()
            self.parts_folder.mkdir()
            codec_to_json(self._job.codec)  # which says now, not at the end, if the codec cannot be saved
            write_atomically(path, json.dumps(self._state, indent=1).encode())

    def is_assembling(self) -> bool:
        """Return whether all parts are done, and `assemble` has begun to move their shards."""
        return (self.folder / self._job.split).exists()

    def num_shards(self) -> int:
        """Return the number of shards that earlier runs have made."""
        return sum(len(log.shards) for log in self._logs())

    def assemble(self) -> Manifest:
        """Make the split of all parts, which are done, and return its manifest. An interrupted call can be repeated."""
        logs = self._logs()
        if not all(log.is_done for log in logs):
            raise OutputError(f"{self.folder}: some parts are not done; run the same again")
        made = [(log.path_of(shard), shard) for log in logs for shard in log.shards]
        if not made:
            raise DataError("there are no documents to encode; give at least one")
        target = self.folder / self._job.split
        target.mkdir(exist_ok=True)
        for left in target.glob(".*"):  # a temporary file of an interrupted call
            left.unlink()
        shards = [replace(shard, name=f"{number:05d}.shard") for number, (_, shard) in enumerate(made)]
        for (source, _), shard in zip(made, shards, strict=True):
            if source.exists():  # if not, an interrupted call has moved it
                os.replace(source, target / shard.name)
            elif not (target / shard.name).exists():
                raise FormatError(f"{source}: is missing; remove {self.folder} and start over")
        num_skipped = self._write_skipped(target / SKIPPED, logs)
        codec = self._job.codec
        manifest = Manifest(
            codec.name, codec.fingerprint, codec.vocab_size, shards, self._inputs(logs), self._job.settings, num_skipped
        )
        save_codec(codec, self.folder / "codec.json")
        sync_folder(target)
        manifest.write(target)
        return manifest

    def _logs(self) -> list[PartLog]:
        return [PartLog(self.parts_folder, part.index) for part in self._job.parts]

    def _inputs(self, logs: Sequence[PartLog]) -> list[InputRecord]:
        inputs = self._job.inputs
        for log in logs:
            for line in log.lines:
                for index, size, digest in line.inputs:
                    inputs[index] = InputRecord(inputs[index].path, size, digest)
        return inputs

    def _write_skipped(self, path: Path, logs: Sequence[PartLog]) -> int:
        """Write the list of what was skipped, if there is anything, and return its length."""
        inputs = self._job.inputs
        rows = (row for log in logs for line in log.lines for row in line.skipped)
        lines = [
            json.dumps({"path": inputs[file].path, "row": row, "problem": problem, "is_rest": is_rest}) + "\n"
            for file, row, problem, is_rest in rows
        ]
        if lines:
            write_atomically(path, "".join(lines).encode())
        return len(lines)

    def remove(self) -> None:
        """Remove the folder."""
        self._clear()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _clear(self) -> None:
        # First the file without which the rest does not count, should this be interrupted.
        (self.folder / "job.json").unlink(missing_ok=True)
        for path in self.folder.iterdir():
            if path.name == LOCK_NAME:
                continue
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def _describe(job: Job) -> dict[str, Any]:
    """Return what an earlier run must share with this one to be gone on with."""
    files = [file for part in job.parts for file in part.files]
    times = [None if file.path is None else file.path.stat().st_mtime_ns for file in files]
    return {
        "version": _VERSION,
        "codec": job.codec.fingerprint,
        "settings": asdict(job.settings),
        "inputs": [[one.path, one.size, time] for one, time in zip(job.inputs, times, strict=True)],
    }
