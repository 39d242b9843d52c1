"""Encoding of files of any size as a split of shards, which a killed run leaves to the next one to finish.

The inputs are divided into parts (`fastcompress.data.dataset_parts`), an engine turns each part into shards, and
`fastcompress.data.unfinished` puts them together.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

from fastcompress._arguments import as_integer, as_num_threads
from fastcompress._files import remedy_for
from fastcompress._locks import locked
from fastcompress.codec import load_codec
from fastcompress.data.abandoned import undo_moves
from fastcompress.data.cluster_encode import encode_on_cluster
from fastcompress.data.dataset_parts import EncodeProgress, Part, encode_part, plan_parts
from fastcompress.data.hashed_file import file_sha256
from fastcompress.data.inputs import ON_ERROR, find_files
from fastcompress.data.manifest import MANIFEST, EncodeSettings, InputRecord, Manifest
from fastcompress.data.ray import check_engine
from fastcompress.data.shard_writer import LOCK_SECONDS, check_split, put_in_place
from fastcompress.data.unfinished import Job, Unfinished
from fastcompress.errors import ConfigError, DataError, FastcompressError, FormatError, OutputError

if TYPE_CHECKING:
    from fastcompress.codec import Codec

    Input = str | os.PathLike[str]

SHARD_BYTES = EncodeSettings.shard_bytes
"""The default number of bytes of documents after which the next shard begins."""


@dataclass(frozen=True)
class EncodedSplit:
    """The result of encoding a split.

    Attributes:
        manifest: The list of its shards and inputs.
        seconds: The time this call took.
        was_complete: Whether the split was there already, so that nothing was done.
        resumed_shards: The number of shards that an interrupted run had made.
    """

    manifest: Manifest
    seconds: float
    was_complete: bool = False
    resumed_shards: int = 0


def encode_dataset(
    inputs: Input | Iterable[Input],
    output: str | os.PathLike[str],
    codec: Codec,
    *,
    split: str = "train",
    engine: str = "local",
    text_key: str = "text",
    on_error: str = "fail",
    shard_bytes: int = SHARD_BYTES,
    max_bytes: int | None = None,
    num_threads: int | None = None,
    overwrite: bool = False,
    progress: Callable[[EncodeProgress], None] | None = None,
    stdin: IO[bytes] | None = None,
) -> EncodedSplit:
    """Encode files as one split of a directory of shards, in memory that does not grow with them.

    A call that is killed leaves what it has done in `DIRECTORY/.SPLIT.unfinished`, and the same call later goes on from
    there; the result is the same to the byte, as it is for any number of threads. Only standard input starts over. A
    split that is there already, made by the same call of the same inputs, is left as it is.

    >>> from pathlib import Path
    >>> from tempfile import mkdtemp
    >>> from fastcompress.codec import ByteCodec
    >>> folder = Path(mkdtemp())
    >>> _ = (folder / "rows.jsonl").write_text('{"text": "to be"}\\n{"text": "or not"}\\n')
    >>> encode_dataset(folder / "rows.jsonl", folder / "shards", ByteCodec()).manifest.tokens
    13

    Args:
        inputs: One or several files, folders, patterns, or "-" for standard input; `DocumentReader` describes them.
        output: The directory, which is made if it does not exist. It holds the splits of one codec.
        codec: The codec that encodes them.
        split: The name of the split: letters, digits and underscores.
        engine: "local", which encodes in threads of this process, or "ray", which encodes a part per task on a Ray
            cluster (`fastcompress.data.ray`). Does not change the files.
        text_key: The key of the text in JSON lines, or the column of the text in a table.
        on_error: "fail" to raise an error at the first document that cannot be read; "skip" to list it in the file
            `skipped.jsonl` of the split and to go on.
        shard_bytes: The number of bytes of documents, at least 1, after which the next document begins another shard.
        max_bytes: Encode only the first this many bytes of documents; the last one is cut. None for all.
        num_threads: The number of threads that encode a part; None for one per core, at most 8, or with "ray" for 1.
            Does not change the files.
        overwrite: Whether to replace the split if it exists, and to drop what another run has left unfinished.
        progress: Called with the state after each batch of documents, or with "ray" after each part.
        stdin: The stream of standard input; by default that of the process.

    Raises:
        OutputError: The split exists and is another one, another process writes to it, or it cannot be written.
        MismatchError: The directory holds splits of another codec, or an unfinished run with other inputs or settings.
        DataError: An input does not exist or cannot be read, there are no documents, or the codec cannot encode one.
        FormatError: An input is damaged.
        ConfigError: An argument is out of range, Ray is not installed, or it was to read standard input.
        WorkerError: A part failed with its worker on the cluster, again and again.
    """
    started = time.monotonic()
    check_engine(engine)
    if on_error not in ON_ERROR:
        raise ConfigError(f"on_error is {on_error!r}; it must be one of {', '.join(ON_ERROR)}")
    as_num_threads(num_threads)
    shard_bytes = as_integer(shard_bytes, "shard_bytes", 1, (1 << 62) - 1)
    if max_bytes is not None:
        max_bytes = as_integer(max_bytes, "max_bytes", 1, (1 << 62) - 1, or_none="no limit")
    settings = EncodeSettings(text_key, on_error, shard_bytes, max_bytes)
    directory = Path(output)
    job = _plan(inputs, split, codec, settings)
    check_engine(engine, (file for part in job.parts for file in part.files))

    def encode_parts(folder: Path) -> None:
        state = _Total(job, progress)
        if engine == "ray":
            with closing(encode_on_cluster(job.parts, codec, settings, folder, num_threads=num_threads)) as states:
                for part, last in zip(job.parts, states, strict=True):
                    state.show(last)
                    state.end_part(part)
            return
        for part in job.parts:
            encode_part(part, codec, settings, folder, num_threads=num_threads, stdin=stdin, progress=state.show)
            state.end_part(part)

    try:
        return _run(directory, job, overwrite, encode_parts, started)
    except FastcompressError:
        raise
    except OSError as error:
        place = error.filename or directory
        raise OutputError(f"{place}: cannot be written ({error.strerror}); {remedy_for(error)}") from error


def _plan(inputs: Input | Iterable[Input], split: str, codec: Codec, settings: EncodeSettings) -> Job:
    names = [inputs] if isinstance(inputs, str | os.PathLike) else list(inputs)
    files = [file for name in names for file in find_files(name)]
    if sum(file.path is None for file in files) > 1:
        raise DataError("standard input is named twice; name it once")
    sizes = [None if file.path is None else _size_of(file.path) for file in files]
    if not files:
        raise DataError("there are no files to encode; name at least one")
    return Job(split, codec, settings, plan_parts(files, sizes, settings))


def _size_of(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}); name a readable file") from error


def _run(
    directory: Path, job: Job, overwrite: bool, encode_parts: Callable[[Path], None], started: float
) -> EncodedSplit:
    """Encode what is missing of a job, and put its split in place."""
    if directory.exists() and not directory.is_dir():
        raise OutputError(f"{directory}: cannot be written (it is a file, not a folder); choose another directory")
    folder = directory / f".{job.split}.unfinished"
    if not folder.exists():  # to refuse before anything is made
        if not overwrite and (complete := _complete(directory, job)) is not None:
            return EncodedSplit(complete, time.monotonic() - started, was_complete=True)
        check_split(directory, job.split, job.codec, overwrite)
    is_new = not directory.exists()
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder):
        unfinished = Unfinished(folder, job)
        with locked(directory, wait_seconds=LOCK_SECONDS):
            undo_moves(directory, folder)
        if not overwrite and (complete := _complete(directory, job)) is not None:  # only this folder was left
            unfinished.remove()
            return EncodedSplit(complete, time.monotonic() - started, was_complete=True)
        check_split(directory, job.split, job.codec, overwrite)
        unfinished.open(overwrite)
        resumed = unfinished.num_shards()
        try:
            if not unfinished.is_assembling():
                encode_parts(unfinished.parts_folder)
            manifest = unfinished.assemble()

            def check() -> Sequence[str]:
                check_split(directory, job.split, job.codec, overwrite)
                return [job.split]

            put_in_place(directory, folder, [job.split], check)
        except BaseException:
            if job.has_stdin or not unfinished.num_shards():  # there is nothing to go on with
                unfinished.remove()
                with contextlib.suppress(OSError):
                    if is_new:
                        directory.rmdir()
            raise
        unfinished.remove()
    return EncodedSplit(manifest, time.monotonic() - started, resumed_shards=resumed)


def _complete(directory: Path, job: Job) -> Manifest | None:
    """Return the manifest of the split if it is there, whole, and what the job would make; None otherwise."""
    folder = directory / job.split
    try:
        manifest = Manifest.read(folder)
        codec = None if manifest is None else load_codec(directory / "codec.json")
    except (DataError, FormatError):
        return None
    if manifest is None or codec is None or job.has_stdin:
        return None
    sizes = [(one.path, one.size) for one in manifest.inputs]
    is_same = (
        manifest.codec_fingerprint == codec.fingerprint == job.codec.fingerprint
        and manifest.settings == job.settings
        and sizes == [(one.path, one.size) for one in job.inputs]
        and all(_has_size(folder / shard.name, shard.size) for shard in manifest.shards)
    )
    written = (folder / MANIFEST).stat().st_mtime_ns
    return manifest if is_same and all(_is_unchanged(one, written) for one in manifest.inputs) else None


def _has_size(path: Path, size: int) -> bool:
    return path.is_file() and path.stat().st_size == size


def _is_unchanged(one: InputRecord, written: int) -> bool:
    """Return whether an input is what it was; one that is newer than the shards is read again to see."""
    path = Path(one.path or "")
    return path.stat().st_mtime_ns < written or (one.sha256 is not None and file_sha256(path) == one.sha256)


class _Total:
    """The progress of all parts, as the sum of those that are done and the one that is worked on."""

    def __init__(self, job: Job, show: Callable[[EncodeProgress], None] | None) -> None:
        self._show = show
        self._done = EncodeProgress(None if job.has_stdin else sum(one.size or 0 for one in job.inputs))
        self._part = EncodeProgress()

    def show(self, part: EncodeProgress) -> None:
        self._part = part
        if self._show is not None:
            self._show(self._sum())

    def end_part(self, part: Part) -> None:
        self._part.bytes_read = sum(size or 0 for size in part.sizes)
        self._done = self._sum()
        self._part = EncodeProgress()

    def _sum(self) -> EncodeProgress:
        done, part = self._done, self._part
        return EncodeProgress(
            done.bytes_total,
            done.bytes_read + part.bytes_read,
            done.documents + part.documents,
            done.num_bytes + part.num_bytes,
            done.tokens + part.tokens,
            done.skipped + part.skipped,
        )
