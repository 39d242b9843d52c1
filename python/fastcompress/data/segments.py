"""Texts cut into segments, and their spelling for the next-patch objective: bytes, and a mark where a segment ends.

A segment is a phrase of an LZ77 parse (a run of literals up to a cap, or a match) or a token of a codec. The spelling
of a document is, with E the mark,

    bytes of segment 1, E, bytes of segment 2, E, ..., bytes of the last segment

and its end closes the last segment. A model of these symbols pays for every byte and for every end, also for those that
the encoder decided by bytes further on. The marks can stand elsewhere for the same bytes, so what a document costs is
an upper bound on the cost of its bytes.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from fastcompress import lz77
from fastcompress.codec import ByteCodec, Codec
from fastcompress.codec.protocol import CodecBase, Text, as_bytes, validate_ids
from fastcompress.errors import ConfigError

END_OF_SEGMENT = 256  # the first id that is no byte


class Segmenter(Protocol):
    """A rule that cuts a document's ids into segments.

    Attributes:
        name: The rule and its settings.
        reach: Ids before a place that its segments may depend on, so that they are those of its document.
        lookahead: Ids behind a place on which it depends whether a segment ends there.
        has_whole_tokens: Whether each id is a segment.
    """

    @property
    def name(self) -> str: ...
    @property
    def reach(self) -> int: ...
    @property
    def lookahead(self) -> int: ...
    @property
    def has_whole_tokens(self) -> bool: ...

    def cut(self, tokens: npt.NDArray[np.uint32]) -> tuple[bytes, npt.NDArray[np.int64]]:
        """Return the text of ids, ``uint32[n]``, and where its segments end, ascending, the last at the text's end."""
        ...


@dataclass(frozen=True)
class LZ77Segmenter:
    """Phrases of an LZ77 parse of bytes: matches, and runs of literals.

    Attributes:
        params: Of the parse.
        max_literals: The largest number of literals in a run.
    """

    params: lz77.Params
    max_literals: int
    has_whole_tokens: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        if self.params.window is None or self.params.max_length is None:
            raise ConfigError("the parse has no limit of distances or lengths; rows of fixed shape need both")

    @property
    def name(self) -> str:
        """The kind and its settings."""
        p = self.params
        return f"lz77 {p.window} {p.min_length} {p.max_length} {p.depth} {p.parse} {self.max_literals}"

    @property
    def reach(self) -> int:
        """The largest distance."""
        assert self.params.window is not None
        return self.params.window

    @property
    def lookahead(self) -> int:
        """The largest length of a match."""
        assert self.params.max_length is not None
        return self.params.max_length

    def cut(self, tokens: npt.NDArray[np.uint32]) -> tuple[bytes, npt.NDArray[np.int64]]:
        """See `Segmenter`."""
        text = tokens.astype(np.uint8).tobytes()
        runs = lz77.literal_runs(lz77.parse(text, self.params), self.max_literals)
        return text, np.cumsum(runs.length, dtype=np.int64)


@dataclass(frozen=True)
class TokenSegmenter:
    """The tokens of a codec, each with bytes of its own.

    Raises ConfigError if the codec has a token without.
    """

    codec: Codec
    reach: int = field(default=0, init=False)
    lookahead: int = field(default=0, init=False)
    has_whole_tokens: bool = field(default=True, init=False)

    def __post_init__(self) -> None:
        decodes = getattr(self.codec, "decodes_by_token", False)
        if not decodes or not self.codec.byte_lengths(np.arange(self.codec.vocab_size)).all():
            raise ConfigError(f"codec is {self.codec.name}; it must give each id bytes of its own")

    @property
    def name(self) -> str:
        """The kind; which tokens is said by the codec."""
        return "tokens"

    def cut(self, tokens: npt.NDArray[np.uint32]) -> tuple[bytes, npt.NDArray[np.int64]]:
        """See `Segmenter`."""
        return self.codec.decode(tokens), np.cumsum(self.codec.byte_lengths(tokens), dtype=np.int64)


class SegmentCodec(CodecBase):
    """Text spelled as bytes, with END_OF_SEGMENT between segments.

    >>> codec = SegmentCodec(ByteCodec(), LZ77Segmenter(lz77.Params(window=64, max_length=32), max_literals=8))
    >>> "".join(chr(symbol) if symbol < 256 else "|" for symbol in codec.encode(b"to be, or to be"))
    'to be, o|r |to be'
    """

    vocab_size = END_OF_SEGMENT + 1
    unambiguous = False  # the marks can stand elsewhere
    max_unstable_tokens: int | None = None
    decodes_by_token = True

    def __init__(self, codec: Codec, segmenter: Segmenter) -> None:
        """Make the spelling of a codec's documents.

        Args:
            codec: Its ids are cut.
            segmenter: Cuts them.
        """
        self.codec, self.segmenter = codec, segmenter
        self.lossless: bool = codec.lossless
        self.name = f"segments of {codec.name}"
        text = f"fastcompress segment codec, version 1\n{codec.fingerprint}\n{segmenter.name}\n"
        self.fingerprint = hashlib.sha256(text.encode()).hexdigest()

    def _arguments(self) -> dict[str, Any]:
        return {"codec": self.codec, "segmenter": self.segmenter}

    def encode(self, data: Text) -> npt.NDArray[np.uint32]:
        return spelled(*self.segmenter.cut(self.codec.encode(as_bytes(data))))

    def decode(self, tokens: npt.ArrayLike) -> bytes:
        ids = validate_ids(tokens, self)
        return ids[ids < END_OF_SEGMENT].astype(np.uint8).tobytes()

    def byte_lengths(self, tokens: npt.ArrayLike) -> npt.NDArray[np.int64]:
        return (validate_ids(tokens, self) < END_OF_SEGMENT).astype(np.int64)


def spelled(text: bytes, ends: npt.NDArray[np.int64]) -> npt.NDArray[np.uint32]:
    """Return the symbols of a text, ``uint32[n]``, whose segments end at ``ends``, the last of them without a mark."""
    return np.insert(np.frombuffer(text, np.uint8).astype(np.uint32), ends[:-1], END_OF_SEGMENT)


def make_segmenter(codec: Codec, kind: str, params: lz77.Params, max_literals: int) -> Segmenter:
    """Make a segmenter of a codec's ids.

    Args:
        codec: The codec.
        kind: "lz77", for bytes, or "tokens".
        params, max_literals: Of the parse.

    Raises:
        ConfigError: There is no such kind, or the codec does not fit it.
    """
    if kind == "lz77":
        if not isinstance(codec, ByteCodec):
            raise ConfigError(f"codec is {codec.name}; segments of lz77 need byte (or use segments of tokens)")
        return LZ77Segmenter(params, max_literals)
    if kind == "tokens":
        return TokenSegmenter(codec)
    raise ConfigError(f"segments is {kind!r}; it must be one of lz77, tokens")
