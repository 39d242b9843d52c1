"""flashbpe: trains only; its encoder is a plain one."""

from __future__ import annotations

import flashbpe


def train(texts: list[str], vocab_size: int, pattern: str, threads: int) -> list[bytes]:
    tokenizer = flashbpe.Tokenizer()
    tokenizer.train_from_iterator(iter(texts), vocab_size, pattern=pattern)
    return [bytes(token) for token, _ in sorted(tokenizer.get_mergeable_ranks(), key=lambda pair: pair[1])][256:]
