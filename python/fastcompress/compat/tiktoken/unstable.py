"""Completions of a text that is still being written, as in ``tiktoken.Encoding.encode_with_unstable``.

The last pretoken of a text is unstable: text appended to it may change its tokens. A completion consists of the first
tokens of the encoding of the unstable bytes and some more bytes, as many as are needed to cover the unstable bytes.
tiktoken enumerates the completions in which one token crosses the end of the text: for every position in the unstable
bytes, it takes every token that begins with the bytes from there on.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from fastcompress.bpe import BPE
from fastcompress.bpe.training_texts import batches
from fastcompress.compat.tiktoken.long_unstable import LongCompletions
from fastcompress.pretokenizer import PATTERNS

_BLANKS = frozenset(b" \n\t")
# Unicode's White_Space. (str.isspace() also includes U+001C to U+001F.)
_WHITE_SPACE = frozenset(
    "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
)
_CHUNK_BYTES = 1 << 20
_MANY_BYTES = 128  # up to this length, encoding all candidates in the core is faster than examining each in Python


def num_unstable_tokens(tokenizer: BPE, segment: npt.NDArray[np.uint32]) -> int:
    """Return the number of unstable tokens at the end of a text.

    These are the tokens of the last pretoken, and if it begins with a token of white space, the tokens of white space
    before it.

    Args:
        tokenizer: The tokenizer.
        segment: The tokens of the text after its last special token, uint32[n].
    """
    if segment.size == 0:
        return 0
    ends = tokenizer.pretoken_ends(tokenizer.decode_bytes(segment))
    token_ends = np.cumsum(tokenizer.token_lengths[segment])
    begin = int(ends[-2]) if len(ends) > 1 else 0
    count = len(segment) - int(np.searchsorted(token_ends, begin, "right"))

    def is_blank(position: int) -> bool:
        return _BLANKS.issuperset(tokenizer.token_bytes(segment[-position]))

    if is_blank(count):
        while count < len(segment) and is_blank(count + 1):
            count += 1
    return count


def completions(
    tokenizer: BPE, unstable: bytes, ranks: Mapping[bytes, int], sorted_tokens: Sequence[bytes]
) -> list[list[int]]:
    """Return every completion of unstable bytes once, in no particular order.

    Args:
        tokenizer: The tokenizer.
        unstable: The unstable bytes.
        ranks: The ids of the ordinary tokens.
        sorted_tokens: The ordinary tokens in the order of their bytes.

    Takes time in proportion to the number of candidates (the tokens that may cross the end: tens of thousands if the
    text ends in a space) times the length of `unstable`. Above `_MANY_BYTES` bytes, under a named pattern, it is the
    number of candidates times the number of ids in a completion.
    """
    found: dict[tuple[int, ...], None] = dict.fromkeys(
        (ranks[token],) for token in _beginning_with(sorted_tokens, unstable)
    )
    tails = _tails(tokenizer, unstable, sorted_tokens)
    if len(unstable) > _MANY_BYTES and tokenizer.pattern in PATTERNS:
        found.update(dict.fromkeys(map(LongCompletions(tokenizer, unstable, ranks).of_tail, tails)))
    else:
        for chunk in batches((unstable + tail for tail in tails), _CHUNK_BYTES):
            found.update(dict.fromkeys(_encoded_until(tokenizer, chunk, len(unstable))))
    # When more text follows, a character of white space may be split from the one before it, as in \s+(?!\S).
    last = unstable.decode("utf-8")[-1:]
    head = unstable[: -len(last.encode("utf-8"))]
    if head and last in _WHITE_SPACE:
        found[(*tokenizer.encode_by_merges(head), *tokenizer.encode_by_merges(last.encode("utf-8")))] = None
    return [list(completion) for completion in found]


def _beginning_with(sorted_tokens: Sequence[bytes], prefix: bytes) -> Sequence[bytes]:
    begin = bisect_left(sorted_tokens, prefix)
    stem = prefix.rstrip(b"\xff")  # the smallest string after all those with this prefix has its last byte plus 1
    after = stem[:-1] + bytes([stem[-1] + 1]) if stem else None
    return sorted_tokens[begin : None if after is None else bisect_left(sorted_tokens, after, begin)]


def _tails(tokenizer: BPE, unstable: bytes, sorted_tokens: Sequence[bytes]) -> list[bytes]:
    """Return once each tail, the bytes after the unstable ones of a token that crosses their end."""
    longest = int(tokenizer.token_lengths.max())
    suffixes = [unstable[cut:] for cut in range(max(1, len(unstable) - longest), len(unstable))]
    return list(dict.fromkeys(token[len(end) :] for end in suffixes for token in _beginning_with(sorted_tokens, end)))


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _encoded_until(tokenizer: BPE, texts: list[bytes], num_bytes: int) -> Iterator[tuple[int, ...]]:
    """Yield the first tokens of each text, as many as are needed to cover its first `num_bytes` bytes.

    A text that is not UTF-8 is merged as one pretoken, as in tiktoken.
    """
    valid = []
    for text in texts:
        if _is_utf8(text):
            valid.append(text)
        else:
            merged = tokenizer.encode_by_merges(text)
            merged_ends = np.cumsum(tokenizer.token_lengths[merged])
            yield tuple(merged[: int(np.searchsorted(merged_ends, num_bytes)) + 1])
    tokens, offsets = tokenizer.encode_batch_to_numpy(valid, 1, disallowed_special=())
    begins = offsets[:-1].astype(np.int64)
    # For each token the number of bytes before it, and for each text the end of the tokens that begin before num_bytes.
    before = np.concatenate(([0], np.cumsum(tokenizer.token_lengths[tokens])))
    limits = before[begins] + num_bytes
    ends = np.searchsorted(before[:-1], limits)
    ids = tokens.tolist()
    for begin, end in zip(begins.tolist(), np.minimum(ends, offsets[1:].astype(np.int64)).tolist(), strict=True):
        yield tuple(ids[begin:end])
