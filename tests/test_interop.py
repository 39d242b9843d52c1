"""Token files of other trainers: their bytes, round trips through shards, sizes past 4 GiB, damage, and the command."""

from __future__ import annotations

import errno
import itertools
import json
import os
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastcompress import BPE
from fastcompress.codec import BPECodec, ByteCodec, CharCodec
from fastcompress.data.interop import TOKEN_FORMATS, detect_format, streams, token_format
from fastcompress.data.interop.megatron import _write_index
from fastcompress.data.shard_writer import write_encoded
from fastcompress.data.shards import TokenDataset, write_shards
from fastcompress.errors import ConfigError, DataError, FastcompressError, FormatError, OutputError
from tests.reference import token_files
from tests.test_cli import error_of, run

ORACLES = {
    "nanogpt": token_files.nanogpt,
    "llm.c": token_files.llm_c,
    "megatron": token_files.megatron,
    "datatrove": token_files.datatrove,
}
SUFFIXES = {"nanogpt": ".bin", "llm.c": ".bin", "megatron": ".bin", "datatrove": ".ds"}
WIDTHS = {"uint16": 2, "uint32": 4}
INDEXED = ("megatron", "datatrove")
DOCUMENTS = [[5, 0, 7], [], [65_535, 1], [9]]
END = 50_256


def arrays(documents: list[list[int]]) -> list[np.ndarray]:
    return [np.array(document, np.uint32) for document in documents]


def lists(documents) -> list[list[int]]:
    return [document.tolist() for document in documents]


def write(folder: Path, name: str, documents=DOCUMENTS, dtype="uint16", end: int | None = END, **settings) -> Path:
    path = folder / f"x{SUFFIXES[name]}"
    TOKEN_FORMATS[name].write(path, arrays(documents), dtype=dtype, end_of_text=end, **settings)
    return path


def put(path: Path, parts: dict[str, bytes]) -> Path:
    """Write the files of an oracle."""
    for suffix, data in parts.items():
        (path.with_suffix(suffix) if path.suffix == ".bin" and suffix else Path(f"{path}{suffix}")).write_bytes(data)
    return path


def test_every_format_has_an_oracle() -> None:
    assert set(TOKEN_FORMATS) == set(ORACLES)


@pytest.mark.parametrize("end", [None, END])
@pytest.mark.parametrize("dtype", WIDTHS)
@pytest.mark.parametrize("name", TOKEN_FORMATS)
def test_files_are_those_of_the_published_layout(name: str, dtype: str, end: int | None, tmp_path: Path) -> None:
    form = TOKEN_FORMATS[name]
    documents = DOCUMENTS if dtype == "uint16" else [*DOCUMENTS, [65_536, (1 << 31) - 1]]
    path = write(tmp_path, name, documents, dtype, end)
    expected = ORACLES[name](documents, WIDTHS[dtype], end)
    found = {file.name.removeprefix("x"): file.read_bytes() for file in tmp_path.iterdir()}
    metadata = found.pop(".ds.metadata", None)
    count = sum(map(len, documents)) + len(documents) * (end is not None)
    assert (metadata is not None) == (name == "datatrove")
    assert metadata in (
        None,
        f"fastcompress|{WIDTHS[dtype]}\n{count}\n{count}{'.00' if count < 10 else '.0'} T".encode(),
    )
    assert sorted(found.values()) == sorted(expected.values())
    assert {file.name for file in form.files(path)} == {file.name for file in tmp_path.iterdir()}
    # What the layout says is read, by the oracle's files in another folder.
    (tmp_path / "other").mkdir()
    other = put(tmp_path / "other" / f"x{SUFFIXES[name]}", expected)
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
    write_shards(folder / "shards", "train", documents, codec, shard_tokens=10)
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
    with pytest.raises(DataError, match=r"x: there are more than the 2,147,483,647 ids .*; write fewer documents"):
        streams._check_count(tmp_path / "x", 1 << 31)


# --- Bad input --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", TOKEN_FORMATS)
def test_ids_that_do_not_fit_are_named_and_nothing_is_written(name: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=rf"x\.\w+: id 65536 of document 2 .* uint16 .*{name}.*; pass dtype='uint32'"):
        write(tmp_path, name, [[1], [2, 65_536]])
    with pytest.raises(DataError, match=r"document 2 holds the id 7 .*; choose an end_of_text"):
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
        with pytest.raises(DataError, match="id 2147483648 of document 1 does not fit the int32 ids of megatron"):
            write(tmp_path, name, [[1 << 31]], dtype="uint32")
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
    ("nanogpt", 0, lambda b: b[:-1], FormatError, r"x\.bin: has \d+ bytes, which is no whole number of uint16 ids; "),
    ("nanogpt", 0, lambda b: b"", DataError, r"x\.bin: there are no ids; "),
    ("llm.c", 0, lambda b: b[:-2], FormatError, r"x\.bin: has 1,042 bytes, but 1,044 by its header .*; get"),
    ("llm.c", 0, lambda b: b + b"\0\0", FormatError, r"but 1,044 by its header"),
    ("llm.c", 0, lambda b: b[:700], FormatError, r"has 700 bytes, but a header takes 1,024; "),
    ("llm.c", 0, lambda b: b"\1" + b[1:], FormatError, r"its magic number is \d+, not 20240520 or 20240801; "),
    ("llm.c", 0, lambda b: b[:4] + b"\2" + b[5:], FormatError, r"is version 2 .*; only version 1"),
    ("llm.c", 0, lambda b: b[:8] + b"\xff" * 4 + b[12:], FormatError, r"by its header of -1 ids"),
    ("llm.c", 0, lambda b: b[:8] + bytes(4) + b[12:1024], DataError, r"there are no ids"),
    ("megatron", 0, lambda b: b[:-2], FormatError, r"x\.bin: has 18 bytes, and .*x\.idx has a sequence outside"),
    ("megatron", 0, lambda b: b[:-1], FormatError, r"x\.bin: has 19 bytes, which is no whole number"),
    ("megatron", 0, lambda b: b"", DataError, r"x\.bin: there are no ids"),
    ("megatron", 1, lambda b: b[:-1], FormatError, r"x\.idx: has \d+ bytes, but \d+ by its header"),
    ("megatron", 1, lambda b: b[:20], FormatError, r"x\.idx: truncated inside its header"),
    ("megatron", 1, lambda b: b"", FormatError, r"x\.idx: is not a Megatron index"),
    ("megatron", 1, lambda b: b"X" + b[1:], FormatError, r"x\.idx: is not a Megatron index \(wrong magic\); "),
    ("megatron", 1, lambda b: b[:9] + b"\2" + b[10:], FormatError, r"x\.idx: is version 2; "),
    ("megatron", 1, lambda b: b[:17] + b"\7" + b[18:], FormatError, r"ids are of type 7, which is none of integers"),
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


# --- The command ------------------------------------------------------------------------------------------

TEXTS = [b"to be or not to be", b"", b"that is the question"]


@pytest.fixture
def shards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    bpe = BPE.train(b" ".join(TEXTS) * 5, vocab_size=270, special_tokens=("<|endoftext|>", "<|x|>"))
    bpe.save(tmp_path / "v.bpe")
    write_shards(tmp_path / "shards", "train", TEXTS, BPECodec(bpe))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "shards"


@pytest.mark.parametrize("name", TOKEN_FORMATS)
def test_the_command_converts_both_ways(name: str, shards: Path) -> None:
    file = f"x{SUFFIXES[name]}"
    end = BPE.load("v.bpe").special_tokens["<|endoftext|>"]
    result = json.loads(run("convert", shards, "--to", name, "-o", file, "--json").stdout)
    assert result == {"output": file, "format": name, "num_documents": 3, "dtype": "uint16", "end_of_text": end}
    ids = lists(TokenDataset.open(shards, "train").documents())
    written = Path(file).read_bytes()
    assert written == next(iter(ORACLES[name](ids, 2, end).values()))
    assert "exists already" in error_of("convert", shards, "--to", name, "-o", file)
    run("convert", shards, "--to", name, "-o", file, "--force", "--end-of-text", "<|endoftext|>")
    assert Path(file).read_bytes() == written
    told = ["--from", name] if name == "nanogpt" else []
    words = ["convert", file, *told, "--to", "shards", "--codec", "v.bpe"]
    assert "3 documents in split train" in run(*words, "-o", "back").stdout
    back, before = (folder / "train/00000.shard" for folder in (Path("back"), shards))
    assert back.read_bytes() == before.read_bytes()
    assert "already exists; choose another directory, or pass --force" in error_of(*words, "-o", "back")
    run(*words, "-o", "back", "--force")
    run(*words, "-o", "back", "--split", "validation")
    assert "name one with --split" in error_of("convert", "back", "--to", name, "-o", "y.bin", code=2)
    run("convert", "back", "--to", name, "-o", f"y{SUFFIXES[name]}", "--split", "validation", "--dtype", "uint32")
    with pytest.raises(AssertionError):  # without the mark, the end-of-text ids are ids of documents
        assert lists(TOKEN_FORMATS[name].documents([Path(file)])) == ids


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("shards -o x.bin", "if it holds shards, name a format with --to"),
        ("v.bpe --codec byte -o x.bpe", "--codec goes with --to"),
        ("v.bpe --end-of-text 1 -o x.bpe", "--end-of-text goes with --to"),
        ("v.bpe --from nanogpt -o x.bpe", "--from goes with --to"),
        ("v.bpe v.bpe -o x.bpe", "a second SOURCE goes with --to"),
        ("shards --to nanogpt -o -", "cannot be written to standard output"),
        ("shards shards --to nanogpt -o x.bin", "reads one directory of shards"),
        ("shards --to nanogpt --codec byte -o x.bin", "reads one directory of shards"),
        ("shards --to nanogpt --pattern gpt2 -o x.bin", "are for vocabularies"),
        ("shards --to nanogpt --end-of-text zz -o x.bin", "is neither a number nor a special token of bpe-270"),
        ("x.bin --to shards -o out", "name the vocabulary with --codec"),
        ("x.bin --to shards --codec byte -o -", "shards are a directory"),
        ("x.bin --to tfrecord -o out", "--to"),
    ],
)
def test_wrong_usage(words: str, message: str, shards: Path) -> None:
    assert message in error_of("convert", *words.split(), code=2)


def test_what_the_command_refuses(shards: Path) -> None:
    def error(words: str) -> str:
        return error_of("convert", *words.split())

    run("convert", shards, "--to", "nanogpt", "-o", "x.bin")
    assert error("x.bin --to shards --codec v.bpe -o out").startswith("x.bin: nothing in it says its format; name it")
    assert error("x.bin --from llm.c --to shards --codec v.bpe -o out").startswith("x.bin: has ")
    message = error("x.bin --from nanogpt --to shards --codec byte -o out")
    assert message.startswith("x.bin: document 1: id ")
    assert "no such file" in error("no.bin --to shards --codec byte -o out")
    assert "v.bpe: not a folder; name a folder that fastcompress encode wrote" in error("v.bpe --to llm.c -o y.bin")
    assert error("shards --to megatron -o y.ds").endswith("it must end in .bin")
    assert "--end-of-text is 70000; it must be 0 to 65535" in error("shards --to nanogpt --end-of-text 70000 -o y.bin")
    assert not Path("out/train").exists()
    assert not list(Path().glob("y*"))


def test_a_stream_that_nothing_divides_is_noticed(shards: Path) -> None:
    run("convert", shards, "--to", "llm.c", "--end-of-text", "5", "-o", "x.bin", "--split", "train")
    words = ["convert", "x.bin", "--to", "shards", "--codec", "v.bpe", "-o", "out", "--force"]
    end = BPE.load("v.bpe").special_tokens["<|endoftext|>"]
    assert f"no id {end} divides the ids" in run(*words).stderr
    assert run(*words, "--end-of-text", "none").stderr == ""
    assert TokenDataset.open(Path("out"), "train").num_documents == 1
    assert run(*words, "--end-of-text", "5").stderr == ""
    assert TokenDataset.open(Path("out"), "train").num_documents == 3


def test_wide_ids_need_consent_where_readers_cannot_know(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    alphabet = "".join(map(chr, [*range(0x20, 0x7F), *range(0xE000, 0xE000 + 1), *range(0x20000, 0x20000 + 65_500)]))
    codec = CharCodec.train([alphabet.encode()])
    assert codec.vocab_size > 65_536
    write_shards(tmp_path / "wide", "train", [alphabet[-3:].encode()], codec)
    message = error_of("convert", "wide", "--to", "nanogpt", "--end-of-text", "0", "-o", "x.bin")
    assert "does not fit the uint16 ids of this nanogpt file; pass --dtype 'uint32'" in message
    for name in TOKEN_FORMATS:
        wide = ["--dtype", "uint32"] if name == "nanogpt" else []
        result = run("convert", "wide", "--to", name, *wide, "-o", f"{name}{SUFFIXES[name]}", "--json").stdout
        assert json.loads(result)["dtype"] == "uint32"
        words = ["--from", name, *wide, "--to", "shards", "--codec", "wide/codec.json", "-o", f"back-{name}"]
        run("convert", f"{name}{SUFFIXES[name]}", *words)
        assert (tmp_path / f"back-{name}/train/00000.shard").read_bytes() == (
            tmp_path / "wide/train/00000.shard"
        ).read_bytes()
