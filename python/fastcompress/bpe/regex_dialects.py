"""Regular expressions of Oniguruma and of Rust's ``fancy-regex``, put into the syntax of Python's `regex` package.

The three agree on nearly everything that split patterns use. What differs is rewritten: anchors, and in Oniguruma a
plus behind an interval, which repeats it instead of making it possessive. What would silently mean something else is
refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from fastcompress.errors import ConfigError

_BRACED_CODE_POINT = re.compile(r"\\[xu]\{([0-9A-Fa-f]{1,8})\}")
# ``[A&&[B]]`` and ``[A&&[^B]]``, as Kimi's pattern has them.
_ITEMS = r"(?:\\[pP]\{[^}]*\}|\\.|[^\[\]&\\])+"
_INTERSECTION = re.compile(rf"(?<!\\)\[(?!\^)({_ITEMS})&&\[(\^?)({_ITEMS})\]\]")
_ONIG_IN_PYTHON = {"$": r"(?=\n|\Z)", "^": r"(?:^|(?<=\n))", r"\z": r"\Z", r"\Z": r"(?=\n?\Z)", r"\h": "[0-9A-Fa-f]"}
_FANCY_IN_PYTHON = {"$": r"\Z", r"\z": r"\Z", r"\Z": r"(?=\n?\Z)", r"\h": "[0-9A-Fa-f]"}
_FANCY_IN_ONIG = {"$": r"\z", "^": r"\A"}


def from_fancy_regex(regex: str) -> str:
    """A pattern of tiktoken's in Python's syntax. Raises ConfigError for what cannot be put into it."""
    if "[:" in regex:  # of ASCII only there, of all Unicode here and in Oniguruma
        raise ConfigError(f"the pattern {regex[:200]!r} has a POSIX class; spell it out, as a-z or \\p{{L}}")
    regex = _INTERSECTION.sub(lambda m: f"(?:(?{'!' if m[2] else '='}[{m[3]}])[{m[1]}])", regex)
    return "".join(_FANCY_IN_PYTHON.get(atom, atom) for atom in _atoms(regex))


def from_onig(regex: str) -> str:
    """A pattern of `tokenizers`' in Python's syntax. Raises ConfigError for what cannot be put into it."""
    regex = re.sub(r"(?<!\\)\(\?([a-z]*)m(?=[a-z-]*[:)])", r"(?\1s", regex)  # Ruby's name for "dot matches all"
    return _rewritten(regex, _ONIG_IN_PYTHON, "(?:", ")+")


def fancy_regex_to_onig(regex: str) -> str:
    """A pattern of tiktoken's as Oniguruma reads it."""
    return _rewritten(regex, _FANCY_IN_ONIG, "(?>", ")")


def _rewritten(regex: str, atoms: dict[str, str], before: str, after: str) -> str:
    """The regex with some atoms replaced, and ``X{n,m}+`` as ``before X{n,m} after``."""
    out: list[str] = []
    begins = [0]  # where in `out` the last thing that can be repeated begins, for each open group
    for atom in _atoms(regex):
        if atom == "+" and out and out[-1].startswith("{"):
            out.insert(begins[-1], before)
            out.append(after)
            continue
        if atom.startswith("(") and not atom.endswith(")"):
            begins[-1] = len(out)
            begins.append(len(out) + 1)
        elif atom == ")":
            if len(begins) == 1:
                raise ConfigError(f"the pattern {regex[:200]!r} closes a group that is not open")
            begins.pop()
        elif atom[0] not in "*+?{":
            begins[-1] = len(out)
        out.append(atoms.get(atom, atom))
    return "".join(out)


def _atoms(regex: str) -> Iterator[str]:
    """The pieces of a regex: escapes, classes, group openings, quantifiers, single characters."""
    i = 0
    while i < len(regex):
        end = i + 1
        if regex[i] == "\\":
            end = _escape_end(regex, i)
        elif regex[i] == "[":
            end = _class_end(regex, i)
        elif regex.startswith("(?", i):
            end = _group_opening_end(regex, i)
        elif regex[i] == "{":
            close = regex.find("}", i)
            end = close + 1 if close > 0 else end
        yield _BRACED_CODE_POINT.sub(lambda match: f"\\U{int(match[1], 16):08x}", regex[i:end])
        i = end


def _escape_end(regex: str, begin: int) -> int:
    if regex[begin + 1 : begin + 3] in ("p{", "P{", "x{", "u{"):
        close = regex.find("}", begin)
        if close > 0:
            return close + 1
    if begin + 1 == len(regex):
        raise ConfigError(f"the pattern {regex[:200]!r} ends in a backslash")
    return begin + 2


def _class_end(regex: str, begin: int) -> int:
    i = begin + (2 if regex.startswith("[^", begin) else 1)
    first = i
    while i < len(regex):
        if regex[i] == "]" and i > first:
            return i + 1
        if regex.startswith("&&", i) or (regex[i] == "[" and not regex.startswith("[:", i)):
            raise ConfigError(f"the pattern {regex[:200]!r} has a class within a class; spell it without")
        if regex.startswith("[:", i):
            i = regex.find(":]", i) + 2 if ":]" in regex[i:] else len(regex)
        elif regex[i] == "\\":
            i = _escape_end(regex, i)
        else:
            i += 1
    raise ConfigError(f"the pattern {regex[:200]!r} has a class that does not end")


def _group_opening_end(regex: str, begin: int) -> int:
    """The end of ``(?:``, ``(?=``, ``(?<!``, ``(?i:``, ``(?i)``, ``(?<name>`` ..."""
    i = begin + 2
    for opening in ("<=", "<!", "=", "!", ":", ">"):
        if regex.startswith(opening, i):
            return i + len(opening)
    closers = ">" if regex.startswith(("<", "P<"), i) else ":)"
    while i < len(regex) and regex[i] not in closers:
        i += 1
    return min(i + 1, len(regex))
