"""Rows of segments: symbols as `SegmentCodec` spells them, and columns that describe each segment where it ends.

The columns at symbol i are a function of the symbols of the row up to i, whatever decided where segments end: a segment
that occurs in its document before, as far as the row shows it, is described by the distance to its last occurrence. For
a match of a greedy parse that is the distance of the match, if its source is in the row.

The large network of a model has a fixed number of places, and texts have segments of all sizes. With q symbols for each
place on average, the k-th place of a row is taken by the first end of a segment, behind the place before, at a symbol
i + 1 >= (k - spare) q. So where segments are short for long, several share a place, and none is ever left out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from fastcompress.codec import Codec
from fastcompress.data.patches import PATCH_END
from fastcompress.data.rows import Row, TokenRows, token_row
from fastcompress.data.segments import END_OF_SEGMENT, SegmentCodec, Segmenter, spelled
from fastcompress.data.shards import TokenDataset

DISTANCE, LENGTH = "distance", "length"
_MEASURED_ROWS = 64


@dataclass(frozen=True)
class Places:
    """The places for segments in a row.

    Attributes:
        num_symbols: In a row, S.
        symbols_per_place: q, on average.
    """

    num_symbols: int
    symbols_per_place: int

    @property
    def num_spare(self) -> int:
        """Places by which a dense beginning may be ahead of the average."""
        return self.num_symbols // (16 * self.symbols_per_place) + 2

    @property
    def number(self) -> int:
        """All places."""
        return self.num_symbols // self.symbols_per_place + self.num_spare

    def is_free(self, num_taken: int, position: int) -> bool:
        """Return whether another place may be taken at a symbol."""
        return (num_taken + 1 - self.num_spare) * self.symbols_per_place <= position + 1


def segment_columns(ids: npt.NDArray[np.int64], places: Places, min_match: int) -> dict[str, npt.NDArray[np.int64]]:
    """Describe the segments of a row.

    Args:
        ids: ``int64[n]``: bytes, END_OF_SEGMENT, and END_OF_SEGMENT + 1 for the end of a document, which ends the
            segment before it, too.
        places: Of the row.
        min_match: Bytes from which on a segment is looked for in the text before it.

    Returns:
        ``int64[n]`` each, 0 but where a segment ends: PATCH_END, i + 1 if it takes a place; LENGTH, its bytes; and
        DISTANCE, those from its last occurrence before in its document to it, 0 if there is none.
    """
    text = ids[ids < END_OF_SEGMENT].astype(np.uint8).tobytes()
    columns = {name: np.zeros(len(ids), np.int64) for name in (PATCH_END, DISTANCE, LENGTH)}
    begin = document = num_taken = 0
    for num_marks, position in enumerate(np.flatnonzero(ids >= END_OF_SEGMENT).tolist()):
        end = position - num_marks  # in the text, as begin and document
        columns[LENGTH][position] = end - begin
        if end - begin >= min_match:
            found = text.rfind(text[begin:end], document, end - 1)
            columns[DISTANCE][position] = begin - found if found >= 0 else 0
        if places.is_free(num_taken, position):
            columns[PATCH_END][position] = position + 1
            num_taken += 1
        begin = end
        if ids[position] != END_OF_SEGMENT:
            document = end
    return columns


@dataclass(frozen=True)
class SegmentRows(TokenRows):
    """Rows of segments.

    Columns: those of `TokenRows` over the symbols of `SegmentCodec`, and those of `segment_columns`, of the inputs.

    Attributes:
        segmenter: Cuts documents.
        symbols_per_place: See `Places`.
        min_match: See `segment_columns`.
    """

    segmenter: Segmenter
    symbols_per_place: int
    min_match: int
    _densities: WeakKeyDictionary[TokenDataset, float] = field(
        default_factory=WeakKeyDictionary, init=False, repr=False, compare=False
    )

    @cached_property
    def spelling(self) -> Codec:
        """Bytes, and the ends of segments."""
        return SegmentCodec(self.codec, self.segmenter)

    @property
    def boundary_symbol(self) -> int:
        """The target that ends a segment and stands for no byte."""
        return END_OF_SEGMENT

    @property
    def places(self) -> Places:
        """The places for segments in a row."""
        return Places(self.context_length, self.symbols_per_place)

    @property
    def tokens_per_row(self) -> int:
        """As many as a row holds if its segments are of the size that it has places for.

        If they are longer, a row goes on into the text of the next; if they are shorter, it ends before that, and what
        is between is read in other epochs, whose rows begin elsewhere.
        """
        per_place = 1 if self.segmenter.has_whole_tokens else self.symbols_per_place - 1
        return max(1, self.context_length * per_place // self.symbols_per_place)

    @property
    def columns(self) -> dict[str, tuple[np.dtype[Any], tuple[int, ...]]]:
        """Type and shape of each column, by name."""
        own = dict.fromkeys((PATCH_END, DISTANCE, LENGTH), (np.dtype(np.int64), (self.context_length,)))
        return {**super().columns, **own}

    @cached_property
    def fingerprint(self) -> str:
        """The SHA-256 of everything that decides the rows, as 64 hexadecimal digits."""
        text = f"fastcompress segment rows, version 1\n{self.spelling.fingerprint}\n{self.context_length}\n"
        text += f"{self.symbols_per_place}\n{self.min_match}\n"
        return hashlib.sha256(text.encode()).hexdigest()

    def training_row(self, dataset: TokenDataset, begin: int) -> Row:
        """Return the S symbols from token `begin` on as input, cut as its document is, and their successors."""
        symbols = self._symbols(dataset, begin, self.context_length + 1)  # int64[S + 1]
        return self._described(token_row(symbols, np.ones(self.context_length, np.float32)))

    def scoring_rows(self, document: bytes, stride: int) -> Iterator[Row]:
        """Yield the windows of a document's symbols; its segments are those of the whole document."""
        return map(self._described, super().scoring_rows(document, stride))

    def num_events(self, dataset: TokenDataset) -> float:
        """The symbols of all bytes, by the share of bytes among the symbols of up to 64 rows, evenly spread."""
        if dataset not in self._densities:
            begins = sorted({number * dataset.num_tokens // _MEASURED_ROWS for number in range(_MEASURED_ROWS)})
            rows = [self._symbols(dataset, begin, self.context_length) for begin in begins]  # int64[S] each
            self._densities[dataset] = float(np.mean([(row < END_OF_SEGMENT).mean() for row in rows]))
        return dataset.num_bytes / max(self._densities[dataset], 1 / self.context_length)

    def _described(self, row: Row) -> Row:
        return {**row, **segment_columns(row["input"], self.places, self.min_match)}

    def _symbols(self, dataset: TokenDataset, begin: int, number: int) -> npt.NDArray[np.int64]:
        """Return the first so many symbols from token `begin` on, whose last token is followed by its first."""
        before = dataset.read(max(0, begin - self.segmenter.reach), begin)
        marks = np.flatnonzero(before == dataset.vocab_size)
        before = before[marks[-1] + 1 :] if len(marks) else before  # those of the same document
        stream = np.concatenate((before, _circle(dataset, begin, number + self.segmenter.lookahead)))
        skipped = int(self.codec.byte_lengths(before).sum())
        pieces: list[npt.NDArray[np.uint32]] = []
        first = found = 0
        for mark in [*np.flatnonzero(stream == dataset.vocab_size).tolist(), len(stream)]:
            text, ends = self.segmenter.cut(stream[first:mark])
            pieces += [spelled(text[skipped:], ends[ends > skipped] - skipped), np.array([self.end_of_document])]
            first, skipped, found = mark + 1, 0, found + len(pieces[-2]) + 1
            if found >= number:
                break
        return np.concatenate(pieces)[:number].astype(np.int64)


def _circle(dataset: TokenDataset, begin: int, number: int) -> npt.NDArray[np.uint32]:
    """Return so many tokens from `begin` on, again from the first one where they end: uint32[number]."""
    pieces = []
    while number > 0:
        end = min(begin + number, dataset.num_tokens)
        pieces.append(dataset.read(begin, end))
        begin, number = 0, number - (end - begin)
    return np.concatenate(pieces)
