"""LZ77 tokens as fields: a fixed number of symbols a token, each out of a small alphabet, in the order of prediction.

    kind    value                              digits of the distance    length           digits of the length
    0       byte                               0 ...                     0                0 ...
    1       256 + bucket of (distance - 1)     extra bits                bucket of        extra bits
                                                                         (length - min_length)
    2       0 (the end of a document)          0 ...                     0                0 ...

Numbers are written as in deflate (RFC 1951, 3.2.5): a bucket, of which there are four for each power of two, and the
extra bits that say which number of the bucket it is. The extra bits are symbols as well, up to eight bits each, the
highest first, so that a model learns them and pays for them.

Which symbols are legal in a field follows from the earlier fields of the token and from `Choices`, the tokens that may
come next: a symbol is legal if some of these tokens begin with it. A field with one legal symbol costs nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from fastcompress.lz77 import LITERAL, MATCH, LZTokens, Token

END = 2  # the kind of the end of a document, beside LITERAL and MATCH
NUM_KINDS = 3
_NUM_BYTES = 256
_SMALL = 8  # numbers below it are buckets of their own
_DIGIT_BITS = 8  # most bits of a digit

Integers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Buckets:
    """Numbers in [0, count) as symbols: a bucket, and the digits of the extra bits.

    >>> buckets = Buckets(65536)
    >>> buckets.sizes, buckets.symbols(np.array([5, 1000])).tolist()
    ((60, 64, 128), [[5, 0, 0], [35, 0, 104]])

    Attributes:
        count: The number of numbers, at least 1.
    """

    count: int

    @cached_property
    def _all(self) -> tuple[Integers, Integers]:
        """First number and extra bits of each bucket, int64[buckets] each."""
        firsts, bits, most = list(range(min(_SMALL, self.count))), [0] * min(_SMALL, self.count), 1
        while (4 << most) < self.count:
            for mantissa in range(4, 8):
                if mantissa << most < self.count:
                    firsts.append(mantissa << most)
                    bits.append(most)
            most += 1
        return np.array(firsts, np.int64), np.array(bits, np.int64)

    @cached_property
    def shifts(self) -> tuple[int, ...]:
        """The bits below each digit."""
        most = int(self._all[1].max())
        num_digits = -(-most // _DIGIT_BITS)
        width = -(-most // num_digits) if num_digits else 0
        return tuple(width * digit for digit in reversed(range(num_digits)))

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """The alphabets: of the bucket, and of each digit."""
        firsts, bits = self._all
        bounds = (int(bits.max()), *self.shifts)
        return len(firsts), *(1 << (upper - lower) for upper, lower in pairwise(bounds))

    def symbols(self, numbers: Integers) -> Integers:
        """Return the symbols of ``numbers int64[n]``, ``int64[n, 1 + digits]``."""
        firsts, _ = self._all
        bucket = np.searchsorted(firsts, numbers, side="right") - 1  # int64[n]
        extra = numbers - firsts[bucket]  # int64[n]
        digits = [(extra >> shift) % size for shift, size in zip(self.shifts, self.sizes[1:], strict=True)]
        return np.stack([bucket, *digits], axis=1)

    def numbers(self, symbols: Integers) -> Integers:
        """Return the numbers of ``symbols int64[n, 1 + digits]``, ``int64[n]``."""
        numbers: Integers = self._all[0][symbols[:, 0]]
        for digit, shift in enumerate(self.shifts):
            numbers = numbers + (symbols[:, 1 + digit] << shift)
        return numbers

    def ranges(self, symbols: Integers, field: int) -> tuple[Integers, Integers]:
        """Return the numbers ``[begin, end)`` that begin with the given symbols and with each symbol of a field.

        Args:
            symbols: ``int64[n, 1 + digits]``, of which those before the field are read.
            field: 0 for the bucket, or the number of a digit, from 1.

        Returns:
            ``int64[n, size]`` twice; ``begin >= end`` for a symbol with which no number goes on.
        """
        firsts, bits = self._all
        ends = np.minimum(firsts + (1 << bits), self.count)  # int64[buckets]
        if field == 0:
            return np.broadcast_to(firsts, (len(symbols), len(firsts))), np.broadcast_to(
                ends, (len(symbols), len(ends))
            )
        bucket, begin = symbols[:, 0], firsts[symbols[:, 0]]  # int64[n] each
        for digit, shift in enumerate(self.shifts[: field - 1]):
            begin = begin + (symbols[:, 1 + digit] << shift)
        shift = self.shifts[field - 1]
        starts = begin[:, None] + (np.arange(self.sizes[field]) << shift)  # int64[n, size]
        return starts, np.minimum(starts + (1 << shift), ends[bucket, None])


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
