"""Patterns without a name: any regular expression, or the pre-tokenizer steps of a ``tokenizer.json``.

They run on the `regex` package, which is imported when the first one is needed (``pip install regex``): the same
pretokens as the engines they were written for, slower than the named patterns. `named_pattern` says which literals are
a named pattern, for all callers.
"""

from __future__ import annotations

import functools
import itertools
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from fastcompress import pretokenizer
from fastcompress._core import pretokenizer as _core
from fastcompress.bpe.regex_dialects import fancy_regex_to_onig, from_fancy_regex, from_onig
from fastcompress.errors import ConfigError, FormatError

Step: TypeAlias = "dict[str, Any]"
_Pieces: TypeAlias = "Callable[[str], Iterable[str]]"

GPT2_BYTE_LEVEL = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
"""The regex inside `tokenizers`' ByteLevel; its matches are those of the pattern ``gpt2``."""

# Literals that stand for a named pattern besides the pattern's own: in tokenizers, and in early versions of tiktoken.
_OTHER_SPELLINGS = {
    "gpt2": [
        GPT2_BYTE_LEVEL,
        r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
        r"'s|'t|'re|'ve|'m|'ll|'d| ?[\p{L}]+| ?[\p{N}]+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",  # as GPT-2 came out
    ],
    # cl100k_base's in tiktoken before 0.8, which cut white space at the end of a text behind its last line break.
    "llama3": [
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}"
        r"| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+",
    ],
}


def named_pattern(regexes: Sequence[str]) -> str | None:
    """The named pattern that cuts as these regexes do, each cutting what the one before left; None if none is known.

    The literals known are those of `fastcompress.pretokenizer`, with possessive quantifiers or without, with
    parentheses around the whole, capturing or not, and with line breaks escaped or not.
    """
    return _spellings().get(tuple(_with_escapes(_without_parentheses(regex)) for regex in regexes))


def regexes_of(name: str) -> Sequence[str]:
    """The regexes of a named pattern, each cutting what the one before left: one for most, three for DeepSeek's."""
    return pretokenizer.SPLITS.get(name, (pretokenizer.PATTERNS[name],))


def resolve_pattern(pattern: str) -> str:
    """What the core takes for a pattern's name or any regex (tiktoken's ``pat_str``).

    Raises ConfigError for a regex that does not compile, and for a name that there is not.
    """
    is_name = re.fullmatch(r"[\w.-]*", pattern) is not None
    if is_name or pattern.startswith('[{"'):  # a name, known or not; or a spelling
        return pattern
    return named_pattern([pattern]) or CustomPattern.of_regex(pattern).spelling


@functools.cache
def _spellings() -> dict[tuple[str, ...], str]:
    known: dict[tuple[str, ...], str] = {}
    for name in pretokenizer.PATTERNS:
        if name == "none":
            continue
        one = [[regex] for regex in (pretokenizer.PATTERNS[name], *_OTHER_SPELLINGS.get(name, []))]
        for regexes in (*one, regexes_of(name)):
            for rewrite in (str, _without_possessive, fancy_regex_to_onig):
                known[tuple(_with_escapes(rewrite(regex)) for regex in regexes)] = name
    return known


def _without_possessive(regex: str) -> str:
    """A known pattern's regex with greedy quantifiers for possessive ones, which in these patterns match the same."""
    if "++" not in regex:
        return regex
    return re.sub(r"(?<=[+*?])\+|(?<=\{1,3\})\+", "", regex)


def _with_escapes(regex: str) -> str:
    return regex.replace("\r", r"\r").replace("\n", r"\n")


def _without_parentheses(regex: str) -> str:
    for opening in ("(?:", "("):
        inner = regex[len(opening) : -1]
        if regex == f"{opening}{inner})" and _is_balanced(inner):
            return inner
    return regex


def _is_balanced(regex: str) -> bool:
    """Whether every parenthesis that opens in a regex closes in it, and none closes that did not open."""
    depth, in_class, escaped = 0, False, False
    for character in regex:
        if escaped:
            escaped = False
        elif character == "\\":
            escaped = True
        elif in_class:
            in_class = character != "]"
        elif character == "[":
            in_class = True
        else:
            depth += {"(": 1, ")": -1}.get(character, 0)
            if depth < 0:
                return False
    return depth == 0 and not escaped


class CustomPattern:
    """How text is cut into pretokens, as steps.

    The steps are objects as in a ``tokenizer.json`` (Split, Digits, and a last ByteLevel), or the one step
    ``{"type": "Regex", "pattern": ...}``: the regex's matches are the pretokens and what stands between them is
    dropped, tiktoken's way. `spelling`, their JSON, is what the vocabulary file keeps.
    """

    def __init__(self, steps: Sequence[Step]) -> None:
        """Raises ConfigError for a regex that does not compile, or when `regex` is not installed."""
        self.steps = list(steps)
        self.spelling = json.dumps(self.steps, separators=(",", ":"))
        self._functions = [_function_of(step) for step in self.steps]

    @classmethod
    def of_regex(cls, regex: str) -> CustomPattern:
        """tiktoken's ``pat_str``, in the syntax of Rust's ``fancy-regex``."""
        return cls([{"type": "Regex", "pattern": regex}])

    @classmethod
    def from_spelling(cls, spelling: str) -> CustomPattern:
        """The pattern that a vocabulary file keeps. Raises FormatError for words that are none."""
        try:
            return cls(json.loads(spelling))
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            if isinstance(error, ConfigError):
                raise
            raise FormatError(
                f"the custom pattern {spelling[:60]!r} is none that this build knows: update fastcompress"
            ) from error

    @property
    def keeps_text(self) -> bool:
        """The pretokens are the text, nothing dropped and nothing added."""
        return all(
            step["type"] == "Digits"
            or (step["type"] == "Split" and step["behavior"] != "Removed")
            or (step["type"] == "ByteLevel" and not step["add_prefix_space"])
            for step in self.steps
        )

    def pretokens(self, text: bytes) -> tuple[bytes, npt.NDArray[np.uint64]]:
        """The pretokens of a text, one behind the other, and the offset at which each ends: uint64[n].

        Bytes that are not UTF-8 are characters of no class, as for the named patterns.
        """
        decoded = text.decode("utf-8", "surrogateescape")
        stand_ins = {} if decoded.isascii() else _stand_ins(decoded)
        pieces: Iterable[str] = [decoded.translate(stand_ins) if stand_ins else decoded]
        for function in self._functions:
            pieces = [part for piece in pieces if piece for part in function(piece)]
        if stand_ins:
            back = {stand_in: character for character, stand_in in stand_ins.items()}
            pieces = [piece.translate(back) for piece in pieces]
        encoded = [piece.encode("utf-8", "surrogateescape") for piece in pieces if piece]
        ends = np.fromiter(itertools.accumulate(map(len, encoded)), np.uint64, len(encoded))
        return b"".join(encoded), ends

    def split(self, text: bytes) -> list[bytes]:
        """The pretokens of a text."""
        data, ends = self.pretokens(text)
        return [data[begin:end] for begin, end in itertools.pairwise([0, *ends.tolist()])]


def _stand_ins(text: str) -> dict[int, int]:
    """Characters of the text that `regex` knows and our Unicode version does not yet, to characters of no class.

    Those are lone surrogates, which no text holds, but the ones that stand for stray bytes.
    """
    found = sorted(set(_newer_characters().findall(text)))
    return dict(zip(map(ord, found), range(0xD800, 0xDC00), strict=False))


@functools.cache
def _newer_characters() -> re.Pattern[str]:
    """Matches a character assigned after the Unicode version of the named patterns (that of the engines we equal)."""
    ends = [-1, *(last for _, last in _core.ASSIGNED)]
    begins = [*(first for first, _ in _core.ASSIGNED), 0x110000]
    unassigned = "".join(chr(c) for end, begin in zip(ends, begins, strict=True) for c in range(end + 1, begin))
    newer = "".join(compile_regex(r"\P{Cn}").findall(unassigned))
    return re.compile(f"[{newer}]" if newer else r"(?!)")


def compile_regex(regex: str) -> Any:
    """The regex, in Python's syntax, compiled by the `regex` package."""
    try:
        import regex as engine
    except ModuleNotFoundError:
        raise ConfigError(
            "a pattern without a name needs the regex package: pip install regex, or use a named pattern "
            f"({', '.join(pretokenizer.PATTERNS)})"
        ) from None
    try:
        return engine.compile(regex, engine.VERSION0)
    except (engine.error, ValueError, OverflowError, RecursionError) as error:
        raise ConfigError(f"the pattern {regex[:200]!r} is no regular expression: {error}") from None


def _function_of(step: Step) -> _Pieces:
    """What a step makes of one piece of text, which is not empty."""
    kind = step["type"]
    if kind == "Regex":
        find = compile_regex(from_fancy_regex(step["pattern"])).finditer
        return lambda text: (match.group() for match in find(text))
    if kind == "Split":
        [(form, pattern)] = step["pattern"].items()
        compiled = compile_regex(from_onig(pattern)) if form == "Regex" else compile_regex(re.escape(pattern))
        return functools.partial(_split, compiled, step["behavior"], step["invert"])
    if kind == "Digits":
        behavior = "Isolated" if step["individual_digits"] else "Contiguous"
        return functools.partial(_split, compile_regex(r"\p{N}"), behavior, False)
    if kind == "ByteLevel":
        find = compile_regex(GPT2_BYTE_LEVEL).findall if step["use_regex"] else lambda text: [text]
        if step["add_prefix_space"]:
            return lambda text: find(text if text.startswith(" ") else " " + text)
        pieces: _Pieces = find
        return pieces
    raise KeyError(kind)


def _stretches(compiled: Any, text: str) -> Iterator[tuple[int, int, bool]]:
    """(begin, end, is a match) of the matches and what stands between them, in order, covering the text."""
    done = 0
    for match in compiled.finditer(text):
        begin, end = match.span()
        if begin == end == done:
            continue  # an empty match right behind the last one
        if done < begin:
            yield done, begin, False
        yield begin, end, True
        done = end
    if done < len(text):
        yield done, len(text), False


def _split(compiled: Any, behavior: str, invert: bool, text: str) -> Iterable[str]:
    """A Split of `tokenizers`: what becomes of the matches (with invert, of what stands between them)."""
    stretches = [(begin, end, is_match != invert) for begin, end, is_match in _stretches(compiled, text)]
    if behavior == "Isolated":
        return [text[begin:end] for begin, end, _ in stretches]
    if behavior == "Removed":
        return [text[begin:end] for begin, end, is_match in stretches if not is_match]
    if behavior == "MergedWithNext":
        backwards = _joined(reversed(stretches), lambda is_match, before: is_match and not before)
        return [text[begin:end] for begin, end in reversed(backwards)]
    joins = {
        "MergedWithPrevious": lambda is_match, before: is_match and not before,
        "Contiguous": lambda is_match, before: is_match == before,
    }[behavior]
    return [text[begin:end] for begin, end in _joined(stretches, joins)]


def _joined(stretches: Iterable[tuple[int, int, bool]], joins: Callable[[bool, bool], bool]) -> list[tuple[int, int]]:
    """Stretches, each joined to the one before it where joins(it is a match, that one is a match)."""
    joined: list[tuple[int, int]] = []
    before = False
    for begin, end, is_match in stretches:
        if joined and joins(is_match, before):
            joined[-1] = min(begin, joined[-1][0]), max(end, joined[-1][1])
        else:
            joined.append((begin, end))
        before = is_match
    return joined
