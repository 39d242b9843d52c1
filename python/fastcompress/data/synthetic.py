"""A synthetic corpus of repeated patterns and noise, on which it shows whether a model uses repetition.

The task that Chan, "Thoughts on Feasibility in Pre-training GPT-2/3 on a Single GPU" (2025), compares HEAT and a model
of bytes on: a pool of random strings, which all documents share, one after the other, and random letters in between.
What can be learned of it are the strings; which one follows, and the noise, cannot be predicted.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fastcompress._arguments import as_integer
from fastcompress.data.documents import Document
from fastcompress.errors import ConfigError

_LETTERS = b"abcdefghijklmnopqrstuvwxyz"
_WORDS_AT_ONCE = 4096


def repeated_patterns(
    num_documents: int = 256,
    *,
    document_bytes: int = 4096,
    num_patterns: int = 64,
    pattern_bytes: tuple[int, int] = (4, 24),
    noise: float = 0.1,
    seed: int = 0,
) -> Iterator[Document]:
    """Yield documents of patterns and noise; by default 1 MB in all.

    >>> print(next(repeated_patterns(document_bytes=60, num_patterns=2, pattern_bytes=(6, 8))).data.decode())
    xwfrirptxwfrirptxwfrirptgwqrvecxwfrirptgwqrvecxwfrirptxwfrir

    Args:
        num_documents: The number of documents.
        document_bytes: Of each document; the last pattern may be cut.
        num_patterns: Strings in the pool, equally likely.
        pattern_bytes: Shortest and longest length of a string, both included.
        noise: Share of pieces that are not a string of the pool but 1 to 8 random letters.
        seed: Of the pool and of the documents, which are the same with every release of NumPy.

    Raises:
        ConfigError: A setting is out of range.
    """
    for name, value in (("document_bytes", document_bytes), ("num_patterns", num_patterns)):
        as_integer(value, name, 1, 1 << 31)
    shortest, longest = pattern_bytes
    if not 1 <= shortest <= longest:
        raise ConfigError(f"pattern_bytes is {pattern_bytes}; it must be a range of lengths of 1 or more")
    if not 0.0 <= noise <= 1.0:
        raise ConfigError(f"noise is {noise}; it must be in [0, 1]")
    words = _words(seed)

    def letters(fewest: int, most: int) -> bytes:
        length = fewest + next(words) % (most - fewest + 1)
        return bytes(_LETTERS[next(words) % len(_LETTERS)] for _ in range(length))

    pool = [letters(shortest, longest) for _ in range(num_patterns)]
    for number in range(num_documents):
        text = bytearray()
        while len(text) < document_bytes:
            is_noise = next(words) < noise * 2.0**64
            text += letters(1, 8) if is_noise else pool[next(words) % num_patterns]
        yield Document(f"patterns#{number:04}", bytes(text[:document_bytes]))


def _words(seed: int) -> Iterator[int]:
    """Yield random 64-bit words."""
    source = np.random.PCG64(np.random.SeedSequence(seed))
    while True:
        yield from source.random_raw(_WORDS_AT_ONCE).tolist()
