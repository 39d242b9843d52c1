"""Counts of the pretokens of inputs, by threads or on a cluster: all that BPE training needs to know of a corpus.

Counts are exact, and adding them is associative and commutative. So workers can count a file each, and one machine adds
and merges: the vocabulary is that of training on all texts at once, whichever worker counted what.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import closing
from typing import Any

from fastcompress.bpe import PretokenCounts
from fastcompress.data.inputs import DocumentReader, InputFile, Skipped, find_files
from fastcompress.data.ray import check_engine, on_cluster


def count_pretokens(
    inputs: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    pattern: str = "cl100k",
    special_tokens: Iterable[str] = (),
    text_key: str = "text",
    on_error: str = "fail",
    on_skip: Callable[[Skipped], object] | None = None,
    engine: str = "local",
    num_threads: int | None = None,
    max_memory_bytes: int | None = None,
    temporary_folder: str | os.PathLike[str] | None = None,
) -> PretokenCounts:
    """Count the pretokens of the documents of inputs, for `BPE.train`.

    A document is held as a whole, and a text file is one; `BPE.count_pretokens` reads a `Path` in parts.

    >>> from fastcompress import BPE
    >>> from pathlib import Path
    >>> from tempfile import mkdtemp
    >>> rows = Path(mkdtemp(), "rows.jsonl")
    >>> _ = rows.write_text('{"text": "to be"}\\n{"text": "or not to be"}\\n')
    >>> counts = count_pretokens(rows)
    >>> list(counts.items())
    [(b' be', 2), (b' not', 1), (b' to', 1), (b'or', 1), (b'to', 1)]
    >>> BPE.train(counts, vocab_size=258).token_bytes(257)
    b'to'

    Args:
        inputs: Files, folders and patterns, as for `DocumentReader`.
        pattern: A name from `fastcompress.pretokenizer.PATTERNS`.
        special_tokens: Texts at which every document is cut; give those of the training.
        text_key: The key or column of the text.
        on_error: "fail" or "skip", as for `DocumentReader`.
        on_skip: Called with what is skipped, in the order of the inputs.
        engine: "local", or "ray" for a task per file on a Ray cluster (`fastcompress.data.ray`). Same counts.
        num_threads: Threads per process; None for one per core, or with "ray" for 1.
        max_memory_bytes: The largest size of the table in memory, in each process; see `PretokenCounts`. (Workers of
            "ray" send the counts of a file as a whole.)
        temporary_folder: The place for counts beyond it.

    Raises:
        ConfigError: An argument is out of range, Ray is not installed, or it was to read standard input.
        DataError: An input does not exist or cannot be read, or a document has no text.
        FormatError: An input is damaged.
        OutputError: The counts do not fit the disk.
        WorkerError: Workers of the cluster died.
    """
    check_engine(engine)
    limits: dict[str, Any] = {"max_memory_bytes": max_memory_bytes, "temporary_folder": temporary_folder}
    counts = PretokenCounts(pattern, special_tokens=special_tokens, **limits)
    reader = DocumentReader(inputs, text_key=text_key, on_error=on_error, on_skip=on_skip)
    if engine == "local":
        counts.add((document.data for document in reader), num_threads=num_threads)
        return counts
    files = [file for name in reader.inputs for file in find_files(name)]
    check_engine(engine, files)
    settings = {"pattern": pattern, "special_tokens": counts.special_tokens, **limits}
    threads = num_threads or 1
    parts = on_cluster(_count_file, files, settings, text_key, on_error, threads, threads_per_part=threads)
    with closing(parts):
        for of_file, skipped in parts:
            counts.merge(of_file)
            for item in skipped:
                if on_skip is not None:
                    on_skip(item)
    return counts


def _count_file(
    file: InputFile, settings: dict[str, Any], text_key: str, on_error: str, num_threads: int
) -> tuple[PretokenCounts, list[Skipped]]:
    """Return the counts of one file and what was skipped in it; runs in a worker."""
    reader = DocumentReader([], text_key=text_key, on_error=on_error)
    counts = PretokenCounts(**settings)
    counts.add((document.data for document in reader.documents(file)), num_threads=num_threads)
    return counts, reader.skipped
