"""gigatoken: batches come as an awkward array, whose buffer of ids is the flat array; nothing is copied."""

from __future__ import annotations

import gigatoken
import numpy as np

from vocabularies import Vocabulary


class Encoder:
    def __init__(self, vocabulary: Vocabulary, threads: int) -> None:
        self.tokenizer = gigatoken.Tokenizer.from_tiktoken(vocabulary.rank_file, pretokenizer=vocabulary.name)
        self.parallel = threads > 1

    def text_to_numpy(self, text: str) -> np.ndarray:
        return self.texts_to_numpy([text]) if self.parallel else self.tokenizer.encode(text)

    def text_to_list(self, text: str) -> list[int]:
        return self.texts_to_lists([text])[0] if self.parallel else self.tokenizer.encode(text).tolist()

    def texts_to_numpy(self, texts: list[str]) -> np.ndarray:
        return self.tokenizer.encode_batch(texts, parallel=self.parallel).layout.content.data

    def texts_to_lists(self, texts: list[str]) -> list[list[int]]:
        return self.tokenizer.encode_batch_list(texts, parallel=self.parallel)

    def decode(self, ids: np.ndarray) -> bytes:
        return self.tokenizer.decode(ids)
