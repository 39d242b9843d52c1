"""The errors of the package: each is a built-in exception too, and keeps its kind when a place is put before it."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import NoReturn

import pytest

from fastcompress import BPE, errors
from fastcompress.cli.inputs import make_codec
from fastcompress.data.sources import Document
from fastcompress.errors import FastcompressError, FormatError, with_place
from fastcompress.formats.rank_file import naming_file

KINDS = [
    kind
    for _, kind in inspect.getmembers(errors, inspect.isclass)
    if issubclass(kind, FastcompressError) and kind is not FastcompressError
]


def an_error(kind: type[FastcompressError]) -> FastcompressError:
    return kind("utf-8", "a\ud800", 1, 2, "surrogates") if issubclass(kind, UnicodeError) else kind("it is broken")


@pytest.mark.parametrize("kind", KINDS)
def test_an_error_with_a_place_keeps_its_kind(kind: type[FastcompressError]) -> None:
    error = an_error(kind)
    placed = with_place(error, Path("a.bpe"))
    assert str(placed) == f"a.bpe: {error}"
    assert isinstance(error, type(placed))
    kept = [base for base in KINDS if isinstance(error, base) and not issubclass(base, UnicodeError)]
    assert kept
    assert all(isinstance(placed, base) for base in kept)


@pytest.mark.parametrize("kind", KINDS)
def test_whoever_names_a_file_may_meet_any_kind(kind: type[FastcompressError], monkeypatch: pytest.MonkeyPatch) -> None:
    """`SurrogateError` takes five arguments, so `type(error)(message)` raised a TypeError in its place."""

    def fail(*args: object, **kwargs: object) -> NoReturn:
        raise an_error(kind)

    monkeypatch.setattr(BPE, "train", fail)
    document = Document("a.txt", b"to be or not to be")
    with pytest.raises(FastcompressError, match=r"^bpe-300: "):
        make_codec("bpe-300", [document], lambda: [document])
    if issubclass(kind, FormatError):
        with pytest.raises(FormatError, match=r"^a\.tiktoken: "), naming_file("a.tiktoken"):
            fail()
