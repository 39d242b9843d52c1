"""tokenizers (Hugging Face): reads tokenizer.json, lists only."""

from __future__ import annotations

import tokenizers
from tokenizers import models, pre_tokenizers, trainers

from vocabularies import Vocabulary, byte_letters, onigmo


class Encoder:
    def __init__(self, vocabulary: Vocabulary, threads: int) -> None:
        self.tokenizer = tokenizers.Tokenizer.from_file(vocabulary.tokenizer_json)

    def text_to_list(self, text: str) -> list[int]:
        return self.texts_to_lists([text])[0]

    def texts_to_lists(self, texts: list[str]) -> list[list[int]]:
        return [encoding.ids for encoding in self.tokenizer.encode_batch_fast(texts, add_special_tokens=False)]

    def decode(self, ids: list[int]) -> str:
        return self.tokenizer.decode(ids, skip_special_tokens=False)


def train(texts: list[str], vocab_size: int, pattern: str, threads: int) -> list[bytes]:
    tokenizer = tokenizers.Tokenizer(models.BPE())
    split = pre_tokenizers.Split(tokenizers.Regex(onigmo(pattern)), behavior="isolated")
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([split, byte_level])
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size, show_progress=False, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()
    )
    tokenizer.train_from_iterator(iter(texts), trainer)
    byte_of = {letter: byte for byte, letter in enumerate(byte_letters())}
    vocab = tokenizer.get_vocab(with_added_tokens=False)
    return [bytes(map(byte_of.__getitem__, token)) for token in sorted(vocab, key=vocab.__getitem__)][256:]
