"""BPE by its definition: every step looks at everything again. Pretokens come from the pattern's regular expression."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable

import regex

from fastcompress.pretokenizer import PATTERNS, SPLITS


def split_text(text: str, pattern: str) -> list[str]:
    """The regex's matches, or those of several regexes in turn. Rust's ``$`` is the text's end, in Python ``\\Z``."""
    if pattern in SPLITS:
        return split_in_turn(text, SPLITS[pattern])
    if not PATTERNS[pattern]:
        return [text] if text else []
    matches: list[str] = regex.findall(PATTERNS[pattern].replace("++$", r"++\Z"), text)
    return matches


def split_in_turn(text: str, regexes: Iterable[str]) -> list[str]:
    """Each regex cuts every piece so far into its matches and what stands between them."""
    pieces = [text]
    for pattern in regexes:
        pieces = [part for piece in pieces for part in regex.split(f"({pattern})", piece) if part]
    return pieces


def split(text: str, pattern: str) -> list[bytes]:
    """The pretokens of a text."""
    return [piece.encode() for piece in split_text(text, pattern)]


def merge_pair(ids: tuple[int, ...], pair: tuple[int, int], result: int) -> tuple[int, ...]:
    """Replaces each occurrence of the pair, from left to right."""
    merged: list[int] = []
    i = 0
    while i < len(ids):
        if ids[i : i + 2] == pair:
            merged.append(result)
            i += 2
        else:
            merged.append(ids[i])
            i += 1
    return tuple(merged)


def train(texts: list[str], pattern: str, num_merges: int) -> list[tuple[int, int, int]]:
    """(left, right, result): the most frequent pair each time, the smallest (left, right) among equals."""
    words = Counter(tuple(piece) for text in texts for piece in split(text, pattern))
    merges: list[tuple[int, int, int]] = []
    while len(merges) < num_merges:
        counts: Counter[tuple[int, int]] = Counter()
        for word, count in words.items():
            for pair in itertools.pairwise(word):
                counts[pair] += count
        if not counts:
            break
        pair = min(counts, key=lambda p: (-counts[p], p))
        result = 256 + len(merges)
        merges.append((*pair, result))
        merged: Counter[tuple[int, ...]] = Counter()
        for word, count in words.items():
            merged[merge_pair(word, pair, result)] += count
        words = merged
    return merges


def encode(text: str, pattern: str, merges: list[tuple[int, int, int]]) -> list[int]:
    """Applies every merge in the order learned to every pretoken."""
    ids: list[int] = []
    for piece in split(text, pattern):
        word = tuple(piece)
        for left, right, result in merges:
            word = merge_pair(word, (left, right), result)
        ids += word
    return ids
