"""fastokens: its presets for cl100k and o200k and a tokenizer.json for gpt2 reach its scanners, a regex does not."""

from __future__ import annotations

import fastokens
import numpy as np

from vocabularies import Vocabulary

PRESETS = {"cl100k": "cl100k_base", "o200k": "o200k_base"}


class Encoder:
    def __init__(self, vocabulary: Vocabulary, threads: int) -> None:
        if preset := PRESETS.get(vocabulary.name):
            self.tokenizer = fastokens.Tokenizer.from_tiktoken(vocabulary.rank_file, encoding=preset, special_tokens={})
        else:
            self.tokenizer = fastokens.Tokenizer.from_file(vocabulary.tokenizer_json)
        self.threads = threads

    def text_to_numpy(self, text: str) -> np.ndarray:
        return np.frombuffer(self.tokenizer.encode_batch_flat([text])[0], np.uint32)

    def text_to_list(self, text: str) -> list[int]:
        return self.tokenizer.encode(text).ids

    def texts_to_numpy(self, texts: list[str]) -> np.ndarray | list[np.ndarray]:
        if self.threads == 1:  # up to twice as fast as one batch, which goes through its thread pool
            return [self.text_to_numpy(text) for text in texts]
        return np.frombuffer(self.tokenizer.encode_batch_flat(texts)[0], np.uint32)

    def texts_to_lists(self, texts: list[str]) -> list[list[int]]:
        if self.threads == 1:  # a little faster than its batches
            return [self.tokenizer.encode(text).ids for text in texts]
        return [encoding.ids for encoding in self.tokenizer.encode_batch(texts)]

    def decode(self, ids: list[int]) -> str:
        return self.tokenizer.decode(ids)
