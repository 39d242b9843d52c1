"""Statistics of tokens, as short as they can be said."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence

Encode = Callable[[bytes], list[int]]


def counts(texts: Iterable[tuple[str, bytes]], encode: Encode) -> dict[str, tuple[int, int, int, int, int]]:
    """Group to (documents, bytes, characters, words, tokens)."""
    found: dict[str, tuple[int, int, int, int, int]] = {}
    for group, data in texts:
        text = data.decode("utf-8", "replace")
        row = (1, len(data), len(text), len(text.split()), len(encode(data)))
        found[group] = tuple(map(sum, zip(found.get(group, (0,) * 5), row, strict=True)))  # type: ignore[assignment]
    return found


def frequencies(texts: Iterable[tuple[str, bytes]], encode: Encode) -> Counter[int]:
    return Counter(i for _, data in texts for i in encode(data))


def reached(encode: Encode, alphabet: Collection[bytes], longest: int) -> set[int]:
    """The ids in the encodings of all texts of at most so many letters."""
    texts = (b"".join(t) for n in range(longest + 1) for t in itertools.product(alphabet, repeat=n))
    return {i for text in texts for i in encode(text)}


def unstable(encode: Encode, strings: Sequence[bytes], before: bytes, after: bytes) -> list[int]:
    """The ids of strings that are UTF-8 and whose own ids are not at the end (or beginning) with an addition."""
    found = []
    for i, string in enumerate(strings):
        if not string or not is_utf8(string):
            continue
        own, longer = encode(string), encode(before + string + after)
        if (longer[len(longer) - len(own) :] if before else longer[: len(own)]) != own:
            found.append(i)
    return found


def is_utf8(string: bytes) -> bool:
    return string.decode("utf-8", "ignore").encode() == string
