"""Completions of many unstable bytes, in time that hardly grows with their number (but with the ids to be given).

Encoding every candidate anew takes their number, tens of thousands after a space, times the length. But candidates are
the unstable bytes with different tails, and a tail decides little:

Pretokens. Within a long run of one character a named pattern is at a fixed point: it counts to three at most, so what
it has cut so far and what follows the run decide all else. So the text is cut with its runs shortened by a multiple of
six characters, and where no cut falls inside what is left of a run, the cuts of the text itself are those, moved.

Merges. A sequence of tokens is what merging gives iff every two neighbours are what merging gives of their bytes (a
merge across a border would be the first one across it, and then it happens with these two alone as well). So if merging
the end of a pretoken, from a border between two of its tokens on, begins with the token that began there before the
tail was known, then the tokens before that border stay what they were. Source: the lemma of GitHub's `bpe`.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence

from fastcompress.bpe import BPE
from fastcompress.pretokenizer import split_ends

Ids = tuple[int, ...]

_LONG_RUN = re.compile(r"(.)\1{63,}", re.DOTALL)
_KEPT_OF_RUN = 32  # characters, and up to five more
_NEAR_BORDER = 8  # characters of what is kept at either end of a run: a cut between them makes a run no fixed point


class _ShortenedText:
    """A text with its long runs of one character shortened, and where in the text a place of it is."""

    def __init__(self, text: str) -> None:
        self._insides: list[int] = []  # for each run, where what may not be cut begins, and where it ends
        self._removed = [0]  # bytes removed from the first so many runs
        parts: list[bytes] = []
        size = done = 0
        for run in _LONG_RUN.finditer(text):
            width = len(run[1].encode("utf-8"))
            num_kept = _KEPT_OF_RUN + (len(run[0]) - _KEPT_OF_RUN) % 6
            begin = size + len(text[done : run.start()].encode("utf-8"))
            parts.append((text[done : run.start()] + run[1] * num_kept).encode("utf-8"))
            size, done = begin + width * num_kept, run.end()
            self._insides += [begin + width * _NEAR_BORDER, size - width * _NEAR_BORDER]
            self._removed.append(self._removed[-1] + width * (len(run[0]) - num_kept))
        self.data = b"".join([*parts, text[done:].encode("utf-8")])

    def place(self, position: int) -> int | None:
        """The place in the text of one in `data`; None if it is inside a run."""
        number = bisect_right(self._insides, position)
        return None if number % 2 else position + self._removed[number // 2]


class LongCompletions:
    """How the unstable bytes are encoded with tails behind them: each time the tokens that it takes to cover them."""

    def __init__(self, tokenizer: BPE, unstable: bytes, ranks: Mapping[bytes, int]) -> None:
        self._tokenizer = tokenizer
        self._ranks = ranks
        self._unstable = unstable
        self._shortened = _ShortenedText(unstable.decode("utf-8"))
        self._longest = int(tokenizer.token_lengths.max())
        # The same for most tails: tokens of whole pretokens and where the last one begins, by the cuts between them;
        # its tokens, by its begin and what it takes of the tail; and by begin, how it is encoded without a tail.
        self._heads: dict[Ids, tuple[Ids, int] | None] = {}
        self._last: dict[tuple[int, bytes], Ids] = {}
        self._settled: dict[int, tuple[Ids, int, int]] = {}

    def of_tail(self, tail: bytes) -> Ids:
        """The completion for a tail. A text that is not UTF-8 is merged as one pretoken, as tiktoken does."""
        try:
            tail.decode("utf-8")
        except UnicodeDecodeError:
            return self._by_merges(0, tail)
        cuts, overhang = self._cuts(self._shortened.data, tail)
        if cuts not in self._heads:
            self._heads[cuts] = self._head([self._shortened.place(cut) for cut in cuts])
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
        """Where pretokens end before the last byte of data, and what the one that holds this byte takes of the tail."""
        ends = split_ends(data + tail, self._tokenizer.pattern).tolist()
        count = bisect_left(ends, len(data))
        return tuple(ends[:count]), tail[: ends[count] - len(data)]

    def _head(self, places: Sequence[int | None]) -> tuple[Ids, int] | None:
        """The tokens of pretokens that end at these places, and where the last one does; None if one is unknown."""
        ids: list[int] = []
        begin = 0
        for end in places:
            if end is None:
                return None
            ids += self._of_pretoken(self._unstable[begin:end])
            begin = end
        return tuple(ids), begin

    def _of_pretoken(self, pretoken: bytes) -> Ids:
        rank = self._ranks.get(pretoken)
        return tuple(self._tokenizer.encode_by_merges(pretoken)) if rank is None else (rank,)

    def _by_merges(self, begin: int, overhang: bytes) -> Ids:
        """The tokens that cover the unstable bytes from `begin` on, merged together with what follows them."""
        if begin not in self._settled:
            self._settled[begin] = self._settle(begin)
        settled, border, next_token = self._settled[begin]
        ids = self._tokenizer.encode_by_merges(self._unstable[border:] + overhang)
        if settled and ids[0] != next_token:
            settled, border = (), begin
            ids = self._tokenizer.encode_by_merges(self._unstable[begin:] + overhang)
        position, count = border, 0
        while position < len(self._unstable):
            position += int(self._tokenizer.token_lengths[ids[count]])
            count += 1
        return (*settled, *ids[:count])

    def _settle(self, begin: int) -> tuple[Ids, int, int]:
        """The tokens that hardly any tail changes, where they end, and the token behind them.

        Where the proof fails the text is merged as a whole, so how many they are is a matter of speed only.
        """
        if len(self._unstable) - begin <= 4 * self._longest:
            return (), begin, 0
        ids = self._tokenizer.encode_by_merges(self._unstable[begin:])
        border, count = begin, 0
        while border < len(self._unstable) - 3 * self._longest:
            border += int(self._tokenizer.token_lengths[ids[count]])
            count += 1
        return tuple(ids[:count]), border, ids[count]
