"""Copies of vocabularies with some parts replaced."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from fastcompress._core import bpe as _core
from fastcompress.bpe.rank_merges import learned_merges
from fastcompress.bpe.special_tokens import SHARES_ID
from fastcompress.errors import ConfigError


def with_merges(core: _core.Tokenizer) -> _core.Tokenizer:
    """Return a vocabulary of merges that gives the same ids to every text; one that has merges is returned itself.

    Raises ConfigError for ranks that cannot result from training; see `learned_merges`.
    """
    if not core.is_ranks:
        return core
    return _rebuilt(core, merges=np.array(learned_merges(core.ordinary_tokens()), np.uint32).reshape(-1, 3))


def with_pattern(core: _core.Tokenizer, pattern: str) -> _core.Tokenizer:
    """Return a vocabulary of merges with another pattern, such as a custom one that the core does not know."""
    return _rebuilt(core, pattern=pattern)


def with_special_ids(core: _core.Tokenizer, ids: Mapping[str, int]) -> _core.Tokenizer:
    """Return a vocabulary of merges in which some special tokens have other ids.

    Raises ConfigError if such an id belongs to another token.
    """
    rows = core.added_tokens()
    moved = {token_id for text, token_id, _ in rows if text in ids}
    taken = {i for i, length in enumerate(core.token_lengths().tolist()) if length and i not in moved}
    for text, token_id in ids.items():
        if token_id in taken:
            raise ConfigError(
                f"the id {token_id} of special token {text!r} belongs to the token {core.token_bytes(token_id)!r}; "
                f"give ids from {max(taken) + 1} on, or a list of texts, whose ids are then assigned"
            )
    return _rebuilt(core, added_tokens=[(text, ids.get(text, token_id), flags) for text, token_id, flags in rows])


def _rebuilt(
    core: _core.Tokenizer,
    *,
    merges: npt.NDArray[np.uint32] | None = None,
    pattern: str | None = None,
    added_tokens: Sequence[tuple[str, int, int]] | None = None,
) -> _core.Tokenizer:
    own_ids = {token_id for _, token_id, flags in core.added_tokens() if not flags & SHARES_ID}
    lengths = core.token_lengths().tolist()
    tokens = [core.token_bytes(i) if length and i not in own_ids else b"" for i, length in enumerate(lengths)]
    while tokens and not tokens[-1]:  # so that special tokens can move down
        tokens.pop()
    return _core.Tokenizer.from_merges(
        tokens=tokens,
        merges=core.merges() if merges is None else merges,
        pattern=core.pattern if pattern is None else pattern,
        added_tokens=list(core.added_tokens() if added_tokens is None else added_tokens),
        ignore_merges=core.ignore_merges,
        prefix_space=core.prefix_space,
        nfc=core.nfc,
        metadata=core.metadata,
    )
