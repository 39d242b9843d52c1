"""ffbpe: trains; its encoders of rank files are not exact, so they are left out."""

from __future__ import annotations

import ffbpe


def train(texts: list[str], vocab_size: int, pattern: str, threads: int) -> list[bytes]:
    counter = ffbpe.PreTokenizer([], pat_str=pattern).word_counter()
    counter.add_source(iter(texts), prefetch=int(threads > 1))
    trainer = ffbpe.BpeTrainer([], unit="byte")
    trainer.add_word_counter(counter)
    trainer.train(vocab_size)
    vocab = trainer.validate_model().vocab
    return sorted(vocab, key=vocab.__getitem__)[256:]
