"""Greedy dictionaries, as short as they can be said."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Collection, Sequence

from tests.reference.codebook import encode  # the longest string that begins the text, and so on


def is_canonical(strings: Collection[bytes], tokens: Sequence[bytes]) -> bool:
    return encode(strings, b"".join(tokens)) == list(tokens)


def is_legal(strings: Collection[bytes], before: Sequence[bytes], token: bytes) -> bool:
    """Whether no string is made of some last tokens and a beginning of this one. (All that are pending, and more.)"""
    ends = [b"".join(before[k:]) for k in range(len(before))]
    return not any(end + token[:n] in strings for end in ends for n in range(1, len(token) + 1))


def saved_tokens(strings: Collection[bytes], text: bytes) -> Counter[bytes]:
    """What each string saves wherever it is taken, against its longest prefix that is a string, to first order."""
    to_end = [0] * (len(text) + 1)
    for x in range(len(text) - 1, -1, -1):
        to_end[x] = 1 + to_end[x + len(encode(strings, text[x:])[0])]
    saved: Counter[bytes] = Counter()
    x = 0
    for s in encode(strings, text):
        if len(s) > 1:
            shorter = max(n for n in range(1, len(s)) if s[:n] in strings)
            saved[s] += to_end[x + shorter] - to_end[x + len(s)]
        x += len(s)
    return saved


def trained(
    strings: set[bytes], documents: Sequence[bytes], size: int, num_rounds: int, most_in_text: int = 12
) -> set[bytes]:
    """A set that grows and is exchanged as trainer.h says, without words, and with a share of a quarter."""

    def parse(some: set[bytes]) -> list[list[bytes]]:
        return [encode(some, text) for text in documents]

    def best_joined(some: set[bytes], most: int) -> list[bytes]:
        pairs = Counter(pair for tokens in parse(some) for pair in itertools.pairwise(tokens))
        counts: Counter[bytes] = Counter()
        for (a, b), count in pairs.items():
            if count >= 2 and a + b not in some and len(a + b) <= 255:
                counts[a + b] += count
        return sorted(counts, key=lambda s: (-counts[s], s))[:most]

    while len(strings) < size:
        strings = strings | set(best_joined(strings, min(len(strings) // 2, size - len(strings))))
    sets = []
    for left in range(num_rounds, -1, -1):
        sets.append(strings)
        added = best_joined(strings, size // 4 * left // num_rounds if num_rounds else 0)
        if not added:
            break
        every = strings | set(added)
        totals = [saved_tokens(every, text) for text in documents]
        saves = {s: sum(min(total[s], most_in_text) for total in totals) for s in every if len(s) > 1}
        longer = sorted(saves, key=lambda s: (-saves[s], len(s), s))
        strings = {s for s in every if len(s) == 1} | set(longer[: size - 256])
    return min(sets, key=lambda some: sum(map(len, parse(some))))
