"""Tokens of a BPE vocabulary that no text reaches.

A token costs a row of the embedding whether or not it ever occurs. One that no text reaches is never trained: given to
a model all the same, it makes the model behave in ways that nobody has seen ("glitch tokens").

Lemma. If the merges of a pretoken give the tokens t1 ... tn, then the merges of the bytes of ti alone give ti alone.
Proof. No merge of the pretoken crosses an end of ti. Each step merges the pair of the lowest rank, the leftmost of
equals; a step inside ti was the best of all pairs, hence the best of those inside ti, so the same steps in the same
order are those of ti's bytes alone. No pair is left to merge at the end.

So a token that the merges of its own bytes do not give comes from no merges of any pretoken. A vocabulary that looks
pretokens up as a whole (rank files, `ignore_merges`) may still give it for a pretoken of exactly its bytes.

An added token that is not special is searched for before all else, so between the occurrences that become tokens there
is no further one. (Unless it only matches whole words, or within the text of a special token, or normalizing or a space
added in front makes one.) So a token whose bytes contain its text comes from no text either.

Nothing is proved of a vocabulary that lacks a byte, such as GPT-NeoX's: a byte that is dropped, or becomes another
token, brings together what is apart in the text.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from fastcompress._arguments import as_instance
from fastcompress.bpe.special_tokens import FLAGS, NEVER_MATCHED, SHARES_ID
from fastcompress.bpe.tokenizer import BPE
from fastcompress.bpe.training_texts import batches
from fastcompress.bpe.utf8_pieces import completions

# Texts before and after a token's bytes: where a pretoken ends may depend on its neighbours.
_CONTEXTS = tuple(
    (before, after)
    for before in (b"", b" ", b"\n", b"a", b"1", b"!")
    for after in (b"", b" ", b"\n", b"a", b"1", b"!", b" a")
)
_MOST_COMPLETIONS = 4096
_BATCH_BYTES = 1 << 20


class UnreachableTokens(NamedTuple):
    """Tokens for which no text was found whose encoding holds them; ids in ascending order. Special ones are left out.

    >>> UnreachableTokens(proved=[300], not_found=[]).proved
    [300]
    """

    proved: list[int]
    """Tokens that no text reaches, by the proofs of this module or because another token has their bytes."""
    not_found: list[int]
    """Tokens that no text that was tried reaches, without a proof that none does."""


def unreachable_tokens(bpe: BPE, *, num_threads: int | None = None) -> UnreachableTokens:
    """Find the tokens that no text reaches. A text may be any bytes, so tokens of half a character are reached.

    A token that is not returned is reached. The texts that are tried are its own bytes, alone and next to a space, line
    break, letter, digit or symbol, and for parts of characters up to 4,096 texts that complete them.

    Args:
        bpe: The vocabulary.
        num_threads: None for one per core. Does not change the result.

    >>> unreachable_tokens(BPE.train("to be or not to be. " * 9, vocab_size=260))
    UnreachableTokens(proved=[], not_found=[])
    """
    as_instance(bpe, BPE, "bpe")
    rows = bpe._core.added_tokens()
    special = {i for _, i, flags in rows if flags & FLAGS["special"] and not flags & SHARES_ID}
    remaining = {i: bpe.token_bytes(i) for i in np.flatnonzero(bpe.token_lengths).tolist() if i not in special}
    _remove_reached(bpe, remaining, ([text.encode()] for text, _, _ in rows), num_threads)
    for before, after in _CONTEXTS:
        _remove_reached(bpe, remaining, ([before + token + after] for token in remaining.values()), num_threads)
    cut = (completions(token, _MOST_COMPLETIONS) for token in remaining.values())
    _remove_reached(bpe, remaining, (texts if len(texts) > 1 else [] for texts in cut), num_threads)
    added = {i: flags for _, i, flags in rows if not flags & FLAGS["special"]}
    always = _always_matched(bpe, rows)
    proved = [i for i, token in remaining.items() if _is_proved(bpe, i, token, added, always)]
    return UnreachableTokens(proved, sorted(remaining.keys() - set(proved)))


def _remove_reached(
    bpe: BPE, remaining: dict[int, bytes], texts: Iterable[list[bytes]], num_threads: int | None
) -> None:
    """Remove the tokens that are in the encoding of any of some texts."""
    reached = np.zeros(bpe.vocab_size, np.bool_)
    for batch in batches(itertools.chain.from_iterable(texts), _BATCH_BYTES):
        tokens, _ = bpe.encode_batch_to_numpy(batch, num_threads, disallowed_special=())
        reached[tokens] = True
    for token_id in [i for i in remaining if reached[i]]:
        del remaining[token_id]


def _always_matched(bpe: BPE, rows: list[tuple[str, int, int]]) -> list[bytes]:
    """Return the texts that no ordinary text contains, since they become added tokens wherever they occur."""
    if bpe._core.prefix_space:
        return []
    special = [text for text, _, flags in rows if flags & FLAGS["special"]]
    may_miss = FLAGS["special"] | FLAGS["single_word"] | NEVER_MATCHED
    return [
        text.encode()
        for text, _, flags in rows
        if not flags & may_miss
        and (flags & FLAGS["normalized"] or not bpe._core.nfc)
        and not any(text in other for other in special)
    ]


def _is_proved(bpe: BPE, token_id: int, token: bytes, added: dict[int, int], always: list[bytes]) -> bool:
    """Return whether it is proved that no text reaches a token."""
    if token_id in added:
        return bool(added[token_id] & NEVER_MATCHED) and not added[token_id] & SHARES_ID
    core = bpe._core
    if not core.has_all_bytes:
        return False
    if any(text in token for text in always):
        return True
    if bpe.encode_by_merges(token) == [token_id]:
        return False
    looks_up = core.is_ranks or core.ignore_merges
    return not looks_up or bpe.token_id(token) != token_id
