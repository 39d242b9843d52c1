"""Encoding of files: what is written is what a short loop says, for any threads, any interruption and any input."""

from __future__ import annotations

import errno
import hashlib
import io
import itertools
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastcompress._locks import locked
from fastcompress.codec import ByteCodec, CharCodec, Codec, save_codec
from fastcompress.data import TokenDataset, dataset_parts, encode_dataset, write_shards
from fastcompress.data import encode as encode_module
from fastcompress.data.corpora import take_bytes
from fastcompress.data.dataset_parts import EncodeProgress
from fastcompress.data.hashed_file import HashedFile
from fastcompress.data.inputs import DocumentReader
from fastcompress.data.manifest import EncodeSettings, Manifest, ShardRecord
from fastcompress.data.shard_file import HEADER_BYTES, ShardFile, ShardHeader
from fastcompress.errors import ConfigError, DataError, FormatError, MismatchError, OutputError
from tests.input_files import needs_pyarrow, zstd
from tests.test_cli import error_of, run

SHARD_BYTES = 9_000


@pytest.fixture
def encoded(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The texts that the codec of bytes has encoded. For the text "stop", it raises an error as long as it is first."""
    texts: list[bytes] = []
    real = ByteCodec.encode

    def encode_counted(self, data):
        texts.append(data)
        if data == b"stop" and texts.count(b"stop") == 1:
            raise DataError("stopped")
        return real(self, data)

    monkeypatch.setattr(ByteCodec, "encode", encode_counted)
    return texts


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of small files of several types: some bad rows, an empty file, and a file that has only bad rows."""
    folder = tmp_path_factory.mktemp("source")
    rng = np.random.default_rng(5)
    for number in range(4):
        rows = [json.dumps({"text": "ab" * int(size)}) for size in rng.integers(0, 400, 40)]
        rows[7] = '{"text": null}'
        (folder / f"{number}.jsonl").write_text("\n".join(rows) + "\n")
    (folder / "bad.jsonl").write_text("{\n" * 3)
    (folder / "empty.txt").write_bytes(b"")
    (folder / "text.txt").write_bytes(b"some text " * 700)
    return folder


def tree(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def encode(source: Path, output: Path, codec: Codec | None = None, **options: object):
    arguments: dict[str, object] = {"on_error": "skip", "shard_bytes": SHARD_BYTES, **options}
    return encode_dataset(source, output, codec or ByteCodec(), **arguments)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def expected(source: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The files of the uninterrupted run, which the tests of one thread compare with a plain loop."""
    output = tmp_path_factory.mktemp("expected") / "out"
    encode(source, output, num_threads=1)
    return tree(output)


def contents(output: Path, split: str = "train") -> list[list[bytes]]:
    """The documents of each shard."""
    manifest = Manifest.read(output / split)
    assert manifest is not None
    files = [ShardFile(output / split / shard.name, verify=True) for shard in manifest.shards]
    return [
        [
            file.tokens[begin : end - 1].astype(np.uint8).tobytes()
            for begin, end in zip(file.offsets, file.offsets[1:], strict=False)
        ]
        for file in files
    ]


def plain_shards(files: list[Path], shard_bytes: int) -> list[list[bytes]]:
    """The rule, said once more: a part ends when its files, and a shard when its documents, have that many bytes."""
    shards: list[list[bytes]] = []
    shard: list[bytes] = []
    part_bytes = 0
    for path in files:
        for document in DocumentReader([path], on_error="skip"):
            shard.append(document.data)
            if sum(map(len, shard)) >= shard_bytes:
                shards.append(shard)
                shard = []
        part_bytes += path.stat().st_size
        if part_bytes >= shard_bytes and shard:
            shards.append(shard)
            shard = []
        if part_bytes >= shard_bytes:
            part_bytes = 0
    return shards + [shard] * bool(shard)


# --- What is written --------------------------------------------------------------------------------------


def test_shards_are_what_a_plain_loop_says(source: Path, tmp_path: Path, expected: dict[str, bytes]) -> None:
    result = encode(source, tmp_path / "out")
    files = sorted(source.iterdir())
    assert contents(tmp_path / "out") == plain_shards(files, SHARD_BYTES)
    assert len(result.manifest.shards) > 6
    documents = [document.data for document in DocumentReader([source], on_error="skip")]
    dataset = TokenDataset.open(tmp_path / "out", "train", codec=ByteCodec())
    assert [ByteCodec().decode(ids) for ids in dataset.documents()] == documents
    assert (dataset.num_bytes, dataset.num_documents) == (result.manifest.bytes, result.manifest.documents)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["codec.json", "train"]
    assert [(one.path, one.size) for one in result.manifest.inputs] == [
        (str(path), path.stat().st_size) for path in files
    ]
    assert [one.sha256 for one in result.manifest.inputs] == [
        hashlib.sha256(path.read_bytes()).hexdigest() for path in files
    ]


@pytest.mark.parametrize("num_threads", [1, 2, 8])
def test_threads_change_nothing(source: Path, tmp_path: Path, expected: dict[str, bytes], num_threads: int) -> None:
    encode(source, tmp_path / "out", num_threads=num_threads)
    assert tree(tmp_path / "out") == expected


@settings(max_examples=30, deadline=None)
@given(
    texts=st.lists(st.lists(st.text(st.sampled_from("aä\n"), max_size=20), max_size=8), min_size=1, max_size=5),
    shard_bytes=st.integers(1, 60),
    max_bytes=st.none() | st.integers(1, 80),
)
def test_any_rows_and_limits(tmp_path_factory, texts, shard_bytes, max_bytes):
    folder = tmp_path_factory.mktemp("rows")
    paths = [folder / f"{number}.jsonl" for number in range(len(texts))]
    for path, rows in zip(paths, texts, strict=True):
        path.write_text("".join(json.dumps({"text": text}) + "\n" for text in rows))
    documents = [document.data for document in take_bytes(DocumentReader(paths), max_bytes)]
    if not documents:
        with pytest.raises(DataError, match="no documents to encode"):
            encode_dataset(paths, folder / "out", ByteCodec(), shard_bytes=shard_bytes, max_bytes=max_bytes)
        assert not (folder / "out").exists()
        return
    encode_dataset(paths, folder / "out", ByteCodec(), shard_bytes=shard_bytes, max_bytes=max_bytes)
    shards = contents(folder / "out")
    assert [document for shard in shards for document in shard] == documents
    if max_bytes is None:
        assert shards == plain_shards(paths, shard_bytes)


def test_what_is_skipped_is_listed_and_counted(source: Path, tmp_path: Path) -> None:
    states: list[EncodeProgress] = []
    result = encode(source, tmp_path / "out", progress=lambda state: states.append(EncodeProgress(**vars(state))))
    lines = [json.loads(line) for line in (tmp_path / "out" / "train" / "skipped.jsonl").read_text().splitlines()]
    reader = DocumentReader([source], on_error="skip")
    for _ in reader:
        pass
    assert [(line["path"], line["row"], line["problem"]) for line in lines] == [
        (one.source, one.index, one.problem) for one in reader.skipped
    ]
    assert result.manifest.skipped == len(lines) == 4 + 3
    last = states[-1]
    assert (last.skipped, last.documents, last.num_bytes) == (7, result.manifest.documents, result.manifest.bytes)
    assert last.tokens == result.manifest.tokens - result.manifest.documents
    assert last.bytes_read == last.bytes_total == sum(path.stat().st_size for path in source.iterdir())
    assert all(a.bytes_read <= b.bytes_read for a, b in itertools.pairwise(states))


def test_a_document_larger_than_all_that_is_read_ahead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encode_module, "_AHEAD_BYTES", 1000)
    rows = [b"a" * size for size in (10, 3_000_000, 0, 5, 2_000_000)]
    (tmp_path / "rows.jsonl").write_bytes(b"".join(b'{"text": "%b"}\n' % row for row in rows))
    encode(tmp_path / "rows.jsonl", tmp_path / "out", num_threads=2, shard_bytes=1 << 30)
    assert contents(tmp_path / "out") == [rows]


def test_reading_stays_within_its_budget() -> None:
    """However slowly the batches are taken, at most two more of them are read than the budget has room for."""
    read = 0

    def batches() -> Iterator[encode_module.Batch]:
        nonlocal read
        for _ in range(60):
            read += 1
            yield encode_module.Batch([bytes(1000)])

    for taken, _ in enumerate(encode_module.encoded_batches(batches(), ByteCodec(), num_threads=3, ahead_bytes=8000)):
        assert read - taken <= 8 + 2
    assert read == 60


# --- Interruptions ----------------------------------------------------------------------------------------

FORKS = """
import os, random, signal, sys, time
from pathlib import Path
from fastcompress.codec import ByteCodec, CharCodec
from fastcompress.data import TokenDataset, encode_dataset, write_shards, write_splits
import fastcompress.data.encode_dataset  # so that the children need not
import numpy.random, multiprocessing
from fastcompress.data.shards import list_splits

def run(work):
    pid = os.fork()
    if pid == 0:
        try:
            work()
            os._exit(0)
        except BaseException as error:
            print(repr(error), flush=True)
            os._exit(1)
    return pid

def ended(pid):
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert code in (0, -signal.SIGKILL), code
    return code == 0

def ends_before(step, work):  # a kill at a change of a name, or before a wait for the disk
    count = 0
    def counted(real):
        def call(*arguments, **options):
            nonlocal count
            count += 1
            if count == step:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*arguments, **options)
        return call
    def work_until():
        for name in ("replace", "rename", "fsync", "link", "unlink", "mkdir", "rmdir"):
            setattr(os, name, counted(getattr(os, name)))
        work()
    return ended(run(work_until))

source, folder = map(Path, sys.argv[1:3])
"""

KILLED = (
    FORKS
    + """
def encode(output, overwrite=False):
    encode_dataset(
        source, output, ByteCodec(), on_error="skip", shard_bytes=9000, num_threads=2, overwrite=overwrite
    )

started = time.monotonic()
assert ended(run(lambda: encode(folder / "whole")))
seconds = time.monotonic() - started
rng = random.Random(11)
kills = 0
for moment in range(20):
    for attempt in range(100):
        pid = run(lambda: encode(folder / f"random-{moment}"))
        if attempt < 3:
            time.sleep(rng.random() * seconds * 1.1)
            os.kill(pid, signal.SIGKILL)
        if ended(pid):
            break
        kills += 1
print("kills", kills)

for step in range(1, 1000):
    output = folder / f"step-{step}"
    if ends_before(step, lambda: encode(output)):
        break
    assert ended(run(lambda: encode(output)))
print("steps", step)

for last in range(step - 12, 1000):  # the same where an old split is replaced, which is done at the end
    output = folder / f"replacing-{last}"
    write_shards(output, "train", [b"old"], CharCodec(["o", "l", "d"]))
    if ends_before(last, lambda: encode(output, True)):
        break
    if "train" in list_splits(output):
        assert TokenDataset.open(output, "train", verify=True).num_documents in (1, int(sys.argv[3]))
    assert ended(run(lambda: encode(output, True)))
print("replacements", last - step + 13)
"""
)

KILLED_CORPUS = (
    FORKS
    + """
old, new = CharCodec(["o", "l", "d"]), CharCodec(["e", "n", "w"])

def replace(output):
    write_splits(output, {"train": [b"new"], "validation": [b"we"]}, new, overwrite=True)

for step in range(1, 1000):
    output = folder / str(step)
    write_splits(output, {"train": [b"old"], "test": [b"lo"]}, old)
    if ends_before(step, lambda: replace(output)):
        break
    # The next writer of anything finds all of the old corpus or all of the new one, and nothing else.
    is_new = (output / "codec.json").exists() and list_splits(output) == ["train", "validation"]
    write_shards(output, "more", [b"e" if is_new else b"o"], new if is_new else old, overwrite=True)
    assert list_splits(output) == (["more", "train", "validation"] if is_new else ["more", "test", "train"])
    assert [path.name for path in output.glob(".*")] == []
    assert ended(run(lambda: replace(output)))
print("steps", step)
"""
)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_run_killed_at_any_moment_is_finished_by_the_next(
    source: Path, tmp_path: Path, expected: dict[str, bytes]
) -> None:
    num_documents = str(json.loads(expected["train/manifest.json"])["documents"])
    words = [sys.executable, "-c", KILLED, source, tmp_path, num_documents]
    process = subprocess.run(words, capture_output=True, text=True)
    assert process.returncode == 0, process.stdout + process.stderr
    said = dict(line.split() for line in process.stdout.splitlines())
    assert int(said["kills"]) >= 10
    assert int(said["steps"]) > 50
    assert int(said["replacements"]) > 15
    outputs = sorted(tmp_path.iterdir())
    assert len(outputs) == 1 + 20 + int(said["steps"]) + int(said["replacements"])
    for output in outputs:
        assert tree(output) == expected, output


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_corpus_killed_at_any_step_leaves_nothing(tmp_path: Path) -> None:
    words = [sys.executable, "-c", KILLED_CORPUS, tmp_path, tmp_path]
    process = subprocess.run(words, capture_output=True, text=True)
    assert process.returncode == 0, process.stdout + process.stderr
    outputs = sorted(tmp_path.iterdir())
    assert process.stdout == f"steps {len(outputs)}\n"
    assert len(outputs) > 20
    for output in outputs:
        assert sorted(path.name for path in output.iterdir()) == ["codec.json", "train", "validation"], output
        assert tree(output) == tree(outputs[0])


def test_what_is_done_is_not_done_again(tmp_path: Path, encoded: list[bytes]) -> None:
    texts = [b"one" * 100, b"two" * 100, b"three" * 100, b"stop", b"five" * 100]
    (tmp_path / "rows.jsonl").write_bytes(b"".join(b'{"text": "%b"}\n' % text for text in texts))
    with pytest.raises(DataError, match=r"rows\.jsonl:4: stopped"):
        encode(tmp_path / "rows.jsonl", tmp_path / "out", shard_bytes=300)
    assert not (tmp_path / "out" / "train").exists()
    with pytest.raises(DataError, match=r"no split 'train' \(splits: none\); run the interrupted encoding again"):
        TokenDataset.open(tmp_path / "out", "train")
    encoded.clear()
    encoded.append(b"stop")
    result = encode(tmp_path / "rows.jsonl", tmp_path / "out", shard_bytes=300)
    assert result.resumed_shards > 0
    assert encoded[1:] == texts[result.resumed_shards :]
    assert contents(tmp_path / "out") == [[text] for text in texts[:3]] + [texts[3:]]
    encoded.clear()
    assert encode(tmp_path / "rows.jsonl", tmp_path / "out", shard_bytes=300).was_complete
    assert not encoded


@pytest.fixture
def unfinished(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An output of which three shards are done when the disk is full."""
    fill_disk(monkeypatch, after=3)
    with pytest.raises(OutputError, match=r"cannot be written \(No space left on device\); free some space"):
        encode(source, tmp_path / "out")
    monkeypatch.undo()
    return tmp_path / "out"


def fill_disk(monkeypatch: pytest.MonkeyPatch, after: int) -> None:
    """Let the writing of shards fail after some of them."""
    real, count = os.fsync, 0

    def full(descriptor: int) -> None:
        nonlocal count
        if os.readlink(f"/proc/self/fd/{descriptor}").endswith(".shard"):
            count += 1
            if count > after:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", full)


needs_proc = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="no /proc")


@needs_proc
def test_a_full_disk_keeps_what_is_whole(source: Path, unfinished: Path, expected: dict[str, bytes]) -> None:
    shards = sorted(path.name for path in unfinished.rglob("*.shard"))
    assert len(shards) == 3
    assert [path.name for path in unfinished.iterdir()] == [".train.unfinished"]
    assert encode(source, unfinished).resumed_shards == 3
    assert tree(unfinished) == expected


@needs_proc
def test_another_run_is_not_mixed_in(source: Path, unfinished: Path, tmp_path: Path) -> None:
    before = tree(unfinished)
    other = [source / "0.jsonl"]
    for inputs, codec, options, what in (
        (source, CharCodec(["a", "b"]), {}, "codec"),
        (source, None, {"shard_bytes": 5_000}, "settings"),
        (source, None, {"max_bytes": 5_000}, "settings"),
        (other, None, {}, "inputs"),
    ):
        with pytest.raises(MismatchError, match=rf"an interrupted run left it, with other {what}; .* overwrite=True"):
            encode(inputs, unfinished, codec, **options)
        assert tree(unfinished) == before
    encode(other, unfinished, overwrite=True)
    encode(other, tmp_path / "fresh")
    assert tree(unfinished) == tree(tmp_path / "fresh")


@needs_proc
def test_shards_that_are_gone_or_changed_are_made_again(
    source: Path, unfinished: Path, expected: dict[str, bytes]
) -> None:
    second = sorted(unfinished.rglob("*.shard"))[1]
    second.write_bytes(second.read_bytes()[:-1])
    encode(source, unfinished)
    assert tree(unfinished) == expected


@needs_proc
def test_a_damaged_log_is_named(source: Path, unfinished: Path) -> None:
    log = sorted(unfinished.rglob("*.jsonl"))[0]
    log.write_bytes(log.read_bytes().replace(b"{", b"[", 1))
    with pytest.raises(FormatError, match=r"00000\.jsonl: line 1 is damaged .*; remove the folder and start over"):
        encode(source, unfinished)


@needs_proc
def test_a_line_that_was_cut_does_not_count(source: Path, unfinished: Path, expected: dict[str, bytes]) -> None:
    log = sorted(unfinished.rglob("*.jsonl"))[-1]
    log.write_bytes(log.read_bytes()[:-5])
    encode(source, unfinished)
    assert tree(unfinished) == expected


def test_two_runs_on_one_output(source: Path, tmp_path: Path) -> None:
    folder = tmp_path / "out" / ".train.unfinished"
    folder.mkdir(parents=True)
    with locked(folder):
        for overwrite in (False, True):
            with pytest.raises(OutputError, match=rf"process {os.getpid()} on .* is writing to it"):
                encode(source, tmp_path / "out", overwrite=overwrite)
    encode(source, tmp_path / "out")


def test_a_split_that_is_there(source: Path, tmp_path: Path, expected: dict[str, bytes]) -> None:
    inputs = tmp_path / "in"
    inputs.mkdir()
    rows = inputs / "rows.jsonl"
    rows.write_bytes((source / "0.jsonl").read_bytes())
    out = tmp_path / "out"
    assert not encode(inputs, out).was_complete
    before = tree(out)
    assert encode(inputs, out).was_complete
    os.utime(rows)
    assert encode(inputs, out).was_complete  # newer, but the same
    for change in ({"shard_bytes": 77}, {"on_error": "fail"}, {"text_key": "other"}, {"codec": CharCodec(["a", "b"])}):
        with pytest.raises(OutputError, match=r"train: already exists; .* overwrite=True"):
            encode(inputs, out, **change)
    rows.write_bytes(rows.read_bytes().replace(b"ab", b"ba"))
    with pytest.raises(OutputError, match=r"train: already exists"):
        encode(inputs, out)
    assert tree(out) == before
    encode(inputs, out, overwrite=True)
    assert tree(out) != before
    assert sorted(path.name for path in out.iterdir()) == ["codec.json", "train"]
    (out / "train" / "00000.shard").unlink()
    with pytest.raises(OutputError, match=r"train: already exists"):
        encode(inputs, out)


def test_a_failed_run_leaves_the_old_split(source: Path, tmp_path: Path) -> None:
    write_shards(tmp_path, "train", [b"old"], ByteCodec())
    before = tree(tmp_path)
    with pytest.raises(DataError):
        encode(source, tmp_path, on_error="fail", overwrite=True)
    assert tree(tmp_path) == before
    with pytest.raises(MismatchError, match="holds splits of codec byte"):
        encode(source, tmp_path, CharCodec(["a", "b"]), split="other")


# --- Inputs -----------------------------------------------------------------------------------------------


def test_standard_input_starts_over(tmp_path: Path, encoded: list[bytes]) -> None:
    rows = b"".join(b'{"text": "row %d"}\n' % number for number in range(50)) + b'{"text": "stop"}\n'
    with pytest.raises(DataError, match="stopped"):
        encode_dataset("-", tmp_path / "out", ByteCodec(), shard_bytes=50, stdin=io.BytesIO(rows))
    assert not (tmp_path / "out").exists()
    stream = io.BytesIO(rows)
    result = encode_dataset("-", tmp_path / "out", ByteCodec(), shard_bytes=50, stdin=stream)
    assert not stream.closed
    assert result.manifest.documents == 51
    [one] = result.manifest.inputs
    assert (one.path, one.size) == (None, len(rows))
    with pytest.raises(OutputError, match="already exists"):
        encode_dataset("-", tmp_path / "out", ByteCodec(), shard_bytes=50, stdin=io.BytesIO(rows))
    with pytest.raises(DataError, match="standard input is named twice"):
        encode_dataset(["-", "-"], tmp_path / "two", ByteCodec(), stdin=io.BytesIO(rows))


BAD = {
    "broken.jsonl": (b'{"text": "a"}\n{"text": \n', r"broken\.jsonl: line 2 is not JSON"),
    "field.jsonl": (b'{"other": "a"}\n', r"field\.jsonl: line 1 has no string under 'text'"),
    "null.jsonl": (b'{"text": null}\n', r"null\.jsonl: line 1 has no string under 'text' but null"),
    "latin.csv": (b"text\nna\xefve\n", r"latin\.csv: line 2 is not UTF-8"),
    "utf16.jsonl": ('{"text": "a"}'.encode("utf-16"), r"utf16\.jsonl"),
    "cut.jsonl.gz": (b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\xab", r"cut\.jsonl\.gz: damaged or truncated"),
    "empty.jsonl.gz": (b"", r"empty\.jsonl\.gz: damaged or truncated"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_an_error_or_a_counted_skip(tmp_path: Path, name: str) -> None:
    data, problem = BAD[name]
    (tmp_path / name).write_bytes(data)
    (tmp_path / "good.txt").write_bytes(b"good")
    inputs = [tmp_path / name, tmp_path / "good.txt"]
    with pytest.raises((DataError, FormatError), match=problem):
        encode_dataset(inputs, tmp_path / "out", ByteCodec())
    assert not (tmp_path / "out").exists()
    manifest = encode_dataset(inputs, tmp_path / "out", ByteCodec(), on_error="skip").manifest
    assert contents(tmp_path / "out")[-1][-1] == b"good"
    assert manifest.skipped == 1
    [line] = (tmp_path / "out" / "train" / "skipped.jsonl").read_text().splitlines()
    assert json.loads(line)["path"] == str(tmp_path / name)


@needs_pyarrow
def test_a_truncated_zstd_file(tmp_path: Path) -> None:
    rows = b"".join(b'{"text": "row %d of %d"}\n' % (number, number * 7919) for number in range(20_000))
    (tmp_path / "rows.jsonl.zst").write_bytes(zstd(rows)[:-1000])
    with pytest.raises(FormatError, match=r"rows\.jsonl\.zst: damaged or truncated"):
        encode_dataset(tmp_path / "rows.jsonl.zst", tmp_path / "out", ByteCodec())
    manifest = encode_dataset(tmp_path / "rows.jsonl.zst", tmp_path / "out", ByteCodec(), on_error="skip").manifest
    assert manifest.skipped == 1
    assert 0 < manifest.documents < 20_000


def test_documents_that_do_not_fit_into_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "large.txt").write_bytes(b"large")

    def no_memory(*_: object) -> None:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(ByteCodec, "encode", no_memory)
        with pytest.raises(DataError, match=r"large\.txt: a document and its ids do not fit into memory; divide it"):
            encode_dataset(tmp_path / "large.txt", tmp_path / "out", ByteCodec())
    monkeypatch.setattr(HashedFile, "readall", no_memory)
    with pytest.raises(DataError, match=r"large\.txt: does not fit into memory; divide it"):
        encode_dataset(tmp_path / "large.txt", tmp_path / "out", ByteCodec())
    assert not (tmp_path / "out").exists()


def test_inputs_that_change_under_the_hand(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"text": "a"}\n' * 3)
    real = encode_module.encoded_batches

    def growing(batches, *arguments, **options):
        with path.open("a") as file:
            file.write('{"text": "b"}\n')
        return real(batches, *arguments, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dataset_parts, "encoded_batches", growing)
        with pytest.raises(DataError, match=r"rows\.jsonl: has changed while it was read"):
            encode_dataset(path, tmp_path / "out", ByteCodec())


def test_settings_are_named(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a")
    for options, message in (
        ({"engine": "spark"}, "engine is 'spark'; it must be one of local"),
        ({"on_error": "ignore"}, "on_error is 'ignore'; it must be one of fail, skip"),
        ({"shard_bytes": 0}, "shard_bytes is 0"),
        ({"max_bytes": 0}, "max_bytes is 0"),
        ({"num_threads": 0}, "num_threads is 0"),
        ({"split": "../x"}, r"split is '\.\./x'"),
    ):
        with pytest.raises(ConfigError, match=message):
            encode_dataset(tmp_path / "a.txt", tmp_path / "out", ByteCodec(), **options)
    with pytest.raises(DataError, match="no such file"):
        encode_dataset(tmp_path / "nothing", tmp_path / "out", ByteCodec())
    with pytest.raises(DataError, match="no files to encode"):
        encode_dataset([], tmp_path / "out", ByteCodec())
    assert not (tmp_path / "out").exists()


# --- Large shards -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [1, 2])
def test_a_shard_of_more_than_four_gibibytes(tmp_path: Path, version: int) -> None:
    """A sparse file: zeros, the ids of one document, and at its end a second one."""
    num_tokens = (1 << 32) + 12_345
    header = ShardHeader(
        num_tokens=num_tokens, num_documents=2, num_bytes=num_tokens - 2, vocab_size=256,
        codec_fingerprint=ByteCodec().fingerprint, payload_sha256=bytes(32), num_shards=1 if version == 1 else None,
    )  # fmt: skip
    assert header.file_bytes > 1 << 33
    (tmp_path / "train").mkdir()
    path = tmp_path / "train" / "00000.shard"
    last = num_tokens - 4
    with path.open("wb") as file:
        file.write(header.to_bytes())
        file.seek(HEADER_BYTES + 2 * (last - 1))
        file.write(np.array([256, 97, 98, 99, 256], "<u2").tobytes())
        file.seek(header.offsets_begin)
        file.write(np.array([0, last, num_tokens], "<u8").tobytes())
    save_codec(ByteCodec(), tmp_path / "codec.json")
    if version == 2:
        Manifest("byte", ByteCodec().fingerprint, 256, [ShardRecord.of(path.name, header)]).write(tmp_path / "train")
    dataset = TokenDataset.open(tmp_path, "train", codec=ByteCodec(), verify=False)
    assert dataset.num_tokens == num_tokens
    assert dataset.read(num_tokens - 6, num_tokens).tolist() == [0, 256, 97, 98, 99, 256]
    assert list(dataset.document_ranges()) == [(0, last - 1), (last, num_tokens - 1)]


def test_the_default_shard_size_is_the_documented_one() -> None:
    assert EncodeSettings().shard_bytes == 1 << 28


def test_an_interrupt_stops_the_threads(tmp_path: Path) -> None:
    """As Ctrl-C does while the caller waits."""
    (tmp_path / "rows.jsonl").write_text('{"text": "a row"}\n' * 1000)
    before = threading.active_count()

    def interrupt(state: EncodeProgress) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        encode_dataset(tmp_path / "rows.jsonl", tmp_path / "out", ByteCodec(), progress=interrupt, shard_bytes=500)
    assert threading.active_count() == before
    encode_dataset(tmp_path / "rows.jsonl", tmp_path / "out", ByteCodec(), shard_bytes=500)
    assert TokenDataset.open(tmp_path / "out", "train").num_documents == 1000


# --- The command line -------------------------------------------------------------------------------------


def test_the_command_says_what_it_did(source: Path, tmp_path: Path, expected: dict[str, bytes]) -> None:
    out = tmp_path / "out"
    words = ["encode", source, "--codec", "byte", "-o", out, "--on-error", "skip", "--shard-bytes", SHARD_BYTES]
    result = run(*words)
    assert tree(out) == expected
    lines = result.stderr.splitlines()
    assert lines[7] == f"skipped: 7 documents in all; {out / 'train' / 'skipped.jsonl'} lists them"
    assert lines[8].startswith("1.000 bytes/token, ")
    again = run(*words)
    assert again.stderr == f"{out}: train: is there already, made of the same; nothing was done\n"
    assert again.stdout == result.stdout
    assert "train: already exists; choose another directory, or pass --force" in error_of(*words[:-4])
    report = json.loads(run(*words, "--force", "--json").stdout)
    assert (report["skipped"], report["splits"]["train"]["bytes"]) == (7, Manifest.read(out / "train").bytes)


@needs_proc
def test_the_command_goes_on(source: Path, unfinished: Path, expected: dict[str, bytes]) -> None:
    words = ["encode", source, "--codec", "byte", "-o", unfinished, "--on-error", "skip", "--shard-bytes"]
    assert "with other settings; run that one again to finish it, or pass --force to drop it" in error_of(*words, 10)
    assert f"{unfinished}: went on after 3 shards of an interrupted run" in run(*words, SHARD_BYTES).stderr
    assert tree(unfinished) == expected


def test_the_command_keeps_standard_input_that_it_learns_from(tmp_path: Path) -> None:
    text = b"to be or not to be"
    run("encode", "-", "--codec", "bpe-260", "-o", tmp_path / "out", stdin=text)
    assert run("decode", tmp_path / "out").stdout_bytes == text
    ids = run("encode", "-", "--codec", "char", "-o", "-", stdin=text).stdout.split()
    assert len(ids) == len(text)


def test_a_corpus_with_bad_rows(tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    rows.write_text("".join(f'{{"text": "row {number}"}}\n' for number in range(30)) + "{\n")
    words = ["encode", "--corpus", rows, "--codec", "byte", "-o", tmp_path / "out"]
    assert error_of(*words).startswith(f"{rows}: line 31 is not JSON")
    assert run(*words, "--on-error", "skip").stderr.startswith(f"skipped: {rows}: line 31 is not JSON")
    splits = ("train", "validation", "test")
    assert sum(TokenDataset.open(tmp_path / "out", split).num_documents for split in splits) == 30


def test_the_old_flag_warns(source: Path, tmp_path: Path) -> None:
    words = ["encode", source / "0.jsonl", "--on-error", "skip", "--codec", "byte", "-o", tmp_path / "out"]
    assert run(*words, "--shard-tokens", 1000).stderr.startswith("warning: --shard-tokens is deprecated")
    manifest = Manifest.read(tmp_path / "out" / "train")
    assert manifest is not None
    assert manifest.settings == EncodeSettings(on_error="skip", shard_bytes=4000)
