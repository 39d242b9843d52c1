"""tiktoken's rank files: a line a token, its bytes in base64, a space, and its rank. And GPT-2's list of merges."""

from __future__ import annotations

import base64
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fastcompress._core import bpe as _core
from fastcompress.errors import ConfigError, FormatError
from fastcompress.formats.published_ranks import PublishedEncoding
from fastcompress.formats.rank_cache import published_file

MAX_IDS = 1 << 21
"""Ids are below this, as in the core."""


def read_rank_file(path: str | os.PathLike[str]) -> dict[bytes, int]:
    """The ranks of a ``.tiktoken`` file, in the order of ranks.

    Raises FormatError, with the line's number, for a line that is not ``base64 rank``, for a token or a rank that
    stands twice, and for an empty file; ConfigError for a file that leaves too many ranks unused. O(file).
    """
    with naming_file(path):
        return _core.parse_rank_file(Path(path).read_bytes())


def read_published_ranks(encoding: PublishedEncoding) -> bytes:
    """The rank file of a published encoding, from tiktoken's cache or the network (see `rank_cache`)."""
    source, content = published_file(encoding.sources)
    return _rank_file_of_merges(content.decode("utf-8")) if source.is_merge_list else content


@contextmanager
def naming_file(path: str | os.PathLike[str]) -> Iterator[None]:
    """Puts a file's name before what the core says of its content."""
    try:
        yield
    except (FormatError, ConfigError) as error:
        raise type(error)(f"{path}: {error}") from error


def _rank_file_of_merges(merges: str) -> bytes:
    """The rank file that says what GPT-2's ``vocab.bpe`` says: the bytes, then a token a merge, in that order.

    Bytes are spelled by characters there: printable ones of Latin-1 by themselves, the others by U+0100 and up.
    """
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    byte_of = {chr(byte): byte for byte in printable} | {chr(256 + i): byte for i, byte in enumerate(others)}
    tokens = [bytes([byte]) for byte in (*printable, *others)]
    lines = merges.split("\n")[1:]  # after the version
    tokens += [bytes(byte_of[c] for c in line if c != " ") for line in lines if line]
    return b"".join(b"%b %d\n" % (base64.b64encode(token), rank) for rank, token in enumerate(tokens))
