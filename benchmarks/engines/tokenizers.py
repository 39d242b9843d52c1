"""tokenizers (Hugging Face): reads tokenizer.json, lists only."""

from __future__ import annotations

import tokenizers

from vocabularies import Vocabulary


class Encoder:
    def __init__(self, vocabulary: Vocabulary, threads: int) -> None:
        self.tokenizer = tokenizers.Tokenizer.from_file(vocabulary.tokenizer_json)

    def text_to_list(self, text: str) -> list[int]:
        return self.texts_to_lists([text])[0]

    def texts_to_lists(self, texts: list[str]) -> list[list[int]]:
        return [encoding.ids for encoding in self.tokenizer.encode_batch_fast(texts, add_special_tokens=False)]

    def decode(self, ids: list[int]) -> str:
        return self.tokenizer.decode(ids, skip_special_tokens=False)
