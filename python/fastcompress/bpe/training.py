"""Learning a vocabulary: stream the texts through the core's pretoken counts, then merge."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Sequence

from fastcompress._core import bpe as _core
from fastcompress.bpe.arguments import Text, check_texts, check_threads
from fastcompress.errors import ConfigError, DataError
from fastcompress.formats.rank_file import MAX_IDS

_BATCH_BYTES = 1 << 24  # texts are handed to the trainer in groups of about 16 MiB


def train_vocabulary(
    source: Text | Iterable[Text],
    *,
    vocab_size: int,
    pattern: str,
    special_tokens: Sequence[str],
    num_threads: int | None,
    on_progress: Callable[[int, int], None] | None,
) -> _core.Tokenizer:
    """`BPE.train`, as the core's object."""
    check_texts(special_tokens, "special_tokens")
    check_threads(num_threads)
    num_merges = operator.index(vocab_size) - 256 - len(special_tokens)
    if num_merges < 0:
        raise ConfigError(
            f"vocab_size={vocab_size} is too small: 256 bytes and {len(special_tokens)} special tokens take "
            f"{256 + len(special_tokens)}"
        )
    if vocab_size > MAX_IDS:
        raise ConfigError(f"vocab_size={vocab_size} is too large: a vocabulary has at most {MAX_IDS} ids")
    if len(set(special_tokens)) != len(special_tokens) or "" in special_tokens:
        raise ConfigError("special_tokens must be distinct and not empty")
    trainer = _core.Trainer(pattern)
    for batch in batches_of([source] if isinstance(source, str | bytes | bytearray | memoryview) else source):
        trainer.add_texts(batch, num_threads)

    def progress(num_done: int) -> None:  # entering Python now and then is also what lets Ctrl-C through
        if on_progress is not None:
            on_progress(num_done, num_merges)

    vocabulary = trainer.train(num_merges, list(special_tokens), progress)
    if vocabulary.size < vocab_size:
        raise DataError(
            f"the {trainer.num_distinct} distinct pretokens given support only {vocabulary.size} tokens, not "
            f"{vocab_size}: lower vocab_size to at most {vocabulary.size} or train on more text"
        )
    return vocabulary


def batches_of(texts: Iterable[Text]) -> Iterator[list[Text]]:
    batch: list[Text] = []
    size = 0
    for text in texts:
        batch.append(text)
        size += len(text)
        if size >= _BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
