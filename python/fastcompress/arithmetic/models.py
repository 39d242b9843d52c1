"""Integer models: the same predictions, and so the same codes, on every machine.

`ContextMixer` predicts bytes from those before them; ``cpp/fastcompress/context_mixer/FORMAT.md`` defines its frozen
format. `AdaptiveFrequencies` counts symbols of any alphabet.

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

from fastcompress._arguments import as_integer, as_num_threads, as_texts
from fastcompress._core import arithmetic as _arithmetic
from fastcompress._core import context_mixer as _core
from fastcompress._deprecated import RenamedAttribute, renamed_argument
from fastcompress._files import write_atomically
from fastcompress.errors import DataError, FormatError, MissingFileError

BytesLike: TypeAlias = bytes | bytearray | memoryview


class ContextMixer:
    """A model of the next byte: contexts of orders 1 to 6, words, tables and repetitions, mixed.

    Adaptive until it is frozen: it learns from what it codes, and the decoder with it. A frozen one predicts every
    document (and every window, if it has windows) from its own bytes alone and never changes.

    Reading functions (`encode`, `decode`, `distribution`) change nothing: an adaptive mixer codes with a copy that
    goes on learning. They may run in several threads at once; beside `update` or `reset` they raise BusyError.
    """

    def __init__(
        self,
        *,
        log2_table_bytes: int = 24,
        log2_match_entries: int | None = 20,
        reset_interval: int | None = None,
        window: int | None = None,
    ) -> None:
        """A mixer that knows nothing.

        Args:
            log2_table_bytes: memory for statistics by context, 12 to 30; more serves longer texts.
            log2_match_entries: how many positions the models of repetitions and tables remember, 10 to 24 (and 16 times
                as many bytes); None: no such models.
            reset_interval: The number of bytes of a document after which the context is emptied, again and again; None
                for never. Its old name is `window`.

        Raises:
            ConfigError: a setting is out of range.
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
        """Return an adaptive mixer that has learned from a text, or from documents, each from an empty context.

        Meant for a mixer to `freeze`, hence without the models of repetitions, which a frozen mixer does not have,
        unless they are asked for. O(bytes).

        Args:
            source: One text, or an iterable of documents.
            log2_table_bytes: As for the constructor.
            log2_match_entries: As for the constructor.
            reset_interval: As for the constructor; give the number of bytes of the windows that it will be used for,
                and it learns how windows begin. Its old name is `window`.

        Raises:
            ConfigError: A setting is out of range.
        """
        reset_interval = renamed_argument("window", window, "reset_interval", reset_interval)
        mixer = cls(
            log2_table_bytes=log2_table_bytes, log2_match_entries=log2_match_entries, reset_interval=reset_interval
        )
        documents = [source] if isinstance(source, bytes | bytearray | memoryview) else source
        for document in documents:
            mixer.reset()
            mixer.update(document)
        mixer.reset()
        return mixer

    def update(self, data: BytesLike) -> None:
        """Learn from bytes that follow the last ones. Raises ConfigError if it is frozen. About 1 MB per second."""
        self._core.update(_checked(data))

    def reset(self) -> None:
        """End the document: the next `update` begins with an empty context. What was learned stays."""
        self._core.reset()

    def freeze(self) -> ContextMixer:
        """Return a copy that never changes, without the models of repetitions and tables."""
        return self._of(self._core.frozen())

    @property
    def core(self) -> _core.ContextMixer:
        """The native object, for other parts of this package."""
        return self._core

    @property
    def is_frozen(self) -> bool:
        """True if it never changes."""
        return self._core.is_frozen

    @property
    def num_bytes(self) -> int:
        """The number of bytes it has learned from."""
        return self._core.num_bytes

    @property
    def reset_interval(self) -> int | None:
        """The number of bytes of a document after which the context is emptied, or None for never."""
        return self._core.params[2] or None

    window = RenamedAttribute("reset_interval")

    def distribution(self, context: BytesLike, precision: int = 16) -> npt.NDArray[np.uint32]:
        """Return the frequencies, uint32[256], of the byte that follows `context`, the whole document so far.

        They are at least 1 and sum to 2**precision, 8 to 24. Models of repetitions and tables have no part in them.
        """
        return self.distributions([context], precision).reshape(256)

    def distributions(
        self, contexts: Sequence[BytesLike], precision: int = 16, *, num_threads: int | None = None
    ) -> npt.NDArray[np.uint32]:
        """Return the `distribution` of each context: uint32[n, 256]."""
        precision = as_integer(precision, "precision", 8, 24)
        checked = [_checked(context) for context in as_texts(contexts, "contexts")]
        return self._core.distributions(checked, precision, as_num_threads(num_threads))

    def encode(self, data: BytesLike) -> bytes:
        """Return the code of a document, which does not say how long the document is. About 1 MB per second.

        The mixer does not change, so that it can `decode`.
        """
        return self._core.encode(_checked(data))

    def decode(self, blob: BytesLike, num_bytes: int) -> bytes:
        """Return the document of `num_bytes` bytes that an equal mixer encoded.

        Raises:
            FormatError: The code is cut off or damaged, or bytes follow it. (A damaged code may also give other bytes:
                there is no checksum.)
        """
        return self._core.decode(_checked(blob), as_integer(num_bytes, "num_bytes", 0, 2**63 - 1))

    def to_bytes(self) -> bytes:
        """Return the contents of the mixer's file: all that was learned, without the context."""
        return self._core.to_bytes()

    @classmethod
    def from_bytes(cls, blob: BytesLike) -> ContextMixer:
        """Parse what `to_bytes` returned. Raises FormatError for anything else."""
        return cls._of(_core.ContextMixer.from_bytes(_checked(blob)))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the mixer's file, all or nothing. Raises OutputError if it cannot be written."""
        write_atomically(path, self.to_bytes())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> ContextMixer:
        """Read what `save` wrote. Raises MissingFileError or FormatError."""
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
        """The SHA-256 of the mixer's file, in hexadecimal. O(table)."""
        return hashlib.sha256(self.to_bytes()).hexdigest()

    def __reduce__(self) -> tuple[object, tuple[bytes]]:
        return ContextMixer.from_bytes, (self.to_bytes(),)

    def __repr__(self) -> str:
        kind = "frozen" if self.is_frozen else "adaptive"
        return f"ContextMixer({kind}, num_bytes={self.num_bytes}, reset_interval={self.reset_interval})"


class AdaptiveFrequencies:
    """A model of order 0 for 1 to 2**22 symbols: the counts of each, recent ones weighing more.

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
        """The P of frequencies that sum to 2**P: max(16, ceil(log2 V) + 8), at most 24."""
        return self._core.precision

    def update(self, symbols: npt.ArrayLike) -> None:
        """Learn from symbols, integers[n]. Raises DataError for one outside the alphabet."""
        self._core.update(_symbols(symbols))

    def cumulative(self) -> npt.NDArray[np.uint32]:
        """Return the cumulative frequencies, uint32[V + 1], from 0 to 2**precision. O(V)."""
        return self._core.cumulative()

    def encode(self, symbols: npt.ArrayLike) -> bytes:
        """Return the code of symbols, integers[n], by a copy that learns from them.

        Raises DataError for a symbol outside the alphabet.
        """
        return self._core.encode(_symbols(symbols))

    def decode(self, blob: BytesLike, num_symbols: int) -> npt.NDArray[np.uint32]:
        """Return the `num_symbols` symbols, uint32[n], that an equal model encoded.

        Raises FormatError if the code is cut off or damaged, or bytes follow it.
        """
        return self._core.decode(_checked(blob), as_integer(num_symbols, "num_symbols", 0, 2**60 - 1))

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
        raise DataError(f"symbols are one row of integers, not {array.dtype}{list(array.shape)}")
    return array
