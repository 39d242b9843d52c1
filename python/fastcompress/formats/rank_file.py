"""The rank files of tiktoken, with one token per line (bytes in base64, a space, the rank), and GPT-2's merge list."""

from __future__ import annotations

import base64
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fastcompress._core import bpe as _core
from fastcompress.errors import ConfigError, FormatError, with_place
from fastcompress.formats.byte_level import ALPHABET, from_alphabet
from fastcompress.formats.published_ranks import PublishedEncoding
from fastcompress.formats.rank_cache import published_file

MAX_IDS = 1 << 21
"""The limit of ids: they are below this, as in the core."""


def read_rank_file(path: str | os.PathLike[str]) -> dict[bytes, int]:
    """Return the ranks of a ``.tiktoken`` file, in the order of ranks.

    Raises:
        FormatError: A line is not ``base64 rank`` or repeats a token or a rank (the line's number is named), or the
            file is empty.
        ConfigError: The file leaves too many ranks unused.
    """
    with naming_file(path):
        return _core.parse_rank_file(Path(path).read_bytes())


def read_published_ranks(encoding: PublishedEncoding) -> bytes:
    """Return the rank file of a published encoding, from tiktoken's cache or the network (see `rank_cache`)."""
    source, content = published_file(encoding.sources)
    return _rank_file_of_merges(content.decode("utf-8")) if source.is_merge_list else content


@contextmanager
def naming_file(path: str | os.PathLike[str]) -> Iterator[None]:
    """Start the messages of the block's errors, which are about a file's content, with the file's name."""
    try:
        yield
    except (FormatError, ConfigError) as error:
        raise with_place(error, path) from error


def _rank_file_of_merges(merges: str) -> bytes:
    """Return the rank file that is equivalent to GPT-2's ``vocab.bpe``: single bytes, then one token per merge."""
    tokens = [from_alphabet(character) for character in sorted(ALPHABET)]
    lines = merges.split("\n")[1:]  # the first line is the version
    tokens += [from_alphabet(line.replace(" ", "")) for line in lines if line]
    return b"".join(b"%b %d\n" % (base64.b64encode(token), rank) for rank, token in enumerate(tokens) if token)
