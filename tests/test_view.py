"""The page of `fastcompress view`: all of the text is on it, once a codec, and none of it runs."""

from __future__ import annotations

import html
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from fastcompress.bpe import BPE
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


def test_an_empty_file_is_an_empty_page(tmp_path: Path) -> None:
    (tmp_path / "empty").write_bytes(b"")
    for codec in ("lz77", "lz77-buckets", "byte", "lzp", "gzip"):
        result = CliRunner().invoke(main, ["view", str(tmp_path / "empty"), "--codec", codec, "-o", "-"])
        assert result.exit_code == 0, result.output
        assert "The text is empty" in result.stdout
        assert texts_of(result.stdout) == [""]
    result = CliRunner().invoke(main, ["view", str(tmp_path / "empty"), "--codec", "char", "-o", "-"])
    assert result.exit_code == 1
    assert "no characters" in result.stderr


def test_tokens_say_their_ids_and_bytes() -> None:
    data = b"abcdabcdabcd"
    page = render("x", data, [make_panel(codec, data) for codec in (ByteCodec(), LZ77Codec())])
    assert 'title="id 97\n1 byte at 0: 61"' in page
    assert f'title="id {256 + 3 * 255 + 4}\n8 bytes at 4, copied from 0 (4 before): 61 62 63 64 61 62 63 64"' in page
    panel = make_panel(LZ77Codec(alphabet="buckets"), data)
    assert [list(piece.ids) for piece in panel.pieces[:4]] == [[97], [98], [99], [100]]
    assert sum(len(piece.ids) for piece in panel.pieces) == panel.num_tokens
    assert len(panel.pieces[-1].ids) > 1  # a match takes several ids, and the last one makes its bytes known


def test_a_page_says_what_it_shows(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_bytes(b"to be or not to be " * 1000)
    BPE.train("to be or not to be", vocab_size=256).save(tmp_path / "mine.bpe")
    command = ["view", str(tmp_path / "text.txt"), "--codec", str(tmp_path / "mine.bpe"), "--codec", "byte", "-o", "-"]
    page = CliRunner().invoke(main, [*command, "--max-bytes", "190"]).stdout
    assert "The first 190 of 19,000 bytes (1 %)." in page
    assert re.findall("<h2>(.*?)</h2><p>(.*?)</p>", page) == [
        ("mine.bpe", "bpe-256: 190 tokens, 1.00 bytes per token"),
        ("byte", "190 tokens, 1.00 bytes per token"),
    ]


def test_large_pages_are_warned_of_and_limited(tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes(bytes(range(256)) * 250)
    command = ["view", str(tmp_path / "text"), "--codec", "byte", "-o", "-", "--max-bytes"]
    assert "warning: the page has 6 MB" in CliRunner().invoke(main, [*command, "64000"]).stderr
    assert "warning" not in CliRunner().invoke(main, [*command, "1000"]).stderr
    assert CliRunner().invoke(main, [*command, "1000001"]).exit_code == 2


@pytest.mark.parametrize(
    "arguments", [["nowhere.txt"], ["--codec", "no-such", __file__], [__file__, "-o", "/no/folder/x.html"]]
)
def test_bad_arguments(arguments: list[str]) -> None:
    assert CliRunner().invoke(main, ["view", *arguments]).exit_code == 1
