"""Integer models: the same predictions, and so the same messages, on every machine.

`ContextMixer` predicts bytes from those before them; ``cpp/fastcompress/context_mixer/FORMAT.md`` defines it as a frozen
format.
`AdaptiveFrequencies` counts symbols of any alphabet.

>>> mixer = ContextMixer(log2_table_bytes=16)
>>> message = mixer.encode(b"to be or not to be")
>>> mixer.decode(message, 18)
b'to be or not to be'
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from fastcompress._core import models as _core
from fastcompress._files import write_atomically
from fastcompress.errors import ConfigError, DataError, FormatError, MissingFileError

BytesLike: TypeAlias = bytes | bytearray | memoryview


class ContextMixer:
    """A model of the next byte: contexts of orders 1 to 6, words, tables and repetitions, mixed.

    Adaptive until it is frozen: it learns from what it codes, and the decoder with it. A frozen one predicts every
    document (and every window, if it has windows) from its own bytes alone and never changes.

    Reading functions (`encode`, `decode`, `distribution`) change nothing: an adaptive mixer codes with a copy that
    learns on. They may run in several threads at once, but not beside `update`.
    """

    def __init__(
        self, *, log2_table_bytes: int = 24, log2_match_entries: int | None = 20, window: int | None = None
    ) -> None:
        """A mixer that knows nothing.

        Args:
            log2_table_bytes: memory for statistics by context, 12 to 30; more serves longer texts.
            log2_match_entries: how many positions the models of repetitions and tables remember, 10 to 24 (and 16 times
                as many bytes); None: no such models.
            window: the context is emptied after every so many bytes of a document; None: never.

        Raises:
            ConfigError: a setting is out of range.
        """
        if window is not None and not 1 <= window < 2**32:
            raise ConfigError(f"window is {window}; it must be 1 to {2**32 - 1} bytes, or None")
        for name, value in (("log2_table_bytes", log2_table_bytes), ("log2_match_entries", log2_match_entries or 0)):
            if not 0 <= value < 64:
                raise ConfigError(f"{name} is {value}; it is a power of two's exponent, at most 30")
        self._core = _core.ContextMixer(log2_table_bytes, log2_match_entries or 0, window or 0)

    @classmethod
    def _of(cls, core: _core.ContextMixer) -> ContextMixer:
        mixer = cls.__new__(cls)
        mixer._core = core
        return mixer

    @classmethod
    def train(
        cls,
        source: BytesLike | Iterable[BytesLike],
        *,
        log2_table_bytes: int = 24,
        log2_match_entries: int | None = None,
        window: int | None = None,
    ) -> ContextMixer:
        """An adaptive mixer that has learned from a text, or from documents, each from an empty context. O(bytes).

        For a mixer to `freeze`: without the models of repetitions, which a frozen one does not have, unless they
        are asked for. With the `window` for which it will be used, it learns how windows begin.
        """
        mixer = cls(log2_table_bytes=log2_table_bytes, log2_match_entries=log2_match_entries, window=window)
        documents = [source] if isinstance(source, bytes | bytearray | memoryview) else source
        for document in documents:
            mixer.reset()
            mixer.update(document)
        mixer.reset()
        return mixer

    def update(self, data: BytesLike) -> None:
        """Learns from bytes that go on where the last ones ended. ConfigError if it is frozen. About 1 MB a second."""
        self._core.update(_checked(data))

    def reset(self) -> None:
        """Ends the document: the next `update` begins with an empty context. What was learned stays."""
        self._core.reset()

    def freeze(self) -> ContextMixer:
        """A copy that never changes, without the models of repetitions and tables."""
        return self._of(self._core.frozen())

    @property
    def core(self) -> _core.ContextMixer:
        """The native object, for other parts of this package."""
        return self._core

    @property
    def is_frozen(self) -> bool:
        """Whether it never changes."""
        return self._core.is_frozen

    @property
    def num_bytes(self) -> int:
        """How many bytes it has learned from."""
        return self._core.num_bytes

    @property
    def window(self) -> int | None:
        """After how many bytes of a document the context is emptied."""
        return self._core.params[2] or None

    def distribution(self, context: BytesLike, precision: int = 16) -> npt.NDArray[np.uint32]:
        """The frequencies uint32[256] of the byte that follows a document of which `context` is all so far.

        They are at least 1 and sum to 2**precision, 8 to 24. Models of repetitions and tables have no part in them.
        """
        return self.distributions([context], precision).reshape(256)

    def distributions(
        self, contexts: Sequence[BytesLike], precision: int = 16, *, num_threads: int | None = None
    ) -> npt.NDArray[np.uint32]:
        """`distribution` of each context: uint32[n, 256]."""
        if not 8 <= precision <= 24:
            raise ConfigError(f"the precision is {precision}; it must be 8 to 24 bits")
        return self._core.distributions([_checked(context) for context in contexts], precision, num_threads or 0)

    def encode(self, data: BytesLike) -> bytes:
        """A document as a message of the range coder; it does not say how long the document is. About 1 MB a second.

        The mixer is the same afterwards, so that it can `decode`.
        """
        return self._core.encode(_checked(data))

    def decode(self, blob: BytesLike, num_bytes: int) -> bytes:
        """The document of `num_bytes` bytes whose message by an equal mixer this is.

        Raises:
            FormatError: no mixer wrote the message. (A damaged one may also give other bytes: there is no checksum.)
        """
        if not 0 <= num_bytes < 2**63:
            raise ConfigError(f"num_bytes is {num_bytes}; it must be the length of the document")
        return self._core.decode(_checked(blob), num_bytes)

    def to_bytes(self) -> bytes:
        """The mixer's file: all that was learned, without the context."""
        return self._core.to_bytes()

    @classmethod
    def from_bytes(cls, blob: BytesLike) -> ContextMixer:
        """What `to_bytes` wrote. FormatError if it is anything else."""
        return cls._of(_core.ContextMixer.from_bytes(_checked(blob)))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the mixer's file, all or nothing. OutputError if it cannot be written."""
        write_atomically(path, self.to_bytes())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> ContextMixer:
        """Reads what `save` wrote. MissingFileError, FormatError."""
        try:
            blob = Path(path).read_bytes()
        except FileNotFoundError as error:
            raise MissingFileError(f"{path}: there is no such file") from error
        try:
            return cls.from_bytes(blob)
        except FormatError as error:
            raise FormatError(f"{path}: {error}") from error

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the mixer's file, in hexadecimal. O(table)."""
        return hashlib.sha256(self.to_bytes()).hexdigest()

    def __reduce__(self) -> tuple[object, tuple[bytes]]:
        return ContextMixer.from_bytes, (self.to_bytes(),)

    def __repr__(self) -> str:
        kind = "frozen" if self.is_frozen else "adaptive"
        return f"ContextMixer({kind}, num_bytes={self.num_bytes}, window={self.window})"


class AdaptiveFrequencies:
    """How often each symbol came, lately more than long ago: a model of order 0 for 1 to 2**22 symbols.

    Counts begin at 1; a symbol that comes gets `increment` more; when the sum passes `limit` all are halved.
    O(log V) a symbol.
    """

    def __init__(self, num_symbols: int, *, increment: int = 32, limit: int | None = None) -> None:
        """A model that has seen nothing.

        Args:
            num_symbols: V, of the alphabet 0 to V - 1.
            increment: 1 to 2**16; greater learns faster.
            limit: of the sum of counts, at least 2 V + 2 increment; less forgets faster. None: 2**precision.

        Raises:
            ConfigError: a setting is out of range.
        """
        for name, value in (("num_symbols", num_symbols), ("increment", increment)):
            if not 1 <= value < 2**32:
                raise ConfigError(f"{name} is {value}; it must be at least 1")
        if limit is not None and not 1 <= limit < 2**32:
            raise ConfigError(f"limit is {limit}; it must be at least 1, or None")
        self._core = _core.AdaptiveFrequencies(num_symbols, increment, limit or 0)

    @property
    def num_symbols(self) -> int:
        """V, of the alphabet."""
        return self._core.num_symbols

    @property
    def precision(self) -> int:
        """P: frequencies sum to 2**P. It is max(16, ceil(log2 V) + 8), at most 24."""
        return self._core.precision

    def update(self, symbols: npt.ArrayLike) -> None:
        """Learns from symbols [n]. DataError if one is not of the alphabet."""
        self._core.update(_symbols(symbols))

    def cumulative(self) -> npt.NDArray[np.uint32]:
        """uint32[V + 1], from 0 to 2**precision: symbol s has what lies between the s-th and the next. O(V)."""
        return self._core.cumulative()

    def encode(self, symbols: npt.ArrayLike) -> bytes:
        """Symbols [n] as a message, by a copy that learns from them. DataError if one is not of the alphabet."""
        return self._core.encode(_symbols(symbols))

    def decode(self, blob: BytesLike, num_symbols: int) -> npt.NDArray[np.uint32]:
        """The `num_symbols` symbols whose message by an equal model this is. FormatError if no model wrote it."""
        if not 0 <= num_symbols < 2**60:
            raise ConfigError(f"num_symbols is {num_symbols}; it must be how many there are")
        return self._core.decode(_checked(blob), num_symbols)


def _checked(data: BytesLike) -> BytesLike:
    if not isinstance(data, bytes | bytearray | memoryview):
        raise TypeError(f"bytes are wanted, not {type(data).__name__}")
    return data


def _symbols(symbols: npt.ArrayLike) -> npt.NDArray[np.uint32]:
    array = np.asarray(symbols)
    if array.size == 0:
        return np.empty(0, np.uint32)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise DataError(f"symbols are one row of integers, not {array.dtype}{list(array.shape)}")
    if array.min() < 0 or array.max() >= 2**32:
        raise DataError("a symbol is negative or 2**32 or more")
    return array.astype(np.uint32)
