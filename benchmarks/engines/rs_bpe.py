"""rs-bpe: vocabularies of its own only, lists only; its parallel batches took longer than the plain ones."""

from __future__ import annotations

from rs_bpe.bpe import openai

from vocabularies import Vocabulary


class Encoder:
    def __init__(self, vocabulary: Vocabulary, threads: int) -> None:
        self.tokenizer = getattr(openai, f"{vocabulary.name}_base")()

    def text_to_list(self, text: str) -> list[int]:
        return self.tokenizer.encode(text)

    def texts_to_lists(self, texts: list[str]) -> list[list[int]]:
        return self.tokenizer.encode_batch(texts)[0]

    def decode(self, ids: list[int]) -> str:
        return self.tokenizer.decode(ids)
