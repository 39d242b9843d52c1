"""Checks of arguments that the whole package shares: integers, numbers of threads, lists of texts.

A wrong type raises TypeError and a value out of range ConfigError; messages name the argument and its range.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import Any, SupportsIndex

import numpy as np

from fastcompress.errors import ConfigError

MAX_THREADS = (1 << 16) - 1
_TEXT_TYPES = (str, bytes, bytearray, memoryview)
_MAX_SHOWN = 60


def shown(value: object) -> str:
    """Return a short description of a value for an error message: its repr if that is short, and its type."""
    is_plain = isinstance(value, str | bytes | int | float | tuple) or value is None
    text = ascii(value) if is_plain else ""
    kind = type(value).__name__
    return f"{text} ({kind})" if 0 < len(text) <= _MAX_SHOWN else f"of type {kind}"


def as_integer(value: SupportsIndex, name: str, least: int, most: int, *, or_none: str = "") -> int:
    """Return an integer argument as an int.

    Args:
        value: An integer of any type, such as NumPy's, but not a bool.
        name: The argument's name, for errors.
        least: The smallest value.
        most: The largest value.
        or_none: The meaning of None, for errors; empty if None is not allowed.

    Raises:
        TypeError: `value` is not an integer.
        ConfigError: `value` is out of range.
    """
    remedy = f", or None for {or_none}" if or_none else ""
    if isinstance(value, bool | np.bool_) or not hasattr(value, "__index__"):
        raise TypeError(f"{name} is {shown(value)}; it must be an integer{remedy}")
    number = operator.index(value)
    if not least <= number <= most:
        bound = f"at least {least}" if number < least and most >= 1 << 60 else f"{least} to {most}"
        raise ConfigError(f"{name} is {number}; it must be {bound}{remedy}")
    return number


def as_num_threads(num_threads: SupportsIndex | None) -> int:
    """Return a number of threads as the core takes it, 0 for one per core. Raises as `as_integer` does."""
    if num_threads is None:
        return 0
    return as_integer(num_threads, "num_threads", 1, MAX_THREADS, or_none="one per core")


def as_texts(texts: Iterable[Any], name: str) -> Sequence[Any]:
    """Return the texts of any iterable, which is read once.

    Raises TypeError if it is not iterable, or is a single text, whose items would be characters.
    """
    if isinstance(texts, _TEXT_TYPES) or not isinstance(texts, Iterable):
        raise TypeError(f"{name} is {shown(texts)}; it must be an iterable of str or bytes")
    return texts if isinstance(texts, list | tuple) else list(texts)
