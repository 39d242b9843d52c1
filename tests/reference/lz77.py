"""The parse of cpp/fastcompress/lz77/FORMAT.md, sentence by sentence. None means unlimited."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    window: int | None = 65536
    min_length: int = 4
    max_length: int | None = 258
    depth: int | None = 32
    lazy: bool = False


Token = tuple[int, int, int]  # kind (0: literal, 1: match), byte or distance, length


def candidates(x: bytes, i: int, s: Settings) -> list[int]:
    """Nearest first."""
    m = s.min_length
    if i + m > len(x):
        return []
    first = 0 if s.window is None else max(0, i - s.window)
    occurrences = [j for j in range(i - 1, first - 1, -1) if x[j : j + m] == x[i : i + m]]
    return occurrences[: s.depth]


def length(x: bytes, i: int, j: int, s: Settings) -> int:
    most = len(x) - i if s.max_length is None else min(len(x) - i, s.max_length)
    n = 0
    while n < most and x[j + n] == x[i + n]:
        n += 1
    return n


def match(x: bytes, i: int, s: Settings) -> tuple[int, int]:
    """(length, distance) of the match at i; (0, 0) if there is none."""
    best = (0, 0)
    for j in candidates(x, i, s):
        if length(x, i, j, s) > best[0]:
            best = (length(x, i, j, s), i - j)
    return best


def parse(x: bytes, s: Settings) -> list[Token]:
    tokens: list[Token] = []
    i = 0
    while i < len(x):
        n, distance = match(x, i, s)
        defers = s.lazy and n != s.max_length and match(x, i + 1, s)[0] > n
        if n == 0 or defers:
            tokens.append((0, x[i], 1))
            i += 1
        else:
            tokens.append((1, distance, n))
            i += n
    return tokens


def reconstruct(tokens: list[Token]) -> bytes:
    x = bytearray()
    for kind, value, n in tokens:
        for _ in range(n):
            x.append(value if kind == 0 else x[-value])
    return bytes(x)


def is_legal(history: list[Token], token: Token, s: Settings) -> bool:
    """Greedy only; `history` is the parse of its bytes."""
    after = [*history, token]
    return parse(reconstruct(after), s) == after


def number_ids(n: int, first_bucket: int, first_extra: int) -> list[int]:
    """A number as its bucket and extra bits."""
    bucket = n.bit_length() - 1
    bits = bin(n)[3:]  # without "0b1"
    head = len(bits) % 4
    chunks = [bits[:head]] if head else []
    chunks += [bits[i : i + 4] for i in range(head, len(bits), 4)]
    return [first_bucket + bucket, *(first_extra + int(chunk, 2) for chunk in chunks)]


def buckets(tokens: list[Token], s: Settings) -> list[int]:
    """The ids of FORMAT.md, "Buckets"."""
    most_length = 2**32 - 1 if s.max_length is None else s.max_length
    most_distance = 2**32 - 1 if s.window is None else s.window
    lengths = 256
    recents = lengths + (most_length - s.min_length + 1).bit_length()
    distances = recents + 4
    extras = distances + most_distance.bit_length()
    recent = [1, 2, 3, 4]
    ids: list[int] = []
    for kind, value, n in tokens:
        if kind == 0:
            ids.append(value)
            continue
        ids += number_ids(n - s.min_length + 1, lengths, extras)
        if value in recent:
            ids.append(recents + recent.index(value))
            recent.remove(value)
        else:
            ids += number_ids(value, distances, extras)
            recent.pop()
        recent.insert(0, value)
    return ids


def lzp(x: bytes, order: int, min_length: int, max_length: int) -> list[int]:
    """The ids of FORMAT.md, "LZP"."""
    ids: list[int] = []
    i = 0
    while i < len(x):
        sources = [j for j in range(order, i) if x[j - order : j] == x[i - order : i]] if i >= order else []
        n = 0
        if sources:
            while n < max_length and i + n < len(x) and x[sources[-1] + n] == x[i + n]:
                n += 1
        if n >= min_length:
            ids.append(256 + n - min_length)
            i += n
        else:
            ids.append(x[i])
            i += 1
    return ids
