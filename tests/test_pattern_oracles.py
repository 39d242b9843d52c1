"""Custom patterns beside the engines that they were written for: equal pretokens, or a refusal by name."""

from __future__ import annotations

import collections
import os
import random
from collections.abc import Callable

import pytest
import tiktoken
from tokenizers import Regex
from tokenizers.pre_tokenizers import Digits, Split

from fastcompress.bpe.custom_pattern import CustomPattern
from fastcompress.bpe.regex.parser import parse
from fastcompress.bpe.regex.properties import PROPERTIES, cased
from fastcompress.bpe.regex.scanner import FANCY
from fastcompress.bpe.regex.syntax import widths
from fastcompress.errors import ConfigError, FormatError
from fastcompress.formats.tokenizer_json import BEHAVIORS
from tests import published_patterns
from tests.random_patterns import POSIX_NAMES, Generator, random_text

BYTES = {bytes([byte]): byte for byte in range(256)}
OURS = ("any", "graph", "word", "onig word", "onig word in brackets")  # names that patterns cannot give


# --- The engines -----------------------------------------------------------------------------------------


def onig(pattern: str, behavior: str = "Isolated", invert: bool = False) -> Callable[[str], list[str]]:
    """The pieces that `tokenizers` makes of a text. Raises if it does not take the pattern."""
    name = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in behavior).strip("_")
    split = Split(Regex(pattern), name, invert)
    return lambda text: [piece for piece, _ in split.pre_tokenize_str(text)]


def fancy(pattern: str) -> Callable[[str], bytes]:
    """The bytes of the text that tiktoken's pattern matches. Raises if it does not take the pattern."""
    encoding = tiktoken.Encoding("x", pat_str=pattern, mergeable_ranks=BYTES, special_tokens={})
    return lambda text: bytes(encoding.encode_ordinary(text))


def ranks_of(texts: list[str]) -> dict[bytes, int]:
    """Ranks for every substring of the texts, so that each pretoken is one token."""
    ranks = dict(BYTES)
    for text in texts:
        for begin in range(len(text)):
            for end in range(begin + 1, len(text) + 1):
                ranks.setdefault(text[begin:end].encode(), len(ranks))
    return ranks


def fancy_pieces(pattern: str, ranks: dict[bytes, int]) -> Callable[[str], list[str]]:
    """The matches of a pattern in texts for which `ranks_of` gave the ranks."""
    encoding = tiktoken.Encoding("x", pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
    decode = {rank: token for token, rank in ranks.items()}
    return lambda text: [decode[rank].decode() for rank in encoding.encode_ordinary(text)]


def ours_as_split(pattern: str, behavior: str = "Isolated", invert: bool = False) -> CustomPattern:
    return CustomPattern([{"type": "Split", "pattern": {"Regex": pattern}, "behavior": behavior, "invert": invert}])


def pieces_of(pattern: CustomPattern, text: str) -> list[str]:
    return [piece.decode() for piece in pattern.split(text.encode())]


# --- The cases that were wrong once ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "text", "pieces"),
    [
        (r"\w+", "a ½ b", ["a", " ", "½", " ", "b"]),
        (r"(?i)[a-z]+", "aİı", ["a", "İı"]),
        (r"[\h]+", " <be>", [" <", "be", ">"]),
        (r"\pL+", "the pL", ["the ", "pL"]),
        (r"\W+", "a½ b", ["a½", " ", "b"]),
        (r"\p{Word}+", "½ a", ["½", " ", "a"]),
        (r"[^\w\s]+", "½!a", ["½!", "a"]),
        (r"\e", "a\x1bb", ["a", "\x1b", "b"]),
        (r"a{1,2}+", "aaaab", ["aaaa", "b"]),
        (r"a{2}?", "aaab", ["aa", "a", "b"]),
        (r"a(?i)b|c", "aBaC", ["aB", "aC"]),
        (r"[[:punct:]]", "a$+", ["a", "$", "+"]),
        (r"\p{^L}", "a1b", ["a", "1", "b"]),
    ],
)
def test_splits_that_were_wrong(pattern: str, text: str, pieces: list[str]) -> None:
    assert pieces_of(ours_as_split(pattern), text) == onig(pattern)(text) == pieces


@pytest.mark.parametrize(
    ("pattern", "text", "matched"),
    [
        (r"(?m)^.+$", "a\nb", b"ab"),
        (r"[\p{L}--\p{Lu}]+", "aB-", b"a"),
        (".", "a\nb", b"ab"),
        ("a-b", "xa-b", b"a-b"),
        (r"\pL+", "a1", b"a"),
        (r"a\Z", "a\n\n", b"a"),
        (r"[[:alpha:]]+", "aé", b"a"),
        (r"(?i)k", "k\u212a", "k\u212a".encode()),
        (r"[a~~b]", "ab", b"ab"),
        (r"(?i)\P{Lu}", "aA1", b"1"),
        (r"(?i)i", "iIİı", b"iI"),
        (r"\w", "½²a\u200d", "a\u200d".encode()),
    ],
)
def test_pat_strs_that_were_wrong(pattern: str, text: str, matched: bytes) -> None:
    assert CustomPattern.from_regex(pattern).pretokens(text.encode())[0] == fancy(pattern)(text) == matched


# --- Random patterns -------------------------------------------------------------------------------------

TEXTS_PER_PATTERN = 16


def compared(
    ours: Callable[[str], list[str]], reference: Callable[[str], list[str]], texts: list[str], what: str
) -> str:
    """Assert that both cut each text alike; return what came of it."""
    for text in texts:
        try:
            expected = reference(text)
        except BaseException as error:  # a panic, of an engine that gives up after so many steps
            if type(error).__name__ != "PanicException":
                raise
            return "the engine gives up"
        assert ours(text) == expected, f"{what} on {text!a}"
    return "equal"


def try_onig(pattern: str, behavior: str, invert: bool, texts: list[str]) -> str:
    pattern = pattern.replace("(?s", "(?m")  # the letter that Oniguruma has for it
    try:
        ours = ours_as_split(pattern, behavior, invert)
    except FormatError as error:
        return "refused" if "which is not supported" in str(error) else "invalid"
    reference = onig(pattern, behavior, invert)  # must not raise: what it refuses is refused here
    return compared(lambda text: pieces_of(ours, text), reference, texts, f"{pattern!a} {behavior} {invert}")


def try_fancy(pattern: str, ranks: dict[bytes, int], texts: list[str]) -> str:
    try:
        if widths(parse(pattern, FANCY))[0] == 0:  # tiktoken panics at an empty match
            pattern = f"(?:{pattern})(?s:.)"
        ours = CustomPattern.from_regex(pattern)
    except ConfigError as error:
        return "refused" if "which is not supported" in str(error) else "invalid"
    reference = fancy_pieces(pattern, ranks)
    return compared(lambda text: pieces_of(ours, text), reference, texts, ascii(pattern))


def campaign(seed: int, num_patterns: int) -> collections.Counter[str]:
    draw = random.Random(seed)
    generator = Generator(draw)
    outcomes: collections.Counter[str] = collections.Counter()
    for number in range(num_patterns):
        if number % 50 == 0:
            texts = [random_text(draw) for _ in range(TEXTS_PER_PATTERN)]
            ranks = ranks_of(texts)
        pattern = generator.pattern()
        outcomes["onig " + try_onig(pattern, draw.choice(BEHAVIORS), draw.random() < 0.3, texts)] += 1
        outcomes["fancy " + try_fancy(pattern, ranks, texts)] += 1
    return outcomes


@pytest.mark.slow
def test_random_patterns() -> None:
    """About 16,000 texts compared; the campaign compares a million."""
    outcomes = campaign(seed=1, num_patterns=800)
    assert outcomes["onig equal"] + outcomes["fancy equal"] > 900, outcomes


@pytest.mark.campaign
@pytest.mark.parametrize("seed", range(100, 120))
def test_a_million_cases(seed: int) -> None:
    outcomes = campaign(seed, num_patterns=int(os.environ.get("FASTCOMPRESS_PATTERNS", "2600")))
    print(sorted(outcomes.items()))
    assert outcomes["onig equal"] + outcomes["fancy equal"] > 0.4 * outcomes.total()


# --- Patterns of published tokenizers --------------------------------------------------------------------


def long_texts() -> list[str]:
    draw = random.Random(3)
    prose = (
        "Don't PANIC, it's 1234567 o'clock: l'été... 日本語のテキスト и кириллица!\r\n\tdef f(x):\n    return x  \n\n"
    )
    return [prose, *(random_text(draw, 30) + prose[draw.randrange(60) :][:20] for _ in range(30))]


@pytest.mark.parametrize("pattern", [pattern for _, pattern in published_patterns.ONIG], ids=ascii)
def test_published_splits(pattern: str) -> None:
    for behavior in ("Isolated", "Removed"):
        for invert in (False, True):
            assert try_onig(pattern, behavior, invert, long_texts()) == "equal"


@pytest.mark.parametrize("pattern", [pattern for _, pattern in published_patterns.FANCY], ids=ascii)
def test_published_pat_strs(pattern: str) -> None:
    texts = [text[:24] for text in long_texts()]
    assert try_fancy(pattern, ranks_of(texts), texts) == "equal"
    for text in long_texts():
        if pattern != published_patterns.FANCY[12][1]:  # whose empty matches are tiktoken's panic
            assert CustomPattern.from_regex(pattern).pretokens(text.encode())[0] == fancy(pattern)(text)


# --- Every character -------------------------------------------------------------------------------------

# All characters of the blocks with many different ones, and every 97th of the others.
CHARACTERS = "".join(
    chr(code)
    for code in range(0x110000)
    if not 0xD800 <= code < 0xE000 and (code < 0x3400 or 0xA000 <= code < 0x20000 or code % 97 == 0)
)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in PROPERTIES if name.replace("_", "").isalpha() and name not in OURS])
def test_every_property_over_characters(name: str) -> None:
    pattern = rf"\p{{{name}}}"
    ours = ours_as_split(pattern, "Removed", True)
    assert "".join(pieces_of(ours, CHARACTERS)) == "".join(onig(pattern, "Removed", True)(CHARACTERS))
    assert CustomPattern.from_regex(pattern).pretokens(CHARACTERS.encode())[0] == fancy(pattern)(CHARACTERS)


@pytest.mark.parametrize(
    "pattern", [r"\w", r"[\w]", r"\W", r"\d", r"\s", ".", *(f"[[:{name}:]]" for name in POSIX_NAMES)]
)
def test_every_class_over_characters(pattern: str) -> None:
    ours = ours_as_split(pattern, "Removed", True)
    assert "".join(pieces_of(ours, CHARACTERS)) == "".join(onig(pattern, "Removed", True)(CHARACTERS))
    assert CustomPattern.from_regex(pattern).pretokens(CHARACTERS.encode())[0] == fancy(pattern)(CHARACTERS)


def test_digits_are_those_of_rust() -> None:
    ours = CustomPattern([{"type": "Digits", "individual_digits": True}])
    reference = [piece for piece, _ in Digits(individual_digits=True).pre_tokenize_str(CHARACTERS)]
    assert pieces_of(ours, CHARACTERS) == reference


def test_case_variants_of_every_character() -> None:
    for character in cased()[::23] + "iIİıßſKkΣςσ":
        pattern = f"(?i){character}"
        assert CustomPattern.from_regex(pattern).pretokens(cased().encode())[0] == fancy(pattern)(cased())


# --- Refused because an engine does what its manual does not say ------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "text", "pieces"),
    [
        (r"(?=[^\p{Lu}]).+I", "SSé\x1bI", ["SSé\x1bI"]),  # looked for at the starts of lines only
        (r"(?m).+x|\b.*", "&&a", ["&&a"]),
        (r"[^s[^\d\D]]", "éé1", ["éé", "1"]),  # loses the é
        (r"(?i)ss", "aß", ["a", "ß"]),  # equal to two letters but for case
    ],
)
def test_what_oniguruma_alone_does_is_refused(pattern: str, text: str, pieces: list[str]) -> None:
    assert onig(pattern)(text) == pieces
    with pytest.raises(FormatError, match="which is not supported in Oniguruma patterns"):
        ours_as_split(pattern)


@pytest.mark.parametrize("pattern", ["(?<!(a))b", "(?<!(?<n>a))b", "(?:a|$)+", r"(?=a)*", "^*", "(?<=(?=a)a)b"])
def test_what_oniguruma_refuses_is_refused(pattern: str) -> None:
    with pytest.raises(Exception, match="Oniguruma error"):
        onig(pattern)
    with pytest.raises(FormatError):
        ours_as_split(pattern)


def test_flags_that_outlive_their_group_are_refused() -> None:
    assert fancy("(a(?s)).")("a\n") == b"a\n"
    with pytest.raises(ConfigError, match="stays in force after it"):
        CustomPattern.from_regex("(a(?s)).")


def test_faults_of_the_regex_package_are_written_around() -> None:
    assert CustomPattern.from_regex(r"[^b]|.").split(b"ab\n") == [b"a", b"b", b"\n"]
    assert CustomPattern.from_regex(r"[^\D\p{Nd}]").split(b"a1") == []
