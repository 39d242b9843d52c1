"""Completions of many unstable bytes, in time that hardly depends on their number, apart from the ids to return.

Encoding each candidate from scratch would take the number of candidates, tens of thousands after a space, times their
length. But candidates are the same unstable bytes with different tails, and a tail changes little:

Pretokens. Inside a long run of one character, a named pattern reaches a fixed point: it counts to at most three, so
everything after the run depends only on the cuts before it and the text after it. Therefore the text is split with its
runs shortened by a multiple of six characters. If no cut falls inside the rest of a run, the cuts of the original text
are the same ones, shifted.

Merges. A sequence of tokens is the result of merging if and only if every two adjacent tokens are the result of merging
their own bytes. (A merge across a boundary would be the first one across it, and would happen with these two tokens
alone as well.) So take a boundary between two tokens of a pretoken, and merge the bytes from there on together with a
tail. If the result begins with the same token as without the tail, then the tokens before the boundary do not change.
Source: the lemma in the documentation of GitHub's `bpe`.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence

from fastcompress.bpe import BPE
from fastcompress.pretokenizer import split_ends

Ids = tuple[int, ...]

_LONG_RUN = re.compile(r"(.)\1{63,}", re.DOTALL)
_KEPT_OF_RUN = 32  # characters that remain of a run, and up to five more
_NEAR_EDGE = 8  # characters at either end of these, among which cuts are allowed; elsewhere the run has a fixed point


class _ShortenedText:
    """A text whose long runs of one character are shortened, with the positions in the original text."""

    def __init__(self, text: str) -> None:
        self._insides: list[int] = []  # for each run, the begin and end of the part in which no cut is allowed
        self._removed = [0]  # bytes removed before each run, and in all
        parts: list[bytes] = []
        size = done = 0
        for run in _LONG_RUN.finditer(text):
            width = len(run[1].encode("utf-8"))
            num_kept = _KEPT_OF_RUN + (len(run[0]) - _KEPT_OF_RUN) % 6
            begin = size + len(text[done : run.start()].encode("utf-8"))
            parts.append((text[done : run.start()] + run[1] * num_kept).encode("utf-8"))
            size, done = begin + width * num_kept, run.end()
            self._insides += [begin + width * _NEAR_EDGE, size - width * _NEAR_EDGE]
            self._removed.append(self._removed[-1] + width * (len(run[0]) - num_kept))
        self.data = b"".join([*parts, text[done:].encode("utf-8")])

    def original_position(self, position: int) -> int | None:
        """Return the position in the original text for a position in `data`, or None inside a run."""
        number = bisect_right(self._insides, position)
        return None if number % 2 else position + self._removed[number // 2]


class LongCompletions:
    """The completions of unstable bytes for given tails: the tokens that cover the unstable bytes."""

    def __init__(self, tokenizer: BPE, unstable: bytes, ranks: Mapping[bytes, int]) -> None:
        self._tokenizer = tokenizer
        self._ranks = ranks
        self._unstable = unstable
        self._shortened = _ShortenedText(unstable.decode("utf-8"))
        self._longest = int(tokenizer.token_lengths.max())
        # Results that most tails share. By the cuts: the tokens of all pretokens but the last, and its begin. By that
        # begin and the part of the tail that is in it: the tokens of the last pretoken. By its begin: `_settle`.
        self._heads: dict[Ids, tuple[Ids, int] | None] = {}
        self._last: dict[tuple[int, bytes], Ids] = {}
        self._settled: dict[int, tuple[Ids, int, int]] = {}

    def of_tail(self, tail: bytes) -> Ids:
        """Return the completion for a tail. A text that is not UTF-8 is merged as one pretoken, as in tiktoken."""
        try:
            tail.decode("utf-8")
        except UnicodeDecodeError:
            return self._by_merges(0, tail)
        cuts, overhang = self._cuts(self._shortened.data, tail)
        if cuts not in self._heads:
            self._heads[cuts] = self._head([self._shortened.original_position(cut) for cut in cuts])
        head = self._heads[cuts]
        if head is None:
            cuts, overhang = self._cuts(self._unstable, tail)
            head = self._head(cuts)
            assert head is not None
        ids, begin = head
        last = self._last.get((begin, overhang))
        if last is None:
            rank = self._ranks.get(self._unstable[begin:] + overhang)
            last = self._by_merges(begin, overhang) if rank is None else (rank,)
            self._last[begin, overhang] = last
        return ids + last

    def _cuts(self, data: bytes, tail: bytes) -> tuple[Ids, bytes]:
        """Return the ends of all pretokens before that of `data`'s last byte, and the latter's part of the tail."""
        ends = split_ends(data + tail, self._tokenizer.pattern).tolist()
        count = bisect_left(ends, len(data))
        return tuple(ends[:count]), tail[: ends[count] - len(data)]

    def _head(self, pretoken_ends: Sequence[int | None]) -> tuple[Ids, int] | None:
        """Return the tokens of the pretokens with these ends, and the last end; None if one of the ends is None."""
        ids: list[int] = []
        begin = 0
        for end in pretoken_ends:
            if end is None:
                return None
            ids += self._of_pretoken(self._unstable[begin:end])
            begin = end
        return tuple(ids), begin

    def _of_pretoken(self, pretoken: bytes) -> Ids:
        rank = self._ranks.get(pretoken)
        return tuple(self._tokenizer.encode_by_merges(pretoken)) if rank is None else (rank,)

    def _by_merges(self, begin: int, overhang: bytes) -> Ids:
        """Return the tokens that cover the unstable bytes from `begin` on, merged with the bytes after them."""
        if begin not in self._settled:
            self._settled[begin] = self._settle(begin)
        settled, boundary, next_token = self._settled[begin]
        ids = self._tokenizer.encode_by_merges(self._unstable[boundary:] + overhang)
        if settled and ids[0] != next_token:
            settled, boundary = (), begin
            ids = self._tokenizer.encode_by_merges(self._unstable[begin:] + overhang)
        position, count = boundary, 0
        while position < len(self._unstable):
            position += int(self._tokenizer.token_lengths[ids[count]])
            count += 1
        return (*settled, *ids[:count])

    def _settle(self, begin: int) -> tuple[Ids, int, int]:
        """Return the tokens that hardly any tail changes, the position of their end, and the token after them.

        If a tail does change them, the whole pretoken is merged again, so their number affects speed only.
        """
        if len(self._unstable) - begin <= 4 * self._longest:
            return (), begin, 0
        ids = self._tokenizer.encode_by_merges(self._unstable[begin:])
        boundary, count = begin, 0
        while boundary < len(self._unstable) - 3 * self._longest:
            boundary += int(self._tokenizer.token_lengths[ids[count]])
            count += 1
        return tuple(ids[:count]), boundary, ids[count]
