"""The page of `fastcompress view`: a text, cut by several codecs side by side.

One file that needs nothing else. Its content security policy allows the one style sheet and the one script of the
template by their hashes, so the text it shows cannot run.
"""

from __future__ import annotations

import html
from dataclasses import dataclass
from importlib import resources
from string import Template
from typing import TYPE_CHECKING

import numpy as np

from fastcompress.study.page import element_hash

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fastcompress.codec import Codec

_NUM_COLOURS = 6


@dataclass(frozen=True)
class Piece:
    """A token on the page: the bytes [begin, end) of the text and, of a match, where it copies from."""

    begin: int
    end: int
    distance: int = 0  # 0: no match


@dataclass(frozen=True)
class Panel:
    """What one codec makes of the text."""

    name: str
    num_tokens: int
    pieces: Sequence[Piece]


def make_panel(codec: Codec, data: bytes) -> Panel:
    """Encodes `data`. Ids that stand for no byte by themselves are counted and not shown."""
    from fastcompress.codec import LZ77Codec

    tokens = codec.encode(data)
    if isinstance(codec, LZ77Codec):
        parsed = codec.columns(tokens)
        ends = np.cumsum(parsed.length, dtype=np.int64).tolist()
        distances = np.where(parsed.kind == 1, parsed.value, 0).tolist()
    else:
        lengths = codec.byte_lengths(tokens)
        ends = np.cumsum(lengths[lengths > 0]).tolist()
        distances = [0] * len(ends)
    begins = [0, *ends[:-1]]
    pieces = [Piece(begin, end, distance) for begin, end, distance in zip(begins, ends, distances, strict=True)]
    return Panel(codec.name, len(tokens), pieces)


def render(title: str, data: bytes, panels: Sequence[Panel]) -> str:
    """The page. Equal arguments give equal pages."""
    template = resources.files("fastcompress.cli").joinpath("view_template.html").read_text(encoding="utf-8")
    return Template(template).substitute(
        title=html.escape(title),
        num_bytes=f"{len(data):,}",
        style_hash=element_hash(template, "style"),
        script_hash=element_hash(template, "script"),
        panels="\n".join(_panel(panel, data) for panel in panels),
    )


def _panel(panel: Panel, data: bytes) -> str:
    ratio = f"{len(data) / panel.num_tokens:.2f}" if panel.num_tokens else "0"
    tokens, characters, at = [], _characters(data), 0
    for i, piece in enumerate(panel.pieces):
        begin = at
        while at < len(characters) and characters[at][0] <= piece.end:
            at += 1
        text = "".join(_shown(character) for _, character in characters[begin:at])
        tokens.append(_token(piece, text or "<i>·</i>", i % _NUM_COLOURS))
    return (
        f"<section><h2>{html.escape(panel.name)}</h2><p>{panel.num_tokens:,} tokens, {ratio} bytes a token</p>"
        f'<pre tabindex="0">{"".join(tokens)}</pre></section>'
    )


def _characters(data: bytes) -> list[tuple[int, str]]:
    """Characters, bytes that belong to none as lone surrogates, each with the offset at which it ends: a token shows
    those that end in it, and a dot if there are none."""
    characters, end = [], 0
    for character in data.decode("utf-8", "surrogateescape"):
        end += 1 if "\udc80" <= character <= "\udcff" else len(character.encode())
        characters.append((end, character))
    return characters


def _token(piece: Piece, text: str, colour: int) -> str:
    size = piece.end - piece.begin
    if piece.distance == 0:
        what = f"{size} byte{'s' * (size != 1)} at {piece.begin}"
        return f'<span class="c{colour}" data-b="{piece.begin}" data-e="{piece.end}" title="{what}">{text}</span>'
    source = piece.begin - piece.distance
    what = f"match of {size} at {piece.begin}: as {piece.distance} bytes before, at {source}"
    return (
        f'<span class="c{colour} m" data-b="{piece.begin}" data-e="{piece.end}" data-s="{source}" title="{what}">'
        f"{text}</span>"
    )


def _shown(character: str) -> str:
    """Line ends are marked; what has no look of its own is shown by its number, bytes that are no text by theirs."""
    if "\udc80" <= character <= "\udcff":
        return f"<i>{ord(character) - 0xDC00:02X}</i>"
    if character in "\n\t":
        return "<i>↵</i>\n" if character == "\n" else "<i>→</i>\t"
    return html.escape(character) if character.isprintable() else f"<i>{ord(character):02X}</i>"
