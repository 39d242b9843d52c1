"""The properties of characters that patterns may name, and case folding, as in Oniguruma and fancy-regex.

Both engines use Unicode 16.0, while Python's `regex` may use a later version. `PROPERTIES` therefore corrects the few
characters whose class has changed since, and `writer` excludes the characters that were assigned later.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from types import MappingProxyType

from fastcompress._core import pretokenizer as _core
from fastcompress.bpe.regex.engine import engine

_CATEGORIES = {
    "L": "letter", "Lu": "uppercaseletter", "Ll": "lowercaseletter", "Lt": "titlecaseletter", "Lm": "modifierletter",
    "Lo": "otherletter", "M": "mark", "Mn": "nonspacingmark", "Mc": "spacingmark", "Me": "enclosingmark",
    "N": "number", "Nd": "decimalnumber", "Nl": "letternumber", "No": "othernumber", "P": "punctuation",
    "Pc": "connectorpunctuation", "Pd": "dashpunctuation", "Ps": "openpunctuation", "Pe": "closepunctuation",
    "Pi": "initialpunctuation", "Pf": "finalpunctuation", "Po": "otherpunctuation", "S": "symbol", "Sm": "mathsymbol",
    "Sc": "currencysymbol", "Sk": "modifiersymbol", "So": "othersymbol", "Z": "separator", "Zs": "spaceseparator",
    "Zl": "lineseparator", "Zp": "paragraphseparator", "C": "other", "Cc": "control", "Cf": "format",
    "Cn": "unassigned", "Co": "privateuse",
}  # fmt: skip
_SCRIPTS = [
    "Adlam", "Arabic", "Armenian", "Balinese", "Bengali", "Bopomofo", "Braille", "Buginese", "Canadian_Aboriginal",
    "Cherokee", "Common", "Coptic", "Cyrillic", "Devanagari", "Ethiopic", "Georgian", "Gothic", "Greek", "Gujarati",
    "Gurmukhi", "Han", "Hangul", "Hebrew", "Hiragana", "Inherited", "Javanese", "Kannada", "Katakana", "Khmer",
    "Lao", "Latin", "Limbu", "Malayalam", "Meetei_Mayek", "Mongolian", "Myanmar", "New_Tai_Lue", "Nko", "Ogham",
    "Ol_Chiki", "Oriya", "Runic", "Samaritan", "Sinhala", "Sundanese", "Syriac", "Tai_Le", "Tai_Tham", "Tai_Viet",
    "Tamil", "Telugu", "Thaana", "Thai", "Tibetan", "Tifinagh", "Vai", "Yi",
]  # fmt: skip
_BINARY = ("Alphabetic", "White_Space", "Uppercase", "Lowercase")

_WORD = r"\p{Alphabetic}\p{M}\p{Nd}\p{Pc}"
PROPERTIES = MappingProxyType(
    {name: rf"\p{{{name}}}" for name in (*_CATEGORIES, *_BINARY)}
    | {name: rf"\p{{Script={name}}}" for name in _SCRIPTS}
    # U+0295 is a lower-case letter in Unicode 16 and another letter since 17.
    | {"Ll": r"\p{Ll}\u0295", "Lo": r"[\p{Lo}--\u0295]", "Lowercase": r"\p{Lowercase}\u0295"}
    | {
        "any": r"\x00-\U0010ffff",
        "graph": r"[^\p{White_Space}\p{Cc}\p{Cn}]",
        "word": _WORD + r"\u200c\u200d",
        # Oniguruma's \w has no joiners, and outside brackets the superscripts and fractions of Latin-1.
        "onig word": _WORD + r"\xb2\xb3\xb9\xbc-\xbe",
        "onig word in brackets": _WORD,
    }
)
"""The items of a set of `regex` that has each property."""

OF_UNASSIGNED = frozenset({"C", "Cn", "any"})
"""The properties of unassigned characters."""


def _by_name() -> dict[str, str]:
    names = {_normalized(name): name for name in (*_CATEGORIES, *_SCRIPTS, *_BINARY)}
    names |= {long: short for short, long in _CATEGORIES.items()}
    return names | {"any": "any", "punct": "P", "alpha": "Alphabetic", "space": "White_Space", "upper": "Uppercase"} | {
        "lower": "Lowercase", "digit": "Nd", "cntrl": "Cc"
    }  # fmt: skip


def _normalized(name: str) -> str:
    return name.lower().replace(" ", "").replace("_", "").replace("-", "")


def property_named(name: str) -> str | None:
    """Return the key in `PROPERTIES` of a property, given any name that both dialects have for it, or None."""
    return _NAMES.get(_normalized(name))


_NAMES = _by_name()


@functools.cache
def newer_ranges() -> str:
    """Return the characters that `regex` knows but our version of Unicode does not, as items of a set of `regex`."""
    ends = [-1, *(last for _, last in _core.ASSIGNED)]
    begins = [*(first for first, _ in _core.ASSIGNED), 0x110000]
    gaps = [(end + 1, begin - 1) for end, begin in zip(ends, begins, strict=True) if end + 1 < begin]
    unassigned = "".join(chr(code) for first, last in gaps for code in range(first, last + 1))
    newer = engine().compile(r"\P{Cn}").findall(unassigned)
    return items_of(map(ord, newer))


def items_of(code_points: Iterable[int]) -> str:
    """Return code points as the items of a set of `regex`: ranges, each end escaped."""
    ranges: list[list[int]] = []
    for code in sorted(code_points):
        if ranges and ranges[-1][1] == code - 1:
            ranges[-1][1] = code
        else:
            ranges.append([code, code])
    return "".join(rf"\U{first:08x}" + (rf"-\U{last:08x}" if last > first else "") for first, last in ranges)


# --- Case ------------------------------------------------------------------------------------------------


@functools.cache
def cased() -> str:
    """Return every character of our Unicode version that differs from another by case."""
    outside = rf"--[{newer_ranges()}]" if newer_ranges() else ""
    every = "".join(chr(code) for first, last in _core.ASSIGNED for code in range(first, last + 1))
    found: list[str] = engine().compile(rf"(?V1)[[\p{{CWCM}}\p{{CWCF}}]{outside}]").findall(every)
    return "".join(found)


@functools.cache
def variants_of(character: str) -> frozenset[str]:
    """Return a character and those that differ from it only by case: simple case folding, without Turkish rules."""
    if character in "\u0130\u0131":  # dotted and dotless i, which `regex` would take for i
        return frozenset(character)
    if character in "iI":
        return frozenset("iI")
    found = engine().compile(engine().escape(character), engine().IGNORECASE).findall(cased())
    return frozenset({character, *found})


def case_variants(characters: Iterable[str]) -> set[str]:
    """Return the union of `variants_of` over the characters."""
    return {variant for character in characters for variant in variants_of(character)}


@functools.cache
def long_foldings() -> dict[str, str]:
    """Return the folding of each character that folds to several, such as sharp s to ``ss``."""
    every = map(chr, range(0x20000))  # there are none above
    return {character: folded for character in every if len(folded := character.casefold()) > 1}
