"""Checks of arguments, and conversion to the types that the core takes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NoReturn, SupportsIndex, TypeAlias

import numpy as np
import numpy.typing as npt

from fastcompress._arguments import as_integer, as_num_threads, as_number, shown
from fastcompress.errors import ConfigError, TokenRangeError
from fastcompress.formats.rank_file import MAX_IDS

Text: TypeAlias = "str | bytes | bytearray | memoryview"
Tokens: TypeAlias = "Sequence[SupportsIndex] | npt.ArrayLike"

TEXT_TYPES = (str, bytes, bytearray, memoryview)


def refuse_text(text: object, name: str = "text") -> NoReturn:
    """Raise the TypeError for an argument that is not a text."""
    remedy = "; for several texts call the method of that name for a batch" if isinstance(text, list | tuple) else ""
    raise TypeError(f"{name} is of type {type(text).__name__}; expected str or bytes{remedy}")


def as_text_list(texts: Iterable[Text], name: str, one_text: str) -> Sequence[Text]:
    """Return the texts of any iterable as a list or a tuple, reading it once; the core checks the items.

    Args:
        texts: The iterable.
        name: Its name, for errors.
        one_text: The name of the method for one text, for errors.

    Raises:
        TypeError: It is not iterable, or a single text, whose items would be characters.
    """
    if isinstance(texts, list | tuple):
        return texts
    if isinstance(texts, TEXT_TYPES):
        raise TypeError(f"{name} is one text ({type(texts).__name__}); give a list of texts, or call {one_text}")
    try:
        items = iter(texts)
    except TypeError:
        raise TypeError(f"{name} is {shown(texts)}; it must be an iterable of str or bytes") from None
    return list(items)


def check_text_types(texts: Sequence[Text], name: str) -> None:
    """Raise a TypeError that names the first item that is not a text."""
    for position, text in enumerate(texts):
        if not isinstance(text, TEXT_TYPES):
            raise TypeError(f"{name}[{position}] is of type {type(text).__name__}; expected str or bytes")


def as_thread_limit(num_threads: SupportsIndex | None) -> int | None:
    """Return a number of threads as the BPE core takes it, None for its own choice. Raises as `as_integer` does."""
    return None if num_threads is None else as_num_threads(num_threads)


def as_pattern(pattern: str) -> str:
    """Return a pattern that can be stored. Raises TypeError for another type, ConfigError for surrogates in it."""
    if not isinstance(pattern, str):
        raise TypeError(f"pattern is {shown(pattern)}; it must be a str: the name of a pattern, or a regex")
    refuse_surrogates(pattern, "pattern")
    return pattern


def refuse_surrogates(text: str, name: str) -> None:
    """Raise ConfigError if a text that is to be stored has a surrogate (see `errors.SurrogateError`)."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ConfigError(f"{name} is {text!a}; it must not hold surrogates (position {error.start})") from None


def as_special_texts(special_tokens: Iterable[str], name: str = "special_tokens") -> list[str]:
    """Return the texts of special tokens to be stored, reading an iterable once.

    Raises:
        TypeError: It is a str, not iterable, or holds something else than str.
        ConfigError: A text is empty, given twice or holds surrogates.
    """
    texts = list(_strings(special_tokens, name))
    for text in texts:
        refuse_surrogates(text, f"a text of {name}")
    if len(set(texts)) != len(texts) or "" in texts:
        raise ConfigError(f"{name} is {texts!a:.60}; its texts must be distinct and not empty")
    return texts


def as_special_ids(special_tokens: Mapping[str, SupportsIndex]) -> dict[str, int]:
    """Return special tokens with their ids as ints.

    Raises:
        TypeError: It is not a mapping of str to integers.
        ConfigError: A text is empty or holds surrogates, or an id is out of range.
    """
    if not isinstance(special_tokens, Mapping):
        raise TypeError(f"special_tokens is of type {type(special_tokens).__name__}; it must map each text to its id")
    texts = as_special_texts(special_tokens)
    return {
        text: as_integer(special_tokens[text], f"the id of special token {text!r}", 0, MAX_IDS - 1) for text in texts
    }


def as_special_set(texts: Iterable[str], name: str) -> frozenset[str] | None:
    """Return the special tokens that a call allows or refuses, reading an iterable once; None for "all".

    Raises TypeError if it is another str, not iterable, or holds something else than str.
    """
    if isinstance(texts, str) and texts == "all":
        return None
    return frozenset(_strings(texts, name, "'all' or "))


def _strings(texts: Iterable[str], name: str, or_else: str = "") -> tuple[str, ...]:
    wanted = f"{name} must be {or_else}a collection of str"
    if isinstance(texts, TEXT_TYPES):
        raise TypeError(f"{wanted}, not one text: {shown(texts)}; give [{texts!a}]")
    try:
        iterator = iter(texts)
    except TypeError:
        raise TypeError(f"{wanted}, not {shown(texts)}") from None
    items = tuple(iterator)
    for position, text in enumerate(items):
        if not isinstance(text, str):
            raise TypeError(f"{wanted}; item {position} is {shown(text)}")
    return items


def check_dtype(dtype: npt.DTypeLike, vocab_size: int) -> None:
    """Raise ConfigError for a dtype that cannot hold every id."""
    resolved = np.dtype(dtype)
    if resolved.kind not in "iu" or np.iinfo(resolved).max < vocab_size - 1:
        raise ConfigError(f"dtype {resolved} cannot hold ids up to {vocab_size - 1}; use uint32")


def as_dropout(dropout: float) -> float:
    """Return a probability as a float. Raises TypeError if it is not a number, ConfigError if it is out of range."""
    number = as_number(dropout, "dropout", "a number from 0 to 1")
    if not 0 <= number <= 1:
        raise ConfigError(f"dropout is {dropout}; it must be 0 to 1")
    return number


def as_id_array(tokens: Tokens, name: str = "tokens") -> npt.NDArray[np.uint32] | Sequence[SupportsIndex]:
    """Return ids as the core reads them: lists and tuples as they are, anything else NumPy takes as uint32[n].

    The core checks the items of lists.

    Raises:
        TypeError: It is not a one-dimensional sequence of integers.
        TokenRangeError: An id is negative or does not fit 32 bits. A DataError.
    """
    if isinstance(tokens, (list, tuple)):
        return tokens
    try:
        array = np.asarray(tokens)
    except ValueError:  # sequences of unequal lengths
        raise TypeError(f"{name} is of type {type(tokens).__name__} with items that are not integers") from None
    if array.ndim != 1:
        what = shown(tokens) if array.ndim == 0 else f"an array of shape {array.shape}"
        raise TypeError(f"{name} is {what}; expected a one-dimensional sequence of token ids")
    if array.size == 0:
        return np.empty(0, np.uint32)
    if array.dtype.kind not in "iu":
        if array.dtype == object:  # integers past 64 bits come as objects
            ids: list[int] = array.tolist()
            return ids
        raise TypeError(f"{name} is an array of {array.dtype}; expected integers")
    if array.dtype != np.uint32:
        wrong = np.flatnonzero((array < 0) | (array > 0xFFFFFFFF))
        if wrong.size:
            raise TokenRangeError(f"token id {array[wrong[0]]} at position {wrong[0]} is out of range")
    return np.ascontiguousarray(array, np.uint32)


def as_id_arrays(batch: Iterable[Tokens]) -> list[npt.NDArray[np.uint32] | Sequence[SupportsIndex]]:
    """Return each of several sequences of ids as `as_id_array` does, reading an iterable once."""
    if isinstance(batch, TEXT_TYPES) or not isinstance(batch, Iterable):
        raise TypeError(f"batch is {shown(batch)}; it must be an iterable of sequences of token ids")
    return [as_id_array(tokens, f"batch[{number}]") for number, tokens in enumerate(batch)]
