"""Corpora: where documents come from, how they are divided, and what is not a corpus."""

from __future__ import annotations

import errno
import gzip
import hashlib
import json
import lzma
import os
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastcompress.codec import ByteCodec
from fastcompress.data import sources
from fastcompress.data.corpora import SPLITS, Corpus, Document, load_corpus, split_documents
from fastcompress.data.inputs import folder_files, path_documents
from fastcompress.data.shards import write_shards
from fastcompress.errors import ConfigError, DataError, FormatError


def documents_of(*contents: bytes) -> list[Document]:
    return [Document(str(i), content) for i, content in enumerate(contents)]


def contents_of(corpus: Corpus) -> dict[str, list[bytes]]:
    return {split: [document.data for document in getattr(corpus, split)] for split in SPLITS}


def all_contents(corpus: Corpus) -> list[bytes]:
    return [*contents_of(corpus)["train"], *contents_of(corpus)["validation"], *contents_of(corpus)["test"]]


def write_rows(path: Path, *texts: str, key: str = "text") -> Path:
    blob = "".join(json.dumps({key: text}, ensure_ascii=False) + "\n" for text in texts).encode()
    opened = {".xz": lzma.open, ".gz": gzip.open}.get(path.suffix, open)
    with opened(path, "wb") as file:
        file.write(blob)
    return path


# --- Dividing --------------------------------------------------------------------------------------------


@given(st.lists(st.binary(max_size=12), max_size=30))
def test_every_document_lands_in_one_split(contents):
    distinct = list(dict.fromkeys(content for content in contents if content))
    if len(distinct) < 2:
        return
    corpus = split_documents("c", documents_of(*contents))
    splits = contents_of(corpus)
    assert sorted(all_contents(corpus)) == sorted(distinct)
    assert splits["train"]
    assert splits["validation"]
    assert splits["test"] or len(distinct) == 2
    for split in splits.values():
        assert split == [content for content in distinct if content in split]  # order kept
    assert corpus.num_empty == contents.count(b"")
    assert corpus.num_repeats == len(contents) - corpus.num_empty - len(distinct)


@given(st.lists(st.binary(min_size=1, max_size=12), min_size=3, max_size=40, unique=True), st.randoms())
def test_order_and_company_do_not_matter(contents, random):
    corpus = split_documents("c", documents_of(*contents))
    shuffled = list(contents)
    random.shuffle(shuffled)
    again = split_documents("other name", documents_of(*shuffled))
    assert {k: set(v) for k, v in contents_of(again).items()} == {k: set(v) for k, v in contents_of(corpus).items()}
    # Beside many others, each lands where its own hash says: none is moved to fill an empty split.
    others = [b"company %d" % i for i in range(200)]
    company = contents_of(split_documents("c", documents_of(*contents, *others)))
    for content in contents:
        twentieth = int.from_bytes(hashlib.sha256(content).digest()[:8], "big") * 20 // 2**64
        expected = "test" if twentieth == 0 else "validation" if twentieth == 1 else "train"
        assert content in company[expected]


def test_shares_are_ninety_five_five():
    corpus = split_documents("c", documents_of(*(b"document %d" % i for i in range(20_000))))
    for split, share in zip(SPLITS, (0.90, 0.05, 0.05), strict=True):
        assert abs(len(getattr(corpus, split)) / 20_000 - share) < 0.01


def test_one_document_is_cut_before_its_last_tenth():
    corpus = split_documents("book", documents_of(b"0123456789" * 7))
    assert contents_of(corpus) == {
        "train": [b"0123456789" * 6 + b"012"],
        "validation": [b"3456789"],
        "test": [],
    }
    assert (corpus.is_single, corpus.num_bytes("train"), corpus.num_bytes("test")) == (True, 63, 0)
    with pytest.raises(DataError, match=r"book: has no test split \(it is one document, .*; use another split"):
        corpus.split("test")
    repeated = split_documents("book", documents_of(b"", b"0123456789" * 7, b"0123456789" * 7))
    assert contents_of(repeated) == contents_of(corpus)
    assert (repeated.num_empty, repeated.num_repeats) == (1, 1)


@given(st.text(min_size=2, max_size=40))
def test_the_cut_falls_between_characters(text):
    data = text.encode()
    corpus = split_documents("c", documents_of(data))
    begin, end = corpus.train[0].data, corpus.validation[0].data
    assert begin + end == data
    assert begin.decode() + end.decode() == text
    assert 0 <= max(1, len(data) * 9 // 10) - len(begin) <= 3 or len(begin) <= 4


@pytest.mark.parametrize("data", [b"ab", b"\x80" * 50, b"\x00" * 20, bytes(range(256)), b"\xff\xfe"])
def test_binary_documents_are_cut_too(data):
    corpus = split_documents("c", documents_of(data))
    assert corpus.train[0].data + corpus.validation[0].data == data
    assert corpus.train[0].data
    assert corpus.validation[0].data


def test_too_little_to_divide():
    with pytest.raises(DataError, match="c: holds 1 byte"):
        split_documents("c", documents_of(b"x"))
    with pytest.raises(DataError, match="c: holds no documents"):
        split_documents("c", [])
    with pytest.raises(DataError, match="c: holds 2 empty documents"):
        split_documents("c", documents_of(b"", b""))
    corpus = split_documents("pair", documents_of(b"x", b"y"))
    assert (len(corpus.train), len(corpus.validation), len(corpus.test)) == (1, 1, 0)
    with pytest.raises(DataError, match=r"pair: has no test split \(it is too small\)"):
        corpus.split("test")
    for call in (corpus.split, corpus.num_bytes):
        with pytest.raises(ConfigError, match="name is 'val'; it must be one of train, validation, test"):
            call("val")


def test_fingerprints_cover_contents_and_splits_only():
    def make(train: bytes, validation: bytes, name: str = "c") -> str:
        return Corpus(name, (Document(name, train),), (Document(name, validation),), ()).fingerprint

    assert make(b"ab", b"c") == make(b"ab", b"c", "other")
    assert len({make(b"ab", b"c"), make(b"a", b"bc"), make(b"c", b"ab"), make(b"abc", b"")}) == 4


# --- Sources ---------------------------------------------------------------------------------------------


def test_python_docs_are_the_help_topics():
    corpus = load_corpus("python-docs")
    assert 300_000 < sum(map(corpus.num_bytes, SPLITS)) < 3_000_000
    texts = b"\n".join(all_contents(corpus))
    assert b'The "if" statement' in texts
    assert load_corpus("python-docs").fingerprint == corpus.fingerprint
    ids = [document.id for document in corpus.train]
    assert ids == sorted(ids)


def test_python_source_is_the_library_without_tests():
    corpus = load_corpus("python-source")
    documents = [document for split in SPLITS for document in corpus.split(split)]
    ids = {document.id for document in documents}
    assert {"json/decoder.py", "abc.py", "asyncio/tasks.py"} <= ids
    assert not any("test" in Path(id).parts or "site-packages" in id for id in ids)
    assert 3_000_000 < sum(len(document.data) for document in documents) < 40_000_000
    assert max(len(document.data) for document in documents) <= 1 << 18
    json_source = next(document for document in documents if document.id == "json/decoder.py")
    assert json_source.data == Path(json.__path__[0], "decoder.py").read_bytes()


def test_a_python_without_its_texts_says_so(monkeypatch, tmp_path):
    monkeypatch.setitem(__import__("sys").modules, "pydoc_data.topics", None)
    with pytest.raises(DataError, match="python-docs: this Python comes without pydoc_data"):
        load_corpus("python-docs")
    monkeypatch.setattr("sysconfig.get_paths", lambda: {"stdlib": str(tmp_path)})
    with pytest.raises(DataError, match=r"python-source: no \.py files"):
        load_corpus("python-source")


def test_tiny_shakespeare_in_the_data_folder(data_directory, monkeypatch, tmp_path):
    monkeypatch.setenv("FASTCOMPRESS_DATA", str(data_directory))
    monkeypatch.setattr(sources, "cache_folder", lambda: tmp_path / "cache")
    corpus = load_corpus("tiny-shakespeare")
    assert (corpus.num_bytes("train"), corpus.num_bytes("validation")) == (1_003_854, 111_540)
    assert corpus.train[0].data.startswith(b"First Citizen:\nBefore we proceed")
    # The same text by path is the same corpus, and nothing was cached.
    assert load_corpus(str(data_directory / "tinyshakespeare.txt")).fingerprint == corpus.fingerprint
    assert not (tmp_path / "cache").exists()
    (tmp_path / "tinyshakespeare.txt").write_text("Another text")
    monkeypatch.setenv("FASTCOMPRESS_DATA", str(tmp_path))
    with pytest.raises(DataError, match=r"tinyshakespeare\.txt: is not Tiny Shakespeare"):
        load_corpus("tiny-shakespeare")


@pytest.fixture
def server(monkeypatch, tmp_path):
    """A local web server in place of Tiny Shakespeare's home; answers with `server.body`, counts requests."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.server.num_requests += 1
            self.send_response(200)
            self.send_header("Content-Length", str(len(self.server.body)))
            self.end_headers()
            self.wfile.write(self.server.body)

        def log_message(self, *args):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    server.num_requests = 0
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    body = b"To be, or not to be\n" * 10
    server.body = body
    monkeypatch.delenv("FASTCOMPRESS_DATA", raising=False)
    monkeypatch.delenv("FASTCOMPRESS_OFFLINE", raising=False)
    monkeypatch.setattr(sources, "TINY_SHAKESPEARE_URL", f"http://127.0.0.1:{server.server_port}/input.txt")
    monkeypatch.setattr(sources, "TINY_SHAKESPEARE_SHA256", hashlib.sha256(body).hexdigest())
    monkeypatch.setattr(sources, "cache_folder", lambda: tmp_path / "cache")
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_tiny_shakespeare_is_downloaded_once(server, tmp_path):
    first = load_corpus("tiny-shakespeare")
    assert first.train[0].data + first.validation[0].data == server.body
    assert load_corpus("tiny-shakespeare").fingerprint == first.fingerprint
    assert server.num_requests == 1
    (cached,) = (tmp_path / "cache").iterdir()
    cached.write_bytes(server.body[:-1])  # a damaged cache is fetched again
    assert load_corpus("tiny-shakespeare").fingerprint == first.fingerprint
    assert server.num_requests == 2
    assert cached.read_bytes() == server.body


def test_a_wrong_or_no_download_names_the_three_ways(server, tmp_path, monkeypatch):
    ways = r"name that file as the corpus, or put it at .*tinyshakespeare\.txt, or .* FASTCOMPRESS_DATA"
    server.body = b"<html>Please log in</html>"
    with pytest.raises(DataError, match=f"its SHA-256 is wrong; .*{ways}"):
        load_corpus("tiny-shakespeare")
    monkeypatch.setattr(sources, "TINY_SHAKESPEARE_URL", "http://127.0.0.1:9/input.txt")
    with pytest.raises(DataError, match=rf"cannot be downloaded \(.*; {'.*'}{ways}"):
        load_corpus("tiny-shakespeare")
    assert not (tmp_path / "cache").exists()


def test_a_cache_that_cannot_be_written_costs_nothing(server, tmp_path):
    (tmp_path / "cache").write_text("a file, not a folder")
    assert load_corpus("tiny-shakespeare").train[0].data.startswith(b"To be")


def test_cache_folder_follows_the_platform(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", "/home/somebody")
    for platform, variable, expected in (
        ("linux", "XDG_CACHE_HOME", "/home/somebody/.cache/fastcompress"),
        ("darwin", "IGNORED", "/home/somebody/Library/Caches/fastcompress"),
        ("win32", "LOCALAPPDATA", "/home/somebody/AppData/Local/fastcompress"),
    ):
        monkeypatch.setattr("sys.platform", platform)
        monkeypatch.delenv(variable, raising=False)
        assert sources.cache_folder().as_posix() == expected
        if platform != "darwin":
            monkeypatch.setenv(variable, str(tmp_path))
            assert sources.cache_folder() == tmp_path / "fastcompress"


@pytest.mark.parametrize("suffix", [".jsonl", ".jsonl.gz", ".jsonl.xz"])
def test_json_lines_split_on_newlines_only(tmp_path, suffix):
    texts = ["one\u2028still one\x85\x0b\x0c\r", "two\ntwo", "", "three \U0001f600\x00"]
    corpus = load_corpus(str(write_rows(tmp_path / f"rows{suffix}", *texts)))
    assert sorted(all_contents(corpus)) == sorted(t.encode() for t in texts if t)
    assert (corpus.name, corpus.num_empty) == (f"rows{suffix}", 1)
    assert {d.id for split in SPLITS for d in getattr(corpus, split)} == {f"rows{suffix}:{n}" for n in (1, 2, 4)}


def test_json_lines_under_another_key_with_ids_and_blank_lines(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b'\n{"body": "a", "id": "x"}\r\n   \n{"id": 5, "body": "b"}')
    corpus = load_corpus(str(path), text_key="body")
    documents = [document for split in SPLITS for document in getattr(corpus, split)]
    assert {(document.id, document.data) for document in documents} == {("x", b"a"), ("rows.jsonl:4", b"b")}


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b"{", "is not JSON"),
        (b"[" * 100_000, "is not JSON"),
        (b'{"text": "\xff"}', "is not JSON"),
        (b'["text"]', "has no string under 'text'; name the key"),
        (b'{"txt": "a"}', "has no string under 'text'"),
        (b'{"text": null}', "has no string under 'text'"),
        (b'{"text": "\\ud800"}', "has half a surrogate pair"),
    ],
)
def test_bad_lines_are_named_by_number(tmp_path, line, problem):
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b'{"text": "fine"}\n\n' + line + b"\n")
    with pytest.raises(DataError, match=rf"rows\.jsonl: line 3 .*{problem}"):
        load_corpus(str(path))


@pytest.mark.parametrize("suffix", [".jsonl.gz", ".jsonl.xz"])
def test_damaged_compressed_files_are_named(tmp_path, suffix):
    path = write_rows(tmp_path / f"rows{suffix}", *(f"text {i}" for i in range(2000)))
    good = path.read_bytes()
    flipped = bytearray(good)
    flipped[len(good) // 2] ^= 0xFF
    for bad in (good[: len(good) // 2], b"not compressed", bytes(flipped)):
        path.write_bytes(bad)
        with pytest.raises((FormatError, DataError), match=rf"rows\{suffix}: "):
            load_corpus(str(path))
    path.write_bytes(b"not compressed")
    with pytest.raises(FormatError, match="damaged or truncated"):
        load_corpus(str(path))


def test_folders_are_read_in_order_without_hidden_files(tmp_path):
    for name in ("b.txt", "a/z.bin", "a/rows.jsonl", ".hidden", ".git/config", "a/.cache/x", "empty.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(name.encode())
    (tmp_path / "empty.txt").write_bytes(b"")
    (tmp_path / "a/z.bin").write_bytes(b"\x00\xff\x80")
    write_rows(tmp_path / "a/rows.jsonl", "row 1", "row 2")
    assert [file.path.relative_to(tmp_path).as_posix() for file in folder_files(tmp_path)] == [
        "a/rows.jsonl",
        "a/z.bin",
        "b.txt",
        "empty.txt",
    ]
    documents = list(path_documents(tmp_path))
    assert [(d.id, d.data) for d in documents] == [
        ("rows.jsonl:1", b"row 1"), ("rows.jsonl:2", b"row 2"), ("a/z.bin", b"\x00\xff\x80"),
        ("b.txt", b"b.txt"), ("empty.txt", b""),
    ]  # fmt: skip
    corpus = load_corpus(str(tmp_path))
    assert (corpus.name, corpus.num_empty) == (tmp_path.name, 1)
    assert sum(len(getattr(corpus, split)) for split in SPLITS) == 4


def test_folders_that_are_divided_already_stay_so(tmp_path):
    write_rows(tmp_path / "code-train-00.jsonl.xz", "t1", "t2", "leak", "t1")
    write_rows(tmp_path / "code-train-01.jsonl.gz", "t3", "tested")
    write_rows(tmp_path / "val.jsonl", "v1", "leak", "tested")
    write_rows(tmp_path / "test.jsonl", "tested")
    corpus = load_corpus(str(tmp_path))
    assert contents_of(corpus) == {
        "train": [b"t1", b"t2", b"t3"],
        "validation": [b"v1", b"leak"],
        "test": [b"tested"],
    }
    assert corpus.num_repeats == 4
    (tmp_path / "test.jsonl").unlink()
    assert contents_of(load_corpus(str(tmp_path)))["test"] == []
    divided = load_corpus(str(tmp_path))
    (tmp_path / "README.md").write_text("no split word: nothing to train on or to be scored on")
    (tmp_path / "train-or-test.jsonl").write_text("two split words are none")
    again = load_corpus(str(tmp_path))
    assert (again.fingerprint, again.num_undeclared) == (divided.fingerprint, 2)
    assert divided.num_undeclared == 0


@pytest.mark.parametrize(
    ("train", "validation", "test"),
    [
        ("train.txt", "validation.txt", "test.txt"),
        ("wiki.train.tokens", "wiki.valid.tokens.xz", "wiki.test.tokens.gz"),
        ("ptb.train", "ptb.dev", "ptb.test"),
        ("a/train", "b/val", "c/test"),
        ("book.txt", "val.raw", "test.raw"),
    ],
)
def test_text_files_declare_splits_too(tmp_path, train, validation, test):
    for split, name in (("train", train), ("validation", validation), ("test", test)):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        opened = {".xz": lzma.open, ".gz": gzip.open}.get(path.suffix, open)
        with opened(path, "wb") as file:
            file.write(split.encode())
    corpus = load_corpus(str(tmp_path))
    assert contents_of(corpus) == {"train": [b"train"], "validation": [b"validation"], "test": [b"test"]}


def test_a_folder_of_programs_declares_nothing(tmp_path):
    for name in ("train.py", "test_train.py", "model.py", "data.py"):
        (tmp_path / name).write_text(name)
    corpus = load_corpus(str(tmp_path))
    assert len(all_contents(corpus)) == 4
    assert corpus.num_undeclared == 0


def test_one_declared_split_divides_nothing(tmp_path):
    for name in ("train.txt", "more.txt", "rest.txt"):
        (tmp_path / name).write_text(name)
    corpus = load_corpus(str(tmp_path))
    assert len(all_contents(corpus)) == 3
    assert corpus.num_undeclared == 0


def test_one_training_text_without_validation_is_cut(tmp_path):
    (tmp_path / "train.txt").write_text("0123456789")
    (tmp_path / "test.txt").write_text("tested")
    expected = {"train": [b"012345678"], "validation": [b"9"], "test": [b"tested"]}
    assert contents_of(load_corpus(str(tmp_path))) == expected


def test_folders_without_validation_take_it_from_train(tmp_path):
    write_rows(tmp_path / "train.jsonl", *(f"document {i}" for i in range(300)))
    write_rows(tmp_path / "test.jsonl", *(f"tested {i}" for i in range(30)))
    corpus = load_corpus(str(tmp_path))
    assert [document.data for document in corpus.test] == [b"tested %d" % i for i in range(30)]
    assert 3 <= len(corpus.validation) <= 40
    assert len(corpus.train) + len(corpus.validation) == 300


def test_the_english_folder_opens(data_directory):
    path = data_directory / "english" / "train-20m.jsonl.xz"
    corpus = load_corpus(str(path), max_bytes=2_000_000)
    assert 1_800_000 < sum(map(corpus.num_bytes, SPLITS)) <= 2_000_000
    divided = load_corpus(str(data_directory / "english"), max_bytes=1_000_000)
    assert all(800_000 < divided.num_bytes(split) <= 1_000_000 for split in SPLITS)
    with lzma.open(data_directory / "english" / "val.jsonl.xz") as file:
        assert divided.validation[0].data == json.loads(file.readline())["text"].encode()


# --- Limits and bad input --------------------------------------------------------------------------------


def test_max_bytes_takes_the_front_and_cuts_the_last_document(tmp_path):
    path = write_rows(tmp_path / "rows.jsonl", "aaaa", "bbb", "cccc", "d")
    for limit, expected in (
        (12, [b"aaaa", b"bbb", b"cccc", b"d"]),
        (11, [b"aaaa", b"bbb", b"cccc"]),
        (9, [b"aaaa", b"bbb", b"cc"]),
        (7, [b"aaaa", b"bbb"]),
    ):
        assert sorted(all_contents(load_corpus(str(path), max_bytes=limit))) == expected
    (tmp_path / "text").write_text("0123é56789")
    corpus = load_corpus(str(tmp_path / "text"), max_bytes=5)
    assert corpus.train[0].data + corpus.validation[0].data == b"0123"
    with pytest.raises(ConfigError, match="max_bytes is 0"):
        load_corpus(str(path), max_bytes=0)


def test_a_cut_document_stays_in_its_split(tmp_path):
    """Else a limit could move the beginning of a held-out document into train."""
    texts = [f"document number {i}" for i in range(200)]
    path = write_rows(tmp_path / "rows.jsonl", *texts)
    whole = contents_of(load_corpus(str(path)))
    num_cut = 0
    for last in range(20, 200):
        limit = sum(map(len, texts[:last])) + 14
        limited = contents_of(load_corpus(str(path), max_bytes=limit))
        [split] = [split for split in SPLITS if b"document numbe" in limited[split]]
        home = texts[last].encode()
        if all(len(whole[s]) > 1 and len(limited[s]) > 1 for s in SPLITS):
            assert home in whole[split]
            num_cut += split != "train"
    assert num_cut > 5


@pytest.mark.parametrize("suffix", [".gz", ".xz"])
def test_compressed_text_is_read(tmp_path, suffix):
    text = "naïve text\n" * 50
    path = tmp_path / f"small.txt{suffix}"
    with {".xz": lzma.open, ".gz": gzip.open}[suffix](path, "wb") as file:
        file.write(text.encode())
    assert b"".join(all_contents(load_corpus(str(path)))) == text.encode()
    assert [(d.id, d.data) for d in path_documents(tmp_path)] == [(path.name, text.encode())]
    path.write_bytes(path.read_bytes()[:30])
    with pytest.raises(FormatError, match=rf"small\.txt\{suffix}: damaged or truncated"):
        load_corpus(str(path))


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("a.orc", "write its text as JSON lines"),
        ("a.txt.lz4", "decompress it"),
        ("a.TAR.GZ", "unpack it"),
        ("00000.shard", "train on the folder of shards"),
        ("a.npy", "name the text"),
    ],
)
def test_files_that_are_no_text_are_refused(tmp_path, name, remedy):
    (tmp_path / name).write_bytes(b"would train well, but on nonsense")
    with pytest.raises(DataError, match=rf"{name}: is not text .*{remedy}"):
        load_corpus(str(tmp_path / name))
    with pytest.raises(DataError, match=rf"{name}: is not text .*{remedy}"):
        list(path_documents(tmp_path))


@pytest.mark.parametrize("data", [b"\x00" * 100, bytes(range(256)) * 3, b"\r\n\x1a" * 9, b"\xef\xbb\xbfBOM and text"])
def test_any_file_is_bytes_as_they_are(tmp_path, data):
    (tmp_path / "file.bin").write_bytes(data)
    corpus = load_corpus(str(tmp_path / "file.bin"))
    assert corpus.train[0].data + corpus.validation[0].data == data


def test_paths_that_hold_no_corpus_are_named(tmp_path, monkeypatch):
    (tmp_path / "empty.txt").write_bytes(b"")
    (tmp_path / "one.txt").write_bytes(b"x")
    (tmp_path / "empty.jsonl").write_bytes(b"\n\n")
    (tmp_path / "folder").mkdir()
    write_shards(tmp_path / "shards", "train", [b"text"], ByteCodec())
    for name, message in (
        ("empty.txt", r"empty\.txt: holds 1 empty document, so"),
        ("one.txt", r"one\.txt: holds 1 byte"),
        ("empty.jsonl", r"empty\.jsonl: holds no documents"),
        ("folder", "folder: holds no documents"),
        ("shards", "shards: holds token shards, not text"),
        ("missing", "missing: no such file, folder or corpus; the named ones are python-docs, "),
    ):
        with pytest.raises(DataError, match=message):
            load_corpus(str(tmp_path / name))

    def refuse(*args, **kwargs):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(DataError, match=r"one\.txt: cannot be read \(Permission denied\)"):
        load_corpus(str(tmp_path / "one.txt"))
    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(DataError, match=r"empty\.jsonl: cannot be read \(Permission denied\)"):
        load_corpus(str(tmp_path / "empty.jsonl"))


def test_offline_nothing_is_downloaded(server, monkeypatch):
    monkeypatch.setenv("FASTCOMPRESS_OFFLINE", "1")
    with pytest.raises(DataError, match=r"cannot be downloaded \(FASTCOMPRESS_OFFLINE is set\); get http"):
        load_corpus("tiny-shakespeare")
    assert server.num_requests == 0
