"""The interface of every codec, and the code that codecs share to implement it."""

from __future__ import annotations

import reprlib
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from fastcompress._deprecated import RenamedAttribute
from fastcompress.errors import DataError, SurrogateError

Text = str | bytes | bytearray | memoryview
_UINT32_END = 1 << 32


@runtime_checkable
class Codec(Protocol):
    """Bytes to ids and back.

    Codecs are immutable, thread-safe, hashable, picklable if their parts are, and equal if they have the same type and
    the same fingerprint.

    >>> from fastcompress.codec import ByteCodec
    >>> codec: Codec = ByteCodec()
    >>> codec.encode("to be").tolist(), codec.decode([116, 111])
    ([116, 111, 32, 98, 101], b'to')

    Attributes:
        name: Short name for people, such as "byte", "char-65" or "bpe-8192".
        vocab_size: The number of ids; they are in [0, vocab_size).
        fingerprint: 64 hexadecimal digits, the SHA-256 of everything that determines the mapping.
        lossless: True if every byte string can be encoded.
        unambiguous: True if each byte string is the decoding of exactly one sequence of ids. Then a model's bits per
            byte are exact; otherwise they are an upper bound.
        max_unstable_tokens: The largest number of ids at the end that may change when bytes are appended to the input;
            None for no limit.
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
    def max_unstable_tokens(self) -> int | None: ...

    def encode(self, data: Text) -> npt.NDArray[np.uint32]:
        """Encode `data`, a str as UTF-8, to ids, uint32[n]. Text that looks like a special token is ordinary text.

        Raises DataError if the codec is not lossless and has no ids for `data`, SurrogateError if a str holds a
        surrogate, and TypeError for anything that is neither str nor bytes.
        """
        ...

    def decode(self, tokens: npt.ArrayLike) -> bytes:
        """Decode ids, integers[n], to bytes.

        Raises DataError for an id outside [0, vocab_size), and TypeError unless `tokens` are one-dimensional integers.
        """
        ...

    def byte_lengths(self, tokens: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Return the number of bytes that become decodable with each token, int64[n].

        For encode(data) they sum to len(data). Raises as `decode` does.
        """
        ...


class CodecBase:
    """Equality, hash, repr, copies and pickling of a codec, made from the arguments of its constructor."""

    fingerprint: str
    vocab_size: int
    # Whether decode(ids) is decode([id]) of each id, one after the other. Not part of the protocol: without it, whoever
    # decodes ids as they come decodes all of them each time.
    decodes_by_token: bool = False
    # Whether ids can be decoded as they come: the first ids of a text decode to its first bytes, and others may follow
    # the ids of a whole text. Not part of the protocol: a codec without it is taken to be incremental.
    is_incremental: bool = True

    unstable_tail = RenamedAttribute("max_unstable_tokens")

    def _arguments(self) -> dict[str, Any]:
        """Return the arguments of the constructor that make an equal codec, by name."""
        raise NotImplementedError

    def __eq__(self, other: object) -> bool:
        return self.fingerprint == other.fingerprint if type(other) is type(self) else NotImplemented

    def __hash__(self) -> int:
        return hash((type(self), self.fingerprint))

    def __repr__(self) -> str:
        arguments = [f"{name}={_short.repr(value)}" for name, value in self._arguments().items()]
        derived = [f"vocab_size={self.vocab_size}", f"fingerprint={self.fingerprint[:12]}"]
        return f"<{type(self).__name__} {' '.join(arguments + derived)}>"

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: object) -> Any:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _make, (type(self), self._arguments())


def as_bytes(data: Text) -> bytes:
    """Return the bytes of a text, a str as UTF-8. Raises as `Codec.encode` does.

    >>> as_bytes("é")
    b'\\xc3\\xa9'
    """
    if isinstance(data, bytes):
        return data
    if isinstance(data, str):
        try:
            return data.encode("utf-8")
        except UnicodeEncodeError as error:
            raise SurrogateError(*error.args) from None
    try:
        view = memoryview(data)
    except TypeError:
        view = None
    if view is None or view.itemsize != 1:
        raise TypeError(f"data is {_kind(data)}; it must be str or bytes")
    return view.tobytes()


def validate_ids(tokens: npt.ArrayLike, codec: Codec) -> npt.NDArray[np.uint32]:
    """Return a copy of `tokens` as uint32[n], every id in [0, vocab_size). Raises as `Codec.decode` does.

    A copy, so that what is checked here is what the caller goes on to use, whatever another thread writes meanwhile.
    """
    try:
        ids = np.array(tokens)
    except ValueError:  # lists of unequal lengths
        raise TypeError("tokens are nested sequences; they must be one-dimensional integers") from None
    if ids.ndim == 1 and ids.size == 0 and ids.dtype.kind in "iuf":  # NumPy takes [] for floats
        return np.zeros(0, np.uint32)
    if ids.dtype.kind in "fO" and isinstance(tokens, (list, tuple)) and all(type(token) is int for token in tokens):
        ids = np.array(tokens, object)  # integers that no one integer type holds
    elif ids.ndim != 1 or ids.dtype.kind not in "iu":
        raise TypeError(f"tokens are {ids.dtype} of shape {ids.shape}; they must be one-dimensional integers")
    bad = (ids >= min(codec.vocab_size, _UINT32_END)) | (ids < 0)
    if bad.any():
        position = int(np.argmax(bad))
        raise DataError(
            f"id {ids[position]} at position {position} is outside [0, {codec.vocab_size}) of {codec.name}; "
            "decode with the codec that encoded, and leave out end-of-document ids"
        )
    return ids.astype(np.uint32, copy=False)


def _kind(value: object) -> str:
    dtype = getattr(value, "dtype", None)
    return f"an array of {dtype}" if dtype is not None else type(value).__name__


def _make(codec_type: type, arguments: dict[str, Any]) -> Any:
    return codec_type(**arguments)


class _ShortRepr(reprlib.Repr):
    """The repr of an argument: long strings are cut, and objects without a repr of their own show their type."""

    def __init__(self) -> None:
        super().__init__()
        self.maxstring = 40
        self.maxother = 120

    def repr_instance(self, x: object, level: int) -> str:
        own = type(x).__repr__ is not object.__repr__ and not callable(x)
        return super().repr_instance(x, level) if own else f"<{type(x).__name__}>"


_short = _ShortRepr()
