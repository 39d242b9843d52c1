"""Vocabularies of tiktoken's ranks: from a published encoding, a rank file, or a dictionary."""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping
from pathlib import Path

from fastcompress._arguments import as_path, shown
from fastcompress._core import bpe as _core
from fastcompress.bpe.arguments import as_pattern, as_special_ids
from fastcompress.bpe.custom_pattern import resolve_pattern
from fastcompress.errors import ConfigError
from fastcompress.formats.published_ranks import PUBLISHED_ENCODINGS
from fastcompress.formats.rank_file import naming_file, read_published_ranks


def vocabulary_of_rank_file(
    name_or_path: str | os.PathLike[str], pattern: str | None, special_tokens: Mapping[str, int] | None
) -> _core.Tokenizer:
    """Read as `BPE.from_tiktoken` does; return the core's object."""
    as_path(name_or_path, "name_or_path")
    published = PUBLISHED_ENCODINGS.get(name_or_path) if isinstance(name_or_path, str) else None
    if published is not None:
        content = read_published_ranks(published)
        pattern = published.pattern if pattern is None else pattern
        special_tokens = published.special_tokens if special_tokens is None else special_tokens
    elif pattern is None:
        close = difflib.get_close_matches(str(name_or_path), PUBLISHED_ENCODINGS, 1)
        hint = f"; did you mean {close[0]!r}?" if close and not os.path.exists(name_or_path) else ""
        raise ConfigError(
            f"a rank file does not say its pattern: give pattern= with {str(name_or_path)!r}, or the name of a "
            f"published encoding ({', '.join(PUBLISHED_ENCODINGS)}){hint}"
        )
    else:
        content = Path(name_or_path).read_bytes()
    specials = _pairs(special_tokens)
    with naming_file(name_or_path):
        return _core.Tokenizer.from_rank_file(content, resolve_pattern(as_pattern(pattern)), specials)


def vocabulary_of_ranks(
    ranks: Mapping[bytes, int], pattern: str, special_tokens: Mapping[str, int] | None
) -> _core.Tokenizer:
    """Make what `BPE.from_ranks` makes; return the core's object."""
    if not isinstance(ranks, Mapping):
        raise TypeError(f"ranks is {shown(ranks)}; it must map the bytes of each token to its rank")
    specials = _pairs(special_tokens)
    return _core.Tokenizer.from_ranks(dict(ranks), resolve_pattern(as_pattern(pattern)), specials)


def _pairs(special_tokens: Mapping[str, int] | None) -> list[tuple[str, int]]:
    return [] if special_tokens is None else list(as_special_ids(special_tokens).items())
