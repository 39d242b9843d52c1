"""Rows of LZ77 tokens: the fields of each token, the symbols that may come next, and where patches of tokens end."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from fastcompress.codec import Codec, LZ77Codec
from fastcompress.data.lz_buckets import Integers
from fastcompress.data.lz_fields import END, Choices, LZFields
from fastcompress.data.patches import PATCH_END, check_patch_sizes, ends_of_cuts
from fastcompress.data.rows import WEIGHT, Row, TokenRows, document_before, scoring_windows, spell
from fastcompress.data.shards import TokenDataset
from fastcompress.errors import ConfigError
from fastcompress.lz77 import MATCH, IncrementalParser, LZTokens

TARGET_LEGAL = "target_legal"
GROUPINGS = ("fixed", "match")
_MASKS_AT_ONCE = 64  # each lists all legal distances until it is packed


def lz_codec(codec: Codec) -> LZ77Codec:
    """Return the codec as what it must be. Raises ConfigError if its ids are not whole LZ77 tokens."""
    if not isinstance(codec, LZ77Codec) or codec.alphabet != "fields":
        raise ConfigError(f"codec is {codec.name}; it must be lz77-fields, whose ids are whole LZ77 tokens")
    return codec


def fields_of(codec: LZ77Codec) -> LZFields:
    """Return the fields of the tokens of a codec."""
    params = codec.params
    assert params.window is not None  # the alphabet "fields" has both limits
    assert params.max_length is not None
    return LZFields(params.window, params.min_length, params.max_length)


def token_patch_ends(kinds: Integers, grouping: str, smallest: int, largest: int) -> Integers:
    """Return with which tokens patches become known, and where they end.

    Args:
        kinds: ``int64[n]``, LITERAL, MATCH or END.
        grouping: "fixed": as many tokens a patch as may be, `smallest`; "match": a patch ends with a match, so that it
            is literals and the match after them, as a sequence of LZ4 is; or with the end of a document.
        smallest, largest: Tokens of a patch.

    Returns:
        ``int64[n]``: where a patch becomes known with token i, its end, i + 1; elsewhere 0.
    """
    after = np.arange(1, len(kinds) + 1)  # int64[n]
    if grouping == "fixed":
        return np.where(after % smallest == 0, after, 0)
    cuts = np.maximum.accumulate(np.where((kinds == MATCH) | (kinds == END), after, 0))
    return ends_of_cuts(cuts, smallest, largest)


@dataclass(frozen=True)
class LZRows(TokenRows):
    """Rows of LZ77 tokens: event t predicts the fields of the token that follows those up to and including input t.

    Columns: ``input`` and ``target``, int64[S, F], the symbols of the fields (``lz_fields.py``);
    ``target_legal``, uint8[S, (A + 7) // 8], where A counts the symbols of all fields: bit v % 8, counted from the
    lowest, of byte v // 8 is set if the target's field may have symbol v, given the target's earlier fields and all
    tokens before; ``patch_end``, int64[S]: where a patch of inputs becomes known with an input, its end, else 0; and
    weight, float32[S].

    A document is its end, its tokens, and its end, as in `TokenRows`. Without ``canonical``, all tokens are legal that
    can be decoded: matches do not reach beyond the beginning of their document. Many sequences of such tokens decode to
    the same bytes, of which one is scored, so the bits of the bytes have an upper bound only. With ``canonical``, only
    the tokens are legal that the greedy parse of some continuation has next (`IncrementalParser.is_legal`). Such parses
    are prefix-closed: each sequence of legal tokens is the parse of its bytes, and no other sequence has their
    probability, so the bits are exact.

    Attributes:
        grouping: "fixed" or "match" (`token_patch_ends`).
        min_tokens, max_tokens: The sizes of patches.
        canonical: Only tokens of greedy parses are legal. Takes about a millisecond a token at 16 kB of text before it,
            and each training row parses its document from the beginning.
    """

    grouping: str
    min_tokens: int
    max_tokens: int
    canonical: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        parse = lz_codec(self.codec).params.parse
        if self.grouping not in GROUPINGS:
            raise ConfigError(f"grouping is {self.grouping!r}; it must be one of {', '.join(GROUPINGS)}")
        check_patch_sizes("tokens", self.min_tokens, self.max_tokens)
        if self.canonical and parse != "greedy":
            raise ConfigError(f"parse is {parse!r}; it must be 'greedy', whose legal tokens are known")

    @cached_property
    def fields(self) -> LZFields:
        """The fields of the tokens."""
        return fields_of(self.lz77)

    @property
    def lz77(self) -> LZ77Codec:
        """The codec."""
        return lz_codec(self.codec)

    @property
    def is_exact(self) -> bool:
        """Whether one sequence of tokens has all of the probability that its bytes have."""
        return self.canonical

    @property
    def num_patches(self) -> int:
        """The largest number of patches in a row."""
        return self.context_length // self.min_tokens

    @property
    def columns(self) -> dict[str, tuple[np.dtype[Any], tuple[int, ...]]]:
        """Type and shape of each column, by name."""
        events, integers = self.context_length, np.dtype(np.int64)
        return {
            "input": (integers, (events, self.fields.num_fields)),
            "target": (integers, (events, self.fields.num_fields)),
            TARGET_LEGAL: (np.dtype(np.uint8), (events, (sum(self.fields.sizes) + 7) // 8)),
            PATCH_END: (integers, (events,)),
            WEIGHT: (np.dtype(np.float32), (events,)),
        }

    @property
    def padding(self) -> dict[str, int]:
        """In the padding, every symbol is legal; the tokens there are literals."""
        return {TARGET_LEGAL: 255}

    @cached_property
    def fingerprint(self) -> str:
        """The SHA-256 of everything that decides the rows, as 64 hexadecimal digits."""
        text = f"fastcompress lz rows, version 1\n{self.codec.fingerprint}\n{self.context_length}\n"
        text += f"{self.grouping}\n{self.min_tokens}\n{self.max_tokens}\n{self.canonical}\n"
        return hashlib.sha256(text.encode()).hexdigest()

    def training_row(self, dataset: TokenDataset, begin: int) -> Row:
        """Return the row from token `begin` on; of the document that it begins in, earlier tokens are read too."""
        row = super().training_row(dataset, begin)
        sequence = np.concatenate((row["input"], row["target"][-1:]))  # int64[S + 1]
        before = document_before(dataset, begin, self.end_of_document)
        return {**self._with_ends(self._symbols(sequence, before)), WEIGHT: row[WEIGHT]}

    def scoring_rows(self, document: bytes, stride: int) -> Iterator[Row]:
        """Yield the windows of a document; patches begin with each window, as in training."""
        end = [self.end_of_document]
        sequence = np.concatenate((end, spell(self.codec, document), end)).astype(np.int64)  # int64[n + 2]
        whole = self._symbols(sequence, ())
        for begin, scored, stop in scoring_windows(len(sequence) - 1, self.context_length, stride):
            weight = np.zeros(stop - begin, np.float32)
            weight[scored - begin :] = 1.0
            part = {name: column[begin:stop].copy() for name, column in whole.items()}
            yield {**self._with_ends(part), WEIGHT: weight}

    def choices(self, parser: IncrementalParser) -> Choices:
        """Return the legal tokens after the bytes of a parser; matches with any length."""
        most = np.array([self.fields.lengths.count - 1])
        distances = parser.legal_distances().astype(np.int64) - 1  # int64[k]
        return Choices(parser.legal_literals()[None], [distances], 0 * most, most)

    def with_distance(self, choices: Choices, parser: IncrementalParser, distance: int) -> Choices:
        """Return choices with the lengths that matches of a legal distance may have after the bytes of a parser."""
        lengths = parser.legal_lengths(distance)
        assert lengths is not None, "there is no legal match of this distance"
        shortest, longest = lengths
        assert longest is not None  # with the alphabet "fields"
        least = self.fields.min_length
        return dataclasses.replace(choices, shortest=np.array([shortest - least]), longest=np.array([longest - least]))

    def _symbols(self, sequence: Integers, before: Iterable[npt.NDArray[np.uint32]]) -> Row:
        """Return the columns of a sequence of ids.

        Args:
            sequence: ``int64[n + 1]``, the inputs and the last target.
            before: The ids before the sequence in the document of its first one, in parts, the last part first.
        """
        is_end = sequence == self.end_of_document  # bool[n + 1]; the tokens of ends say nothing
        tokens = self.lz77.columns(np.where(is_end, 0, sequence))
        symbols = self.fields.symbols(tokens, is_end)  # int64[n + 1, F]
        if self.canonical:
            legal = self._canonical(tokens, is_end, before, symbols[1:])
        else:
            lengths = np.where(is_end, 0, tokens.length)[:-1]
            legal = self.fields.packed_decodable(symbols[1:], self._rooms(lengths, is_end[:-1], before))
        return {"input": symbols[:-1].copy(), "target": symbols[1:].copy(), TARGET_LEGAL: legal}

    def _rooms(
        self, lengths: Integers, is_end: npt.NDArray[np.bool_], before: Iterable[npt.NDArray[np.uint32]]
    ) -> Integers:
        """Return the bytes up to and including each input since its document began: ``int64[n]``, as the lengths are.

        They are too few by whatever lies further before the first input than any match reaches.
        """
        room = 0
        for part in before:
            room += int(self.lz77.byte_lengths(part).sum())
            if room >= self.fields.window:
                break
        offsets = room + np.cumsum(lengths, dtype=np.int64)
        return offsets - np.maximum.accumulate(np.where(is_end, offsets, 0))

    def _canonical(
        self,
        tokens: LZTokens,
        is_end: npt.NDArray[np.bool_],
        before: Iterable[npt.NDArray[np.uint32]],
        targets: Integers,
    ) -> npt.NDArray[np.uint8]:
        """Return the column ``target_legal`` of ``targets int64[n, F]``, the first of which follows the first token."""
        parser = IncrementalParser(self.lz77.params)
        parser.append(self.lz77.decode(np.concatenate([np.zeros(0, np.uint32), *list(before)[::-1]])))
        rows = []
        for begin in range(0, len(targets), _MASKS_AT_ONCE):
            some = targets[begin : begin + _MASKS_AT_ONCE]
            choices = []
            for index, target in enumerate(some, start=begin):
                if is_end[index]:
                    parser = IncrementalParser(self.lz77.params)
                else:
                    parser.push_token(tokens[index])
                choices.append(self.choices(parser))
                if target[0] == MATCH:
                    choices[-1] = self.with_distance(choices[-1], parser, self.fields.distance(target.tolist()))
            rows.append(self.fields.packed_legal(some, Choices.joined(choices)))
        return np.concatenate(rows)

    def _with_ends(self, row: Row) -> Row:
        return {**row, PATCH_END: self.patch_ends(row["input"][:, 0])}

    def patch_ends(self, kinds: Integers) -> Integers:
        """Return where patches of inputs become known, ``int64[n]``, from their kinds ``int64[n]``."""
        return token_patch_ends(kinds, self.grouping, self.min_tokens, self.max_tokens)
