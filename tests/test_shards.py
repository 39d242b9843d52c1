"""Shard files: what is written is read, across files; everything damaged is refused by name."""

from __future__ import annotations

import errno
import hashlib
import os
import pickle
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastcompress.codec import ByteCodec, CharCodec, save_codec
from fastcompress.data import shard_writer
from fastcompress.data.shard_file import HEADER_BYTES, ShardFile
from fastcompress.data.shard_file_writer import ShardFileWriter
from fastcompress.data.shards import TokenDataset, list_splits, write_shards, write_splits
from fastcompress.errors import ConfigError, DataError, FormatError, MismatchError, OutputError

DOCUMENTS = [b"first document", b"", b"second\n\x00\xff", b"x" * 100, b"last"]


class WideCodec:
    """A byte is id 300 * byte, out of 76,501: ids that need 32 bits. Tests only."""

    name = "wide"
    vocab_size = 300 * 255 + 1
    lossless = True
    unambiguous = True
    max_unstable_tokens = 0
    fingerprint = hashlib.sha256(b"wide").hexdigest()

    def encode(self, data):
        return np.frombuffer(data, np.uint8).astype(np.uint32) * np.uint32(300)

    def decode(self, tokens):
        return (np.asarray(tokens) // 300).astype(np.uint8).tobytes()

    def byte_lengths(self, tokens):
        return np.ones(len(tokens), np.int64)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    write_shards(tmp_path / "out", "train", DOCUMENTS, ByteCodec(), shard_bytes=20)
    return tmp_path / "out"


def shard_paths(directory: Path) -> list[Path]:
    return sorted((directory / "train").glob("*.shard"))


def rewrite(path: Path, change) -> None:
    """Apply `change` to the file's bytes (a bytearray) and make the checksums right again, also in the manifest."""
    blob = bytearray(path.read_bytes())
    change(blob)
    blob[96:128] = hashlib.sha256(blob[HEADER_BYTES:]).digest()
    old, blob[128:160] = bytes(blob[128:160]), hashlib.sha256(blob[:128]).digest()
    path.write_bytes(blob)
    manifest = path.parent / "manifest.json"
    manifest.write_text(manifest.read_text().replace(old.hex(), blob[128:160].hex()))


@settings(max_examples=40, deadline=None)
@given(
    documents=st.lists(st.binary(max_size=40), min_size=1, max_size=12),
    shard_bytes=st.integers(1, 100),
    num_threads=st.sampled_from([1, 2]),
    data=st.data(),
)
def test_written_and_in_memory_agree_across_shards(tmp_path_factory, documents, shard_bytes, num_threads, data):
    directory = tmp_path_factory.mktemp("shards")
    codec = ByteCodec()
    write_shards(directory, "train", documents, codec, shard_bytes=shard_bytes, num_threads=num_threads)
    mapped = TokenDataset.open(directory, "train", codec=codec)
    memory = TokenDataset.from_documents(documents, codec)
    stream = [id for document in documents for id in (*document, 256)]
    for dataset in (mapped, memory):
        assert (dataset.num_tokens, dataset.num_documents) == (len(stream), len(documents))
        assert dataset.num_bytes == sum(map(len, documents))
        assert (dataset.vocab_size, dataset.codec_fingerprint) == (256, codec.fingerprint)
        begin = data.draw(st.integers(0, len(stream)))
        end = data.draw(st.integers(begin, len(stream)))
        tokens = dataset.read(begin, end)
        assert tokens.dtype == np.uint32
        assert tokens.tolist() == stream[begin:end]
        assert [codec.decode(tokens) for tokens in dataset.documents()] == documents


def test_the_documented_layout_byte_for_byte(tmp_path):
    write_shards(tmp_path, "train", [b"ab", b"c"], ByteCodec())
    blob = (tmp_path / "train" / "00000.shard").read_bytes()
    payload = struct.pack("<5H", 97, 98, 256, 99, 256) + bytes(6) + struct.pack("<3Q", 0, 3, 5)
    header = b"\x89FCSH\r\n\x1a" + struct.pack("<IIQQQIII", 2, 2, 5, 2, 3, 256, 0, 0) + bytes(12)
    header += bytes.fromhex(ByteCodec().fingerprint) + hashlib.sha256(payload).digest()
    assert blob == header + hashlib.sha256(header).digest() + payload


def test_vocabularies_above_16_bits_take_four_bytes(tmp_path):
    codec = WideCodec()
    dataset = TokenDataset.from_documents([b"\x00\xff"], codec)
    assert dataset.read(0, 3).tolist() == [0, 76500, 76501]
    codec.vocab_size = 65_535
    write_file(tmp_path / "a", codec, [65_534])
    codec.vocab_size = 65_536
    write_file(tmp_path / "b", codec, [65_535])
    assert ShardFile(tmp_path / "a", verify=True).tokens.tolist() == [65_534, 65_535]
    assert ShardFile(tmp_path / "a", verify=True).tokens.dtype == np.uint16
    assert ShardFile(tmp_path / "b", verify=True).tokens.tolist() == [65_535, 65_536]
    assert ShardFile(tmp_path / "b", verify=True).tokens.dtype == np.uint32


def write_file(path: Path, codec, ids: list[int]) -> None:
    writer = ShardFileWriter(path, vocab_size=codec.vocab_size, codec_fingerprint=codec.fingerprint)
    writer.add([np.array(ids, np.uint32)], num_bytes=len(ids))
    writer.finish()


def test_every_flipped_bit_is_noticed(tmp_path):
    write_shards(tmp_path, "train", [b"ab", b"c"], ByteCodec())
    path = tmp_path / "train" / "00000.shard"
    good = path.read_bytes()
    for position in range(len(good)):
        damaged = bytearray(good)
        damaged[position] ^= 1 << position % 8
        path.write_bytes(damaged)
        with pytest.raises(FormatError, match="encode the corpus again"):
            TokenDataset.open(tmp_path, "train")


def test_every_truncation_and_any_addition_is_noticed(directory):
    path = shard_paths(directory)[0]
    good = path.read_bytes()
    for size in range(len(good)):
        path.write_bytes(good[:size])
        with pytest.raises(FormatError, match=r"00000\.shard"):
            TokenDataset.open(directory, "train", verify=False)
    path.write_bytes(good + b"\x00")
    with pytest.raises(FormatError, match="bytes were added"):
        TokenDataset.open(directory, "train", verify=False)


def test_foreign_files_and_other_versions_are_named(directory):
    path = shard_paths(directory)[0]
    rewrite(path, lambda blob: blob.__setitem__(slice(8, 12), struct.pack("<I", 3)))
    with pytest.raises(FormatError, match="format version 3, this build reads versions 1 and 2"):
        TokenDataset.open(directory, "train")
    path.write_bytes(b"PK\x03\x04" + bytes(500))
    with pytest.raises(FormatError, match=r"00000\.shard: not a shard file"):
        TokenDataset.open(directory, "train")


def test_a_header_that_promises_more_than_memory_allocates_nothing(directory):
    path = shard_paths(directory)[0]
    rewrite(path, lambda blob: blob.__setitem__(slice(16, 24), struct.pack("<Q", 2**60)))
    with pytest.raises(FormatError, match="by its header"):
        TokenDataset.open(directory, "train")


@pytest.mark.parametrize(("field", "value"), [((12, 16), 4), ((24, 32), 0), ((24, 32), 10**9), ((52, 56), 1)])
def test_headers_that_contradict_themselves(directory, field, value):
    begin, end = field
    path = shard_paths(directory)[0]
    rewrite(path, lambda blob: blob.__setitem__(slice(begin, end), value.to_bytes(end - begin, "little")))
    with pytest.raises(FormatError, match=r"00000\.shard: the header contradicts itself"):
        TokenDataset.open(directory, "train")


def test_counts_of_a_header_are_checked_to_the_last_one(tmp_path):
    """One shard of three documents in five ids: each count is refused as soon as it is one too large."""
    write_shards(tmp_path, "train", [b"a", b"b", b""], ByteCodec())
    path = tmp_path / "train" / "00000.shard"
    good = path.read_bytes()
    one_too_large = {"documents": (24, 6, 8)}
    reserved = {f"reserved byte {i}": (i, 1, 1) for i in range(52, 56)}
    for begin, value, width in (one_too_large | reserved).values():
        path.write_bytes(good)
        rewrite(
            path, lambda blob, at=begin, v=value, w=width: blob.__setitem__(slice(at, at + w), v.to_bytes(w, "little"))
        )
        with pytest.raises(FormatError, match="the header contradicts itself"):
            ShardFile(path, verify=True)
    write_shards(tmp_path, "validation", [b"", b"", b""], ByteCodec())  # as many documents as ids is fine
    assert TokenDataset.open(tmp_path, "validation").num_documents == 3


def first_version(path: Path, index: int, count: int) -> None:
    """Make a file one of version 1: the same but for its version, and its index and number in the split."""
    blob = bytearray(path.read_bytes())
    blob[8:12] = struct.pack("<I", 1)
    blob[44:52] = struct.pack("<II", index, count)
    blob[128:160] = hashlib.sha256(blob[:128]).digest()
    path.write_bytes(blob)


def test_version_1_is_read_as_it_was(directory):
    """A split without a manifest, whose files know their number."""
    tokens = TokenDataset.open(directory, "train").read(0, 20).tolist()
    paths = shard_paths(directory)
    (directory / "train" / "manifest.json").unlink()
    with pytest.raises(FormatError, match=r"train: has no manifest\.json; restore it"):
        TokenDataset.open(directory, "train")
    for index, path in enumerate(paths):
        first_version(path, index, len(paths))
    dataset = TokenDataset.open(directory, "train", codec=ByteCodec())
    assert dataset.read(0, 20).tolist() == tokens
    assert dataset.fingerprint == TokenDataset.open(directory, "train").fingerprint
    assert [ByteCodec().decode(ids) for ids in dataset.documents()] == DOCUMENTS
    for index, count in ((1, len(paths)), (0, len(paths) + 1)):
        first_version(paths[0], index, count)
        with pytest.raises(FormatError, match="restore the missing files"):
            TokenDataset.open(directory, "train")
    for index, count in ((7, 7), (0, 0)):
        first_version(paths[0], index, count)
        with pytest.raises(FormatError, match=r"00000\.shard: the header contradicts itself"):
            TokenDataset.open(directory, "train")


def test_a_version_1_file_byte_for_byte(tmp_path):
    payload = struct.pack("<5H", 97, 98, 256, 99, 256) + bytes(6) + struct.pack("<3Q", 0, 3, 5)
    header = b"\x89FCSH\r\n\x1a" + struct.pack("<IIQQQIII", 1, 2, 5, 2, 3, 256, 0, 1) + bytes(12)
    header += bytes.fromhex(ByteCodec().fingerprint) + hashlib.sha256(payload).digest()
    (tmp_path / "train").mkdir()
    (tmp_path / "train" / "00000.shard").write_bytes(header + hashlib.sha256(header).digest() + payload)
    save_codec(ByteCodec(), tmp_path / "codec.json")
    dataset = TokenDataset.open(tmp_path, "train")
    assert [ByteCodec().decode(ids) for ids in dataset.documents()] == [b"ab", b"c"]
    file = ShardFile(tmp_path / "train" / "00000.shard", verify=True)
    assert file.header.to_bytes() == header + hashlib.sha256(header).digest()


def test_another_file_by_the_name_of_a_shard_is_noticed(directory):
    first, second, *_ = shard_paths(directory)
    good = first.read_bytes()
    first.write_bytes(second.read_bytes())
    with pytest.raises(FormatError, match=r"00000\.shard: is not the file that manifest\.json lists"):
        TokenDataset.open(directory, "train", verify=False)
    first.write_bytes(good)
    manifest = directory / "train" / "manifest.json"
    text = manifest.read_text()
    changes = {'"version": 2': '"version": 3', '"shards"': '"shard"', "{": "[", "00000.shard": "../00000.shard"}
    for old, new in (changes | {'"documents": 5': '"documents": 6'}).items():
        manifest.write_text(text.replace(old, new))
        with pytest.raises(FormatError, match=r"manifest\.json: .*encode the corpus again"):
            TokenDataset.open(directory, "train", verify=False)


def test_the_old_number_of_tokens_still_cuts(tmp_path):
    with pytest.warns(DeprecationWarning, match="shard_tokens is deprecated; use shard_bytes"):
        write_shards(tmp_path, "train", DOCUMENTS, ByteCodec(), shard_tokens=20)
    assert len(shard_paths(tmp_path)) == 2


def test_more_shards_than_files_may_be_open(tmp_path):
    resource = pytest.importorskip("resource")
    write_shards(tmp_path, "train", [b"a"] * 30, ByteCodec(), shard_bytes=1)
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest_free = os.open(os.devnull, os.O_RDONLY)
    os.close(lowest_free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest_free + 10, before[1]))
    try:
        with pytest.raises(DataError, match=r"\.shard: cannot be opened, because too many files are open; raise"):
            TokenDataset.open(tmp_path, "train")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert TokenDataset.open(tmp_path, "train").num_documents == 30


def test_ids_out_of_range_are_named_even_unverified(directory):
    path = shard_paths(directory)[0]
    rewrite(path, lambda blob: blob.__setitem__(slice(HEADER_BYTES + 6, HEADER_BYTES + 8), b"\xff\x01"))
    with pytest.raises(DataError, match=r"00000\.shard: id 511 at token 3"):
        TokenDataset.open(directory, "train")
    dataset = TokenDataset.open(directory, "train", verify=False)
    assert dataset.read(0, 3).tolist() == list(b"fir")
    with pytest.raises(DataError, match=r"id 511 in tokens \[0, 4\)"):
        dataset.read(0, 4)


def test_end_ids_and_offsets_must_agree(directory):
    path = shard_paths(directory)[0]
    good = path.read_bytes()
    rewrite(path, lambda blob: blob.__setitem__(slice(HEADER_BYTES, HEADER_BYTES + 2), b"\x00\x01"))
    with pytest.raises(FormatError, match="end ids for"):
        TokenDataset.open(directory, "train")
    path.write_bytes(good)
    rewrite(path, lambda blob: blob.__setitem__(slice(-16, -8), struct.pack("<Q", 20)))
    with pytest.raises(FormatError, match="does not end in its end id"):
        TokenDataset.open(directory, "train")
    rewrite(path, lambda blob: blob.__setitem__(slice(-16, -8), struct.pack("<Q", 2**63)))
    with pytest.raises(FormatError, match="do not ascend"):
        TokenDataset.open(directory, "train", verify=False)


def test_missing_files_and_splits_are_named(directory):
    assert list_splits(directory) == ["train"]
    with pytest.raises(DataError, match=r"no split 'test' \(splits: train\)"):
        TokenDataset.open(directory, "test")
    with pytest.raises(DataError, match=r"no split 'train' \(splits: none\)"):
        TokenDataset.open(directory / "nothing", "train")
    assert len(shard_paths(directory)) > 1
    shard_paths(directory)[-1].unlink()
    with pytest.raises(FormatError, match="restore the missing files"):
        TokenDataset.open(directory, "train")
    (directory / "codec.json").unlink()
    with pytest.raises(DataError, match=r"codec\.json: no such codec file"):
        TokenDataset.open(directory, "train")


def test_another_codec_is_refused(directory):
    other = CharCodec(["a", "b"])
    with pytest.raises(MismatchError, match="not encoded by this char-2 codec"):
        TokenDataset.open(directory, "train", codec=other)
    with pytest.raises(MismatchError, match="holds splits of codec byte, not char-2"):
        write_shards(directory, "validation", [b"ab"], other)
    save_codec(other, directory / "codec.json")
    with pytest.raises(MismatchError, match=r"00000\.shard: was not encoded by .*codec\.json"):
        TokenDataset.open(directory, "train")


def test_an_existing_split_is_replaced_only_when_asked(directory):
    with pytest.raises(OutputError, match=r"train: already exists; .* overwrite=True"):
        write_shards(directory, "train", [b"new"], ByteCodec())
    assert TokenDataset.open(directory, "train").num_documents == len(DOCUMENTS)
    other = CharCodec(["e", "n", "w"])
    write_shards(directory, "train", [b"new"], other, overwrite=True)
    dataset = TokenDataset.open(directory, "train", codec=other)
    assert [other.decode(tokens) for tokens in dataset.documents()] == [b"new"]
    assert sorted(path.name for path in directory.iterdir()) == ["codec.json", "train"]


def test_overwriting_never_deletes_other_files(tmp_path):
    (tmp_path / "train").mkdir()
    (tmp_path / "train" / "book.txt").write_text("mine")
    with pytest.raises(OutputError, match="not a directory of shards only"):
        write_shards(tmp_path, "train", [b"new"], ByteCodec(), overwrite=True)
    assert (tmp_path / "train" / "book.txt").read_text() == "mine"
    (tmp_path / "test").write_text("mine too")
    with pytest.raises(OutputError, match="not a directory of shards only"):
        write_shards(tmp_path, "test", [b"new"], ByteCodec(), overwrite=True)
    assert (tmp_path / "test").read_text() == "mine too"


def test_a_corpus_is_all_that_a_directory_holds(directory):
    write_shards(directory, "test", [b"an older corpus's"], ByteCodec())
    other = CharCodec(["e", "n", "w"])
    for splits in ({"train": [b"new"], "validation": [b"we"]}, {"validation": [b"we"]}):
        with pytest.raises(OutputError, match=r"already holds the splits test, train; .*overwrite=True"):
            write_splits(directory, splits, ByteCodec())
    assert list_splits(directory) == ["test", "train"]
    write_splits(directory, {"train": [b"new"], "validation": [b"we"]}, other, overwrite=True)
    assert sorted(path.name for path in directory.iterdir()) == ["codec.json", "train", "validation"]
    for split, text in (("train", b"new"), ("validation", b"we")):
        dataset = TokenDataset.open(directory, split, codec=other)
        assert [other.decode(tokens) for tokens in dataset.documents()] == [text]


def test_a_corpus_that_cannot_be_written_whole_changes_nothing(directory):
    before = {path: path.read_bytes() for path in shard_paths(directory)}
    with pytest.raises(DataError, match="no documents"):
        write_splits(directory, {"train": [b"new"], "validation": []}, ByteCodec(), overwrite=True)
    (directory / "validation").mkdir()
    (directory / "validation" / "book.txt").write_text("mine")
    with pytest.raises(OutputError, match="not a directory of shards only"):
        write_splits(directory, {"train": [b"new"], "validation": [b"w"]}, ByteCodec(), overwrite=True)
    assert {path: path.read_bytes() for path in shard_paths(directory)} == before
    assert sorted(path.name for path in directory.iterdir()) == ["codec.json", "train", "validation"]


def test_fingerprints_know_tokens_and_borders(tmp_path):
    for num_padded in range(4):  # of the ids, to a multiple of 8 bytes
        documents = [*DOCUMENTS, b"x" * num_padded]
        write_shards(tmp_path, "train", documents, ByteCodec(), overwrite=True)
        in_memory = TokenDataset.from_documents(documents, ByteCodec())
        assert in_memory.fingerprint == TokenDataset.open(tmp_path, "train").fingerprint
    in_memory = TokenDataset.from_documents(DOCUMENTS, ByteCodec())
    others = [[*DOCUMENTS, b""], [DOCUMENTS[0] + b"x", *DOCUMENTS[1:]], [b"".join(DOCUMENTS)], DOCUMENTS[::-1]]
    fingerprints = {TokenDataset.from_documents(other, ByteCodec()).fingerprint for other in others}
    assert len(fingerprints | {in_memory.fingerprint}) == 1 + len(others)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), DataError("bad"), MemoryError()])
def test_an_interrupted_writer_leaves_what_was_there(directory, error):
    def documents():
        yield b"new document" * 10
        raise error

    before = {path: path.read_bytes() for path in shard_paths(directory)}
    with pytest.raises(type(error)):
        write_shards(directory, "train", documents(), ByteCodec(), overwrite=True, shard_bytes=5)
    with pytest.raises(type(error)):
        write_shards(directory, "validation", documents(), ByteCodec())
    assert {path: path.read_bytes() for path in shard_paths(directory)} == before
    assert sorted(path.name for path in directory.iterdir()) == ["codec.json", "train"]


def test_outputs_that_cannot_be_written_are_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match=r"file: cannot be written"):
        write_shards(tmp_path / "file", "train", [b"a"], ByteCodec())
    with pytest.raises(ConfigError, match=r"split is '\.\./x'; it must"):
        write_shards(tmp_path, "../x", [b"a"], ByteCodec())
    with pytest.raises(ConfigError, match="shard_bytes is 0"):
        write_shards(tmp_path, "train", [b"a"], ByteCodec(), shard_bytes=0)
    with pytest.raises(DataError, match="no documents to encode"):
        write_shards(tmp_path, "train", [], ByteCodec())
    with pytest.raises(DataError, match="no documents to encode"):
        TokenDataset.from_documents([], ByteCodec())


def test_a_broken_codec_cannot_write_wrapped_ids(tmp_path):
    codec = WideCodec()
    codec.vocab_size = 256
    with pytest.raises(DataError, match="a codec of 256 ids encoded to id 76500"):
        write_shards(tmp_path, "train", [b"\xff"], codec)


def test_reads_outside_the_stream_are_refused(directory):
    dataset = TokenDataset.open(directory, "train")
    assert dataset.read(5, 5).tolist() == []
    for begin, end in ((-1, 3), (3, 2), (0, dataset.num_tokens + 1)):
        with pytest.raises(DataError, match="it must be within"):
            dataset.read(begin, end)


def test_pickles_by_path_and_notices_replacement(directory):
    dataset = TokenDataset.open(directory, "train")
    blob = pickle.dumps(dataset)
    assert len(blob) < 600
    copy = pickle.loads(blob)
    assert copy.read(0, copy.num_tokens).tolist() == dataset.read(0, dataset.num_tokens).tolist()
    memory = pickle.loads(pickle.dumps(TokenDataset.from_documents(DOCUMENTS, ByteCodec())))
    assert memory.read(0, memory.num_tokens).tolist() == dataset.read(0, dataset.num_tokens).tolist()
    write_shards(directory, "train", [b"a"], CharCodec(["a"]), overwrite=True)
    with pytest.raises(MismatchError, match="replaced by shards of another codec"):
        pickle.loads(blob)


def test_progress_counts_every_document(tmp_path):
    seen: list[tuple[int, int]] = []
    write_shards(tmp_path, "train", DOCUMENTS, ByteCodec(), progress=lambda *counts: seen.append(counts))
    assert seen == [(len(document), len(document)) for document in DOCUMENTS]


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="resident memory is read from /proc")
def test_random_reads_do_not_grow_the_process(tmp_path):
    def resident_bytes() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    document = np.random.default_rng(0).bytes(1 << 20)
    write_shards(tmp_path, "train", (document for _ in range(128)), ByteCodec(), num_threads=1)
    before = resident_bytes()
    dataset = TokenDataset.open(tmp_path, "train")
    assert dataset.num_tokens > 1 << 27  # 256 MiB of files
    peak = 0
    for begin in np.random.default_rng(1).integers(0, dataset.num_tokens - 64, 20_000).tolist():
        dataset.read(begin, begin + 64)
        if begin % 16 == 0:
            peak = max(peak, resident_bytes())
    assert peak - before < 80 << 20


# --- Several writers, and disks that fail ------------------------------------------------------------------

WRITER = """
import sys, time
from pathlib import Path
from fastcompress.codec import ByteCodec, save_codec
from fastcompress.data.shards import write_shards
from fastcompress.errors import OutputError

directory, number, overwrite, meet = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "overwrite", sys.argv[4]

def documents():
    for i in range(50):
        yield b"%d" % number * 100
    if meet == "inside":  # all have found the place free and encoded their text before the first may finish
        Path(sys.argv[5], str(number)).touch()
        while len(list(Path(sys.argv[5]).iterdir())) < 4:
            time.sleep(0.002)

try:
    write_shards(directory, "train", documents(), ByteCodec(), shard_bytes=1000, overwrite=overwrite)
except OutputError as error:
    print(error)
    sys.exit(3)
"""


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["keep", "overwrite"])
@pytest.mark.parametrize("attempt", range(4))
def test_of_four_writers_one_stands_whole(tmp_path, mode, attempt):
    barrier = tmp_path / "barrier"
    barrier.mkdir()
    directory = tmp_path / "tokens"
    meet = "inside" if attempt < 3 else "nowhere"
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, directory, str(number), mode, meet, barrier],
            stdout=subprocess.PIPE, text=True,
        )
        for number in range(4)
    ]  # fmt: skip
    said = [process.communicate()[0] for process in processes]
    codes = [process.returncode for process in processes]
    assert sorted(codes) == ([0, 3, 3, 3] if mode == "keep" else [0] * 4)
    assert all("train: already exists; " in text for text, code in zip(said, codes, strict=True) if code == 3)
    documents = [ByteCodec().decode(tokens) for tokens in TokenDataset.open(directory, "train").documents()]
    winners = [number for number in range(4) if documents == [b"%d" % number * 100] * 50]
    assert len(winners) == 1
    assert codes[winners[0]] == 0
    assert sorted(path.name for path in directory.iterdir()) == ["codec.json", "train"]


def test_writers_of_different_splits_do_not_disturb_each_other(directory):
    def documents():
        write_shards(directory, "validation", [b"v"], ByteCodec())
        yield b"t"

    write_shards(directory, "test", documents(), ByteCodec())
    assert list_splits(directory) == ["test", "train", "validation"]


def test_a_split_of_another_codec_that_came_meanwhile_is_kept(tmp_path):
    def documents():
        write_shards(tmp_path, "validation", [b"we"], CharCodec(["e", "w"]))
        yield b"t"

    with pytest.raises(MismatchError, match="holds splits of codec char"):
        write_shards(tmp_path, "train", documents(), ByteCodec())
    assert list_splits(tmp_path) == ["validation"]


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_file_or_folder_that_came_meanwhile_is_not_replaced(tmp_path, overwrite):
    """rename() would replace a file, and an empty folder, without a word."""

    def documents():
        (tmp_path / "train").mkdir(parents=True)
        if overwrite:
            (tmp_path / "train" / "book.txt").write_text("mine")
        yield b"t"

    with pytest.raises(OutputError, match=r"already exists|not a directory of shards only"):
        write_shards(tmp_path, "train", documents(), ByteCodec(), overwrite=overwrite)
    assert [path.name for path in (tmp_path / "train").iterdir()] == ["book.txt"] * overwrite


def test_a_name_that_is_taken_at_the_last_moment_is_not_replaced(tmp_path):
    for make in (lambda path: path.mkdir(), lambda path: path.write_bytes(b"")):
        source, target = tmp_path / "source", tmp_path / "target"
        for path in (source, target):
            make(path)
        with pytest.raises(FileExistsError):
            shard_writer._move(source, target, [])
        assert source.exists()
        assert target.exists()
        for path in (source, target):
            path.rmdir() if path.is_dir() else path.unlink()


@pytest.mark.parametrize("failing", range(6))
def test_a_failed_rename_brings_everything_back(directory, monkeypatch, failing):
    write_shards(directory, "test", [b"t"], ByteCodec())
    before = {path: path.read_bytes() for path in directory.rglob("*") if path.is_file()}
    assert len(before) > 3
    real, calls = os.rename, iter(range(100))

    def rename(source, target):
        if next(calls) == failing:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(source, target)

    monkeypatch.setattr(os, "rename", rename)
    with pytest.raises(OutputError, match=r"No space left on device\); free some space"):
        write_splits(directory, {"train": [b"new"], "test": [b"w"]}, CharCodec(["e", "n", "w"]), overwrite=True)
    assert {path: path.read_bytes() for path in directory.rglob("*") if path.is_file()} == before


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
@pytest.mark.parametrize("overwrite", [False, True])
def test_a_full_disk_leaves_what_was_there(directory, monkeypatch, overwrite):
    before = {path: path.read_bytes() for path in shard_paths(directory)}
    real = Path.open

    def full(path, mode="r", *arguments, **options):
        if path.suffix == ".shard" and mode == "xb":
            return real(Path("/dev/full"), "wb", *arguments, **options)
        return real(path, mode, *arguments, **options)

    monkeypatch.setattr(Path, "open", full)
    split = "train" if overwrite else "validation"
    with pytest.raises(OutputError, match=r"cannot be written \(No space left on device\); free some space"):
        write_shards(directory, split, [b"x" * 100_000], ByteCodec(), overwrite=overwrite)
    assert {path: path.read_bytes() for path in shard_paths(directory)} == before
    assert sorted(path.name for path in directory.iterdir()) == ["codec.json", "train"]
