"""Token files of other trainers: their bytes by the published layouts, round trips through shards, sizes past 4 GiB."""

from __future__ import annotations

import itertools
import re
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastcompress.codec import ByteCodec
from fastcompress.data.interop import TOKEN_FORMATS, detect_format, streams, write_parts
from fastcompress.data.interop.megatron import _write_index
from fastcompress.data.shard_writer import write_encoded
from fastcompress.data.shards import TokenDataset, write_shards
from fastcompress.errors import ConfigError, DataError, OutputError
from tests.interop_files import DOCUMENTS, END, INDEXED, ORACLES, SUFFIXES, WIDTHS, arrays, lists, put, write


def test_every_format_has_an_oracle() -> None:
    assert set(TOKEN_FORMATS) == set(ORACLES)


@pytest.mark.parametrize("end", [None, END])
@pytest.mark.parametrize("dtype", WIDTHS)
@pytest.mark.parametrize("name", TOKEN_FORMATS)
def test_files_are_those_of_the_published_layout(name: str, dtype: str, end: int | None, tmp_path: Path) -> None:
    form = TOKEN_FORMATS[name]
    documents = DOCUMENTS if dtype == "uint16" else [*DOCUMENTS, [65_536, (1 << 31) - 1]]
    path = write(tmp_path, name, documents, dtype, end)
    (tmp_path / "oracle").mkdir()
    other = put(tmp_path / "oracle" / path.name, ORACLES[name](documents, WIDTHS[dtype], end))
    expected = {file.name: file.read_bytes() for file in other.parent.iterdir()}
    if name == "datatrove":
        count = sum(map(len, documents)) + len(documents) * (end is not None)
        short = f"{count}.00" if count < 10 else f"{count}.0"
        expected["x.ds.metadata"] = f"fastcompress|{WIDTHS[dtype]}\n{count}\n{short} T".encode()
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir() if file.is_file()} == expected
    assert {file.name for file in form.files(path)} == set(expected)
    stated = dtype if name == "nanogpt" else None
    read = lists(form.documents([other], dtype=stated, end_of_text=end))
    whole = [[id for document in documents for id in document]]
    assert read == (documents if end is not None or name in INDEXED else whole)
    assert detect_format(other) == (None if name == "nanogpt" else form)


@settings(max_examples=25, deadline=None)
@given(
    name=st.sampled_from(sorted(TOKEN_FORMATS)),
    documents=st.lists(st.binary(max_size=12), min_size=1, max_size=8),
    num_files=st.integers(1, 3),
)
def test_shards_come_back(name: str, documents: list[bytes], num_files: int, tmp_path_factory) -> None:
    """Through several files, each of them a part of the documents."""
    folder, codec = tmp_path_factory.mktemp("interop"), ByteCodec()
    write_shards(folder / "shards", "train", documents, codec, shard_bytes=10)
    dataset = TokenDataset.open(folder / "shards", "train")
    ids = list(dataset.documents())
    form, paths = TOKEN_FORMATS[name], []
    for number in range(num_files):
        if part := ids[number::num_files]:
            paths.append(folder / f"{number}{SUFFIXES[name]}")
            form.write(paths[-1], part, end_of_text=codec.vocab_size)
    write_encoded(folder / "back", "train", form.documents(paths, end_of_text=codec.vocab_size), codec)
    back = TokenDataset.open(folder / "back", "train", codec=codec)
    assert lists(back.documents()) == [
        document.tolist() for number in range(num_files) for document in ids[number::num_files]
    ]
    assert (back.num_documents, back.num_bytes) == (dataset.num_documents, dataset.num_bytes)
    if num_files == 1:
        write_shards(folder / "same", "train", documents, codec)
        assert (folder / "same/train/00000.shard").read_bytes() == (folder / "back/train/00000.shard").read_bytes()


@settings(max_examples=60, deadline=None)
@given(
    stream=st.lists(st.integers(0, 3), min_size=1, max_size=30),
    cuts=st.lists(st.integers(0, 30), max_size=3),
    chunk=st.integers(1, 5),
)
def test_streams_divide_alike_wherever_files_and_chunks_end(stream, cuts, chunk) -> None:
    """The id 3 is the mark: after documents in one format, before them in the other."""
    places = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    pieces = [np.array(stream[a:b], np.uint16) for a, b in itertools.pairwise(places)]
    parts = [list(map(int, part)) for part in "".join(map(str, stream)).split("3")]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(streams, "_CHUNK_IDS", chunk)
        after = lists(streams._divide(pieces, 3, False))
        before = lists(streams._divide(pieces, 3, True))
    assert after == (parts if parts[-1] else parts[:-1])
    assert before == (parts if parts[0] else parts[1:])
    assert lists(streams._divide(pieces, None, False)) == [stream]


def test_streams_without_a_mark_are_one_document_and_views_of_the_file(tmp_path: Path) -> None:
    path = write(tmp_path, "nanogpt", [[1, 2], [3]], end=None)
    (ids,) = TOKEN_FORMATS["nanogpt"].documents([path])
    assert ids.tolist() == [1, 2, 3]
    assert not ids.flags.owndata
    assert not ids.flags.writeable


@pytest.mark.parametrize("name", TOKEN_FORMATS)
def test_parts_hold_whole_documents_and_are_read_as_one(name: str, tmp_path: Path) -> None:
    form, path = TOKEN_FORMATS[name], tmp_path / f"x{SUFFIXES[name]}"
    documents = [[1, 2, 3], [], [4], [5, 6], [7, 8, 9, 10]]
    ids = arrays(documents)
    parts = write_parts(form, path, iter(ids), file_tokens=4, end_of_text=END)
    assert [part.name for part in parts] == [f"x_{number:06d}{SUFFIXES[name]}" for number in range(2)]
    assert [lists(form.documents([part], end_of_text=END)) for part in parts] == [documents[:3], documents[3:]]
    assert lists(form.documents(parts, end_of_text=END)) == documents
    assert {file for part in parts for file in form.files(part)} == set(tmp_path.iterdir())
    before = {file: file.read_bytes() for file in tmp_path.iterdir()}
    with pytest.raises(OutputError, match=r"x_000000.* exists already; choose another output, or pass overwrite"):
        write_parts(form, path, ids, file_tokens=100, end_of_text=END)
    with pytest.raises(DataError, match=rf"^{re.escape(str(tmp_path / 'x_000001'))}\.\w+: id 65536 of document 1"):
        write_parts(form, path, arrays([[1, 2], [65_536]]), file_tokens=1, end_of_text=END, overwrite=True)
    with pytest.raises(DataError, match="no documents to write"):
        write_parts(form, path, [], file_tokens=1, overwrite=True)
    assert {file: file.read_bytes() for file in tmp_path.iterdir()} == before
    (tmp_path / "x_0001.bin").write_bytes(b"another's")
    assert len(write_parts(form, path, ids, file_tokens=100, end_of_text=END, overwrite=True)) == 1
    assert {*form.files(parts[0]), tmp_path / "x_0001.bin"} == set(tmp_path.iterdir())  # the second part is gone
    with pytest.raises(ConfigError, match="file_tokens is 0; it must be at least 1"):
        write_parts(form, path, ids, file_tokens=0)


# --- Megatron as others write it --------------------------------------------------------------------------


def megatron_files(folder: Path, ids: list[int], lengths, pointers, index, code=8, modes=b"") -> Path:
    letters = {1: "B", 3: "h", 4: "i", 5: "q", 8: "H"}
    (folder / "m.bin").write_bytes(struct.pack(f"<{len(ids)}{letters[code]}", *ids))
    blob = b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, code, len(lengths), len(index))
    blob += struct.pack(f"<{len(lengths)}i", *lengths) + struct.pack(f"<{len(lengths)}q", *pointers)
    (folder / "m.idx").write_bytes(blob + struct.pack(f"<{len(index)}q", *index) + modes)
    return folder / "m.idx"


@pytest.mark.parametrize("code", [1, 3, 4, 5, 8])
def test_megatron_documents_of_several_sequences_in_any_order(code: int, tmp_path: Path) -> None:
    width = {1: 1, 3: 2, 4: 4, 5: 8, 8: 2}[code]
    places = [0, 2 * width, 4 * width, 3 * width]
    path = megatron_files(tmp_path, [1, 2, 3, 4, 5], [2, 1, 1, 1], places, [0, 2, 2, 4], code, bytes(4))
    form = TOKEN_FORMATS["megatron"]
    assert detect_format(path) is form
    assert lists(form.documents([path])) == [[1, 2, 3], [], [5, 4]]
    assert lists(form.documents([path.with_suffix(".bin")], end_of_text=4)) == [[1, 2, 3], [], [5]]


# --- Past 4 GiB -------------------------------------------------------------------------------------------

FAR = 5 << 30  # bytes; the files have holes, and take a few blocks


def sparse(path: Path, size: int, writes: dict[int, bytes]) -> Path:
    with path.open("wb") as file:
        for position, data in writes.items():
            file.seek(position)
            file.write(data)
        file.truncate(size)
    return path


def test_ids_past_4_gib(tmp_path: Path) -> None:
    last = struct.pack("<3H", 7, 8, 9)
    path = sparse(tmp_path / "n.bin", FAR, {FAR - 6: last})
    (ids,) = TOKEN_FORMATS["nanogpt"].documents([path])
    assert (len(ids), ids[-3:].tolist()) == (FAR // 2, [7, 8, 9])

    count = (1 << 31) - 1  # the most that the header of llm.c can say
    header = struct.pack("<iii", 20240520, 1, count)
    size = 1024 + 2 * count
    assert size > 1 << 32
    path = sparse(tmp_path / "l.bin", size, {0: header, size - 6: last})
    (ids,) = TOKEN_FORMATS["llm.c"].documents([path])
    assert (len(ids), ids[-3:].tolist()) == (count, [7, 8, 9])

    path = sparse(tmp_path / "d.ds", FAR, {FAR - 6: last})
    (tmp_path / "d.ds.index").write_bytes(struct.pack("<3Q", 1, FAR // 2 - 3, FAR // 2))
    *_, ids = TOKEN_FORMATS["datatrove"].documents([path])
    assert ids.tolist() == [7, 8, 9]

    lengths = np.array([1 << 30, 1 << 30, FAR // 2 - (1 << 31) - 3, 3])
    with (tmp_path / "m.idx").open("wb") as file:
        _write_index(file, lengths, "uint16")
    path = sparse(tmp_path / "m.bin", FAR, {FAR - 6: last})
    documents = list(TOKEN_FORMATS["megatron"].documents([path]))
    assert list(map(len, documents)) == lengths.tolist()
    assert documents[-1].tolist() == [7, 8, 9]


def test_too_many_ids_for_a_header(tmp_path: Path) -> None:
    streams._check_count(tmp_path / "x", (1 << 31) - 1)
    with pytest.raises(
        DataError, match=r"x: there are more than the 2,147,483,647 ids .*; divide them among several files"
    ):
        streams._check_count(tmp_path / "x", 1 << 31)
