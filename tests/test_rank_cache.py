"""Published rank files: found in tiktoken's cache, checked, or downloaded. No test touches the network."""

from __future__ import annotations

import hashlib
import io
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from fastcompress import BPE
from fastcompress.errors import FastcompressError, FormatError, MissingFileError, OutputError
from fastcompress.formats.published_ranks import PUBLISHED_ENCODINGS, RankSource
from fastcompress.formats.rank_cache import cached_path, published_file

CONTENT = b"the content of a published file"
SOURCE = RankSource("encodings/x.tiktoken", hashlib.sha256(CONTENT).hexdigest())
OTHER = RankSource("encodings/y.tiktoken", hashlib.sha256(b"other").hexdigest())


class Network:
    """Stands for urlopen: answers with `content`, or raises it."""

    def __init__(self, content: bytes | BaseException) -> None:
        self.content = content
        self.urls: list[str] = []

    def __call__(self, url: str, timeout: float) -> io.BytesIO:
        assert timeout > 0
        self.urls.append(url)
        if isinstance(self.content, BaseException):
            raise self.content
        return io.BytesIO(self.content)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder, not made yet."""
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("DATA_GYM_CACHE_DIR", raising=False)
    monkeypatch.delenv("FASTCOMPRESS_OFFLINE", raising=False)
    return tmp_path / "cache"


def network(monkeypatch: pytest.MonkeyPatch, content: bytes | BaseException) -> Network:
    fake = Network(content)
    monkeypatch.setattr(urllib.request, "urlopen", fake)
    return fake


def test_file_names_are_tiktokens() -> None:
    """The name that users find in tiktoken's cache."""
    source = PUBLISHED_ENCODINGS["cl100k_base"].sources[0]
    assert cached_path(Path("x"), source) == Path("x/9b5ad71b2ce5302211f9c61530b329a4922fc6a4")


def test_a_cached_file_is_used_and_nothing_asked(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = network(monkeypatch, OSError("no network"))
    cache.mkdir()
    cached_path(cache, SOURCE).write_bytes(CONTENT)
    assert published_file([OTHER, SOURCE]) == (SOURCE, CONTENT)  # any of the sources will do
    assert fake.urls == []


def test_a_download_is_cached(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = network(monkeypatch, CONTENT)
    assert published_file([SOURCE, OTHER]) == (SOURCE, CONTENT)
    assert published_file([SOURCE, OTHER]) == (SOURCE, CONTENT)
    assert fake.urls == [SOURCE.url]
    assert [path.read_bytes() for path in cache.iterdir()] == [CONTENT]


@pytest.mark.parametrize(
    "variables", [{"TIKTOKEN_CACHE_DIR": "a", "DATA_GYM_CACHE_DIR": "b"}, {"DATA_GYM_CACHE_DIR": "a"}, {}]
)
def test_which_folder(variables: dict[str, str], cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    network(monkeypatch, CONTENT)
    monkeypatch.delenv("TIKTOKEN_CACHE_DIR")
    for variable, folder in variables.items():
        monkeypatch.setenv(variable, str(tmp_path / folder))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    published_file([SOURCE])
    assert cached_path(tmp_path / ("a" if variables else "data-gym-cache"), SOURCE).read_bytes() == CONTENT


def test_an_empty_variable_turns_the_cache_off(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = network(monkeypatch, CONTENT)
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", "")
    assert published_file([SOURCE]) == published_file([SOURCE])
    assert len(fake.urls) == 2
    network(monkeypatch, urllib.error.URLError("unreachable"))
    with pytest.raises(MissingFileError, match=r"x\.tiktoken is not available: the cache is off.*unreachable"):
        published_file([SOURCE])


def test_a_damaged_copy_is_replaced(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.mkdir()
    cached_path(cache, SOURCE).write_bytes(CONTENT[:-1])
    network(monkeypatch, urllib.error.URLError("unreachable"))
    with pytest.raises(MissingFileError, match=r"has a wrong SHA-256 \(a damaged copy\), and .*unreachable"):
        published_file([SOURCE])
    network(monkeypatch, CONTENT)
    assert published_file([SOURCE]) == (SOURCE, CONTENT)
    assert cached_path(cache, SOURCE).read_bytes() == CONTENT


def test_a_wrong_download_is_refused_and_not_cached(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    network(monkeypatch, b"<html>please log in</html>")
    with pytest.raises(FormatError, match=r"x\.tiktoken: the download has 26 bytes and a wrong SHA-256"):
        published_file([SOURCE])
    assert not cache.exists()


def test_a_folder_that_cannot_be_written(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The user's own: an error, since every process would download again. The default one: no harm."""
    network(monkeypatch, CONTENT)
    cache.write_text("a file where the folder should be")
    with pytest.raises(OutputError, match=r"TIKTOKEN_CACHE_DIR"):
        published_file([SOURCE])
    monkeypatch.delenv("TIKTOKEN_CACHE_DIR")
    (tmp_path / "data-gym-cache").write_text("here too")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert published_file([SOURCE]) == (SOURCE, CONTENT)


def test_a_link_in_the_folder_is_not_followed(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a shared folder another user may have put it there."""
    victim = tmp_path / "victim"
    victim.write_text("precious")
    cache.mkdir()
    cached_path(cache, SOURCE).symlink_to(victim)
    network(monkeypatch, CONTENT)
    published_file([SOURCE])
    assert victim.read_text() == "precious"
    assert cached_path(cache, SOURCE).read_bytes() == CONTENT
    assert len(list(cache.iterdir())) == 1


@pytest.mark.parametrize(
    "reason", [urllib.error.URLError("unreachable"), TimeoutError("timed out"), ConnectionError("x")]
)
def test_offline_with_an_empty_cache(cache: Path, reason: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    network(monkeypatch, reason)
    begin = time.perf_counter()
    with pytest.raises(MissingFileError) as caught:
        BPE.from_tiktoken("cl100k_base")
    assert time.perf_counter() - begin < 1
    assert isinstance(caught.value, FileNotFoundError)
    for part in ("cl100k_base.tiktoken", str(cache), "9b5ad71b2ce53022", "TIKTOKEN_CACHE_DIR"):
        assert part in str(caught.value)


def test_offline_by_order(cache: Path) -> None:
    """In a process of its own, whose network is as it is: nobody asks it."""
    script = (
        "import socket, time\n"
        "def refuse(*arguments, **options): raise AssertionError('the network was asked')\n"
        "socket.socket = socket.getaddrinfo = refuse\n"
        "from fastcompress.compat.tiktoken import get_encoding\n"
        "begin = time.perf_counter()\n"
        "try: get_encoding('o200k_base')\n"
        "except FileNotFoundError as error: print(f'{time.perf_counter() - begin:.3f}', error)\n"
    )
    environment = {**os.environ, "FASTCOMPRESS_OFFLINE": "1"}
    output = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    seconds, message = output.stdout.split(" ", 1)
    assert float(seconds) < 0.5
    assert "o200k_base.tiktoken is not available" in message
    assert "FASTCOMPRESS_OFFLINE is set" in message


# ---------------------------------------------------------------------- the files themselves


@pytest.mark.parametrize("name", PUBLISHED_ENCODINGS)
def test_published_encodings_load(name: str, tiktoken_cache: Path) -> None:
    encoding = PUBLISHED_ENCODINGS[name]
    tok = BPE.from_tiktoken(name)
    assert (tok.pattern, tok.special_tokens) == (encoding.pattern, dict(encoding.special_tokens))
    assert tok.vocab_size == max(encoding.special_tokens.values()) + 1 + (name == "p50k_base") * 24
    changed: dict[str, Any] = {"pattern": "whitespace", "special_tokens": {"<|mine|>": 201_088}}
    tok = BPE.from_tiktoken(name, **changed)
    assert (tok.pattern, tok.special_tokens) == ("whitespace", {"<|mine|>": 201_088})


def test_gpt2_from_the_merges_that_tiktoken_caches(
    tiktoken_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = BPE.from_tiktoken("r50k_base")
    merges = next(s for s in PUBLISHED_ENCODINGS["gpt2"].sources if s.is_merge_list)
    cached_path(tmp_path, merges).write_bytes(cached_path(tiktoken_cache, merges).read_bytes())
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    assert BPE.from_tiktoken("gpt2") == expected
    assert BPE.from_tiktoken("r50k_base") == expected


def test_names_and_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    monkeypatch.chdir(tmp_path)
    Path("gpt2").write_bytes(b"YQ== 0\n")
    with pytest.raises(FastcompressError, match=r"^gpt2: no token is the single byte 0"):
        BPE.from_tiktoken(Path("gpt2"), pattern="gpt2")
    with pytest.raises(FastcompressError, match=r"give pattern= with 'my\.tiktoken', or the name .*cl100k_base"):
        BPE.from_tiktoken("my.tiktoken")
    with pytest.raises(FileNotFoundError):
        BPE.from_tiktoken("my.tiktoken", pattern="gpt2")
