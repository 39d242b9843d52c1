"""rustbpe: trains only; its encoder is a plain one."""

from __future__ import annotations

import rustbpe


def train(texts: list[str], vocab_size: int, pattern: str, threads: int) -> list[bytes]:
    tokenizer = rustbpe.Tokenizer()
    tokenizer.train_from_iterator(iter(texts), vocab_size, pattern=pattern)
    return [bytes(token) for token, _ in sorted(tokenizer.get_mergeable_ranks(), key=lambda pair: pair[1])][256:]
