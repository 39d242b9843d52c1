"""Encoding of texts: by the core alone under a named pattern, otherwise pretoken by pretoken.

These parameters are the same in all functions:

- core: The vocabulary.
- custom: Its pattern if that has no name, otherwise None.
- allowed: The mask of the special tokens that become their ids (`SpecialRules.allowed`).
- num_threads: The number of threads, or None for the core's own choice.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from fastcompress._core import bpe as _core
from fastcompress.bpe.arguments import (
    TEXT_TYPES,
    Text,
    as_text_list,
    as_thread_limit,
    check_text_types,
    refuse_text,
)
from fastcompress.bpe.custom_pattern import CustomPattern
from fastcompress.bpe.special_tokens import Specials, SpecialTokens


def encode_to_list(
    core: _core.Tokenizer, custom: CustomPattern | None, text: Text, allowed: bytes, num_threads: int | None
) -> list[int]:
    """Return the ids of a text in which some special tokens are allowed."""
    if num_threads is not None:
        num_threads = as_thread_limit(num_threads)
    if custom is None:
        try:
            return core.encode_to_list(text, allowed, num_threads)
        except TypeError:
            if not isinstance(text, TEXT_TYPES):
                refuse_text(text)
            raise
    ids: list[int] = encode_to_array(core, custom, text, allowed, num_threads).tolist()
    return ids


def encode_to_array(
    core: _core.Tokenizer, custom: CustomPattern | None, text: Text, allowed: bytes, num_threads: int | None = 1
) -> npt.NDArray[np.uint32]:
    """Return the same as `encode_to_list`, as uint32[n]."""
    if num_threads is not None:
        num_threads = as_thread_limit(num_threads)
    try:
        if custom is None:
            return core.encode(text, allowed, num_threads)
        segments = core.segments(text, allowed)
    except TypeError:
        if not isinstance(text, TEXT_TYPES):
            refuse_text(text)
        raise
    parts = [
        np.array([part], np.uint32) if isinstance(part, int) else core.encode_pretokens(*custom.pretokens(part))
        for part in segments
    ]
    return parts[0] if len(parts) == 1 else np.concatenate([np.empty(0, np.uint32), *parts])


def checked_batch(
    special: SpecialTokens,
    texts: Iterable[Text],
    one_text: str,
    allowed: Specials,
    disallowed: Specials,
    num_threads: int | None,
) -> tuple[Sequence[Text], bytes]:
    """Return the texts of any iterable, and the mask of special tokens allowed in them.

    Args:
        special: The vocabulary's special tokens.
        texts: The texts, read once.
        one_text: The name of the method for one text, for errors.
        allowed: The special tokens that become their ids.
        disallowed: The special tokens that no text may hold.
        num_threads: The number of threads, or None for the core's own choice.

    Raises:
        TypeError: An argument is of a wrong type.
        DataError: A text holds a special token that is disallowed.
    """
    texts = as_text_list(texts, "texts", one_text)
    rules = special.rules(allowed, disallowed)
    if rules.refused or rules.refused_others:
        try:
            special.refuse_any(texts, rules, num_threads)
        except TypeError:
            check_text_types(texts, "texts")
            raise
    return texts, rules.allowed


def encode_batch_to_lists(
    core: _core.Tokenizer,
    custom: CustomPattern | None,
    texts: Sequence[Text],
    allowed: bytes,
    num_threads: int | None,
) -> list[list[int]]:
    """Return the ids of each text, as `encode_to_list` does."""
    if custom is None:
        try:
            return core.encode_batch_to_lists(texts, num_threads, allowed)
        except TypeError:
            check_text_types(texts, "texts")
            raise
    check_text_types(texts, "texts")
    return [encode_to_list(core, custom, text, allowed, num_threads) for text in texts]


def encode_batch_to_arrays(
    core: _core.Tokenizer,
    custom: CustomPattern | None,
    texts: Sequence[Text],
    allowed: bytes,
    num_threads: int | None,
) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint64]]:
    """Return the ids of all texts as (tokens uint32[n], offsets uint64[len(texts) + 1])."""
    if custom is None:
        try:
            return core.encode_batch(texts, num_threads, allowed)
        except TypeError:
            check_text_types(texts, "texts")
            raise
    check_text_types(texts, "texts")
    encoded = [encode_to_array(core, custom, text, allowed, num_threads) for text in texts]
    offsets = np.zeros(len(encoded) + 1, np.uint64)
    np.cumsum([len(ids) for ids in encoded], out=offsets[1:])
    return np.concatenate([np.empty(0, np.uint32), *encoded]), offsets


def encode_cut_with_dropout(
    core: _core.Tokenizer,
    custom: CustomPattern | None,
    cut: Sequence[Sequence[bytes | int]],
    token_lengths: npt.NDArray[np.int64],
    dropout: float,
    seed: int,
    num_threads: int | None,
) -> list[list[int]]:
    """Return the ids of texts that are already cut at special tokens. Text i uses the seed ``(seed + i) % 2**64``.

    Args:
        core: The vocabulary.
        custom: Its pattern if that has no name, otherwise None.
        cut: For each text, bytes to encode and ids of special tokens in order.
        token_lengths: The number of bytes of each id.
        dropout: The probability of skipping a merge, 0 to 1.
        seed: The seed of text 0.
        num_threads: The number of threads, or None for the core's own choice.
    """
    stretches, seeds, begins, ends = [], [], [], []
    for number, segments in enumerate(cut):
        begin = 0
        for segment in segments:
            if isinstance(segment, int):
                begin += int(token_lengths[segment])
                continue
            seeds.append((seed + number) % (1 << 64))
            begins.append(begin)
            begin += len(segment)
            if custom is not None:
                segment, ends_of_segment = custom.pretokens(segment)
                ends.append(ends_of_segment)
            stretches.append(segment)
    tokens, boundaries = core.encode_batch_with_dropout(stretches, seeds, begins, ends, dropout, num_threads)
    ids = tokens.tolist()
    encoded = iter([ids[begin:end] for begin, end in itertools.pairwise(boundaries.tolist())])
    return [
        [i for segment in segments for i in ([segment] if isinstance(segment, int) else next(encoded))]
        for segments in cut
    ]
