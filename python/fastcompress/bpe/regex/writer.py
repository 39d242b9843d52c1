"""The writer of trees as patterns for Python's `regex`, which runs them here, or for Oniguruma."""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from types import MappingProxyType

from fastcompress.bpe.regex.engine import engine
from fastcompress.bpe.regex.properties import OF_UNASSIGNED, PROPERTIES, case_variants, cased, items_of, newer_ranges
from fastcompress.bpe.regex.syntax import (
    Alternatives,
    Character,
    CharacterSet,
    Edge,
    Folded,
    Group,
    Node,
    Operation,
    Property,
    Range,
    Repeat,
    Sequence,
    Union,
)


def to_python(node: Node, *, excludes_newer: bool = False) -> str:
    """Return a tree as a pattern for `regex` with its flag VERSION1.

    Args:
        node: The tree.
        excludes_newer: Whether characters that were assigned after our version of Unicode have no properties. Slower,
            so it is meant for texts with such characters.
    """
    return _Python(excludes_newer).expression(node)


def to_onig(node: Node) -> str:
    """Return the tree of a fancy-regex pattern as a pattern for Oniguruma."""
    return _Onig().expression(node)


_NOT_NEWLINE = Union((Range(10, 10),), negated=True)


class _Writer(ABC):
    """The part of writing that is the same for all engines."""

    start, end = r"\A", r"\z"

    def expression(self, node: Node) -> str:
        """Return a node as an expression."""
        if isinstance(node, Alternatives):
            return "|".join(map(self.expression, node.branches))
        if isinstance(node, Sequence):
            return "".join(
                f"(?:{self.expression(part)})" if isinstance(part, Alternatives) else self.expression(part)
                for part in node.parts
            )
        if isinstance(node, Character):
            return self.character(node.of)
        if isinstance(node, Edge):
            return self.start if node.at == "start" else self.end
        if isinstance(node, Group):
            return f"(?{node.kind}{self.expression(node.body)})"
        body = self.expression(node.body)
        if not isinstance(node.body, Character):
            body = f"(?:{body})"
        return self.repeated(node, body)

    def repeated(self, node: Repeat, body: str) -> str:
        """Return a repetition of a body that is already written."""
        short = {(0, None): "*", (1, None): "+", (0, 1): "?"}.get((node.least, node.most))
        if node.least == node.most:
            return f"{body}{{{node.least}}}"
        most = "" if node.most is None else node.most
        return body + (short or f"{{{node.least},{most}}}") + ("?" if node.lazy else "")

    def character(self, of: CharacterSet) -> str:
        """Return a set as an expression for one character."""
        if isinstance(of, Range) and of.first == of.last:
            return self.code_point(of.first)
        if isinstance(of, Folded) and not _folding_adds(of.inner):
            return self.character(of.inner)
        items = self.items(of)
        return f"[{items}]" if isinstance(of, Range | Property) else items

    def items(self, of: CharacterSet) -> str:
        """Return a set as items of another set: several characters and ranges, or one set in brackets."""
        if isinstance(of, Range):
            return self.code_point(of.first) + (f"-{self.code_point(of.last)}" if of.last > of.first else "")
        if isinstance(of, Property):
            return self.property(of.name)
        if isinstance(of, Folded):
            return self.folded(of.inner)
        if isinstance(of, Union):
            return f"[{'^' if of.negated else ''}{''.join(map(self.items, of.items))}]"
        return self.operation(of)

    def folded(self, of: CharacterSet) -> str:
        """Return a set with all variants of its characters by case, as items of another set."""
        more = _folding_adds(of)
        return f"[{self.items(of)}{self.characters(more)}]" if more else self.items(of)

    @abstractmethod
    def code_point(self, code: int) -> str:
        """Return a character by its code point, as an expression or an item of a set."""

    @abstractmethod
    def characters(self, characters: frozenset[str]) -> str:
        """Return characters as items of a set."""

    @abstractmethod
    def property(self, name: str) -> str:
        """Return a property, a key of PROPERTIES, as items of a set."""

    @abstractmethod
    def operation(self, of: Operation) -> str:
        """Return an operation as a set in brackets."""


class _Python(_Writer):
    end = r"\Z"

    def __init__(self, excludes_newer: bool) -> None:
        self._excludes_newer = excludes_newer

    def code_point(self, code: int) -> str:
        character = chr(code)
        return character if character.isascii() and character.isalnum() else rf"\U{code:08x}"

    def characters(self, characters: frozenset[str]) -> str:
        return items_of(map(ord, characters))

    def property(self, name: str) -> str:
        items = PROPERTIES[name]
        if not self._excludes_newer or not newer_ranges() or name == "any":
            return items
        return f"[{items}{newer_ranges()}]" if name in OF_UNASSIGNED else f"[[{items}]--[{newer_ranges()}]]"

    def character(self, of: CharacterSet) -> str:
        return "." if of == _NOT_NEWLINE else super().character(of)

    def items(self, of: CharacterSet) -> str:
        ranges = _ranges(Union(of.items)) if isinstance(of, Union) and of.negated else None
        if ranges is not None:
            # `regex` mistakes [[^a][^b]], which is every character, for [^ab]; it handles these ranges correctly.
            return f"[{''.join(map(self.items, _complement(ranges)))}]"
        if isinstance(of, Union) and of.negated and any(map(_has_negation, of.items)):
            # `regex` takes [^\P{L}\p{L}], which is empty, for everything; a difference it gets right.
            return self.operation(Operation("--", Property("any"), Union(of.items)))
        return super().items(of)

    def operation(self, of: Operation) -> str:
        return f"[[{self.items(of.left)}]{of.operator}[{self.items(of.right)}]]"


def _ranges(of: CharacterSet) -> list[Range] | None:
    """Return the ranges of a set, or None if the set has properties, operations or negations."""
    if isinstance(of, Range):
        return [of]
    if isinstance(of, Folded):
        return None if _folding_adds(of.inner) else _ranges(of.inner)
    if not isinstance(of, Union) or of.negated:
        return None
    found = [_ranges(item) for item in of.items]
    return None if None in found else [part for ranges in found for part in ranges or ()]


def _complement(ranges: list[Range]) -> list[Range]:
    gaps, begin = [], 0
    for part in sorted(ranges, key=lambda part: part.first):
        if begin < part.first:
            gaps.append(Range(begin, part.first - 1))
        begin = max(begin, part.last + 1)
    return gaps + ([Range(begin, 0x10FFFF)] if begin <= 0x10FFFF else [])


def _has_negation(of: CharacterSet) -> bool:
    if isinstance(of, Union):
        return of.negated or any(map(_has_negation, of.items))
    if isinstance(of, Operation):
        return _has_negation(of.left) or _has_negation(of.right)
    return isinstance(of, Folded) and _has_negation(of.inner)


@functools.cache
def _folding_adds(of: CharacterSet) -> frozenset[str]:
    """Return the characters that are not in a set but differ only by case from one that is."""
    members = engine().compile(_Python(False).character(of), engine().VERSION1).findall(cased())
    return frozenset(case_variants(members) - set(members))


class _Onig(_Writer):
    _WORD = r"\p{Alphabetic}\p{M}\p{Nd}\p{Pc}"
    _OWN_NAMES = MappingProxyType({"any": r"\x{0}-\x{10ffff}", "word": _WORD + r"\x{200c}\x{200d}"})

    def code_point(self, code: int) -> str:
        character = chr(code)
        return character if character.isascii() and character.isalnum() else rf"\x{{{code:x}}}"

    def characters(self, characters: frozenset[str]) -> str:
        return "".join(map(self.code_point, sorted(map(ord, characters))))

    def property(self, name: str) -> str:
        return self._OWN_NAMES.get(name, rf"\p{{{name}}}")

    def operation(self, of: Operation) -> str:
        left, right = f"[{self.items(of.left)}]", f"[{self.items(of.right)}]"
        not_left, not_right = f"[^{self.items(of.left)}]", f"[^{self.items(of.right)}]"
        if of.operator == "&&":
            return f"[{left}&&{right}]"
        if of.operator == "--":
            return f"[{left}&&{not_right}]"
        return f"[[{left}&&{not_right}][{not_left}&&{right}]]"
