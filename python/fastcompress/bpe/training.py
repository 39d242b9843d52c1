"""Learning a vocabulary: count the pretokens of a source, then merge."""

from __future__ import annotations

import operator
import os
from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias

from fastcompress._core import bpe as _core
from fastcompress.bpe.arguments import check_texts, check_threads
from fastcompress.bpe.counts import PretokenCounts, Source, counts_of_pieces
from fastcompress.bpe.custom_pattern import CustomPattern, resolve_pattern
from fastcompress.bpe.rank_files import with_merges
from fastcompress.errors import ConfigError, DataError
from fastcompress.formats.rank_file import MAX_IDS

TieBreak: TypeAlias = Literal["lowest_id", "huggingface"]

_DEFAULT_PATTERN = "cl100k"
_ALL_BYTES = bytes(range(256))


def train_vocabulary(
    source: Source | PretokenCounts,
    *,
    vocab_size: int,
    pattern: str | None,
    special_tokens: Sequence[str],
    tie_break: TieBreak,
    min_frequency: int,
    max_token_length: int | None,
    initial_alphabet: bytes | None,
    continue_from: _core.Tokenizer | None,
    num_threads: int | None,
    max_memory_bytes: int | None,
    temporary_folder: str | os.PathLike[str] | None,
    on_progress: Callable[[int, int], None] | None,
) -> _core.Tokenizer:
    """`BPE.train`, as the core's object."""
    vocab_size = operator.index(vocab_size)
    check_threads(num_threads)
    if continue_from is not None:
        continue_from = with_merges(continue_from)
    check_special_tokens(special_tokens, continue_from)
    check_limits(tie_break, min_frequency, max_token_length, initial_alphabet, continue_from)
    check_vocab_size(vocab_size, len(special_tokens), initial_alphabet, continue_from)
    pattern = pattern_of_all(pattern, source if isinstance(source, PretokenCounts) else None, continue_from)
    if isinstance(source, PretokenCounts):
        counts = source
    else:
        counts = counts_of(source, pattern, num_threads, max_memory_bytes, temporary_folder)

    def progress(num_done: int, num_wanted: int) -> None:  # entering Python now and then is what lets Ctrl-C through
        if on_progress is not None:
            on_progress(num_done, num_wanted)

    vocabulary, num_distinct = _core.train(
        counts._core,
        consume=counts is not source,
        vocab_size=vocab_size,
        special_tokens=list(special_tokens),
        huggingface=tie_break == "huggingface",
        min_frequency=min_frequency,
        max_token_length=max_token_length,
        initial_alphabet=_ALL_BYTES if initial_alphabet is None else initial_alphabet,
        base=continue_from,
        progress=progress,
    )
    is_limited = min_frequency > 1 or max_token_length is not None
    if vocabulary.size < vocab_size and not is_limited:
        raise DataError(
            f"the {num_distinct} distinct pretokens given support only {vocabulary.size} tokens, not "
            f"{vocab_size}: lower vocab_size to at most {vocabulary.size} or train on more text"
        )
    if is_custom(pattern) and continue_from is None:
        return with_custom_pattern(vocabulary, pattern)
    return vocabulary


def is_custom(pattern: str) -> bool:
    """Whether a pattern is the spelling of a `CustomPattern`, not a name."""
    return pattern.startswith("[")


def counts_of(
    source: Source,
    pattern: str,
    num_threads: int | None,
    max_memory_bytes: int | None,
    temporary_folder: str | os.PathLike[str] | None,
) -> PretokenCounts:
    """The pretokens of a source under a named pattern or the spelling of a custom one."""
    if is_custom(pattern):
        cut = CustomPattern.from_spelling(pattern).split
        return counts_of_pieces(
            source,
            cut,
            num_threads=num_threads,
            max_memory_bytes=max_memory_bytes,
            temporary_folder=temporary_folder,
        )
    counts = PretokenCounts(pattern, max_memory_bytes=max_memory_bytes, temporary_folder=temporary_folder)
    counts.add(source, num_threads=num_threads)
    return counts


def with_custom_pattern(vocabulary: _core.Tokenizer, pattern: str) -> _core.Tokenizer:
    """A newly trained vocabulary with a pattern that the core, which counts and trains, does not know."""
    added_tokens = vocabulary.added_tokens()
    tokens = [vocabulary.token_bytes(token_id) for token_id in range(vocabulary.size)]
    for _, token_id, _ in added_tokens:
        tokens[token_id] = b""
    return _core.Tokenizer.from_merges(
        tokens=tokens,
        merges=vocabulary.merges(),
        pattern=pattern,
        added_tokens=added_tokens,
        ignore_merges=False,
        prefix_space=False,
        nfc=False,
        metadata="",
    )


def check_special_tokens(special_tokens: Sequence[str], base: _core.Tokenizer | None) -> None:
    check_texts(special_tokens, "special_tokens")
    if len(set(special_tokens)) != len(special_tokens) or "" in special_tokens:
        raise ConfigError("special_tokens must be distinct and not empty")
    for text in special_tokens:
        if base is not None and text in base.special_tokens:
            raise ConfigError(f"special token {text!r} is one of continue_from already; give only new ones")


def check_limits(
    tie_break: str,
    min_frequency: int,
    max_token_length: int | None,
    initial_alphabet: bytes | None,
    base: _core.Tokenizer | None,
) -> None:
    if tie_break not in ("lowest_id", "huggingface"):
        raise ConfigError(f"tie_break={tie_break!r} is unknown; give 'lowest_id' or 'huggingface'")
    if not 1 <= operator.index(min_frequency) < 1 << 63:
        raise ConfigError(f"min_frequency={min_frequency} is out of range: give at least 1")
    if max_token_length is not None and not 1 <= operator.index(max_token_length) < 1 << 63:
        raise ConfigError(f"max_token_length={max_token_length} is out of range: give at least 1, or None")
    if initial_alphabet is not None:
        if not isinstance(initial_alphabet, bytes):
            raise TypeError(f"initial_alphabet must be bytes, not {type(initial_alphabet).__name__}")
        if tie_break != "huggingface" or base is not None:
            raise ConfigError(
                "initial_alphabet decides ids only with tie_break='huggingface' and without continue_from: leave it out"
            )


def check_vocab_size(
    vocab_size: int, num_special: int, initial_alphabet: bytes | None, base: _core.Tokenizer | None
) -> None:
    given = f"{base.size} ids of continue_from" if base is not None else "256 bytes"
    least = (base.size if base is not None else 256) + num_special
    if initial_alphabet is not None:
        least = len(set(initial_alphabet)) + num_special
        given = f"{len(set(initial_alphabet))} bytes of initial_alphabet"
    if vocab_size < least:
        raise ConfigError(
            f"vocab_size={vocab_size} is too small: {given} and {num_special} special tokens take {least}"
        )
    if vocab_size > MAX_IDS:
        raise ConfigError(f"vocab_size={vocab_size} is too large: a vocabulary has at most {MAX_IDS} ids")


def pattern_of_all(pattern: str | None, counts: PretokenCounts | None, base: _core.Tokenizer | None) -> str:
    """The one pattern that the argument, the counts and the vocabulary to go on from agree on."""
    named = {"pattern": resolve_pattern(pattern)} if pattern is not None else {}
    if counts is not None:
        named["counts"] = counts.pattern
    if base is not None:
        named["continue_from"] = base.pattern
    if len(set(named.values())) > 1:
        given = ", ".join(f"{who}: {name!r}" for who, name in named.items())
        raise ConfigError(f"the patterns differ ({given}): give one, or leave pattern out")
    return next(iter(named.values()), _DEFAULT_PATTERN)
