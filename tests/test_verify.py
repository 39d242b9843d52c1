"""Verification of shards: every damage is found, and named by its shard; sources that have changed are none."""

from __future__ import annotations

import hashlib
import json
import struct
from pathlib import Path

import pytest

from fastcompress.codec import ByteCodec
from fastcompress.data import encode_dataset, write_shards
from fastcompress.data.shard_file import HEADER_BYTES
from fastcompress.data.verify import verify_shards
from fastcompress.errors import ConfigError, DataError, FormatError
from tests.test_cli import error_of, run

TEXTS = [f"row {number} of them" for number in range(40)]


@pytest.fixture
def encoded(tmp_path: Path) -> Path:
    """Shards of two files, with a row that is skipped in the first."""
    rows = [json.dumps({"text": text}) + "\n" for text in TEXTS]
    (tmp_path / "a.jsonl").write_text("".join([*rows[:10], "{\n", *rows[10:20]]))
    (tmp_path / "b.jsonl").write_text("".join(rows[20:]))
    inputs = [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]
    encode_dataset(inputs, tmp_path / "out", ByteCodec(), shard_bytes=100, on_error="skip")
    return tmp_path / "out"


def shards(directory: Path) -> list[Path]:
    return sorted((directory / "train").glob("*.shard"))


def change(path: Path, position: int, data: bytes) -> None:
    """Change tokens or the header of a shard, and make all its checksums right again, also in the manifest."""
    blob = bytearray(path.read_bytes())
    blob[position : position + len(data)] = data
    blob[96:128] = hashlib.sha256(blob[HEADER_BYTES:]).digest()
    old, blob[128:160] = bytes(blob[128:160]), hashlib.sha256(blob[:128]).digest()
    path.write_bytes(blob)
    manifest = path.parent / "manifest.json"
    manifest.write_text(manifest.read_text().replace(old.hex(), blob[128:160].hex()))


def test_good_shards(encoded: Path) -> None:
    number = len(shards(encoded))
    assert number > 4
    for sample, seen in ((None, 40), (40, 40), (7, 7), (0, 0)):
        found = verify_shards(encoded, "train", sample=sample)
        assert (found.shards, found.documents, found.decoded, found.compared) == (number, 40, seen, seen)
        assert not found.problems
        assert not found.notes
    sizes: list[int] = []
    verify_shards(encoded, "train", progress=sizes.append)
    assert sizes == [path.stat().st_size for path in shards(encoded)]


def test_every_flipped_bit_is_found(encoded: Path) -> None:
    path = shards(encoded)[1]
    good = path.read_bytes()
    for position in range(0, len(good), 3):
        damaged = bytearray(good)
        damaged[position] ^= 1 << position % 8
        path.write_bytes(damaged)
        [problem] = verify_shards(encoded, "train", sample=0).problems
        assert problem.startswith(f"{path}: ")


def test_other_text_with_right_checksums_is_found(encoded: Path) -> None:
    path = shards(encoded)[2]
    change(path, HEADER_BYTES, struct.pack("<H", ord("R")))
    found = verify_shards(encoded, "train", sample=None)
    [problem] = found.problems
    assert problem.startswith(f"{path}: document 1 is not what {encoded.parent / 'a.jsonl'}, document ")
    assert (found.decoded, found.compared) == (40, 39)


def test_a_wrong_number_of_bytes_is_found(encoded: Path) -> None:
    path = shards(encoded)[2]
    change(path, 32, struct.pack("<Q", 7))
    [problem] = verify_shards(encoded, "train", sample=None).problems
    assert problem.startswith(f"{path}: decodes to ")


def test_missing_foreign_and_swapped_files(encoded: Path, tmp_path: Path) -> None:
    first, second, *_ = shards(encoded)
    good = second.read_bytes()
    second.write_bytes(first.read_bytes())
    assert [problem.split(": ")[0] for problem in verify_shards(encoded, "train").problems] == [str(second)]
    second.unlink()
    [problem] = verify_shards(encoded, "train").problems
    assert problem == f"{second}: cannot be read (No such file or directory); restore it, or encode the corpus again"
    second.write_bytes(good)
    (encoded / "train" / "99999.shard").write_bytes(good)
    [problem] = verify_shards(encoded, "train").problems
    assert problem == f"{encoded / 'train' / '99999.shard'}: is not listed in manifest.json; remove it"
    write_shards(tmp_path / "other", "train", [b"another"], ByteCodec())
    (encoded / "train" / "99999.shard").unlink()
    first.unlink()
    assert verify_shards(encoded, "train").problems[0].startswith(f"{first}: cannot be read")


def test_a_shard_of_another_codec(encoded: Path) -> None:
    path = shards(encoded)[0]
    change(path, 64, bytes(32))
    [problem] = verify_shards(encoded, "train").problems
    assert problem == f"{path}: was not encoded by {encoded / 'codec.json'}; encode again"


@pytest.mark.parametrize("edit", ["grown", "changed", "gone", "fewer"])
def test_sources_that_are_no_longer_the_same(encoded: Path, edit: str) -> None:
    source = encoded.parent / "b.jsonl"
    text = source.read_text()
    if edit == "gone":
        source.unlink()
    else:
        edited = {
            "grown": text + "\n",
            "changed": text.replace("row 25", "ROW 25"),
            "fewer": text.replace('"text": "row 25', '"tex_": "row 25'),  # a row less, and as many bytes
        }
        source.write_text(edited[edit])
    found = verify_shards(encoded, "train", sample=None)
    assert not found.problems
    assert found.notes == [f"{source}: {'is not there any more' if edit == 'gone' else 'has changed since'}"]
    assert found.decoded == 40
    assert 20 <= found.compared < 40


def test_shards_without_sources(tmp_path: Path) -> None:
    write_shards(tmp_path, "train", [text.encode() for text in TEXTS], ByteCodec(), shard_bytes=100)
    found = verify_shards(tmp_path, "train", sample=None)
    assert (found.documents, found.decoded, found.compared, found.problems) == (40, 40, 0, [])


def test_shards_of_version_1(tmp_path: Path) -> None:
    write_shards(tmp_path, "train", [text.encode() for text in TEXTS], ByteCodec(), shard_bytes=100)
    (tmp_path / "train" / "manifest.json").unlink()
    assert all("has no manifest.json" in problem for problem in verify_shards(tmp_path, "train").problems)
    paths = shards(tmp_path)
    for index, path in enumerate(paths):
        blob = bytearray(path.read_bytes())
        blob[8:12], blob[44:52] = struct.pack("<I", 1), struct.pack("<II", index, len(paths))
        blob[128:160] = hashlib.sha256(blob[:128]).digest()
        path.write_bytes(blob)
    found = verify_shards(tmp_path, "train", sample=None)
    assert (found.shards, found.decoded, found.problems) == (len(paths), 40, [])
    paths[-1].unlink()
    assert f"{paths[0]}: is shard 1 of {len(paths)}, but number 1 of" in verify_shards(tmp_path, "train").problems[0]


def test_limited_inputs_are_compared_up_to_the_cut(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in TEXTS))
    encode_dataset(tmp_path / "rows.jsonl", tmp_path / "out", ByteCodec(), max_bytes=100, shard_bytes=30)
    found = verify_shards(tmp_path / "out", "train", sample=None)
    assert found.problems == found.notes == []
    assert found.compared == found.documents == 8


def test_what_is_no_split(encoded: Path) -> None:
    with pytest.raises(DataError, match=r"has no split 'test' \(splits: train\)"):
        verify_shards(encoded, "test")
    with pytest.raises(ConfigError, match="sample is -1"):
        verify_shards(encoded, "train", sample=-1)
    (encoded / "train" / "manifest.json").write_text("{}")
    with pytest.raises(FormatError, match=r"manifest\.json: not a manifest"):
        verify_shards(encoded, "train")


def test_the_command(encoded: Path) -> None:
    number = len(shards(encoded))
    said = run("verify", encoded).stdout
    assert said == (
        f"{encoded}: train: {number} shards of 40 documents with right checksums; 40 decoded, 40 compared with their "
        "sources\n"
    )
    result = json.loads(run("verify", encoded, "--sample", 3, "--json").stdout)
    assert result["splits"][0]["compared"] == 3
    damaged = shards(encoded)[:2]
    for path in damaged:
        path.write_bytes(path.read_bytes()[:-1])
    result = run("verify", encoded, "--all", code=1)
    lines = result.stderr.splitlines()
    assert [line.split(": ")[:2] for line in lines[:2]] == [["damaged", str(path)] for path in damaged]
    assert lines[2] == f"error: {encoded}: 2 problems, listed above; encode the corpus again"
    damaged[0].unlink()
    (encoded.parent / "a.jsonl").unlink()
    assert f"not compared: {encoded.parent / 'a.jsonl'}: is not there any more" in run("verify", encoded, code=1).stderr
    assert "no such folder; name a folder that fastcompress encode wrote" in error_of("verify", encoded / "nothing")
