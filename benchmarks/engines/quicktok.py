"""quicktok-v1: vocabularies of its own only."""

from __future__ import annotations

import itertools

import numpy as np
import quicktok

from vocabularies import Vocabulary


class Encoder:
    def __init__(self, vocabulary: Vocabulary, threads: int) -> None:
        self.tokenizer = quicktok.get_encoding(f"{vocabulary.name}_base")
        self.threads = threads

    def text_to_numpy(self, text: str) -> np.ndarray:
        return self.texts_to_numpy([text])

    def text_to_list(self, text: str) -> list[int]:
        return self.tokenizer.encode_ordinary(text)

    def texts_to_numpy(self, texts: list[str]) -> np.ndarray:
        return self.tokenizer.encode_batch(texts, self.threads)[0]

    def texts_to_lists(self, texts: list[str]) -> list[list[int]]:
        if self.threads == 1:
            return [self.tokenizer.encode_ordinary(text) for text in texts]
        ids, ends = (array.tolist() for array in self.tokenizer.encode_batch(texts, self.threads))
        return [ids[begin:end] for begin, end in itertools.pairwise(ends)]

    def decode(self, ids: list[int]) -> str:
        return self.tokenizer.decode(ids)
