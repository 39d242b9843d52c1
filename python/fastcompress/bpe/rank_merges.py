"""Merges for a vocabulary that lists none: a rank file as a list of merges.

tiktoken merges any adjacent pair whose concatenation is a token, the lowest id first, the leftmost pair of these. A
list of merges gives each pair its own rank, so the pairs that make one token must be put in an order, too. It matters
only where two pairs that make the same token overlap: x y z with xy = yz = T. There the left pair must come first,
which is when T cut behind x comes before T cut behind y; and y is then a border of T (it begins and ends with y).

So of the two ways to cut a token of n bytes, behind its c-th and behind its (n - c)-th byte, c < n - c, the second
comes first if the token has a border of c bytes and none of n - c bytes; else the first does. With both borders the
token is one string repeated, and its cuts do not meet, since runs are merged from the left.
"""

from __future__ import annotations

from collections.abc import Mapping


def merges_of_ranks(ids: Mapping[bytes, int]) -> list[tuple[int, int]]:
    """(left, right) ids in rank order: every way to cut a token into two tokens, by the id of the token, ascending.

    O(bytes of all tokens times the length of a token).
    """
    merges: list[tuple[int, int]] = []
    for token, _ in sorted(ids.items(), key=lambda item: item[1]):
        for cut in _cuts(token):
            left, right = ids.get(token[:cut]), ids.get(token[cut:])
            if left is not None and right is not None:
                merges.append((left, right))
    return merges


def _cuts(token: bytes) -> list[int]:
    """Where to cut a token, in the order that the pairs are to be merged in."""
    size = len(token)
    cuts: list[int] = []
    for cut in range(1, size // 2 + 1):
        other = size - cut
        pair = [cut] if cut == other else [cut, other]
        short_border = token[:cut] == token[other:]
        long_border = token[:other] == token[cut:]
        cuts += reversed(pair) if short_border and not long_border else pair
    return cuts
