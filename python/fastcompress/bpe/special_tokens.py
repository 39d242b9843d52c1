"""The added tokens of a vocabulary, and the rules of a call about special ones: which are allowed, which refused."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple, NoReturn, TypeAlias

from fastcompress._core import bpe as _core
from fastcompress.bpe.arguments import Text, as_special_set
from fastcompress.errors import DataError
from fastcompress.formats.tokenizer_json import AddedToken
from fastcompress.pretokenizer import utf8

Specials: TypeAlias = "Iterable[str] | Literal['all']"

# The core's flags of an added token; added_tokens.h explains them.
FLAGS = {"special": 1, "normalized": 2, "lstrip": 4, "rstrip": 8, "single_word": 16}
SHARES_ID = 32
NEVER_MATCHED = 64


class SpecialRules(NamedTuple):
    """The rules of one call for special tokens. A mask has one byte per added token, or is empty if none is meant."""

    allowed: bytes
    """Mask of the special tokens that become their ids."""
    refused: bytes
    """Mask of the special tokens that no text may contain."""
    refused_others: frozenset[str] = frozenset()
    """Strings that no text may contain and that are not special tokens of the vocabulary."""


class SpecialTokens:
    """The added tokens of a vocabulary.

    Attributes:
        ids: The id of each special token.
        texts: The texts of the special tokens.
        added: All tokens that are searched for in a text, special or not.
    """

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
        self._default = SpecialRules(b"", self._all)

    @property
    def any_loses_text(self) -> bool:
        """True if decoding a token that is always searched for may not give back the text that it replaced."""
        return any(
            flags & (FLAGS["lstrip"] | FLAGS["rstrip"]) or self._core.token_bytes(token_id) != text.encode("utf-8")
            for text, token_id, flags in self._rows
            if not flags & (FLAGS["special"] | NEVER_MATCHED)
        )

    def rules(self, allowed: Specials, disallowed: Specials) -> SpecialRules:
        """Return the rules that ``allowed_special`` and ``disallowed_special`` state, reading an iterable once.

        Raises TypeError if one is neither "all" nor an iterable of str.
        """
        if type(allowed) is tuple and not allowed and type(disallowed) is str and disallowed == "all":
            return self._default  # the usual call, without a look at every special token
        allowed_texts = as_special_set(allowed, "allowed_special")
        refused_texts = as_special_set(disallowed, "disallowed_special")
        allowed_mask = self._all if allowed_texts is None else self._mask(allowed_texts & self.texts)
        if refused_texts is None:
            refused = frozenset() if allowed_texts is None else self.texts - allowed_texts
            return SpecialRules(allowed_mask, self._mask(refused))
        return SpecialRules(allowed_mask, self._mask(refused_texts & self.texts), refused_texts - self.texts)

    def refuse(self, text: Text, rules: SpecialRules) -> None:
        """Raise DataError if a text holds a token that the rules refuse."""
        found: list[tuple[int, str]] = []
        if rules.refused and (occurrence := self._core.find_special(text, rules.refused)):
            found.append(occurrence)
        if rules.refused_others and (match := _pattern_of(rules.refused_others).search(_raw_utf8(text))):
            found.append((match.start(), match.group().decode("utf-8", "surrogatepass")))
        if found:
            self._raise(text, *min(found))

    def refuse_any(self, texts: Sequence[Text], rules: SpecialRules, num_threads: int | None) -> None:
        """Raise DataError for the first of several texts that holds a token that the rules refuse."""
        if rules.refused_others:
            for text in texts:
                self.refuse(text, rules)
        elif rules.refused:
            number = self._core.find_text_with_special(texts, rules.refused, num_threads)
            if number is not None:
                self.refuse(texts[number], rules)

    @staticmethod
    def _raise(text: Text, offset: int, token: str) -> NoReturn:
        if isinstance(text, str):
            offset = len(utf8(text)[:offset].decode("utf-8", "ignore"))
        raise DataError(
            f"the text holds the special token {token!r} at offset {offset}; pass it in allowed_special to encode it "
            "as that token, or disallowed_special=() for ordinary text"
        )

    def _make_mask(self, texts: frozenset[str]) -> bytes:
        """Return a byte for each added token, 1 for those given; empty if none are."""
        if not texts:
            return b""
        return bytes(bool(flags & FLAGS["special"]) and text in texts for text, _, flags in self._rows)


def _raw_utf8(text: Text) -> bytes:
    """Return the bytes of a text with its surrogates, which tiktoken searches for disallowed texts."""
    return text.encode("utf-8", "surrogatepass") if isinstance(text, str) else bytes(text)


@functools.lru_cache(maxsize=64)
def _pattern_of(texts: frozenset[str]) -> re.Pattern[Any]:
    """Return a pattern that matches any of the texts, the longest where several begin at one place."""
    return re.compile(b"|".join(re.escape(_raw_utf8(text)) for text in sorted(texts, key=lambda t: (-len(t), t))))
