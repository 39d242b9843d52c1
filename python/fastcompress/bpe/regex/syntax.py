"""Regular expressions as trees: what every dialect is parsed into and written from.

`parser` reads a dialect into these nodes, and `writer` writes them in the syntax of an engine. A node says
exactly what matches, so flags, captures and abbreviations such as ``\\b`` are gone: ``(?i)`` has become sets that are
closed under case folding, and ``^`` under ``(?m)`` an alternative of the text's start and a lookbehind.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

# --- Sets of characters ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Range:
    """The code points from `first` to `last`, both included."""

    first: int
    last: int


@dataclass(frozen=True)
class Property:
    """The characters with a property; the names are the keys of `properties.PROPERTIES`."""

    name: str


@dataclass(frozen=True)
class Union:
    """The characters that are in one of the items, or with `negated` in none."""

    items: tuple[CharacterSet, ...]
    negated: bool = False


@dataclass(frozen=True)
class Operation:
    """An intersection (``&&``), a difference (``--``) or a symmetric difference (``~~``)."""

    operator: str
    left: CharacterSet
    right: CharacterSet


@dataclass(frozen=True)
class Folded:
    """The characters of a set, and all that differ from one of them by case alone (simple case folding)."""

    inner: CharacterSet


CharacterSet: TypeAlias = "Range | Property | Union | Operation | Folded"

# --- Expressions -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Character:
    """One character of a set."""

    of: CharacterSet


@dataclass(frozen=True)
class Edge:
    """The very start or the very end of the text."""

    at: Literal["start", "end"]


@dataclass(frozen=True)
class Sequence:
    """Its parts, one after the other."""

    parts: tuple[Node, ...]


@dataclass(frozen=True)
class Alternatives:
    """The first branch that lets the whole match."""

    branches: tuple[Node, ...]


@dataclass(frozen=True)
class Group:
    """An atomic group (``>``), or a lookaround: ``=``, ``!``, ``<=``, ``<!``."""

    kind: Literal[">", "=", "!", "<=", "<!"]
    body: Node


@dataclass(frozen=True)
class Repeat:
    """`least` to `most` copies of the body (None for no limit), many or few first; possessive is an atomic Group."""

    body: Node
    least: int
    most: int | None
    lazy: bool = False


Node: TypeAlias = "Character | Edge | Sequence | Alternatives | Group | Repeat"


def concatenated(parts: list[Node]) -> Node:
    """Return the sequence of the parts, with sequences among them laid out and a single part by itself."""
    flat = [inner for part in parts for inner in (part.parts if isinstance(part, Sequence) else (part,))]
    return flat[0] if len(flat) == 1 else Sequence(tuple(flat))


def widths(node: Node) -> tuple[int, int | None]:
    """Return the least and the largest number of characters that a node matches; None for no limit."""
    if isinstance(node, Character):
        return 1, 1
    if isinstance(node, Edge) or (isinstance(node, Group) and node.kind != ">"):
        return 0, 0
    if isinstance(node, Group):
        return widths(node.body)
    if isinstance(node, Repeat):
        least, most = widths(node.body)
        return least * node.least, 0 if most == 0 else None if most is None or node.most is None else most * node.most
    inner = [widths(child) for child in (node.parts if isinstance(node, Sequence) else node.branches)]
    combine = sum if isinstance(node, Sequence) else max
    limits = [most for _, most in inner if most is not None]
    least = sum(low for low, _ in inner) if isinstance(node, Sequence) else min(low for low, _ in inner)
    return least, combine(limits) if len(limits) == len(inner) else None


def may_take_long(node: Node) -> bool:
    """Return whether a text may match in so many ways that the time to try them all is more than quadratic.

    That needs a repeated choice, as in ``(?:a|aa)*`` and ``(?:a+)*``, or three repetitions in a row.
    """
    if isinstance(node, Repeat):
        return (node.most != 1 and _has_choice(node.body)) or may_take_long(node.body)
    if isinstance(node, Group):
        return may_take_long(node.body)
    if isinstance(node, Sequence):
        return sum(map(_is_endless, node.parts)) > 2 or any(map(may_take_long, node.parts))
    return isinstance(node, Alternatives) and any(map(may_take_long, node.branches))


def _has_choice(node: Node) -> bool:
    if isinstance(node, Sequence):
        return any(map(_has_choice, node.parts))
    return _has_choice(node.body) if isinstance(node, Group) else isinstance(node, Repeat | Alternatives)


def _is_endless(node: Node) -> bool:
    return widths(node)[1] is None and not (isinstance(node, Group) and node.kind == ">")


def has_lookaround(node: Node) -> bool:
    """Return whether a lookaround or an edge of the text stands anywhere in a node."""
    if isinstance(node, Group):
        return node.kind != ">" or has_lookaround(node.body)
    if isinstance(node, Repeat):
        return has_lookaround(node.body)
    if isinstance(node, Sequence | Alternatives):
        return any(map(has_lookaround, node.parts if isinstance(node, Sequence) else node.branches))
    return isinstance(node, Edge)
