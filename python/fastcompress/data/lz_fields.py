"""LZ77 tokens as fields: a fixed number of symbols a token, each out of a small alphabet, in the order of prediction.

    kind    value                              digits of the distance    length           digits of the length
    0       byte                               0 ...                     0                0 ...
    1       256 + bucket of (distance - 1)     extra bits                bucket of        extra bits
                                                                         (length - min_length)
    2       0 (the end of a document)          0 ...                     0                0 ...

Numbers are written as buckets and digits of extra bits (``lz_buckets.py``).

Which symbols are legal in a field follows from the earlier fields of the token and from `Choices`, the tokens that may
come next: a symbol is legal if some of these tokens begin with it. A field with one legal symbol costs nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from fastcompress.data.lz_buckets import Buckets, Integers
from fastcompress.lz77 import LITERAL, MATCH, LZTokens, Token

END = 2  # the kind of the end of a document, beside LITERAL and MATCH
NUM_KINDS = 3
_NUM_BYTES = 256

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Choices:
    """The tokens that may follow each of n histories, beside the end of the document, which always may.

    Attributes:
        literals: ``bool[n, 256]``, the bytes that may follow as literals.
        distances: The distances that a match may have, each less 1: all below a limit, ``int64[n]``; or a sorted array
            for each history.
        shortest, longest: ``int64[n]``, the lengths that a match with the distance in question may have, each less the
            smallest length.
    """

    literals: Mask
    distances: Integers | Sequence[Integers]
    shortest: Integers
    longest: Integers

    @classmethod
    def joined(cls, parts: Sequence[Choices]) -> Choices:
        """Return the choices of all histories of parts, each of which has arrays of distances."""
        distances: list[Integers] = [own for part in parts for own in part.distances]
        literals, shortest, longest = (
            np.concatenate([getattr(part, name) for part in parts]) for name in ("literals", "shortest", "longest")
        )
        return cls(literals, distances, shortest, longest)

    @property
    def has_match(self) -> Mask:
        """Whether any match may follow, ``bool[n]``."""
        if isinstance(self.distances, np.ndarray):
            return self.distances > 0
        return np.array([len(numbers) > 0 for numbers in self.distances])

    def of(self, histories: Integers) -> Choices:
        """Return the choices of some of the histories, by their numbers ``int64[m]``."""
        some = (
            self.distances[histories]
            if isinstance(self.distances, np.ndarray)
            else [self.distances[history] for history in histories]
        )
        return Choices(self.literals[histories], some, self.shortest[histories], self.longest[histories])

    def has_distance(self, begin: Integers, end: Integers) -> Mask:
        """Return whether a distance lies in ``[begin, end)``, ``int64[n, A]`` each, as ``bool[n, A]``."""
        if isinstance(self.distances, np.ndarray):
            return (begin < end) & (begin < self.distances[:, None])
        pairs = zip(self.distances, begin, end, strict=True)
        counts = [np.searchsorted(own, upper) - np.searchsorted(own, lower) for own, lower, upper in pairs]
        return np.stack(counts) > 0 if counts else np.zeros(begin.shape, np.bool_)

    def has_length(self, begin: Integers, end: Integers) -> Mask:
        """Return whether a length lies in ``[begin, end)``, ``int64[n, A]`` each, as ``bool[n, A]``."""
        lower = np.maximum(begin, self.shortest[:, None])  # int64[n, A]
        upper = np.minimum(end, self.longest[:, None] + 1)  # int64[n, A]
        return lower < upper


@dataclass(frozen=True)
class LZFields:
    """The fields of the tokens of a parse.

    >>> fields = LZFields(window=4096, min_length=4, max_length=19)
    >>> fields.sizes
    (3, 300, 16, 32, 12, 2)
    >>> fields.symbols(LZTokens.from_tokens([Token.literal(97), Token.match(distance=301, length=4)])).tolist()
    [[0, 97, 0, 0, 0, 0], [1, 284, 1, 12, 0, 0]]

    Attributes:
        window: The largest distance.
        min_length, max_length: Of matches.
    """

    window: int
    min_length: int
    max_length: int

    @cached_property
    def distances(self) -> Buckets:
        """Of distances, each less 1."""
        return Buckets(self.window)

    @cached_property
    def lengths(self) -> Buckets:
        """Of lengths, each less `min_length`."""
        return Buckets(self.max_length - self.min_length + 1)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """The alphabet of each field."""
        bucket, *digits = self.distances.sizes
        return NUM_KINDS, _NUM_BYTES + bucket, *digits, *self.lengths.sizes

    @property
    def num_fields(self) -> int:
        """Fields of a token, F."""
        return len(self.sizes)

    @property
    def length_field(self) -> int:
        """The number of the first field of the length."""
        return 1 + len(self.distances.sizes)

    def symbols(self, tokens: LZTokens, is_end: Mask | None = None) -> Integers:
        """Return the symbols of tokens, ``int64[n, F]``; those that ``is_end bool[n]`` marks are ends of documents."""
        kind = tokens.kind.astype(np.int64)  # int64[n]
        if is_end is not None:
            kind = np.where(is_end, END, kind)
        symbols = np.zeros((len(kind), self.num_fields), np.int64)
        symbols[:, 0] = kind
        literal, match = np.flatnonzero(kind == LITERAL), np.flatnonzero(kind == MATCH)  # int64[...] each
        symbols[literal, 1] = tokens.value[literal]
        symbols[match, 1 : self.length_field] = self.distances.symbols(tokens.value[match].astype(np.int64) - 1)
        symbols[match, 1] += _NUM_BYTES
        symbols[match, self.length_field :] = self.lengths.symbols(
            tokens.length[match].astype(np.int64) - self.min_length
        )
        return symbols

    def token(self, symbols: Sequence[int]) -> Token:
        """Return the token of ``F`` symbols, which is not the end of a document."""
        if symbols[0] == LITERAL:
            return Token.literal(symbols[1])
        row = np.array([symbols], np.int64)  # int64[1, F]
        length = int(self.lengths.numbers(row[:, self.length_field :])[0]) + self.min_length
        return Token.match(self.distance(symbols), length)

    def distance(self, symbols: Sequence[int]) -> int:
        """Return the distance of a match, of which the symbols of the distance, at least, are known."""
        row = np.array([symbols[1 : self.length_field]], np.int64)  # int64[1, 1 + digits]
        row[:, 0] -= _NUM_BYTES
        return int(self.distances.numbers(row)[0]) + 1

    def legal(self, symbols: Integers, field: int, choices: Choices) -> Mask:
        """Return the legal symbols of a field, ``bool[n, sizes[field]]``.

        Args:
            symbols: ``int64[n, F]``, of which those before the field are read.
            field: The field.
            choices: The tokens that may come next, n times.
        """
        legal = np.zeros((len(symbols), self.sizes[field]), np.bool_)
        if field == 0:
            legal[:, LITERAL], legal[:, MATCH], legal[:, END] = choices.literals.any(1), choices.has_match, True
            return legal
        kind = symbols[:, 0]  # int64[n]
        legal[:, 0] = kind != MATCH
        if field == 1:
            literal = np.flatnonzero(kind == LITERAL)
            legal[literal, :_NUM_BYTES] = choices.literals[literal]
        match = np.flatnonzero(kind == MATCH)
        own, some = symbols[match], choices.of(match)
        if field >= self.length_field:
            begin, end = self.lengths.ranges(own[:, self.length_field :], field - self.length_field)
            legal[match] = some.has_length(begin, end)
            return legal
        own = own[:, 1 : self.length_field] - np.array([_NUM_BYTES, *[0] * len(self.distances.shifts)])
        begin, end = self.distances.ranges(own, field - 1)
        legal[match, self.sizes[field] - begin.shape[1] :] = some.has_distance(begin, end)
        return legal

    def packed_legal(self, symbols: Integers, choices: Choices) -> npt.NDArray[np.uint8]:
        """Return the legal symbols of all fields, each given the earlier ones of ``symbols int64[n, F]``.

        Returns:
            ``uint8[n, (A + 7) // 8]``, with A = sum(sizes): bit v % 8, counted from the lowest, of byte v // 8 is set
            if symbol v is legal. Symbols are counted through all fields, one after the other.
        """
        masks = [self.legal(symbols, field, choices) for field in range(self.num_fields)]
        return np.packbits(np.concatenate(masks, axis=1), axis=1, bitorder="little")

    def any_match(self, rooms: Integers) -> Choices:
        """Return all tokens that can be decoded with ``rooms int64[n]`` bytes before them: matches reach no further."""
        ones = np.ones(len(rooms), np.int64)  # int64[n]
        literals = np.broadcast_to(np.True_, (len(rooms), _NUM_BYTES))
        return Choices(literals, np.minimum(rooms, self.window), 0 * ones, (self.lengths.count - 1) * ones)

    def packed_decodable(self, symbols: Integers, rooms: Integers) -> npt.NDArray[np.uint8]:
        """Return `packed_legal` of ``symbols int64[n, F]`` and `any_match` of ``rooms int64[n]``, from tables."""
        kind = symbols[:, 0]  # int64[n]
        match = np.flatnonzero(kind == MATCH)
        own = symbols[match]  # int64[m, F]
        own[:, 1] -= _NUM_BYTES
        cases = np.ones(symbols.shape, np.int64)  # symbol 0 alone
        cases[:, 0] = rooms > 0
        cases[:, 1] = np.where(kind == LITERAL, *self._value_cases)
        cases[match, 1 : self.length_field] = self.distances.counts_below(own[:, 1 : self.length_field], rooms[match])
        every = np.full(len(match), self.lengths.count)
        cases[match, self.length_field :] = self.lengths.counts_below(own[:, self.length_field :], every)
        packed = self._tables[0].take(cases[:, 0], axis=0)  # uint8[n, (A + 7) // 8]
        for field, table in enumerate(self._tables[1:], start=1):
            packed |= table.take(cases[:, field], axis=0)
        return packed

    @property
    def _value_cases(self) -> tuple[int, int]:
        """The rows of the value's table for literals and for the end of a document, which follow those for matches."""
        buckets = self.distances.sizes[0]
        return buckets + 1, buckets + 2

    @cached_property
    def _tables(self) -> list[npt.NDArray[np.uint8]]:
        """The sets of symbols that can be legal in each field, packed as in `packed_legal`, where other fields are 0.

        The kind has two sets, without matches and with them. For all other fields, set k is the first k symbols, which
        for the value are buckets; the value has two more sets, all bytes and symbol 0.
        """
        tables, first = [], 0
        for field, size in enumerate(self.sizes):
            if field == 0:
                sets = np.array([[kind != MATCH or case for kind in range(NUM_KINDS)] for case in (False, True)])
            elif field == 1:
                literal, end = self._value_cases
                sets = np.zeros((end + 1, size), np.bool_)
                sets[:literal, _NUM_BYTES:] = np.tri(literal, literal - 1, -1)
                sets[literal, :_NUM_BYTES] = sets[end, 0] = True
            else:
                sets = np.tri(size + 1, size, -1, dtype=np.bool_)
            legal = np.zeros((len(sets), sum(self.sizes)), np.bool_)
            legal[:, first : first + size] = sets
            tables.append(np.packbits(legal, axis=1, bitorder="little"))
            first += size
        return tables
