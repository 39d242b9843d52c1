"""Counts of the distinct pretokens of a corpus, which is all that BPE training needs; those of parts can be added."""

from __future__ import annotations

import itertools
import os
import shutil
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence

from fastcompress._arguments import as_file_bytes, as_integer
from fastcompress._core import bpe as _core
from fastcompress._files import open_atomically
from fastcompress.bpe.arguments import as_pattern, as_special_texts, as_thread_limit
from fastcompress.bpe.training_texts import Source, batches, texts_of
from fastcompress.errors import FormatError, MismatchError
from fastcompress.pretokenizer import utf8

_BATCH_BYTES = 1 << 22  # texts are passed to the core in groups of about 4 MiB per thread, at most 64 MiB
_MAX_BATCH_BYTES = 1 << 26
_ITEMS_AT_ONCE = 4096


class PretokenCounts:
    """A multiset of pretokens under one pattern. Counts are exact, and adding is associative and commutative.

    So a corpus can be counted in parts, by several processes or machines, and the sum be used for training::

        counts = BPE.count_pretokens(shard, pattern="cl100k", special_tokens=["<|end|>"])  # on each worker
        counts.save("part-7.counts")
        total = functools.reduce(operator.add, map(PretokenCounts.load, paths))  # on one machine
        tok = BPE.train(total, vocab_size=32768, special_tokens=["<|end|>"])  # as from all shards at once

    Objects can be pickled. Each method may be called from any thread.

    >>> counts = PretokenCounts("whitespace")
    >>> counts.add("to be or not to be")
    >>> list(counts.items())
    [(b' be', 2), (b' not', 1), (b' or', 1), (b' to', 1), (b'to', 1)]
    """

    def __init__(
        self,
        pattern: str = "cl100k",
        *,
        special_tokens: Iterable[str] = (),
        max_memory_bytes: int | None = None,
        temporary_folder: str | os.PathLike[str] | None = None,
    ) -> None:
        """Make an empty table.

        Args:
            pattern: A name from `fastcompress.pretokenizer.PATTERNS`.
            special_tokens: Texts at which every text is cut before it is counted; they are not counted themselves. Give
                those of the training, so that none is learned as ordinary text. Files do not keep them.
            max_memory_bytes: The largest size of the tables in memory; beyond it they are written to a temporary folder
                as sorted runs, and emptied. It can be as low as about 24 KiB per thread, does not include the texts
                being counted, and does not change the counts. None for no limit.
            temporary_folder: The folder in which to make that folder, which is removed with the object. None for the
                system's folder for temporary files.

        Raises:
            ConfigError: An argument is out of range.
            TypeError: An argument is of a wrong type.
        """
        pattern = as_pattern(pattern)
        self._special_texts = as_special_texts(special_tokens)
        folder = ""
        if max_memory_bytes is not None:
            max_memory_bytes = as_integer(max_memory_bytes, "max_memory_bytes", 1, (1 << 63) - 1, or_none="no limit")
            import tempfile  # here, since importing it takes longer than most programs need

            folder = tempfile.mkdtemp(prefix="fastcompress-counts-", dir=temporary_folder)
            weakref.finalize(self, _remove_folder, folder, os.getpid())
        self._core = _core.PretokenCounts(pattern, max_memory_bytes, os.fsencode(folder))

    @property
    def pattern(self) -> str:
        """The name of the pretokenizer pattern."""
        return self._core.pattern

    @property
    def special_tokens(self) -> tuple[str, ...]:
        """The texts at which `add` cuts a text."""
        return tuple(self._special_texts)

    @property
    def num_runs(self) -> int:
        """The number of sorted runs on disk; 0 if the memory limit was not reached."""
        return self._core.num_runs

    def add(self, source: Source, *, num_threads: int | None = None) -> None:
        """Count the pretokens of a source.

        A file is one text, as if its bytes were given. It is read in parts, cut where that changes no pretoken (before
        ASCII white space after a letter or number), so it may be larger than memory, unless the pattern is ``none``,
        whose pretoken is the whole text, or a special token holds white space. O(bytes).

        Args:
            source: A text, a file (`pathlib.Path`), or an iterable of them, which is streamed. Surrogates in a str are
                replaced as when encoding. A str that is the name of an existing file gives a TextNotFileWarning.
            num_threads: None for one per core. Long texts are shared by threads, too. Does not change the result.

        Raises:
            DataError: A file cannot be read, or the counts would overflow.
            OutputError: Runs cannot be written. The counts are then incomplete.
            TypeError: The source has an item of another type.
        """
        num_threads = as_thread_limit(num_threads)
        cores = num_threads or os.cpu_count() or 1
        batch_bytes = min(_BATCH_BYTES * cores, _MAX_BATCH_BYTES)
        is_cut = self.pattern != "none"
        texts = texts_of(source, batch_bytes, is_cut=is_cut, special_tokens=self._special_texts)
        for batch in batches(texts, batch_bytes):
            self._core.add_texts(batch, num_threads)

    def merge(self, other: PretokenCounts) -> None:
        """Add the counts of another table. O(distinct pretokens of the other).

        Raises MismatchError if its pattern is a different one, DataError if the sum of all counts would reach 2**63.
        After an error the table is unchanged.
        """
        if not isinstance(other, PretokenCounts):
            raise TypeError(f"other is of type {type(other).__name__}; it must be PretokenCounts")
        if other.pattern != self.pattern:
            raise MismatchError(
                f"pretoken counts of the patterns {self.pattern!r} and {other.pattern!r} do not add up; "
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
        texts = dict.fromkeys([*self._special_texts, *other._special_texts])
        total = PretokenCounts(self.pattern, special_tokens=texts)
        total.merge(self)
        total.merge(other)
        return total

    def __len__(self) -> int:
        """Return the number of distinct pretokens. Reads the runs, if there are any."""
        return self._core.size()

    def items(self) -> Iterator[tuple[bytes, int]]:
        """Yield (pretoken, count) in ascending order of bytes. Raises RuntimeError if the table changes meanwhile."""
        items = self._core.items()
        while batch := items.next_batch(_ITEMS_AT_ONCE):
            yield from batch

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PretokenCounts):
            return NotImplemented
        pairs = itertools.zip_longest(self.items(), other.items())
        return self.pattern == other.pattern and all(mine == theirs for mine, theirs in pairs)

    def __repr__(self) -> str:
        size = f"num_runs={self.num_runs}" if self.num_runs else f"distinct={len(self)}"  # runs would have to be read
        special = f" special_tokens={self._special_texts!r}" if self._special_texts else ""
        return f"<PretokenCounts pattern={self.pattern!r} {size}{special}>"

    # ------------------------------------------------------------------ files

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the counts, sorted and with a checksum, replacing an existing file in one step.

        Equal counts give equal files (format: cpp/fastcompress/bpe/FORMAT.md). Raises OutputError if the file cannot be
        written.
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
        """Read a file written by `save`.

        Args:
            path: The file.
            max_memory_bytes: As for the constructor.
            temporary_folder: As for the constructor.

        Raises:
            FormatError: The file is of another format, truncated or damaged.
            OSError: The file cannot be read.
        """
        name = os.fsencode(path)
        try:
            open(name, "rb").close()  # for Python's own OSError
            pattern = _valid_pattern(_core.counts_pattern_of_file, name)
            counts = cls(pattern, max_memory_bytes=max_memory_bytes, temporary_folder=temporary_folder)
            counts._core.add_file(name)
        except FormatError as error:
            raise FormatError(f"{path}: {error}") from error
        return counts

    def to_bytes(self) -> bytes:
        """Return the contents of the file that `save` writes."""
        parts: list[bytes] = []
        self._core.write(parts.append)
        return b"".join(parts)

    @classmethod
    def from_bytes(cls, blob: bytes) -> PretokenCounts:
        """Parse what `to_bytes` returned. Raises FormatError for anything else."""
        blob = as_file_bytes(blob, "blob")
        counts = cls(_valid_pattern(_core.counts_pattern_of_bytes, blob))
        counts._core.add_bytes(blob)
        return counts

    def __reduce__(self) -> tuple[Callable[..., PretokenCounts], tuple[bytes, list[str]]]:
        return _unpickle, (self.to_bytes(), self._special_texts)


def _valid_pattern(read_pattern: Callable[[bytes], str], argument: bytes) -> str:
    """Return the pattern of a file of counts, which is read before the checksum. Raises FormatError if damaged."""
    try:
        return read_pattern(argument)
    except UnicodeDecodeError:
        raise FormatError("the name of the pattern is not UTF-8: the counts are damaged; copy the file again") from None


def _unpickle(blob: bytes, special_texts: list[str]) -> PretokenCounts:
    counts = PretokenCounts.from_bytes(blob)
    counts._special_texts = special_texts
    return counts


def counts_of_pieces(
    source: Source,
    cut: Callable[[bytes], Iterable[bytes]],
    *,
    special_tokens: Sequence[str],
    num_threads: int | None,
    max_memory_bytes: int | None,
    temporary_folder: str | os.PathLike[str] | None,
) -> PretokenCounts:
    """Count the pretokens that a function makes of each text, for patterns that the core does not know.

    The result has the pattern ``none`` and each pretoken for a text, so it must not be kept as the counts of the
    pattern it belongs to. A file is one text, which is read as a whole. Other arguments as for `PretokenCounts`.
    """
    counts = PretokenCounts("none", max_memory_bytes=max_memory_bytes, temporary_folder=temporary_folder)
    texts = texts_of(source, _BATCH_BYTES, is_cut=False, special_tokens=special_tokens)
    for batch in batches((piece for text in texts for piece in cut(utf8(text))), _BATCH_BYTES):
        counts._core.add_texts(batch, num_threads)
    return counts


def _remove_folder(folder: str, owner: int) -> None:
    if os.getpid() == owner:  # a forked child has its parent's objects, not its files
        shutil.rmtree(folder, ignore_errors=True)
