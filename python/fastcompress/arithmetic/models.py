"""Models in integers, which give the same predictions, and therefore the same codes, on every machine.

`ContextMixer` predicts each byte from the bytes before it; ``cpp/fastcompress/context_mixer/FORMAT.md`` defines its
predictions and its file. `AdaptiveFrequencies` counts the symbols of any alphabet.

>>> mixer = ContextMixer(log2_table_bytes=16)
>>> code = mixer.encode(b"to be or not to be")
>>> mixer.decode(code, 18)
b'to be or not to be'
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from fastcompress._arguments import as_integer, as_num_threads, as_path, as_texts, refuse_copy, shown
from fastcompress._core import arithmetic as _arithmetic
from fastcompress._core import context_mixer as _core
from fastcompress._deprecated import RenamedAttribute, renamed_argument
from fastcompress._files import write_atomically
from fastcompress.errors import DataError, FormatError, MissingFileError

BytesLike: TypeAlias = bytes | bytearray | memoryview


class ContextMixer:
    """A model of the next byte that mixes predictions from contexts of orders 1 to 6, words, tables and repetitions.

    A mixer is adaptive until it is frozen: it learns from what it codes, as the decoder does. A frozen mixer never
    changes, and predicts each document from the bytes of that document alone.

    `encode`, `decode` and `distribution` do not change the mixer: an adaptive one codes with a copy, which goes on
    learning. They may run in several threads at once, but raise BusyError while `update` or `reset` runs. A copy or a
    pickle has what was learned, but starts with an empty context.

    >>> mixer = ContextMixer.train([b"to be or not to be"] * 20, log2_table_bytes=16).freeze()
    >>> len(mixer.encode(b"not to be")), mixer.decode(mixer.encode(b"not to be"), 9)
    (2, b'not to be')
    """

    def __init__(
        self,
        *,
        log2_table_bytes: int = 24,
        log2_match_entries: int | None = 20,
        reset_interval: int | None = None,
        window: int | None = None,
    ) -> None:
        """Make an adaptive mixer that has learned nothing yet.

        Args:
            log2_table_bytes: The memory for statistics by context is 2**log2_table_bytes bytes; 12 to 30. Longer texts
                need more.
            log2_match_entries: The models of repetitions and tables remember 2**log2_match_entries positions, in 16
                times as many bytes; 10 to 24. None for a mixer without these models.
            reset_interval: The context is emptied whenever this many bytes of a document have passed; None for never.
            window: The old name of `reset_interval`.

        Raises:
            ConfigError: A setting is out of range.
        """
        reset_interval = renamed_argument("window", window, "reset_interval", reset_interval)
        if reset_interval is not None:
            reset_interval = as_integer(reset_interval, "reset_interval", 1, 2**32 - 1, or_none="no reset")
        if log2_match_entries is not None:
            log2_match_entries = as_integer(log2_match_entries, "log2_match_entries", 10, 24, or_none="no match models")
        log2_table_bytes = as_integer(log2_table_bytes, "log2_table_bytes", 12, 30)
        self._core = _core.ContextMixer(log2_table_bytes, log2_match_entries or 0, reset_interval or 0)

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
        reset_interval: int | None = None,
        window: int | None = None,
    ) -> ContextMixer:
        """Return an adaptive mixer that has learned from documents, each starting with an empty context.

        Args:
            source: One text, or an iterable of documents.
            log2_table_bytes: As for the constructor.
            log2_match_entries: As for the constructor, but None by default, since a mixer is trained to be frozen, and
                a frozen mixer does not have these models.
            reset_interval: As for the constructor. For use with windows (`codec.WindowsCodec`), give the typical number
                of bytes in a window, so that the mixer learns how windows begin.
            window: The old name of `reset_interval`.

        Raises:
            ConfigError: A setting is out of range.

        Takes about 1 s per MB.
        """
        reset_interval = renamed_argument("window", window, "reset_interval", reset_interval)
        mixer = cls(
            log2_table_bytes=log2_table_bytes, log2_match_entries=log2_match_entries, reset_interval=reset_interval
        )
        if isinstance(source, str) or not isinstance(source, Iterable):
            raise TypeError(f"source is {shown(source)}; it must be bytes, or an iterable of them")
        documents = [source] if isinstance(source, bytes | bytearray | memoryview) else source
        for document in documents:
            mixer.reset()
            mixer.update(document)
        mixer.reset()
        return mixer

    def update(self, data: BytesLike) -> None:
        """Learn from the next bytes of the current document. About 1 MB per second.

        Raises ConfigError if the mixer is frozen.
        """
        self._core.update(_checked(data))

    def reset(self) -> None:
        """End the current document: the next `update` starts with an empty context. What was learned is kept."""
        self._core.reset()

    def freeze(self) -> ContextMixer:
        """Return a frozen copy, which has no models of repetitions and tables."""
        return self._of(self._core.frozen())

    @property
    def core(self) -> _core.ContextMixer:
        """The native object, for other modules of this package."""
        return self._core

    @property
    def is_frozen(self) -> bool:
        """True if the mixer no longer learns."""
        return self._core.is_frozen

    @property
    def num_bytes(self) -> int:
        """The number of bytes that the mixer has learned from."""
        return self._core.num_bytes

    @property
    def reset_interval(self) -> int | None:
        """The number of bytes of a document after which the context is emptied each time, or None for never."""
        return self._core.params[2] or None

    window = RenamedAttribute("reset_interval")

    def distribution(self, context: BytesLike, precision: int = 16) -> npt.NDArray[np.uint32]:
        """Return the frequencies of the byte that follows a context.

        The models of repetitions and tables are not used.

        Args:
            context: The whole document so far.
            precision: The frequencies sum to 2**precision; 8 to 24.

        Returns:
            uint32[256], each at least 1.

        Raises:
            ConfigError: `precision` is out of range.
        """
        return self.distributions([context], precision).reshape(256)

    def distributions(
        self, contexts: Sequence[BytesLike], precision: int = 16, *, num_threads: int | None = None
    ) -> npt.NDArray[np.uint32]:
        """Return the `distribution` of each context, uint32[n, 256].

        Args:
            contexts: Any iterable of contexts, read once.
            precision: As for `distribution`.
            num_threads: None for one per core. Does not change the result.

        Raises:
            ConfigError: An argument is out of range.
        """
        precision = as_integer(precision, "precision", 8, 24)
        checked = [_checked(context) for context in as_texts(contexts, "contexts")]
        return self._core.distributions(checked, precision, as_num_threads(num_threads))

    def encode(self, data: BytesLike) -> bytes:
        """Return the code of a document. About 1 MB per second.

        The code does not contain the document's length, which `decode` needs. The mixer does not change.
        """
        return self._core.encode(_checked(data))

    def decode(self, blob: BytesLike, num_bytes: int) -> bytes:
        """Decode what `encode` of an equal mixer returned.

        Args:
            blob: The code.
            num_bytes: The length of the document.

        Raises:
            FormatError: The code is truncated or damaged, or bytes follow it. There is no checksum: a damaged code may
                also decode to other bytes.
            ConfigError: `num_bytes` is out of range.
        """
        return self._core.decode(_checked(blob), as_integer(num_bytes, "num_bytes", 0, 2**63 - 1))

    def to_bytes(self) -> bytes:
        """Return the contents of the mixer's file: the settings and what was learned, without the current context."""
        return self._core.to_bytes()

    @classmethod
    def from_bytes(cls, blob: BytesLike) -> ContextMixer:
        """Parse what `to_bytes` returned. Raises FormatError for anything else."""
        return cls._of(_core.ContextMixer.from_bytes(_checked(blob)))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the mixer's file, all or nothing. Raises OutputError if it cannot be written."""
        write_atomically(as_path(path, "path"), self.to_bytes())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> ContextMixer:
        """Read a file written by `save`.

        Raises MissingFileError if it does not exist, DataError if it cannot be read, FormatError if it is not a mixer's
        file.
        """
        path = as_path(path, "path")
        try:
            blob = Path(path).read_bytes()
        except FileNotFoundError as error:
            raise MissingFileError(f"{path}: no such file; name one that ContextMixer.save wrote") from error
        except OSError as error:
            raise DataError(
                f"{path}: cannot be read ({error.strerror}); name a file that ContextMixer.save wrote"
            ) from error
        try:
            return cls.from_bytes(blob)
        except FormatError as error:
            raise FormatError(f"{path}: {error}") from error

    @property
    def fingerprint(self) -> str:
        """The SHA-256 of the mixer's file, as 64 hexadecimal digits. Takes O(2**log2_table_bytes)."""
        return hashlib.sha256(self.to_bytes()).hexdigest()

    def __reduce__(self) -> tuple[object, tuple[bytes]]:
        return ContextMixer.from_bytes, (self.to_bytes(),)

    def __repr__(self) -> str:
        kind = "frozen" if self.is_frozen else "adaptive"
        return f"ContextMixer({kind}, num_bytes={self.num_bytes}, reset_interval={self.reset_interval})"


class AdaptiveFrequencies:
    """An adaptive model of order 0: the counts of 1 to 2**22 symbols, in which recent symbols weigh more.

    All counts start at 1. Each symbol adds `increment` to its count; when the sum of the counts exceeds `limit`, all
    are halved. O(log V) per symbol. `encode` and `decode` do not change the model. One thread at a time: a call while
    `update` runs raises BusyError.

    >>> model = AdaptiveFrequencies(3)
    >>> code = model.encode([0, 0, 1, 0, 2, 0])
    >>> model.decode(code, 6).tolist()
    [0, 0, 1, 0, 2, 0]
    """

    def __init__(self, num_symbols: int, *, increment: int = 32, limit: int | None = None) -> None:
        """Make a model in which all symbols have the same frequency.

        Args:
            num_symbols: The size of the alphabet, V; symbols are 0 to V - 1.
            increment: 1 to 2**16; a larger one learns faster.
            limit: The limit of the sum of counts, at least 2 * V + 2 * increment; a smaller one forgets faster. None
                for 2**precision.

        Raises:
            ConfigError: A setting is out of range.
        """
        num_symbols = as_integer(num_symbols, "num_symbols", 1, 2**22)
        increment = as_integer(increment, "increment", 1, 2**16)
        if limit is not None:
            limit = as_integer(limit, "limit", 1, 2**32 - 1, or_none="2**precision")
        self._core = _arithmetic.AdaptiveFrequencies(num_symbols, increment, limit or 0)

    @property
    def num_symbols(self) -> int:
        """The size of the alphabet, V."""
        return self._core.num_symbols

    @property
    def precision(self) -> int:
        """The base-2 logarithm of the sum of the frequencies: max(16, ceil(log2(V)) + 8), at most 24."""
        return self._core.precision

    def update(self, symbols: npt.ArrayLike) -> None:
        """Learn from symbols, integers[n]. Raises DataError for one outside the alphabet."""
        self._core.update(_symbols(symbols))

    def cumulative(self) -> npt.NDArray[np.uint32]:
        """Return the current cumulative frequencies, uint32[V + 1], from 0 to 2**precision. O(V)."""
        return self._core.cumulative()

    def encode(self, symbols: npt.ArrayLike) -> bytes:
        """Return the code of symbols, integers[n], made by a copy of the model that learns from them.

        Raises DataError for a symbol outside the alphabet.
        """
        return self._core.encode(_symbols(symbols))

    def decode(self, blob: BytesLike, num_symbols: int) -> npt.NDArray[np.uint32]:
        """Decode what `encode` of an equal model returned.

        Args:
            blob: The code.
            num_symbols: The number of symbols, n.

        Returns:
            The symbols, uint32[n].

        Raises:
            FormatError: The code is truncated or damaged, or bytes follow it.
            ConfigError: `num_symbols` is out of range.
        """
        return self._core.decode(_checked(blob), as_integer(num_symbols, "num_symbols", 0, 2**60 - 1))

    __reduce__ = refuse_copy

    def __repr__(self) -> str:
        return f"AdaptiveFrequencies(num_symbols={self.num_symbols}, precision={self.precision})"


def _checked(data: BytesLike) -> BytesLike:
    if not isinstance(data, bytes | bytearray | memoryview):
        raise TypeError(f"data is of type {type(data).__name__}; it must be bytes, bytearray or memoryview")
    return data


def _symbols(symbols: npt.ArrayLike) -> npt.NDArray[Any]:
    array = np.asarray(symbols)
    if array.size == 0:
        return np.empty(0, np.uint32)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise DataError(f"symbols are {array.dtype} of shape {array.shape}; they must be one-dimensional integers")
    return array
