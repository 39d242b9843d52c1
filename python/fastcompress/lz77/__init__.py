"""LZ77 as a tokenizer: a parse that is specified and can be extended, truncated and forked.

A parse cuts bytes into tokens: literals (one byte) and matches (`length` bytes, each equal to the byte `distance`
before it). It depends on the bytes and the settings alone, as ``cpp/fastcompress/lz77/FORMAT.md`` defines: not on the
machine, the number of threads, or how the bytes arrived.

>>> tokens = parse(b"abcabcabcabd", Params(min_length=3))
>>> [tuple(token) for token in tokens]
[(0, 97, 1), (0, 98, 1), (0, 99, 1), (1, 3, 8), (0, 100, 1)]
>>> reconstruct(tokens)
b'abcabcabcabd'
"""

from fastcompress.lz77.incremental import IncrementalParser, ParserBatch
from fastcompress.lz77.statistics import Statistics, statistics
from fastcompress.lz77.tokens import (
    LITERAL,
    MATCH,
    LiteralRuns,
    LZTokens,
    Params,
    Token,
    literal_runs,
    parse,
    parse_batch,
    reconstruct,
    stable_counts,
    stable_counts_batch,
)

__all__ = [
    "LITERAL",
    "MATCH",
    "IncrementalParser",
    "LZTokens",
    "LiteralRuns",
    "Params",
    "ParserBatch",
    "Statistics",
    "Token",
    "literal_runs",
    "parse",
    "parse_batch",
    "reconstruct",
    "stable_counts",
    "stable_counts_batch",
    "statistics",
]
