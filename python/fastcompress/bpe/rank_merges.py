"""Lists of merges that are equivalent to the ranks of a rank file, which lists none.

`merges_of_ranks` gives all of them, for any ranks; `learned_merges` gives those that training made, for ranks that
training could have made.

tiktoken merges any adjacent pair whose concatenation is a token, the lowest id first, the leftmost pair of these. A
list of merges gives each pair its own rank, so the pairs that make one token must be put in an order, too. The order
matters only where two pairs that make the same token overlap: x y z with xy = yz = T. There the left pair must come
first, that is, T cut after x must come before T cut after y; and y is then a border of T (T begins and ends with y).

So of the two ways to cut a token of n bytes, after its c-th and after its (n - c)-th byte, c < n - c, the second comes
first if the token has a border of c bytes and none of n - c bytes; otherwise the first does. With both borders the
token is one string repeated, and its cuts do not meet, since runs are merged from the left.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping

from fastcompress.errors import ConfigError


def merges_of_ranks(ids: Mapping[bytes, int]) -> list[tuple[int, int]]:
    """Return every way to cut a token into two tokens, as (left, right) ids in rank order.

    They are sorted by the id of the token that they make. Takes O(bytes of all tokens times the length of a token).
    """
    merges: list[tuple[int, int]] = []
    for token, _ in sorted(ids.items(), key=lambda item: item[1]):
        for cut in _cuts(token):
            left, right = ids.get(token[:cut]), ids.get(token[cut:])
            if left is not None and right is not None:
                merges.append((left, right))
    return merges


def _cuts(token: bytes) -> list[int]:
    """Return the places to cut a token at, in the order in which the pairs are to be merged."""
    size = len(token)
    cuts: list[int] = []
    for cut in range(1, size // 2 + 1):
        other = size - cut
        pair = [cut] if cut == other else [cut, other]
        short_border = token[:cut] == token[other:]
        long_border = token[:other] == token[cut:]
        cuts += reversed(pair) if short_border and not long_border else pair
    return cuts


def learned_merges(ids: Mapping[bytes, int]) -> list[tuple[int, int, int]]:
    """Return the one merge that makes each token of more than a byte, as (left, right, result), by the result's id.

    It is the pair of tokens that remains after merging the token's bytes by lower ids alone. With these merges every
    text has the ids that the ranks give it. (When a text is merged by ranks, the ids of merges never descend: a pair
    that makes a lower id than the merge before it would have come about by lower ids alone, and been merged earlier. So
    where a token is made, its bytes have seen the merges of lower ids only, and all of those.)

    Raises ConfigError, naming the first token for which there is no such pair: no training made these ranks. Takes at
    worst O(bytes of all tokens times the square of a token's length).
    """
    merges: list[tuple[int, int, int]] = []
    for token, result in sorted(ids.items(), key=lambda item: item[1]):
        if len(token) == 1:
            continue
        parts = _merged_below(token, result, ids)
        if len(parts) != 2:
            raise ConfigError(
                f"token {result}, {token!r}, is not the merge of two lower tokens: merging its bytes by lower ids "
                f"gives {parts}. These ranks are not in the order in which merges were learned, so training cannot "
                "continue from them"
            )
        left, right = parts
        merges.append((ids[left], ids[right], result))
    return merges


def _merged_below(token: bytes, limit: int, ids: Mapping[bytes, int]) -> list[bytes]:
    """Merge the bytes of a token by merges that make ids below a limit, the lowest and leftmost first."""
    parts = [token[i : i + 1] for i in range(len(token))]
    while len(parts) > 2:  # the last two make the token itself
        results = [ids.get(left + right, limit) for left, right in itertools.pairwise(parts)]
        least = min(results)
        if least >= limit:
            break
        place = results.index(least)
        parts[place : place + 2] = [parts[place] + parts[place + 1]]
    return parts
