"""Inputs: every type in every compression, folders, patterns, data sets, standard input, in constant memory."""

from __future__ import annotations

import gzip
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastcompress.data import compression, readers, tables
from fastcompress.data.corpora import load_corpus
from fastcompress.data.inputs import DocumentReader
from fastcompress.errors import DataError
from tests.input_files import (
    KINDS,
    MAKE,
    OF_PYARROW,
    PACK,
    PACKINGS,
    TEXTS,
    arrow_of,
    json_lines_of,
    needs_pyarrow,
    parquet_of,
    table_of,
    texts_in,
    zstd,
)
from tests.test_cli import error_of, run


def test_the_table_is_what_is_tried_here() -> None:
    suffixes = {reader.suffixes[0] for reader in readers.READERS}
    assert suffixes == {".txt", *MAKE} - {".feather"}
    assert {one.suffix for one in compression.COMPRESSIONS} == set(PACK) - {""}


@pytest.mark.parametrize(("kind", "packing"), KINDS)
def test_every_type_in_every_compression(kind: str, packing: str, tmp_path: Path) -> None:
    """By its name, by its first bytes under a wrong name where they tell, and on standard input."""
    packed = PACK[packing](MAKE[kind](TEXTS))
    path = tmp_path / f"rows{kind}{packing}"
    path.write_bytes(packed)
    documents = list(DocumentReader(path))
    assert [document.data.decode() for document in documents] == TEXTS
    assert [(document.source, document.index) for document in documents] == [(str(path), n) for n in range(len(TEXTS))]
    assert len({document.id for document in documents}) == len(TEXTS)
    wrong_packing = tmp_path / f"rows{kind}{'' if packing else '.jsonl'}"
    if packing:
        wrong_packing.write_bytes(packed)
        assert texts_in(wrong_packing) == TEXTS
    if kind in OF_PYARROW:
        wrong_name = tmp_path / "rows.csv.gz"
        wrong_name.write_bytes(packed if packing else gzip.compress(packed))
        assert texts_in(wrong_name) == TEXTS
    if kind not in (".csv", ".tsv"):
        assert texts_in("-", stdin=io.BytesIO(packed)) == TEXTS


@pytest.mark.parametrize("packing", PACKINGS)
def test_a_text_is_one_document_in_every_compression(packing: str, tmp_path: Path) -> None:
    data = "".join(TEXTS).encode() + b"\xff"
    path = tmp_path / f"book.txt{packing}"
    path.write_bytes(PACK[packing](data))
    (tmp_path / "book").write_bytes(path.read_bytes())
    for name, document_id in ((path, path.name), (tmp_path / "book", "book"), ("-", "standard input")):
        [document] = DocumentReader(name, stdin=io.BytesIO(path.read_bytes()))
        assert (document.id, document.data) == (document_id, data)
    if packing:  # two members, one after the other, are one file (an archive of this package is one)
        twice = PACK[packing](b"one,") + PACK[packing](b"two")
        path.write_bytes(twice)
        if packing != ".fcz":
            assert texts_in(path) == ["one,two"]


@needs_pyarrow
@pytest.mark.parametrize("kind", ["large_string", "binary", "string_view", "dictionary"])
def test_other_columns_of_text(kind: str, tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(parquet_of(TEXTS, kind))
    (tmp_path / "b.arrow").write_bytes(arrow_of(TEXTS, kind))
    assert texts_in(tmp_path / "a.parquet", tmp_path / "b.arrow") == TEXTS * 2


@needs_pyarrow
def test_a_chosen_field(tmp_path: Path) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    (tmp_path / "a.jsonl").write_text('{"text": "no", "body": "one"}\n')
    (tmp_path / "b.csv").write_text("text,body\nno,two\n")
    parquet.write_table(pa.table({"text": ["no"], "body": ["three"]}), tmp_path / "c.parquet")
    assert texts_in(tmp_path, text_key="body") == ["one", "two", "three"]
    assert texts_in("-", text_key="body", stdin=io.BytesIO(b'{"body": "four"}\n')) == ["four"]


HARD_TEXTS = st.text(st.sampled_from('é\x85\xa0"\\/\n\ud83d \U0001f600'))
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | HARD_TEXTS,
    lambda values: st.lists(values, max_size=3) | st.dictionaries(st.text(max_size=3), values, max_size=3),
    max_leaves=4,
)


@given(
    row=st.dictionaries(st.sampled_from(["text", "id", "é", "other"]), JSON_VALUES) | JSON_VALUES,
    ascii_only=st.booleans(),
    field=st.sampled_from(["text", "é", "id"]),
    cut=st.none() | st.integers(0, 40),
    odd_byte=st.none() | st.integers(0, 255),
)
def test_plain_json_is_read_as_any_other(row, ascii_only, field, cut, odd_byte) -> None:
    """The quick way for plain lines gives what Python's parser gives for all lines, or leaves them to it."""
    line = json.dumps(row, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
    if odd_byte is not None and cut is not None:
        line = line[:cut] + bytes([odd_byte]) + line[cut:]
    elif cut is not None:
        line = line[:cut]
    plain = tables._plain_json_row(line, 3, field)
    assert plain is None or plain == tables._any_json_row(line, 3, field)


def test_plain_json_is_not_left_to_the_slow_way() -> None:
    for text in ("plain", 'naïve\n"quoted" \U0001f600', ""):
        line = json.dumps({"id": "a", "text": text}, ensure_ascii=False).encode() + b"\n"
        assert tables._plain_json_row(line, 1, "text") == tables.Row(text.encode(), 1, "a")


def test_standard_input_of_json_that_is_no_row_is_text() -> None:
    for data in (b'{"a": 1}\n', b"{\n", b"[1, 2]", b"", b'say {"text": 1}'):
        [document] = DocumentReader("-", stdin=io.BytesIO(data))
        assert document.data == data


def test_csv_as_others_write_it(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    for data, texts in (
        (b"\xef\xbb\xbftext,n\r\none,1\r\n\r\ntwo,2", ["one", "two"]),
        (b'n,"text"\n1,"a ""b""\nc"\n2,d\n', ['a "b"\nc', "d"]),
        (b"text\n", []),
        (b'text\n""\n"x"\n', ["", "x"]),
    ):
        path.write_bytes(data)
        assert texts_in(path) == texts
    path.write_bytes(b'text,n\n"a\nb\nc",1\nd,2\n')
    assert [document.id for document in DocumentReader(path)] == ["rows.csv:2", "rows.csv:5"]


# --- Where files are --------------------------------------------------------------------------------------


def test_folders_and_patterns_are_read_in_order(tmp_path: Path) -> None:
    names = ["b/2.txt", "b/10.txt", "a.txt", "c/d/e.jsonl", "c/.hidden.txt", ".git/x.txt", "c/f.csv", "c/g.csv"]
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    (tmp_path / "c/d/e.jsonl").write_text('{"text": "row"}\n')
    (tmp_path / "c/g.csv").write_text("text\ncell\n")
    everything = ["a.txt", "b/10.txt", "b/2.txt", "row", "c/f.csv", "cell"]
    assert texts_in(tmp_path) == everything
    assert [document.id for document in DocumentReader(tmp_path)] == [
        "a.txt", "b/10.txt", "b/2.txt", "e.jsonl:1", "c/f.csv", "g.csv:2",
    ]  # fmt: skip
    assert texts_in(str(tmp_path / "**" / "*.txt")) == everything[:3]
    assert texts_in(str(tmp_path / "*")) == everything
    with pytest.raises(DataError, match=r"f\.csv: has no column 'text'"):  # it was named, if by a pattern
        texts_in(str(tmp_path / "c" / "*"))
    assert texts_in(str(tmp_path / "[bc]" / "[2g].*"), str(tmp_path / "a*")) == ["b/2.txt", "cell", "a.txt"]
    (tmp_path / "[x].txt").write_text("a name and no pattern")
    assert texts_in(tmp_path / "[x].txt") == ["a name and no pattern"]
    with pytest.raises(DataError, match=r"\*\.no: matches no file; name files that exist"):
        texts_in(str(tmp_path / "*.no"))
    with pytest.raises(DataError, match="nowhere: no such file or folder"):
        texts_in(tmp_path / "nowhere")


def save_dataset(folder: Path, shards: list[list[str]]) -> None:
    """Write a folder as `datasets.save_to_disk` does: Arrow streams, and two descriptions."""
    folder.mkdir(parents=True)
    names = [f"data-{n:05}-of-{len(shards):05}.arrow" for n in range(len(shards))]
    for name, texts in zip(names, shards, strict=True):
        (folder / name).write_bytes(arrow_of(texts))
    state = {"_data_files": [{"filename": name} for name in names], "_fingerprint": "f", "_split": "train"}
    (folder / "state.json").write_text(json.dumps(state))
    (folder / "dataset_info.json").write_text('{"features": {"text": {"dtype": "string", "_type": "Value"}}}')
    (folder / "cache-1234.arrow").write_bytes(arrow_of(["a result of map, which is no data"]))


@needs_pyarrow
def test_folders_of_data_sets(tmp_path: Path) -> None:
    save_dataset(tmp_path / "one", [["a", "b"], ["c"]])
    assert texts_in(tmp_path / "one") == ["a", "b", "c"]
    for split, texts in (("train", ["t1", "t2"]), ("validation", ["v"]), ("test", ["x"])):
        save_dataset(tmp_path / "all" / split, [texts])
    (tmp_path / "all" / "dataset_dict.json").write_text('{"splits": ["train", "validation", "test"]}')
    assert texts_in(tmp_path / "all") == ["x", "t1", "t2", "v"]
    corpus = load_corpus(tmp_path / "all")
    assert [corpus.contents(name) for name in ("train", "validation", "test")] == [[b"t1", b"t2"], [b"v"], [b"x"]]
    (tmp_path / "one" / "data-00001-of-00002.arrow").unlink()
    with pytest.raises(DataError, match=r"one: lacks data-00001-of-00002\.arrow, which state\.json lists"):
        texts_in(tmp_path / "one")
    (tmp_path / "one" / "state.json").write_text("{}")
    with pytest.raises(DataError, match=r"state\.json: does not list the files"):
        texts_in(tmp_path / "one")
    (tmp_path / "one" / "state.json").unlink()  # as in the cache of that library
    (tmp_path / "one" / "cache-1234.arrow").unlink()
    assert texts_in(tmp_path / "one") == ["a", "b"]


@needs_pyarrow
def test_folders_that_the_library_datasets_wrote(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets", reason="datasets is not installed")
    import pyarrow as pa

    def dataset(texts: list[str]) -> object:
        # With a fingerprint: to make one, that library pickles parts of pyarrow, which not every release allows.
        table = datasets.table.InMemoryTable(pa.table({"text": texts, "n": list(range(len(texts)))}))
        return datasets.Dataset(table, fingerprint="0123456789abcdef")

    dataset(TEXTS).save_to_disk(tmp_path / "one", num_shards=2)  # type: ignore[attr-defined]
    assert texts_in(tmp_path / "one") == TEXTS
    datasets.DatasetDict({"train": dataset(["t"]), "test": dataset(["x"])}).save_to_disk(tmp_path / "all")
    assert texts_in(tmp_path / "all") == ["x", "t"]


def test_corpora_of_patterns(tmp_path: Path) -> None:
    for split in ("train", "val"):
        (tmp_path / f"{split}.csv").write_text(f"text\n{split} 1\n{split} 2\n")
    corpus = load_corpus(str(tmp_path / "*.csv"))
    assert corpus.contents("train") == [b"train 1", b"train 2"]
    assert corpus.contents("validation") == [b"val 1", b"val 2"]


# --- Memory -----------------------------------------------------------------------------------------------

# Prints by how many MiB the process grew while it read files; each has more than 50 MB of text.
MEASURE = """
import sys
from fastcompress.data.inputs import DocumentReader

def peak():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM:")) >> 10

small, *large = sys.argv[1:]
assert sum(1 for document in DocumentReader([small])) == 1000
for path in large:
    before = peak()
    assert sum(len(document.data) for document in DocumentReader([path])) >= 50_000_000
    print(peak() - before, flush=True)
"""


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="there is no /proc to measure memory with")
@pytest.mark.parametrize("kind", [".jsonl.gz", ".csv", *(pytest.param(k, marks=needs_pyarrow) for k in OF_PYARROW)])
def test_memory_does_not_grow_with_the_input(kind: str, tmp_path: Path) -> None:
    kind = ".jsonl.zst" if kind == ".zst" else kind
    first, packing = f".{kind.split('.')[1]}", kind[kind.rindex(".") :] if kind.count(".") == 2 else ""
    rows = [f"{n} " + "some text " * 500 for n in range(1000)]
    for name, texts in (("small", rows), ("large", rows * 11)):
        if first in (".parquet", ".arrow", ".feather"):
            write_table_in_parts(tmp_path / f"{name}{kind}", rows, len(texts) // len(rows))
        else:
            (tmp_path / f"{name}{kind}").write_bytes(PACK[packing](MAKE[first](texts)))
    words = [sys.executable, "-c", MEASURE, *(str(tmp_path / f"{name}{kind}") for name in ("small", "large"))]
    grown = int(subprocess.run(words, capture_output=True, check=True, text=True).stdout)
    assert grown < 16, f"reading {kind} took {grown} MiB more than reading a file of an eleventh of its size"


def write_table_in_parts(path: Path, rows: list[str], num_parts: int) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    table = table_of(rows)
    if path.suffix == ".parquet":
        with parquet.ParquetWriter(path, table.schema, use_dictionary=False) as writer:
            for _ in range(num_parts):
                writer.write_table(table)
        return
    with (pa.ipc.new_stream if path.suffix == ".arrow" else pa.ipc.new_file)(str(path), table.schema) as writer:
        for _ in range(num_parts):
            writer.write_table(table, max_chunksize=1000)


# --- The command line -------------------------------------------------------------------------------------


@needs_pyarrow
def test_commands_read_the_new_types(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(parquet_of(["one", "two"]))
    (tmp_path / "b.jsonl.zst").write_bytes(zstd(json_lines_of(["three"])))
    for inputs in ([tmp_path], [tmp_path / "a.parquet", tmp_path / "b.jsonl.zst"], [str(tmp_path / "[ab].*")]):
        ids = run("encode", *inputs, "--codec", "byte", "-o", "-").stdout
        assert [bytes(map(int, line.split())) for line in ids.splitlines()] == [b"one", b"two", b"three"]
    rows = json_lines_of(["four", "five"])
    ids = run("encode", "-", "--codec", "byte", "-o", "-", stdin=zstd(rows)).stdout
    assert [bytes(map(int, line.split())) for line in ids.splitlines()] == [b"four", b"five"]
    run("train-tokenizer", tmp_path, "--vocab-size", 257, "-o", tmp_path / "x.bpe")
    assert "is not text but a Parquet table" in error_of("view", tmp_path / "a.parquet", "-o", "-")


def test_commands_skip_what_cannot_be_read(tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"text": "one"}\n{"text": 5}\n{"text": "two"}\n' + "{\n" * 12)
    words = ["encode", rows, "--codec", "byte", "-o", "-"]
    assert error_of(*words).startswith(f"{rows}: line 2 has no string under 'text'")
    done = run(*words, "--on-error", "skip")
    assert [bytes(map(int, line.split())) for line in done.stdout.splitlines()] == [b"one", b"two"]
    lines = done.stderr.splitlines()
    assert lines[0] == f"skipped: {rows}: line 2 has no string under 'text'; name the key that holds the text"
    assert lines[10:] == ["skipped: 13 documents in all"]
    run("train-tokenizer", rows, "--vocab-size", 257, "-o", tmp_path / "x.bpe", "--on-error", "skip")
