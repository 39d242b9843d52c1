"""Rank files, read and written: against a short Python reader, and vocabularies that ranks can and cannot express."""

from __future__ import annotations

import base64
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from fastcompress import BPE
from fastcompress._core import bpe as core
from fastcompress.errors import ConfigError, FormatError
from fastcompress.formats.rank_file import MAX_IDS, read_rank_file

BYTES = [bytes([byte]) for byte in range(256)]


def rank_file(tokens: list[bytes]) -> bytes:
    return b"".join(base64.b64encode(token) + b" %d\n" % rank for rank, token in enumerate(tokens))


def read_by_the_book(content: bytes) -> dict[bytes, int]:
    """The reader in Python that this one replaced. ValueError for what it refuses."""
    ranks: dict[bytes, int] = {}
    for line in content.split(b"\n"):
        if line.strip():
            encoded, digits = line.split()
            token, rank = base64.b64decode(encoded, validate=True), int(digits)
            if not token or not digits.isdigit() or token in ranks or rank in ranks.values() or rank >= MAX_IDS:
                raise ValueError
            ranks[token] = rank
    if not ranks:
        raise ValueError
    return ranks


tokens = st.binary(min_size=1, max_size=20)
lines = st.one_of(
    st.tuples(tokens.map(base64.b64encode), st.integers(0, 40).map(lambda rank: b"%d" % rank)).map(b" ".join),
    st.sampled_from([b"", b" ", b"\t YQ==\t 7 \r", b"YQ== 007", b"YR== 3", b"YQ 1", b"YQ=a 1", b"=QQQ 1", b"YQ== -1"]),
    st.sampled_from([b"YQ==1", b"YQ== 1 2", b"YQ== x", b"YQ==\x0b1", b"Y\xffQ= 1", b"==== 1", b"= 1", b"YQ==YQ== 1"]),
    st.sampled_from([b"YQ== 99999999999999999999999", b"YQ== +1", b"YQ== 1_0", b"YQ==\xa01", b"YQ===== 1", b"YQA= 1"]),
    st.binary(max_size=8),
)


@given(content=st.lists(lines, max_size=6).map(b"\n".join))
@example(content=b"YQ== %d\n" % (MAX_IDS - 1))
@example(content=b"YQ== %d\n" % MAX_IDS)
@settings(max_examples=800, deadline=None)
def test_reading_equals_the_reader_in_python(content: bytes) -> None:
    try:
        expected = read_by_the_book(content)
    except ValueError:
        with pytest.raises((FormatError, ConfigError)):
            core.parse_rank_file(content)
        return
    if max(expected.values()) > 1 << 18:
        with pytest.raises(ConfigError, match="unused"):
            core.parse_rank_file(content)
    else:
        assert core.parse_rank_file(content) == expected


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"\n \r\n", "is empty"),
        (b"YQ== 0\n\nYg==\n", "line 3: expected 'base64 rank'; is this a .tiktoken file"),
        (b"YQ== 0\nYg== 0\n", "line 2: the rank 0 stands on an earlier line too"),
        (b"YQ== 0\nYg== 1\r\nYQ== 2\n", "line 3: the token of rank 2 stands on an earlier line too"),
        (b"YQ== %d\n" % MAX_IDS, rf"line 1: the token is empty or its rank is not in \[0, {MAX_IDS}\)"),
        (b"\x89FCBPE\r\n", "line 1: expected"),
    ],
)
def test_errors_name_file_and_line(content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "x.tiktoken"
    path.write_bytes(content)
    with pytest.raises(FormatError, match=rf"x\.tiktoken: {message}"):
        read_rank_file(path)
    with pytest.raises(FormatError, match=rf"x\.tiktoken: {message}"):
        BPE.from_tiktoken(path, pattern="gpt2")


def test_a_token_that_stands_twice_is_found_after_the_fact(tmp_path: Path) -> None:
    path = tmp_path / "x.tiktoken"
    path.write_bytes(rank_file([*BYTES, b"ab", b"cd", b"ab"]))
    with pytest.raises(FormatError, match=r"x\.tiktoken: line 259: the token of rank 258 stands on an earlier line"):
        BPE.from_tiktoken(path, pattern="gpt2")
    with pytest.raises(FormatError, match="line 259"):
        read_rank_file(path)


# ---------------------------------------------------------------------- writing


def test_a_rank_file_survives_unchanged(tmp_path: Path, data_directory: Path) -> None:
    import lzma

    content = lzma.decompress((data_directory / "vocabs/p50k_base.tiktoken.xz").read_bytes())
    (tmp_path / "in.tiktoken").write_bytes(content)
    tok = BPE.from_tiktoken(tmp_path / "in.tiktoken", pattern="gpt2", special_tokens={"<|endoftext|>": 50256})
    tok.to_tiktoken(tmp_path / "out.tiktoken")
    assert (tmp_path / "out.tiktoken").read_bytes() == content


def with_merges(merges: list[tuple[int, int, int]], tokens: list[bytes]) -> BPE:
    """A vocabulary of merges that training would not give, by its serialized form."""
    import hashlib
    import struct

    def string(text: bytes) -> bytes:
        return struct.pack("<I", len(text)) + text

    spelled = [*BYTES, *tokens]
    blob = b"\x89FCBPE\r\n" + struct.pack("<IB", 1, 0) + string(b"none")
    blob += struct.pack("<I", len(spelled)) + b"".join(map(string, spelled))
    blob += struct.pack("<I", len(merges)) + b"".join(struct.pack("<III", *merge) for merge in merges)
    blob += struct.pack("<I", 0)
    return BPE.from_bytes(blob + hashlib.sha256(blob).digest())


A, B, C, D = b"abcd"


@pytest.mark.parametrize(
    ("merges", "tokens", "reason"),
    [
        ([(A, B, 256), (256, C, 257), (B, C, 258), (A, 258, 259)], [b"ab", b"abc", b"bc", b"abc"], "259 is not what"),
        ([(A, B, 257), (C, D, 256)], [b"cd", b"ab"], "256 has an id out of merge order"),
        ([(A, B, 256)], [b"ab", b"cd"], "257 is the result of no merge"),
        ([(256, C, 257), (A, B, 256)], [b"ab", b"abc"], "257 is merged from a token that is made later"),
        ([(B, C, 256), (A, B, 257), (257, C, 258)], [b"bc", b"ab", b"abc"], "258 is not what its own bytes encode to"),
        ([(A, B, 256), (C, D, 257), (256, 257, 258), (B, C, 259)], [b"ab", b"cd", b"abcd", b"bc"], ""),
    ],
)
def test_vocabularies_that_ranks_can_and_cannot_express(
    merges: list[tuple[int, int, int]], tokens: list[bytes], reason: str, tmp_path: Path
) -> None:
    tok = with_merges(merges, tokens)
    path = tmp_path / "x.tiktoken"
    if reason:
        with pytest.raises(ConfigError, match=f"token {reason}.*a rank file cannot express"):
            tok.to_tiktoken(path)
        assert not path.exists()
    else:
        tok.to_tiktoken(path)
        assert BPE.from_tiktoken(path, pattern="none").encode("abcdbc") == tok.encode("abcdbc")


texts = st.text(alphabet="aab", max_size=30)


@given(corpus=st.lists(texts, min_size=1, max_size=6), size=st.integers(257, 290), unseen=st.lists(texts, max_size=20))
@settings(max_examples=120, deadline=None)
def test_written_ranks_give_the_same_ids(
    corpus: list[str], size: int, unseen: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Or the vocabulary is refused, and then a token's own bytes show why: they are no longer what they were."""
    try:
        tok = BPE.train(corpus, vocab_size=size, pattern="none")
    except ValueError:
        assume(False)
    path = tmp_path_factory.mktemp("ranks") / "x.tiktoken"
    spellings = [tok.token_bytes(i) for i in range(256, tok.vocab_size)]
    try:
        tok.to_tiktoken(path)
    except ConfigError:
        repeated = len(set(spellings)) < len(spellings)
        assert repeated or any(tok.encode(bytes_) != [256 + i] for i, bytes_ in enumerate(spellings))
        return
    ranked = BPE.from_tiktoken(path, pattern="none")
    for text in [*unseen, *corpus, *spellings]:
        assert ranked.encode(text) == tok.encode(text)


def test_a_trained_vocabulary_for_tiktoken(tmp_path: Path) -> None:
    import tiktoken

    from fastcompress.pretokenizer import PATTERNS

    text = Path(__file__).read_text(encoding="utf-8")
    tok = BPE.train(text, vocab_size=800, pattern="cl100k")
    tok.to_tiktoken(tmp_path / "x.tiktoken")
    ranks = read_rank_file(tmp_path / "x.tiktoken")
    theirs = tiktoken.Encoding("x", pat_str=PATTERNS["cl100k"], mergeable_ranks=ranks, special_tokens={})
    assert tok.encode(text) == theirs.encode(text)


@pytest.mark.parametrize("option", ["nfc", "prefix_space"])
def test_what_happens_before_merging_is_not_in_a_rank_file(option: str, tmp_path: Path) -> None:
    options = {"nfc": False, "prefix_space": False, "ignore_merges": False, option: True}
    merges = np.zeros((0, 3), np.uint32)
    tok = BPE(
        core.Tokenizer.from_merges(tokens=BYTES, merges=merges, pattern="none", added_tokens=[], metadata="", **options)
    )
    with pytest.raises(ConfigError, match="changes text before it merges"):
        tok.to_tiktoken(tmp_path / "x.tiktoken")


def test_the_largest_number_of_unused_ids() -> None:
    ranks = {bytes([byte]): byte for byte in range(256)}
    last = 256 + 262_144
    tok = BPE.from_ranks(ranks, pattern="gpt2", special_tokens={"<x>": last})
    assert tok.vocab_size == last + 1
    assert BPE.from_bytes(tok.to_bytes()) == tok
    with pytest.raises(ConfigError, match="262145 ids are unused; at most 262144 may be"):
        BPE.from_ranks(ranks, pattern="gpt2", special_tokens={"<x>": last + 1})
