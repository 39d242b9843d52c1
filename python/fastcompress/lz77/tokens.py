"""The settings of a parse, its tokens, and parses of complete texts."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, SupportsIndex, overload

import numpy as np
import numpy.typing as npt

from fastcompress._arguments import as_integer, as_num_threads, as_texts, shown
from fastcompress._core import lz77 as _core
from fastcompress._deprecated import RenamedAttribute
from fastcompress.errors import ConfigError, DataError

LITERAL = 0
MATCH = 1


@dataclass(frozen=True)
class Params:
    """The settings that determine a parse; cpp/fastcompress/lz77/FORMAT.md defines it.

    >>> Params(window=1 << 20, parse="lazy")
    Params(window=1048576, min_length=4, max_length=258, depth=32, parse='lazy')

    Attributes:
        window: The largest distance in bytes, or None for no limit.
        min_length: The smallest length of a match, 1 to 64 bytes.
        max_length: The largest length of a match, or None for no limit.
        depth: The number of candidates for a match: the most recent positions with the same first min_length bytes.
            None considers all of them.
        parse: "greedy", or "lazy", where a match gives way to a literal if the next position has a longer match.

    Raises:
        ConfigError: A setting is out of range, or not an integer.
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
                continue
            or_none = "" if name == "min_length" else "no limit"
            try:
                numbers[name] = as_integer(value, name, 1, _core.UNLIMITED - 1, or_none=or_none)
            except TypeError as error:
                raise ConfigError(str(error)) from None
            object.__setattr__(self, name, numbers[name])
        core = _core.Params(
            numbers["window"], numbers["min_length"], numbers["max_length"], numbers["depth"], self.parse == "lazy"
        )
        object.__setattr__(self, "core", core)

    def __reduce__(self) -> tuple[type[Params], tuple[object, ...]]:
        return Params, (self.window, self.min_length, self.max_length, self.depth, self.parse)


class Token(NamedTuple):
    """One token of a parse.

    >>> Token.literal(97), Token.match(distance=3, length=8)
    (Token(kind=0, value=97, length=1), Token(kind=1, value=3, length=8))

    Attributes:
        kind: LITERAL or MATCH.
        value: The byte of a literal, or the distance of a match.
        length: The number of bytes, 1 for a literal.
    """

    kind: int
    value: int
    length: int

    @classmethod
    def literal(cls, byte: int) -> Token:
        """Return the literal of a byte."""
        return cls(LITERAL, byte, 1)

    @classmethod
    def match(cls, distance: int, length: int) -> Token:
        """Return a match of `length` bytes that begin `distance` bytes back."""
        return cls(MATCH, distance, length)


@dataclass(frozen=True, eq=False)
class LZTokens:
    """Tokens as columns. Functions that take them check them first.

    >>> tokens = LZTokens.from_tokens([Token.literal(97), Token.match(distance=1, length=4)])
    >>> tokens.num_bytes, reconstruct(tokens)
    (5, b'aaaaa')

    Attributes:
        kind: uint8[n], LITERAL or MATCH.
        value: uint32[n], the byte of a literal or the distance of a match.
        length: uint32[n], the number of bytes, 1 for a literal.
    """

    kind: npt.NDArray[np.uint8]
    value: npt.NDArray[np.uint32]
    length: npt.NDArray[np.uint32]

    @classmethod
    def from_tokens(cls, tokens: Iterable[Token]) -> LZTokens:
        """Return the columns of single tokens.

        Raises:
            TypeError: An item is not a Token or three integers.
            DataError: A number is negative or too large for its column.
        """
        rows = [as_token(token) for token in tokens]
        if any(kind > 255 or kind < 0 or not 0 <= value < 1 << 32 or not 0 <= length < 1 << 32
               for kind, value, length in rows):  # fmt: skip
            raise DataError(
                "tokens has a number that is out of range; kind must be 0 to 255, value and length 0 to 2**32 - 1"
            )
        table = np.array(rows, np.int64).reshape(len(rows), 3)
        return cls(table[:, 0].astype(np.uint8), table[:, 1].astype(np.uint32), table[:, 2].astype(np.uint32))

    of = RenamedAttribute("from_tokens")

    def checked(self) -> LZTokens:
        """Return a copy of the tokens, with the dtypes above, in which each token by itself is well-formed.

        Raises:
            FormatError: A token, of which the first is named, is malformed: of unknown kind, a literal that is not a
                byte or not of length 1, a match of length or distance 0, or with a number too large for its column.
            ColumnError: The columns are not one-dimensional integers, or have different lengths.
        """
        return LZTokens(*_core.check_tokens(self.kind, self.value, self.length))

    def __len__(self) -> int:
        return len(self.kind)

    def __iter__(self) -> Iterator[Token]:
        columns = (np.asarray(column).tolist() for column in (self.kind, self.value, self.length))
        return map(Token, *columns)

    @overload
    def __getitem__(self, part: SupportsIndex) -> Token: ...
    @overload
    def __getitem__(self, part: slice) -> LZTokens: ...
    def __getitem__(self, part: SupportsIndex | slice) -> Token | LZTokens:
        if hasattr(part, "__index__"):
            return Token(int(self.kind[part]), int(self.value[part]), int(self.length[part]))
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
        """The number of bytes that the tokens decode to."""
        return int(np.sum(self.length, dtype=np.uint64))


def as_token(token: object, name: str = "token") -> Token:
    """Return a Token or any three integers as a Token. Raises TypeError for anything else."""
    try:
        kind, value, length = map(operator.index, token)  # type: ignore[call-overload]
    except (TypeError, ValueError):
        raise TypeError(f"{name} is {shown(token)}; it must be a Token: integers kind, value and length") from None
    return Token(kind, value, length)


def as_params(params: Params | None) -> Params:
    """Return the settings, Params() for None. Raises TypeError for anything else."""
    if params is None:
        return Params()
    if not isinstance(params, Params):
        raise TypeError(f"params is {shown(params)}; it must be a Params, such as Params(window=65536), or None")
    return params


def as_tokens(tokens: LZTokens) -> LZTokens:
    """Return the tokens. Raises TypeError for anything but LZTokens."""
    if not isinstance(tokens, LZTokens):
        raise TypeError(f"tokens is {shown(tokens)}; it must be LZTokens, as parse returns or LZTokens.from_tokens")
    return tokens


def parse(data: str | bytes, params: Params | None = None) -> LZTokens:
    """Parse a text into tokens.

    >>> [tuple(token) for token in parse(b"abababab")]
    [(0, 97, 1), (0, 98, 1), (1, 2, 6)]

    Args:
        data: At most 2**32 - 16 bytes; a str as UTF-8.
        params: None for Params().

    Raises:
        ConfigError: The text is too long.
        SurrogateError: A str has a surrogate.

    With a limited depth about as fast as deflate compresses. With depth=None O(n log n) for any data, with about 30
    bytes of memory per byte of the data or of nine windows. Deterministic; releases the GIL.
    """
    return LZTokens(*_core.parse(data, as_params(params).core))


def parse_batch(
    texts: Iterable[str | bytes], params: Params | None = None, *, num_threads: int | None = None
) -> tuple[LZTokens, npt.NDArray[np.uint64]]:
    """Parse several texts on several threads.

    Args:
        texts: Each as `parse` takes it.
        params: None for Params().
        num_threads: None for one per core. Does not change the result.

    Returns:
        The tokens of all texts one after the other, and offsets uint64[len(texts) + 1]: those of text i are
        tokens[offsets[i]:offsets[i + 1]].

    Raises:
        ConfigError: A text is too long, or num_threads is out of range.
        SurrogateError: A str has a surrogate.
    """
    kind, value, length, offsets = _core.parse_batch(
        as_texts(texts, "texts"), as_params(params).core, as_num_threads(num_threads)
    )
    return LZTokens(kind, value, length), offsets


def stable_counts(data: str | bytes, params: Params | None = None) -> npt.NDArray[np.uint32]:
    """Return how many tokens are stable after the first 0, 1, ..., n bytes of a text: uint32[n + 1].

    A token is stable if no byte that might follow changes it (``FORMAT.md``), so what a model may know of the parse
    after n bytes are the first `stable_counts(data)[n]` tokens. The counts never fall, and those of a text are a prefix
    of those of every continuation.

    >>> stable_counts(b"abababab!").tolist()  # the match may grow until "!" ends it
    [0, 0, 0, 0, 1, 2, 2, 2, 2, 3]

    Args:
        data: At most 2**32 - 16 bytes; a str as UTF-8.
        params: None for Params().

    Raises:
        ConfigError: The text is too long.
        SurrogateError: A str has a surrogate.

    One incremental parse, in amortized O(depth) time for each byte; releases the GIL.
    """
    return _core.stable_counts(data, as_params(params).core)


def stable_counts_batch(
    texts: Iterable[str | bytes], params: Params | None = None, *, num_threads: int | None = None
) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint64]]:
    """Return the `stable_counts` of several texts, on several threads.

    Args:
        texts: Each as `stable_counts` takes it.
        params: None for Params().
        num_threads: None for one per core. Does not change the result.

    Returns:
        The counts of all texts one after the other, and offsets uint64[len(texts) + 1]: those of text i are
        counts[offsets[i]:offsets[i + 1]].

    Raises:
        ConfigError: A text is too long, or num_threads is out of range.
        SurrogateError: A str has a surrogate.
    """
    return _core.stable_counts_batch(as_texts(texts, "texts"), as_params(params).core, as_num_threads(num_threads))


def reconstruct(tokens: LZTokens, *, max_bytes: int = _core.MAX_TEXT_BYTES) -> bytes:
    """Decode tokens, which need not be trusted, to bytes: reconstruct(parse(data)) == data.

    Args:
        tokens: Columns of any integer type.
        max_bytes: The largest number of bytes to return.

    Raises:
        FormatError: For the first token that is malformed (an unknown kind, a distance past the beginning, a length of
            0, a number too large for its column ...) or that ends past `max_bytes`.
        ColumnError: The columns are not one-dimensional integers, or have different lengths.
        DataError: Another thread changed the columns meanwhile.

    Memory for the result is allocated only after all tokens have been checked. O(tokens + bytes); releases the GIL.
    """
    as_tokens(tokens)
    limit = as_integer(max_bytes, "max_bytes", 0, (1 << 64) - 1)
    return _core.reconstruct(tokens.kind, tokens.value, tokens.length, limit)


@dataclass(frozen=True, eq=False)
class LiteralRuns:
    """Tokens with consecutive literals grouped into runs, for models that read several literals at once.

    >>> runs = literal_runs(parse(b"abcdabcd"))
    >>> runs.length.tolist(), runs.literals.tobytes()
    ([4, 4], b'abcd')

    Attributes:
        kind: uint8[n], LITERAL for a run, or MATCH.
        value: uint32[n], the offset of a run in `literals`, or the distance of a match.
        length: uint32[n], the number of bytes.
        literals: uint8[k], the bytes of all runs.
    """

    kind: npt.NDArray[np.uint8]
    value: npt.NDArray[np.uint32]
    length: npt.NDArray[np.uint32]
    literals: npt.NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.kind)

    def tokens(self) -> LZTokens:
        """Return the tokens that were grouped."""
        repeats = np.where(self.kind == LITERAL, self.length, 1)
        kind = np.repeat(self.kind, repeats)
        value = np.repeat(self.value, repeats)
        value[kind == LITERAL] = self.literals
        length = np.where(kind == LITERAL, 1, np.repeat(self.length, repeats)).astype(np.uint32)
        return LZTokens(kind, value, length)


def literal_runs(tokens: LZTokens, max_run: int = 8) -> LiteralRuns:
    """Group consecutive literals.

    Args:
        tokens: Well-formed tokens.
        max_run: The largest number of literals in a group; longer runs are cut into groups of this size, and the rest.

    Raises:
        ConfigError: `max_run` is below 1.
        FormatError: A token is malformed (see `LZTokens.checked`).
    """
    max_run = as_integer(max_run, "max_run", 1, (1 << 62) - 1)
    tokens = as_tokens(tokens).checked()
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
