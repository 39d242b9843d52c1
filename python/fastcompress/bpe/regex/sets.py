"""The parser of escapes and of sets in brackets, by the rules of Oniguruma and fancy-regex."""

from __future__ import annotations

import re

from fastcompress.bpe.regex.engine import engine
from fastcompress.bpe.regex.properties import long_foldings, property_named
from fastcompress.bpe.regex.scanner import Scanner
from fastcompress.bpe.regex.syntax import Character, CharacterSet, Folded, Operation, Property, Range, Union
from fastcompress.bpe.regex.writer import to_python

_CONTROLS = {"t": 9, "n": 10, "v": 11, "f": 12, "r": 13, "a": 7, "e": 0x1B}
_HEX = Union((Range(0x30, 0x39), Range(0x41, 0x46), Range(0x61, 0x66)))
ANY = Union((Property("any"),))
NOT_NEWLINE = Union((Range(10, 10),), negated=True)
_ASCII = {
    "alnum": "09AZaz", "alpha": "AZaz", "ascii": "\0\x7f", "blank": "\t\t  ", "cntrl": "\0\x1f\x7f\x7f", "digit": "09",
    "graph": "!~", "lower": "az", "print": " ~", "punct": "!/:@[`{~", "space": "\t\r  ", "upper": "AZ",
    "word": "09AZaz__", "xdigit": "09AFaf",
}  # fmt: skip
_UNICODE = {
    "alnum": ["Alphabetic", "Nd"], "alpha": ["Alphabetic"], "cntrl": ["Cc"], "digit": ["Nd"], "graph": ["graph"],
    "lower": ["Lowercase"], "print": ["graph", "Zs"], "punct": ["P", "S"], "space": ["White_Space"],
    "upper": ["Uppercase"], "word": ["onig word in brackets"],
}  # fmt: skip
_ASCII_ONLY_IN_ONIG = ("ascii", "xdigit")


def negation(of: CharacterSet) -> CharacterSet:
    """Return the set of all characters that are not in a set."""
    return Union((of,), negated=True)


def folded_if_asked(scanner: Scanner, of: CharacterSet) -> CharacterSet:
    """Return a set, with all characters that differ from its own only by case if the flag i is in force."""
    return Folded(of) if scanner.flags.ignores_case else of


def read_escape(scanner: Scanner, *, in_brackets: bool = False) -> int | CharacterSet:
    """Read an escape after its backslash; return a code point, or the set that the escape stands for."""
    if scanner.at_end():
        scanner.invalid("it ends in a backslash")
    letter = scanner.next()
    if letter in _CONTROLS:
        return _CONTROLS[letter]
    if letter in "xuU":
        return _hex_escape(scanner, letter)
    if letter in "pP":
        return _property_escape(scanner, letter, in_brackets)
    if letter.lower() in "dswh":
        named = {"d": Property("Nd"), "s": Property("White_Space"), "w": _word(scanner, in_brackets), "h": _HEX}
        return negation(named[letter.lower()]) if letter.isupper() else named[letter.lower()]
    if not letter.isascii() or letter.isalnum() or letter < " " or letter == "\x7f" or letter in "<>":
        scanner.refuse(f"the escape {_escaped(letter)}")
    return ord(letter)


def _word(scanner: Scanner, in_brackets: bool) -> CharacterSet:
    if scanner.dialect.is_onig and in_brackets:
        return Property("onig word in brackets")
    return Property(scanner.dialect.word)


def _escaped(letter: str) -> str:
    return "\\" + (letter if letter.isprintable() else repr(letter)[1:-1])


def _hex_escape(scanner: Scanner, letter: str) -> int:
    digits = scanner.dialect.hex_digits
    form = r"\{([0-9A-Fa-f]{1,8})\}"
    if letter != "x" and scanner.dialect.is_onig:
        form = r"(?!)"
    match = re.compile(form).match(scanner.text, scanner.position)
    if match is None and letter in digits:
        match = re.compile(f"([0-9A-Fa-f]{{{digits[letter]}}})").match(scanner.text, scanner.position)
        if match is not None and scanner.dialect.is_onig and letter == "x" and int(match[1], 16) > 0x7F:
            scanner.refuse(f"the escape \\x{match[1]}", f"write \\x{{{match[1]}}}")
    if match is None:
        scanner.refuse(f"the escape \\{letter} without the digits of a code point", r"write \x{...}")
    scanner.position = match.end()
    return checked_code_point(scanner, int(match[1], 16))


def checked_code_point(scanner: Scanner, code: int) -> int:
    """Return a code point. Raises ConfigError if it is a surrogate or out of range."""
    if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
        scanner.invalid(f"U+{code:04X} is not a character")
    return code


def _property_escape(scanner: Scanner, letter: str, in_brackets: bool) -> int | CharacterSet:
    negated = letter == "P"
    if scanner.take("{"):
        close = scanner.text.find("}", scanner.position)
        name = scanner.text[scanner.position : close if close >= 0 else None]
        scanner.position = close + 1
    elif scanner.dialect.is_onig:
        return ord(letter)  # no property without braces: the letter itself
    else:
        name = scanner.next()
    inner = name.removeprefix("^")
    if not scanner.dialect.is_onig:
        inner = re.sub(r"^(?:gc|general_category|sc|script)=", "", inner, count=1, flags=re.IGNORECASE)
    negated ^= name != inner and name.startswith("^")
    key = property_named(inner)
    found = _word(scanner, in_brackets) if inner.lower() == "word" else Property(key) if key else None
    if found is None or re.search(r"[^A-Za-z_ -]", inner):
        scanner.refuse(f"the property \\{letter}{{{name[:40]}}}", "name a general category, such as L, or a script")
    if not scanner.dialect.is_onig:
        found = folded_if_asked(scanner, found)
    return negation(found) if negated else found


def _posix_set(scanner: Scanner, name: str) -> CharacterSet:
    if scanner.dialect.is_onig and name == "blank":
        return Union((Range(9, 9), Property("Zs")))
    if scanner.dialect.is_onig and name in _UNICODE:
        return Union(tuple(map(Property, _UNICODE[name])))
    ends = list(map(ord, _ASCII[name]))
    return Union(tuple(Range(first, last) for first, last in zip(ends[::2], ends[1::2], strict=True)))


# --- In brackets -----------------------------------------------------------------------------------------


def read_set(scanner: Scanner) -> CharacterSet:
    """Read a set after its opening bracket, including the closing one."""
    of = _read_nested(scanner)
    if not scanner.flags.ignores_case or not scanner.dialect.is_onig:
        return of
    _check_foldable(scanner, of)
    if isinstance(of, Union) and of.negated:
        return negation(Folded(Union(of.items)))
    return Folded(of)


def _check_foldable(scanner: Scanner, of: CharacterSet) -> None:
    """Refuse sets for which Oniguruma departs from simple case folding: nested sets, and those with sharp s."""
    if not isinstance(of, Union) or any(isinstance(item, Union | Operation) and item != _HEX for item in of.items):
        scanner.refuse("a set within a set under the flag i", "spell its characters out")
    if not of.negated:
        foldings = "".join(long_foldings())
        folding = engine().compile(to_python(Character(Folded(of))), engine().VERSION1).findall(foldings)
        if folding:
            scanner.refuse(
                f"a set with {folding[0]!r}, equal to several characters but for case, under the flag i",
                "leave it out of the set, or the flag",
            )


def _read_nested(scanner: Scanner, level: int = 0, *, is_in_negated: bool = False) -> CharacterSet:
    scanner.depth += 1
    if scanner.depth > 50:
        scanner.refuse("sets or groups nested more than 50 deep")
    negated = scanner.take("^")
    if scanner.dialect.is_onig:  # Oniguruma loses characters of these sets
        if level > 1:
            scanner.refuse("a set within a set within a set")
        if negated and is_in_negated:
            scanner.refuse("a negated set within a negated set")
    of = _read_items(scanner, level, negated, is_first=True)
    while not scanner.take("]"):
        operator = next((sign for sign in scanner.dialect.set_operators if scanner.take(sign)), None)
        if operator is None:
            scanner.invalid("it has a set without the closing bracket")
        if scanner.peek() in ("-", "^", "]") or scanner.starts(operator[0]):
            scanner.refuse(f"{operator + scanner.peek()!r} in a set", "escape what is meant literally")
        of = Operation(operator, of, _read_items(scanner, level, negated, is_first=False))
    scanner.depth -= 1
    if negated:
        return Union(of.items, negated=True) if isinstance(of, Union) and not of.negated else negation(of)
    return of


def _read_items(scanner: Scanner, level: int, negated: bool, is_first: bool) -> CharacterSet:
    """Read the items up to an operator or the closing bracket."""
    items: list[CharacterSet] = []
    while not scanner.at_end():
        if any(map(scanner.starts, scanner.dialect.set_operators)):
            if not items:
                scanner.refuse("an operator without a set before it", "escape what is meant literally")
            break
        if scanner.starts("]") and (items or not is_first):
            break
        items.append(_read_item(scanner, level, negated, is_first=is_first and not items))
    read = Union(tuple(items))
    return read if scanner.dialect.is_onig else folded_if_asked(scanner, read)  # fancy-regex folds, then negates


def _read_item(scanner: Scanner, level: int, negated: bool, is_first: bool) -> CharacterSet:
    if scanner.starts("["):
        return _read_bracket(scanner, level, negated)
    if scanner.starts("-") and not is_first and scanner.peek(1) != "]":
        scanner.refuse("an unescaped hyphen within a set", r"write \-")
    first = _read_set_atom(scanner)
    if not scanner.starts("-") or scanner.peek(1) in ("]", "") or scanner.starts("--"):
        if scanner.starts("--") and scanner.dialect.is_onig:
            scanner.refuse("'--' in a set", r"write \-")
        return first if not isinstance(first, int) else Range(first, first)
    scanner.position += 1
    if scanner.peek() in ("[", "-") or scanner.starts("&&") or scanner.starts("~~"):
        scanner.refuse(f"a range that ends in a bare {scanner.peek()!r}", "escape it")
    last = _read_set_atom(scanner)
    if not isinstance(first, int) or not isinstance(last, int) or last < first:
        scanner.invalid("it has a range whose end is not a character, or is before its start")
    return Range(first, last)


def _read_bracket(scanner: Scanner, level: int, negated: bool) -> CharacterSet:
    match = re.compile(r"\[:(\^?)([a-z]+):\]").match(scanner.text, scanner.position)
    if match is not None and match[2] in _ASCII:
        scanner.position = match.end()
        posix = _posix_set(scanner, match[2])
        if not scanner.dialect.is_onig:
            posix = folded_if_asked(scanner, posix)
        return negation(posix) if match[1] else posix
    if scanner.starts("[:"):
        scanner.refuse("'[:' that does not begin a POSIX class", r"write \[ or \:")
    scanner.position += 1
    return _read_nested(scanner, level + 1, is_in_negated=negated)


def _read_set_atom(scanner: Scanner) -> int | CharacterSet:
    if scanner.take("\\"):
        return read_escape(scanner, in_brackets=True)
    return checked_code_point(scanner, ord(scanner.next()))
