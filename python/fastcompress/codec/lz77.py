"""LZ77 parses as codecs. cpp/fastcompress/lz77/FORMAT.md defines the ids."""

from __future__ import annotations

import hashlib
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from fastcompress._arguments import as_integer
from fastcompress._core import lz77 as _core
from fastcompress.codec.files import CodecKind, register_codec
from fastcompress.codec.protocol import Codec, CodecBase, Text, as_bytes, validate_ids
from fastcompress.errors import ConfigError, DataError, FormatError
from fastcompress.lz77 import LITERAL, LZTokens, Params, parse, reconstruct
from fastcompress.lz77.tokens import as_params

_NUM_BYTES = 256


class LZ77Codec(CodecBase):
    """An LZ77 parse as one stream of ids.

    With the alphabet "fields" a token is one id out of up to 2**32, for models that read `columns`. With "buckets"
    there are about 300 ids; a match takes several, and its bytes become decodable with the last of them.

    Not unambiguous: many token sequences decode to the same text. In a greedy parse exactly one consists of legal
    tokens (`lz77.IncrementalParser.is_legal`).

    >>> codec = LZ77Codec()
    >>> len(codec.encode("abcdabcdabcd")), codec.columns(codec.encode("abcdabcdabcd"))[4:]
    (5, LZTokens(kind=array([1], dtype=uint8), value=array([4], dtype=uint32), length=array([8], dtype=uint32)))
    """

    lossless = True
    unambiguous = False

    def __init__(self, params: Params | None = None, alphabet: Literal["fields", "buckets"] = "fields") -> None:
        """Make a codec of a parse.

        Args:
            params: Settings of the parse; None for the default ones.
            alphabet: "fields" or "buckets".

        Raises:
            ConfigError: The alphabet is neither; or it is "fields", and `params` has no limit for window or max_length,
                or limits so large that ids would not fit 32 bits.
        """
        self.params = params = as_params(params)
        self.alphabet = alphabet
        longest_tail = max(1 if params.parse == "greedy" else 2, params.min_length - 1)
        if alphabet == "fields":
            if params.window is None or params.max_length is None:
                raise ConfigError("the alphabet 'fields' needs a limited window and max_length; use 'buckets' without")
            self._num_lengths = params.max_length - params.min_length + 1
            self.vocab_size = _NUM_BYTES + params.window * self._num_lengths
            if self.vocab_size >= 1 << 32:
                raise ConfigError(
                    f"window times lengths is {params.window * self._num_lengths}, more than 32 bits; use a smaller "
                    "window or max_length, or 'buckets'"
                )
            self.max_unstable_tokens: int | None = longest_tail
        elif alphabet == "buckets":
            self.vocab_size, most_ids = _core.bucket_sizes(params.core)
            # Tokens that are not stable are one match, and of a lazy parse a byte after it, or all literals.
            self.max_unstable_tokens = max(longest_tail, most_ids + (0 if params.parse == "greedy" else most_ids))
        else:
            raise ConfigError(f"alphabet is {alphabet!r}; it must be 'fields' or 'buckets'")
        self.name = f"lz77-{alphabet}"
        self.fingerprint = hashlib.sha256(
            f"fastcompress lz77 codec, version 1\n{_settings(params)} alphabet={alphabet}".encode()
        ).hexdigest()

    def _arguments(self) -> dict[str, Any]:
        return {"params": self.params, "alphabet": self.alphabet}

    def encode(self, data: Text) -> npt.NDArray[np.uint32]:
        tokens = parse(as_bytes(data), self.params)
        if self.alphabet == "buckets":
            return _core.bucket_encode(tokens.kind, tokens.value, tokens.length, self.params.core)
        is_literal = tokens.kind == LITERAL
        match = (
            _NUM_BYTES
            + (tokens.value.astype(np.int64) - 1) * self._num_lengths
            + tokens.length
            - self.params.min_length
        )
        return np.where(is_literal, tokens.value, match).astype(np.uint32)

    def columns(self, tokens: npt.ArrayLike) -> LZTokens:
        """Return the parse that ids, integers[n], encode, as columns of kind, value and length.

        Raises DataError for an id outside [0, vocab_size), or one that cannot follow those before it.
        """
        return self._parsed(tokens)[0]

    def decode(self, tokens: npt.ArrayLike) -> bytes:
        try:
            return reconstruct(self.columns(tokens))
        except FormatError as error:
            raise DataError(f"these ids of {self.name} do not decode: {error}") from None

    def byte_lengths(self, tokens: npt.ArrayLike) -> npt.NDArray[np.int64]:
        if self.alphabet == "buckets":
            return self._parsed(tokens)[1]
        ids = validate_ids(tokens, self)
        more = (self._match_fields(ids)[1] - np.uint32(1)) * (ids >= _NUM_BYTES)  # `where` would branch at each id
        return more.astype(np.int64) + 1

    def _parsed(self, tokens: npt.ArrayLike) -> tuple[LZTokens, npt.NDArray[np.int64]]:
        ids = validate_ids(tokens, self)
        if self.alphabet == "buckets":
            try:
                kind, value, length, byte_lengths = _core.bucket_decode(ids, self.params.core)
            except FormatError as error:
                raise DataError(f"these ids of {self.name} do not decode: {error}") from None
            return LZTokens(kind, value, length), byte_lengths
        is_match = ids >= _NUM_BYTES
        distance, length = self._match_fields(ids)
        value = np.where(is_match, distance, ids)
        length = np.where(is_match, length, np.uint32(1))
        return LZTokens(is_match.astype(np.uint8), value, length), length.astype(np.int64)

    def _match_fields(self, ids: npt.NDArray[np.uint32]) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32]]:
        """Return the distances and lengths of ids that are matches, uint32[n] each; those of literals say nothing."""
        number = ids - np.uint32(_NUM_BYTES)
        distance = number // np.uint32(self._num_lengths)  # faster than divmod, which NumPy does not vectorize
        length = number - distance * np.uint32(self._num_lengths) + np.uint32(self.params.min_length)
        return distance + np.uint32(1), length


def _settings(params: Params) -> str:
    return " ".join(f"{name}={value}" for name, value in _params_state(params).items())


def _params_state(params: Params) -> dict[str, Any]:
    return {name: getattr(params, name) for name in ("window", "min_length", "max_length", "depth", "parse")}


class LZPCodec(CodecBase):
    """Matches without distances: a match copies what followed the most recent occurrence of the last `order` bytes.

    A token is one id. Not unambiguous: a literal may stand where a match would.

    >>> codec = LZPCodec()
    >>> codec.decode(codec.encode("to be or not to be or not to be"))
    b'to be or not to be or not to be'
    """

    lossless = True
    unambiguous = False

    def __init__(self, order: int = 4, min_length: int = 2, max_length: int = 258) -> None:
        """Make a codec.

        Args:
            order: Bytes of context, 1 to 64.
            min_length: The length of the shortest match, at least 1.
            max_length: The length of the longest match, at least `min_length`.

        Raises:
            ConfigError: A setting is out of range.
        """
        order = as_integer(order, "order", 1, 64)
        min_length = as_integer(min_length, "min_length", 1, (1 << 32) - 1)
        max_length = as_integer(max_length, "max_length", 1, (1 << 32) - 1)
        self.order, self.min_length, self.max_length = order, min_length, max_length
        self._core = _core.LzpParams(order, min_length, max_length)
        self.vocab_size = self._core.num_ids
        self.name = f"lzp-{order}"
        self.max_unstable_tokens: int | None = max(1, min_length - 1)
        self.fingerprint = hashlib.sha256(
            f"fastcompress lzp codec, version 1\norder={order} min_length={min_length} max_length={max_length}".encode()
        ).hexdigest()

    def _arguments(self) -> dict[str, Any]:
        return {"order": self.order, "min_length": self.min_length, "max_length": self.max_length}

    def encode(self, data: Text) -> npt.NDArray[np.uint32]:
        return _core.lzp_encode(as_bytes(data), self._core)

    def decode(self, tokens: npt.ArrayLike) -> bytes:
        try:
            return _core.lzp_decode(validate_ids(tokens, self), self._core, _core.MAX_TEXT_BYTES)
        except FormatError as error:
            raise DataError(f"these ids of {self.name} do not decode: {error}") from None

    def byte_lengths(self, tokens: npt.ArrayLike) -> npt.NDArray[np.int64]:
        ids = validate_ids(tokens, self).astype(np.int64)
        return np.where(ids < _NUM_BYTES, 1, ids - _NUM_BYTES + self.min_length)


def _lz77_from_state(state: dict[str, Any]) -> Codec:
    settings = dict(state)
    alphabet = settings.pop("alphabet")
    return LZ77Codec(Params(**settings), alphabet)


register_codec(
    CodecKind(
        "lz77",
        LZ77Codec,
        lambda codec: {**_params_state(codec.params), "alphabet": codec.alphabet},
        _lz77_from_state,
    )
)
register_codec(
    CodecKind(
        "lzp",
        LZPCodec,
        lambda codec: {"order": codec.order, "min_length": codec.min_length, "max_length": codec.max_length},
        lambda state: LZPCodec(**state),
    )
)
