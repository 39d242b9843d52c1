"""Statistics of a tokenization: what it makes of a data set, and which tokens of its vocabulary are of no use.

>>> from fastcompress.codec import ByteCodec
>>> texts = [TextPart("en", "a.txt", b"to be or not"), TextPart("fr", "b.txt", "être ou".encode())]
>>> statistics = token_statistics(texts, ByteCodec())
>>> statistics.num_tokens, statistics.groups["fr"].fertility
(20, 4.0)

`token_statistics` counts a stream of texts, in memory that does not grow with them; `read_parts` makes the stream of
files; `vocabulary_statistics` looks at the vocabulary alone.
"""

from fastcompress.data.statistics.counts import GroupCounts, TokenStatistics, token_statistics
from fastcompress.data.statistics.parts import TextPart, can_cut, read_parts
from fastcompress.data.statistics.vocabulary import (
    VocabularyStatistics,
    special_spellings,
    token_strings,
    vocabulary_statistics,
)

__all__ = [
    "GroupCounts",
    "TextPart",
    "TokenStatistics",
    "VocabularyStatistics",
    "can_cut",
    "read_parts",
    "special_spellings",
    "token_statistics",
    "token_strings",
    "vocabulary_statistics",
]
