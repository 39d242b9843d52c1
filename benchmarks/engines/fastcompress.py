"""fastcompress: this project."""

from __future__ import annotations

import numpy as np

import fastcompress as fc
from fastcompress.pretokenizer import PATTERNS
from vocabularies import Vocabulary


class Encoder:
    def __init__(self, vocabulary: Vocabulary, threads: int) -> None:
        self.bpe = fc.BPE.from_tiktoken(vocabulary.rank_file, pattern=vocabulary.name)
        self.threads = threads

    def text_to_numpy(self, text: str) -> np.ndarray:
        return self.bpe.encode_to_numpy(text, num_threads=self.threads)

    def text_to_list(self, text: str) -> list[int]:
        return self.bpe.encode_ordinary(text, num_threads=self.threads)

    def texts_to_numpy(self, texts: list[str]) -> np.ndarray:
        return self.bpe.encode_batch_to_numpy(texts, self.threads)[0]

    def texts_to_lists(self, texts: list[str]) -> list[list[int]]:
        return self.bpe.encode_batch(texts, self.threads)

    def decode(self, ids: list[int]) -> str:
        return self.bpe.decode(ids)


def train(texts: list[str], vocab_size: int, pattern: str, threads: int, tie_break: str = "lowest_id") -> list[bytes]:
    name = next(name for name, regex in PATTERNS.items() if regex == pattern)
    options = {} if tie_break == "lowest_id" else {"tie_break": tie_break}
    bpe = fc.BPE.train(texts, vocab_size=vocab_size, pattern=name, num_threads=threads, **options)
    return [bpe.token_bytes(token_id) for token_id in range(256, vocab_size)]
