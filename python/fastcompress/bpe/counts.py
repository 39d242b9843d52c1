"""How often each distinct pretoken occurs: what BPE learns from. Such tables add up across processes and machines."""

from __future__ import annotations

import itertools
import os
import shutil
import weakref
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TypeAlias

from fastcompress._core import bpe as _core
from fastcompress._files import open_atomically
from fastcompress.bpe.arguments import Text, check_threads
from fastcompress.errors import ConfigError, DataError, FormatError, MismatchError
from fastcompress.pretokenizer import utf8

Source: TypeAlias = "Text | os.PathLike[str] | Iterable[Text | os.PathLike[str]]"

_TEXT_TYPES = (str, bytes, bytearray, memoryview)
_BATCH_BYTES = 1 << 22  # texts are handed to the core in groups of about 4 MiB a thread, at most 64 MiB
_MAX_BATCH_BYTES = 1 << 26
_ITEMS_AT_ONCE = 4096


class PretokenCounts:
    """A multiset of pretokens under one pattern. Counts are exact, and adding is associative and commutative.

    So a corpus can be counted in parts, by processes or machines, and the sum be trained on::

        counts = BPE.count_pretokens(shard, pattern="cl100k")  # on each worker
        counts.save("part-7.counts")
        total = functools.reduce(operator.add, map(PretokenCounts.load, paths))  # on one machine
        tok = BPE.train(total, vocab_size=32768)  # equal to training on all shards at once

    Objects can be pickled. Each method may be called from any thread.
    """

    def __init__(
        self,
        pattern: str = "cl100k",
        *,
        max_memory_bytes: int | None = None,
        temporary_folder: str | os.PathLike[str] | None = None,
    ) -> None:
        """An empty table.

        pattern: a name of `fastcompress.pretokenizer.PATTERNS`.
        max_memory_bytes: where the tables in memory would get larger, they are written to sorted runs in a temporary
        folder and emptied; None: they may grow. It bounds what counting takes beside the texts at hand, down to about
        24 KiB a thread, and changes nothing else.
        temporary_folder: where that folder is made; None: where the system keeps temporary files. It is removed with
        the object.
        """
        if max_memory_bytes is not None and not 1 <= max_memory_bytes < 1 << 63:
            raise ConfigError(f"max_memory_bytes={max_memory_bytes} is out of range: give at least 1, or None")
        folder = ""
        if max_memory_bytes is not None:
            import tempfile  # here, since importing it takes longer than most programs need

            folder = tempfile.mkdtemp(prefix="fastcompress-counts-", dir=temporary_folder)
            weakref.finalize(self, _remove_folder, folder, os.getpid())
        self._core = _core.PretokenCounts(pattern, max_memory_bytes, os.fsencode(folder))

    @property
    def pattern(self) -> str:
        """The name of the pretokenizer pattern."""
        return self._core.pattern

    @property
    def num_runs(self) -> int:
        """The number of sorted runs on disk; 0 where memory was enough."""
        return self._core.num_runs

    def add(self, source: Source, *, num_threads: int | None = None) -> None:
        """Counts the pretokens of a text, a file, or an iterable of them (which is streamed).

        A file, given as `pathlib.Path`, is one text, as if its bytes were given; it is read in parts, cut where that
        changes no pretoken (before ASCII white space after a letter or number). So it may be larger than memory,
        unless the pattern is ``none``, whose pretoken is the whole text. num_threads: None for all cores; never
        changes the result; long texts are shared by threads, too.

        O(bytes). Raises DataError for a file that cannot be read, OutputError when there is no room for runs; the
        counts are incomplete then.
        """
        check_threads(num_threads)
        cores = num_threads or os.cpu_count() or 1
        batch_bytes = min(_BATCH_BYTES * cores, _MAX_BATCH_BYTES)
        for batch in _batches(_texts(source, batch_bytes, is_cut=self.pattern != "none"), batch_bytes):
            self._core.add_texts(batch, num_threads)

    def merge(self, other: PretokenCounts) -> None:
        """Adds the counts of another table. O(distinct pretokens of the other). Raises MismatchError for a different
        pattern."""
        if not isinstance(other, PretokenCounts):
            raise TypeError(f"expected PretokenCounts, not {type(other).__name__}")
        if other.pattern != self.pattern:
            raise MismatchError(
                f"pretoken counts of the patterns {self.pattern!r} and {other.pattern!r} do not add up: "
                "count both with one pattern"
            )
        if other is self:
            other = PretokenCounts.from_bytes(self.to_bytes())
        self._core.add_counts(other._core)

    def __iadd__(self, other: PretokenCounts) -> PretokenCounts:
        self.merge(other)
        return self

    def __add__(self, other: PretokenCounts) -> PretokenCounts:
        if not isinstance(other, PretokenCounts):
            return NotImplemented
        total = PretokenCounts(self.pattern)
        total.merge(self)
        total.merge(other)
        return total

    def __len__(self) -> int:
        """The number of distinct pretokens. Reads the runs, if there are any."""
        return self._core.size()

    def items(self) -> Iterator[tuple[bytes, int]]:
        """(pretoken, count) in ascending order of bytes. RuntimeError if the table changes meanwhile."""
        items = self._core.items()
        while batch := items.next_batch(_ITEMS_AT_ONCE):
            yield from batch

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PretokenCounts):
            return NotImplemented
        pairs = itertools.zip_longest(self.items(), other.items())
        return self.pattern == other.pattern and all(mine == theirs for mine, theirs in pairs)

    def __repr__(self) -> str:
        return f"<PretokenCounts pattern={self.pattern!r} distinct={len(self)}>"

    # ------------------------------------------------------------------ files

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the counts, sorted and with a checksum, replacing an existing file in one step.

        Equal counts give equal files (format: cpp/fastcompress/bpe/FORMAT.md).
        """
        with open_atomically(path) as file:
            self._core.write(file.write)

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        max_memory_bytes: int | None = None,
        temporary_folder: str | os.PathLike[str] | None = None,
    ) -> PretokenCounts:
        """Reads a file written by `save`. Raises FormatError for a foreign, truncated or damaged one."""
        name = os.fsencode(path)
        try:
            open(name, "rb").close()  # for Python's own OSError
            pattern = _core.counts_pattern_of_file(name)
            counts = cls(pattern, max_memory_bytes=max_memory_bytes, temporary_folder=temporary_folder)
            counts._core.add_file(name)
        except FormatError as error:
            raise FormatError(f"{path}: {error}") from error
        return counts

    def to_bytes(self) -> bytes:
        """What `save` writes."""
        parts: list[bytes] = []
        self._core.write(parts.append)
        return b"".join(parts)

    @classmethod
    def from_bytes(cls, blob: bytes) -> PretokenCounts:
        """The counts that `to_bytes` serialized. Raises FormatError for anything else."""
        counts = cls(_core.counts_pattern_of_bytes(blob))
        counts._core.add_bytes(blob)
        return counts

    def __reduce__(self) -> tuple[Callable[[bytes], PretokenCounts], tuple[bytes]]:
        return PretokenCounts.from_bytes, (self.to_bytes(),)


def counts_of_pieces(
    source: Source,
    cut: Callable[[bytes], Iterable[bytes]],
    *,
    num_threads: int | None,
    max_memory_bytes: int | None,
    temporary_folder: str | os.PathLike[str] | None,
) -> PretokenCounts:
    """Counts of the pretokens that a function makes of each text, for patterns that the core does not know.

    They are those of the pattern ``none`` for texts that are one pretoken each, so they must not be kept as counts of
    the pattern they belong to. A file is one text, which is read as a whole.
    """
    counts = PretokenCounts("none", max_memory_bytes=max_memory_bytes, temporary_folder=temporary_folder)

    def pieces() -> Iterator[bytes]:
        for text in _texts(source, _BATCH_BYTES, is_cut=False):
            _check_text(text)
            yield from cut(utf8(text))

    for batch in _batches(pieces(), _BATCH_BYTES):
        counts._core.add_texts(batch, num_threads)
    return counts


def _check_text(text: object) -> None:
    if not isinstance(text, _TEXT_TYPES):
        raise TypeError(f"expected str, bytes or a pathlib.Path, not {type(text).__name__}")


def _remove_folder(folder: str, owner: int) -> None:
    if os.getpid() == owner:  # a forked child has its parent's objects, not its files
        shutil.rmtree(folder, ignore_errors=True)


def _texts(source: Source, part_bytes: int, *, is_cut: bool) -> Iterator[Text]:
    """The texts of a source; a file that may be cut comes in parts."""
    items = [source] if isinstance(source, (*_TEXT_TYPES, os.PathLike)) else source
    for item in items:
        if isinstance(item, os.PathLike):
            yield from _file_parts(Path(item), part_bytes, is_cut=is_cut)
        else:
            yield item


def _file_parts(path: Path, part_bytes: int, *, is_cut: bool) -> Iterator[bytes]:
    """The bytes of a file, cut where no pretoken changes."""
    longest_character = 4
    try:
        with path.open("rb") as file:
            waiting: list[bytes] = []  # read, and without a place to cut
            while part := file.read(part_bytes if is_cut else -1):
                before = waiting[-1][-longest_character:] if waiting else b""
                if is_cut and (cut := _core.last_cut(before + part)):
                    yield b"".join([*waiting, part[: cut - len(before)]])
                    part = part[cut - len(before) :]
                    waiting = []
                waiting.append(part)
            if waiting:
                yield b"".join(waiting)
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}); name a readable file") from error


def _batches(texts: Iterable[Text], batch_bytes: int) -> Iterator[list[Text]]:
    """Lists of about so many bytes."""
    batch: list[Text] = []
    size = 0
    for text in texts:
        _check_text(text)
        batch.append(text)
        size += len(text)
        if size >= batch_bytes:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
