"""Codebooks, as short as they can be said."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator


def encode(strings: Collection[bytes], text: bytes) -> list[bytes]:
    """The longest string that begins the text, and so on. `strings`: a set, in lexicographic order they are the ids."""
    tokens = []
    while text:
        token = max((text[:n] for n in range(1, len(text) + 1) if text[:n] in strings), key=len)
        tokens.append(token)
        text = text[len(token) :]
    return tokens


def encode_within(strings: Collection[bytes], pieces: list[bytes]) -> list[bytes]:
    return [token for piece in pieces for token in encode(strings, piece)]


def is_legal_step(strings: Collection[bytes], token: bytes, after: bytes) -> bool:
    return token + after[:1] not in strings


def is_prefix_closed(strings: Collection[bytes]) -> bool:
    return all(len(s) == 1 or s[:-1] in strings for s in strings) and all(bytes([b]) in strings for b in range(256))


def sequences(tokens: list[bytes], max_bytes: int) -> Iterator[list[bytes]]:
    """Every sequence of tokens of at most so many bytes."""
    yield []
    for token in tokens:
        if len(token) <= max_bytes:
            for rest in sequences(tokens, max_bytes - len(token)):
                yield [token, *rest]


def likeliest(cost: Callable[[bytes], list[int]], num_strings: int, longest: int) -> set[bytes]:
    """The single bytes, and of all strings of at most `longest` bytes made of bytes that the least costs allow, the
    cheapest. cost(context): of each byte after it."""
    first = cost(b"")
    costs = {bytes([b]): first[b] for b in range(256)}
    level = list(costs)
    for _ in range(longest - 1):
        level = [
            s + bytes([b])
            for s in level
            for b in range(256)
            if costs.setdefault(s + bytes([b]), costs[s] + cost(s)[b]) >= 0
        ]
    longer = sorted((s for s in costs if len(s) > 1), key=lambda s: (costs[s], s))
    return {bytes([b]) for b in range(256)} | set(longer[: num_strings - 256])
