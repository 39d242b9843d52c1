"""tiktoken's rank files, one line per token: its bytes in base64, a space, its rank. And GPT-2's list of merges."""

from __future__ import annotations

import base64
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fastcompress._core import bpe as _core
from fastcompress.errors import ConfigError, FormatError
from fastcompress.formats.byte_level import ALPHABET, from_alphabet
from fastcompress.formats.published_ranks import PublishedEncoding
from fastcompress.formats.rank_cache import published_file

MAX_IDS = 1 << 21
"""Ids are below this, as in the core."""


def read_rank_file(path: str | os.PathLike[str]) -> dict[bytes, int]:
    """Return the ranks of a ``.tiktoken`` file, in the order of ranks. O(file).

    Raises FormatError, with the line's number, for a line that is not ``base64 rank``, for a repeated token or rank,
    and for an empty file; ConfigError for a file that leaves too many ranks unused.
    """
    with naming_file(path):
        return _core.parse_rank_file(Path(path).read_bytes())


def read_published_ranks(encoding: PublishedEncoding) -> bytes:
    """Return the rank file of a published encoding, from tiktoken's cache or the network (see `rank_cache`)."""
    source, content = published_file(encoding.sources)
    return _rank_file_of_merges(content.decode("utf-8")) if source.is_merge_list else content


@contextmanager
def naming_file(path: str | os.PathLike[str]) -> Iterator[None]:
    """Put a file's name before what the core says of its content."""
    try:
        yield
    except (FormatError, ConfigError) as error:
        raise type(error)(f"{path}: {error}") from error


def _rank_file_of_merges(merges: str) -> bytes:
    """Return the rank file that says the same as GPT-2's ``vocab.bpe``: the bytes, then a token per merge, in order."""
    tokens = [from_alphabet(character) for character in sorted(ALPHABET)]
    lines = merges.split("\n")[1:]  # after the version
    tokens += [from_alphabet(line.replace(" ", "")) for line in lines if line]
    return b"".join(b"%b %d\n" % (base64.b64encode(token), rank) for rank, token in enumerate(tokens) if token)
