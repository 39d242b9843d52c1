"""Training of a vocabulary: count the pretokens of a source, then merge."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal, TypeAlias

from fastcompress._arguments import as_integer, shown
from fastcompress._core import bpe as _core
from fastcompress.bpe.arguments import as_pattern, as_special_ids, as_special_texts, as_thread_limit
from fastcompress.bpe.counts import PretokenCounts, counts_of_pieces
from fastcompress.bpe.custom_pattern import CustomPattern, resolve_pattern
from fastcompress.bpe.rebuild import with_merges, with_pattern, with_special_ids
from fastcompress.bpe.special_tokens import NEVER_MATCHED
from fastcompress.bpe.training_texts import Source
from fastcompress.errors import ConfigError, DataError
from fastcompress.formats.rank_file import MAX_IDS

TieBreak: TypeAlias = Literal["lowest_id", "huggingface"]

_DEFAULT_PATTERN = "cl100k"
_ALL_BYTES = bytes(range(256))
_MAX_COUNT = (1 << 63) - 1


def train_vocabulary(
    source: Source | PretokenCounts,
    *,
    vocab_size: int,
    pattern: str | None,
    special_tokens: Iterable[str] | Mapping[str, int],
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
    """Train as `BPE.train` does; return the core's object."""
    vocab_size = as_integer(vocab_size, "vocab_size", 0, MAX_IDS)
    num_threads = as_thread_limit(num_threads)
    if on_progress is not None and not callable(on_progress):
        raise TypeError(f"on_progress is {shown(on_progress)}; it must be callable, or None")
    if continue_from is not None:
        continue_from = with_merges(continue_from)
    specials, special_ids = special_tokens_of(special_tokens, continue_from)
    min_frequency, max_token_length = check_limits(
        tie_break, min_frequency, max_token_length, initial_alphabet, continue_from
    )
    check_vocab_size(vocab_size, len(specials), initial_alphabet, continue_from)
    check_special_ids(special_ids, vocab_size, is_first=tie_break == "huggingface" and continue_from is None)
    pattern = pattern_of_all(pattern, source if isinstance(source, PretokenCounts) else None, continue_from)
    if isinstance(source, PretokenCounts):
        counts = source
    else:
        cut_at = specials + texts_sought_by(continue_from)
        counts = counts_of(source, pattern, cut_at, num_threads, max_memory_bytes, temporary_folder)

    def progress(num_done: int, num_wanted: int) -> None:  # called even without on_progress, so that Ctrl-C is noticed
        if on_progress is not None:
            on_progress(num_done, num_wanted)

    vocabulary, num_distinct = _core.train(
        counts._core,
        consume=counts is not source,
        vocab_size=vocab_size,
        special_tokens=specials,
        huggingface=tie_break == "huggingface",
        min_frequency=min_frequency,
        max_token_length=max_token_length,
        initial_alphabet=_ALL_BYTES if initial_alphabet is None else initial_alphabet,
        base=continue_from,
        progress=progress,
    )
    if vocabulary.size < vocab_size and min_frequency == 1 and max_token_length is None:
        raise DataError(
            f"the {num_distinct} distinct pretokens given support only {vocabulary.size} tokens, not {vocab_size}; "
            f"lower vocab_size to at most {vocabulary.size} or train on more text"
            + (" (the texts of special tokens are not counted)" if specials else "")
        )
    check_nothing_special_was_learned(vocabulary, specials, continue_from)
    if is_custom(pattern) and continue_from is None:
        vocabulary = with_pattern(vocabulary, pattern)
    if special_ids is not None and any(vocabulary.special_tokens[text] != i for text, i in special_ids.items()):
        vocabulary = with_special_ids(vocabulary, special_ids)
    return vocabulary


def is_custom(pattern: str) -> bool:
    """Return whether a pattern is the JSON of a `CustomPattern`, not a name."""
    return pattern.startswith("[")


def counts_of(
    source: Source,
    pattern: str,
    special_tokens: Sequence[str],
    num_threads: int | None,
    max_memory_bytes: int | None,
    temporary_folder: str | os.PathLike[str] | None,
) -> PretokenCounts:
    """Count the pretokens of a source.

    Args:
        source: As for `PretokenCounts.add`.
        pattern: A named pattern, or the JSON of a custom one.
        special_tokens: As for `PretokenCounts`.
        num_threads: As for `PretokenCounts.add`.
        max_memory_bytes: As for `PretokenCounts`.
        temporary_folder: As for `PretokenCounts`.
    """
    if is_custom(pattern):
        return counts_of_pieces(
            source,
            CustomPattern.from_json(pattern).split,
            special_tokens=special_tokens,
            num_threads=num_threads,
            max_memory_bytes=max_memory_bytes,
            temporary_folder=temporary_folder,
        )
    counts = PretokenCounts(
        pattern,
        special_tokens=special_tokens,
        max_memory_bytes=max_memory_bytes,
        temporary_folder=temporary_folder,
    )
    counts.add(source, num_threads=num_threads)
    return counts


def special_tokens_of(
    special_tokens: Iterable[str] | Mapping[str, int], base: _core.Tokenizer | None
) -> tuple[list[str], dict[str, int] | None]:
    """Return the texts of new special tokens in the order of their ids, and the ids if they are given."""
    ids = as_special_ids(special_tokens) if isinstance(special_tokens, Mapping) else None
    texts = as_special_texts(special_tokens) if ids is None else sorted(ids, key=lambda text: ids[text])
    for text in texts:
        if base is not None and text in base.special_tokens:
            raise ConfigError(f"special token {text!r} is one of continue_from already; give only new ones")
    return texts, ids


def check_special_ids(ids: Mapping[str, int] | None, vocab_size: int, *, is_first: bool) -> None:
    """Raise ConfigError if given ids of special tokens are not distinct, or may belong to other tokens.

    Args:
        ids: The given ids, or None.
        vocab_size: The size of the vocabulary, special tokens included.
        is_first: Whether special tokens have the first ids, as with ``tie_break="huggingface"``.
    """
    if not ids:
        return
    by_id = {token_id: text for text, token_id in ids.items()}
    for text, token_id in ids.items():
        if by_id[token_id] != text:
            raise ConfigError(f"the special tokens {text!r} and {by_id[token_id]!r} have the same id {token_id}")
    if is_first and sorted(by_id) != list(range(len(ids))):
        raise ConfigError(
            f"the ids of special_tokens are {sorted(by_id)}; with tie_break='huggingface' they must be 0 to "
            f"{len(ids) - 1}. Give those, or a list of texts, whose ids are then assigned"
        )
    num_others = vocab_size - len(ids)
    if not is_first and min(by_id) < num_others:
        raise ConfigError(
            f"the id {min(by_id)} of special token {by_id[min(by_id)]!r} is one of the {num_others} ids of other "
            f"tokens; give ids from {num_others} on, or a list of texts, whose ids are then assigned"
        )


def texts_sought_by(base: _core.Tokenizer | None) -> list[str]:
    """Return the texts of the added tokens at which a vocabulary to continue from cuts a text."""
    rows = [] if base is None else base.added_tokens()
    return [text for text, _, flags in rows if not flags & NEVER_MATCHED]


def check_nothing_special_was_learned(
    vocabulary: _core.Tokenizer, specials: Sequence[str], base: _core.Tokenizer | None
) -> None:
    """Raise ConfigError if a learned token has the text of a new special one.

    Texts are cut at special tokens, so this happens only with counts that were made without them.

    Args:
        vocabulary: The vocabulary that was trained.
        specials: The texts of its new special tokens.
        base: The vocabulary that it continues, or None.
    """
    num_given = max(256, 0 if base is None else base.size)
    wanted = {text.encode("utf-8"): text for text in specials}
    for token_id in range(num_given, vocabulary.size if wanted else 0):
        token = vocabulary.token_bytes(token_id)
        if len(token) > 1 and token in wanted and vocabulary.special_tokens[wanted[token]] != token_id:
            raise ConfigError(
                f"the special token {wanted[token]!r} was learned as the ordinary token {token_id}, too, since the "
                "counts were made without it; give special_tokens to count_pretokens as well"
            )


def check_limits(
    tie_break: str,
    min_frequency: int,
    max_token_length: int | None,
    initial_alphabet: bytes | None,
    base: _core.Tokenizer | None,
) -> tuple[int, int | None]:
    """Check arguments of `BPE.train`.

    Returns:
        ``min_frequency`` and ``max_token_length`` as ints.

    Raises:
        ConfigError: An argument is out of range, or contradicts another.
        TypeError: An argument is of a wrong type.
    """
    if tie_break not in ("lowest_id", "huggingface"):
        raise ConfigError(f"tie_break is {tie_break!r}; it must be 'lowest_id' or 'huggingface'")
    min_frequency = as_integer(min_frequency, "min_frequency", 1, _MAX_COUNT)
    if max_token_length is not None:
        max_token_length = as_integer(max_token_length, "max_token_length", 1, _MAX_COUNT, or_none="no limit")
    if initial_alphabet is not None:
        if not isinstance(initial_alphabet, bytes):
            raise TypeError(f"initial_alphabet is {shown(initial_alphabet)}; it must be bytes, or None for all")
        if tie_break != "huggingface" or base is not None:
            raise ConfigError(
                "initial_alphabet decides ids only with tie_break='huggingface' and without continue_from; leave it out"
            )
    return min_frequency, max_token_length


def check_vocab_size(
    vocab_size: int, num_special: int, initial_alphabet: bytes | None, base: _core.Tokenizer | None
) -> None:
    """Raise ConfigError for a vocabulary smaller than what it must hold."""
    given = f"{base.size} ids of continue_from" if base is not None else "256 bytes"
    least = (base.size if base is not None else 256) + num_special
    if initial_alphabet is not None:
        least = len(set(initial_alphabet)) + num_special
        given = f"{len(set(initial_alphabet))} bytes of initial_alphabet"
    if vocab_size < least:
        raise ConfigError(
            f"vocab_size={vocab_size} is too small; {given} and {num_special} special tokens take {least}"
        )


def pattern_of_all(pattern: str | None, counts: PretokenCounts | None, base: _core.Tokenizer | None) -> str:
    """Return the pattern on which the argument, the counts and the vocabulary to continue from agree.

    Args:
        pattern: The argument of `BPE.train`, or None.
        counts: The counts to train on, or None.
        base: The vocabulary to continue from, or None.

    Raises:
        ConfigError: They do not agree.
    """
    named = {"pattern": resolve_pattern(as_pattern(pattern))} if pattern is not None else {}
    if counts is not None:
        named["counts"] = counts.pattern
    if base is not None:
        named["continue_from"] = base.pattern
    if len(set(named.values())) > 1:
        given = ", ".join(f"{who}: {name!r}" for who, name in named.items())
        raise ConfigError(f"the patterns differ ({given}); give one, or leave pattern out")
    return next(iter(named.values()), _DEFAULT_PATTERN)
