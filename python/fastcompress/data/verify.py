"""Verification of shards: their checksums, what they decode to, and whether that is what the inputs hold."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from fastcompress._arguments import as_integer
from fastcompress.codec import Codec, load_codec
from fastcompress.data.hashed_file import file_sha256
from fastcompress.data.inputs import DocumentReader, InputFile
from fastcompress.data.manifest import MANIFEST, Manifest, Position, ShardRecord
from fastcompress.data.shard_file import HEADER_BYTES, ShardFile, ShardHeader
from fastcompress.data.shard_writer import list_splits
from fastcompress.errors import DataError, FormatError

SAMPLE = 1000
"""The default number of documents to decode and compare."""

_PROBLEMS_OF_A_SHARD = 10


@dataclass
class Verification:
    """What was verified of a split, and what is wrong with it.

    Attributes:
        split: The name of the split.
        shards: The number of shards whose checksums were verified.
        documents: The number of documents in them.
        decoded: The number of documents that were decoded.
        compared: The number of those that were compared with their sources.
        problems: What is wrong, each with the path of the shard.
        notes: Why documents were not compared: sources that are gone or have changed.
    """

    split: str
    shards: int = 0
    documents: int = 0
    decoded: int = 0
    compared: int = 0
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def verify_shards(
    directory: Path, split: str, *, sample: int | None = SAMPLE, progress: Callable[[int], None] | None = None
) -> Verification:
    """Verify a split: the checksums of all shards, and documents of them.

    Documents are decoded, and compared with the inputs that the manifest names, where these are there and unchanged.
    Inputs are read up to the last document that is compared.

    Args:
        directory: The directory of the shards.
        split: The name of the split.
        sample: The number of documents to decode and compare, spread over the split; the same ones each time. None
            for all.
        progress: Called after each shard with its number of bytes.

    Raises:
        DataError: There is no such split.
        FormatError: The manifest or the codec is damaged.
    """
    if sample is not None:
        sample = as_integer(sample, "sample", 0, (1 << 62) - 1, or_none="all")
    directory = Path(directory)
    folder = directory / split
    if split not in list_splits(directory):
        there = ", ".join(list_splits(directory)) or "none"
        raise DataError(f"{directory}: has no split {split!r} (splits: {there}); name one that it has")
    manifest = Manifest.read(folder)
    codec = load_codec(directory / "codec.json")
    result = Verification(split)
    names = [shard.name for shard in manifest.shards] if manifest else []
    there_too = sorted(path.name for path in folder.glob("*.shard"))
    if manifest is not None:
        result.problems += [
            f"{folder / name}: is not listed in {MANIFEST}; remove it" for name in there_too if name not in names
        ]
    paths = [folder / name for name in names or there_too]
    sizes = [shard.documents for shard in manifest.shards] if manifest else [_num_documents(path) for path in paths]
    sources = _Sources(manifest, result) if manifest is not None and manifest.inputs else None
    for index, chosen in enumerate(_choose(sizes, sample)):
        file = _open(paths, index, manifest, codec, result)
        if file is not None:
            result.shards += 1
            result.documents += file.header.num_documents
            shard = None if manifest is None else manifest.shards[index]
            _check_documents(file, chosen, codec, shard, sources, result)
        if progress is not None:
            progress(0 if file is None else file.header.file_bytes)
    return result


def _num_documents(path: Path) -> int:
    """Return the number of documents in a shard, by its header; 0 if that is damaged."""
    try:
        with path.open("rb") as file:
            return ShardHeader.from_bytes(file.read(HEADER_BYTES), path).num_documents
    except (FormatError, OSError):
        return 0


def _open(
    paths: Sequence[Path], index: int, manifest: Manifest | None, codec: Codec, result: Verification
) -> ShardFile | None:
    """Open a shard and check all of it; return None, and say why, if it is damaged."""
    path = paths[index]
    try:
        file = ShardFile(path, verify=True)
        if file.header.codec_fingerprint != codec.fingerprint:
            raise DataError(f"{path}: was not encoded by {path.parent.parent / 'codec.json'}; encode again")
        if manifest is not None and file.header.checksum != manifest.shards[index].checksum:
            raise DataError(f"{path}: is not the file that {MANIFEST} lists; restore it, or encode the corpus again")
        if manifest is None and file.header.num_shards is None:
            raise DataError(f"{path.parent}: has no {MANIFEST}; restore it, or encode the corpus again")
        if manifest is None and (file.header.shard_index, file.header.num_shards) != (index, len(paths)):
            place = f"shard {file.header.shard_index + 1} of {file.header.num_shards}"
            raise DataError(f"{path}: is {place}, but number {index + 1} of {len(paths)}; restore the missing files")
    except (DataError, FormatError) as error:
        result.problems.append(str(error))
    except OSError as error:
        result.problems.append(f"{path}: cannot be read ({error.strerror}); restore it, or encode the corpus again")
    else:
        return file
    return None


def _choose(sizes: Sequence[int], sample: int | None) -> list[Sequence[int]]:
    """Return the documents of each shard to look at, in order, given the numbers of documents."""
    total = sum(sizes)
    if sample is None or sample >= total:
        return [range(size) for size in sizes]
    chosen = np.sort(np.random.default_rng(0).choice(total, sample, replace=False))
    begins = np.cumsum([0, *sizes])
    parts = np.split(chosen, np.searchsorted(chosen, begins[1:-1]))
    return [(part - begin).tolist() for part, begin in zip(parts, begins[:-1], strict=True)]


def _check_documents(
    file: ShardFile,
    chosen: Sequence[int],
    codec: Codec,
    shard: ShardRecord | None,
    sources: _Sources | None,
    result: Verification,
) -> None:
    """Decode documents of a shard, and compare them with their sources."""
    num_bytes = 0
    before = len(result.problems)
    originals = None if sources is None or shard is None else sources.of_shard(shard, chosen)
    for document in chosen:
        if len(result.problems) - before >= _PROBLEMS_OF_A_SHARD:
            result.problems.append(f"{file.path}: and perhaps more; encode the corpus again")
            return
        ids = file.tokens[int(file.offsets[document]) : int(file.offsets[document + 1]) - 1]
        try:
            text = codec.decode(ids.astype(np.uint32))
        except DataError as error:
            result.problems.append(f"{file.path}: document {document + 1:,} cannot be decoded ({error}); encode again")
            continue
        result.decoded += 1
        num_bytes += len(text)
        if originals is None or sources is None or shard is None:
            continue
        original = next(originals, None)
        if original is not None and sources.holds(original, text):
            result.compared += 1
        elif sources.are_unchanged(shard):
            what = f"what {original} holds" if original else "in its sources"
            result.problems.append(f"{file.path}: document {document + 1:,} is not {what}; encode the corpus again")
        else:
            originals = None  # the rest cannot be compared
    if len(chosen) == file.header.num_documents and num_bytes != file.header.num_bytes:
        result.problems.append(
            f"{file.path}: decodes to {num_bytes:,} bytes, but was made of {file.header.num_bytes:,}; encode again"
        )


@dataclass(frozen=True)
class _Original:
    """A document of an input."""

    path: str
    file: int
    row: int
    text: bytes

    def __str__(self) -> str:
        return f"{self.path}, document {self.row + 1:,},"


class _Sources:
    """The documents of the inputs that a manifest names, read forwards as they are asked for."""

    def __init__(self, manifest: Manifest, result: Verification) -> None:
        self._manifest = manifest
        self._result = result
        self._settings = manifest.settings
        self._unusable: set[int] = set()
        self._hashed: set[int] = set()
        self._stream: Iterator[_Original] = iter(())
        self._next: Position | None = None  # the stream yields nothing before this

    def of_shard(self, shard: ShardRecord, chosen: Sequence[int]) -> Iterator[_Original]:
        """Yield the sources of documents of a shard, given their numbers in it, as far as they can be read."""
        if shard.begin is None or shard.end is None or not chosen:
            return
        begin, end = shard.begin, shard.end
        if self._next is None or self._next > begin or self._next[0] < begin[0]:
            self._stream = self._read(begin[0])
        wanted, number = set(chosen), -1
        for original in self._stream:
            self._next = original.file, original.row + 1
            if (original.file, original.row) >= end:
                break
            if (original.file, original.row) >= begin:
                number += 1
                if number in wanted:
                    yield original
                if number == chosen[-1]:
                    return
        self._next = None

    def holds(self, original: _Original, text: bytes) -> bool:
        """Return whether a document is the text, or begins with it where `max_bytes` may have cut it."""
        is_limited = self._settings is not None and self._settings.max_bytes is not None
        return original.text.startswith(text) if is_limited else original.text == text

    def are_unchanged(self, shard: ShardRecord) -> bool:
        """Return whether the inputs of a shard are there with their checksums; note those that are not."""
        if shard.begin is None or shard.end is None:
            return False
        indices = range(shard.begin[0], shard.end[0] + 1)
        for index in indices:
            one = self._manifest.inputs[index]
            if one.sha256 is None:  # it was not read to its end, so nothing is known of it
                return False
            if index not in self._hashed and index not in self._unusable and one.path is not None:
                self._hashed.add(index)
                if file_sha256(Path(one.path)) != one.sha256:
                    self._give_up(index, "has changed since")
        return not self._unusable.intersection(indices)

    def _read(self, first: int) -> Iterator[_Original]:
        """Yield documents from a file on, up to the first file that cannot be used."""
        for index in range(first, len(self._manifest.inputs)):
            one = self._manifest.inputs[index]
            if one.path is None:
                self._give_up(index, "cannot be read again")
            elif not Path(one.path).is_file():
                self._give_up(index, "is not there any more")
            elif Path(one.path).stat().st_size != one.size:
                self._give_up(index, "has changed since")
            if index in self._unusable or one.path is None:
                return
            text_key = "text" if self._settings is None else self._settings.text_key
            path = Path(one.path)
            reader = DocumentReader((), text_key=text_key, on_error="skip", on_skip=lambda skipped: None)
            for document in reader.documents(InputFile(path, path.name, is_named=False)):
                yield _Original(one.path, index, document.index, document.data)

    def _give_up(self, index: int, why: str) -> None:
        if index not in self._unusable:
            self._unusable.add(index)
            self._result.notes.append(f"{self._manifest.inputs[index].path or 'standard input'}: {why}")
