"""What is done of a part of a data set, so that a killed run can be finished.

FORMAT: ``00003.jsonl`` for part 3, a line of JSON for each shard, which is written after the shard has its name. The
last line says that the part is done; its shard is null unless documents were left::

    {"shard": {...}, "skipped": [[0, 7, "rows.jsonl: line 8 is not JSON ...", false]], "inputs": [[0, 84, "..."]],
     "end": [0, 1200], "is_done": false}

`shard` is what `fastcompress.data.manifest` lists. `skipped` and `inputs` belong to the documents since the line
before: what could not be read (file, row, problem, whether the rest of the file is lost), and the size and SHA-256 of
each file whose end was reached. The next shard begins at `end`. A last line without its end, as a killed process may
leave, does not count, and neither do lines from the first one on whose shard is not there.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from fastcompress.data.manifest import Position, ShardRecord, parse_shard
from fastcompress.data.shard_file import HEADER_BYTES, ShardHeader
from fastcompress.data.shard_file_writer import TEMPORARY_PREFIX
from fastcompress.errors import FormatError

SkippedRow = tuple[int, int, str, bool]
"""What could not be read: its file, its row, the problem, and whether the rest of the file is lost."""

InputHash = tuple[int, int, str | None]
"""The index of a file, its size, and its SHA-256 if it was read to its end."""


@dataclass
class LogLine:
    """A line of the log; see FORMAT above."""

    end: Position
    shard: ShardRecord | None = None
    skipped: list[SkippedRow] = field(default_factory=list)
    inputs: list[InputHash] = field(default_factory=list)
    is_done: bool = False


class PartLog:
    """The log of one part in a folder, which holds the shards of the part too.

    Attributes:
        lines: The lines, in order.
    """

    def __init__(self, folder: Path, part_index: int) -> None:
        """Read the log, if there is one."""
        self._folder = folder
        self._prefix = f"{part_index:05d}"
        self._path = folder / f"{self._prefix}.jsonl"
        self.lines: list[LogLine] = []
        if self._path.exists():
            self._read()

    @property
    def is_done(self) -> bool:
        """Whether the part is done."""
        return bool(self.lines) and self.lines[-1].is_done

    @property
    def shards(self) -> list[ShardRecord]:
        """The shards that are done."""
        return [line.shard for line in self.lines if line.shard is not None]

    def next_path(self) -> Path:
        """Return the path of the next shard to write."""
        return self._folder / f"{self._prefix}-{len(self.shards):05d}.shard"

    def path_of(self, shard: ShardRecord) -> Path:
        """Return the path of a shard that is done."""
        return self._folder / shard.name

    def prepare(self) -> None:
        """Remove what does not count: lines whose shards are not whole, and files that no line lists."""
        for number, line in enumerate(self.lines):
            if line.shard is not None and not _is_whole(self.path_of(line.shard), line.shard):
                self.lines = self.lines[:number]
                break
        if self._path.exists():
            with self._path.open("r+b") as file:
                file.truncate(sum(len(_to_json(line)) for line in self.lines))
        listed = {shard.name for shard in self.shards}
        for pattern in (f"{self._prefix}-*.shard", f"{TEMPORARY_PREFIX}{self._prefix}-*.shard"):
            for path in self._folder.glob(pattern):
                if path.name not in listed:
                    path.unlink()

    def append(self, line: LogLine) -> None:
        """Add a line, and wait until it is on the disk."""
        with self._path.open("ab") as file:
            file.write(_to_json(line))
            file.flush()
            os.fsync(file.fileno())
        self.lines.append(line)

    def _read(self) -> None:
        *lines, _ = self._path.read_bytes().split(b"\n")
        try:
            self.lines += map(_from_json, map(json.loads, lines))
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise FormatError(
                f"{self._path}: line {len(self.lines) + 1} is damaged ({error!r}); remove the folder and start over"
            ) from error


def _to_json(line: LogLine) -> bytes:
    return json.dumps(asdict(line)).encode() + b"\n"


def _from_json(state: dict[str, Any]) -> LogLine:
    file, row = state["end"]
    return LogLine(
        (int(file), int(row)),
        None if state["shard"] is None else parse_shard(state["shard"]),
        [(int(file), int(row), str(problem), bool(is_rest)) for file, row, problem, is_rest in state["skipped"]],
        [(int(index), int(size), digest) for index, size, digest in state["inputs"]],
        bool(state["is_done"]),
    )


def _is_whole(path: Path, shard: ShardRecord) -> bool:
    """Return whether a file is there with the size and the header that the log has."""
    try:
        with path.open("rb") as file:
            header = ShardHeader.from_bytes(file.read(HEADER_BYTES), path)
            return file.seek(0, 2) == shard.size and header.checksum == shard.checksum
    except (FileNotFoundError, FormatError):
        return False
