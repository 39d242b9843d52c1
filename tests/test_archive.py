"""Archives: there and back for any bytes, the oracle, pieces and threads, bounds, and damage of every kind."""

from __future__ import annotations

import base64
import hashlib
import json
import random
import struct
import threading
import time
import tracemalloc
import zlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastcompress as fc
from fastcompress import archive
from fastcompress.archive import Compressor, Decompressor, compress, decompress, info
from fastcompress.errors import ConfigError, FormatError
from tests.reference import archive as oracle
from tests.reference import context_mixer as mixer_oracle

VECTORS = Path(__file__).parent / "vectors" / "archive.json"
LEAST = 1 << 16
LEVELS = st.integers(1, 9)
METHODS: st.SearchStrategy[archive.Method] = st.sampled_from(["lz", "cm"])


def text_of(size: int, seed: int = 0) -> bytes:
    """Words in random order, with a few random bytes: it has matches near and far, and literals."""
    rng = random.Random(seed)
    words = [rng.randbytes(rng.randrange(1, 9)).hex().encode() for _ in range(300)]
    out = bytearray()
    while len(out) < size:
        out += rng.choice(words) + b" "
        if rng.random() < 0.02:
            out += rng.randbytes(4)
    return bytes(out[:size])


SAMPLES = {
    "empty": b"",
    "one byte": b"a",
    "two bytes": b"\0\xff",
    "all bytes": bytes(range(256)),
    "equal bytes": b"x" * (1 << 20),
    "all pairs": b"".join(struct.pack(">H", pair) for pair in range(1 << 16)),
    "random": random.Random(1).randbytes(200_000),
    "numbers": b"".join(struct.pack("<IHd", i, i * 7 % 1000, i / 3) for i in range(5000)),
    "text": text_of(300_000),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize(("method", "level"), [("lz", 1), ("lz", 6), ("lz", 9), ("cm", 1), ("cm", 7)])
def test_samples(name: str, method: archive.Method, level: int) -> None:
    data = SAMPLES[name]
    blob = compress(data, method, level, block_bytes=1 << 18)
    assert decompress(blob) == data
    assert len(blob) <= len(data) + 97 + 17 * (len(data) // (1 << 18) + 1)


def test_it_compresses() -> None:
    assert len(compress(SAMPLES["equal bytes"])) < 200
    assert len(compress(SAMPLES["text"])) < 0.45 * len(SAMPLES["text"])


@given(st.binary(max_size=3000), METHODS, LEVELS)
@settings(deadline=None)
def test_any_bytes(data: bytes, method: archive.Method, level: int) -> None:
    assert decompress(compress(data, method, level)) == data


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(1, 40), st.binary(max_size=4)), max_size=60), LEVELS)
@settings(deadline=None)
def test_any_repeats(steps: list[tuple[int, int, bytes]], level: int) -> None:
    data = bytearray(b"seed")
    for back, count, new in steps:
        for _ in range(count):
            data.append(data[-1 - min(back, len(data) - 1)])
        data += new
    assert decompress(compress(bytes(data), level=level)) == data


@pytest.mark.slow
@given(st.integers(0, 1 << 30), st.lists(st.integers(1, 90_000), min_size=1, max_size=8), st.integers(1, 4), METHODS)
@settings(deadline=None, max_examples=15)
def test_pieces_and_threads(seed: int, sizes: list[int], num_threads: int, method: archive.Method) -> None:
    data = text_of(200_000, seed)
    blob = compress(data, method, level=4, block_bytes=LEAST, num_threads=1)
    packer = Compressor(method, level=4, block_bytes=LEAST, content_bytes=len(data), num_threads=num_threads)
    unpacker = Decompressor(num_threads=num_threads)
    packed = b"".join(packer.update(piece) for piece in pieces_of(data, sizes)) + packer.finish()
    assert packed == blob
    assert b"".join(unpacker.update(piece) for piece in pieces_of(blob, sizes)) == data
    unpacker.finish()


def pieces_of(data: bytes, sizes: list[int]) -> list[bytes]:
    pieces, at = [], 0
    while at < len(data):
        size = sizes[len(pieces) % len(sizes)]
        pieces.append(data[at : at + size])
        at += size
    return pieces


def test_byte_by_byte_and_of_unknown_size() -> None:
    data = text_of(70_000)
    packer = Compressor(level=1, block_bytes=LEAST)
    packed = b"".join(packer.update(data[i : i + 1]) for i in range(len(data))) + packer.finish()
    assert info(packed) == archive.Header("lz", 1, LEAST, None, None)
    unpacker = Decompressor()
    assert b"".join(unpacker.update(packed[i : i + 1]) for i in range(len(packed))) == data
    unpacker.finish()


@pytest.mark.slow
@pytest.mark.parametrize("level", [1, 4, 6, 9])
@pytest.mark.parametrize("name", ["empty", "one byte", "all bytes", "numbers", "text"])
def test_the_oracle_reads_it(name: str, level: int) -> None:
    data = SAMPLES[name][:9000] if name != "text" else SAMPLES[name][:70_000]
    assert oracle.decompress(compress(data, level=level, block_bytes=LEAST)) == data


@pytest.mark.slow
@pytest.mark.parametrize("level", [1, 8])
@pytest.mark.parametrize("name", ["equal bytes", "numbers", "text"])
def test_the_oracle_writes_the_same_cm(name: str, level: int) -> None:
    data = SAMPLES[name][:1500]
    [record, _] = records_of(compress(data, "cm", level))
    assert record[0] == 2  # coded
    digits = len(data).bit_length()
    mixer = mixer_oracle.ContextMixer(max(16, min(digits + 8, 17 + level)), max(10, min(digits, 20)), 0)
    assert record[17:] == mixer_oracle.encode(mixer.update(data), data)


def test_the_oracle_writes_it() -> None:
    for size in (0, 1, 1000, LEAST, LEAST + 1, 3 * LEAST):
        data = random.Random(size).randbytes(size)
        assert decompress(oracle.stored(data)) == data


def test_golden_vectors() -> None:
    for case in json.loads(VECTORS.read_text(encoding="utf-8")):
        data = base64.b64decode(case["data"]) * case["repeat"]
        blob = base64.b64decode(case["archive"])
        assert decompress(blob) == data, case["name"]
        assert info(blob).method == case["method"]
        if case["method"] == "cm":
            header = info(blob)
            assert compress(data, "cm", header.level, block_bytes=header.block_bytes) == blob
    for text, seed, expected in (("", 0, 0xEF46DB3751D8E999), ("abc", 0, 0x44BC2CF5AD770999)):
        assert oracle.xxh64(text.encode(), seed) == expected


def test_real_texts(data_directory: Path) -> None:
    data = (data_directory / "tinyshakespeare.txt").read_bytes()
    blob = compress(data, level=6)
    assert decompress(blob) == data
    assert len(blob) < 0.36 * len(data)


# --- Damage ---


@pytest.fixture(scope="module", params=["lz", "cm"])
def archived(request: pytest.FixtureRequest) -> tuple[bytes, bytes]:
    data = text_of(150_000)
    return data, compress(data, request.param, level=4, block_bytes=LEAST)


def records_of(blob: bytes) -> list[bytes]:
    records, at = [], 72
    while blob[at]:
        end = at + 17 + int.from_bytes(blob[at + 5 : at + 9], "little")
        records.append(blob[at:end])
        at = end
    return [*records, blob[at:]]


def assert_refused(blob: bytes, max_output: int) -> None:
    with pytest.raises(FormatError):
        decompress(blob, max_output=max_output, num_threads=1)


@pytest.mark.slow
def test_ten_thousand_damages(archived: tuple[bytes, bytes]) -> None:
    """In an archive of 500 bytes; every fiftieth in one of two blocks, a full one and a short one."""
    data, blob = archived
    small, blob = (compress(data[:size], info(blob).method, level=4, block_bytes=LEAST) for size in (500, LEAST + 2000))
    check_ten_thousand_damages(small, blob)


@pytest.mark.campaign
def test_ten_thousand_damages_of_large_archives(archived: tuple[bytes, bytes]) -> None:
    data, blob = archived
    check_ten_thousand_damages(compress(data[:2000], info(blob).method, level=4, block_bytes=LEAST), blob)


def check_ten_thousand_damages(small: bytes, blob: bytes) -> None:
    rng = random.Random(2)
    begin = time.monotonic()
    for round_ in range(10_000):
        damaged = bytearray(blob if round_ % 50 == 0 else small)
        at = rng.randrange(len(damaged) if round_ % 3 else 100)
        what = rng.randrange(6)
        if what == 0:
            damaged[at] ^= 1 << rng.randrange(8)
        elif what == 1:
            damaged[at] = (damaged[at] + rng.randrange(1, 256)) % 256
        elif what == 2:
            del damaged[at:]
        elif what == 3:
            damaged.insert(at, rng.randrange(256))
        elif what == 4:
            del damaged[at]
        else:
            damaged[at : at + 8] = rng.randbytes(8)
        if damaged not in (blob, small):
            assert_refused(bytes(damaged), 1 << 20)
    assert time.monotonic() - begin < 300


def test_moved_records(archived: tuple[bytes, bytes]) -> None:
    data, blob = archived
    head, records = blob[:72], records_of(blob)
    assert len(records) == 4
    assert head + b"".join(records) == blob
    other = compress(text_of(150_000, 9), level=4, block_bytes=LEAST)
    a, b, c, end = records
    d = records_of(other)
    for rows in ([b, a, c, end], [a, c, end], [a, b, end], [a, a, b, c, end], [a, b, c], [end], [d[0], b, c, end],
                 [a, b, c, d[3]], [a, b, c, end, end], [a, b, c, end, b"\0"], []):  # fmt: skip
        assert_refused(head + b"".join(rows), 1 << 20)
    assert_refused(blob + blob, 1 << 20)
    assert_refused(b"\x1f\x8b" + blob, 1 << 20)
    vocabulary = VECTORS.with_name("bpe-v1.bpe").read_bytes()
    for foreign in (
        b"",
        b"PK\3\4",
        b"hello",
        blob[:8],
        bytes(100),
        vocabulary,
        zlib.compress(data),
    ):
        assert_refused(foreign, 1 << 20)


def test_errors_say_what_to_do(archived: tuple[bytes, bytes]) -> None:
    data, blob = archived
    newer = bytearray(blob)
    newer[8] = 2
    with pytest.raises(FormatError, match=r"version 2.*update fastcompress"):
        decompress(bytes(newer))
    for method, what in ((9, "method 9"), (1, None)):
        changed = oracle.header(method, 4, LEAST, len(data)) + blob[72:]
        if what:
            with pytest.raises(FormatError, match=what):
                decompress(changed)
    with pytest.raises(FormatError, match="needs the model 0707"):
        decompress(oracle.header(1, 4, LEAST, len(data), b"\7" * 32) + blob[72:])
    with pytest.raises(FormatError, match=r"max_output.*raise it"):
        decompress(blob, max_output=len(data) - 1)
    with pytest.raises(FormatError, match="copy the whole"):
        decompress(blob[:-1])
    with pytest.raises(FormatError, match="after its end"):
        decompress(blob + b"x")


def test_a_bomb_takes_no_memory() -> None:
    blob = compress(bytes(1 << 25), level=1)
    assert len(blob) < 1000
    tracemalloc.start()
    unpacker = Decompressor(max_output=1 << 20)
    with pytest.raises(FormatError, match="max_output"):
        unpacker.update(blob)
    with pytest.raises(FormatError, match="max_output"):
        unpacker.update(b"")
    assert tracemalloc.get_traced_memory()[1] < 1 << 20
    tracemalloc.stop()
    unknown = Compressor(level=1)
    blob = unknown.update(bytes(1 << 25)) + unknown.finish()
    with pytest.raises(FormatError, match="max_output"):
        decompress(blob, max_output=(1 << 25) - 1)
    assert len(decompress(blob, max_output=1 << 25)) == 1 << 25


# --- Arguments ---


def test_arguments() -> None:
    for wrong in (
        {"level": 0}, {"level": 10}, {"method": "zip"}, {"block_bytes": LEAST - 1}, {"block_bytes": (1 << 26) + 1},
        {"num_threads": 0},
    ):  # fmt: skip
        with pytest.raises(ConfigError):
            compress(b"abc", **wrong)  # type: ignore[arg-type]
    with pytest.raises(ConfigError):
        decompress(compress(b""), max_output=-1)
    packer = Compressor(content_bytes=5)
    packer.update(b"abc")
    with pytest.raises(ConfigError, match="content_bytes is 5; the content has 3"):
        packer.finish()
    with pytest.raises(ConfigError, match="is finished"):
        packer.update(b"abc")
    assert decompress(compress("é")) == "é".encode()
    assert decompress(bytearray(compress(memoryview(b"abc")))) == b"abc"
    assert fc.compress is compress
    assert fc.decompress is decompress
    assert fc.archive is archive


def test_info() -> None:
    blob = compress(b"abc" * 1000, level=3, block_bytes=1 << 17)
    assert info(blob[:72]) == archive.Header("lz", 3, 1 << 17, 3000, None)
    with pytest.raises(FormatError):
        info(blob[:71])


def test_threads_share_nothing() -> None:
    data = [text_of(100_000, seed) for seed in range(4)]
    hashes: dict[int, str] = {}

    def work(i: int) -> None:
        hashes[i] = hashlib.sha256(decompress(compress(data[i], level=4))).hexdigest()

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert hashes == {i: hashlib.sha256(data[i]).hexdigest() for i in range(4)}
