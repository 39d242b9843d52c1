"""Reading a pattern from left to right: the position, the dialect's rules, and the one error."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NoReturn

from fastcompress.errors import ConfigError


@dataclass(frozen=True)
class Dialect:
    """What differs between the engines that patterns are written for.

    Attributes:
        name: how errors call it.
        word: the property behind ``\\w``.
        flags: the letters between ``(?`` and ``)`` that are read, and the field of `Flags` that each sets.
        set_operators: what may stand between two parts of a set in brackets.
        hex_digits: the letters after a backslash that take exactly so many hexadecimal digits.
        is_onig: it is Oniguruma with Ruby's syntax, else fancy-regex.
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
    """The flags in force at a place of a pattern."""

    ignores_case: bool = False
    dot_is_any: bool = False
    is_multiline: bool = False
    is_unicode: bool = True


@dataclass
class Scanner:
    """A pattern, the position reached in it, the flags in force there, and how much was opened on the way."""

    text: str
    dialect: Dialect
    position: int = 0
    flags: Flags = field(default_factory=Flags)
    depth: int = 0
    num_captures: int = 0

    def starts(self, what: str) -> bool:
        return self.text.startswith(what, self.position)

    def take(self, what: str) -> bool:
        """Step over a string if it is next; return whether it was."""
        found = self.starts(what)
        self.position += len(what) * found
        return found

    def peek(self, ahead: int = 0) -> str:
        """Return the next character, or one further ahead; empty past the end."""
        return self.text[self.position + ahead : self.position + ahead + 1]

    def next(self) -> str:
        character = self.peek()
        self.position += 1
        return character

    def at_end(self) -> bool:
        return self.position >= len(self.text)

    def invalid(self, problem: str) -> NoReturn:
        """Raise ConfigError for what is an error in the dialect, too."""
        raise ConfigError(f"the pattern {shown(self.text)} is not a regular expression: {problem}")

    def refuse(self, construct: str, remedy: str = "spell it out with constructs that are") -> NoReturn:
        """Raise ConfigError for what the dialect may allow, but fastcompress does not read."""
        raise ConfigError(
            f"the pattern {shown(self.text)} has {construct}, which is not supported in {self.dialect.name} patterns; "
            f"{remedy}"
        )


def shown(pattern: str) -> str:
    return repr(pattern if len(pattern) <= 200 else pattern[:197] + "...")
