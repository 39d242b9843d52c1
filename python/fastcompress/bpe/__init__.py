"""Byte pair encoding: train a vocabulary, encode text to token ids, decode ids to text, exactly.

>>> tok = BPE.train(["to be or not to be"] * 8, vocab_size=260, pattern="whitespace")
>>> tok.encode("to be"), tok.decode(tok.encode("to be"))
([257, 258], 'to be')

Text is ``str`` or bytes everywhere. A ``str`` is encoded as its UTF-8 (a lone surrogate becomes U+FFFD, a surrogate
pair its character, as in tiktoken); bytes are encoded as they are, UTF-8 or not, and ``decode_bytes`` gives them back.
A BPE object is immutable, can be shared by threads (texts of more than 1 KiB and batches are encoded without the GIL),
pickled, and used after a fork.
"""

from __future__ import annotations

from fastcompress.bpe.canonical_pairs import WORD_PATTERN, CanonicalPairs
from fastcompress.bpe.counts import PretokenCounts
from fastcompress.bpe.offsets import TokenOffsets
from fastcompress.bpe.reachability import UnreachableTokens, unreachable_tokens
from fastcompress.bpe.stream_decoder import StreamDecoder
from fastcompress.bpe.tokenizer import BPE
from fastcompress.formats.tokenizer_json import AddedToken

__all__ = [
    "BPE",
    "WORD_PATTERN",
    "AddedToken",
    "CanonicalPairs",
    "PretokenCounts",
    "StreamDecoder",
    "TokenOffsets",
    "UnreachableTokens",
    "unreachable_tokens",
]
