"""Codec files, and the kinds of codec that can be saved."""

from __future__ import annotations

import base64
import binascii
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fastcompress._files import write_atomically
from fastcompress.codec.protocol import Codec
from fastcompress.errors import ConfigError, DataError, FormatError, MismatchError

FORMAT = "fastcompress-codec"
VERSION = 1


@dataclass(frozen=True)
class CodecKind:
    """The functions that save and load one kind of codec.

    >>> kind = CodecKind("byte", object, lambda codec: {}, lambda state: ...)  # for `register_codec`

    Attributes:
        name: The kind's name in the file, such as "char".
        codec_type: The type whose instances are of this kind.
        to_state: Returns a JSON object of everything that determines the mapping of a codec.
        from_state: Returns the codec of such an object; may raise KeyError, TypeError or ValueError if it is malformed.
    """

    name: str
    codec_type: type
    to_state: Callable[[Any], dict[str, Any]]
    from_state: Callable[[dict[str, Any]], Codec]


_KINDS: dict[str, CodecKind] = {}


def register_codec(kind: CodecKind) -> None:
    """Make `kind` known to save_codec and load_codec. Raises ConfigError if its name is taken."""
    if kind.name in _KINDS:
        raise ConfigError(f"codec kind {kind.name!r} is registered already; choose another name")
    _KINDS[kind.name] = kind


def save_codec(codec: Codec, path: str | os.PathLike[str]) -> None:
    """Write `codec` to `path` as one JSON file; an existing file is replaced, all or nothing.

    Raises ConfigError if the codec is of no registered kind, OutputError if the file cannot be written.
    """
    write_atomically(path, json.dumps(codec_to_json(codec), indent=1).encode() + b"\n")


def codec_to_json(codec: Codec) -> dict[str, Any]:
    """Return the contents of a codec file. Raises ConfigError if `codec` is of no registered kind."""
    kind = next((kind for kind in _KINDS.values() if type(codec) is kind.codec_type), None)
    if kind is None:
        raise ConfigError(f"{type(codec).__name__} is not a registered kind of codec; call register_codec first")
    return {
        "format": FORMAT,
        "version": VERSION,
        "kind": kind.name,
        "name": codec.name,
        "fingerprint": codec.fingerprint,
        "state": kind.to_state(codec),
    }


def load_codec(path: str | os.PathLike[str]) -> Codec:
    """Read a codec that save_codec wrote.

    Raises:
        DataError: The file does not exist or cannot be read.
        FormatError: It is not a codec file, is damaged, or is of a version or kind that this build does not know.
        MismatchError: Its contents do not have the fingerprint that it states.
    """
    return codec_from_json(parse_json(read_blob(path)), os.fspath(path))


def to_text(blob: bytes) -> str:
    """Encode bytes as text, for the JSON state of a codec."""
    return base64.b64encode(blob).decode("ascii")


def from_text(text: str) -> bytes:
    """Return the bytes that `to_text` encoded. Raises FormatError if the text is not base64."""
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise FormatError(f"not base64: {error}") from error


def read_blob(path: str | os.PathLike[str]) -> bytes:
    """Return the contents of a codec file. Raises DataError if it cannot be read."""
    try:
        return Path(path).read_bytes()
    except FileNotFoundError:
        raise DataError(f"{path}: no such codec file; name one that save_codec wrote") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}); name a readable codec file") from error


def parse_json(blob: bytes) -> Any:
    """Return the value of a JSON text; None if it is not JSON."""
    try:
        return json.loads(blob)
    except (ValueError, RecursionError):
        return None


def codec_from_json(document: Any, path: str) -> Codec:
    """Return the codec of a parsed codec file; `path` is for errors, which are those of `load_codec`."""
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
