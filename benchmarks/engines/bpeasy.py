"""bpeasy: trains only. The length limit of tokens that it asks for is set beyond any pretoken."""

from __future__ import annotations

import bpeasy


def train(texts: list[str], vocab_size: int, pattern: str, threads: int) -> list[bytes]:
    ranks = bpeasy.train_bpe(iter(texts), pattern, max_token_length=1 << 30, vocab_size=vocab_size)
    return sorted(ranks, key=ranks.__getitem__)[256:]
