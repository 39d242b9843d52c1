"""What a file or folder is, from its headers: shards, a run, a study, an archive, a vocabulary, a codec, or text.

Contents are not verified, and torch is not needed. Every function returns pairs of a name and a value for people and
programs: a str, number, bool or list of str.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

_START_BYTES = 4096
_ARCHIVE_START = b"\x89FCFCZ\r\n"
_RUN_FORMAT, _STUDY_FORMAT = "fastcompress-run", "fastcompress-study"


def describe(path: Path) -> dict[str, Any]:
    """Return the kind of a file or folder, under "kind", and what its header says.

    Raises:
        DataError: It does not exist, cannot be read, or is of no known kind.
        FormatError: It is of a known kind, but damaged.
        MismatchError: Its parts do not belong together.
    """
    from fastcompress.data.compression import reading
    from fastcompress.errors import DataError

    if not path.name or not path.exists():
        raise DataError(f"{path}: no such file or folder; name one that exists")
    if path.is_dir():
        return dict(_folder(path))
    with reading(path):
        with path.open("rb") as file:
            start = file.read(_START_BYTES)
        return {**dict(_file(path, start)), "file_bytes": path.stat().st_size}


def _folder(path: Path) -> Iterator[tuple[str, Any]]:
    from fastcompress.data.shard_writer import list_splits
    from fastcompress.errors import DataError

    if splits := list_splits(path):
        yield from _shards(path, splits)
    elif (path / "config.json").is_file():
        yield from _run(path, _json_of(path / "config.json", _RUN_FORMAT))
    elif (path / "report.json").is_file():
        yield from _study(_json_of(path / "report.json", _STUDY_FORMAT))
    else:
        raise DataError(f"{path}: a folder without shards, a run or a study; name a file in it")


def _file(path: Path, start: bytes) -> Iterator[tuple[str, Any]]:
    from fastcompress.data.shard_file import MAGIC

    if start.startswith(MAGIC):
        yield from _shard(path)
    elif start.startswith(_ARCHIVE_START):
        yield from _archive(path, start)
    elif path.name == "config.json" and _RUN_FORMAT.encode() in start:
        yield from _run(path.parent, _json_of(path, _RUN_FORMAT))
    elif _is_study(path, start):
        yield from _study(_json_of(path, _STUDY_FORMAT))
    elif _may_be_codec(path, start):
        yield from _codec(path)
    else:
        yield from _text(path)


def _shards(path: Path, splits: list[str]) -> Iterator[tuple[str, Any]]:
    from fastcompress.codec import load_codec
    from fastcompress.data.shards import TokenDataset

    codec = load_codec(path / "codec.json")
    yield "kind", "token shards"
    yield "codec", codec.name
    yield "fingerprint", codec.fingerprint
    for split in splits:
        data = TokenDataset.open(path, split, verify=False)
        files = len(list((path / split).glob("*.shard")))
        yield (
            split,
            (
                f"{data.num_documents:,} documents, {data.num_bytes:,} bytes, {data.num_tokens:,} tokens with ends of "
                f"documents, {files:,} file{'s' * (files != 1)}"
            ),
        )


def _shard(path: Path) -> Iterator[tuple[str, Any]]:
    from fastcompress.data.manifest import Manifest
    from fastcompress.data.shard_file import ShardFile

    header = ShardFile(path, verify=False).header
    manifest = Manifest.read(path.parent)
    listed = [] if manifest is None else [shard.name for shard in manifest.shards]
    yield "kind", "token shard"
    if path.name in listed:
        yield "shard", f"{listed.index(path.name) + 1} of {len(listed)}"
    else:
        of = header.num_shards or f"part {header.part_index + 1}"
        yield "shard", f"{header.shard_index + 1} of {of}"
    for name in ("num_documents", "num_bytes", "num_tokens", "vocab_size", "token_bytes"):
        yield name, getattr(header, name)
    yield "fingerprint", header.codec_fingerprint


def _run(path: Path, config: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    yield "kind", "run"
    yield "codec", _part(config, "codec").get("name")
    model = {name: value for name, value in _part(config, "model").items() if isinstance(value, str | int | float)}
    yield "model", ", ".join(f"{name} {value}" for name, value in list(model.items())[:8])
    for name, figures in _part(config, "data").items():
        yield f"{name}_text", ", ".join(f"{value:,} {key}" for key, value in figures.items() if isinstance(value, int))
    yield "checkpoints", sorted(file.name for file in path.glob("*.safetensors"))
    if evaluations := list(_evaluations(path / "metrics.jsonl")):
        yield "last_step", evaluations[-1]["step"]
        scores = [row["validation_bits_per_byte"] for row in evaluations if row.get("validation_bits_per_byte")]
        if scores:
            yield "best_bits_per_byte", min(scores)


def _evaluations(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the evaluations of a run's log; lines that are no JSON, as a killed run may leave, are left out."""
    from fastcompress.codec.files import parse_json

    if path.is_file():
        with path.open("rb") as file:
            for line in file:
                row = parse_json(line)
                if isinstance(row, dict) and row.get("event") == "eval" and isinstance(row.get("step"), int):
                    yield row


def _study(report: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    yield "kind", "study report"
    for name in ("name", "created", "package_version"):
        yield name, report.get(name)
    yield "corpus", _part(report, "corpus").get("name")
    arms = report.get("arms")
    for arm in arms if isinstance(arms, list) else []:
        if isinstance(arm, dict):
            yield f"arm {arm.get('name')}", f"{_part(arm, 'evaluation').get('bits_per_byte')} bits per byte"


def _archive(path: Path, start: bytes) -> Iterator[tuple[str, Any]]:
    from fastcompress.archive import info

    header = info(start)
    yield "kind", "compressed file (.fcz)"
    yield "method", header.method
    yield "level", header.level
    yield "block_bytes", header.block_bytes
    yield "content_bytes", header.content_bytes
    if header.content_bytes:
        yield "ratio", round(header.content_bytes / path.stat().st_size, 3)


def _codec(path: Path) -> Iterator[tuple[str, Any]]:
    from fastcompress.codec import BPECodec, codec_from_spec
    from fastcompress.errors import ConfigError

    is_stored = True
    try:
        codec = codec_from_spec(path)
    except ConfigError:  # a rank file, which stores no pattern, and is no published one
        codec = codec_from_spec(path, default_pattern="none")
        is_stored = False
    yield "kind", "vocabulary" if isinstance(codec, BPECodec) else "codec"
    yield "codec", codec.name
    yield "vocab_size", codec.vocab_size
    yield "lossless", codec.lossless
    yield "unambiguous", codec.unambiguous
    if isinstance(codec, BPECodec):
        bpe = codec.tokenizer
        yield "pattern", bpe.pattern if is_stored else "not stored in a rank file"
        yield "special_tokens", list(bpe.special_tokens)
        yield "longest_token_bytes", int(bpe.token_lengths.max(initial=0))
    if is_stored:
        yield "fingerprint", codec.fingerprint


def _text(path: Path) -> Iterator[tuple[str, Any]]:
    """Describe texts and tables by their first bytes. Raises DataError for what is recognized as something else."""
    from fastcompress.codec.files import parse_json
    from fastcompress.data.readers import JSON_LINES, choose_reader, opened
    from fastcompress.data.text_files import why_not_text
    from fastcompress.errors import DataError

    with opened(path) as (start, file, _):
        reader = choose_reader(str(path), start, "text")
        line = file.readline() if reader is JSON_LINES else b""
    if reader.is_text and (reason := why_not_text(start)):
        raise DataError(f"{path}: {reason[0]}, and is no other known kind of file; name another file")
    yield "kind", reader.kind.removeprefix("a ").removeprefix("an ")
    if isinstance(row := parse_json(line), dict):
        yield "keys", list(row)


def _may_be_codec(path: Path, start: bytes) -> bool:
    from fastcompress.codec.files import FORMAT
    from fastcompress.codec.spec import may_be_codec_file

    if start.lstrip()[:1] == b"{":
        return path.suffix == ".json" and (FORMAT.encode() in start or b'"model"' in path.read_bytes())
    return may_be_codec_file(path, start)


def _is_study(path: Path, start: bytes) -> bool:
    return path.suffix == ".json" and start.lstrip()[:1] == b"{" and _STUDY_FORMAT.encode() in path.read_bytes()


def _json_of(path: Path, format_name: str) -> dict[str, Any]:
    """Return the JSON object of a file. Raises FormatError unless it is of the given format."""
    from fastcompress.codec.files import parse_json
    from fastcompress.data.compression import reading
    from fastcompress.errors import FormatError

    with reading(path):
        content = parse_json(path.read_bytes())
    if not isinstance(content, dict) or content.get("format") != format_name:
        raise FormatError(f"{path}: is not of the format {format_name}, or damaged; restore it")
    return content


def _part(content: Any, key: str) -> dict[str, Any]:
    part = content.get(key) if isinstance(content, dict) else None
    return part if isinstance(part, dict) else {}
