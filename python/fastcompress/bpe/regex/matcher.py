"""The matches of a pattern in a text, one after the other, as the engine that it was written for finds them."""

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

# The time that a text may take with a pattern such as (a|aa)+$, for which it is exponential in the text's length. Other
# patterns run without a limit, which would make them three times slower.
_SECONDS_PER_TEXT = 10.0
_SECONDS_PER_CHARACTER = 1e-4


class Matcher:
    """A pattern ready to be looked for in texts."""

    def __init__(self, tree: Node) -> None:
        self._tree = tree
        self._can_be_empty = widths(tree)[0] == 0
        self._may_take_long = may_take_long(tree)
        self._compiled = _compiled(to_python(tree))

    @functools.cached_property
    def _without_newer(self) -> Any:
        return _compiled(to_python(self._tree, excludes_newer=True))

    def spans(self, text: str, *, has_newer: bool) -> Iterator[tuple[int, int]]:
        """Find the matches, [begin, end) each, in order.

        An empty match right after a match is none, and the search goes on at the next character: the rule of both
        engines, and not that of Python.

        Args:
            text: the text.
            has_newer: the text has characters that are newer than our Unicode version (`has_newer_characters`).

        Raises:
            DataError: a pattern of which a text can match in many ways takes more than 10 s and 0.1 ms per character.
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
        raise ConfigError(f"a pattern is too large or too deep for the regex package: {error}") from None


def has_newer_characters(text: str) -> bool:
    """Return whether a text has characters that `regex` knows and our Unicode version does not yet."""
    return not text.isascii() and _newer_characters() is not None and bool(_newer_characters().search(text))


@functools.cache
def _newer_characters() -> Any:
    return engine().compile(f"[{newer_ranges()}]", engine().VERSION1) if newer_ranges() else None
