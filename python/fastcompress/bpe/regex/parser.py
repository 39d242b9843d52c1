"""The parser of Oniguruma's and fancy-regex's patterns, which makes the trees of `syntax`.

Only constructs with a known meaning are accepted; all others raise a ConfigError that names them. One parser reads both
dialects, which differ in these constructs:

=============  ====================================  ==================================================
construct      Oniguruma (`tokenizers`)              fancy-regex (tiktoken)
=============  ====================================  ==================================================
``^ $``        start and end of each line            start and end of the text; of each line with ``(?m)``
``\\Z``         the end, or before a final break      the end, or before all final line breaks
``X{n,m}+``    ``(?:X{n,m})+``                       possessive
``X{n}?``      ``(?:X{n})?``                         ``X{n}``
``(?m)``       the dot matches line breaks           ``^ $`` match at the start and end of lines
``a(?i)b|c``   ``a(?i:b|c)``                         ``a(?i:b)|(?i:c)``
``\\pL``        the letters ``pL``                    a property
``\\w``         no joiners, but superscripts          as Unicode defines it
               (these not in brackets)
``[[:alpha:]]`` Unicode's letters                    ASCII's letters
=============  ====================================  ==================================================
"""

from __future__ import annotations

import dataclasses
import itertools
import re

from fastcompress.bpe.regex.properties import long_foldings
from fastcompress.bpe.regex.scanner import Dialect, Scanner
from fastcompress.bpe.regex.sets import (
    ANY,
    NOT_NEWLINE,
    checked_code_point,
    folded_if_asked,
    read_escape,
    read_set,
)
from fastcompress.bpe.regex.syntax import (
    Alternatives,
    Character,
    Edge,
    Folded,
    Group,
    Node,
    Property,
    Range,
    Repeat,
    Sequence,
    concatenated,
    has_lookaround,
    widths,
)

_MAX_COUNT = 1000
_NEWLINE = Character(Range(10, 10))
_START, _END = Edge("start"), Edge("end")
# No line begins after a line break at the end of the text.
_ONIG_LINE_START = Alternatives((_START, Sequence((Group("<=", _NEWLINE), Group("!", _END)))))
_INTERVAL = re.compile(r"\{(\d{0,6})(,?)(\d{0,6})\}")


def parse(pattern: str, dialect: Dialect) -> Node:
    """Parse a pattern. Raises ConfigError if it is invalid, or if it has an unsupported construct, which is named."""
    scanner = Scanner(pattern, dialect)
    node = _alternatives(scanner)
    if not scanner.at_end():
        scanner.invalid("it closes a group that is not open")
    return node


def _alternatives(scanner: Scanner) -> Node:
    branches = [_sequence(scanner)]
    while scanner.take("|"):
        branches.append(_sequence(scanner))
    return branches[0] if len(branches) == 1 else Alternatives(tuple(branches))


def _sequence(scanner: Scanner) -> Node:
    parts: list[Node] = []
    while not scanner.at_end() and scanner.peek() not in ("|", ")"):
        if scanner.starts("(?"):
            parts += _special_group(scanner)
        else:
            parts.append(_quantified(scanner, _atom(scanner)))
    node = concatenated(parts)
    if scanner.dialect.is_onig:
        _check_no_long_folding(scanner, node)
        _check_endless_dot(scanner, node)
    return node


def _atom(scanner: Scanner) -> Node:
    character = scanner.next()
    if character == "(":
        scanner.num_captures += 1
        return _closed_group(scanner)
    if character == "[":
        return Character(read_set(scanner))
    if character == "\\":
        return _escape(scanner)
    if character == ".":
        return Character(ANY if scanner.flags.dot_is_any else NOT_NEWLINE)
    if character in "^$":
        return _line_edge(scanner, character)
    if character in "*+?" or (character == "{" and scanner.peek() in tuple("0123456789, ")):
        scanner.invalid(f"{character!r} has nothing to repeat")
    return _literal(scanner, checked_code_point(scanner, ord(character)))


def _literal(scanner: Scanner, code: int) -> Node:
    if scanner.dialect.is_onig and scanner.flags.ignores_case and chr(code) in long_foldings():
        scanner.refuse(f"{chr(code)!r}, equal to several characters but for case, under the flag i", "leave out the i")
    return Character(folded_if_asked(scanner, Range(code, code)))


def _escape(scanner: Scanner) -> Node:
    letter = scanner.peek()
    is_onig = scanner.dialect.is_onig
    if letter in ("A", "z", "Z", "b", "B"):
        scanner.position += 1
        if letter in "bB" and not is_onig and scanner.starts("{"):
            scanner.refuse(f"the escape \\{letter}{{")
        if letter == "Z":
            breaks = Repeat(_NEWLINE, 0, 1 if is_onig else None)
            return Group("=", Sequence((breaks, _END)))
        if letter in "bB":
            return _word_boundary(Character(Property(scanner.dialect.word)), letter == "b")
        return _START if letter == "A" else _END
    found = read_escape(scanner)
    if isinstance(found, int):
        return _literal(scanner, found)
    return Character(found)


def _word_boundary(word: Character, is_boundary: bool) -> Node:
    before, after = Group("<=", word), Group("=", word)
    not_before, not_after = Group("<!", word), Group("!", word)
    pairs = [(before, not_after), (not_before, after)] if is_boundary else [(before, after), (not_before, not_after)]
    return Alternatives(tuple(Sequence(pair) for pair in pairs))


def _line_edge(scanner: Scanner, character: str) -> Node:
    is_onig = scanner.dialect.is_onig
    if not is_onig and not scanner.flags.is_multiline:
        return _START if character == "^" else _END
    if character == "$":
        return Group("=", Alternatives((_NEWLINE, _END)))
    return _ONIG_LINE_START if is_onig else Alternatives((_START, Group("<=", _NEWLINE)))


# --- Groups ----------------------------------------------------------------------------------------------


def _closed_group(scanner: Scanner, *, ends_flags: bool = False) -> Node:
    """Read the body of a group and its closing parenthesis, and restore the flags from before the group.

    In fancy-regex, only groups that begin with ``(?:`` or with flags restore them (`ends_flags`). A flag that is set in
    any other group would still be in force after it, which is refused.
    """
    flags = scanner.flags
    scanner.depth += 1
    if scanner.depth > 50:
        scanner.refuse("sets or groups nested more than 50 deep")
    body = _alternatives(scanner)
    if not scanner.take(")"):
        scanner.invalid("it has a group without the closing parenthesis")
    scanner.depth -= 1
    if scanner.flags != flags and not (ends_flags or scanner.dialect.is_onig):
        scanner.refuse("a flag that is set in a group and stays in force after it", "begin the group with '(?:'")
    scanner.flags = flags
    return body


def _special_group(scanner: Scanner) -> list[Node]:
    """Read a construct that begins with ``(?``. Comments, and flags without a body, add no nodes."""
    scanner.position += 2
    for kind in ("<=", "<!", "=", "!", ">"):
        if scanner.take(kind):
            num_captures = scanner.num_captures
            group = Group(kind, _closed_group(scanner))
            if kind == ">":
                return [_quantified(scanner, group)]
            if kind == "<!" and scanner.num_captures > num_captures:
                scanner.refuse("a capturing group in a negative lookbehind", "begin the group with '(?:'")
            if kind in ("<=", "<!"):
                _check_lookbehind(scanner, group.body)
            _refuse_quantifier(scanner, "a lookaround")
            return [group]
    if scanner.take("#"):
        return _comment(scanner)
    name = re.compile(r"P?<[A-Za-z_][A-Za-z0-9_]*>").match(scanner.text, scanner.position)
    if name is not None and not (scanner.dialect.is_onig and name[0].startswith("P")):
        _check_name_is_new(scanner, name[0].removeprefix("P"))
        scanner.position = name.end()
        scanner.num_captures += 1
        return [_quantified(scanner, _closed_group(scanner))]
    return _flags(scanner)


def _comment(scanner: Scanner) -> list[Node]:
    end = scanner.text.find(")", scanner.position)
    if end < 0 or "\\" in scanner.text[scanner.position : end]:
        scanner.refuse("a comment with a backslash or without an end")
    scanner.position = end + 1
    _refuse_quantifier(scanner, "a comment")
    return []


def _check_name_is_new(scanner: Scanner, name: str) -> None:
    if re.search(rf"\(\?P?{re.escape(name)}", scanner.text[: scanner.position - 2]):
        scanner.refuse(f"two groups with the name {name[1:-1]!r}", "rename one of them")


def _flags(scanner: Scanner) -> list[Node]:
    match = re.compile(r"([a-zA-Z]*)(-[a-zA-Z]+)?([:)])").match(scanner.text, scanner.position)
    if match is None:
        scanner.refuse(f"a group that begins with {scanner.text[scanner.position - 2 : scanner.position + 4]!r}")
    scanner.position = match.end()
    before = scanner.flags
    known = scanner.dialect.flags
    for letters, value in ((match[1], True), ((match[2] or "-")[1:], False)):
        for letter in letters:
            if letter not in known or (letter == "u" and not value):
                sign = "" if value else "-"
                scanner.refuse(f"the flag {sign}{letter}", f"only {', '.join(known)} are read")
            scanner.flags = dataclasses.replace(scanner.flags, **{known[letter]: value})
    if match[3] == ":":
        group = _closed_group(scanner, ends_flags=True)
        scanner.flags = before
        return [_quantified(scanner, group)]
    if not (match[1] or match[2]):
        scanner.invalid("it has a group that only opens: '(?)'")
    _refuse_quantifier(scanner, "a flag")
    if not scanner.dialect.is_onig:
        return []
    # In Oniguruma, the rest of the enclosing group, with all its alternatives, becomes a group with these flags.
    rest = _alternatives(scanner)
    scanner.flags = before
    return [rest]


def _check_lookbehind(scanner: Scanner, body: Node) -> None:
    branches = body.branches if isinstance(body, Alternatives) else (body,)
    for branch in branches:
        least, most = widths(branch)
        if least != most:
            scanner.refuse("a lookbehind of variable width", "give it a fixed width")
        if has_lookaround(branch):
            scanner.refuse("a lookaround or an anchor within a lookbehind")


def _check_no_long_folding(scanner: Scanner, node: Node) -> None:
    """Refuse characters that Oniguruma matches with fewer or more of them under the flag i: sharp s and ``ss``."""
    parts = node.parts if isinstance(node, Sequence) else (node,)
    run, is_folded = "", False
    for part in (*parts, _START):
        body, copies = part, 1
        if isinstance(part, Repeat) and part.least != 1:
            body, copies = part.body, 3
        characters = _single_characters(body)
        if characters is not None:
            run += "".join(chr(code) for code, _ in characters) * copies
            is_folded |= any(folds for _, folds in characters)
            continue
        text = "".join(character.casefold() if len(character.casefold()) == 1 else character for character in run)
        for character, folded in long_foldings().items() if is_folded else ():
            if folded in text or character in text:
                scanner.refuse(f"{folded!r}, which is {character!r} but for case, under the flag i", "leave out the i")
        run, is_folded = "", False


def _check_endless_dot(scanner: Scanner, node: Node) -> None:
    """Refuse ``\\b.*`` and its like, which Oniguruma tries only at the starts of lines, as if the dot came first."""
    parts = node.parts if isinstance(node, Sequence) else (node,)
    dots = [Character(ANY), Character(NOT_NEWLINE)]
    for before, part in itertools.pairwise(parts):
        if widths(before)[1] != 0:
            return
        if before in (_START, _ONIG_LINE_START):  # there a dot that stops at line breaks is handled correctly
            dots = dots[:1] if before == _ONIG_LINE_START else []
        if _begins_with_endless(part, dots):
            scanner.refuse("an anchor or a lookaround before a dot that is repeated without a limit", "write [^\\n]")


def _begins_with_endless(node: Node, dots: list[Character]) -> bool:
    if isinstance(node, Alternatives):
        return any(_begins_with_endless(branch, dots) for branch in node.branches)
    if isinstance(node, Sequence):
        return bool(node.parts) and _begins_with_endless(node.parts[0], dots)
    if isinstance(node, Group):
        return node.kind == ">" and _begins_with_endless(node.body, dots)
    return isinstance(node, Repeat) and (
        (node.most is None and node.body in dots) or _begins_with_endless(node.body, dots)
    )


def _single_characters(node: Node) -> list[tuple[int, bool]] | None:
    """Return (code point, whether it folds) for each character if a node is a string of characters, else None."""
    found: list[tuple[int, bool]] = []
    for part in node.parts if isinstance(node, Sequence) else (node,):
        of = part.of if isinstance(part, Character) else None
        inner = of.inner if isinstance(of, Folded) else of
        if not isinstance(inner, Range) or inner.first != inner.last:
            return None
        found.append((inner.first, isinstance(of, Folded)))
    return found


# --- Quantifiers -----------------------------------------------------------------------------------------


def _refuse_quantifier(scanner: Scanner, what: str) -> None:
    if scanner.peek() in ("*", "+", "?") or _INTERVAL.match(scanner.text, scanner.position):
        scanner.refuse(f"a quantifier after {what}")


def _quantified(scanner: Scanner, body: Node) -> Node:
    """Read the quantifier after an atom, if there is one."""
    count = _count(scanner)
    if count is None:
        return body
    least, most, is_interval = count
    if widths(body) == (0, 0) or _may_be_an_anchor(body):
        scanner.refuse("a quantifier after an anchor, a lookaround or an empty group")
    if widths(body)[0] == 0 and most != 1:
        scanner.refuse("a repeated group that can match nothing", "let each repetition match a character")
    sign = scanner.next() if scanner.peek() in ("+", "?") else ""
    _refuse_quantifier(scanner, "a quantifier")
    if sign == "?":
        if scanner.dialect.is_onig and is_interval and least == most:
            return Repeat(Repeat(body, least, most), 0, 1)
        return Repeat(body, least, most, lazy=True)
    repeat = Repeat(body, least, most)
    if sign == "+":
        if scanner.dialect.is_onig and is_interval:
            if least == 0:
                scanner.refuse("a repeated interval that can match nothing", "let each repetition match a character")
            return Repeat(repeat, 1, None)
        return Group(">", repeat)
    return repeat


def _may_be_an_anchor(node: Node) -> bool:
    """Return whether a branch of a node has only anchors and lookarounds; Oniguruma does not repeat such groups."""
    if isinstance(node, Alternatives):
        return any(map(_may_be_an_anchor, node.branches))
    return has_lookaround(node) and widths(node)[0] == 0


def _count(scanner: Scanner) -> tuple[int, int | None, bool] | None:
    """Read ``*``, ``+``, ``?`` or an interval; return (least, most, whether it is an interval), or None without one."""
    short = {"*": (0, None), "+": (1, None), "?": (0, 1)}.get(scanner.peek())
    if short is not None:
        scanner.position += 1
        return (*short, False)
    if not scanner.starts("{"):
        return None
    match = _INTERVAL.match(scanner.text, scanner.position)
    if match is None or not (match[1] or match[3]):
        if scanner.peek(1) in tuple("0123456789, "):
            scanner.refuse("a brace that opens no interval", r"write \{")
        return None
    scanner.position = match.end()
    least = int(match[1] or 0)
    most = int(match[3]) if match[3] else None if match[2] else least
    if most == 0 or (most is not None and most < least) or max(least, most or 0) > _MAX_COUNT:
        scanner.refuse(f"the interval {match[0]}", f"give 1 to {_MAX_COUNT}, in order")
    return least, most, True
