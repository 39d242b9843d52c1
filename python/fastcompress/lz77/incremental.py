"""Parsers of texts that grow, shrink and branch."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from fastcompress._arguments import as_integer
from fastcompress._core import lz77 as _core
from fastcompress.errors import ConfigError
from fastcompress.lz77.tokens import LITERAL, MATCH, LZTokens, Params, Token, as_params, as_token

_MOST = (1 << 64) - 1


class IncrementalParser:
    """The parse of the bytes appended so far: after any operations `tokens()` equals `parse` of them.

    A byte costs O(depth) amortized (with depth=None O(its earlier occurrences)). `fork` costs O(1), and then O(log n)
    memory for each byte that either parser adds. One thread at a time: a call while another thread's call changes the
    parser raises BusyError. Forks may be used in different threads.

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

    def truncate(self, num_bytes: int) -> None:
        """Keep the first `num_bytes` bytes only.

        O(bytes removed), and O(depth + length) for the token that is cut. Raises ConfigError if there are fewer bytes
        or `num_bytes` is negative.
        """
        self._core.truncate(as_integer(num_bytes, "num_bytes", 0, _MOST))

    def fork(self) -> IncrementalParser:
        """Return a parser of the same bytes that goes on independently."""
        forked = object.__new__(IncrementalParser)
        forked.params, forked._core = self.params, self._core.fork()
        return forked

    def tokens(self) -> LZTokens:
        """Return all tokens: the first `num_stable` are final, the others those of the present bytes. O(tokens)."""
        return LZTokens(*self._core.tokens())

    @property
    def num_bytes(self) -> int:
        """The number of bytes."""
        return self._core.num_bytes

    @property
    def num_stable(self) -> int:
        """The number of first tokens that no appended byte can change.

        At most max(1, min_length - 1) others follow (lazy: max(2, min_length - 1)).
        """
        return self._core.num_stable

    @property
    def stable_bytes(self) -> int:
        """The number of bytes of the stable tokens."""
        return self._core.stable_bytes

    # Greedy parses only; ConfigError for lazy ones.

    def is_legal(self, token: Token) -> bool:
        """Return whether the parse of the bytes and this token's bytes would be the present tokens and this one.

        Raises TypeError if `token` is not a Token or three integers, ConfigError if the parse is lazy.
        """
        numbers = as_token(token)
        return all(0 <= number < 1 << 32 for number in numbers) and self._core.is_legal(*numbers)

    def push_token(self, token: Token) -> None:
        """Append the bytes of a legal token. Raises ConfigError, and appends nothing, if it is not legal."""
        if not self.is_legal(token) or not self._core.push_token(*as_token(token)):
            raise ConfigError(
                f"{token} is not legal after {self.num_bytes} bytes: it is not what the parse of them would be"
            )

    def legal_kinds(self) -> tuple[int, ...]:
        """Return the kinds, LITERAL and MATCH, of which some token is legal.

        Neither is legal after a dead end: then only the end of the document may follow.
        """
        kinds = []
        if self.legal_literals().any():
            kinds.append(LITERAL)
        if len(self.legal_distances()):
            kinds.append(MATCH)
        return tuple(kinds)

    def legal_literals(self) -> npt.NDArray[np.bool_]:
        """Return, for each byte, whether it may come next as a literal: bool[256]."""
        return self._core.legal_literals()

    def legal_distances(self) -> npt.NDArray[np.uint32]:
        """Return the distances of legal matches, ascending: uint32[n]."""
        return self._core.legal_distances()

    def legal_lengths(self, distance: int) -> tuple[int, int | None] | None:
        """Return the smallest and the largest legal length of a match; all lengths between are legal, too.

        The largest is None if there is no limit. Returns None if no length is legal at this distance.
        """
        if not 0 <= as_integer(distance, "distance", -_MOST, _MOST) < 1 << 32:
            return None
        shortest, longest = self._core.legal_lengths(distance)
        if shortest > longest:
            return None
        return shortest, None if longest == _core.UNLIMITED else longest


class ParserBatch:
    """Incremental parsers that advance together, a byte each at a time: the streams of a generation.

    Less than 1 us per byte and stream. One thread at a time, as `IncrementalParser`.

    >>> batch = ParserBatch(2)
    >>> batch.append(np.frombuffer(b"ab", np.uint8))
    >>> batch.select([1, 1, 0])
    >>> batch
    ParserBatch(3 streams, Params(window=65536, min_length=4, max_length=258, depth=32, parse='greedy'))
    """

    def __init__(self, num_streams: int, params: Params | None = None) -> None:
        """Start streams without bytes. Raises ConfigError if `num_streams` is negative."""
        self.params = as_params(params)
        self._core = _core.ParserBatch(self.params.core, as_integer(num_streams, "num_streams", 0, _MOST))

    def __len__(self) -> int:
        return len(self._core)

    def __repr__(self) -> str:
        return f"ParserBatch({len(self)} streams, {self.params})"

    def append(self, data: npt.ArrayLike) -> None:
        """Append a byte, or a row of bytes, to each stream.

        Args:
            data: uint8[num_streams], or uint8[num_streams, k], whose row i goes to stream i.

        Raises:
            TypeError: It is not uint8.
            ConfigError: It has another shape, or a stream would have more than 2**32 - 16 bytes.
        """
        rows = np.asarray(data)
        if rows.dtype != np.uint8:
            raise TypeError(f"data is {rows.dtype}; it must be uint8")
        self._core.append(rows)

    def truncate(self, stream: int, num_bytes: int) -> None:
        """Keep the first `num_bytes` bytes of one stream only, as `IncrementalParser.truncate` does."""
        self._core.truncate(_stream(stream), as_integer(num_bytes, "num_bytes", 0, _MOST))

    def select(self, sources: Iterable[int]) -> None:
        """Make stream i a fork of the present stream sources[i]; their number may change.

        Raises IndexError if a source does not exist.
        """
        self._core.select([_stream(source) for source in sources])

    def fork(self, stream: int) -> IncrementalParser:
        """Return the parser of one stream, to go on by itself. Raises IndexError if there is no such stream."""
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
