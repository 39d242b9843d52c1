"""Settings, tokens, one-shot parses and back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from fastcompress._core import lz77 as _core
from fastcompress.errors import ConfigError, DataError

LITERAL = 0
MATCH = 1


@dataclass(frozen=True)
class Params:
    """What decides a parse; FORMAT.md says how. ConfigError for settings out of range.

    Attributes:
        window: the greatest distance, in bytes; None: no limit.
        min_length: of a match, 1 to 64 bytes.
        max_length: of a match; None: no limit.
        depth: how many of the most recent positions that share min_length bytes are candidates; None: all of them
            ("exact").
        parse: "greedy", or "lazy": a match gives way to a literal where the next position has a longer one.
    """

    window: int | None = 65536
    min_length: int = 4
    max_length: int | None = 258
    depth: int | None = 32
    parse: Literal["greedy", "lazy"] = "greedy"
    core: _core.Params = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.parse not in ("greedy", "lazy"):
            raise ConfigError(f"parse is {self.parse!r}; it must be 'greedy' or 'lazy'")
        numbers = {}
        for name in ("window", "min_length", "max_length", "depth"):
            value = getattr(self, name)
            if value is None and name != "min_length":
                numbers[name] = _core.UNLIMITED
            elif isinstance(value, int) and 0 <= value < _core.UNLIMITED:
                numbers[name] = int(value)
            else:
                raise ConfigError(f"{name} is {value!r}; it must be a positive integer below 2**32 - 1")
        core = _core.Params(
            numbers["window"], numbers["min_length"], numbers["max_length"], numbers["depth"], self.parse == "lazy"
        )
        object.__setattr__(self, "core", core)

    def __reduce__(self) -> tuple[type[Params], tuple[object, ...]]:
        return Params, (self.window, self.min_length, self.max_length, self.depth, self.parse)


class Token(NamedTuple):
    """One token: `kind` LITERAL or MATCH, `value` a byte or a distance, `length` in bytes (1 for a literal)."""

    kind: int
    value: int
    length: int

    @classmethod
    def literal(cls, byte: int) -> Token:
        return cls(LITERAL, byte, 1)

    @classmethod
    def match(cls, distance: int, length: int) -> Token:
        return cls(MATCH, distance, length)


@dataclass(frozen=True, eq=False)
class LZTokens:
    """Tokens as columns.

    Attributes:
        kind: uint8[n], LITERAL or MATCH.
        value: uint32[n], the byte of a literal, the distance of a match.
        length: uint32[n], the bytes a token stands for, 1 for a literal.
    """

    kind: npt.NDArray[np.uint8]
    value: npt.NDArray[np.uint32]
    length: npt.NDArray[np.uint32]

    @classmethod
    def of(cls, tokens: Iterable[Token]) -> LZTokens:
        """Columns of single tokens. DataError for numbers that are negative or too large."""
        rows = list(tokens)
        table = np.array(rows, np.int64).reshape(len(rows), 3)
        if len(rows) and (table.min() < 0 or table.max() >= 1 << 32 or table[:, 0].max() > 255):
            raise DataError("a token's numbers must be at least 0, its kind below 256, the others below 2**32")
        return cls(table[:, 0].astype(np.uint8), table[:, 1].astype(np.uint32), table[:, 2].astype(np.uint32))

    def __len__(self) -> int:
        return len(self.kind)

    def __iter__(self) -> Iterator[Token]:
        return map(Token, self.kind.tolist(), self.value.tolist(), self.length.tolist())

    def __getitem__(self, part: slice) -> LZTokens:
        return LZTokens(self.kind[part], self.value[part], self.length[part])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LZTokens):
            return NotImplemented
        return (
            np.array_equal(self.kind, other.kind)
            and np.array_equal(self.value, other.value)
            and np.array_equal(self.length, other.length)
        )

    @property
    def num_bytes(self) -> int:
        return int(self.length.sum(dtype=np.uint64))


def parse(data: str | bytes, params: Params | None = None) -> LZTokens:
    """The tokens of `data` (a str as UTF-8), at most 2**32 - 16 bytes; `params` are Params() if not given.

    With a depth about as fast as deflate compresses; exact (depth=None) O(n log n) whatever the data, with some 30
    bytes of memory a byte of data or of nine windows. Releases the GIL; deterministic. ConfigError: too long.
    """
    return LZTokens(*_core.parse(data, (params or Params()).core))


def parse_batch(
    texts: Sequence[str | bytes], params: Params | None = None, *, num_threads: int | None = None
) -> tuple[LZTokens, npt.NDArray[np.uint64]]:
    """`parse` of several texts, on several threads.

    Returns the tokens of all of them one after the other, and offsets uint64[len(texts) + 1]: those of text i are
    tokens[offsets[i]:offsets[i + 1]]. The same for every number of threads (None: one a core).
    """
    if num_threads is not None and num_threads < 1:
        raise ConfigError(f"num_threads is {num_threads}; it must be at least 1, or None for one a core")
    kind, value, length, offsets = _core.parse_batch(list(texts), (params or Params()).core, num_threads or 0)
    return LZTokens(kind, value, length), offsets


def reconstruct(tokens: LZTokens, *, max_bytes: int = _core.MAX_TEXT_BYTES) -> bytes:
    """The bytes of tokens from anywhere: reconstruct(parse(data)) == data.

    FormatError names the first token that is malformed (an unknown kind, a distance past the beginning, a length of 0
    ...) or
    ends past `max_bytes`; nothing is allocated before all have been looked at. O(tokens + bytes). Releases the GIL.
    """
    return _core.reconstruct(tokens.kind, tokens.value, tokens.length, max_bytes)


@dataclass(frozen=True, eq=False)
class LiteralRuns:
    """Tokens with consecutive literals grouped, for models that read literal patches.

    Attributes:
        kind: uint8[n], LITERAL for a run or MATCH.
        value: uint32[n], where a run begins in `literals`, or the distance of a match.
        length: uint32[n], bytes.
        literals: uint8[k], the bytes of all runs.
    """

    kind: npt.NDArray[np.uint8]
    value: npt.NDArray[np.uint32]
    length: npt.NDArray[np.uint32]
    literals: npt.NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.kind)

    def tokens(self) -> LZTokens:
        """The tokens they were made of."""
        repeats = np.where(self.kind == LITERAL, self.length, 1)
        kind = np.repeat(self.kind, repeats)
        value = np.repeat(self.value, repeats)
        value[kind == LITERAL] = self.literals
        length = np.where(kind == LITERAL, 1, np.repeat(self.length, repeats)).astype(np.uint32)
        return LZTokens(kind, value, length)


def literal_runs(tokens: LZTokens, max_run: int = 8) -> LiteralRuns:
    """Groups consecutive literals, at most `max_run` each, from the first of a run on. O(n). ConfigError: max_run
    below 1."""
    if max_run < 1:
        raise ConfigError(f"max_run is {max_run}; it must be at least 1")
    is_literal = tokens.kind == LITERAL
    index = np.arange(len(tokens))
    starts_run = is_literal & ~np.concatenate(([False], is_literal[:-1]))
    run_begin = np.maximum.accumulate(np.where(starts_run, index, 0))
    begins = ~is_literal | ((index - run_begin) % max_run == 0)
    first = np.flatnonzero(begins)
    rank_of_literal = np.cumsum(is_literal) - is_literal
    kind = tokens.kind[first]
    value = np.where(kind == LITERAL, rank_of_literal[first], tokens.value[first]).astype(np.uint32)
    sizes = np.diff(np.append(first, len(tokens)))
    length = np.where(kind == LITERAL, sizes, tokens.length[first]).astype(np.uint32)
    return LiteralRuns(kind, value, length, tokens.value[is_literal].astype(np.uint8))
