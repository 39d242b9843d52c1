"""Statistics of data sets and vocabularies: figures beside a short oracle, unreachable tokens by brute force."""

from __future__ import annotations

import io
import itertools
import json
import math
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from fastcompress import BPE
from fastcompress.bpe import unreachable_tokens
from fastcompress.bpe.utf8_pieces import completions, may_be_in_utf8
from fastcompress.codec import BPECodec, ByteCodec, CharCodec, ChatCodec, Codec, EqualInfoCodec, GzipCodec, LZ77Codec
from fastcompress.data.statistics import (
    TextPart,
    can_cut,
    parts,
    read_parts,
    special_spellings,
    token_statistics,
    token_strings,
    vocabulary_statistics,
)
from fastcompress.data.statistics.vocabulary import ADDITIONS
from fastcompress.equal_info import Codebook
from fastcompress.errors import ConfigError, DataError
from fastcompress.formats.byte_level import to_alphabet
from tests.reference import statistics as oracle

EN = "To be, or not to be: that is the question.\nWhether 'tis nobler in the mind  to suffer\n\n" * 3
FR = "Être, ou ne pas être : telle est la question.\tY a-t-il pour l'âme plus de noblesse\u00a0? 日本語 😀\n" * 3
TEXTS = [("en", EN.encode()), ("fr", FR.encode()), ("en", b"one more\xff\xc3 text"), ("none", b"")]
PARTS = [TextPart(group, f"{group}.txt", data) for group, data in TEXTS]


def trained() -> BPE:
    """A small vocabulary with two special tokens."""
    return BPE.train([EN, FR], vocab_size=340, special_tokens=["<|end|>", "<|im end|>"])


@pytest.fixture(scope="module")
def bpe() -> BPE:
    return trained()


@pytest.fixture(scope="module")
def codecs(bpe: BPE) -> dict[str, Codec]:
    return {
        "byte": ByteCodec(),
        "bpe": BPECodec(bpe),
        "codebook": EqualInfoCodec(Codebook.train([EN, FR], bits=9)),
        "split codebook": EqualInfoCodec(Codebook.train([EN, FR], bits=9, pattern="gpt2")),
        "lz77": LZ77Codec(alphabet="buckets"),
    }


NAMES = ["byte", "bpe", "codebook", "split codebook", "lz77"]


def encoder(codec: Codec) -> oracle.Encode:
    return lambda data: codec.encode(data).tolist()


# --- Counts ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("num_threads", [1, 3])
def test_counts(name: str, num_threads: int, codecs: dict[str, Codec]) -> None:
    codec = codecs[name]
    counted = token_statistics(PARTS, codec, num_threads=num_threads)
    expected = oracle.counts(TEXTS, encoder(codec))
    assert list(counted.groups) == list(expected)
    for group, row in expected.items():
        g = counted.groups[group]
        assert (g.num_documents, g.num_bytes, g.num_characters, g.num_words, g.num_tokens) == row
        _, num_bytes, num_characters, num_words, num_tokens = row
        assert g.bytes_per_token == (num_bytes / num_tokens if num_tokens else None)
        assert g.tokens_per_character == (num_tokens / num_characters if num_characters else None)
        assert g.fertility == (num_tokens / num_words if num_words else None)
    frequencies = oracle.frequencies(TEXTS, encoder(codec))
    assert counted.token_counts.tolist() == [frequencies[i] for i in range(codec.vocab_size)]
    assert counted.by_frequency().tolist() == sorted(frequencies, key=lambda i: (-frequencies[i], i))
    assert counted.seen_less_than(10).tolist() == sorted(i for i, n in frequencies.items() if n < 10)
    assert counted.num_tokens == counted.total.num_tokens == frequencies.total()
    shares = [n / frequencies.total() for n in frequencies.values()]
    assert counted.unigram_bits == pytest.approx(-sum(share * math.log2(share) for share in shares))


def test_without_words_the_other_counts_are_the_same(codecs: dict[str, Codec]) -> None:
    counted = token_statistics(PARTS, codecs["bpe"], count_words=False)
    whole = token_statistics(PARTS, codecs["bpe"])
    assert counted.total.num_words == 0
    assert (counted.token_counts == whole.token_counts).all()
    assert counted.total.num_bytes == whole.total.num_bytes


def test_nothing_to_count() -> None:
    counted = token_statistics([], ByteCodec())
    assert (counted.groups, counted.num_tokens, counted.unigram_bits) == ({}, 0, None)
    assert len(counted.by_frequency()) == 0
    assert counted.total.bytes_per_token is None


def test_parity(codecs: dict[str, Codec]) -> None:
    counted = token_statistics(PARTS, codecs["bpe"])
    en, fr = counted.groups["en"], counted.groups["fr"]
    parity = counted.parity("en")
    assert parity["en"] == 1
    assert parity["none"] is None
    assert parity["fr"] == pytest.approx((fr.num_tokens / fr.num_bytes) / (en.num_tokens / en.num_bytes))
    with pytest.raises(DataError, match="group fr has 1 documents and en has 2"):
        counted.parity("en", is_parallel=True)
    parallel = token_statistics([PARTS[0], PARTS[1]], codecs["bpe"])
    assert parallel.parity("en", is_parallel=True)["fr"] == fr.num_tokens / parallel.groups["en"].num_tokens
    assert set(counted.parity("none").values()) == {None}
    with pytest.raises(ConfigError, match="it must be a group"):
        counted.parity("de")


def test_spellings_of_special_tokens(bpe: BPE) -> None:
    texts = [b"a <|end|><|end|> b", b"<|im end|>", b"<|end|", b"<|end|>>"]
    wanted = [*special_spellings(BPECodec(bpe)), "<|end|>>"]
    assert special_spellings(ChatCodec(ByteCodec()))[-1] == "<|end|>"
    counted = token_statistics([TextPart("g", str(i), t) for i, t in enumerate(texts)], BPECodec(bpe), spellings=wanted)
    assert counted.spellings == {"<|end|>": (2, 1), "<|im end|>": (1, 1), "<|end|>>": (1, 1)}
    special = list(bpe.special_tokens.values())
    assert not counted.token_counts[special].any()  # they are ordinary text


def test_an_error_names_the_document() -> None:
    codec = CharCodec.train(["abc"])
    texts = [TextPart("g", "good.txt", b"abc"), TextPart("g", "bad.txt", b"abd")]
    for num_threads in (1, 2):
        with pytest.raises(DataError, match=r"^bad\.txt: character 'd'"):
            token_statistics(texts, codec, num_threads=num_threads)

    def unreadable():  # type: ignore[no-untyped-def]
        yield texts[0]
        raise DataError("rows.jsonl: line 2 is not JSON")

    with pytest.raises(DataError, match=r"^rows\.jsonl: line 2"):
        token_statistics(unreadable(), codec)


# --- Streams ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["byte", "bpe"])
@pytest.mark.parametrize("part_bytes", [1, 7, 64])
def test_a_document_in_parts_counts_as_a_whole(
    name: str, part_bytes: int, codecs: dict[str, Codec], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "_PART_BYTES", part_bytes)
    codec = codecs[name]
    assert can_cut(codec)
    for data in (EN.encode(), FR.encode(), b"", b" \n ", b"a\xff b\xc3 c", EN.encode() + b"<|end|> <|end|>"):
        cut = list(read_parts(["-"], is_cut=True, stdin=io.BytesIO(data)))
        assert b"".join(part.data for part in cut) == data
        assert [part.ends_document for part in cut] == [False] * (len(cut) - 1) + [True]
        spellings = ["<|end|>"]
        whole = token_statistics([TextPart("standard input", "x", data)], codec, spellings=spellings)
        counted = token_statistics(cut, codec, spellings=spellings)
        assert counted.groups == whole.groups
        assert counted.spellings == whole.spellings
        assert (counted.token_counts == whole.token_counts).all()
    assert len(list(read_parts(["-"], is_cut=True, stdin=io.BytesIO(EN.encode())))) > 3
    assert len(list(read_parts(["-"], stdin=io.BytesIO(EN.encode())))) == 1


@pytest.mark.parametrize("num_threads", [1, 2])
def test_a_stream_is_not_read_far_ahead(num_threads: int) -> None:
    """Of 40 parts of 256 KiB, never more than a few are held, so memory does not grow with the text."""
    read, most, done = 0, 0, 0

    def stream() -> Iterator[TextPart]:
        nonlocal read, most
        for i in range(40):
            read += 1
            most = max(most, read - done)
            yield TextPart("g", "d", bytes([i]) * (1 << 18), ends_document=i == 39)

    def progress(num_bytes: int) -> None:
        nonlocal done
        done += 1

    counted = token_statistics(stream(), ByteCodec(), num_threads=num_threads, progress=progress)
    assert (read, done, counted.total.num_documents) == (40, 40, 1)
    assert most <= 2 * num_threads + 3
    assert counted.token_counts[:41].tolist() == [1 << 18] * 40 + [0]


def test_only_codecs_that_allow_it_are_cut(bpe: BPE, codecs: dict[str, Codec]) -> None:
    assert can_cut(ChatCodec(codecs["bpe"]))
    assert not can_cut(codecs["bpe"], ["<|im end|>"])  # a cut could fall into it
    assert not any(can_cut(codecs[name]) for name in ("codebook", "split codebook", "lz77"))
    assert not can_cut(BPECodec(BPE.train(EN, vocab_size=280, pattern="none")))
    assert not can_cut(BPECodec(BPE.train(EN, vocab_size=280, pattern=r"\w+|\W+")))
    assert not can_cut(BPECodec(huggingface_vocabulary([], normalizer={"type": "NFC"})))


def test_files_and_groups(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"plain")
    rows = [{"text": "one", "lang": "en"}, {"text": "un", "lang": "fr"}, {"text": "x"}, {"text": "y", "lang": 3}]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    found = [(part.group, part.data) for part in read_parts([tmp_path], group_key="lang")]
    assert found == [
        (str(tmp_path / "a.txt"), b"plain"),
        ("en", b"one"),
        ("fr", b"un"),
        ("(none)", b"x"),
        ("(none)", b"y"),
    ]
    (tmp_path / "table.csv").write_text("lang,text\nen,one\nfr,un\n")
    found = [(part.group, part.data) for part in read_parts([tmp_path / "*.csv"], group_key="lang")]
    assert found == [("en", b"one"), ("fr", b"un")]
    with pytest.raises(ConfigError, match="standard input is read once"):
        list(read_parts(["-"], group_key="lang", stdin=io.BytesIO()))
    by_file = list(read_parts([tmp_path / "rows.jsonl"]))
    assert {part.group for part in by_file} == {str(tmp_path / "rows.jsonl")}
    assert all(part.ends_document for part in by_file)
    with pytest.raises(DataError, match="no such file or folder"):
        list(read_parts([tmp_path / "nowhere"]))


# --- Vocabularies ----------------------------------------------------------------------------------------


def huggingface_vocabulary(merges: list[tuple[bytes, bytes]], **settings: object) -> BPE:
    """256 bytes and a token per merge, by merges alone."""
    tokens = [bytes([b]) for b in range(256)]
    tokens += [token for token in dict.fromkeys(a + b for a, b in merges) if token not in tokens]
    model = {
        "type": "BPE",
        "vocab": (vocab := {to_alphabet(token): i for i, token in enumerate(tokens)}),
        "merges": [[to_alphabet(a), to_alphabet(b)] for a, b in merges],
        "ignore_merges": settings.pop("ignore_merges", False),
    }
    split = {"type": "ByteLevel", "add_prefix_space": False, "use_regex": settings.pop("use_regex", False)}
    new_ids = itertools.count(len(tokens))
    added = [
        {
            "id": vocab.get(text) or next(new_ids),
            "content": text,
            "special": False,
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
        }
        for text in settings.pop("added", ())
    ]
    document = {"version": "1.0", "added_tokens": added, "normalizer": None, "pre_tokenizer": split}
    return BPE.from_huggingface({**document, "post_processor": None, "decoder": None, **settings, "model": model})


def random_merges(seed: int) -> list[tuple[bytes, bytes]]:
    """Merges of random pairs of tokens, many of which their own bytes do not give."""
    draw = random.Random(seed)
    tokens, merges = [b"a", b"b", b" "], []
    while len(merges) < 12:
        pair = (draw.choice(tokens), draw.choice(tokens))
        if len(pair[0] + pair[1]) <= 5 and pair not in merges:
            merges.append(pair)
            if pair[0] + pair[1] not in tokens:
                tokens.append(pair[0] + pair[1])
    return merges


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("use_regex", [False, True], ids=["one pretoken", "gpt2"])
def test_unreachable_tokens_are_those_that_brute_force_does_not_find(seed: int, use_regex: bool) -> None:
    """A token of at most 5 bytes is looked for in all texts of at most 8: by the lemma, longer than needed."""
    tok = huggingface_vocabulary(random_merges(seed), use_regex=use_regex)
    letters = [b"a", b"b", b" "]
    texts = [b"".join(t) for t in itertools.product(letters, repeat=8)]
    tokens, _ = tok.encode_batch_to_numpy(texts)  # shorter texts are their beginnings: checked below
    found = set(tokens.tolist()) | oracle.reached(tok.encode, letters, 6)
    missing = [i for i in range(256, tok.vocab_size) if i not in found]
    proved, not_found = unreachable_tokens(tok)
    assert set(proved) <= set(missing)
    assert sorted(proved + not_found) == missing
    if not use_regex:
        assert proved == missing
        assert not_found == []


@pytest.mark.parametrize("seed", range(6))
def test_added_tokens_hide_tokens_that_contain_their_text(seed: int) -> None:
    tok = huggingface_vocabulary(random_merges(seed), added=["a ", "bb"])
    letters = [b"a", b"b", b" "]
    found = oracle.reached(tok.encode, letters, 7)
    proved, not_found = unreachable_tokens(tok)
    assert sorted(proved) == [i for i in range(256, tok.vocab_size) if i not in found]
    assert not_found == []
    assert proved


def test_brute_force_meets_both_kinds() -> None:
    sizes = Counter(bool(unreachable_tokens(huggingface_vocabulary(random_merges(seed))).proved) for seed in range(12))
    assert sizes[True] >= 4
    crossing = huggingface_vocabulary([(b"a", b" ")], use_regex=True)  # gpt2 never leaves a space behind a letter
    assert unreachable_tokens(crossing) == ([], [256])
    assert unreachable_tokens(huggingface_vocabulary([(b"a", b" ")])) == ([], [])


def test_a_token_that_is_looked_up_is_reached() -> None:
    merges = [(b"a", b"b"), (b"b", b"c"), (b"a", b"bc")]
    assert unreachable_tokens(huggingface_vocabulary(merges)).proved == [258]
    assert unreachable_tokens(huggingface_vocabulary(merges, ignore_merges=True)) == ([], [])
    ranks = {bytes([b]): b for b in range(256)} | {b"ab": 256, b"zzz": 257, b"x y": 258}
    tok = BPE.from_ranks(ranks, pattern="gpt2", special_tokens={"<|end|>": 259})
    assert tok.encode("zzz") == [257]
    assert unreachable_tokens(tok) == ([], [258])  # no pretoken of gpt2 is "x y", but nothing here proves it


def test_parts_of_characters_are_reached_by_texts_that_complete_them() -> None:
    """Alone the cut character is no letter, so the pattern parts it from the letters before."""
    tok = BPE.train("שלום עולם, מה שלומך? тоже тот то " * 9, vocab_size=280)
    alone = [i for i in range(tok.vocab_size) if i not in tok.encode(tok.token_bytes(i))]
    assert alone
    assert unreachable_tokens(tok) == ([], [])


@pytest.mark.parametrize("name", ["byte", "bpe", "codebook", "split codebook"])
def test_measures_of_vocabularies(name: str, codecs: dict[str, Codec]) -> None:
    codec = codecs[name]
    measured = vocabulary_statistics(codec)
    assert measured is not None
    strings = token_strings(codec)
    assert strings == [codec.decode([i]) for i in range(codec.vocab_size)]
    special = measured.special
    ordinary = [i for i in range(codec.vocab_size) if i not in special]
    assert measured.ordinary == ordinary
    assert measured.unreachable == []
    assert all(i not in codec.encode(strings[i]) for i in measured.not_found)
    assert measured.broken_utf8 == [i for i in ordinary if not oracle.is_utf8(strings[i])]
    assert measured.num_tested == len(ordinary) - len(measured.broken_utf8)
    assert measured.longest(9) == sorted(ordinary, key=lambda i: (-len(strings[i]), i))[:9]
    only_ordinary = [b"" if i in special else string for i, string in enumerate(strings)]
    for addition, (before, after) in ADDITIONS.items():
        assert measured.unstable[addition] == oracle.unstable(encoder(codec), only_ordinary, before, after), addition
    if name == "bpe":
        assert len(special) == 2
        assert measured.unstable["space before"]


def test_codecs_whose_tokens_have_no_bytes() -> None:
    assert vocabulary_statistics(LZ77Codec()) is None
    assert vocabulary_statistics(GzipCodec()) is None


def test_a_vocabulary_with_gaps_and_marks() -> None:
    tok = BPE.train(EN, vocab_size=260, special_tokens={"<|end|>": 270})
    measured = vocabulary_statistics(ChatCodec(BPECodec(tok)))
    assert measured is not None
    assert len(measured.ordinary) == len(tok.ordinary_tokens())
    assert measured.special == [270, *range(271, 275)]
    alphabet = vocabulary_statistics(CharCodec.train(["abé"]))  # which has no space to add
    assert alphabet is not None
    assert (alphabet.not_found, alphabet.unstable["space after"], alphabet.num_tested) == ([], [], 3)


def test_bytes_that_utf8_text_may_hold() -> None:
    """All strings of one and two bytes, beside the pieces of every character and every two neighbours."""
    encoded = []
    for size, begin, end in ((1, 0, 0x80), (2, 0x80, 0x800), (3, 0x800, 0x10000), (4, 0x10000, 0x110000)):
        text = "".join(map(chr, (c for c in range(begin, end) if not 0xD800 <= c < 0xE000)))
        encoded.append(np.frombuffer(text.encode(), np.uint8).reshape(-1, size))
    singles = {bytes([b]) for characters in encoded for b in np.unique(characters).tolist()}
    inside = {
        bytes(divmod(int(pair), 256))
        for characters in encoded
        for i in range(characters.shape[1] - 1)
        for pair in np.unique(characters[:, i].astype(np.uint16) << 8 | characters[:, i + 1])
    }
    firsts = {b for characters in encoded for b in np.unique(characters[:, 0]).tolist()}
    lasts = {b for characters in encoded for b in np.unique(characters[:, -1]).tolist()}
    pairs = inside | {bytes([last, first]) for last in lasts for first in firsts}
    assert {bytes([b]) for b in range(256) if may_be_in_utf8(bytes([b]))} == singles
    for a, b in itertools.product(range(256), repeat=2):
        assert may_be_in_utf8(bytes([a, b])) == (bytes([a, b]) in pairs), (a, b)
    text = "aé日😀\u07ff\ud7ff\U0010ffff".encode()
    for begin, end in itertools.combinations(range(len(text) + 1), 2):
        assert may_be_in_utf8(text[begin:end])
    for bad in (b"\x80" * 4, b"\xed\xa0\x80", b"\xf4\x90", b"a\x80", b"\xe0\x9f\xbf", b"\xc3\xc3"):
        assert not may_be_in_utf8(bad)
        assert completions(bad, 9) == []
    for cut in (b"\xa9", b"\x80\x80 \xe0", b"\xf0", b"a"):
        assert all(cut in text and text.decode() for text in completions(cut, 100))
        assert 0 < len(completions(cut, 100)) <= 100


def test_counts_are_of_whole_batches_too(monkeypatch: pytest.MonkeyPatch) -> None:
    from fastcompress.data.statistics import counts

    monkeypatch.setattr(counts, "_IDS_AT_ONCE", 5)
    data = bytes(range(256)) * 2
    counted = token_statistics((TextPart("g", "d", data[i : i + 3]) for i in range(0, 512, 3)), ByteCodec())
    assert counted.token_counts.tolist() == [2] * 256
    assert counted.token_counts.dtype == np.int64
