"""Training against the oracles, on small texts in which pairs repeat, overlap and tie."""

from __future__ import annotations

import itertools
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastcompress import BPE, PretokenCounts
from fastcompress.bpe.rank_merges import learned_merges
from fastcompress.errors import ConfigError
from fastcompress.pretokenizer import PATTERNS, split
from tests.reference import bpe as oracle

small_text = st.text(alphabet="aab \n1'sé", max_size=60)
texts_of_letters = st.lists(st.text(alphabet="ab ", max_size=40), min_size=1, max_size=6)
texts_of_few = st.one_of(texts_of_letters, st.lists(small_text, min_size=1, max_size=6))
patterns = st.sampled_from(sorted(PATTERNS))
any_text = st.text(alphabet=st.characters(exclude_categories=["Cs", "Cn"]), max_size=80)
# What cutting a text could break: white space of all kinds beside letters, numbers, symbols and contractions.
cut_text = st.text(alphabet="aZ'sl1.\u00e9\u4e2d\u0301\u0663 \t\r\n\x0b\u3000\x85", max_size=60)


@pytest.mark.slow
@given(
    texts=texts_of_few,
    pattern=patterns,
    num_merges=st.integers(0, 40),
    min_frequency=st.integers(1, 4),
    max_token_length=st.one_of(st.none(), st.integers(1, 6)),
    threads=st.integers(1, 3),
)
@settings(max_examples=400, deadline=None)
def test_lowest_id_equals_the_oracle(
    texts: list[str],
    pattern: str,
    num_merges: int,
    min_frequency: int,
    max_token_length: int | None,
    threads: int,
) -> None:
    limits: dict[str, Any] = {"min_frequency": min_frequency, "max_token_length": max_token_length}
    expected = oracle.train(texts, pattern, num_merges, **limits)
    tok = BPE.train(texts, vocab_size=256 + len(expected), pattern=pattern, num_threads=threads, **limits)
    assert [tuple(merge) for merge in tok.merges.tolist()] == expected
    more = BPE.train(texts, vocab_size=256 + num_merges, pattern=pattern, **limits) if is_limited(limits) else tok
    assert [tuple(merge) for merge in more.merges.tolist()] == expected


def is_limited(limits: dict[str, Any]) -> bool:
    return limits["min_frequency"] > 1 or limits["max_token_length"] is not None


@pytest.mark.slow
@given(
    texts=texts_of_few,
    pattern=patterns,
    num_tokens=st.integers(0, 40),
    min_frequency=st.integers(1, 4),
    max_token_length=st.one_of(st.none(), st.integers(1, 6)),
    special_tokens=st.sampled_from([[], ["<|end|>"], ["<|pad|>", "<|end|>"]]),
    all_bytes=st.booleans(),
)
@settings(max_examples=600, deadline=None)
def test_huggingface_equals_the_oracle(
    texts: list[str],
    pattern: str,
    num_tokens: int,
    min_frequency: int,
    max_token_length: int | None,
    special_tokens: list[str],
    all_bytes: bool,
) -> None:
    alphabet = bytes(range(256)) if all_bytes else b"xyz"
    vocab_size = len(alphabet) + len(special_tokens) + num_tokens
    limits: dict[str, Any] = {"min_frequency": min_frequency, "max_token_length": max_token_length}
    ids, merges = oracle.train_huggingface(
        texts, pattern, vocab_size, special_tokens=special_tokens, initial_alphabet=alphabet, **limits
    )
    if not is_limited(limits):
        vocab_size = min(vocab_size, len(ids))
    tok = BPE.train(
        texts,
        vocab_size=vocab_size,
        pattern=pattern,
        special_tokens=special_tokens,
        tie_break="huggingface",
        initial_alphabet=None if all_bytes else alphabet,
        **limits,
    )
    specials = {i: text for text, i in tok.special_tokens.items()}

    def spelled(i: int) -> str:
        return specials.get(i) or "".join(oracle.BYTE_ALPHABET[b] for b in tok.token_bytes(i))

    assert {spelled(i): i for i in range(len(ids))} == ids
    assert [(spelled(left), spelled(right)) for left, right, _ in tok.merges.tolist()] == merges
    left_out = list(range(len(ids), tok.vocab_size))
    assert all(len(tok.token_bytes(i)) == 1 for i in left_out)  # bytes that no text holds, beyond the vocabulary


@given(texts=texts_of_few, more=texts_of_few, pattern=patterns, first=st.integers(0, 12), then=st.integers(0, 12))
@settings(max_examples=200, deadline=None)
def test_going_on_equals_the_oracle(texts: list[str], more: list[str], pattern: str, first: int, then: int) -> None:
    begin = oracle.train(texts, pattern, first)
    base = BPE.train(texts, vocab_size=256 + len(begin) + 1, pattern=pattern, special_tokens=["<|end|>"])
    expected = oracle.train(more, pattern, then, base=begin, first_id=base.vocab_size)
    tok = BPE.train(
        more,
        vocab_size=base.vocab_size + len(expected) + 1,
        continue_from=base,
        special_tokens=["<|new|>"],
        min_frequency=1,
    )
    assert [tuple(merge) for merge in tok.merges.tolist()] == begin + expected
    assert tok.special_tokens == {"<|end|>": base.vocab_size - 1, "<|new|>": tok.vocab_size - 1}
    assert all(tok.token_bytes(i) == base.token_bytes(i) for i in range(base.vocab_size))


@given(texts=texts_of_few, more=texts_of_few, pattern=patterns, first=st.integers(0, 12), then=st.integers(0, 12))
@settings(max_examples=200, deadline=None)
def test_going_on_from_ranks_equals_the_oracle(
    texts: list[str], more: list[str], pattern: str, first: int, then: int
) -> None:
    begin = oracle.train(texts, pattern, first)
    spelled = {i: bytes([i]) for i in range(256)}
    for left, right, result in begin:
        spelled[result] = spelled[left] + spelled[right]
    if len(set(spelled.values())) < len(spelled):
        return  # two merges made one string: no rank file says that
    ranks = BPE.from_ranks({token: i for i, token in spelled.items()}, pattern=pattern, special_tokens={"<|end|>": 300})
    expected = oracle.train(more, pattern, then, base=begin, first_id=301)
    tok = BPE.train(more, vocab_size=301 + len(expected), continue_from=ranks)
    assert [tuple(merge) for merge in tok.merges.tolist()] == begin + expected


token_sets = st.lists(st.text(alphabet="abc", min_size=2, max_size=6), min_size=1, max_size=12, unique=True)


@pytest.mark.slow
@given(
    tokens=token_sets,
    texts=st.lists(st.text(alphabet="abc", max_size=30), min_size=1, max_size=8),
    first_byte=st.sampled_from([0, 1000]),
)
@settings(max_examples=1000, deadline=None)
def test_merges_of_ranks_give_the_ids_of_ranks(tokens: list[str], texts: list[str], first_byte: int) -> None:
    """Any ranks, not only trained ones; the tokens that no merge makes are left out one by one."""
    ranks = {bytes([i]): first_byte + i for i in range(256)}
    for token in tokens:
        try:
            learned_merges(ranks | {token.encode(): 256 + len(ranks)})
        except ConfigError:
            continue
        ranks[token.encode()] = 256 + len(ranks)
    by_ranks = BPE.from_ranks(ranks, pattern="none")
    by_merges = BPE.train("", vocab_size=by_ranks.vocab_size, continue_from=by_ranks)
    assert len(by_merges.merges) == len(ranks) - 256
    for text in [*texts, *tokens]:
        assert by_merges.encode(text) == by_ranks.encode(text)


@pytest.mark.slow
@given(texts=texts_of_few, first=st.integers(0, 12), then=st.integers(0, 12))
@settings(max_examples=200, deadline=None)
def test_stopping_and_going_on_changes_nothing(texts: list[str], first: int, then: int) -> None:
    expected = oracle.train(texts, "cl100k", first + then)
    middle = BPE.train(texts, vocab_size=256 + min(first, len(expected)))
    assert BPE.train(texts, vocab_size=256 + len(expected), continue_from=middle) == BPE.train(
        texts, vocab_size=256 + len(expected)
    )


@given(texts=st.lists(any_text, max_size=8), pattern=patterns, cap=st.integers(1, 3000), threads=st.integers(1, 3))
@settings(max_examples=100, deadline=None)
def test_counts_do_not_depend_on_memory_or_threads(texts: list[str], pattern: str, cap: int, threads: int) -> None:
    expected: dict[bytes, int] = {}
    for text in texts:
        for piece in split(text, pattern):
            expected[piece] = expected.get(piece, 0) + 1
    spilled = BPE.count_pretokens(texts, pattern=pattern, num_threads=threads, max_memory_bytes=cap)
    assert list(spilled.items()) == sorted(expected.items())
    assert len(spilled) == len(expected)
    assert (spilled.num_runs > 0) == (len(expected) > 0)
    assert spilled == BPE.count_pretokens(texts, pattern=pattern)


@given(texts=st.lists(any_text, max_size=8), cuts=st.lists(st.integers(0, 8), max_size=3))
@settings(max_examples=100, deadline=None)
def test_counts_of_parts_add_up(texts: list[str], cuts: list[int]) -> None:
    borders = [0, *sorted(min(cut, len(texts)) for cut in cuts), len(texts)]
    whole = BPE.count_pretokens(texts)
    total = PretokenCounts()
    for begin, end in itertools.pairwise(borders):
        total += BPE.count_pretokens(texts[begin:end])
    assert total == whole
    assert total.to_bytes() == whole.to_bytes()


@pytest.mark.slow
@given(text=cut_text, pattern=patterns.filter(lambda name: name != "none"))
@settings(max_examples=1500, deadline=None)
def test_a_text_may_be_cut_where_the_core_says(text: str, pattern: str) -> None:
    from fastcompress._core.bpe import last_cut

    data = text.encode()
    rest, parts = data, []
    while cut := last_cut(rest):
        parts.append(rest[cut:])
        rest = rest[:cut]
    parts.append(rest)
    assert [piece for part in reversed(parts) for piece in split(part, pattern)] == split(data, pattern)


@given(data=st.binary(max_size=60), pattern=patterns.filter(lambda name: name != "none"))
@settings(max_examples=300, deadline=None)
def test_bytes_may_be_cut_too(data: bytes, pattern: str) -> None:
    from fastcompress._core.bpe import last_cut

    data = data.replace(b"\x00", b"a ").replace(b"\x01", b"\xc3\xa9\n")
    cut = last_cut(data)
    assert split(data[:cut], pattern) + split(data[cut:], pattern) == split(data, pattern)


@pytest.mark.parametrize("pattern", sorted(PATTERNS))
def test_a_file_is_one_text(pattern: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from fastcompress.bpe import counts

    monkeypatch.setattr(counts, "_BATCH_BYTES", 7)
    text = "It's 12 o'clock;  \n\n  the caf\u00e9 isn't open.\r\n" * 9
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "text.txt")
        path.write_bytes(text.encode())
        counted = BPE.count_pretokens([path, "and more"], pattern=pattern, num_threads=1)
    assert counted == BPE.count_pretokens([text, "and more"], pattern=pattern)
