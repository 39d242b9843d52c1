"""fastcompress: this project."""

from __future__ import annotations

import numpy as np

import fastcompress as fc
from vocabularies import Vocabulary


class Encoder:
    def __init__(self, vocabulary: Vocabulary, threads: int) -> None:
        self.bpe = fc.BPE.from_tiktoken(vocabulary.rank_file, pattern=vocabulary.name)
        self.threads = threads

    def text_to_numpy(self, text: str) -> np.ndarray:
        return self.bpe.encode_to_numpy(text)

    def text_to_list(self, text: str) -> list[int]:
        return self.bpe.encode_ordinary(text)

    def texts_to_numpy(self, texts: list[str]) -> np.ndarray:
        return self.bpe.encode_batch_to_numpy(texts, self.threads)[0]

    def texts_to_lists(self, texts: list[str]) -> list[list[int]]:
        return self.bpe.encode_batch(texts, self.threads)

    def decode(self, ids: list[int]) -> str:
        return self.bpe.decode(ids)
