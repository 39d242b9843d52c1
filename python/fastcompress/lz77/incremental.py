"""Parsers of texts that grow, shrink and branch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from fastcompress._core import lz77 as _core
from fastcompress.errors import ConfigError
from fastcompress.lz77.tokens import LITERAL, MATCH, LZTokens, Params, Token


class IncrementalParser:
    """The parse of the bytes appended so far: after any operations `tokens()` equals `parse` of them.

    A byte costs O(depth) amortized (with depth=None: O(its earlier occurrences)), `fork` O(depth) and then O(log n)
    memory for each
    byte that either of the two adds. Not for several threads at once; forks may be used in different threads.
    """

    def __init__(self, params: Params | None = None) -> None:
        self.params = params or Params()
        self._core = _core.IncrementalParser(self.params.core)

    def append(self, data: str | bytes) -> None:
        """Bytes (a str as UTF-8) after those there are. ConfigError: more than 2**32 - 16 bytes in all. Releases the
        GIL."""
        self._core.append(data)

    def truncate(self, num_bytes: int) -> None:
        """Keep the first `num_bytes` bytes; as far back as you like. O(what goes), and O(depth + length) for the
        token that is cut. ConfigError: there are fewer, or it is negative."""
        if num_bytes < 0:
            raise ConfigError(f"num_bytes is {num_bytes}; it must be at least 0")
        self._core.truncate(num_bytes)

    def fork(self) -> IncrementalParser:
        """A parser of the same bytes that goes on independently."""
        forked = object.__new__(IncrementalParser)
        forked.params, forked._core = self.params, self._core.fork()
        return forked

    def tokens(self) -> LZTokens:
        """All tokens, O(their number): the first `num_stable` will stay, the others are those of the bytes so far."""
        return LZTokens(*self._core.tokens())

    @property
    def num_bytes(self) -> int:
        return self._core.num_bytes

    @property
    def num_stable(self) -> int:
        """How many first tokens no byte that is appended can change. At most max(1, min_length - 1) others follow
        (lazy: max(2, ...))."""
        return self._core.num_stable

    @property
    def stable_bytes(self) -> int:
        """The bytes that the stable tokens stand for."""
        return self._core.stable_bytes

    # Greedy parses only; ConfigError for lazy ones.

    def is_legal(self, token: Token) -> bool:
        """Whether the parse of all bytes with the token's after them is the tokens so far and this one."""
        return all(0 <= number < 1 << 32 for number in token) and self._core.is_legal(*token)

    def push_token(self, token: Token) -> None:
        """Append the bytes of a legal token. ConfigError, and nothing is appended, if it is not legal."""
        if not self.is_legal(token):
            raise ConfigError(
                f"{token} is not legal after {self.num_bytes} bytes: it is not what the parse of them would be"
            )
        self._core.push_token(*token)

    def legal_kinds(self) -> tuple[int, ...]:
        """Those of LITERAL and MATCH of which some token is legal. Neither is after a dead end: then only the end may
        follow."""
        kinds = []
        if self.legal_literals().any():
            kinds.append(LITERAL)
        if len(self.legal_distances()):
            kinds.append(MATCH)
        return tuple(kinds)

    def legal_literals(self) -> npt.NDArray[np.bool_]:
        """bool[256]: whether a byte may come next as a literal."""
        return self._core.legal_literals()

    def legal_distances(self) -> npt.NDArray[np.uint32]:
        """The distances of legal matches, ascending."""
        return self._core.legal_distances()

    def legal_lengths(self, distance: int) -> tuple[int, int | None] | None:
        """The shortest and the longest legal length of a match of this distance, all between being legal too; longest
        None: any. None if there is none."""
        if not 0 <= distance < 1 << 32:
            return None
        shortest, longest = self._core.legal_lengths(distance)
        if shortest > longest:
            return None
        return shortest, None if longest == _core.UNLIMITED else longest


class ParserBatch:
    """Parsers that go on together, a byte each at a time: the streams of a generation. Under 1 us a byte a stream."""

    def __init__(self, num_streams: int, params: Params | None = None) -> None:
        if num_streams < 0:
            raise ConfigError(f"num_streams is {num_streams}; it must be at least 0")
        self.params = params or Params()
        self._core = _core.ParserBatch(self.params.core, num_streams)

    def __len__(self) -> int:
        return len(self._core)

    def append(self, data: npt.ArrayLike) -> None:
        """uint8[num_streams], or [num_streams, k]: row i goes to stream i."""
        rows = np.asarray(data)
        if rows.dtype != np.uint8:
            raise TypeError(f"bytes must be uint8, not {rows.dtype}")
        self._core.append(rows)

    def truncate(self, stream: int, num_bytes: int) -> None:
        self._core.truncate(stream, num_bytes)

    def select(self, sources: Sequence[int]) -> None:
        """Stream i becomes a fork of what stream sources[i] was; there may be more or fewer than before."""
        self._core.select(list(sources))

    def fork(self, stream: int) -> IncrementalParser:
        """One stream's parse, to go on by itself."""
        forked = object.__new__(IncrementalParser)
        forked.params, forked._core = self.params, self._core.fork(stream)
        return forked

    @property
    def num_bytes(self) -> npt.NDArray[np.uint64]:
        return self._core.num_bytes()

    @property
    def num_stable(self) -> npt.NDArray[np.uint64]:
        return self._core.num_stable()
