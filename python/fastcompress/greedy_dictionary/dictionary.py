"""Dictionaries, which map ids to strings and text to ids. cpp/fastcompress/greedy_dictionary/FORMAT.md defines them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fastcompress._arguments import as_file_bytes, as_integer, as_num_threads, as_path, as_texts, shown
from fastcompress._core import greedy_dictionary as _core
from fastcompress._files import write_atomically
from fastcompress.errors import ConfigError, DataError, UnknownTokenError
from fastcompress.greedy_dictionary.states import CanonicalStates

MIN_STRINGS = _core.MIN_STRINGS
MAX_STRINGS = _core.MAX_STRINGS


class GreedyDictionary:
    """A set of byte strings that encodes text by greedy longest match.

    It holds all 256 single bytes, so it can encode any bytes; other strings may be any. A token id is the rank of its
    string in lexicographic order. Immutable; safe to share between threads.

    >>> words = GreedyDictionary.train(b"to be or not to be, that is the question: " * 20, size=270)
    >>> words.decode(words.encode(b"to be or not to be!"))
    b'to be or not to be!'
    """

    def __init__(self, core: _core.Dictionary) -> None:
        """Wrap a native dictionary. Use `train`, `from_strings`, `from_bytes` or `load` instead."""
        self._core = core

    @classmethod
    def train(
        cls,
        data: str | bytes | Iterable[str | bytes],
        size: int = 8192,
        *,
        start: Iterable[bytes] = (),
        within_words: bool = True,
        num_rounds: int = 12,
        num_threads: int | None = None,
    ) -> GreedyDictionary:
        """Train a dictionary that encodes `data` in few tokens.

        Args:
            data: One text, or an iterable of documents; no token crosses from one document into the next.
            size: The number of strings, 256 to 65536.
            start: Strings to start from, at most `size` with the single bytes, such as those of a BPE vocabulary.
                Without any, the strings grow from the single bytes.
            within_words: Allow only strings that are all or part of one word, number or run of symbols, with at most
                one space before it, or of white space. Splits no text, so `CanonicalStates` stays exact.
            num_rounds: Rounds of exchanging strings for better ones, 0 to 65535.
            num_threads: None for one per core. Does not change the result.

        Raises:
            ConfigError: A setting is out of range, or a string of `start` does not keep to words.
            DataError: The text is too small for so many strings.
            SurrogateError: A str has a surrogate.

        Takes about 10 s of one core for 14 MB. Above 128 MiB a sample is used.
        """
        documents = [data] if isinstance(data, str | bytes | bytearray | memoryview) else as_texts(data, "data")
        size = as_integer(size, "size", MIN_STRINGS, MAX_STRINGS)
        rounds = as_integer(num_rounds, "num_rounds", 0, (1 << 16) - 1)
        threads = as_num_threads(num_threads)
        return cls(_core.train(documents, size, rounds, bool(within_words), _as_strings(start, "start"), threads))

    @classmethod
    def from_strings(cls, strings: Iterable[bytes]) -> GreedyDictionary:
        """Build the dictionary of exactly these strings.

        Args:
            strings: 256 to 65536 byte strings of 1 to 255 bytes, in any order, with all 256 single bytes.

        Raises:
            ConfigError: The number of strings or a length is out of range, one occurs twice, a single byte is missing,
                or the strings have more than 262,144 distinct prefixes.
            TypeError: A string is not bytes.
        """
        return cls(_core.from_strings(_as_strings(strings, "strings")))

    @classmethod
    def from_bytes(cls, file: bytes) -> GreedyDictionary:
        """Parse what `to_bytes` returned. Raises FormatError for anything else."""
        return cls(_core.parse(as_file_bytes(file, "file")))

    @staticmethod
    def is_file(blob: bytes) -> bool:
        """Return whether `blob` starts with the magic bytes of a dictionary file."""
        return as_file_bytes(blob, "blob").startswith(_core.MAGIC)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> GreedyDictionary:
        """Read a file written by `save`. Raises DataError if it cannot be read, FormatError if it is damaged."""
        path = as_path(path, "path")
        try:
            return cls.from_bytes(Path(path).read_bytes())
        except OSError as error:
            raise DataError(
                f"{path}: cannot be read ({error.strerror}); name a file that GreedyDictionary.save wrote"
            ) from error

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the dictionary to a file, all or nothing. Raises OutputError if it cannot be written."""
        write_atomically(as_path(path, "path"), self.to_bytes())

    def to_bytes(self) -> bytes:
        """Return the file contents; equal dictionaries give equal bytes."""
        return self._core.to_bytes()

    def __reduce__(self) -> tuple[Any, ...]:
        return GreedyDictionary.from_bytes, (self.to_bytes(),)

    def __eq__(self, other: object) -> bool:
        return self.fingerprint == other.fingerprint if isinstance(other, GreedyDictionary) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __len__(self) -> int:
        return len(self._core)

    def __repr__(self) -> str:
        return f"<GreedyDictionary: num_tokens={self.num_tokens}, fingerprint={self.fingerprint[:8]}>"

    @property
    def num_tokens(self) -> int:
        """The number of strings; ids are in [0, num_tokens)."""
        return len(self._core)

    @property
    def fingerprint(self) -> str:
        """The SHA-256 of everything that determines the ids, as 64 hexadecimal digits."""
        return self._core.fingerprint.hex()

    @cached_property
    def strings(self) -> tuple[bytes, ...]:
        """The string of each id, in id order, which is lexicographic."""
        return tuple(self._core.strings())

    @cached_property
    def lengths(self) -> npt.NDArray[np.uint8]:
        """The length of each string in bytes, uint8[num_tokens]; read-only."""
        lengths = self._core.lengths()
        lengths.flags.writeable = False
        return lengths

    @cached_property
    def states(self) -> CanonicalStates:
        """The states of the encoder, which say what tokens may come next. O(size of the dictionary) at first use."""
        return CanonicalStates(self)

    def encode(
        self, data: str | bytes, dtype: npt.DTypeLike = np.uint32, *, num_threads: int | None = 1
    ) -> npt.NDArray[Any]:
        """Encode a text to ids.

        Args:
            data: The text; a str is encoded as UTF-8.
            dtype: uint32 or uint16.
            num_threads: None for one per core. Does not change the result.

        Returns:
            The ids, dtype[n].

        Raises:
            SurrogateError: A str has a surrogate.
            ConfigError: An argument is out of range.

        Near O(len(data)), and at worst that times the longest string; releases the GIL.
        """
        return self._core.encode(data, as_num_threads(num_threads), _is_uint16(dtype))

    def encode_batch(
        self, texts: Iterable[str | bytes], dtype: npt.DTypeLike = np.uint32, *, num_threads: int | None = None
    ) -> tuple[npt.NDArray[Any], npt.NDArray[np.uint64]]:
        """Encode several texts.

        Args:
            texts: Any iterable of texts, each as for `encode`; read once.
            dtype: uint32 or uint16.
            num_threads: None for one per core. Does not change the result.

        Returns:
            (ids, offsets uint64[len(texts) + 1]), where the ids of text i are ids[offsets[i]:offsets[i + 1]].

        Raises:
            SurrogateError: A str has a surrogate.
            ConfigError: An argument is out of range.
        """
        return self._core.encode_batch(as_texts(texts, "texts"), as_num_threads(num_threads), _is_uint16(dtype))

    def decode(self, ids: npt.ArrayLike) -> bytes:
        """Decode ids, integers[n], to bytes. O(ids + bytes).

        Raises UnknownTokenError for an id outside [0, num_tokens).
        """
        array = np.asarray(ids)
        if array.dtype == np.uint16 and array.ndim == 1:
            return self._core.decode_uint16(np.ascontiguousarray(array))
        if array.dtype == np.uint32 and array.ndim == 1:  # which the core checks itself
            return self._core.decode(np.ascontiguousarray(array))
        return self._core.decode(self._checked(ids))

    def byte_lengths(self, ids: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Return the length of each token in bytes, int64[n]. Raises UnknownTokenError as `decode` does."""
        lengths: npt.NDArray[np.int64] = self.lengths[self._checked(ids)].astype(np.int64)
        return lengths

    def _checked(self, ids: npt.ArrayLike) -> npt.NDArray[np.uint32]:
        array = np.asarray(ids)
        if array.size == 0:
            return np.zeros(0, np.uint32)
        if array.ndim != 1 or array.dtype.kind not in "iu":
            raise TypeError(f"ids are {array.dtype} of shape {array.shape}; they must be one-dimensional integers")
        array = array.copy()  # so that what is checked is what is used, whatever another thread does to it
        bad = (array >= self.num_tokens) | (array < 0)
        if bad.any():
            position = int(np.argmax(bad))
            raise UnknownTokenError(
                f"id {array[position]} at position {position} is not one of the dictionary's {self.num_tokens}"
            )
        return np.ascontiguousarray(array, np.uint32)


def _as_strings(strings: Iterable[bytes], name: str) -> Sequence[bytes]:
    given: object = strings
    if isinstance(given, str | bytes | bytearray | memoryview) or not isinstance(given, Iterable):
        raise TypeError(f"{name} is {shown(strings)}; it must be an iterable of bytes")
    listed = list(strings)
    for position, string in enumerate(listed):
        if not isinstance(string, bytes):
            raise TypeError(f"{name}[{position}] is {shown(string)}; it must be bytes")
    return listed


def _is_uint16(dtype: npt.DTypeLike) -> bool:
    """Return whether ids are wanted as uint16, and not uint32. Raises ConfigError for any other dtype."""
    if np.dtype(dtype) not in (np.uint16, np.uint32):
        raise ConfigError(f"dtype is {np.dtype(dtype)}; it must be uint32 or uint16")
    return np.dtype(dtype) == np.uint16
