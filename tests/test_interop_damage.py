"""Token files of other trainers that are damaged, missing, in the way or interrupted, and ids that do not fit them."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from fastcompress.codec import ByteCodec, CharCodec
from fastcompress.data.interop import TOKEN_FORMATS, detect_format, token_format
from fastcompress.data.interop.megatron import _check_length
from fastcompress.data.shard_writer import write_encoded
from fastcompress.errors import ConfigError, DataError, FastcompressError, FormatError, OutputError
from tests.interop_files import DOCUMENTS, END, INDEXED, SUFFIXES, arrays, lists, write


@pytest.mark.parametrize("name", TOKEN_FORMATS)
def test_ids_that_do_not_fit_are_named_and_nothing_is_written(name: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=rf"x\.\w+: id 65536 of document 2 .* uint16 .*{name}.*; pass dtype='uint32'"):
        write(tmp_path, name, [[1], [2, 65_536]])
    with pytest.raises(DataError, match=r"document 2 holds id 7, which .*; choose an end_of_text"):
        write(tmp_path, name, [[1], [2, 7]], end=7)
    with pytest.raises(ConfigError, match="end_of_text is 70000; it must be 0 to 65535"):
        write(tmp_path, name, [[1]], end=70_000)
    with pytest.raises(ConfigError, match="dtype is 'int8'"):
        write(tmp_path, name, [[1]], dtype="int8")
    with pytest.raises(DataError, match="there are no ids to write"):
        write(tmp_path, name, [[], []], end=None)
    with pytest.raises(DataError, match="id -1 of document 1 is negative"):
        TOKEN_FORMATS[name].write(tmp_path / f"x{SUFFIXES[name]}", [np.array([3, -1])])
    with pytest.raises(TypeError, match="must be one-dimensional integers"):
        TOKEN_FORMATS[name].write(tmp_path / f"x{SUFFIXES[name]}", [np.array([0.5])])
    if name == "megatron":
        with pytest.raises(DataError, match="id 2147483648 of document 1 does not fit the int32 ids of this megatron"):
            write(tmp_path, name, [[1 << 31]], dtype="uint32")
        with pytest.raises(ConfigError, match="end_of_text is 2147483648; it must be 0 to 2147483647 in a megatron"):
            write(tmp_path, name, [[1]], dtype="uint32", end=1 << 31)
        with pytest.raises(DataError, match=r"document 3 has 2,147,483,647 ids, .*; divide it"):
            _check_length(tmp_path / "x.bin", (1 << 31) - 1, 3)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", TOKEN_FORMATS)
def test_existing_files_are_kept_unless_overwritten(name: str, tmp_path: Path) -> None:
    first = TOKEN_FORMATS[name].files(write(tmp_path, name))
    before = {file: file.read_bytes() for file in first}
    with pytest.raises(OutputError, match="exists already"):
        write(tmp_path, name, [[1]])
    assert {file: file.read_bytes() for file in tmp_path.iterdir()} == before
    with pytest.raises(DataError):  # an error while documents are written keeps the old files, too
        write(tmp_path, name, [[1], [65_536]], overwrite=True)
    assert {file: file.read_bytes() for file in tmp_path.iterdir()} == before
    for file in first[1:]:  # one of the files alone is in the way as well
        first[0].unlink(missing_ok=True)
        with pytest.raises(OutputError, match="exists already"):
            write(tmp_path, name, [[1]])
        assert file.read_bytes() == before[file]
    path = write(tmp_path, name, [[1]], overwrite=True)
    assert lists(TOKEN_FORMATS[name].documents([path], end_of_text=END)) == [[1]]


@pytest.mark.parametrize("name", INDEXED)
def test_an_interruption_between_renames_leaves_no_old_index_beside_new_ids(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path, name)
    real, renamed = os.replace, []

    def replace(source: Path, target: Path) -> None:
        if renamed:
            raise OSError(errno.EIO, "interrupted")
        renamed.append(target)
        real(source, target)

    monkeypatch.setattr(os, "replace", replace)
    with pytest.raises(OutputError, match="interrupted"):
        write(tmp_path, name, [[1], [2, 3], [], [4]], overwrite=True)
    assert [file.name for file in renamed] == [path.name]
    with pytest.raises(DataError, match="no such file"):
        TOKEN_FORMATS[name].documents([path])
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("name", TOKEN_FORMATS)
def test_links_stay_links(name: str, tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    files = TOKEN_FORMATS[name].files(write(tmp_path / "far", name))
    for file in files:
        (tmp_path / file.name).symlink_to(file)
    path = write(tmp_path, name, [[1, 2]], overwrite=True)
    assert all((tmp_path / file.name).is_symlink() for file in files)
    for link in (path, files[0]):
        assert lists(TOKEN_FORMATS[name].documents([link], end_of_text=END)) == [[1, 2]]


@pytest.mark.parametrize("name", TOKEN_FORMATS)
def test_documents_outlive_the_release_of_their_pages(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(token_format, "_RELEASE_BYTES", 1)
    documents = list(TOKEN_FORMATS[name].documents([write(tmp_path, name)], end_of_text=END))
    assert lists(documents) == DOCUMENTS


def damaged(name: str, change: Callable[[bytes], bytes], part: int, folder: Path) -> Path:
    path = write(folder, name)
    file = TOKEN_FORMATS[name].files(path)[part]
    file.write_bytes(change(file.read_bytes()))
    return path


CASES = [
    (
        "nanogpt",
        0,
        lambda b: b[:-1],
        FormatError,
        r"x\.bin: has \d+ bytes, which is not a whole number of uint16 ids; ",
    ),
    ("nanogpt", 0, lambda b: b"", DataError, r"x\.bin: there are no ids; "),
    ("llm.c", 0, lambda b: b[:-2], FormatError, r"x\.bin: has 1,042 bytes, but 1,044 by its header .*; get"),
    ("llm.c", 0, lambda b: b + b"\0\0", FormatError, r"but 1,044 by its header"),
    ("llm.c", 0, lambda b: b[:700], FormatError, r"has 700 bytes, but a header takes 1,024; "),
    ("llm.c", 0, lambda b: b"\1" + b[1:], FormatError, r"its magic number is \d+, not 20240520 or 20240801; "),
    ("llm.c", 0, lambda b: b[:4] + b"\2" + b[5:], FormatError, r"is version 2 .*; only version 1"),
    ("llm.c", 0, lambda b: b[:8] + b"\xff" * 4 + b[12:], FormatError, r"by its header of -1 ids"),
    ("llm.c", 0, lambda b: b[:8] + bytes(4) + b[12:1024], DataError, r"there are no ids"),
    ("megatron", 0, lambda b: b[:-2], FormatError, r"x\.bin: has 18 bytes, and .*x\.idx has a sequence outside"),
    ("megatron", 0, lambda b: b[:-1], FormatError, r"x\.bin: has 19 bytes, which is not a whole number"),
    ("megatron", 0, lambda b: b"", DataError, r"x\.bin: there are no ids"),
    ("megatron", 1, lambda b: b[:-1], FormatError, r"x\.idx: has \d+ bytes, but \d+ by its header"),
    ("megatron", 1, lambda b: b[:20], FormatError, r"x\.idx: truncated inside its header"),
    ("megatron", 1, lambda b: b"", FormatError, r"x\.idx: is not a Megatron index"),
    ("megatron", 1, lambda b: b"X" + b[1:], FormatError, r"x\.idx: is not a Megatron index \(wrong magic\); "),
    ("megatron", 1, lambda b: b[:9] + b"\2" + b[10:], FormatError, r"x\.idx: is version 2; "),
    ("megatron", 1, lambda b: b[:17] + b"\7" + b[18:], FormatError, r"ids are of type 7, which is not an integer type"),
    ("megatron", 1, lambda b: b[:18] + b"\xff" * 8 + b[26:], FormatError, r"by its header"),
    ("megatron", 1, lambda b: b[:34] + b"\xff" * 4 + b[38:], FormatError, r"has a sequence outside"),
    ("megatron", 1, lambda b: b[:50] + b"\xff" * 8 + b[58:], FormatError, r"has a sequence outside"),
    ("megatron", 1, lambda b: b[:50] + b"\xff" * 7 + b"\x7f" + b[58:], FormatError, r"has a sequence outside"),
    ("megatron", 1, lambda b: b[:50] + b"\1" + b[51:], FormatError, r"a sequence begins within an id"),
    ("megatron", 1, lambda b: b[:-8] + bytes(8), FormatError, r"its document index does not divide"),
    ("datatrove", 0, lambda b: b[:-2], FormatError, r"x\.ds: has 18 bytes, but its index ends at id 10"),
    ("datatrove", 0, lambda b: b"", DataError, r"x\.ds: there are no ids"),
    ("datatrove", 2, lambda b: b[:-1], FormatError, r"x\.ds\.index: has 31 bytes, but an index has 8 a document"),
    ("datatrove", 2, lambda b: b"", FormatError, r"x\.ds\.index: has 0 bytes"),
    ("datatrove", 2, lambda b: b[:-8], FormatError, r"x\.ds: has 20 bytes, but its index ends at id 8"),
    ("datatrove", 2, lambda b: b"\xff" * 8 + b[8:], FormatError, r"its document ends do not ascend"),
    ("datatrove", 2, lambda b: b[:-8] + b"\xff" * 8, FormatError, r"but its index ends at id"),
]


@pytest.mark.parametrize(("name", "part", "change", "kind", "message"), CASES)
def test_damage_is_a_typed_error(name, part, change, kind, message, tmp_path: Path) -> None:
    path = damaged(name, change, part, tmp_path)
    with pytest.raises(kind, match=message):
        list(TOKEN_FORMATS[name].documents([path], end_of_text=END))


@pytest.mark.parametrize("name", TOKEN_FORMATS)
def test_any_changed_byte_of_a_header_or_index_gives_ids_or_a_typed_error(name: str, tmp_path: Path) -> None:
    path = write(tmp_path, name)
    for file in TOKEN_FORMATS[name].files(path):
        blob = file.read_bytes()
        for position in [*range(min(len(blob), 160))]:
            for mask in (1, 0x80, 0xFF):
                changed = bytearray(blob)
                changed[position] ^= mask
                file.write_bytes(changed)
                message = ""
                try:
                    total = sum(map(len, TOKEN_FORMATS[name].documents([path], end_of_text=END)))
                except FastcompressError as error:
                    message = str(error)
                assert (str(tmp_path) in message and "; " in message) if message else total <= 40
        file.write_bytes(blob)


@pytest.mark.parametrize("name", TOKEN_FORMATS)
def test_files_that_are_not_there(name: str, tmp_path: Path) -> None:
    missing = tmp_path / f"no{SUFFIXES[name]}"
    for path in (missing, missing / f"x{SUFFIXES[name]}"):
        with pytest.raises(DataError, match="no such file; name"):
            TOKEN_FORMATS[name].documents([path])
        assert detect_format(path) is None
    (tmp_path / "folder.bin").mkdir()
    with pytest.raises(FastcompressError, match="; "):
        TOKEN_FORMATS[name].documents([tmp_path / "folder.bin"])
    for file in TOKEN_FORMATS[name].files(write(tmp_path, name)):
        if file.suffix != ".metadata":
            file.unlink()
            with pytest.raises(DataError, match="no such file"):
                TOKEN_FORMATS[name].documents([tmp_path / f"x{SUFFIXES[name]}"])


def test_a_dtype_that_the_files_contradict_is_refused(tmp_path: Path) -> None:
    for name in ("llm.c", "megatron", "datatrove"):
        path = write(tmp_path, name, dtype="uint32", overwrite=True)
        assert lists(TOKEN_FORMATS[name].documents([path], dtype="uint32", end_of_text=END)) == DOCUMENTS
        with pytest.raises(ConfigError, match="dtype is 'uint16'; it must be left out, since"):
            TOKEN_FORMATS[name].documents([path], dtype="uint16")


def test_a_name_that_is_none_of_megatron(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"x\.ds: is not the name of a Megatron dataset; it must end in \.bin"):
        TOKEN_FORMATS["megatron"].write(tmp_path / "x.ds", arrays(DOCUMENTS))


def test_ids_of_another_codec_become_no_shards(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"document 2: id 256 at position 0 is outside \[0, 256\) of byte"):
        write_encoded(tmp_path / "s", "train", arrays([[1], [256]]), ByteCodec())
    with pytest.raises(DataError, match="there are no documents"):
        write_encoded(tmp_path / "s", "train", [], ByteCodec())
    write_encoded(tmp_path / "s", "train", arrays([[1]]), ByteCodec())
    with pytest.raises(OutputError, match="already exists"):
        write_encoded(tmp_path / "s", "train", arrays([[2]]), ByteCodec())
    with pytest.raises(FastcompressError, match="holds splits of codec byte"):
        write_encoded(tmp_path / "s", "other", arrays([[0]]), CharCodec.train([b"ab"]))
