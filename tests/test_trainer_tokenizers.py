"""tie_break="huggingface" beside the library it names, live: equal merges and equal ids."""

from __future__ import annotations

import json
import lzma
import os
import random
from pathlib import Path
from typing import Any

import pytest

from fastcompress import BPE
from fastcompress.pretokenizer import PATTERNS
from tests.reference.bpe import BYTE_ALPHABET

if os.environ.get("CI") == "true":
    import tokenizers
else:
    tokenizers = pytest.importorskip("tokenizers")


def train_theirs(
    texts: list[str], pattern: str, vocab_size: int, initial_alphabet: bytes, **settings: Any
) -> tuple[dict[str, int], list[tuple[str, str]]]:
    """The vocabulary and merges of tokenizers' trainer."""
    pre, trainers = tokenizers.pre_tokenizers, tokenizers.trainers
    tok = tokenizers.Tokenizer(tokenizers.models.BPE())
    byte_level = pre.ByteLevel(add_prefix_space=False, use_regex=False)
    if PATTERNS[pattern]:
        # Its engine reads {1,3}+ as a repetition of a group, not as possessive.
        regex = tokenizers.Regex(PATTERNS[pattern].replace("{1,3}+", "{1,3}"))
        tok.pre_tokenizer = pre.Sequence([pre.Split(regex, "isolated"), byte_level])
    else:
        tok.pre_tokenizer = byte_level
    alphabet = [BYTE_ALPHABET[b] for b in initial_alphabet]
    given = {name: value for name, value in settings.items() if value is not None}
    trainer = trainers.BpeTrainer(vocab_size=vocab_size, initial_alphabet=alphabet, show_progress=False, **given)
    tok.train_from_iterator(texts, trainer)
    model = json.loads(tok.to_str())["model"]
    return model["vocab"], [tuple(m) if isinstance(m, list) else tuple(m.split(" ")) for m in model["merges"]]


def assert_equal(texts: list[str], pattern: str, vocab_size: int, initial_alphabet: bytes, **settings: Any) -> None:
    ids, merges = train_theirs(texts, pattern, vocab_size, initial_alphabet, **settings)
    tok = BPE.train(
        texts,
        vocab_size=max(len(ids), len(initial_alphabet) + len(settings["special_tokens"])),
        pattern=pattern,
        tie_break="huggingface",
        initial_alphabet=initial_alphabet,
        **settings,
    )
    specials = {i: text for text, i in tok.special_tokens.items()}

    def spelled(i: int) -> str:
        return specials.get(i) or "".join(BYTE_ALPHABET[b] for b in tok.token_bytes(i))

    assert {spelled(i): i for i in range(len(ids))} == ids
    assert [(spelled(left), spelled(right)) for left, right, _ in tok.merges.tolist()] == merges


def test_on_random_texts() -> None:
    """Of few letters, so that merges spell older tokens and pairs come again, where its counts are not exact."""
    choose = random.Random(7)
    for _ in range(400):
        letters = choose.choice(["ab", "abc", "ab ", "abcdef", "aab 1'sé"])
        texts = [
            "".join(choose.choices(letters, k=choose.randint(0, choose.choice([20, 60, 200]))))
            for _ in range(choose.randint(1, 8))
        ]
        alphabet = choose.choice([bytes(range(256)), b"", b"xyz"])
        specials = choose.choice([[], ["<e>"], ["<e>", "<p>"]])
        assert_equal(
            texts,
            choose.choice(["gpt2", "none", "cl100k"]),
            len(alphabet) + len(specials) + choose.randint(0, 80),
            alphabet,
            special_tokens=specials,
            min_frequency=choose.choice([1, 2, 3]),
            max_token_length=choose.choice([None, None, 1, 2, 3, 4, 6]),
        )


@pytest.mark.parametrize("pattern", ["gpt2", "cl100k"])
@pytest.mark.parametrize("limits", [{}, {"min_frequency": 30, "max_token_length": 7}])
def test_on_a_corpus(pattern: str, limits: dict[str, int], data_directory: Path) -> None:
    with lzma.open(data_directory / "multilingual" / "multi-val.jsonl.xz", "rt", encoding="utf-8") as file:
        texts = [json.loads(line)["text"] for line in file]
    specials = ["<|endoftext|>", "<|pad|>"]
    assert_equal(texts[:60], pattern, 4000, bytes(range(256)), special_tokens=specials, **limits)
