"""BPE by its definition: every step looks at everything again. Pretokens come from the pattern's regular expression."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable

import regex

from fastcompress.pretokenizer import PATTERNS, SPLITS


def split_text(text: str, pattern: str) -> list[str]:
    """The matches of a regex, given or a pattern's, or of several in turn. Rust's ``$`` is the text's end, ``\\Z``."""
    if pattern in SPLITS:
        return split_in_turn(text, SPLITS[pattern])
    expression = PATTERNS.get(pattern, pattern)
    if not expression:
        return [text] if text else []
    matches: list[str] = regex.findall(expression.replace("++$", r"++\Z"), text)
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


def train(
    texts: list[str],
    pattern: str,
    num_merges: int,
    *,
    min_frequency: int = 1,
    max_token_length: int | None = None,
    base: list[tuple[int, int, int]] | None = None,
    first_id: int = 256,
) -> list[tuple[int, int, int]]:
    """(left, right, result): the most frequent pair each time, the smallest (left, right) among equals.

    base: merges to go on from, which are not returned; new ids begin at first_id.
    """
    spelled = dict.fromkeys(range(256), 1)  # the length of each id
    words = Counter(tuple(piece) for text in texts for piece in split(text, pattern))
    merges = list(base or [])
    for left, right, result in merges:
        spelled[result] = spelled[left] + spelled[right]
        words = merge_everywhere(words, (left, right), result)
    num_given = len(merges)
    while len(merges) - num_given < num_merges:
        counts: Counter[tuple[int, int]] = Counter()
        for word, count in words.items():
            for pair in itertools.pairwise(word):
                if max_token_length is None or spelled[pair[0]] + spelled[pair[1]] <= max_token_length:
                    counts[pair] += count
        if not counts:
            break
        left, right = pair = min(counts, key=lambda p: (-counts[p], p))
        if counts[pair] < min_frequency:
            break
        result = first_id + len(merges) - num_given
        merges.append((left, right, result))
        spelled[result] = spelled[left] + spelled[right]
        words = merge_everywhere(words, pair, result)
    return merges[num_given:]


def merge_everywhere(words: Counter[tuple[int, ...]], pair: tuple[int, int], result: int) -> Counter[tuple[int, ...]]:
    merged: Counter[tuple[int, ...]] = Counter()
    for word, count in words.items():
        merged[merge_pair(word, pair, result)] += count
    return merged


# The character that stands for each byte in Hugging Face's byte-level vocabularies: printable Latin-1 for itself,
# others from U+0100 on.
PRINTABLE = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
BYTE_ALPHABET = {b: chr(b) for b in PRINTABLE} | {
    b: chr(0x100 + i) for i, b in enumerate(b for b in range(256) if b not in PRINTABLE)
}


def train_huggingface(
    texts: list[str],
    pattern: str,
    vocab_size: int,
    *,
    special_tokens: list[str] | None = None,
    min_frequency: int = 0,
    max_token_length: int | None = None,
    initial_alphabet: bytes = bytes(range(256)),
) -> tuple[dict[str, int], list[tuple[str, str]]]:
    """The vocabulary and the merges of tokenizers' BpeTrainer (0.23), whose counts are not always exact.

    Entries of the queue are (count when pushed, pair, words where it was made); the count of a pair that was merged
    stays; a merge that spells an older token becomes it, so that one pair can have several entries.
    """
    limit = max_token_length or 10**9
    spelled = ["".join(BYTE_ALPHABET[b] for b in piece) for text in texts for piece in split(text, pattern)]
    alphabet = {char for word in spelled for char in word} | {BYTE_ALPHABET[b] for b in initial_alphabet}
    tokens = [*(special_tokens or []), *sorted(alphabet)]
    ids = {token: i for i, token in enumerate(tokens)}
    length = {i: len(token) for i, token in enumerate(tokens)}
    frequency = Counter(spelled)
    words = {word: [ids[char] for char in word] for word in frequency}
    counts: Counter[tuple[int, int]] = Counter()
    made: dict[tuple[int, int], set[str]] = {}
    for word, symbols in words.items():
        for pair in itertools.pairwise(symbols):
            counts[pair] += frequency[word]
            made.setdefault(pair, set()).add(word)
    queue = [(counts[pair], pair, where) for pair, where in made.items()]
    merges: list[tuple[int, int]] = []
    while len(ids) < vocab_size and queue:
        top = min(queue, key=lambda entry: (-entry[0], entry[1]))
        queue.remove(top)
        count, pair, where = top
        if count != counts[pair]:
            queue.append((counts[pair], pair, where))
            continue
        if count < max(1, min_frequency):
            break
        spelling = tokens[pair[0]] + tokens[pair[1]]
        result = ids.setdefault(spelling, len(tokens))
        if result == len(tokens):
            tokens.append(spelling)
            length[result] = len(spelling)
        merges.append(pair)
        made = {}
        for word in where:
            symbols, i = words[word], 0
            while i < len(symbols):
                if tuple(symbols[i : i + 2]) == pair:
                    for left, right, new in ([(symbols[i - 1], pair[0], (symbols[i - 1], result))] if i else []) + (
                        [(pair[1], symbols[i + 2], (result, symbols[i + 2]))] if i + 2 < len(symbols) else []
                    ):
                        counts[left, right] -= frequency[word]
                        if length[new[0]] + length[new[1]] < limit:
                            counts[new] += frequency[word]
                            made.setdefault(new, set()).add(word)
                    symbols[i : i + 2] = [result]
                i += 1
        queue += [(counts[new], new, where) for new, where in made.items() if counts[new] > 0]
    last = {pair: rank for rank, pair in enumerate(merges)}
    ranked = sorted(last, key=lambda pair: last[pair])
    return ids, [(tokens[left], tokens[right]) for left, right in ranked]


def encode(text: str, pattern: str, merges: list[tuple[int, int, int]]) -> list[int]:
    """Applies every merge in the order learned to every pretoken."""
    ids: list[int] = []
    for piece in split(text, pattern):
        word = tuple(piece)
        for left, right, result in merges:
            word = merge_pair(word, (left, right), result)
        ids += word
    return ids
