"""Decoding token by token, as a model writes them."""

from __future__ import annotations

import codecs
from typing import Protocol


class TokenSpeller(Protocol):
    """What a StreamDecoder needs of a tokenizer."""

    def token_bytes(self, token_id: int) -> bytes:
        """The bytes an id spells."""
        ...


class StreamDecoder:
    """Decodes ids as they come. ``"".join(push(id) for id in ids) + finish()`` equals ``decode(ids)``.

    Bytes that may still become a character are held back (at most three), so no output ends in half a character.
    """

    def __init__(self, tokenizer: TokenSpeller, errors: str = "replace") -> None:
        self._tokenizer = tokenizer
        self._utf8 = codecs.getincrementaldecoder("utf-8")(errors)

    def push(self, token_id: int) -> str:
        """The text that the next id completes: often one token's, empty while a character is incomplete."""
        return self._utf8.decode(self._tokenizer.token_bytes(token_id))

    def finish(self) -> str:
        """What was held back, treated as invalid; afterwards the decoder can be used anew."""
        try:
            return self._utf8.decode(b"", final=True)
        finally:
            self._utf8.reset()
