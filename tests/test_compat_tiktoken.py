"""fastcompress.compat.tiktoken beside tiktoken: every public method, property and error, on the same arguments."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import regex
import tiktoken
import tiktoken.model

from fastcompress.bpe import BPE
from fastcompress.compat import tiktoken as compat
from fastcompress.errors import DataError, FastcompressError, UnknownTokenError
from fastcompress.pretokenizer import PATTERNS, split

NAMES = ["gpt2", "cl100k_base", "o200k_base"]
EOT = "<|endoftext|>"
Pair = tuple[compat.Encoding, tiktoken.Encoding]


@pytest.fixture(params=NAMES)
def pair(request: pytest.FixtureRequest, tiktoken_cache: Path) -> Pair:
    """An encoding of ours and tiktoken's."""
    if request.param == "gpt2":  # tiktoken's wants encoder.json too; r50k_base has the same ranks
        return compat.get_encoding("gpt2"), tiktoken.get_encoding("r50k_base")
    return compat.get_encoding(request.param), tiktoken.get_encoding(request.param)


@pytest.fixture
def cl100k(tiktoken_cache: Path) -> Pair:
    return compat.get_encoding("cl100k_base"), tiktoken.get_encoding("cl100k_base")


def outcome(call: Callable[[Any], Any], encoding: Any) -> tuple[str, Any]:
    """("value", what the call gives, comparable) or ("error", the exception)."""
    try:
        value = call(encoding)
    except BaseException as error:  # tiktoken panics with one that is no Exception
        return "error", error
    if isinstance(value, np.ndarray):
        return "value", (value.dtype, value.tolist())
    return "value", value


def assert_same(call: Callable[[Any], Any], ours: Any, theirs: Any) -> None:
    kind, value = outcome(call, ours)
    expected_kind, expected = outcome(call, theirs)
    assert kind == expected_kind, (value, expected)
    if kind == "value":
        assert value == expected
    else:
        assert isinstance(value, type(expected)), (value, expected)


def unstable(encoding: Any, text: str, **options: Any) -> tuple[list[int], set[tuple[int, ...]]]:
    stable, completions = encoding.encode_with_unstable(text, **options)
    as_set = set(map(tuple, completions))
    assert len(as_set) == len(completions)
    return stable, as_set


# ---------------------------------------------------------------------- encoding

TEXTS = [
    "",
    "hello world",
    "Don't panic: 12345 things\r\n\n  happen.  ",
    f"a{EOT}b",
    f"{EOT}{EOT}",
    f" \n{EOT} \n",
    "<|endoftext|",
    "<|fim_prefix|>def f():<|fim_suffix|>",
    "日本語 हिन्दी 🙂 \x85 \x1c 'ſ",
    "a" * 300,
]
SPECIAL_ARGUMENTS: list[dict[str, Any]] = [
    {},
    {"allowed_special": "all"},
    {"allowed_special": set()},
    {"allowed_special": {EOT}},
    {"allowed_special": frozenset({EOT})},
    {"disallowed_special": ()},
    {"disallowed_special": [EOT]},
    {"disallowed_special": "b"},
    {"disallowed_special": {"hello"}},
    {"disallowed_special": {""}},
    {"allowed_special": {EOT}, "disallowed_special": ()},
    {"allowed_special": {EOT}, "disallowed_special": {EOT}},
    {"allowed_special": [EOT]},
    {"allowed_special": [EOT], "disallowed_special": ()},
    {"allowed_special": (), "disallowed_special": ()},
    {"allowed_special": EOT},
    {"allowed_special": None},
]


@pytest.mark.parametrize("arguments", SPECIAL_ARGUMENTS, ids=repr)
def test_special_tokens(pair: Pair, arguments: dict[str, Any]) -> None:
    for text in TEXTS:
        assert_same(lambda e, text=text: e.encode(text, **arguments), *pair)
        assert_same(lambda e, text=text: e.encode_to_numpy(text, **arguments), *pair)
    assert_same(lambda e: e.encode_batch(TEXTS, **arguments), *pair)
    assert_same(lambda e: e.encode_batch([TEXTS[1]], num_threads=1, **arguments), *pair)
    assert_same(lambda e: unstable(e, f"a{EOT}b", **arguments), *pair)


CALLS: list[Callable[[Any], Any]] = [
    lambda e: e.encode_ordinary_batch(TEXTS),
    lambda e: e.encode_ordinary_batch(TEXTS, num_threads=2),
    lambda e: e.encode_ordinary_batch([]),
    lambda e: e.encode_ordinary_batch("ab"),
    lambda e: e.encode_batch(text for text in ["a", "b"]),
    lambda e: e.encode_batch(["a"], num_threads=None),
    lambda e: e.encode_batch(["a"], num_threads=0),
    lambda e: e.encode_ordinary_batch(["a"], num_threads=-1),
    lambda e: e.encode_batch(["a", 5]),
    lambda e: e.encode_batch(5),
    lambda e: e.encode("a", disallowed_special=None),
    lambda e: e.encode(b"a"),
    lambda e: e.encode(5),
    lambda e: e.encode_ordinary(b"a"),
    lambda e: e.encode_to_numpy(None),
    lambda e: e.encode_with_unstable(b"a"),
    lambda e: e.encode_single_token("hello"),
    lambda e: e.encode_single_token(b" world"),
    lambda e: e.encode_single_token(b"\xff"),
    lambda e: e.encode_single_token(EOT),
    lambda e: e.encode_single_token("no such token"),
    lambda e: e.encode_single_token(""),
    lambda e: e.encode_single_token("\ud83d"),
    lambda e: e.encode_single_token(5),
    lambda e: e.encode_single_token(bytearray(b"a")),
    lambda e: e.decode([31373, 995]),
    lambda e: e.decode([]),
    lambda e: e.decode((1, 2)),
    lambda e: e.decode(range(3)),
    lambda e: e.decode(np.array([5, 6])),
    lambda e: e.decode(np.array([5, 6], np.uint16)),
    lambda e: e.decode([np.uint32(5), True]),
    lambda e: e.decode(np.array([], float)),
    lambda e: e.decode([255, 255]),
    lambda e: e.decode([255, 255], errors="strict"),
    lambda e: e.decode([255, 255], "ignore"),
    lambda e: e.decode([255], "no such handler"),
    lambda e: e.decode([1], "no such handler"),
    lambda e: e.decode([e.max_token_value]),
    lambda e: e.decode([e.n_vocab]),
    lambda e: e.decode([-1]),
    lambda e: e.decode([1 << 32]),
    lambda e: e.decode([1 << 80]),
    lambda e: e.decode(np.array([-1])),
    lambda e: e.decode([1.0]),
    lambda e: e.decode(["1"]),
    lambda e: e.decode([[1]]),
    lambda e: e.decode(np.array([1.0])),
    lambda e: e.decode(np.array([[1]])),
    lambda e: e.decode("abc"),
    lambda e: e.decode({1, 2}),
    lambda e: e.decode(iter([1])),
    lambda e: e.decode(5),
    lambda e: e.decode(None),
    lambda e: e.decode_bytes([31373, 995, 255]),
    lambda e: e.decode_bytes([e.n_vocab]),
    lambda e: e.decode_single_token_bytes(31373),
    lambda e: e.decode_single_token_bytes(np.int64(4)),
    lambda e: e.decode_single_token_bytes(e.eot_token),
    lambda e: e.decode_single_token_bytes(e.n_vocab),
    lambda e: e.decode_single_token_bytes(-1),
    lambda e: e.decode_single_token_bytes(1 << 40),
    lambda e: e.decode_single_token_bytes("a"),
    lambda e: e.decode_single_token_bytes(1.5),
    lambda e: e.decode_tokens_bytes([31373, 995, 255]),
    lambda e: e.decode_tokens_bytes(iter([1])),
    lambda e: e.decode_tokens_bytes([e.n_vocab]),
    lambda e: e.decode_tokens_bytes(5),
    lambda e: e.decode_with_offsets([31373, 995]),
    lambda e: e.decode_with_offsets([]),
    lambda e: e.decode_with_offsets([255]),
    lambda e: e.decode_with_offsets([-1]),
    lambda e: e.decode_with_offsets([e.n_vocab]),
    lambda e: e.decode_with_offsets(e.encode("日本語 हिन्दी 🙂🏽 é")),
    lambda e: e.decode_batch([[31373, 995], [], [255]]),
    lambda e: e.decode_batch([[255]], errors="strict", num_threads=1),
    lambda e: e.decode_batch([]),
    lambda e: e.decode_batch([], num_threads=0),
    lambda e: e.decode_batch([[1], [-1]]),
    lambda e: e.decode_batch([5]),
    lambda e: e.decode_batch(5),
    lambda e: e.decode_bytes_batch([[31373, 995], [], [255]]),
    lambda e: e.decode_bytes_batch([[1], [e.n_vocab]]),
    lambda e: e.token_byte_values(),
    lambda e: e.eot_token,
    lambda e: e.special_tokens_set,
    lambda e: [e.is_special_token(token) for token in (0, e.eot_token, e.max_token_value, -1, True)],
    lambda e: e.is_special_token("a"),
    lambda e: e.is_special_token(np.int64(0)),
    lambda e: e.n_vocab,
    lambda e: e.max_token_value,
    lambda e: e._mergeable_ranks,
    lambda e: e._special_tokens,
    lambda e: e._pat_str,
]


@pytest.mark.parametrize("number", range(len(CALLS)))
def test_calls(pair: Pair, number: int) -> None:
    assert_same(CALLS[number], *pair)


def test_errors_say_what_and_are_ours(cl100k: Pair) -> None:
    ours = cl100k[0]
    with pytest.raises(DataError, match=r"<\|endoftext\|>.*offset 1.*allowed_special"):
        ours.encode(f"a{EOT}")
    with pytest.raises(UnknownTokenError, match=r"^token id 100256 at position 1 is not in the vocabulary"):
        ours.decode([1, 100256])
    with pytest.raises(UnknownTokenError, match="no token spells 'no such token'"):
        ours.encode_single_token("no such token")
    with pytest.raises(DataError, match=r"^sequence 1: token id 100256"):
        ours.decode_batch([[1], [100256]])


def test_names(pair: Pair) -> None:
    assert repr(pair[0]) == f"<Encoding {pair[0].name!r}>"
    assert pair[0].name in NAMES
    assert compat.list_encoding_names() == tiktoken.list_encoding_names()
    assert compat.get_encoding(pair[0].name) is pair[0]


def test_every_published_encoding(tiktoken_cache: Path) -> None:
    text = f"def f():\n\treturn 'x'  # {EOT} <|fim_middle|> <|endofprompt|> <|start|> <|reserved_200500|>"
    for name in ["r50k_base", "p50k_base", "p50k_edit", "o200k_harmony"]:
        ours, theirs = compat.get_encoding(name), tiktoken.get_encoding(name)
        assert ours.encode(text, allowed_special="all") == theirs.encode(text, allowed_special="all")
        assert (ours.n_vocab, ours._special_tokens) == (theirs.n_vocab, theirs._special_tokens)


def test_two_texts_of_one_id(tiktoken_cache: Path) -> None:
    ours, theirs = compat.get_encoding("o200k_harmony"), tiktoken.get_encoding("o200k_harmony")
    text = "<|reserved_200018|><|endofprompt|>"
    assert ours.encode(text, allowed_special="all") == theirs.encode(text, allowed_special="all") == [200018] * 2
    assert ours.decode([200018]) == theirs.decode([200018]) == "<|endofprompt|>"
    assert pickle.loads(pickle.dumps(ours._tokenizer)).encode(text, allowed_special="all") == [200018] * 2


def test_models(tiktoken_cache: Path) -> None:
    names = [*tiktoken.model.MODEL_TO_ENCODING, *tiktoken.model.MODEL_PREFIX_TO_ENCODING]
    for name in [*names, *(name + "x" for name in names), *(name + "-2024" for name in names), "", "gpt", "claude"]:
        assert_same(lambda module, name=name: module.encoding_name_for_model(name), compat, tiktoken)
    assert compat.encoding_for_model("gpt-4o-mini") is compat.get_encoding("o200k_base")
    with pytest.raises(KeyError, match=r"gpt-17.*get_encoding"):
        compat.encoding_for_model("no-gpt-17")


def test_unknown_encodings() -> None:
    for name in ("zz", 5, None, "cl100k"):
        with pytest.raises(ValueError, match=r"encoding"):
            compat.get_encoding(name)  # type: ignore[arg-type]


# ---------------------------------------------------------------------- text that UTF-8 cannot hold

SURROGATES = ["\ud83d", "\udbc0", "a\ud83db", "\ud83d\ude00", "\ude00\ud83d", f"\ud83d{EOT}", "<|endoftext\ud83d|>"]


@pytest.mark.parametrize("text", SURROGATES, ids=ascii)
def test_surrogates(pair: Pair, text: str) -> None:
    assert_same(lambda e: e.encode(text, allowed_special="all"), *pair)
    assert_same(lambda e: e.encode(text), *pair)
    assert_same(lambda e: e.encode_ordinary(text), *pair)
    assert_same(lambda e: e.encode_batch([text, "a"], allowed_special="all"), *pair)
    # Where tiktoken raises UnicodeEncodeError, the text is read as in the methods above.
    ours, theirs = pair
    clean = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    assert ours.encode_to_numpy(text, allowed_special="all").tolist() == ours.encode(text, allowed_special="all")
    assert unstable(ours, text, allowed_special="all") == unstable(theirs, clean, allowed_special="all")


# ---------------------------------------------------------------------- unstable tokens

UNSTABLE_TEXTS = [
    *("", " ", "\n", "\n ", " \n", "\n\n", "  \n  ", "hello ", "hello fanta", "don'", "I'v", "He said", "x = {\n    "),
    *("日本", "語の", "é", "a\u3000", "a\x85", "a\x1c", "🙂", "12", "123", "...", "  !", "\r\n", " \r", "\x00"),
    *("<|endoftex", "a\t", "\t\t\t\t\t", "ab" * 40),
]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gpt2", "cl100k_base"])
def test_unstable_completions(name: str, tiktoken_cache: Path) -> None:
    ours, theirs = compat.get_encoding(name), tiktoken.get_encoding("r50k_base" if name == "gpt2" else name)
    for text in UNSTABLE_TEXTS:
        assert unstable(ours, text) == unstable(theirs, text), text


def test_unstable_and_special_tokens(cl100k: Pair) -> None:
    for text in (EOT, f"a{EOT}", f"a{EOT}b", f"{EOT} ", f" {EOT}\n"):
        assert_same(lambda e, text=text: unstable(e, text, allowed_special="all"), *cl100k)
        assert_same(lambda e, text=text: unstable(e, text, disallowed_special=()), *cl100k)
        assert_same(lambda e, text=text: unstable(e, text), *cl100k)


def test_unstable_text_may_be_long(cl100k: Pair) -> None:
    """Time does not grow with the square of the text, nor of its last pretoken."""
    stable, completions = cl100k[0].encode_with_unstable("some words " * 20_000 + "^" * 5000)
    assert len(stable) > 20_000
    assert completions


# ---------------------------------------------------------------------- encodings of one's own


def test_extending_an_encoding(cl100k: Pair) -> None:
    """As tiktoken's README shows it."""

    def extend(module: Any, base: Any) -> Any:
        return module.Encoding(
            name="cl100k_im",
            pat_str=base._pat_str,
            mergeable_ranks=base._mergeable_ranks,
            special_tokens={**base._special_tokens, "<|im_start|>": 100264, "<|im_end|>": 100265},
        )

    ours, theirs = extend(compat, cl100k[0]), extend(tiktoken, cl100k[1])
    text = "<|im_start|>user\nhello<|im_end|>"
    assert ours.encode(text, allowed_special="all") == theirs.encode(text, allowed_special="all")
    assert_same(lambda e: e.encode(text), ours, theirs)
    assert ours.special_tokens_set == theirs.special_tokens_set
    assert ours._mergeable_ranks == theirs._mergeable_ranks


BYTES = {bytes([byte]): byte for byte in range(256)}
GPT2 = PATTERNS["gpt2"]


def toy(module: Any, **changes: Any) -> Any:
    settings = {"pat_str": GPT2, "mergeable_ranks": {**BYTES, b"ab": 256}, "special_tokens": {"<|x|>": 257}}
    return module.Encoding("toy", **{**settings, **changes})


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"explicit_n_vocab": 258},
        {"explicit_n_vocab": 257},
        {"explicit_n_vocab": 0},
        {"special_tokens": {"<|x|>": 300}, "explicit_n_vocab": 258},
        {"special_tokens": {}},
        {"mergeable_ranks": {}},
        {"mergeable_ranks": {**BYTES, b"ab": 256, b"cd": 256}},
        {"mergeable_ranks": {**BYTES, b"ab": -1}},
        {"mergeable_ranks": {**BYTES, b"ab": 1 << 32}},
        {"mergeable_ranks": {**BYTES, "ab": 256}},
        {"pat_str": "("},
        {"pat_str": 5},
    ],
    ids=lambda changes: repr(changes)[:60] if len(repr(changes)) < 300 else repr(changes)[-60:],
)
def test_construction(changes: dict[str, Any]) -> None:
    kind, value = outcome(lambda module: toy(module, **changes).encode("ab<|x|>", disallowed_special=()), compat)
    expected_kind, expected = outcome(
        lambda module: toy(module, **changes).encode("ab<|x|>", disallowed_special=()), tiktoken
    )
    assert kind == expected_kind, (value, expected)
    if kind == "value":
        assert value == expected
    elif isinstance(expected, Exception):
        assert isinstance(value, type(expected))
    else:  # a panic
        assert isinstance(value, FastcompressError)


def test_eot_token_is_optional() -> None:
    with pytest.raises(KeyError, match=r"'toy'.*<\|endoftext\|>"):
        _ = toy(compat).eot_token


def test_copies(pair: Pair) -> None:
    ours = pair[0]
    for clone in (copy.copy(ours), copy.deepcopy(ours), pickle.loads(pickle.dumps(ours))):
        assert clone.encode("hello world") == ours.encode("hello world")
        assert (clone.name, clone.n_vocab, clone.special_tokens_set) == (
            ours.name,
            ours.n_vocab,
            ours.special_tokens_set,
        )
    assert len(pickle.dumps(ours)) < 200  # by name
    assert pickle.loads(pickle.dumps(ours)) is ours


def test_pickling_by_content() -> None:
    ours = toy(compat)
    clone = pickle.loads(pickle.dumps(ours))
    assert clone.encode("ab<|x|>", allowed_special="all") == ours.encode("ab<|x|>", allowed_special="all") == [256, 257]
    assert (clone.name, clone._pat_str, clone._special_tokens) == (ours.name, ours._pat_str, ours._special_tokens)
    assert clone._mergeable_ranks == ours._mergeable_ranks
    copied = copy.deepcopy(ours)
    assert copied is not ours
    assert copied.encode("ab") == [256]


def encode_in_worker(encoding: compat.Encoding) -> list[int]:
    return encoding.encode("ab hello")


def test_pickling_into_loader_workers(cl100k: Pair) -> None:
    encodings = [cl100k[0], toy(compat)]
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.map(encode_in_worker, encodings) == [e.encode("ab hello") for e in encodings]


def test_plugins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "tiktoken_ext"
    package.mkdir()
    (package / "of_a_test.py").write_text(
        "def toy():\n"
        "    ranks = {bytes([byte]): byte for byte in range(256)}\n"
        f"    return dict(name='toy_of_a_test', pat_str={GPT2!r}, mergeable_ranks=ranks, special_tokens={{}})\n"
        "ENCODING_CONSTRUCTORS = {'toy_of_a_test': toy}\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert compat.list_encoding_names()[-1] == "toy_of_a_test"
    assert compat.get_encoding("toy_of_a_test").encode("abc") == [97, 98, 99]
    (package / "of_a_test_too.py").write_text("ENCODING_CONSTRUCTORS = {'gpt2': None}\n")
    with pytest.raises(ValueError, match=r"of_a_test_too.*'gpt2'"):
        compat.list_encoding_names()
    (package / "of_a_test_too.py").unlink()
    (package / "of_a_third_test.py").write_text("")
    with pytest.raises(ValueError, match=r"of_a_third_test does not define"):
        compat.list_encoding_names()


# ---------------------------------------------------------------------- regular expressions


LETTERS = r"[^\r\n\p{L}\p{N}]?\p{L}+"
REST = r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
SPELLINGS = {  # of regular expressions that people give tiktoken
    **{regex: name for name, regex in PATTERNS.items() if regex},
    r"'s|'t|'re|'ve|'m|'ll|'d| ?[\p{L}]+| ?[\p{N}]+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+": "gpt2",
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+": "gpt2",
    r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+": "gpt2",
    rf"{CONTRACTIONS}|{LETTERS}|\p{{N}}{{1,3}}|{REST}": "llama3",
    rf"{CONTRACTIONS}|{LETTERS}|\p{{N}}|{REST}": "qwen2",
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]"
    r"|\s+(?!\S)|\s+": "llama3",
}
PIECES = ["a", "Bc", "'s", "'LL", "'ſ", "12345", " ", "  ", "\n", "\r\n", "\t", "!", "...", "é", "中", "\u3000", "/"]


@pytest.mark.parametrize("pat_str", SPELLINGS)
def test_known_regular_expressions_have_a_scanner(pat_str: str) -> None:
    """And it cuts as they do."""
    tokenizer = toy(compat, pat_str=pat_str)._tokenizer
    assert tokenizer.pattern == SPELLINGS[pat_str]
    compiled = regex.compile(pat_str)
    generator = random.Random(pat_str)
    for _ in range(1000):
        text = "".join(generator.choices(PIECES, k=generator.randrange(12)))
        assert split(text, tokenizer.pattern) == [match.group().encode() for match in compiled.finditer(text)], text


WITHOUT_HAN = r"[\p{L}\p{M}&&[^\p{Han}]]"
OTHERS = [
    r"\w+|\W",
    r"[a-z]{2}",
    r"\s+$|.|\n",
    r"(?i:LL|ab)|[^\s]+?(?=b)|\S",
    r".*?c",
    rf"[\p{{Han}}]+|[^\r\n\p{{L}}]?{WITHOUT_HAN}*{WITHOUT_HAN}|\p{{N}}{{1,3}}|[a-z&&[b-d]]|\s",  # in Kimi's manner
]


@pytest.mark.parametrize("pat_str", OTHERS)
def test_other_regular_expressions(pat_str: str) -> None:
    """They may leave text out, which tiktoken drops."""
    ours, theirs = toy(compat, pat_str=pat_str), toy(tiktoken, pat_str=pat_str)
    generator = random.Random(pat_str)
    for _ in range(200):
        text = "".join(generator.choices([*PIECES, "ab", "<|x|>", "c", "ll"], k=generator.randrange(12)))
        assert_same(lambda e, text=text: e.encode(text, allowed_special="all"), ours, theirs)
        assert_same(lambda e, text=text: e.encode_ordinary_batch([text, "ab"]), ours, theirs)
    clone = pickle.loads(pickle.dumps(ours))
    assert (clone._pat_str, clone.encode("abcab")) == (pat_str, theirs.encode("abcab"))


def test_unstable_completions_of_another_regular_expression() -> None:
    ours, theirs = toy(compat, pat_str=r"\w+|\W"), toy(tiktoken, pat_str=r"\w+|\W")
    for text in ("", "a", "ab a", "ab  ", "b\n", "é", "a<|x|>", "a<|x|>b"):
        assert unstable(ours, text, allowed_special="all") == unstable(theirs, text, allowed_special="all")


def test_an_encoding_is_what_from_tiktoken_gives(cl100k: Pair) -> None:
    assert BPE.from_tiktoken("cl100k_base") == cl100k[0]._tokenizer
