"""Codebooks: the 2**bits - 1 strings that tokens stand for. cpp/fastcompress/equal_info/FORMAT.md defines them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fastcompress import pretokenizer
from fastcompress._core import equal_info as _core
from fastcompress._files import write_atomically
from fastcompress.equal_info.boundaries import uncut_pairs
from fastcompress.equal_info.models import NextByteModel, likeliest_strings
from fastcompress.errors import ConfigError, DataError, UnknownTokenError

MIN_BITS = _core.MIN_BITS
MAX_BITS = _core.MAX_BITS
_REFINEMENTS = 24


class Codebook:
    """2**bits - 1 byte strings, every prefix of each and all 256 single bytes among them.

    A text is encoded by the longest string that it begins with, and so on. Ids are ranks in lexicographic order; the
    id 2**bits - 1 is left over, for the end of a document. Appending bytes to a text changes its last token at most.
    Immutable and safe to share between threads.

    >>> book = Codebook.train(b"to be or not to be, that is the question: " * 20, bits=9)
    >>> ids = book.encode(b"to be or not to be!")
    >>> book.decode(ids)
    b'to be or not to be!'
    """

    def __init__(self, core: _core.Codebook) -> None:
        """Of the native object; use train, from_model, from_strings, from_bytes or load."""
        self._core = core

    @classmethod
    def train(
        cls,
        data: str | bytes | Iterable[str | bytes],
        bits: int = 16,
        pattern: str | None = None,
        *,
        within_words: bool = False,
        refinements: int = _REFINEMENTS,
        num_threads: int | None = None,
    ) -> Codebook:
        """The codebook that needs few tokens for `data`: one text, or documents, which no token crosses.

        bits: 9 to 16.
        pattern: a name of `fastcompress.pretokenizer.PATTERNS`; then no token crosses the border of a pretoken, here
            nor in texts to be encoded. None: tokens may be of any bytes.
        within_words: only strings that are (part of) a word, a number or symbols, with at most a space before it,
            or white space. Unlike a pattern it cuts no text, so that `forbidden_first` stays exact.
        refinements: rounds in which strings are exchanged for better ones.

        The same for every number of threads (None: one a core). Some 15 s of one core for 20 MB and 75 s for 100 MB, of
        which two cores make half; of more than 128 MiB a sample is used. ConfigError: settings out of range.
        """
        documents: list[Any] = [data] if isinstance(data, (str, bytes, bytearray, memoryview)) else list(data)
        return cls(_train(documents, bits, pattern, refinements, within_words, None, num_threads))

    def refine(
        self,
        data: str | bytes | Iterable[str | bytes],
        refinements: int = _REFINEMENTS,
        *,
        within_words: bool = False,
        num_threads: int | None = None,
    ) -> Codebook:
        """A codebook that began as this one and had strings exchanged for ones better for `data`, as `train` does."""
        documents: list[Any] = [data] if isinstance(data, (str, bytes, bytearray, memoryview)) else list(data)
        return Codebook(_train(documents, self.bits, self.pattern, refinements, within_words, self._core, num_threads))

    @classmethod
    def from_model(cls, next_byte_model: NextByteModel, bits: int = 16) -> Codebook:
        """The 2**bits - 1 likeliest strings under a model, the 256 single bytes forced in.

        The model is asked some thousands of contexts at a time, not many more in all than there are strings; see
        `NextByteModel`. What it answers must not depend on which contexts come together. Strings have at most 255
        bytes; of equally likely ones the first in lexicographic order is taken. ConfigError: bits out of range.
        DataError: not weights.
        """
        _check_bits(bits)
        return cls.from_strings(likeliest_strings(next_byte_model, (1 << bits) - 1, _core.MAX_LENGTH), bits)

    @classmethod
    def from_strings(cls, strings: Iterable[bytes], bits: int = 16, pattern: str | None = None) -> Codebook:
        """Of 2**bits - 1 strings in any order. ConfigError: not so many, one twice, a prefix or single byte missing."""
        _check_bits(bits)
        return cls(_core.from_strings(bits, _core_pattern(pattern), list(strings)))

    @classmethod
    def from_bytes(cls, file: bytes) -> Codebook:
        """What `to_bytes` gave. FormatError otherwise."""
        return cls(_core.parse(bytes(file)))

    @staticmethod
    def is_file(blob: bytes) -> bool:
        """Whether bytes begin as those of a codebook do."""
        return blob.startswith(_core.MAGIC)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Codebook:
        """The codebook in a file. DataError: it cannot be read. FormatError: it holds none."""
        try:
            return cls.from_bytes(Path(path).read_bytes())
        except OSError as error:
            raise DataError(
                f"{path}: cannot be read ({error.strerror}); name a file that Codebook.save wrote"
            ) from error

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it to a file, all or nothing. OutputError: cannot be written."""
        write_atomically(path, self.to_bytes())

    def to_bytes(self) -> bytes:
        """The file. The same for equal codebooks."""
        return self._core.to_bytes()

    def __reduce__(self) -> tuple[Any, ...]:
        return Codebook.from_bytes, (self.to_bytes(),)

    def __eq__(self, other: object) -> bool:
        return self.fingerprint == other.fingerprint if isinstance(other, Codebook) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __len__(self) -> int:
        return len(self._core)

    def __repr__(self) -> str:
        cut = "" if self.pattern is None else f", pattern={self.pattern!r}"
        return f"<Codebook of {self.bits} bits{cut}, {self.fingerprint[:8]}>"

    @property
    def bits(self) -> int:
        """Of a token: 9 to 16."""
        return self._core.bits

    @property
    def num_tokens(self) -> int:
        """2**bits - 1; ids are below it."""
        return len(self._core)

    @property
    def pattern(self) -> str | None:
        """What cuts texts before they are encoded."""
        return self._core.pattern or None

    @property
    def fingerprint(self) -> str:
        """64 hexadecimal digits: the SHA-256 of everything that decides ids."""
        return self._core.fingerprint.hex()

    @cached_property
    def strings(self) -> tuple[bytes, ...]:
        """By id, so in lexicographic order."""
        return tuple(self._core.strings())

    @cached_property
    def _last_bytes(self) -> npt.NDArray[np.uint8]:
        return self._core.last_bytes()

    @cached_property
    def lengths(self) -> npt.NDArray[np.uint8]:
        """Bytes of each string, uint8[num_tokens]."""
        lengths = self._core.lengths()
        lengths.flags.writeable = False
        return lengths

    def encode(
        self, data: str | bytes, dtype: npt.DTypeLike = np.uint32, *, num_threads: int | None = 1
    ) -> npt.NDArray[Any]:
        """Ids, dtype[n], uint32 or uint16. O(len(data)); releases the GIL; the same for every number of threads."""
        return self._core.encode(data, _threads(num_threads), _is_narrow(dtype))

    def encode_batch(
        self, texts: Sequence[str | bytes], dtype: npt.DTypeLike = np.uint32, *, num_threads: int | None = None
    ) -> tuple[npt.NDArray[Any], npt.NDArray[np.uint64]]:
        """Ids of all texts one after the other, and offsets uint64[len(texts) + 1]: those of text i are
        ids[offsets[i]:offsets[i + 1]]."""
        return self._core.encode_batch(list(texts), _threads(num_threads), _is_narrow(dtype))

    def decode(self, ids: npt.ArrayLike) -> bytes:
        """The bytes that ids, integers[n], stand for. UnknownTokenError: an id that is none. O(ids + bytes)."""
        array = np.asarray(ids)
        if array.dtype == np.uint16 and array.ndim == 1:
            return self._core.decode_narrow(np.ascontiguousarray(array))
        return self._core.decode(self._checked(ids))

    def byte_lengths(self, ids: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Bytes of each token, int64[n]. UnknownTokenError: an id that is none."""
        lengths: npt.NDArray[np.int64] = self.lengths[self._checked(ids)].astype(np.int64)
        return lengths

    def forbidden_first(self, ids: npt.ArrayLike) -> npt.NDArray[np.bool_]:
        """bool[256], of integers[n] bool[n, 256]: the bytes that no token after this one may begin with.

        Without a pattern this is exact: a sequence of ids is what its bytes are encoded to if and only if no token
        begins with a byte forbidden after the one before. So with a model's probability spread over the tokens that are
        legal, p(ids) = p(bytes).

        With a pattern a border may stand between two tokens, which allows everything. What is True here is forbidden
        whatever the text before and after (see equal_info/FORMAT.md): never a legal token, but not all that are not.
        """
        scalar = np.ndim(ids) == 0
        checked = self._checked(np.atleast_1d(np.asarray(ids)))
        rows = self._core.extensions(checked)
        if self.pattern is not None:
            rows &= uncut_pairs(self.pattern)[self._last_bytes[checked]]
        return rows[0] if scalar else rows

    def forbidden_first_in(self, ids: npt.ArrayLike) -> npt.NDArray[np.bool_]:
        """bool[n, 256]: the bytes that the token after each of a text's tokens may not begin with, its borders known.

        Without a pattern, forbidden_first(ids). With one, rows are False where a border follows the token. Borders may
        depend on bytes still to come: good for checking a text, not for a model's probabilities.
        """
        checked = self._checked(ids)
        rows = self._core.extensions(checked)
        if self.pattern is not None and len(checked):
            token_ends = np.cumsum(self.lengths[checked].astype(np.uint64))
            borders = pretokenizer.split_ends(self._core.decode(checked), self.pattern)
            rows[np.isin(token_ends, borders)] = False
        return rows

    def _checked(self, ids: npt.ArrayLike) -> npt.NDArray[np.uint32]:
        array = np.asarray(ids)
        if array.size == 0:
            return np.zeros(0, np.uint32)
        if array.ndim != 1 or array.dtype.kind not in "iu":
            raise TypeError(f"ids must be one-dimensional integers, not {array.dtype} of shape {array.shape}")
        bad = (array >= self.num_tokens) | (array < 0)
        if bad.any():
            position = int(np.argmax(bad))
            raise UnknownTokenError(
                f"id {array[position]} at position {position} is not one of the codebook's {self.num_tokens}"
            )
        return np.ascontiguousarray(array, np.uint32)


def _train(
    documents: list[Any],
    bits: int,
    pattern: str | None,
    refinements: int,
    within_words: bool,
    start: _core.Codebook | None,
    num_threads: int | None,
) -> _core.Codebook:
    _check_bits(bits)
    if not 0 <= refinements < 1 << 16:
        raise ConfigError(f"refinements is {refinements}; it must be from 0 to 65535")
    return _core.train(documents, bits, _core_pattern(pattern), refinements, within_words, start, _threads(num_threads))


def _core_pattern(pattern: str | None) -> str:
    """As the core takes it: an alias by its proper name, and "" for one that cuts nothing."""
    if pattern is None or pattern == "none":
        return ""
    name = pretokenizer.ALIASES.get(pattern, pattern)
    if name not in pretokenizer.PATTERNS:
        raise ConfigError(
            f"unknown pattern {pattern[:100]!r}; the named patterns are {', '.join(pretokenizer.PATTERNS)}"
        )
    return name


def _check_bits(bits: int) -> None:
    if not MIN_BITS <= bits <= MAX_BITS:
        raise ConfigError(f"bits is {bits}; a codebook has {MIN_BITS} to {MAX_BITS}")


def _threads(num_threads: int | None) -> int:
    if num_threads is not None and not 1 <= num_threads < 1 << 16:
        raise ConfigError(f"num_threads is {num_threads}; it must be at least 1, or None for one a core")
    return num_threads or 0


def _is_narrow(dtype: npt.DTypeLike) -> bool:
    if np.dtype(dtype) not in (np.uint16, np.uint32):
        raise ConfigError(f"dtype is {np.dtype(dtype)}; ids are uint32 or uint16")
    return np.dtype(dtype) == np.uint16
