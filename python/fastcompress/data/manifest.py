"""The list of a split's shards and of the inputs they were made from.

FORMAT: ``SPLIT/manifest.json``, one JSON object. It is written after all else, so a split that has it is complete::

    {"format": "fastcompress shards", "version": 2,
     "codec": {"name": "bpe-32000", "fingerprint": "..."}, "vocab_size": 32000,
     "documents": 2, "bytes": 11, "tokens": 9, "skipped": 0,
     "settings": {"text_key": "text", "on_error": "fail", "shard_bytes": 268435456, "max_bytes": null},
     "inputs": [{"path": "/data/rows.jsonl.zst", "size": 84, "sha256": "..."}],
     "shards": [{"name": "00000.shard", "size": 210, "checksum": "...", "documents": 2, "bytes": 11, "tokens": 9,
                 "begin": [0, 0], "end": [0, 2]}]}

`checksum` is that of a shard file, as `fastcompress.data.shard_file` has it. `begin` and `end` say which documents a
shard holds: those from row ``begin[1]`` of input ``begin[0]`` to just before `end`, both counted from 0, without those
that were skipped. These are listed in ``SPLIT/skipped.jsonl``, a line for each, if there are any. The path of standard
input is null; the SHA-256 of an input that was not read to its end, because of `max_bytes`, is null. Shards that were
written from memory have no `settings`, `begin` and `end`, and no inputs.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from fastcompress._files import write_atomically
from fastcompress.data.shard_file import ShardHeader
from fastcompress.errors import FormatError

MANIFEST = "manifest.json"
SKIPPED = "skipped.jsonl"
_FORMAT = {"format": "fastcompress shards", "version": 2}

Position = tuple[int, int]
"""A place in the inputs: the index of a file, and that of a document in it."""


@dataclass(frozen=True)
class EncodeSettings:
    """The settings of encoding that change the shards.

    Attributes:
        text_key: The key or column of the text.
        on_error: "fail" or "skip": what to do about documents that cannot be read.
        shard_bytes: The number of bytes of documents with which a shard is full.
        max_bytes: The number of bytes of documents after which the inputs are not read further, or None.
    """

    text_key: str = "text"
    on_error: str = "fail"
    shard_bytes: int = 1 << 28
    max_bytes: int | None = None


@dataclass(frozen=True)
class InputRecord:
    """An input as the manifest lists it; see FORMAT above."""

    path: str | None
    size: int | None
    sha256: str | None = None


@dataclass(frozen=True)
class ShardRecord:
    """A shard as the manifest lists it; see FORMAT above."""

    name: str
    size: int
    checksum: str
    documents: int
    bytes: int
    tokens: int
    begin: Position | None = None
    end: Position | None = None

    @classmethod
    def of(
        cls, name: str, header: ShardHeader, begin: Position | None = None, end: Position | None = None
    ) -> ShardRecord:
        """Return the record of a shard with this header."""
        return cls(
            name, header.file_bytes, header.checksum, header.num_documents, header.num_bytes, header.num_tokens,
            begin, end,
        )  # fmt: skip


@dataclass(frozen=True)
class Manifest:
    """The list of a split's shards and of the inputs they were made from; see FORMAT above."""

    codec_name: str
    codec_fingerprint: str
    vocab_size: int
    shards: list[ShardRecord]
    inputs: list[InputRecord] = field(default_factory=list)
    settings: EncodeSettings | None = None
    skipped: int = 0

    @property
    def documents(self) -> int:
        """The number of documents of all shards."""
        return sum(shard.documents for shard in self.shards)

    @property
    def bytes(self) -> int:
        """The number of bytes of all documents before encoding."""
        return sum(shard.bytes for shard in self.shards)

    @property
    def tokens(self) -> int:
        """The number of ids in all shards, with those that end documents."""
        return sum(shard.tokens for shard in self.shards)

    def write(self, folder: Path) -> None:
        """Write the manifest of the split in a folder, which completes it."""
        content = {
            **_FORMAT,
            "codec": {"name": self.codec_name, "fingerprint": self.codec_fingerprint},
            "vocab_size": self.vocab_size,
            "documents": self.documents,
            "bytes": self.bytes,
            "tokens": self.tokens,
            "skipped": self.skipped,
            "settings": None if self.settings is None else asdict(self.settings),
            "inputs": [asdict(one) for one in self.inputs],
            "shards": [asdict(shard) for shard in self.shards],
        }
        write_atomically(folder / MANIFEST, (json.dumps(content, indent=1) + "\n").encode())

    @classmethod
    def read(cls, folder: Path) -> Manifest | None:
        """Return the manifest of the split in a folder, or None if it has none. Raises FormatError if it is damaged."""
        path = folder / MANIFEST
        try:
            content = json.loads(path.read_bytes())
        except FileNotFoundError:
            return None
        except (ValueError, RecursionError, OSError) as error:
            raise FormatError(f"{path}: cannot be read as JSON ({error}); encode the corpus again") from error
        if not isinstance(content, dict) or {key: content.get(key) for key in _FORMAT} != _FORMAT:
            raise FormatError(f"{path}: not a manifest of version 2; encode the corpus again, or update this package")
        try:
            manifest = cls._parsed(content)
        except (KeyError, TypeError, ValueError) as error:
            raise FormatError(f"{path}: a field is missing or wrong ({error!r}); encode the corpus again") from error
        if any(getattr(manifest, name) != content[name] for name in ("documents", "bytes", "tokens")):
            raise FormatError(f"{path}: its sums are not those of its shards; encode the corpus again")
        return manifest

    @classmethod
    def _parsed(cls, content: dict[str, Any]) -> Manifest:
        settings = content["settings"]
        return cls(
            str(content["codec"]["name"]),
            str(content["codec"]["fingerprint"]),
            int(content["vocab_size"]),
            [parse_shard(shard) for shard in content["shards"]],
            [InputRecord(**one) for one in content["inputs"]],
            None if settings is None else EncodeSettings(**settings),
            int(content["skipped"]),
        )


def parse_shard(state: dict[str, Any]) -> ShardRecord:
    """Return the record of a shard from its JSON. Raises KeyError, TypeError or ValueError if it is malformed."""
    name = state["name"]
    if not isinstance(name, str) or Path(name).name != name or not name.endswith(".shard"):
        raise ValueError(f"{name!r} is not the name of a shard")
    sizes = [state[key] for key in ("size", "documents", "bytes", "tokens")]
    if not all(type(size) is int and size >= 0 for size in sizes):
        raise ValueError(f"the sizes of {name} are {sizes}")
    places = {key: None if state[key] is None else _position(state[key]) for key in ("begin", "end")}
    return ShardRecord(**{**state, **places})


def _position(state: list[int]) -> Position:
    file, row = state
    return int(file), int(row)
