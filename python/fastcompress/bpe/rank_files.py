"""Vocabularies of tiktoken's ranks: of a published encoding, a rank file, or a dictionary; and as merges."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from fastcompress._core import bpe as _core
from fastcompress.bpe.arguments import checked_special_ids
from fastcompress.bpe.custom_pattern import resolve_pattern
from fastcompress.bpe.rank_merges import learned_merges
from fastcompress.errors import ConfigError
from fastcompress.formats.published_ranks import PUBLISHED_ENCODINGS
from fastcompress.formats.rank_file import naming_file, read_published_ranks


def vocabulary_of_rank_file(
    name_or_path: str | os.PathLike[str], pattern: str | None, special_tokens: Mapping[str, int] | None
) -> _core.Tokenizer:
    """`BPE.from_tiktoken`, as the core's object."""
    published = PUBLISHED_ENCODINGS.get(name_or_path) if isinstance(name_or_path, str) else None
    if published is not None:
        content = read_published_ranks(published)
        pattern = published.pattern if pattern is None else pattern
        special_tokens = published.special_tokens if special_tokens is None else special_tokens
    elif pattern is None:
        raise ConfigError(
            f"a rank file does not say its pattern: give pattern= with {str(name_or_path)!r}, or the name of a "
            f"published encoding ({', '.join(PUBLISHED_ENCODINGS)})"
        )
    else:
        content = Path(name_or_path).read_bytes()
    specials = checked_special_ids(special_tokens or {})
    with naming_file(name_or_path):
        return _core.Tokenizer.from_rank_file(content, resolve_pattern(pattern), specials)


def vocabulary_of_ranks(
    ranks: dict[bytes, int], pattern: str, special_tokens: Mapping[str, int] | None
) -> _core.Tokenizer:
    """`BPE.from_ranks`, as the core's object."""
    specials = checked_special_ids(special_tokens or {})
    return _core.Tokenizer.from_ranks(ranks, resolve_pattern(pattern), specials)


def with_merges(core: _core.Tokenizer) -> _core.Tokenizer:
    """The vocabulary itself, or of one of ranks the vocabulary of merges that gives the same ids to every text.

    Raises ConfigError where there is none, see `learned_merges`.
    """
    if not core.is_ranks:
        return core
    ids = core.ordinary_tokens()
    tokens = [b""] * (max(ids.values()) + 1)
    for token, token_id in ids.items():
        tokens[token_id] = token
    return _core.Tokenizer.from_merges(
        tokens=tokens,
        merges=np.array(learned_merges(ids), np.uint32).reshape(-1, 3),
        pattern=core.pattern,
        added_tokens=core.added_tokens(),
        ignore_merges=False,
        prefix_space=False,
        nfc=False,
        metadata="",
    )
