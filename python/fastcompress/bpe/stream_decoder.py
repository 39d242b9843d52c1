"""A decoder of ids that arrive one at a time, as a model generates them."""

from __future__ import annotations

import codecs
from collections.abc import Callable
from typing import Protocol


class TokenDecoder(Protocol):
    """The part of a tokenizer that a StreamDecoder uses."""

    def token_bytes(self, token_id: int) -> bytes:
        """Return the bytes of an id."""
        ...


class StreamDecoder:
    """A decoder of ids one at a time: ``"".join(push(id) for id in ids) + finish()`` equals ``decode(ids)``.

    At most three bytes, which may be the beginning of a character, are held back, so no output ends within a character.

    >>> from fastcompress import BPE
    >>> stream = BPE.train("", vocab_size=256).decode_stream()
    >>> [stream.push(byte) for byte in "né".encode()], stream.finish()
    (['n', '', 'é'], '')
    """

    def __init__(self, tokenizer: TokenDecoder, errors: str = "replace") -> None:
        """Start a stream.

        Args:
            tokenizer: The decoder of single ids, such as a `BPE`.
            errors: The treatment of bytes that are not UTF-8, as for ``bytes.decode``.

        Raises:
            LookupError: ``errors`` is not the name of an error handler.
        """
        codecs.lookup_error(errors)
        self._tokenizer = tokenizer
        self._errors = errors
        self._utf8 = codecs.getincrementaldecoder("utf-8")(errors)

    def push(self, token_id: int) -> str:
        """Return the text that the next id completes, which is empty while a character is incomplete.

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
        """Return the bytes held back, decoded as invalid ones; the decoder can then be used again."""
        try:
            return self._utf8.decode(b"", final=True)
        finally:
            self._utf8.reset()

    def __reduce__(self) -> tuple[Callable[..., StreamDecoder], tuple[object, ...]]:
        """Copy and pickle the stream with the bytes held back, so that both go on independently."""
        return _resumed, (self._tokenizer, self._errors, self._utf8.getstate())

    def __repr__(self) -> str:
        held, _ = self._utf8.getstate()
        return f"<StreamDecoder errors={self._errors!r} held={held!r}>"


def _resumed(tokenizer: TokenDecoder, errors: str, state: tuple[bytes, int]) -> StreamDecoder:
    stream = StreamDecoder(tokenizer, errors)
    stream._utf8.setstate(state)
    return stream
