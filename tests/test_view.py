"""The page of `fastcompress view`: all of the text is on it, once a codec, and none of it runs."""

from __future__ import annotations

import html
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from fastcompress.cli import main
from fastcompress.cli.view_page import make_panel, render
from fastcompress.codec import ByteCodec, LZ77Codec, LZPCodec

TEXT = "<script>alert(1)</script>\n\ttwo  two two\u200b é".encode() + b"\xff\x00"


def texts_of(page: str) -> list[str]:
    """What each panel shows, without marks."""
    shown = []
    for panel in re.findall(r"<pre[^>]*>(.*?)</pre>", page, re.DOTALL):
        panel = re.sub(r"<i>[↵→·]</i>", "", panel)
        panel = re.sub(r"<i>([0-9A-F]{2,4})</i>", lambda match: f"\\{match[1]}", panel)
        shown.append(html.unescape(re.sub(r"</?span[^>]*>", "", panel)))
    return shown


def test_all_of_the_text_is_shown_and_none_runs() -> None:
    page = render("a <b>", TEXT, [make_panel(codec, TEXT) for codec in (LZ77Codec(), LZPCodec())])
    assert texts_of(page) == ["<script>alert(1)</script>\n\ttwo  two two\\200B é\\FF\\00"] * 2
    assert page.count("<script>") == 1
    assert "a &lt;b&gt;" in page
    assert "a <b>" not in page
    assert "script-src 'sha256-" in page


def test_matches_say_where_they_copy_from() -> None:
    page = render("x", b"abcdabcdabcd", [make_panel(LZ77Codec(), b"abcdabcdabcd")])
    assert re.findall(r'data-b="(\d+)" data-e="(\d+)" data-s="(\d+)"', page) == [("4", "12", "0")]


def test_bytes_of_one_character_may_be_tokens() -> None:
    assert texts_of(render("x", "é".encode(), [make_panel(ByteCodec(), "é".encode())])) == ["é"]


def test_command(tmp_path: Path) -> None:
    source, page = tmp_path / "text.txt", tmp_path / "page.html"
    source.write_bytes("abc é abc é abc é".encode() * 100)
    command = [
        "view",
        str(source),
        "--codec",
        "char",
        "--codec",
        "bpe-260",
        "--codec",
        "lz77",
        "--max-bytes",
        "6",
        "-o",
        str(page),
    ]
    result = CliRunner().invoke(main, command)
    assert result.exit_code == 0, result.output
    assert texts_of(page.read_text()) == ["abc é", "abc é", "abc é"]
    assert "5 bytes" not in page.read_text() or "6 bytes" in page.read_text()


@pytest.mark.parametrize(
    "arguments", [["nowhere.txt"], ["--codec", "no-such", __file__], [__file__, "-o", "/no/folder/x.html"]]
)
def test_bad_arguments(arguments: list[str]) -> None:
    assert CliRunner().invoke(main, ["view", *arguments]).exit_code == 1
