"""The matches of a pattern in a text, as the engine that it was written for would find them."""

from __future__ import annotations

import functools
import time
from collections.abc import Iterator
from typing import Any

from fastcompress.bpe.regex.engine import engine
from fastcompress.bpe.regex.properties import newer_ranges
from fastcompress.bpe.regex.syntax import Node, may_take_long, widths
from fastcompress.bpe.regex.writer import to_python
from fastcompress.errors import ConfigError, DataError

# The time limit for a text under a pattern such as (a|aa)+$, which can take exponential time. Other patterns run
# without a limit, because it would make them three times slower.
_SECONDS_PER_TEXT = 10.0
_SECONDS_PER_CHARACTER = 1e-4


class Matcher:
    """A compiled pattern, which finds its matches in texts. Immutable; safe to share between threads.

    >>> from fastcompress.bpe.regex.parser import parse
    >>> from fastcompress.bpe.regex.scanner import FANCY
    >>> list(Matcher(parse("[a-z]+", FANCY)).spans("one two", has_newer=False))
    [(0, 3), (4, 7)]
    """

    def __init__(self, tree: Node) -> None:
        """Compile a tree that `parse` returned. Raises ConfigError if it is too large for the `regex` package."""
        self._tree = tree
        self._can_be_empty = widths(tree)[0] == 0
        self._may_take_long = may_take_long(tree)
        self._compiled = _compiled(to_python(tree))

    @functools.cached_property
    def _without_newer(self) -> Any:
        return _compiled(to_python(self._tree, excludes_newer=True))

    def spans(self, text: str, *, has_newer: bool) -> Iterator[tuple[int, int]]:
        """Yield the matches in order, each as [begin, end).

        By the rule of both engines, and unlike in Python, an empty match directly after another match does not count,
        and the search continues at the next character.

        Args:
            text: The text.
            has_newer: Whether the text has characters that are newer than our Unicode version; the result of
                `has_newer_characters`.

        Raises:
            DataError: The pattern can match a text in very many ways, and takes more than 10 s plus 0.1 ms per
                character on this one.
        """
        compiled = self._without_newer if has_newer else self._compiled
        limit = _SECONDS_PER_TEXT + _SECONDS_PER_CHARACTER * len(text) if self._may_take_long else None
        try:
            if not self._can_be_empty:
                for match in compiled.finditer(text, timeout=limit):
                    yield match.span()
                return
            yield from _spans_with_empty_ones(compiled, text, limit)
        except TimeoutError:
            raise DataError(
                f"a pattern took more than {limit:.0f} s on a text of {len(text)} characters; "
                "rewrite it so that a text matches in few ways, or give shorter texts"
            ) from None


def _spans_with_empty_ones(compiled: Any, text: str, limit: float | None) -> Iterator[tuple[int, int]]:
    position, last_end = 0, -1
    end_time = None if limit is None else time.monotonic() + limit
    while position <= len(text):
        match = compiled.search(text, position, timeout=end_time and max(end_time - time.monotonic(), 1e-3))
        if match is None:
            return
        begin, end = match.span()
        if begin == end == last_end:
            position += 1
            continue
        yield begin, end
        position = last_end = end


def _compiled(regex: str) -> Any:
    package = engine()
    try:
        return package.compile(regex, package.VERSION1)
    except (package.error, ValueError, OverflowError, RecursionError, MemoryError) as error:
        raise ConfigError(f"pattern is too large or too deep for the regex package ({error}); simplify it") from None


def has_newer_characters(text: str) -> bool:
    """Return whether a text has characters that `regex` knows but that our Unicode version does not have yet."""
    return not text.isascii() and _newer_characters() is not None and bool(_newer_characters().search(text))


@functools.cache
def _newer_characters() -> Any:
    return engine().compile(f"[{newer_ranges()}]", engine().VERSION1) if newer_ranges() else None
