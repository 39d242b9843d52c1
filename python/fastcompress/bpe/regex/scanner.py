"""The state of the parser while it reads a pattern from left to right, and the rules of the two dialects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NoReturn

from fastcompress.errors import ConfigError


@dataclass(frozen=True)
class Dialect:
    """The rules of an engine that patterns are written for.

    Attributes:
        name: The name of the engine, for errors.
        word: The property that ``\\w`` stands for.
        flags: The letters supported between ``(?`` and ``)``, and the field of `Flags` that each of them sets.
        set_operators: The operators between two parts of a set in brackets.
        hex_digits: The letters after a backslash that are followed by this number of hexadecimal digits.
        is_onig: Whether it is Oniguruma, with Ruby's syntax; otherwise it is fancy-regex.
    """

    name: str
    word: str
    flags: Mapping[str, str]
    set_operators: tuple[str, ...]
    hex_digits: Mapping[str, int]
    is_onig: bool


ONIG = Dialect("Oniguruma", "onig word", {"i": "ignores_case", "m": "dot_is_any"}, ("&&",), {"x": 2, "u": 4}, True)
FANCY = Dialect(
    "fancy-regex",
    "word",
    {"i": "ignores_case", "s": "dot_is_any", "m": "is_multiline", "u": "is_unicode"},
    ("&&", "--", "~~"),
    {"x": 2, "u": 4, "U": 8},
    False,
)


@dataclass(frozen=True)
class Flags:
    """The flags in force at a position of a pattern."""

    ignores_case: bool = False
    dot_is_any: bool = False
    is_multiline: bool = False
    is_unicode: bool = True


@dataclass
class Scanner:
    """A pattern and the state of its parser.

    Attributes:
        text: The pattern.
        dialect: The rules to read it by.
        position: The position of the next character.
        flags: The flags in force there.
        depth: The number of groups and sets that are open.
        num_captures: The number of capturing groups before it.
    """

    text: str
    dialect: Dialect
    position: int = 0
    flags: Flags = field(default_factory=Flags)
    depth: int = 0
    num_captures: int = 0

    def starts(self, what: str) -> bool:
        """Return whether a string is next."""
        return self.text.startswith(what, self.position)

    def take(self, what: str) -> bool:
        """Skip a string if it is next; return whether it was."""
        found = self.starts(what)
        self.position += len(what) * found
        return found

    def peek(self, ahead: int = 0) -> str:
        """Return the next character, or the one `ahead` characters later; an empty str past the end."""
        return self.text[self.position + ahead : self.position + ahead + 1]

    def next(self) -> str:
        """Return the next character and skip it; an empty str past the end."""
        character = self.peek()
        self.position += 1
        return character

    def at_end(self) -> bool:
        """Return whether the whole pattern has been read."""
        return self.position >= len(self.text)

    def invalid(self, problem: str) -> NoReturn:
        """Raise ConfigError for a pattern that is invalid in the dialect itself."""
        raise ConfigError(f"the pattern {shown(self.text)} is not a regular expression: {problem}")

    def refuse(self, construct: str, remedy: str = "replace it by supported constructs") -> NoReturn:
        """Raise ConfigError for a construct that the dialect may allow but fastcompress does not support."""
        raise ConfigError(
            f"the pattern {shown(self.text)} has {construct}, which is not supported in {self.dialect.name} patterns; "
            f"{remedy}"
        )


def shown(pattern: str) -> str:
    """Return the repr of a pattern, shortened if it is long."""
    return repr(pattern if len(pattern) <= 200 else pattern[:197] + "...")
