"""Codebooks, which map ids to strings and text to ids. cpp/fastcompress/equal_info/FORMAT.md defines them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fastcompress import pretokenizer
from fastcompress._arguments import as_file_bytes, as_integer, as_num_threads, as_path, as_texts, shown
from fastcompress._core import equal_info as _core
from fastcompress._deprecated import RenamedAttribute, renamed_argument
from fastcompress._files import write_atomically
from fastcompress.equal_info.boundaries import uncut_pairs
from fastcompress.equal_info.models import NextByteModel, likeliest_strings
from fastcompress.errors import ConfigError, DataError, UnknownTokenError

MIN_BITS = _core.MIN_BITS
MAX_BITS = _core.MAX_BITS
_NUM_ROUNDS = 24


class Codebook:
    """A dictionary of 2**bits - 1 byte strings that encodes text by greedy longest match.

    It contains all 256 single bytes and every prefix of each of its strings, so it can encode any bytes. A token id is
    the rank of its string in lexicographic order; the id 2**bits - 1 stays free to mark the end of a document. Without
    a `pattern`, appending bytes to a text changes at most its last token. Immutable; safe to share between threads.

    >>> book = Codebook.train(b"to be or not to be, that is the question: " * 20, bits=9)
    >>> book.decode(book.encode(b"to be or not to be!"))
    b'to be or not to be!'
    """

    def __init__(self, core: _core.Codebook) -> None:
        """Wrap a native codebook. Use `train`, `from_model`, `from_strings`, `from_bytes` or `load` instead."""
        self._core = core

    @classmethod
    def train(
        cls,
        data: str | bytes | Iterable[str | bytes],
        bits: int = 16,
        pattern: str | None = None,
        *,
        within_words: bool = False,
        num_rounds: int | None = None,
        num_threads: int | None = None,
        refinements: int | None = None,
    ) -> Codebook:
        """Train a codebook that encodes `data` in few tokens.

        Args:
            data: One text, or an iterable of documents; no token crosses from one document into the next.
            bits: Bits per token, 9 to 16.
            pattern: A name from `fastcompress.pretokenizer.PATTERNS`: texts are split into pretokens, here and when
                encoding, and no token crosses a pretoken boundary. None for no splitting.
            within_words: Allow only strings that are all or part of one word, number or run of symbols, with at most
                one space before it, or of white space. Splits no text, so `illegal_next_bytes` stays exact.
            num_rounds: Rounds of exchanging strings for better ones, 0 to 65535; None for 24.
            num_threads: None for one per core. Does not change the result.
            refinements: The old name of `num_rounds`.

        Raises:
            ConfigError: A setting is out of range.
            SurrogateError: A str has a surrogate.

        Takes about 15 s of one core for 20 MB and 75 s for 100 MB, half of that on two. Above 128 MiB a sample is used.
        """
        num_rounds = renamed_argument("refinements", refinements, "num_rounds", num_rounds)
        return cls(_train(_documents(data), bits, pattern, num_rounds, within_words, None, num_threads))

    def refine(
        self,
        data: str | bytes | Iterable[str | bytes],
        num_rounds: int | None = None,
        *,
        within_words: bool = False,
        num_threads: int | None = None,
        refinements: int | None = None,
    ) -> Codebook:
        """Train further on `data`, starting from this codebook, with its `bits` and `pattern`.

        Args:
            data: As for `train`.
            num_rounds: As for `train`.
            within_words: As for `train`.
            num_threads: As for `train`.
            refinements: The old name of `num_rounds`.

        Returns:
            The new codebook; this one stays as it is.

        Raises:
            ConfigError: A setting is out of range.
            SurrogateError: A str has a surrogate.
        """
        num_rounds = renamed_argument("refinements", refinements, "num_rounds", num_rounds)
        return Codebook(
            _train(_documents(data), self.bits, self.pattern, num_rounds, within_words, self._core, num_threads)
        )

    @classmethod
    def from_model(cls, next_byte_model: NextByteModel, bits: int = 16) -> Codebook:
        """Build the codebook of the 256 single bytes and the likeliest longer strings under a model.

        The model is called with some thousands of contexts at a time, in all hardly more than there are strings; its
        answer for a context must not depend on the others in the call (see `NextByteModel`). Strings have at most 255
        bytes; ties go to the lexicographically smaller string. Raises ConfigError if `bits` is out of range, DataError
        if the answers are not valid weights.
        """
        _check_bits(bits)
        return cls.from_strings(likeliest_strings(next_byte_model, (1 << bits) - 1, _core.MAX_LENGTH), bits)

    @classmethod
    def from_strings(cls, strings: Iterable[bytes], bits: int = 16, pattern: str | None = None) -> Codebook:
        """Build the codebook of exactly these strings.

        Args:
            strings: 2**bits - 1 byte strings in any order, with all 256 single bytes and every prefix of each string.
            bits: Bits per token, 9 to 16.
            pattern: As for `train`.

        Raises:
            ConfigError: The number of strings is wrong, one occurs twice, or a prefix or a single byte is missing.
            TypeError: A string is not bytes.
        """
        _check_bits(bits)
        given: object = strings
        if isinstance(given, str) or not isinstance(given, Iterable):
            raise TypeError(f"strings is {shown(strings)}; it must be an iterable of bytes")
        listed = list(strings)
        for position, string in enumerate(listed):
            if not isinstance(string, bytes):
                raise TypeError(f"strings[{position}] is {shown(string)}; it must be bytes")
        return cls(_core.from_strings(bits, _core_pattern(pattern), listed))

    @classmethod
    def from_bytes(cls, file: bytes) -> Codebook:
        """Parse what `to_bytes` returned. Raises FormatError for anything else."""
        return cls(_core.parse(as_file_bytes(file, "file")))

    @staticmethod
    def is_file(blob: bytes) -> bool:
        """Return whether `blob` starts with the magic bytes of a codebook file."""
        return as_file_bytes(blob, "blob").startswith(_core.MAGIC)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Codebook:
        """Read a file written by `save`. Raises DataError if it cannot be read, FormatError if it is not a codebook."""
        path = as_path(path, "path")
        try:
            return cls.from_bytes(Path(path).read_bytes())
        except OSError as error:
            raise DataError(
                f"{path}: cannot be read ({error.strerror}); name a file that Codebook.save wrote"
            ) from error

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the codebook to a file, all or nothing. Raises OutputError if it cannot be written."""
        write_atomically(as_path(path, "path"), self.to_bytes())

    def to_bytes(self) -> bytes:
        """Return the file contents; equal codebooks give equal bytes."""
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
        split = "" if self.pattern is None else f", pattern={self.pattern!r}"
        return f"<Codebook: bits={self.bits}{split}, fingerprint={self.fingerprint[:8]}>"

    @property
    def bits(self) -> int:
        """Bits per token, 9 to 16."""
        return self._core.bits

    @property
    def num_tokens(self) -> int:
        """The number of ids, 2**bits - 1; ids are in [0, num_tokens)."""
        return len(self._core)

    @property
    def pattern(self) -> str | None:
        """The name of the pattern that splits texts before encoding, or None."""
        return self._core.pattern or None

    @property
    def fingerprint(self) -> str:
        """The SHA-256 of everything that determines the ids, as 64 hexadecimal digits."""
        return self._core.fingerprint.hex()

    @cached_property
    def strings(self) -> tuple[bytes, ...]:
        """The string of each id, in id order, which is lexicographic."""
        return tuple(self._core.strings())

    @cached_property
    def _last_bytes(self) -> npt.NDArray[np.uint8]:
        return self._core.last_bytes()

    @cached_property
    def lengths(self) -> npt.NDArray[np.uint8]:
        """The length of each string in bytes, uint8[num_tokens]; read-only."""
        lengths = self._core.lengths()
        lengths.flags.writeable = False
        return lengths

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

        O(len(data)); releases the GIL.
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

    def illegal_next_bytes(self, ids: npt.ArrayLike) -> npt.NDArray[np.bool_]:
        """Return the bytes that no token following each id may start with: bool[256], or bool[n, 256] for integers[n].

        Without a pattern this is exact: a sequence of ids is the encoding of its bytes if and only if no token starts
        with a byte that is illegal after the one before it. So if a model gives probability to legal tokens only,
        p(ids) = p(bytes). With a pattern, a pretoken boundary between two tokens permits every byte, and may depend on
        later text. True then means illegal in any context (equal_info/FORMAT.md): no legal token is excluded, but some
        illegal ones are not either.
        """
        scalar = np.ndim(ids) == 0
        checked = self._checked(np.atleast_1d(np.asarray(ids)))
        rows = self._core.extensions(checked)
        if self.pattern is not None:
            rows &= uncut_pairs(self.pattern)[self._last_bytes[checked]]
        return rows[0] if scalar else rows

    def illegal_next_bytes_in_text(self, ids: npt.ArrayLike) -> npt.NDArray[np.bool_]:
        """Return the same as `illegal_next_bytes`, bool[n, 256], for the tokens of one complete text.

        Its pretoken boundaries are known. Without a pattern the two are equal. With one, a row is all False where a
        boundary follows its token. For checking a text, not for masking a model: boundaries may depend on bytes still
        to come.
        """
        checked = self._checked(ids)
        rows = self._core.extensions(checked)
        if self.pattern is not None and len(checked):
            token_ends = np.cumsum(self.lengths[checked].astype(np.uint64))
            boundaries = pretokenizer.split_ends(self._core.decode(checked), self.pattern)
            rows[np.isin(token_ends, boundaries)] = False
        return rows

    forbidden_first = RenamedAttribute("illegal_next_bytes")
    forbidden_first_in = RenamedAttribute("illegal_next_bytes_in_text")

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
                f"id {array[position]} at position {position} is not one of the codebook's {self.num_tokens}"
            )
        return np.ascontiguousarray(array, np.uint32)


def _documents(data: Any) -> Sequence[Any]:
    return [data] if isinstance(data, str | bytes | bytearray | memoryview) else as_texts(data, "data")


def _train(
    documents: Sequence[Any],
    bits: int,
    pattern: str | None,
    num_rounds: int | None,
    within_words: bool,
    start: _core.Codebook | None,
    num_threads: int | None,
) -> _core.Codebook:
    _check_bits(bits)
    rounds = _NUM_ROUNDS if num_rounds is None else as_integer(num_rounds, "num_rounds", 0, (1 << 16) - 1)
    threads = as_num_threads(num_threads)
    return _core.train(documents, bits, _core_pattern(pattern), rounds, bool(within_words), start, threads)


def _core_pattern(pattern: str | None) -> str:
    """Return a pattern's name as the core takes it: an alias by its proper name, and "" for one that splits nothing."""
    if pattern is None or pattern == "none":
        return ""
    if not isinstance(pattern, str):
        raise TypeError(f"pattern is {shown(pattern)}; it must be the name of a pattern, or None")
    name = pretokenizer.ALIASES.get(pattern, pattern)
    if name not in pretokenizer.PATTERNS:
        raise ConfigError(
            f"unknown pattern {pattern[:100]!r}; the named patterns are {', '.join(pretokenizer.PATTERNS)}"
        )
    return name


def _check_bits(bits: int) -> None:
    as_integer(bits, "bits", MIN_BITS, MAX_BITS)


def _is_uint16(dtype: npt.DTypeLike) -> bool:
    """Return whether ids are wanted as uint16, and not uint32. Raises ConfigError for any other dtype."""
    if np.dtype(dtype) not in (np.uint16, np.uint32):
        raise ConfigError(f"dtype is {np.dtype(dtype)}; it must be uint32 or uint16")
    return np.dtype(dtype) == np.uint16
