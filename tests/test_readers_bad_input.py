"""Inputs that are wrong: a typed error that names file, line and remedy, or skipped and listed; never a crash."""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fastcompress.data.documents import Document
from fastcompress.data.inputs import DocumentReader, Skipped, find_files
from fastcompress.errors import ConfigError, DataError, FormatError
from tests.input_files import (
    KINDS,
    MAKE,
    OF_PYARROW,
    PACK,
    PACKINGS,
    arrow_of,
    needs_pyarrow,
    parquet_of,
    texts_in,
)


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
