"""What calls may be given, checked and made ready for the core, which has no checks of types."""

from __future__ import annotations

import operator
from collections.abc import Collection, Mapping, Sequence
from typing import SupportsIndex, TypeAlias

import numpy as np
import numpy.typing as npt

from fastcompress.errors import ConfigError, TokenRangeError
from fastcompress.formats.rank_file import MAX_IDS

Text: TypeAlias = "str | bytes | bytearray | memoryview"
Tokens: TypeAlias = "Sequence[SupportsIndex] | npt.ArrayLike"


def check_texts(texts: Collection[str], name: str) -> None:
    if isinstance(texts, str) or not all(isinstance(text, str) for text in texts):
        raise TypeError(f"{name} must be a collection of str, not {texts!r}")


def check_threads(num_threads: int | None) -> None:
    if num_threads is not None and not 1 <= operator.index(num_threads) < 1 << 16:
        raise ConfigError(f"num_threads={num_threads} is out of range: give at least 1, or None for all cores")


def checked_special_ids(special_tokens: Mapping[str, int]) -> list[tuple[str, int]]:
    check_texts(special_tokens, "special_tokens")
    for text, token_id in special_tokens.items():
        if not 0 <= operator.index(token_id) < MAX_IDS:
            raise ConfigError(f"the id {token_id} of special token {text!r} is not in [0, {MAX_IDS})")
    return list(special_tokens.items())


def check_dtype(dtype: npt.DTypeLike, vocab_size: int) -> None:
    resolved = np.dtype(dtype)
    if resolved.kind not in "iu" or np.iinfo(resolved).max < vocab_size - 1:
        raise ConfigError(f"dtype {resolved} cannot hold ids up to {vocab_size - 1}; use uint32")


def check_dropout(dropout: float, seed: int) -> None:
    if not 0 <= dropout <= 1:
        raise ConfigError(f"dropout={dropout} is not a probability: give a number from 0 to 1")
    if not 0 <= operator.index(seed) < 1 << 64:
        raise ConfigError(f"seed={seed} is out of range: give an integer from 0 to 2**64 - 1")


def readable_ids(tokens: Tokens) -> npt.NDArray[np.uint32] | Sequence[SupportsIndex]:
    """Ids as the core reads them: lists and tuples as they are, anything else that NumPy takes as uint32[n].

    Raises TokenRangeError, a DataError, for a negative or a huge one. (In lists the core finds them.)
    """
    if isinstance(tokens, (list, tuple)):
        return tokens
    array = np.asarray(tokens)
    if array.size == 0:
        return np.empty(0, np.uint32)
    if array.dtype.kind not in "iu" or array.ndim != 1:
        if array.dtype == object and array.ndim == 1:  # integers past 64 bits come as objects
            ids: list[int] = array.tolist()
            return ids
        raise TypeError(f"expected a sequence of token ids, not an array of {array.dtype} with shape {array.shape}")
    if array.dtype != np.uint32:
        wrong = np.flatnonzero((array < 0) | (array > 0xFFFFFFFF))
        if wrong.size:
            raise TokenRangeError(f"token id {array[wrong[0]]} at position {wrong[0]} is out of range")
    return np.ascontiguousarray(array, np.uint32)
