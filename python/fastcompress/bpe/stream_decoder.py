"""Decoding token by token, as a model writes them."""

from __future__ import annotations

import codecs
from typing import Protocol


class TokenDecoder(Protocol):
    """The part of a tokenizer that a StreamDecoder needs."""

    def token_bytes(self, token_id: int) -> bytes:
        """Return the bytes of an id."""
        ...


class StreamDecoder:
    """Decodes ids as they come. ``"".join(push(id) for id in ids) + finish()`` equals ``decode(ids)``.

    Bytes that may still become a character are held back (at most three), so no output ends in half a character.

    >>> from fastcompress import BPE
    >>> stream = BPE.train("", vocab_size=256).decode_stream()
    >>> [stream.push(byte) for byte in "né".encode()], stream.finish()
    (['n', '', 'é'], '')
    """

    def __init__(self, tokenizer: TokenDecoder, errors: str = "replace") -> None:
        """Begin a stream.

        Args:
            tokenizer: What decodes single ids, such as a `BPE`.
            errors: The treatment of bytes that are not UTF-8, as for ``bytes.decode``.

        Raises:
            LookupError: ``errors`` is not the name of an error handler.
        """
        codecs.lookup_error(errors)
        self._tokenizer = tokenizer
        self._errors = errors
        self._utf8 = codecs.getincrementaldecoder("utf-8")(errors)

    def push(self, token_id: int) -> str:
        """Return the text that the next id completes: often one token's, empty while a character is incomplete.

        With ``errors="strict"``, bytes that are not UTF-8 raise UnicodeDecodeError once: the bytes held back and those
        of this id are dropped (they are the error's ``object``), and the stream goes on with the next id. An id that
        is not in the vocabulary raises UnknownTokenError and changes nothing.
        """
        data = self._tokenizer.token_bytes(token_id)
        try:
            return self._utf8.decode(data)
        except UnicodeError:
            self._utf8.reset()
            raise

    def finish(self) -> str:
        """Return what was held back, treated as invalid; afterwards the decoder can be used anew."""
        try:
            return self._utf8.decode(b"", final=True)
        finally:
            self._utf8.reset()

    def __repr__(self) -> str:
        held, _ = self._utf8.getstate()
        return f"<StreamDecoder errors={self._errors!r} held={held!r}>"
