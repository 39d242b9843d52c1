"""Special tokens in a text: which are allowed, which are refused, where they stand."""

from __future__ import annotations

import functools
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Literal, TypeAlias

from fastcompress.bpe.arguments import Text, check_texts
from fastcompress.errors import DataError
from fastcompress.pretokenizer import without_surrogates

Specials: TypeAlias = "Collection[str] | Literal['all']"


class SpecialTokens:
    """The special tokens of a vocabulary, text to id."""

    def __init__(self, ids: Mapping[str, int]) -> None:
        self.ids = dict(ids)
        self.texts = frozenset(ids)

    def check(self, text: Text, allowed: Specials, disallowed: Specials) -> frozenset[str]:
        """The allowed special tokens, after refusing a text that holds a disallowed one."""
        if not isinstance(text, str | bytes | bytearray | memoryview):
            raise TypeError(f"expected str or bytes, not {type(text).__name__}")
        known = self.texts
        if not known and disallowed in ("all", ()):
            return known
        if allowed != "all":
            check_texts(allowed, "allowed_special")
        if disallowed != "all":
            check_texts(disallowed, "disallowed_special")
        allowed_set = known if allowed == "all" else frozenset(allowed) & known
        disallowed_set = known - allowed_set if disallowed == "all" else frozenset(disallowed)
        if disallowed_set and (match := _special_pattern(disallowed_set, isinstance(text, str)).search(text)):
            raise DataError(
                f"the text holds the special token {match.group()!r} at offset {match.start()}: pass it in "
                "allowed_special to encode it as that token, or disallowed_special=() for ordinary text"
            )
        return allowed_set

    def cut(self, text: Text, allowed: frozenset[str]) -> Iterator[Text | int]:
        """Ordinary stretches of the text, and the ids of allowed special tokens between them.

        Where several allowed tokens begin at one place, the longest is taken.
        """
        if not allowed:
            yield text
            return
        if isinstance(text, str):
            text = without_surrogates(text)  # first, since a special token may spell what a surrogate becomes
        begin = 0
        for match in _special_pattern(allowed, isinstance(text, str)).finditer(text):
            if match.start() > begin:
                yield text[begin : match.start()]
            name = match.group()
            yield self.ids[name if isinstance(name, str) else name.decode("utf-8")]
            begin = match.end()
        if begin < len(text) or begin == 0:  # an empty text is one empty stretch
            yield text[begin:]


@functools.lru_cache(maxsize=64)
def _special_pattern(tokens: frozenset[str], is_str: bool) -> re.Pattern[Any]:
    """Matches any of the tokens, the longest first where several begin at one place."""
    alternatives = "|".join(re.escape(token) for token in sorted(tokens, key=lambda token: (-len(token), token)))
    return re.compile(alternatives if is_str else alternatives.encode("utf-8"))
