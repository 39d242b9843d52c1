"""Added tokens of a vocabulary: which special ones a call allows, and which it refuses to meet."""

from __future__ import annotations

import functools
import re
from collections.abc import Collection
from typing import Any, Literal, NoReturn, TypeAlias

from fastcompress._core import bpe as _core
from fastcompress.bpe.arguments import Text, check_texts
from fastcompress.errors import DataError
from fastcompress.formats.tokenizer_json import AddedToken
from fastcompress.pretokenizer import utf8

Specials: TypeAlias = "Collection[str] | Literal['all']"

# The core's flags of an added token; added_tokens.h says what they mean.
FLAGS = {"special": 1, "normalized": 2, "lstrip": 4, "rstrip": 8, "single_word": 16}
SHARES_ID = 32
NEVER_MATCHED = 64


class SpecialTokens:
    """The added tokens of a vocabulary: special ones, text to id in `ids`, and all that can be met in a text."""

    def __init__(self, core: _core.Tokenizer) -> None:
        self._core = core
        self._rows = core.added_tokens()
        self.ids = {text: token_id for text, token_id, flags in self._rows if flags & FLAGS["special"]}
        self.texts = frozenset(self.ids)
        self.added = [
            AddedToken(text, token_id, **{name: bool(flags & bit) for name, bit in FLAGS.items()})
            for text, token_id, flags in self._rows
            if not flags & NEVER_MATCHED
        ]
        self._mask = functools.lru_cache(maxsize=64)(self._make_mask)
        self._all = self._make_mask(self.texts)

    @property
    def any_loses_text(self) -> bool:
        """Decoding a token that is always sought gives other text than it stood for."""
        return any(
            flags & (FLAGS["lstrip"] | FLAGS["rstrip"]) or self._core.token_bytes(token_id) != text.encode("utf-8")
            for text, token_id, flags in self._rows
            if not flags & (FLAGS["special"] | NEVER_MATCHED)
        )

    def check(self, text: Text, allowed: Specials, disallowed: Specials) -> bytes:
        """The allowed special tokens, as the core takes them, after refusing a text that holds a disallowed one."""
        if not isinstance(text, str | bytes | bytearray | memoryview):
            raise TypeError(f"expected str or bytes, not {type(text).__name__}")
        if allowed != "all":
            check_texts(allowed, "allowed_special")
        if disallowed != "all":
            check_texts(disallowed, "disallowed_special")
        if disallowed == "all" and not allowed:  # what most calls say, without a look at every special token
            if occurrence := self._all and self._core.find_special(text, self._all):
                self._raise(text, *occurrence)
            return b""
        allowed_mask = self._all if allowed == "all" else self._mask(frozenset(allowed) & self.texts)
        if disallowed != "all":
            self._refuse(text, frozenset(disallowed))
        elif allowed != "all":
            self._refuse(text, self.texts - frozenset(allowed))
        return allowed_mask

    def _refuse(self, text: Text, disallowed: frozenset[str]) -> None:
        found: list[tuple[int, str]] = []
        if ours := disallowed & self.texts:
            occurrence = self._core.find_special(text, self._mask(ours))
            found += [occurrence] if occurrence else []
        if (others := disallowed - self.texts) and (match := _pattern_of(others).search(utf8(text))):
            found.append((match.start(), match.group().decode("utf-8")))
        if found:
            self._raise(text, *min(found))

    @staticmethod
    def _raise(text: Text, offset: int, token: str) -> NoReturn:
        if isinstance(text, str):
            offset = len(utf8(text)[:offset].decode("utf-8", "ignore"))
        raise DataError(
            f"the text holds the special token {token!r} at offset {offset}: pass it in allowed_special to encode it "
            "as that token, or disallowed_special=() for ordinary text"
        )

    def _make_mask(self, texts: frozenset[str]) -> bytes:
        """A byte for each added token, 1 for those given; empty if none are."""
        if not texts:
            return b""
        return bytes(bool(flags & FLAGS["special"]) and text in texts for text, _, flags in self._rows)


@functools.lru_cache(maxsize=64)
def _pattern_of(texts: frozenset[str]) -> re.Pattern[Any]:
    """Matches any of the texts, the longest first where several begin at one place."""
    return re.compile(b"|".join(re.escape(text.encode("utf-8")) for text in sorted(texts, key=lambda t: (-len(t), t))))
