"""The texts that training counts: read from a source, cut at special tokens, and grouped into batches.

Encoding cuts a text at the special tokens that are allowed. Training does the same, so that no ordinary token is
learned from the text of a special one, or from a part of it and the text next to it.
"""

from __future__ import annotations

import os
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from pathlib import Path
from typing import IO, TypeAlias, TypeVar

from fastcompress._arguments import shown
from fastcompress._core import bpe as _core
from fastcompress.bpe.arguments import TEXT_TYPES, Text
from fastcompress.errors import DataError, TextNotFileWarning
from fastcompress.pretokenizer import without_surrogates

Source: TypeAlias = "Text | os.PathLike[str] | Iterable[Text | os.PathLike[str]]"
Cutter: TypeAlias = "Callable[[Text], Iterator[Text]]"
_Sized = TypeVar("_Sized", bound=Sized)

_MAX_PATH_CHARACTERS = 1024
_LONGEST_CHARACTER = 4  # bytes of UTF-8


def texts_of(source: Source, part_bytes: int, *, is_cut: bool, special_tokens: Sequence[str] = ()) -> Iterator[Text]:
    """Yield the texts of a source, without the special tokens in them.

    Args:
        source: A text, a path, or an iterable of them.
        part_bytes: The number of bytes of a file to read at a time.
        is_cut: Whether a file may be cut between pretokens; else it is read as a whole. (It is, too, if a special token
            holds white space at which it could be cut.)
        special_tokens: The texts at which each text is cut.

    Raises:
        TypeError: The source, or something in it, is neither a text nor a path.
        DataError: A file cannot be read.
    """
    cut = cutter_of(special_tokens)
    is_cut = is_cut and not any(re.search(r"\S\s", text) for text in special_tokens)
    for item in _items(source):
        if isinstance(item, os.PathLike):
            texts: Iterable[Text] = _file_parts(Path(item), part_bytes, is_cut=is_cut)
        elif isinstance(item, TEXT_TYPES):
            texts = [item]
        else:
            raise TypeError(f"expected str, bytes or a pathlib.Path, not {type(item).__name__}: {shown(item)}")
        for text in texts:
            yield from cut(text) if cut is not None else [text]


def batches(texts: Iterable[_Sized], batch_bytes: int) -> Iterator[list[_Sized]]:
    """Yield lists of texts of about `batch_bytes` bytes each (characters, for a str)."""
    batch: list[_Sized] = []
    size = 0
    for text in texts:
        batch.append(text)
        size += len(text)
        if size >= batch_bytes:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def cutter_of(special_tokens: Sequence[str]) -> Cutter | None:
    """Return a function that cuts a text at special tokens, or None if there are none.

    If several begin at one position, the longest is taken.
    """
    if not special_tokens:
        return None
    alternatives = "|".join(map(re.escape, sorted(special_tokens, key=len, reverse=True)))
    in_str, in_bytes = re.compile(alternatives), re.compile(alternatives.encode("utf-8"))

    def cut(text: Text) -> Iterator[Text]:
        if isinstance(text, str):
            text = without_surrogates(text)
        elif not isinstance(text, bytes):
            text = bytes(text)
        pattern: re.Pattern[str] | re.Pattern[bytes] = in_str if isinstance(text, str) else in_bytes
        whole = text if isinstance(text, str) else memoryview(text)
        begin = 0
        for match in pattern.finditer(whole):  # type: ignore[arg-type]  # the pattern is of the text's type
            if match.start() > begin:
                yield whole[begin : match.start()]
            begin = match.end()
        if begin < len(text):
            yield whole[begin:] if begin else text

    return cut


def _items(source: Source) -> Iterator[object]:
    if isinstance(source, (*TEXT_TYPES, os.PathLike)):
        source = [source]
    if isinstance(source, Mapping):  # whose items would be its keys
        raise TypeError(f"source is of type {type(source).__name__}; give its values, if these are the texts")
    try:
        items = iter(source)
    except TypeError:
        raise TypeError(
            f"source is {shown(source)}; it must be a text, a pathlib.Path, or an iterable of them"
        ) from None
    for number, item in enumerate(items):
        if number == 0 and isinstance(item, str):
            _warn_of_file_name(item)
        yield item


def _warn_of_file_name(text: str) -> None:
    if len(text) > _MAX_PATH_CHARACTERS or "\n" in text or not os.path.isfile(text):
        return
    level = 1
    while (
        sys._getframe(level).f_globals.get("__name__", "").startswith("fastcompress.")
    ):  # up to the caller of this package
        level += 1
    warnings.warn(
        f"{text!r} is the name of a file, but it is taken for the text to train on; to train on the file's contents, "
        f"give pathlib.Path({text!r})",
        TextNotFileWarning,
        stacklevel=level + 1,
    )


def _file_parts(path: Path, part_bytes: int, *, is_cut: bool) -> Iterator[bytes]:
    """Yield the bytes of a file, cut where no pretoken changes."""
    try:
        with path.open("rb") as file:
            yield from stream_parts(file, part_bytes, is_cut=is_cut)
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}); name a readable file") from error


def stream_parts(file: IO[bytes], part_bytes: int, *, is_cut: bool) -> Iterator[bytes]:
    """Yield the bytes of a stream in parts, none of them empty.

    Args:
        file: The stream.
        part_bytes: The number of bytes to read at a time.
        is_cut: Whether to cut, before ASCII white space after a letter or number, which changes no pretoken of a named
            pattern other than ``none``; else there is one part.
    """
    waiting: list[bytes] = []  # parts that were read and have no position to cut at
    while part := file.read(part_bytes if is_cut else -1):
        before = waiting[-1][-_LONGEST_CHARACTER:] if waiting else b""
        if is_cut and (cut := _core.last_cut(before + part)):
            yield b"".join([*waiting, part[: cut - len(before)]])
            part = part[cut - len(before) :]
            waiting = []
        waiting.append(part)
    if waiting:
        yield b"".join(waiting)
