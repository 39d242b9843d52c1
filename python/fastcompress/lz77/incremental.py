"""Parsers of texts that can be extended, truncated and forked."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from fastcompress._arguments import as_integer, refuse_copy, shown
from fastcompress._core import lz77 as _core
from fastcompress.errors import ConfigError
from fastcompress.lz77.tokens import LITERAL, MATCH, LZTokens, Params, Token, as_params, as_token

_MOST = (1 << 64) - 1
_MOST_STREAMS = (1 << 24) - 1


class IncrementalParser:
    """A parser of the bytes appended so far: after any operations, `tokens()` equals `parse` of these bytes.

    Each byte takes amortized O(depth) time (with depth=None, O(number of its earlier occurrences)). `fork` takes O(1),
    and then O(log n) memory for each byte that either parser adds.

    One thread at a time: a call while another thread's call changes the parser raises BusyError. Forks may be used in
    different threads.

    >>> parser = IncrementalParser()
    >>> parser.append(b"abcabcabcab")
    >>> parser
    IncrementalParser(Params(window=65536, min_length=4, max_length=258, depth=32, parse='greedy'), num_bytes=11, \
num_stable=3)
    >>> draft = parser.fork()
    >>> draft.append(b"d")
    >>> [tuple(token) for token in draft.tokens()]
    [(0, 97, 1), (0, 98, 1), (0, 99, 1), (1, 3, 8), (0, 100, 1)]
    """

    def __init__(self, params: Params | None = None) -> None:
        """Start with no bytes. Raises TypeError if `params` is not a Params or None."""
        self.params = as_params(params)
        self._core = _core.IncrementalParser(self.params.core)

    def __repr__(self) -> str:
        return f"IncrementalParser({self.params}, num_bytes={self.num_bytes}, num_stable={self.num_stable})"

    def append(self, data: str | bytes) -> None:
        """Append bytes (a str as UTF-8). Releases the GIL.

        Raises ConfigError for more than 2**32 - 16 bytes in all, SurrogateError if a str has a surrogate.
        """
        self._core.append(data)

    def extend(self, data: str | bytes) -> tuple[int, list[tuple[int, int, int]]]:
        """Append bytes, and return how the tokens changed.

        Keep the tokens of a growing text up to date with ``num_kept, tail = parser.extend(data)`` and
        ``tokens[num_kept:] = tail``, in time that depends on `data` and not on the text.

        Returns:
            The number of leading tokens that no byte could change any more, and all tokens after them, each as (kind,
            value, length): plain tuples, which are made faster than Tokens.

        Raises as `append` does.
        """
        return self._core.extend(data)

    def truncate(self, num_bytes: int) -> None:
        """Remove all but the first `num_bytes` bytes, however many that removes.

        O(bytes removed), plus O(depth + length) for the token that the cut splits. Raises ConfigError if `num_bytes` is
        negative or exceeds `self.num_bytes`.
        """
        self._core.truncate(as_integer(num_bytes, "num_bytes", 0, _MOST))

    def fork(self) -> IncrementalParser:
        """Return an independent parser of the same bytes."""
        forked = object.__new__(IncrementalParser)
        forked.params, forked._core = self.params, self._core.fork()
        return forked

    __copy__ = fork

    def __deepcopy__(self, memo: object) -> IncrementalParser:
        return self.fork()

    __reduce__ = refuse_copy

    def tokens(self) -> LZTokens:
        """Return all tokens, of which only those after the first `num_stable` can still change. O(tokens)."""
        return LZTokens(*self._core.tokens())

    @property
    def num_bytes(self) -> int:
        """The number of bytes."""
        return self._core.num_bytes

    @property
    def num_stable(self) -> int:
        """The number of leading tokens that no appended byte can change.

        At most max(1, min_length - 1) tokens follow them, in a lazy parse max(2, min_length - 1).
        """
        return self._core.num_stable

    @property
    def stable_bytes(self) -> int:
        """The number of bytes of the stable tokens."""
        return self._core.stable_bytes

    # The methods below are for greedy parses; for lazy ones they raise ConfigError.

    def is_legal(self, token: Token) -> bool:
        """Return whether a token may come next: whether the parse of all bytes, its own included, would have it there.

        Raises TypeError if `token` is not a Token or three integers, ConfigError if the parse is lazy.
        """
        numbers = as_token(token)
        return all(0 <= number < 1 << 32 for number in numbers) and self._core.is_legal(*numbers)

    def push_token(self, token: Token) -> None:
        """Append the bytes of a legal token. Raises ConfigError, and appends nothing, if it is not legal."""
        if not self.is_legal(token) or not self._core.push_token(*as_token(token)):
            raise ConfigError(f"token is {token}, which is not legal after these {self.num_bytes} bytes; see is_legal")

    def legal_kinds(self) -> tuple[int, ...]:
        """Return the kinds, LITERAL and MATCH, that have a legal token.

        Empty at a dead end, where only the end of the text can follow.
        """
        kinds = []
        if self.legal_literals().any():
            kinds.append(LITERAL)
        if len(self.legal_distances()):
            kinds.append(MATCH)
        return tuple(kinds)

    def legal_literals(self) -> npt.NDArray[np.bool_]:
        """Return whether each byte is legal as the next literal, bool[256]."""
        return self._core.legal_literals()

    def legal_distances(self) -> npt.NDArray[np.uint32]:
        """Return the distances of legal matches in ascending order, uint32[n]."""
        return self._core.legal_distances()

    def legal_lengths(self, distance: int) -> tuple[int, int | None] | None:
        """Return the smallest and the largest legal length of a match at a distance; those in between are legal too.

        The largest is None if there is no limit. The result is None if no length is legal.
        """
        if not 0 <= as_integer(distance, "distance", -_MOST, _MOST) < 1 << 32:
            return None
        shortest, longest = self._core.legal_lengths(distance)
        if shortest > longest:
            return None
        return shortest, None if longest == _core.UNLIMITED else longest


class ParserBatch:
    """Incremental parsers that advance in step, for texts that are generated as a batch.

    Takes less than 1 us per byte and stream. One thread at a time, as for `IncrementalParser`.

    >>> batch = ParserBatch(2)
    >>> batch.append(np.frombuffer(b"ab", np.uint8))
    >>> batch.select([1, 1, 0])
    >>> batch
    ParserBatch(3 streams, Params(window=65536, min_length=4, max_length=258, depth=32, parse='greedy'))
    """

    def __init__(self, num_streams: int, params: Params | None = None) -> None:
        """Start `num_streams` streams with no bytes. Raises ConfigError if that number is out of range."""
        self.params = as_params(params)
        self._core = _core.ParserBatch(self.params.core, as_integer(num_streams, "num_streams", 0, _MOST_STREAMS))

    def __len__(self) -> int:
        return len(self._core)

    def __repr__(self) -> str:
        return f"ParserBatch({len(self)} streams, {self.params})"

    __reduce__ = refuse_copy

    def append(self, data: npt.ArrayLike) -> None:
        """Append one byte, or several, to each stream.

        Args:
            data: uint8[num_streams], or uint8[num_streams, k], whose row i goes to stream i.

        Raises:
            TypeError: `data` is not uint8.
            ConfigError: `data` has another shape, or a stream would have more than 2**32 - 16 bytes.
        """
        rows = np.asarray(data)
        if rows.dtype != np.uint8:
            raise TypeError(f"data is {rows.dtype}; it must be uint8")
        self._core.append(rows)

    def truncate(self, stream: int, num_bytes: int) -> None:
        """Remove all but the first `num_bytes` bytes of one stream, as `IncrementalParser.truncate` does."""
        self._core.truncate(_stream(stream), as_integer(num_bytes, "num_bytes", 0, _MOST))

    def select(self, sources: Iterable[int]) -> None:
        """Replace stream i by a fork of the current stream sources[i], for all i; the number of streams may change.

        Raises IndexError if a source does not exist.
        """
        if not isinstance(sources, Iterable):
            raise TypeError(f"sources is {shown(sources)}; it must be an iterable of the numbers of streams")
        self._core.select([_stream(source) for source in sources])

    def fork(self, stream: int) -> IncrementalParser:
        """Return an independent parser of the bytes of one stream. Raises IndexError if there is no such stream."""
        forked = object.__new__(IncrementalParser)
        forked.params, forked._core = self.params, self._core.fork(_stream(stream))
        return forked

    @property
    def num_bytes(self) -> npt.NDArray[np.uint64]:
        """The number of bytes of each stream, uint64[num_streams]."""
        return self._core.num_bytes()

    @property
    def num_stable(self) -> npt.NDArray[np.uint64]:
        """The number of stable tokens of each stream, uint64[num_streams]."""
        return self._core.num_stable()


def _stream(stream: int) -> int:
    return as_integer(stream, "stream", 0, _MOST)
