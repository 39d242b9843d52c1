"""Inputs: every type in every compression, folders, patterns, data sets, standard input, and bad input of each kind."""

from __future__ import annotations

import bz2
import csv
import gzip
import importlib.util
import io
import json
import lzma
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fastcompress import archive
from fastcompress.data import compression, readers
from fastcompress.data.corpora import load_corpus
from fastcompress.data.documents import Document
from fastcompress.data.inputs import DocumentReader, Skipped, find_files
from fastcompress.errors import ConfigError, DataError, FormatError
from tests.test_cli import error_of, run

HAS_PYARROW = importlib.util.find_spec("pyarrow") is not None
# In CI it must be there.
needs_pyarrow = pytest.mark.skipif(
    not HAS_PYARROW and os.environ.get("CI") != "true", reason="pyarrow is not installed (extra data)"
)
TEXTS = ["to be\nor not", "", 'quoted "text", with, commas\r\n', "naïve \U0001f600\x00\u2028", "x" * 200_000, "\ttab\t"]


# --- Plain Python that writes what the readers read: the oracle is the list of texts itself ---------------


def json_lines_of(texts: list[str]) -> bytes:
    return b"".join(json.dumps({"id": None, "text": text}).encode() + b"\n" for text in texts)


def separated_of(delimiter: str) -> Callable[[list[str]], bytes]:
    def write(texts: list[str]) -> bytes:
        file = io.StringIO(newline="")
        writer = csv.writer(file, delimiter=delimiter, quoting=csv.QUOTE_ALL)
        writer.writerow(["label", "text"])
        writer.writerows([["a label", text] for text in texts])
        return file.getvalue().encode()

    return write


def table_of(texts: list[str | None], kind: str = "string") -> object:
    import pyarrow as pa

    types = {
        "string": pa.string(), "large_string": pa.large_string(), "binary": pa.binary(),
        "string_view": pa.string_view(), "dictionary": pa.dictionary(pa.int32(), pa.string()),
    }  # fmt: skip
    column = pa.array(texts, types[kind]) if kind == "string_view" else pa.array(texts, pa.string()).cast(types[kind])
    return pa.table({"label": list(range(len(texts))), "text": column})


def parquet_of(texts: list[str | None], kind: str = "string") -> bytes:
    from pyarrow import parquet

    file = io.BytesIO()
    parquet.write_table(table_of(texts, kind), file, row_group_size=4)
    return file.getvalue()


def arrow_of(texts: list[str | None], kind: str = "string", *, stream: bool = True) -> bytes:
    import pyarrow as pa

    table, file = table_of(texts, kind), io.BytesIO()
    with (pa.ipc.new_stream if stream else pa.ipc.new_file)(file, table.schema) as writer:
        writer.write_table(table, max_chunksize=4)
    return file.getvalue()


def zstd(data: bytes) -> bytes:
    import pyarrow as pa

    return pa.Codec("zstd").compress(data, asbytes=True)


PACK = {
    "": lambda data: data, ".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress, ".zst": zstd,
    ".fcz": archive.compress,
}  # fmt: skip
MAKE = {
    ".jsonl": json_lines_of,
    ".csv": separated_of(","),
    ".tsv": separated_of("\t"),
    ".parquet": parquet_of,
    ".arrow": arrow_of,
    ".feather": lambda texts: arrow_of(texts, stream=False),
}
OF_PYARROW = {".parquet", ".arrow", ".feather", ".zst"}
KINDS = [
    pytest.param(kind, packing, marks=[needs_pyarrow] if {kind, packing} & OF_PYARROW else [])
    for kind in MAKE
    for packing in PACK
]
PACKINGS = [pytest.param(packing, marks=[needs_pyarrow] if packing in OF_PYARROW else []) for packing in PACK]
TEXT_KINDS = [pytest.param(".txt", *packing.values, marks=packing.marks) for packing in PACKINGS]


def texts_in(*inputs: object, **settings: object) -> list[str]:
    return [document.data.decode() for document in DocumentReader(list(inputs), **settings)]  # type: ignore[arg-type]


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


# --- Bad input --------------------------------------------------------------------------------------------


def check_bad_rows(path: Path, texts: list[str], problems: dict[int, str]) -> None:
    """The first bad row is an error; without it, those that are well are read, and the others are listed."""
    with pytest.raises(DataError) as caught:
        list(DocumentReader(path))
    reader = DocumentReader(path, on_error="skip")
    assert [document.data.decode() for document in reader] == texts
    assert [skipped.index for skipped in reader.skipped] == list(problems)
    for skipped, problem in zip(reader.skipped, problems.values(), strict=True):
        assert skipped.problem.startswith(f"{path}: {problem}")
        assert "; " in skipped.problem
        assert (skipped.source, skipped.is_rest) == (str(path), False)
    assert str(caught.value) == reader.skipped[0].problem


def test_bad_json_lines(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(
        b'{"text": "fine"}\n{"text": "cut\n\n{"body": "a"}\n{"text": null}\n{"text": 5}\n{"text": "\xff"}\n'
        b'{"text": "\\ud800"}\n[]\n{"text": "last"}'
    )
    no_string = "has no string under 'text'"
    problems = {
        1: "line 2 is not JSON", 2: f"line 4 {no_string}", 3: f"line 5 {no_string} but null; correct",
        4: f"line 6 {no_string}", 5: "line 7 is not JSON",
        6: "line 8 has half a surrogate pair", 7: f"line 9 {no_string}",
    }  # fmt: skip
    check_bad_rows(path, ["fine", "last"], problems)
    indices = [document.index for document in DocumentReader(path, on_error="skip")]
    assert indices == [0, 8]


def test_bad_csv(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_bytes(b'n,text\n1,fine\n2\n3,a,b\n4,"a"b\n5,"two\nlines"\n6,\xff\n7,last\n')
    problems = {
        1: "line 3 has 1 values for 2 columns", 2: "line 4 has 3 values for 2 columns", 3: "line 5 is not CSV",
        5: "line 8 is not UTF-8",
    }  # fmt: skip
    check_bad_rows(path, ["fine", "two\nlines", "last"], problems)
    path.write_bytes(b'text\nfine\n"never closed\nand so on\n')
    reader = DocumentReader(path, on_error="skip")
    assert [document.data for document in reader] == [b"fine"]
    [skipped] = reader.skipped
    assert skipped.problem.startswith(f"{path}: line 3 is not CSV (")
    assert (skipped.index, skipped.is_rest) == (1, True)


@needs_pyarrow
def test_bad_rows_of_tables(tmp_path: Path) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    column = pa.array([b"fine", None, b"\xff\xfe", b"last"], pa.binary()).view(pa.string())
    table = pa.table({"text": column})
    parquet.write_table(table, tmp_path / "rows.parquet")
    with pa.ipc.new_stream(str(tmp_path / "rows.arrow"), table.schema) as writer:
        writer.write_table(table)
    for name in ("rows.parquet", "rows.arrow"):
        problems = {1: "row 2 is null under 'text'", 2: "row 3 is not UTF-8"}
        check_bad_rows(tmp_path / name, ["fine", "last"], problems)
    numbers = pa.table({"text": [1, 2], "n": [3, 4]})
    parquet.write_table(numbers, tmp_path / "numbers.parquet")
    with pytest.raises(DataError, match=r"column 'text' holds int64, not text; name the column that holds the text"):
        texts_in(tmp_path / "numbers.parquet")


@pytest.mark.parametrize("kind", [".csv", *(pytest.param(k, marks=needs_pyarrow) for k in (".parquet", ".arrow"))])
def test_a_missing_column_is_named_with_those_that_exist(kind: str, tmp_path: Path) -> None:
    path = tmp_path / f"rows{kind}"
    path.write_bytes(MAKE[kind](["a"]))
    message = "has no column 'body', only 'label', 'text'; name the column that holds the text"
    with pytest.raises(DataError, match=rf"rows\{kind}: {message}"):
        texts_in(path, text_key="body")
    reader = DocumentReader(path, text_key="body", on_error="skip")
    assert list(reader) == []
    assert reader.skipped == [Skipped(str(path), 0, f"{path}: {message}", is_rest=True)]


@pytest.mark.parametrize(
    ("kind", "packing"), [*KINDS, *(pytest.param(".txt", *p.values, marks=p.marks) for p in PACKINGS)]
)
def test_files_that_are_cut_off_or_flipped(kind: str, packing: str, tmp_path: Path) -> None:
    """What comes before the damage is read, then there is a typed error, never a wrong document or silence."""
    if not packing and kind not in OF_PYARROW:
        pytest.skip("plain text has no checksum and no end")
    texts = [os.urandom(3000).hex() for _ in range(40)]
    whole = PACK[packing]("".join(texts).encode() if kind == ".txt" else MAKE[kind](texts))
    good, path = tmp_path / "good", tmp_path / f"cut{kind}{packing}"
    good.write_bytes(whole)
    expected = ["".join(texts)] if kind == ".txt" else texts
    for size in (len(whole) - 1, len(whole) * 2 // 3, 20, 0):
        path.write_bytes(whole[:size])
        if kind == ".arrow" and not packing and size == len(whole) - 1:
            continue  # the last bytes of a stream are a mark of its end, which it may lack
        with pytest.raises((FormatError, DataError), match=rf"cut\{kind}"):
            texts_in(path)
        reader = DocumentReader([path, good] if kind == ".txt" else [path], on_error="skip")
        found = [document.data.decode() for document in reader]
        assert found == (expected if kind == ".txt" else expected[: len(found)])
        assert [skipped.is_rest for skipped in reader.skipped] == [True]
        assert reader.skipped[0].index == (0 if kind == ".txt" else len(found))


@needs_pyarrow
@pytest.mark.parametrize("column", ["string", "dictionary", "string_view"])
@pytest.mark.parametrize("kind", [".parquet", ".arrow", ".feather"])
def test_damaged_tables_are_never_a_crash(kind: str, column: str, tmp_path: Path) -> None:
    """Arrow believes the offsets in a file: unless they are checked, some of these bytes end the process."""
    texts: list[str | None] = [f"row {n} " * (n % 7) for n in range(30)]
    good = {
        ".parquet": parquet_of, ".arrow": arrow_of, ".feather": lambda *given: arrow_of(*given, stream=False)
    }[kind](texts, column)  # fmt: skip
    path, refusals, choice = tmp_path / f"rows{kind}", [], random.Random(f"{kind} {column}")
    for _ in range(120):
        bad = bytearray(good)
        for _ in range(choice.choice([1, 1, 2, 4])):
            bad[choice.randrange(len(bad))] = choice.choice([0, 127, 128, 255, choice.randrange(256)])
        path.write_bytes(bad)
        try:
            list(DocumentReader(path))
        except (DataError, FormatError) as error:
            refusals.append(str(error))
    assert len(refusals) > 20
    assert all(refusal.startswith(f"{path}: ") for refusal in refusals)


@needs_pyarrow
def test_an_empty_table_has_no_documents_and_an_empty_file_is_no_table(tmp_path: Path) -> None:
    for kind in (".parquet", ".arrow", ".csv", ".jsonl"):
        path = tmp_path / f"none{kind}"
        path.write_bytes(MAKE[kind]([]))
        assert texts_in(path) == []
        path.write_bytes(b"")
        if kind == ".jsonl":
            assert texts_in(path) == []
        else:
            with pytest.raises((DataError, FormatError), match=rf"none\{kind}: .*; "):
                texts_in(path)


@needs_pyarrow
def test_zstd_of_every_kind(tmp_path: Path) -> None:
    """A frame of raw bytes with a window of 1 KiB, after a frame to skip, and one with a window of 2 GiB."""
    path, magic, block = tmp_path / "a.txt.zst", b"\x28\xb5\x2f\xfd", b"\x29\x00\x00hello"
    path.write_bytes(b"\x50\x2a\x4d\x18\x03\x00\x00\x00any" + magic + b"\x00\x00" + block)
    assert texts_in(path) == ["hello"]
    path.write_bytes(magic + b"\x00\xa8" + block)
    with pytest.raises(DataError, match=r"a\.txt\.zst: needs a window of more than 128 MiB; decompress it with zstd"):
        texts_in(path)


def test_other_encodings_are_named(tmp_path: Path) -> None:
    for name, text in (("rows.jsonl", '{"text": "a"}\n'), ("rows.csv", "text\na\n")):
        (tmp_path / name).write_bytes(text.encode("utf-16"))
        with pytest.raises(DataError, match=r"line 1 begins like UTF-16 text; convert it to UTF-8 \(iconv\)"):
            texts_in(tmp_path / name)


def test_what_is_skipped_can_be_reported_at_once(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "one"}\n{}\n')
    (tmp_path / "b.txt").write_bytes(b"PK\x03\x04 a ZIP archive")
    (tmp_path / "c.txt").write_text("three")
    reported: list[Skipped] = []
    reader = DocumentReader(tmp_path, on_error="skip", on_skip=reported.append)
    assert [document.data for document in reader] == [b"one", b"three"]
    assert [(Path(skipped.source).name, skipped.index, skipped.is_rest) for skipped in reported] == [
        ("a.jsonl", 1, False),
        ("b.txt", 0, True),
    ]
    assert reader.skipped == []
    with pytest.raises(ConfigError, match="on_error is 'ignore'; it must be one of fail, skip"):
        DocumentReader(tmp_path, on_error="ignore")
    with pytest.raises(DataError, match="nowhere: no such file"):  # a wrong name is a mistake, not bad data
        list(DocumentReader(tmp_path / "nowhere", on_error="skip"))


def test_a_missing_pyarrow_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    (tmp_path / "a.parquet").write_bytes(b"PAR1\x15")
    (tmp_path / "b.txt.zst").write_bytes(b"\x28\xb5\x2f\xfd")
    (tmp_path / "c.arrow").write_bytes(b"ARROW1\x00\x00")
    for name, what in (("a.parquet", "Parquet"), ("b.txt.zst", "zstd"), ("c.arrow", "Arrow")):
        for on_error in ("fail", "skip"):  # what can be mended at once is never skipped
            message = rf"{name}: {what} is read by pyarrow, which is not installed; pip install 'fastcompress\[data\]'"
            with pytest.raises(ConfigError, match=message):
                list(DocumentReader(tmp_path / name, on_error=on_error))


def test_documents_are_read_as_they_are_needed(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text('{"text": "one"}\n' * 10_000 + "{")
    documents: Iterator[Document] = iter(DocumentReader([tmp_path / "rows.jsonl", tmp_path / "nowhere"]))
    assert next(documents).data == b"one"
    assert [file.id for file in find_files(tmp_path)] == ["rows.jsonl"]


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
