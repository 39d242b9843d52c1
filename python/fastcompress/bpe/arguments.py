"""What calls may be given, checked and made ready for the core, which has no checks of types."""

from __future__ import annotations

import operator
from collections.abc import Collection
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from fastcompress.errors import ConfigError, DataError

Text: TypeAlias = "str | bytes | bytearray | memoryview"


def check_texts(texts: Collection[str], name: str) -> None:
    if isinstance(texts, str) or not all(isinstance(text, str) for text in texts):
        raise TypeError(f"{name} must be a collection of str, not {texts!r}")


def check_threads(num_threads: int | None) -> None:
    if num_threads is not None and not 1 <= operator.index(num_threads) < 1 << 16:
        raise ConfigError(f"num_threads={num_threads} is out of range: give at least 1, or None for all cores")


def check_dropout(dropout: float, seed: int) -> None:
    if not 0 <= dropout <= 1:
        raise ConfigError(f"dropout={dropout} is not a probability: give a number from 0 to 1")
    if not 0 <= operator.index(seed) < 1 << 64:
        raise ConfigError(f"seed={seed} is out of range: give an integer from 0 to 2**64 - 1")


def checked_id(token_id: int) -> int:
    """An int that fits the core's; the core knows which ids there are."""
    index = operator.index(token_id)
    if not -(1 << 63) <= index < 1 << 63:
        raise DataError(f"token id {index} is out of range")
    return index


def token_array(tokens: npt.ArrayLike) -> npt.NDArray[np.uint32]:
    """Ids as contiguous uint32[n], or DataError for a negative or a huge one."""
    array = np.asarray(tokens)
    if array.size == 0:
        return np.empty(0, np.uint32)
    if array.dtype == object and array.ndim == 1:  # integers past 64 bits come as objects
        array = np.array([checked_id(token) for token in array])
    if array.dtype.kind not in "iu" or array.ndim != 1:
        raise TypeError(f"expected a sequence of token ids, not an array of {array.dtype} with shape {array.shape}")
    if array.dtype != np.uint32:
        wrong = np.flatnonzero((array < 0) | (array > 0xFFFFFFFF))
        if wrong.size:
            raise DataError(f"token id {array[wrong[0]]} at position {wrong[0]} is out of range")
    return np.ascontiguousarray(array, np.uint32)
