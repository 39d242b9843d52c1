"""Custom patterns: any regular expression, or the pre-tokenizer steps of a ``tokenizer.json``.

They give the same pretokens as the engines that they were written for, but run on the `regex` package
(``pip install regex``), which is slower than the scanners of the named patterns. `named_pattern` recognizes regular
expressions that are equal to a named pattern.
"""

from __future__ import annotations

import difflib
import functools
import itertools
import json
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from fastcompress import pretokenizer
from fastcompress.bpe.regex import FANCY, ONIG, Matcher, fancy_regex_to_onig, has_newer_characters, parse, syntax
from fastcompress.errors import ConfigError, FormatError

Step: TypeAlias = "dict[str, Any]"
# A function that cuts a non-empty piece of text; the second argument is whether the text has newer characters.
_Pieces: TypeAlias = "Callable[[str, bool], Iterable[str]]"

GPT2_BYTE_LEVEL = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
"""The regex inside `tokenizers`' ByteLevel; its matches are those of the pattern ``gpt2``."""

# Other regexes that are equal to a named pattern, from tokenizers and from early versions of tiktoken.
_OTHER_SPELLINGS = {
    "gpt2": [
        GPT2_BYTE_LEVEL,
        r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
        r"'s|'t|'re|'ve|'m|'ll|'d| ?[\p{L}]+| ?[\p{N}]+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",  # as GPT-2 came out
    ],
    # cl100k_base in tiktoken before 0.8, which cut white space at the end of a text after its last line break.
    "llama3": [
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}"
        r"| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+",
    ],
    # `bpe.WORD_PATTERN` before it was a name.
    "words": [r" ?[A-Za-z\x{80}-\x{10ffff}]+| ?[0-9]+| ?[\x00-\x08\x0e-\x1f!-/:-@\[-`{-\x7f]+|[ \t-\r]+"],
}


def named_pattern(regexes: Sequence[str]) -> str | None:
    """Return the named pattern that splits text as these regexes do in turn, or None.

    Recognized are the regexes of `fastcompress.pretokenizer`, with or without possessive quantifiers, with or without
    parentheses around the whole, and with line breaks escaped or not.
    """
    return _spellings().get(tuple(_with_escapes(_without_parentheses(regex)) for regex in regexes))


def regexes_of(name: str) -> Sequence[str]:
    """Return the regexes of a named pattern, which split text in turn: one for most patterns, three for DeepSeek's."""
    return pretokenizer.SPLITS.get(name, (pretokenizer.PATTERNS[name],))


def resolve_pattern(pattern: str) -> str:
    """Return a pattern argument as the core takes it: a name, or the JSON of a `CustomPattern`.

    The argument may be the name or alias of a named pattern, the JSON of steps (`CustomPattern.to_json`), or a regex in
    tiktoken's syntax. Use `as_regex` for an argument that cannot be a name.

    Raises ConfigError if a regex is invalid or has unsupported constructs, if the argument is empty, and if it is
    probably a misspelt name: a word of three or more letters, digits and hyphens that is similar to a name.
    """
    names = [*pretokenizer.PATTERNS, *pretokenizer.ALIASES]
    if pattern in names:
        return pattern
    if not pattern:
        raise ConfigError("pattern is empty; it must be a regex or a name: 'none' for no splitting")
    if re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]{2,}", pattern):
        close = difflib.get_close_matches(pattern.lower(), names, n=1)
        if close:
            raise ConfigError(
                f"unknown pattern {pattern!r}; did you mean {close[0]!r}? The names are "
                f"{', '.join(pretokenizer.PATTERNS)}; for the regex write '(?:{pattern})'"
            )
    if _is_json(pattern):
        return CustomPattern.from_json(pattern).to_json()
    return named_pattern([pattern]) or CustomPattern.from_regex(pattern).to_json()


def as_regex(regex: str) -> str:
    """Return the pattern argument for a regex that may look like a name, such as tiktoken's ``pat_str``."""
    is_plain = re.fullmatch(r"[\w-]*", regex) is None and not _is_json(regex)
    return regex if is_plain else f"(?:{regex})"


def _is_json(pattern: str) -> bool:
    """Return whether a pattern is the JSON of steps, and not a regex that begins in the same way."""
    if not pattern.startswith('[{"'):
        return False
    try:
        steps = json.loads(pattern)
    except (ValueError, RecursionError):
        return False
    return isinstance(steps, list) and all(isinstance(step, dict) and "type" in step for step in steps)


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
    """Return the regex of a named pattern with greedy quantifiers in place of possessive ones, which match the same."""
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
    """Return whether the parentheses of a regex are balanced."""
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
    """A sequence of steps that cut a text into pretokens.

    The steps are objects as in a ``tokenizer.json`` (Split, Digits, and ByteLevel as the last one), or the single step
    ``{"type": "Regex", "pattern": ...}``, whose matches are the pretokens; the text between them is dropped, as in
    tiktoken. A vocabulary file stores the steps as JSON. Immutable; safe to share between threads.

    >>> CustomPattern.from_regex("[a-z]+|[0-9]+").split(b"ab12 c")
    [b'ab', b'12', b'c']
    """

    def __init__(self, steps: Sequence[Step]) -> None:
        """Compile the steps.

        Raises:
            ConfigError: The regex of a Regex step is invalid or not supported, or `regex` is not installed.
            FormatError: The regex of a Split, which came from a file, is invalid or not supported.
        """
        self.steps = list(steps)
        self._json = json.dumps(self.steps, separators=(",", ":"))
        self._functions = [_function_of(step) for step in self.steps]

    @classmethod
    def from_regex(cls, regex: str) -> CustomPattern:
        """Make a pattern from a regex in the syntax of Rust's fancy-regex, such as tiktoken's ``pat_str``."""
        return cls([{"type": "Regex", "pattern": regex}])

    @classmethod
    def from_json(cls, text: str) -> CustomPattern:
        """Parse what `to_json` returned, which vocabulary files store. Raises FormatError for anything else."""
        try:
            return cls(json.loads(text))
        except (ConfigError, FormatError):
            raise
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            raise FormatError(
                f"this version does not support the custom pattern {text[:60]!r}; update fastcompress"
            ) from error

    def to_json(self) -> str:
        """Return the steps as JSON."""
        return self._json

    @property
    def lossless(self) -> bool:
        """True if the pretokens, joined, always equal the text."""
        return all(
            step["type"] == "Digits"
            or (step["type"] == "Split" and step["behavior"] != "Removed")
            or (step["type"] == "ByteLevel" and not step["add_prefix_space"])
            for step in self.steps
        )

    def pretokens(self, text: bytes) -> tuple[bytes, npt.NDArray[np.uint64]]:
        """Return the pretokens of a text, joined, and the offset at which each ends, uint64[n].

        As for the named patterns, bytes that are not UTF-8 count as characters of no class. Raises DataError if the
        pattern takes too long, as some patterns do that can match a text in very many ways.
        """
        decoded = text.decode("utf-8", "surrogateescape")
        has_newer = has_newer_characters(decoded)
        pieces: Iterable[str] = [decoded]
        for function in self._functions:
            pieces = [part for piece in pieces if piece for part in function(piece, has_newer)]
        encoded = [piece.encode("utf-8", "surrogateescape") for piece in pieces if piece]
        ends = np.fromiter(itertools.accumulate(map(len, encoded)), np.uint64, len(encoded))
        return b"".join(encoded), ends

    def split(self, text: bytes) -> list[bytes]:
        """Return the pretokens of a text."""
        data, ends = self.pretokens(text)
        return [data[begin:end] for begin, end in itertools.pairwise([0, *ends.tolist()])]


@functools.cache
def _gpt2_matcher() -> Matcher:
    return Matcher(parse(GPT2_BYTE_LEVEL, ONIG))


# `tokenizers` uses the numbers of Rust's standard library, which is at Unicode 17.0.
_NUMBERS = syntax.Union((syntax.Property("N"), syntax.Range(0x11DE0, 0x11DE9), syntax.Range(0x16FF4, 0x16FF6)))


def _function_of(step: Step) -> _Pieces:
    """Return a function that applies a step to a piece of text."""
    kind = step["type"]
    if kind == "Regex":
        return functools.partial(_matches, Matcher(parse(step["pattern"], FANCY)))
    if kind == "Split":
        return functools.partial(_split, _split_matcher(step["pattern"]), step["behavior"], step["invert"])
    if kind == "Digits":
        behavior = "Isolated" if step["individual_digits"] else "Contiguous"
        return functools.partial(_split, Matcher(syntax.Character(_NUMBERS)), behavior, False)
    if kind == "ByteLevel":
        return functools.partial(_byte_level, step["add_prefix_space"], step["use_regex"])
    raise KeyError(kind)


def _split_matcher(pattern: dict[str, str]) -> Matcher:
    [(form, text)] = pattern.items()
    if form == "String":
        characters = [syntax.Character(syntax.Range(code, code)) for code in map(ord, text)]
        return Matcher(syntax.Sequence(tuple(characters)))
    try:
        tree = parse(text, ONIG)
    except ConfigError as error:
        raise FormatError(f"Split: {error}") from None
    return Matcher(tree)


def _matches(matcher: Matcher, text: str, has_newer: bool) -> Iterable[str]:
    return [text[begin:end] for begin, end in matcher.spans(text, has_newer=has_newer)]


def _byte_level(adds_prefix_space: bool, uses_regex: bool, text: str, has_newer: bool) -> Iterable[str]:
    if adds_prefix_space and not text.startswith(" "):
        text = " " + text
    return _matches(_gpt2_matcher(), text, has_newer) if uses_regex else [text]


def _stretches(spans: Iterable[tuple[int, int]], length: int) -> list[tuple[int, int, bool]]:
    """Return (begin, end, whether it is a match) for the matches and the stretches of text between them, in order."""
    stretches: list[tuple[int, int, bool]] = []
    done = 0
    for begin, end in spans:
        if done < begin:
            stretches.append((done, begin, False))
        stretches.append((begin, end, True))
        done = end
    if done < length:
        stretches.append((done, length, False))
    return stretches


def _split(matcher: Matcher, behavior: str, invert: bool, text: str, has_newer: bool) -> Iterable[str]:
    """Cut a text as a Split of `tokenizers` does, which treats the matches, or with `invert` the text between them."""
    found = _stretches(matcher.spans(text, has_newer=has_newer), len(text))
    stretches = [(begin, end, is_match != invert) for begin, end, is_match in found]
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
    """Join each stretch to the one before it if joins(whether it is a match, whether the one before is)."""
    joined: list[tuple[int, int]] = []
    before = False
    for begin, end, is_match in stretches:
        if joined and joins(is_match, before):
            joined[-1] = min(begin, joined[-1][0]), max(end, joined[-1][1])
        else:
            joined.append((begin, end))
        before = is_match
    return joined
