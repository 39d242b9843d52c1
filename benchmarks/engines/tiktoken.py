"""tiktoken: the reference for the ids of rank files."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import tiktoken
from tiktoken.load import load_tiktoken_bpe

from vocabularies import Vocabulary


class Encoder:
    def __init__(self, vocabulary: Vocabulary, threads: int) -> None:
        ranks = load_tiktoken_bpe(vocabulary.rank_file)
        self.encoding = tiktoken.Encoding(
            vocabulary.name, pat_str=vocabulary.pattern, mergeable_ranks=ranks, special_tokens={}
        )
        self.threads = threads

    def text_to_numpy(self, text: str) -> np.ndarray:
        return np.array(self.encoding.encode_ordinary(text), np.uint32)  # half the time of its encode_to_numpy

    def text_to_list(self, text: str) -> list[int]:
        return self.encoding.encode_ordinary(text)

    def texts_to_numpy(self, texts: list[str]) -> list[np.ndarray]:
        if self.threads == 1:
            return [self.text_to_numpy(text) for text in texts]
        with ThreadPoolExecutor(self.threads) as pool:  # as its own batches of lists do
            return list(pool.map(self.text_to_numpy, texts))

    def texts_to_lists(self, texts: list[str]) -> list[list[int]]:
        if self.threads == 1:  # Its batches go through a thread pool even then.
            return [self.encoding.encode_ordinary(text) for text in texts]
        return self.encoding.encode_ordinary_batch(texts, num_threads=self.threads)

    def decode(self, ids: list[int]) -> str:
        return self.encoding.decode(ids)
