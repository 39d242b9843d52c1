"""The commands count and stats: their figures beside the oracle, and the page, which shows all and runs nothing."""

from __future__ import annotations

import gzip
import json
import lzma
from pathlib import Path
from typing import Any

import pytest

from fastcompress import BPE, compress
from fastcompress.cli.inputs import file_documents, make_codec
from fastcompress.cli.stats_result import measures
from fastcompress.codec import BPECodec
from tests.reference import statistics as oracle
from tests.test_cli import error_of, run
from tests.test_report import Page
from tests.test_statistics import EN, FR, TEXTS, encoder, trained


@pytest.fixture(scope="module")
def bpe() -> BPE:
    return trained()


@pytest.fixture
def folder(tmp_path: Path, bpe: BPE, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Text files, JSON lines of two languages, and a vocabulary."""
    rows = [{"text": data.decode(), "lang": lang} for lang, data in TEXTS[:2]]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (tmp_path / "en.txt").write_text(EN)
    (tmp_path / "bad<b>.txt").write_text(FR + "<|end|><script>alert(1)</script>")
    bpe.save(tmp_path / "my.bpe")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("codec", ["byte", "my.bpe", "char", "bpe-300", "lz77"])
def test_count_command(codec: str, folder: Path) -> None:
    result = json.loads(run("count", "en.txt", "rows.jsonl", "--codec", codec, "--json").stdout)
    documents = list(file_documents(["en.txt", "rows.jsonl"], "text", None))
    made = make_codec(codec, documents, lambda: documents)
    sizes = [len(made.encode(data)) for data in (EN.encode(), EN.encode(), FR.encode())]
    assert result["tokens"] == sum(sizes)
    assert result["files"]["rows.jsonl"]["tokens"] == sizes[1] + sizes[2]
    assert result["files"]["en.txt"]["bytes_per_token"] == len(EN.encode()) / sizes[0]
    lines = run("count", "en.txt", "rows.jsonl", "--codec", codec).stdout.splitlines()
    assert lines[0].split() == ["file", "documents", "bytes", "tokens", "bytes/token"]
    assert lines[3].split()[:4] == ["total", "3", f"{2 * len(EN) + len(FR.encode()):,}", f"{sum(sizes):,}"]


def test_count_reads_standard_input(folder: Path) -> None:
    for data in (EN.encode(), gzip.compress(EN.encode()), lzma.compress(EN.encode()), compress(EN.encode())):
        result = json.loads(run("count", "-", "--codec", "my.bpe", "--json", stdin=data).stdout)
        assert result["files"]["standard input"]["bytes"] == len(EN)
    assert "is learned from a corpus" in error_of("count", "-", "--codec", "char", stdin=b"x")
    assert "no such file or folder" in error_of("count", "tiny-shakespeare", "--codec", "byte")


def test_stats_command(folder: Path, bpe: BPE) -> None:
    words = ["stats", "rows.jsonl", "--codec", "my.bpe", "--group-by", "lang", "--special", "question"]
    result = json.loads(run(*words, "--json").stdout)
    codec = BPECodec(bpe)
    expected = oracle.counts(TEXTS[:2], encoder(codec))
    assert {name: group["tokens"] for name, group in result["groups"].items()} == {k: v[4] for k, v in expected.items()}
    assert result["parity"] == {"reference": "en", "is_parallel": False}
    assert result["groups"]["en"]["parity"] == 1
    frequencies = oracle.frequencies(TEXTS[:2], encoder(codec))
    special = set(bpe.special_tokens.values())
    assert result["unused"] == [i for i in range(bpe.vocab_size) if not frequencies[i] and i not in special]
    assert result["rare"] == sorted(i for i, n in frequencies.items() if n < 10)
    assert result["special_tokens"] == {"question": {"occurrences": 6, "documents": 2}}
    sizes = sorted(frequencies.values(), reverse=True)
    assert all(sizes[rank - 1] == number for rank, number in result["zipf"])
    assert [result["zipf"][0][0], result["zipf"][-1][0]] == [1, len(sizes)]
    parallel = json.loads(run(*words, "--parallel", "--json").stdout)["groups"]["fr"]["parity"]
    assert parallel == expected["fr"][4] / expected["en"][4]
    shown = run(*words).stdout
    for text in ("bytes/token", "Parity: tokens per token of en for equally many bytes", "by no text", "'question'"):
        assert text in shown
    assert "it must be a group" in error_of(*words, "--reference", "de")


@pytest.mark.parametrize("codec", ["my.bpe", "lz77", "gzip"])
def test_a_page_shows_all_and_runs_nothing(codec: str, folder: Path) -> None:
    words = ["stats", "rows.jsonl", "bad<b>.txt", "--codec", codec, "--special", "<script>", "-o", "page.html"]
    result = json.loads(run(*words, "--json").stdout)
    text = (folder / "page.html").read_text(encoding="utf-8")
    page = Page(text)
    assert page.count("script") == page.count("b") - len(measures(result)) == 0
    assert not [name for tag, attrs in page.tags for name in attrs if name in ("src", "href", "style", "onload")]
    assert "default-src 'none'" in text
    assert "http" not in text.replace("http-equiv", "")
    shown = page.text["th"] + page.text["td"]
    for name, group in result["groups"].items():
        assert name in shown
        assert f"{group['tokens']:,}" in shown
    for token in result["most_frequent"] + (result["vocabulary"] or {"longest": []})["longest"]:
        assert token["shown"] in page.text["code"]
    for name, _, ids in measures(result):
        assert f"{len(ids):,} {name}" in page.text["h3"]
    assert page.count("svg") == 2
    assert "'<script>'" in shown
    assert run(*words[:-1], "-").stdout == text


def test_pages_of_nothing(folder: Path) -> None:
    (folder / "empty.txt").write_bytes(b"")
    for codec in ("byte", "my.bpe", "lz77"):
        result = run("stats", "empty.txt", "--codec", codec, "-o", "-")
        assert "The text has no tokens." in Page(result.stdout).text["p"]
        run("stats", "empty.txt", "--codec", codec)


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 400])
def test_a_browser_shows_the_page_whole(width: int, scheme: str, browser: Any, folder: Path) -> None:
    run("stats", "rows.jsonl", "bad<b>.txt", "--codec", "my.bpe", "-o", "page.html")
    tab = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    complaints: list[str] = []
    requests: list[str] = []
    tab.on("console", lambda message: complaints.append(message.text))
    tab.on("request", lambda request: requests.append(request.url))
    tab.goto((folder / "page.html").as_uri())
    chart = "svg.wide" if width == 1280 else "svg.narrow"
    assert tab.locator("svg.chart:visible").count() == tab.locator(chart).count() == 1
    assert tab.locator(f"{chart} .marker").count() >= 5
    assert tab.locator(".measure:visible").count() == 10
    assert tab.evaluate("document.documentElement.scrollWidth") == width
    style = tab.evaluate("getComputedStyle(document.body).backgroundColor")
    assert style == ("rgb(252, 252, 250)" if scheme == "light" else "rgb(21, 23, 26)")  # the style sheet is on
    assert requests == [(folder / "page.html").as_uri()]
    assert complaints == []
    tab.close()


def test_a_table_of_many_groups_shows_the_largest(folder: Path) -> None:
    rows = [{"text": "x" * (1 + i * 7 % 50), "lang": f"l{i}"} for i in range(50)]
    (folder / "many.jsonl").write_text("\n".join(map(json.dumps, rows)))
    shown = run("stats", "many.jsonl", "--codec", "byte", "--group-by", "lang").stdout.splitlines()
    names = [line.split()[0] for line in shown[1:41]]
    assert names == [f"l{i}" for i in range(50) if i * 7 % 50 >= 10]
    assert shown[41].split()[:3] == ["all", "50", f"{sum(range(1, 51)):,}"]
    assert shown[42] == "(10 smaller groups: --json and -o have them)"
