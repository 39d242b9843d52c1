"""tokenizer.json both ways, beside `tokenizers` itself: every id must be equal."""

from __future__ import annotations

import copy
import functools
import hashlib
import json
import lzma
import pickle
import random
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from fastcompress import BPE
from fastcompress.bpe import AddedToken
from fastcompress.errors import ConfigError, DataError, FastcompressError, FormatError
from fastcompress.formats.byte_level import ALPHABET, from_alphabet, to_alphabet
from fastcompress.formats.tokenizer_json import BEHAVIORS, read_tokenizer_json
from tests.test_bpe_tiktoken import read_texts

VECTORS = Path(__file__).parent / "vectors"
CORPUS = [
    "The cat sat on the mat, the cats sat there: 1234 times, it's said.\n\n  def f(x):\n    return x\n" * 4,
    "Voilà un café à Zürich. 日本語のテキスト, 한국어, हिन्दी क़लम, Ελληνικά. naïve e\u0301te\u0301\r\n" * 4,
    " ".join(
        a + b + c
        for a in ("ca", "the", "re", "un")
        for b in ("b", "t", "mer", "l", "str")
        for c in ("ing", "ed", "o", "sal", "y")
    )
    * 3,
]
PIECES = [
    *"aBe1 9_'!<>/é日한क\n\t\r\u0301\u0323\u093c\u00a0\u3000\u0085\u001c\u017f\u212b\ufb01",
    *("  ", "   ", "\r\n", "'s", "'LL", "the", " cat", "<s>", "<a", "<a>", "e\u0301", "\u1100\u1161\u11a8", "😀", "ſs"),
]
texts_strategy = st.lists(st.sampled_from(PIECES), max_size=14).map("".join)


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A small file of GPT-2's kind, as a dictionary."""
    path = tmp_path_factory.mktemp("plain") / "tokenizer.json"
    BPE.train(CORPUS, vocab_size=500, pattern="gpt2").to_huggingface(path)
    document: dict[str, Any] = json.loads(path.read_bytes())
    return document


@pytest.fixture(scope="module")
def published(data_directory: Path) -> Callable[[str], tuple[bytes, BPE]]:
    """Reads a published tokenizer.json, once: its bytes, and what they are here."""

    @functools.cache
    def read(name: str) -> tuple[bytes, BPE]:
        blob = lzma.decompress((data_directory / f"vocabs/{name}.tokenizer.json.xz").read_bytes())
        return blob, BPE.from_huggingface(blob)

    return read


def changed(document: dict[str, Any], *, model: dict[str, Any] | None = None, **parts: Any) -> dict[str, Any]:
    new = {**copy.deepcopy(document), **parts}
    new["model"].update(model or {})
    return new


def added(text: str, token_id: int, **flags: bool) -> dict[str, Any]:
    names = ("special", "normalized", "lstrip", "rstrip", "single_word")
    return {"id": token_id, "content": text} | {name: flags.get(name, False) for name in names}


def random_texts(count: int, seed: int, extra: list[str] | None = None) -> list[str]:
    draw = random.Random(seed)
    pieces = PIECES + (extra or []) * 4
    return ["".join(draw.choice(pieces) for _ in range(draw.randrange(16))) for _ in range(count)]


def reference_ids(reference: Tokenizer, text: str) -> list[int] | None:
    """The ids of tokenizers; None where it panics, as it does where an added token strips into the next one."""
    try:
        ids: list[int] = reference.encode(text, add_special_tokens=False).ids
    except BaseException as error:
        if type(error).__name__ != "PanicException" or "bad split" not in str(error):
            raise
        return None
    return ids


def assert_equal_ids(document: dict[str, Any], texts: list[str]) -> BPE:
    ours = BPE.from_huggingface(document)
    reference = Tokenizer.from_str(json.dumps(document))
    for text in texts:
        for is_text, options in ((False, {"allowed_special": "all"}), (True, {"disallowed_special": ()})):
            reference.encode_special_tokens = is_text
            found, expected = ours.encode(text, **options), reference_ids(reference, text)
            assert expected is None or found == expected, text
    return ours


# ---------------------------------------------------------------------- the byte-level alphabet


def test_alphabet() -> None:
    assert len(set(ALPHABET)) == 256
    assert to_alphabet(b" \n!\xc3\xa9") == "ĠĊ!Ã©"
    assert from_alphabet(to_alphabet(bytes(range(256)))) == bytes(range(256))
    assert [from_alphabet(text) for text in (" ", "\n", "日", "\x7f", "\u0144")] == [None] * 5


# ---------------------------------------------------------------------- models and what they hold


def test_plain_file(plain: dict[str, Any]) -> None:
    tok = assert_equal_ids(plain, [*CORPUS, *random_texts(300, 1)])
    assert (tok.pattern, tok.vocab_size, tok.lossless, tok.special_tokens) == ("gpt2", 500, True, {})
    legacy = changed(plain, model={"merges": ["#version: 0.2", *map(" ".join, plain["model"]["merges"])]})
    del legacy["model"]["type"]
    assert BPE.from_huggingface(legacy).encode(CORPUS[1]) == tok.encode(CORPUS[1])
    assert BPE.from_huggingface(json.dumps(plain).encode()) == tok


def test_ignore_merges(plain: dict[str, Any]) -> None:
    vocabulary = plain["model"]["vocab"] | {to_alphabet(b" unreachable"): 500, "the": 501}
    for ignore_merges in (False, True):
        document = changed(plain, model={"ignore_merges": ignore_merges, "vocab": vocabulary})
        tok = assert_equal_ids(document, ["an unreachable token", "the cat", *random_texts(200, 2)])
        assert (500 in tok.encode("an unreachable token")) == ignore_merges


def test_of_a_pair_that_merges_twice_the_later_merge_counts(plain: dict[str, Any]) -> None:
    merges = plain["model"]["merges"]
    assert_equal_ids(changed(plain, model={"merges": [*merges, merges[0], merges[3]]}), CORPUS)


def test_bytes_that_never_occur_in_utf8_may_be_missing(plain: dict[str, Any]) -> None:
    missing = [to_alphabet(bytes([byte])) for byte in (0xC0, 0xC1, *range(0xF5, 0x100))]
    vocabulary = {text: number for text, number in plain["model"]["vocab"].items() if text not in missing}
    replacement = to_alphabet("\ufffd".encode())
    vocabulary |= {replacement[:2]: 600, replacement: 601}
    merges = [[replacement[0], replacement[1]], [replacement[:2], replacement[2]], *plain["model"]["merges"]]
    document = changed(plain, model={"vocab": vocabulary, "merges": merges})
    tok = assert_equal_ids(document, [*CORPUS, "\ufffd\ufffd"])
    assert not tok.lossless
    assert tok.encode(b"a\xffb\xc0") == tok.encode("a\ufffdb\ufffd")
    assert BPE.from_bytes(tok.to_bytes()).encode(b"a\xffb") == tok.encode("a\ufffdb")
    del vocabulary["a"]
    with pytest.raises(FormatError, match="single byte 97"):
        BPE.from_huggingface(changed(document, model={"vocab": vocabulary, "merges": []}))


@pytest.mark.parametrize("name", ["gpt2", "gpt_neox", "modernbert", "deepseek"])
def test_golden_ids(name: str, data_directory: Path, published: Callable[[str], tuple[bytes, BPE]]) -> None:
    """Ids computed once by tokenizers 0.23.3, special tokens in the text matched."""
    _, tok = published(name)
    lines = lzma.decompress((data_directory / "vocabs/golden-ids.jsonl.xz").read_bytes()).decode().split("\n")
    cases = [json.loads(line) for line in lines[1:] if line]
    assert len(cases) > 300
    for case in cases:
        assert tok.encode(case["text"], allowed_special="all") == case["ids"][f"hf:{name}"]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gpt2", "gpt_neox", "modernbert", "deepseek"])
def test_published_files_on_corpora(
    name: str, data_directory: Path, tmp_path: Path, published: Callable[[str], tuple[bytes, BPE]]
) -> None:
    blob, tok = published(name)
    tok.to_huggingface(tmp_path / "again.json")
    references = [Tokenizer.from_buffer(blob), Tokenizer.from_file(str(tmp_path / "again.json"))]
    assert BPE.from_huggingface(tmp_path / "again.json") == tok
    extra = [token.text for token in tok.added_tokens]
    texts = [*read_texts(data_directory / "multilingual/multi-val.jsonl.xz"), *random_texts(3000, 3, extra)]
    texts += read_texts(data_directory / "code/code-val.jsonl.xz")
    ids = tok.encode_batch(texts, allowed_special="all")
    for reference in references:
        reference.no_truncation()
        assert [encoding.ids for encoding in reference.encode_batch_fast(texts, add_special_tokens=False)] == ids


# ---------------------------------------------------------------------- pre-tokenizers and NFC


def split(pattern: str, behavior: str = "Isolated", invert: bool = False, kind: str = "Regex") -> dict[str, Any]:
    return {"type": "Split", "pattern": {kind: pattern}, "behavior": behavior, "invert": invert}


def byte_level(prefix: bool = False, regex: bool = True) -> dict[str, Any]:
    return {"type": "ByteLevel", "add_prefix_space": prefix, "trim_offsets": True, "use_regex": regex}


def sequence(*steps: dict[str, Any]) -> dict[str, Any]:
    return {"type": "Sequence", "pretokenizers": list(steps)}


SPLITS = [
    *(split(r"\s+", behavior, invert) for behavior in BEHAVIORS for invert in (False, True)),
    *(split(" ", behavior, False, "String") for behavior in BEHAVIORS),
    *({"type": "Digits", "individual_digits": each} for each in (False, True)),
    split(r"\p{N}{1,2}+|a*"),  # in Oniguruma the plus repeats the interval
    split(r"^\s|\s$|(?<=e)1|[[:alpha:]]+\z"),
    split(r"(?m:.)|\h", "Removed", True),
    split(r"(?i:'s|the)|\x{e9}|.", "Removed", True),
]


@pytest.mark.parametrize("step", SPLITS, ids=json.dumps)
def test_pre_tokenizers(plain: dict[str, Any], step: dict[str, Any]) -> None:
    for last in (byte_level(regex=False), byte_level(prefix=True)):
        assert_equal_ids(changed(plain, pre_tokenizer=sequence(step, sequence(last))), random_texts(150, 4))


@pytest.mark.parametrize("prefix", [False, True])
@pytest.mark.parametrize("regex", [False, True])
def test_byte_level_alone(plain: dict[str, Any], prefix: bool, regex: bool) -> None:
    tok = assert_equal_ids(changed(plain, pre_tokenizer=byte_level(prefix, regex)), random_texts(300, 5))
    assert tok.lossless == (not prefix)
    assert tok.encode("the") == tok.encode(" the") if prefix else True


def test_nfc(plain: dict[str, Any]) -> None:
    document = changed(plain, normalizer={"type": "Sequence", "normalizers": [{"type": "NFC"}]})
    tok = assert_equal_ids(document, [*CORPUS, *random_texts(500, 6)])
    assert not tok.lossless
    assert tok.decode(tok.encode("e\u0301")) == "é"
    with pytest.raises(DataError, match="normalize"):
        tok.encode_with_offsets("e\u0301")


def test_patterns_are_recognized(plain: dict[str, Any]) -> None:
    from fastcompress.bpe.custom_pattern import regexes_of

    for name in ("o200k", "llama3", "qwen2", "deepseek-v3"):
        steps = [split(regex) for regex in regexes_of(name)]
        document = changed(plain, pre_tokenizer=sequence(*steps, byte_level(regex=False)))
        assert assert_equal_ids(document, random_texts(200, 7)).pattern == name
        if len(steps) == 1:
            steps = [split(f"({steps[0]['pattern']['Regex']})", "Removed", invert=True)]
            document = changed(plain, pre_tokenizer=sequence(*steps, byte_level(regex=False)))
            assert assert_equal_ids(document, random_texts(100, 8)).pattern == name


# ---------------------------------------------------------------------- added tokens


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_added_tokens_of_every_kind(plain: dict[str, Any], data: st.DataObject) -> None:
    candidates = ["<s>", "<a", "<a>", "é", "e\u0301", "  ", " cat", "the", "日", "1", "!!", "\u212b", "한", "Ġ"]
    texts = data.draw(st.lists(st.sampled_from(candidates), unique=True, max_size=8))
    tokens, normal = [], set()
    ids = {}
    for text in texts:
        ids[text] = plain["model"]["vocab"].get(text, 500 + sum(i >= 500 for i in ids.values()))
        names = ("special", "normalized", "lstrip", "rstrip", "single_word")
        flags = {name: data.draw(st.booleans()) for name in names}
        form = {"e\u0301": "é", "\u212b": "Å"}.get(text, text)
        flags["normalized"] &= form not in normal  # two tokens with one normal form are no file of tokenizers'
        flags["rstrip"] &= text.strip() == text  # on such, tokenizers panics
        normal |= {form} if flags["normalized"] else set()
        tokens.append(added(text, ids[text], **flags))
    document = changed(plain, added_tokens=tokens, normalizer=data.draw(st.sampled_from([None, {"type": "NFC"}])))
    document["model"]["ignore_merges"] = data.draw(st.booleans())
    inputs = data.draw(st.lists(texts_strategy, min_size=3, max_size=8))
    tok = assert_equal_ids(document, [*inputs, *random_texts(5, data.draw(st.integers(0, 99)), texts)])
    again = BPE.from_bytes(tok.to_bytes())
    assert again == tok
    assert again.added_tokens == tok.added_tokens


def test_special_and_other_added_tokens(plain: dict[str, Any]) -> None:
    tokens = [added("<|end|>", 500, special=True), added("<x>", 501), added("nd|", 502)]
    tok = assert_equal_ids(changed(plain, added_tokens=tokens), ["a<|end|><x>nd|", "<|en", "<x<x>"])
    assert tok.special_tokens == {"<|end|>": 500}
    assert tok.added_tokens[1] == AddedToken("<x>", 501, special=False)
    with pytest.raises(DataError, match=r"'<\|end\|>' at offset 2"):
        tok.encode("é <|end|>")
    assert tok.encode("a<x>") == [*tok.encode("a"), 501]  # whatever is allowed
    assert tok.encode_ordinary("a<x>") == tok.encode("a<x>")
    assert 502 not in tok.encode("<|end|>", disallowed_special=())  # nothing is sought in the text of a special token
    assert tok.encode_batch(["<|end|>", "<x>"], allowed_special="all") == [[500], [501]]
    assert tok.lossless
    assert pickle.loads(pickle.dumps(tok)) == tok


def test_special_tokens_met_in_normalized_text_are_refused(plain: dict[str, Any]) -> None:
    tokens = [added("<é>", 500, special=True, normalized=True)]
    tok = assert_equal_ids(changed(plain, added_tokens=tokens, normalizer={"type": "NFC"}), ["<é>", "<e\u0301>"])
    for text in ("<é>", "<e\u0301>"):
        with pytest.raises(DataError, match="special token '<é>'"):
            tok.encode(text)


def test_ids_are_those_that_tokenizers_gives(plain: dict[str, Any]) -> None:
    document = changed(plain, added_tokens=[added("<x>", 777), added("a", 3), added("<y>", 501), added("", 9)])
    del document["added_tokens"][1]
    with pytest.warns(UserWarning, match="'<x>' says its id is 777; `tokenizers` gives it 500"):
        assert_equal_ids(document, ["<x>a<y>b"])


def test_entries_outside_the_alphabet_are_only_decoded(plain: dict[str, Any]) -> None:
    vocabulary = plain["model"]["vocab"] | {"日本": 500, "<s>": 501}
    document = changed(plain, model={"vocab": vocabulary, "ignore_merges": True})
    tok = assert_equal_ids(document, ["日本", "<s>", "日本語"])
    assert tok.decode([500, 501]) == "日本<s>"
    assert [token.text for token in tok.added_tokens] == []


# ---------------------------------------------------------------------- files of version 2


def test_golden_vocabulary() -> None:
    """A file of format version 2, written on 2026-11-28: it must load, and encode, like that for ever."""
    tok = BPE.load(VECTORS / "bpe-v2.bpe")
    assert tok.to_bytes() == (VECTORS / "bpe-v2.bpe").read_bytes()
    assert tok.fingerprint == "33744889c0b9192ebb4949ddc800821ffa19c78cbc70d40d69c14173a7494843"
    assert tok.encode("the cafe\u0301! <x> 12<|end|> unreachable", allowed_special="all") == [
        304,
        32,
        99,
        97,
        102,
        294,
        293,
        49,
        50,
        292,
        271,
        256,
        97,
        268,
        97,
        283,
    ]
    assert not tok.lossless


# ---------------------------------------------------------------------- refused


@pytest.mark.filterwarnings("ignore:added token")
@pytest.mark.parametrize(
    ("model", "parts", "message"),
    [
        ({"type": "WordPiece"}, {}, "model is 'WordPiece'.*`tokenizers` package"),
        ({"type": "Unigram"}, {}, "model is 'Unigram'"),
        ({"type": "WordLevel"}, {}, "model is 'WordLevel'"),
        ({"end_of_word_suffix": "</w>"}, {}, "end_of_word_suffix '</w>'.*CLIP"),
        ({"continuing_subword_prefix": "##"}, {}, "continuing_subword_prefix"),
        ({"dropout": 0.1}, {}, "dropout is 0.1.*null"),
        ({"byte_fallback": True}, {"pre_tokenizer": None}, "byte_fallback.*Llama 2"),
        ({}, {"pre_tokenizer": {"type": "Metaspace"}}, "no ByteLevel"),
        ({}, {"pre_tokenizer": sequence({"type": "Whitespace"}, byte_level())}, "'Whitespace' is not supported"),
        ({}, {"pre_tokenizer": sequence({"type": "Punctuation"}, byte_level())}, "'Punctuation' is not supported"),
        ({}, {"pre_tokenizer": sequence(byte_level(), split("a"))}, "after ByteLevel"),
        ({}, {"pre_tokenizer": sequence(split("("), byte_level())}, "not a regular expression"),
        ({}, {"pre_tokenizer": sequence(split("a", "Merged"), byte_level())}, "'Merged'"),
        ({}, {"normalizer": {"type": "NFKC"}}, "normalizer 'NFKC'"),
        ({}, {"normalizer": {"type": "Sequence", "normalizers": [{"type": "Lowercase"}]}}, "'Lowercase'"),
        ({}, {"normalizer": {"type": "Prepend", "prepend": "▁"}}, "'Prepend'"),
        ({}, {"version": "2.0"}, "version is '2.0'"),
        ({}, {"model": None}, "'model' is None"),
        ({"vocab": None}, {}, "'vocab' is None"),
        ({"vocab": {"a": "x"}}, {}, "is 'x'; it must be an integer"),
        ({"vocab": {"a": 1, "b": 1}}, {}, "same id 1"),
        ({"merges": [["a", "zzz"]]}, {}, "merge 0.*'zzz'"),
        ({"merges": ["a b c"]}, {}, "merge 0"),
        ({"merges": [7]}, {}, "merge 0"),
        ({}, {"added_tokens": [{"id": 1}]}, "added token 0: 'content' is missing"),
        ({}, {"added_tokens": [{"content": "\ud800", "id": 500}]}, "surrogate"),
        ({}, {"added_tokens": [added("é", 500, normalized=True), added("e\u0301", 501, normalized=True)],
              "normalizer": {"type": "NFC"}}, "normalized"),
    ],
)  # fmt: skip
def test_refused(plain: dict[str, Any], model: dict[str, Any], parts: dict[str, Any], message: str) -> None:
    document = {**plain, "model": plain["model"] | model, **parts}
    with pytest.raises((FormatError, ConfigError), match=message):
        BPE.from_huggingface(document)


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"{}", b"null", b"\xff\xfe", b'{"version": "1.0"', b"[" * 100_000, b"1" * 5000]
)
def test_what_is_no_tokenizer_json(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_bytes(content)
    with pytest.raises(FormatError, match=r"tokenizer\.json: "):
        BPE.from_huggingface(path)


def holders(value: Any) -> list[Any]:
    """The objects and lists in a JSON value, itself included, large ones once."""
    parts = list(value.values() if isinstance(value, dict) else value if isinstance(value, list) else [])
    mine = [value] if isinstance(value, dict | list) and value else []
    return mine + [holder for part in parts[:40] for holder in holders(part)]


def test_damaged_files_give_typed_errors(plain: dict[str, Any]) -> None:
    draw = random.Random(12)
    whole = changed(
        plain,
        added_tokens=[added("<s>", 500, special=True), added("é", 501, normalized=True)],
        pre_tokenizer=sequence(split(r"\s+", "Removed"), {"type": "Digits", "individual_digits": True}, byte_level()),
        normalizer={"type": "Sequence", "normalizers": [{"type": "NFC"}]},
    )
    values = [
        None,
        True,
        0,
        -1,
        2**40,
        1.5,
        "",
        "a",
        "\ud800",
        "(",
        [],
        [[]],
        {},
        {"type": "Split"},
        [1, 2],
        "Sequence",
    ]
    outcomes = set()
    for _ in range(500):
        document = copy.deepcopy(whole)
        for _ in range(draw.choice([1, 1, 2])):
            holder = draw.choice(holders(document))
            key = draw.choice(list(holder) if isinstance(holder, dict) else range(len(holder)))
            if draw.random() < 0.3:
                del holder[key]
            else:
                holder[key] = copy.deepcopy(draw.choice(values))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                BPE.from_huggingface(document).encode("the 1 é<s>", disallowed_special=())
            outcomes.add("read")
        except FastcompressError:
            outcomes.add("refused")
    assert outcomes == {"read", "refused"}


def test_vocabularies_with_damaged_words(plain: dict[str, Any], tmp_path: Path) -> None:
    """Their digest is right, but the JSON they keep for Python is none."""
    document = changed(plain, pre_tokenizer=sequence(split("a"), byte_level(regex=False)))
    blob = BPE.from_huggingface(document).to_bytes()
    for old, new, message in [
        (b'"Split"', b'"Splat"', "this version does not support"),
        (b'"model"', b'"mudel"', "metadata"),
    ]:
        damaged = blob[:-32].replace(old, new)
        with pytest.raises(FormatError, match=message):
            BPE.from_bytes(damaged + hashlib.sha256(damaged).digest()).to_huggingface(tmp_path / "x.json")


def test_reading_is_plain_data(plain: dict[str, Any]) -> None:
    parts = read_tokenizer_json(plain)
    assert len(parts.tokens) == 500
    assert parts.tokens[parts.merges[0][2]] == b"".join(parts.tokens[i] for i in parts.merges[0][:2])
    assert parts.pre_tokenizers == [{"type": "ByteLevel", "add_prefix_space": False, "use_regex": True}]
