"""How a tokenizer encodes: by the core alone where its pattern has a name, else pretoken by pretoken.

`core` is the vocabulary, `custom` its pattern where that has no name, `allowed` the special tokens that are not
ordinary text, as `SpecialTokens.check` says them.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from fastcompress._core import bpe as _core
from fastcompress.bpe.arguments import Text, check_threads
from fastcompress.bpe.custom_pattern import CustomPattern
from fastcompress.bpe.special_tokens import Specials, SpecialTokens


def encode_to_list(
    core: _core.Tokenizer, custom: CustomPattern | None, text: Text, allowed: bytes, num_threads: int | None
) -> list[int]:
    """The ids of a text in which some special tokens are allowed."""
    if num_threads is not None:
        check_threads(num_threads)
    if custom is None:
        return core.encode_to_list(text, allowed, num_threads)
    ids: list[int] = encode_to_array(core, custom, text, allowed, num_threads).tolist()
    return ids


def encode_to_array(
    core: _core.Tokenizer, custom: CustomPattern | None, text: Text, allowed: bytes, num_threads: int | None = 1
) -> npt.NDArray[np.uint32]:
    """`encode_to_list`, as uint32[n]."""
    if num_threads is not None:
        check_threads(num_threads)
    if custom is None:
        return core.encode(text, allowed, num_threads)
    parts = [
        np.array([part], np.uint32) if isinstance(part, int) else core.encode_pretokens(*custom.pretokens(part))
        for part in core.segments(text, allowed)
    ]
    return parts[0] if len(parts) == 1 else np.concatenate([np.empty(0, np.uint32), *parts])


def check_batch(
    special: SpecialTokens, texts: Sequence[Text], num_threads: int | None, allowed: Specials, disallowed: Specials
) -> bytes:
    """The special tokens allowed in the texts, after refusing a text that holds one that is disallowed."""
    if isinstance(texts, str | bytes):
        raise TypeError("expected a sequence of texts; for one text call encode")
    check_threads(num_threads)
    masks = {special.check(text, allowed, disallowed) for text in texts}
    [mask] = masks or {b""}
    return mask


def encode_batch_to_lists(
    core: _core.Tokenizer,
    custom: CustomPattern | None,
    texts: Sequence[Text],
    allowed: bytes,
    num_threads: int | None,
) -> list[list[int]]:
    """`encode_to_list` for many texts."""
    if custom is None:
        return core.encode_batch_to_lists(texts, num_threads, allowed)
    return [encode_to_list(core, custom, text, allowed, num_threads) for text in texts]


def encode_batch_to_arrays(
    core: _core.Tokenizer,
    custom: CustomPattern | None,
    texts: Sequence[Text],
    allowed: bytes,
    num_threads: int | None,
) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint64]]:
    """`encode_to_array` for many texts: (tokens uint32[n], offsets uint64[len(texts) + 1])."""
    if custom is None:
        return core.encode_batch(texts, num_threads, allowed)
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
    """The ids of texts cut into bytes to encode and ids of special tokens; text i with ``(seed + i) % 2**64``."""
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
    tokens, borders = core.encode_batch_with_dropout(stretches, seeds, begins, ends, dropout, num_threads)
    ids = tokens.tolist()
    encoded = iter([ids[begin:end] for begin, end in itertools.pairwise(borders.tolist())])
    return [
        [i for segment in segments for i in ([segment] if isinstance(segment, int) else next(encoded))]
        for segments in cut
    ]
