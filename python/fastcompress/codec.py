"""Codecs: bytes to token ids and back, one interface for every tokenization the studies compare.

A codec is immutable and thread-safe. Its ids are [0, vocab_size); the data layer adds one more, `vocab_size`,
that ends a document, and no codec ever produces or accepts it. `fingerprint` covers everything that decides
the mapping, so codecs with one fingerprint encode alike: shards and checkpoints carry it to know their own.

A new kind of codec implements `Codec` and calls `register_codec`; saving, loading and the CLI then know it.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from fastcompress._files import write_atomically
from fastcompress.bpe import BPE
from fastcompress.errors import ConfigError, DataError, FormatError, MismatchError

if TYPE_CHECKING:
    import numpy.typing as npt

FORMAT = "fastcompress-codec"
VERSION = 1
_CHUNK_TOKENS = 1 << 22


@runtime_checkable
class Codec(Protocol):
    """Bytes to ids and back.

    Attributes:
        name: for people, such as "byte", "char-65", "bpe-8192".
        vocab_size: ids are in [0, vocab_size).
        fingerprint: 64 hexadecimal digits, a SHA-256 of everything that decides the mapping.
        lossless: every byte string can be encoded.
        unambiguous: every byte string is spelled by exactly one sequence of ids, so that a model's bits per
            byte are exact; else they are an upper bound.
        unstable_tail: how many last ids may change when bytes are appended to the input; None: any number.
    """

    @property
    def name(self) -> str: ...
    @property
    def vocab_size(self) -> int: ...
    @property
    def fingerprint(self) -> str: ...
    @property
    def lossless(self) -> bool: ...
    @property
    def unambiguous(self) -> bool: ...
    @property
    def unstable_tail(self) -> int | None: ...

    def encode(self, data: bytes) -> npt.NDArray[np.uint32]:
        """Ids of `data`, uint32[n]; text that looks like a special token is ordinary text.

        DataError when the codec is not lossless and cannot spell `data`.
        """
        ...

    def decode(self, tokens: npt.ArrayLike) -> bytes:
        """The bytes that `tokens`, integers[n], stand for. DataError on an id outside [0, vocab_size)."""
        ...

    def byte_lengths(self, tokens: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Bytes newly decodable after each token, int64[n]; for encode(data) they sum to len(data)."""
        ...


class ByteCodec:
    """Every byte is its own id."""

    name = "byte"
    vocab_size = 256
    lossless = True
    unambiguous = True
    unstable_tail: int | None = 0
    fingerprint = hashlib.sha256(b"fastcompress byte codec, version 1").hexdigest()

    def encode(self, data: bytes) -> npt.NDArray[np.uint32]:
        return np.frombuffer(data, np.uint8).astype(np.uint32)

    def decode(self, tokens: npt.ArrayLike) -> bytes:
        return _checked_ids(tokens, self).astype(np.uint8).tobytes()

    def byte_lengths(self, tokens: npt.ArrayLike) -> npt.NDArray[np.int64]:
        return np.ones(len(_checked_ids(tokens, self)), np.int64)


class CharCodec:
    """Every character (Unicode code point) of a fixed alphabet is an id: its rank in code point order.

    Reads UTF-8 only; a character outside the alphabet is an error, never a substitute.
    """

    lossless = False
    unambiguous = True
    unstable_tail: int | None = 0

    def __init__(self, characters: Sequence[str]) -> None:
        """`characters`: the alphabet, in any order; each one code point, none twice, no surrogates."""
        for character in characters:
            if len(character) != 1 or 0xD800 <= ord(character) <= 0xDFFF:
                raise ConfigError(f"{character!r} is not one character; an alphabet is made of single ones")
        points = np.array(sorted(map(ord, characters)), np.uint32)
        if len(points) == 0:
            raise ConfigError("the alphabet is empty; train it on documents that hold text")
        if (points[1:] == points[:-1]).any():
            raise ConfigError(f"{chr(points[:-1][points[1:] == points[:-1]][0])!r} occurs twice in the alphabet")
        self.characters = "".join(map(chr, points))
        self.vocab_size = len(points)
        self.name = f"char-{self.vocab_size}"
        self.fingerprint = hashlib.sha256(
            b"fastcompress char codec, version 1\n" + points.astype("<u4").tobytes()
        ).hexdigest()
        self._points: npt.NDArray[np.uint32] = points
        self._lengths = np.array([len(character.encode()) for character in self.characters], np.int64)
        # Code point to id; points outside the alphabet, also the one entry past its end, map to vocab_size.
        self._ids: npt.NDArray[np.uint32] = np.full(int(points[-1]) + 2, self.vocab_size, np.uint32)
        self._ids[points] = np.arange(self.vocab_size, dtype=np.uint32)

    @classmethod
    def train(cls, documents: Iterable[bytes]) -> CharCodec:
        """The alphabet of all characters in `documents`. DataError: not UTF-8, or no character at all."""
        alphabet: set[str] = set()
        for document in documents:
            alphabet.update(_decode_utf8(document))
        if not alphabet:
            raise DataError("no characters to make an alphabet of; train on documents that hold text")
        return cls(sorted(alphabet))

    def encode(self, data: bytes) -> npt.NDArray[np.uint32]:
        text = _decode_utf8(data)
        points = np.frombuffer(text.encode("utf-32-le"), "<u4")
        ids: npt.NDArray[np.uint32] = self._ids[np.minimum(points, len(self._ids) - 1)]
        unknown = ids == self.vocab_size
        if unknown.any():
            position = int(np.argmax(unknown))
            offset = len(text[:position].encode())
            raise DataError(
                f"character {text[position]!r} (U+{ord(text[position]):04X}) at byte {offset} is not in the "
                f"alphabet of {self.name}; train the alphabet on this text too, or use the byte codec"
            )
        return ids

    def decode(self, tokens: npt.ArrayLike) -> bytes:
        points: npt.NDArray[np.uint32] = self._points[_checked_ids(tokens, self)]
        return points.astype("<u4").tobytes().decode("utf-32-le").encode()

    def byte_lengths(self, tokens: npt.ArrayLike) -> npt.NDArray[np.int64]:
        lengths: npt.NDArray[np.int64] = self._lengths[_checked_ids(tokens, self)]
        return lengths


class BPECodec:
    """A byte-pair vocabulary. Encoding knows no special tokens: their text in the input is ordinary text.

    Many id sequences spell one text and encoding uses only one of them, so bits per byte are an upper bound. Tokens of
    the vocabulary that are added but not special (a tokenizer.json may have some) are tokens here, too.

    Not lossless where the vocabulary is not (`BPE.lossless`: one that normalizes to NFC, say): then text that its ids
    do not spell, byte for byte, is an error.
    """

    unambiguous = False
    unstable_tail: int | None = None

    def __init__(self, tokenizer: BPE) -> None:
        self.tokenizer = tokenizer
        self.lossless: bool = tokenizer.lossless
        self.vocab_size: int = tokenizer.vocab_size
        self.name = f"bpe-{self.vocab_size}"
        self.fingerprint = hashlib.sha256(
            f"fastcompress bpe codec, version 1\n{tokenizer.fingerprint}".encode()
        ).hexdigest()

    def encode(self, data: bytes) -> npt.NDArray[np.uint32]:
        tokens = self.tokenizer.encode_to_numpy(data, np.uint32, disallowed_special=())
        if not self.lossless and self.tokenizer.decode_bytes(tokens) != data:
            raise DataError(
                f"the ids of {self.name} do not spell this text byte for byte, since its vocabulary changes text (to "
                "NFC, say): normalize the text first, or use a vocabulary that does not"
            )
        return tokens

    def decode(self, tokens: npt.ArrayLike) -> bytes:
        return self.tokenizer.decode_bytes(_checked_ids(tokens, self))

    def byte_lengths(self, tokens: npt.ArrayLike) -> npt.NDArray[np.int64]:
        lengths: npt.NDArray[np.int64] = self.tokenizer.token_lengths[_checked_ids(tokens, self)]
        return lengths


def _decode_utf8(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(
            f"byte 0x{data[error.start]:02X} at offset {error.start} is not valid UTF-8, so the text has no "
            "characters; use the byte codec, or a BPE one, for such data"
        ) from None


def _checked_ids(tokens: npt.ArrayLike, codec: Codec) -> npt.NDArray[np.integer]:
    """`tokens` as a one-dimensional integer array with every id in [0, vocab_size), or DataError."""
    ids = np.asarray(tokens)
    if ids.size == 0:
        return np.zeros(0, np.uint32)
    if ids.ndim != 1 or ids.dtype.kind not in "iu":
        raise TypeError(f"tokens must be one-dimensional integers, not {ids.dtype} of shape {ids.shape}")
    bad = (ids >= codec.vocab_size) | (ids < 0)
    if bad.any():
        position = int(np.argmax(bad))
        raise DataError(
            f"id {ids[position]} at position {position} is outside [0, {codec.vocab_size}) of {codec.name}; "
            "decode with the codec that encoded, and leave out end-of-document ids"
        )
    return ids


# --- Saving and loading ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class CodecKind:
    """How a kind of codec becomes JSON values and comes back.

    Attributes:
        name: stored in the file, such as "char".
        codec_type: instances of it are of this kind.
        to_state, from_state: a JSON object of everything that decides the mapping, and the codec of one.
            from_state may raise KeyError, TypeError or ValueError on a malformed state.
    """

    name: str
    codec_type: type
    to_state: Callable[[Any], dict[str, Any]]
    from_state: Callable[[dict[str, Any]], Codec]


_KINDS: dict[str, CodecKind] = {}


def register_codec(kind: CodecKind) -> None:
    """Make `kind` known to save_codec and load_codec. ConfigError when its name is taken."""
    if kind.name in _KINDS:
        raise ConfigError(f"codec kind {kind.name!r} is registered already; choose another name")
    _KINDS[kind.name] = kind


def save_codec(codec: Codec, path: str | os.PathLike[str]) -> None:
    """Write `codec` to `path` as one JSON file, replacing it; readers see the old or the new, whole.

    ConfigError: a kind nobody registered. OutputError: cannot be written.
    """
    kind = next((kind for kind in _KINDS.values() if type(codec) is kind.codec_type), None)
    if kind is None:
        raise ConfigError(f"{type(codec).__name__} is not a registered kind of codec; call register_codec first")
    document = {
        "format": FORMAT,
        "version": VERSION,
        "kind": kind.name,
        "name": codec.name,
        "fingerprint": codec.fingerprint,
        "state": kind.to_state(codec),
    }
    write_atomically(path, json.dumps(document, indent=1).encode() + b"\n")


def load_codec(path: str | os.PathLike[str]) -> Codec:
    """Read a codec saved by save_codec.

    DataError: no such file. FormatError: not a codec file, of another version, of an unknown kind, or
    malformed. MismatchError: its state does not have the fingerprint it claims.
    """
    return _codec_from_json(_parse_json(_read(path)), os.fspath(path))


def codec_from_spec(spec: str) -> Codec:
    """The codec a user names: "byte", or the path of a codec.json, of a saved vocabulary or of a tokenizer.json."""
    if spec == "byte":
        return ByteCodec()
    blob = _read(spec)
    if blob.lstrip()[:1] == b"{":
        if isinstance(document := _parse_json(blob), dict) and "model" in document and "format" not in document:
            return BPECodec(BPE.from_huggingface(Path(spec)))
        return _codec_from_json(document, spec)
    try:
        return BPECodec(BPE.from_bytes(blob))
    except FormatError as error:
        raise FormatError(f"{spec}: neither a codec.json, a tokenizer.json nor a BPE vocabulary ({error})") from error


def _read(path: str | os.PathLike[str]) -> bytes:
    try:
        return Path(path).read_bytes()
    except FileNotFoundError:
        raise DataError(
            f"{path}: no such codec file; name a codec.json, a saved BPE vocabulary, a tokenizer.json, or byte"
        ) from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}); name a codec.json or a BPE vocabulary") from error


def _parse_json(blob: bytes) -> Any:
    """What JSON says; None for what is none."""
    try:
        return json.loads(blob)
    except (ValueError, RecursionError):
        return None


def _codec_from_json(document: Any, path: str) -> Codec:
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise FormatError(f"{path}: not a codec file; make one with fastcompress.codec.save_codec")
    if document.get("version") != VERSION:
        raise FormatError(
            f"{path}: codec format version {document.get('version')!r}, this build reads {VERSION}; "
            "make it again, or use the release that wrote it"
        )
    kind = _KINDS.get(str(document.get("kind")))
    if kind is None:
        raise FormatError(f"{path}: unknown codec kind {document.get('kind')!r}; known: {', '.join(sorted(_KINDS))}")
    try:
        codec = kind.from_state(document["state"])
    except (KeyError, TypeError, ValueError) as error:
        raise FormatError(f"{path}: the {kind.name} codec's state is damaged ({error}); make it again") from error
    if codec.fingerprint != document.get("fingerprint"):
        raise MismatchError(f"{path}: the codec's state does not match its fingerprint; restore or make it again")
    return codec


def _bpe_from_state(state: dict[str, Any]) -> Codec:
    try:
        blob = base64.b64decode(state["vocabulary"], validate=True)
    except binascii.Error as error:
        raise FormatError(f"not base64: {error}") from error
    return BPECodec(BPE.from_bytes(blob))


register_codec(CodecKind("byte", ByteCodec, lambda codec: {}, lambda state: ByteCodec()))
register_codec(
    CodecKind(
        "char",
        CharCodec,
        lambda codec: {"characters": codec.characters},
        lambda state: CharCodec(state["characters"]),
    )
)
register_codec(
    CodecKind(
        "bpe",
        BPECodec,
        lambda codec: {"vocabulary": base64.b64encode(codec.tokenizer.to_bytes()).decode("ascii")},
        _bpe_from_state,
    )
)


# --- Bigram coverage -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class BigramCoverage:
    """How many of a vocabulary's pairs of ids a corpus shows: a model learns no pair it never met."""

    num_seen: int
    num_possible: int
    num_tokens: int

    @property
    def fraction(self) -> float:
        """Distinct pairs seen over vocab_size squared, in [0, 1]."""
        return self.num_seen / self.num_possible


def bigram_coverage(tokens: npt.ArrayLike, vocab_size: int) -> BigramCoverage:
    """Count the distinct pairs of adjacent ids in `tokens`, integers[n] in [0, vocab_size).

    Memory: 8 bytes a distinct pair, and a constant; never vocab_size squared. Time: O(n log n).
    """
    ids = np.asarray(tokens)
    if ids.size and not 0 <= int(ids.min()) <= int(ids.max()) < vocab_size:
        raise DataError(
            f"ids from {ids.min()} to {ids.max()} are not all in [0, {vocab_size}); give the codec's own size"
        )
    seen = np.zeros(0, np.uint64)
    for begin in range(0, len(ids) - 1, _CHUNK_TOKENS):
        chunk = ids[begin : begin + _CHUNK_TOKENS + 1].astype(np.uint64)
        seen = np.union1d(seen, chunk[:-1] * np.uint64(vocab_size) + chunk[1:])
    return BigramCoverage(num_seen=len(seen), num_possible=vocab_size**2, num_tokens=len(ids))
