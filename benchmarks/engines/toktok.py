"""toktok-rs: vocabularies of its own only; ids are behind a name that it calls private."""

from __future__ import annotations

import itertools

import numpy as np
import toktok

from vocabularies import Vocabulary


class Encoder:
    def __init__(self, vocabulary: Vocabulary, threads: int) -> None:
        self.tokenizer = toktok._encoding(f"{vocabulary.name}_base")
        self.threads = threads

    def text_to_numpy(self, text: str) -> np.ndarray:
        return self.tokenizer.encode_to_numpy(text, disallowed_special=())

    def text_to_list(self, text: str) -> list[int]:
        return self.tokenizer.encode_ordinary(text)

    def texts_to_numpy(self, texts: list[str]) -> np.ndarray:
        return self.tokenizer.encode_batch_to_numpy(texts, self.threads)[0]

    def texts_to_lists(self, texts: list[str]) -> list[list[int]]:
        if self.threads == 1:
            return [self.tokenizer.encode_ordinary(text) for text in texts]
        ids, ends = self.tokenizer.encode_batch_to_numpy(texts, self.threads)
        ids, ends = ids.tolist(), ends.tolist()
        return [ids[begin:end] for begin, end in itertools.pairwise(ends)]

    def decode(self, ids: list[int]) -> str:
        return self.tokenizer.decode(ids)
