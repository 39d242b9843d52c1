"""The page of `fastcompress view`: a text, split by several codecs side by side.

The page is one file without references to others. Its content security policy allows only the style sheet and the
script of the template, by their hashes, so nothing in the text can run as a script.
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
_MAX_TITLE_BYTES = 24


@dataclass(frozen=True)
class Piece:
    """A token on the page.

    Attributes:
        begin: The position of its first byte in the text.
        end: The position after its last byte.
        ids: The ids that stand for it.
        distance: The distance of a match, or 0.
    """

    begin: int
    end: int
    ids: Sequence[int]
    distance: int = 0


@dataclass(frozen=True)
class Panel:
    """The tokens of one codec."""

    title: str
    codec_name: str
    num_tokens: int
    pieces: Sequence[Piece]


def make_panel(codec: Codec, data: bytes, title: str | None = None) -> Panel:
    """Encode `data`. Ids that decode to no bytes by themselves are shown together with the next one that does.

    Args:
        codec: The codec to show.
        data: The text.
        title: The panel's title, such as the name of the codec's file; None for the codec's name.
    """
    from fastcompress.codec import LZ77Codec

    tokens = codec.encode(data)
    lengths = codec.byte_lengths(tokens)
    shown = np.flatnonzero(lengths)
    ends = np.cumsum(lengths)[shown].tolist()
    if isinstance(codec, LZ77Codec):
        parsed = codec.columns(tokens)
        distances = np.where(parsed.kind == 1, parsed.value, 0).tolist()
    else:
        distances = [0] * len(ends)
    pieces, begin, ids_begin, ids = [], 0, 0, tokens.tolist()
    for end, ids_end, distance in zip(ends, (shown + 1).tolist(), distances, strict=True):
        pieces.append(Piece(begin, end, ids[ids_begin:ids_end], distance))
        begin, ids_begin = end, ids_end
    return Panel(codec.name if title is None else title, codec.name, len(tokens), pieces)


def render(title: str, data: bytes, panels: Sequence[Panel], num_bytes: int | None = None) -> str:
    """Return the page. Equal arguments give equal pages.

    Args:
        title: The name of the text.
        data: The bytes that are shown.
        panels: The tokens of these bytes, per codec.
        num_bytes: The size of the whole text; None if all of it is shown.
    """
    template = resources.files("fastcompress.cli").joinpath("view_template.html").read_text(encoding="utf-8")
    return Template(template).substitute(
        title=html.escape(title),
        share=_share(len(data), len(data) if num_bytes is None else num_bytes),
        style_hash=element_hash(template, "style"),
        script_hash=element_hash(template, "script"),
        panels="\n".join(_panel(panel, data) for panel in panels),
    )


def _panel(panel: Panel, data: bytes) -> str:
    ratio = f", {len(data) / panel.num_tokens:.2f} bytes per token" if panel.num_tokens else ""
    named = "" if panel.title == panel.codec_name else f"{html.escape(panel.codec_name)}: "
    plural = "" if panel.num_tokens == 1 else "s"
    tokens, characters, at = [], _characters(data), 0
    for i, piece in enumerate(panel.pieces):
        begin = at
        while at < len(characters) and characters[at][0] <= piece.end:
            at += 1
        text = "".join(_shown(character) for _, character in characters[begin:at])
        tokens.append(_token(piece, data, text or "<i>·</i>", i % _NUM_COLOURS))
    return (
        f"<section><h2>{html.escape(panel.title)}</h2><p>{named}{panel.num_tokens:,} token{plural}{ratio}</p>"
        f'<pre tabindex="0">{"".join(tokens)}</pre></section>'
    )


def _characters(data: bytes) -> list[tuple[int, str]]:
    """Return the characters of the text, each with the offset of its end; bytes that are not UTF-8 are lone surrogates.

    A token shows the characters that end in it, or a dot if there are none.
    """
    characters, end = [], 0
    for character in data.decode("utf-8", "surrogateescape"):
        end += 1 if "\udc80" <= character <= "\udcff" else len(character.encode())
        characters.append((end, character))
    return characters


def _share(num_shown: int, num_bytes: int) -> str:
    if num_bytes == 0:
        return "The text is empty, so there are no tokens."
    if num_shown == num_bytes:
        return f"{num_bytes:,} byte{'s' * (num_bytes != 1)}, all shown."
    return f"The first {num_shown:,} of {num_bytes:,} bytes ({100 * num_shown / num_bytes:.2g} %)."


def _token(piece: Piece, data: bytes, text: str, colour: int) -> str:
    """Return a token as a span, whose title shows its ids, position and bytes."""
    size = piece.end - piece.begin
    spelled = data[piece.begin : min(piece.end, piece.begin + _MAX_TITLE_BYTES)].hex(" ")
    spelled += " …" * (size > _MAX_TITLE_BYTES)
    what = f"id{'s' * (len(piece.ids) != 1)} {' '.join(map(str, piece.ids))}\n{size} byte{'s' * (size != 1)} at "
    if piece.distance == 0:
        what += f"{piece.begin}: {spelled}"
        return f'<span class="c{colour}" data-b="{piece.begin}" data-e="{piece.end}" title="{what}">{text}</span>'
    source = piece.begin - piece.distance
    what += f"{piece.begin}, copied from {source} ({piece.distance} before): {spelled}"
    return (
        f'<span class="c{colour} m" data-b="{piece.begin}" data-e="{piece.end}" data-s="{source}" title="{what}">'
        f"{text}</span>"
    )


def _shown(character: str) -> str:
    """Return a character as HTML: line breaks and tabs are marked, invisible characters and bytes hexadecimal."""
    if "\udc80" <= character <= "\udcff":
        return f"<i>{ord(character) - 0xDC00:02X}</i>"
    if character in "\n\t":
        return "<i>↵</i>\n" if character == "\n" else "<i>→</i>\t"
    return html.escape(character) if character.isprintable() else f"<i>{ord(character):02X}</i>"
