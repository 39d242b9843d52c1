"""Checks of arguments that the whole package shares: integers, numbers of threads, lists of texts.

A wrong type raises TypeError and a value out of range ConfigError; messages name the argument and its range.
"""

from __future__ import annotations

import operator
import os
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn, SupportsFloat, SupportsIndex, TypeVar

import numpy as np

from fastcompress.errors import ConfigError

MAX_THREADS = (1 << 16) - 1
_TEXT_TYPES = (str, bytes, bytearray, memoryview)
_MAX_SHOWN = 60
_Value = TypeVar("_Value")


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
    if type(value) is int and least <= value <= most:  # the usual call: short texts are encoded in less time
        return value
    remedy = f", or None for {or_none}" if or_none else ""
    if isinstance(value, bool | np.bool_) or not hasattr(value, "__index__"):
        raise TypeError(f"{name} is {shown(value)}; it must be an integer{remedy}")
    number = operator.index(value)
    if not least <= number <= most:
        bound = f"at least {least}" if number < least and most >= 1 << 60 else f"{least} to {most}"
        raise ConfigError(f"{name} is {number}; it must be {bound}{remedy}")
    return number


def as_number(value: SupportsFloat, name: str, wanted: str = "a number") -> float:
    """Return a number of any type, such as NumPy's, but not a bool, as a float. Raises TypeError for another type."""
    if isinstance(value, bool | np.bool_ | str | bytes) or not hasattr(value, "__float__"):
        raise TypeError(f"{name} is {shown(value)}; it must be {wanted}")
    return float(value)


def as_instance(value: _Value, kind: type[_Value], name: str) -> _Value:
    """Return an argument of a class. Raises TypeError if it is not of that class.

    Args:
        value: The argument.
        kind: The class.
        name: The argument's name, for errors.
    """
    if not isinstance(value, kind):
        raise TypeError(f"{name} is {shown(value)}; it must be a {kind.__name__}")
    return value


def as_file_bytes(blob: Any, name: str) -> bytes:
    """Return the contents of a file as bytes. Raises TypeError for anything that is not bytes-like."""
    if not isinstance(blob, bytes | bytearray | memoryview):
        raise TypeError(f"{name} is {shown(blob)}; it must be bytes")
    return bytes(blob)


def as_path(path: str | os.PathLike[str], name: str) -> str:
    """Return a path as a str.

    Raises TypeError for anything that is not a path, ConfigError for a text that no file can have as its name.
    """
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"{name} is {shown(path)}; it must be a path (str or os.PathLike)")
    text = os.fsdecode(path)
    try:
        is_possible = b"\0" not in os.fsencode(text)
    except UnicodeEncodeError:  # a surrogate that stands for no byte
        is_possible = False
    if not is_possible:
        raise ConfigError(f"{name} is {text!a}; it must not hold NUL characters or surrogates")
    return text


def refuse_copy(self: object) -> NoReturn:
    """Raise TypeError: the `__reduce__` of objects with a state that cannot be copied or pickled.

    Without it, `copy.copy` would make a second object that shares the native state of the first.
    """
    raise TypeError(
        f"{type(self).__name__} objects cannot be copied or pickled; make another one with the same arguments"
    )


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
