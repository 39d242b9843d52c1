"""The nodes of regular expressions as trees, which `parser` makes and `writer` writes in the syntax of an engine.

A node says exactly what matches, so there are no flags, captures or abbreviations such as ``\\b``. For example,
``(?i)`` becomes sets with all variants by case, and ``^`` with ``(?m)`` becomes an alternative of the start of the text
and a lookbehind.
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
    """The characters with a property, a key of `properties.PROPERTIES`."""

    name: str


@dataclass(frozen=True)
class Union:
    """The characters that are in at least one of the items, or if `negated` in none of them."""

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
    """The characters of a set, and all that differ from one of them only by case (simple case folding)."""

    inner: CharacterSet


CharacterSet: TypeAlias = "Range | Property | Union | Operation | Folded"

# --- Expressions -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Character:
    """One character of a set."""

    of: CharacterSet


@dataclass(frozen=True)
class Edge:
    """The start or the end of the text, without regard to lines."""

    at: Literal["start", "end"]


@dataclass(frozen=True)
class Sequence:
    """The parts, one after the other."""

    parts: tuple[Node, ...]


@dataclass(frozen=True)
class Alternatives:
    """The first branch with which the whole expression matches."""

    branches: tuple[Node, ...]


@dataclass(frozen=True)
class Group:
    """An atomic group (``>``), or a lookaround: ``=``, ``!``, ``<=``, ``<!``."""

    kind: Literal[">", "=", "!", "<=", "<!"]
    body: Node


@dataclass(frozen=True)
class Repeat:
    """`least` to `most` repetitions of the body (None for no limit), as many as possible first, or if `lazy` as few.

    A possessive repetition is an atomic Group around it.
    """

    body: Node
    least: int
    most: int | None
    lazy: bool = False


Node: TypeAlias = "Character | Edge | Sequence | Alternatives | Group | Repeat"


def concatenated(parts: list[Node]) -> Node:
    """Return the sequence of the parts, flattened; a single part is returned itself."""
    flat = [inner for part in parts for inner in (part.parts if isinstance(part, Sequence) else (part,))]
    return flat[0] if len(flat) == 1 else Sequence(tuple(flat))


def widths(node: Node) -> tuple[int, int | None]:
    """Return the smallest and the largest number of characters that a node matches; None for no limit."""
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
    """Return whether backtracking over the ways in which a node matches a text may take more than quadratic time.

    This requires a repeated choice, as in ``(?:a|aa)*`` and ``(?:a+)*``, or three unlimited repetitions in a sequence.
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
    """Return whether a node contains a lookaround or an Edge."""
    if isinstance(node, Group):
        return node.kind != ">" or has_lookaround(node.body)
    if isinstance(node, Repeat):
        return has_lookaround(node.body)
    if isinstance(node, Sequence | Alternatives):
        return any(map(has_lookaround, node.parts if isinstance(node, Sequence) else node.branches))
    return isinstance(node, Edge)
