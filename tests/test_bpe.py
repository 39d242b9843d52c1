"""The BPE class: its API, its errors, special tokens, streaming, saving, and inputs that broke other tokenizers."""

from __future__ import annotations

import contextlib
import hashlib
import pickle
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from fastcompress import BPE
from fastcompress.errors import ConfigError, DataError, FastcompressError, FormatError, OutputError
from fastcompress.pretokenizer import PATTERNS

TEXT = (
    "The cat sat on the mat; the cats' hats sat there, 1234 times.\nWhoever reads this sentence knows some English "
    "words, and a tokenizer learns a few of them from it, if it is read often enough.\n" * 20
)
VECTORS = Path(__file__).parent / "vectors"


@pytest.fixture(scope="module")
def tok() -> BPE:
    return BPE.train(TEXT, vocab_size=320, special_tokens=["<|end|>", "<|endless|>"])


# ---------------------------------------------------------------------- training


def test_ids_are_bytes_then_merges_then_special_tokens(tok: BPE) -> None:
    assert tok.vocab_size == 320
    assert [tok.token_bytes(b) for b in range(256)] == [bytes([b]) for b in range(256)]
    assert tok.special_tokens == {"<|end|>": 318, "<|endless|>": 319}
    assert len(tok.merges) == 320 - 256 - 2
    assert all(tok.token_bytes(x) == tok.token_bytes(a) + tok.token_bytes(b) for a, b, x in tok.merges.tolist())


def test_source_may_be_one_text_or_many(tok: BPE) -> None:
    lines = TEXT.splitlines(keepends=True)
    settings = {"vocab_size": 300, "pattern": "gpt2"}
    assert BPE.train(lines, **settings) == BPE.train((line.encode() for line in lines), **settings)


def test_training_is_the_same_every_time_and_for_every_thread_count() -> None:
    texts = [TEXT[i : i + 97] for i in range(0, len(TEXT), 31)]
    files = {BPE.train(texts, vocab_size=330, num_threads=n).to_bytes() for n in [1, 2, 3, 8] * 5}
    assert len(files) == 1


def test_a_vocabulary_larger_than_the_corpus_supports() -> None:
    with pytest.raises(DataError, match="support only 259 tokens, not 400; lower vocab_size to at most 259"):
        BPE.train("abc abc", vocab_size=400, pattern="whitespace")
    with pytest.raises(DataError, match="256"):
        BPE.train("", vocab_size=257)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"vocab_size": 255}, "too small"),
        ({"vocab_size": 256, "special_tokens": ["<|x|>"]}, "too small"),
        ({"vocab_size": 300, "special_tokens": ["a", "a"]}, "distinct"),
        ({"vocab_size": 300, "special_tokens": [""]}, "not empty"),
        ({"vocab_size": 300, "pattern": "gpt9"}, "gpt9.*cl100k"),
    ],
)
def test_bad_training_settings(settings: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        BPE.train(TEXT, **settings)  # type: ignore[arg-type]


def test_interrupting_training() -> None:
    def stop(done: int, wanted: int) -> None:
        raise KeyboardInterrupt

    text = " ".join(str(n * 7919) for n in range(5000))
    with pytest.raises(KeyboardInterrupt):
        BPE.train(text, vocab_size=2000, on_progress=stop)


# ---------------------------------------------------------------------- encoding and decoding


def test_every_way_to_encode_gives_the_same_ids(tok: BPE) -> None:
    ids = tok.encode(TEXT)
    assert tok.encode_ordinary(TEXT) == ids
    assert tok.encode(TEXT.encode()) == ids
    assert tok.encode_to_numpy(TEXT).tolist() == ids
    assert tok.encode_to_numpy(TEXT, np.uint16).dtype == np.uint16
    assert tok.count(TEXT) == len(ids)
    assert tok.encode_batch([TEXT, "", "x"]) == [ids, [], [120]]
    tokens, offsets = tok.encode_batch_to_numpy([TEXT, "", "x"])
    assert (tokens.dtype, offsets.dtype) == (np.uint32, np.uint64)
    assert offsets.tolist() == [0, len(ids), len(ids), len(ids) + 1]
    assert tok.decode(ids) == TEXT


def test_batches_of_any_sequence(tok: BPE) -> None:
    """Also of sequences that make their items anew on each access, which nothing else keeps alive."""

    class Made:
        def __len__(self) -> int:
            return 500

        def __getitem__(self, i: int) -> str:
            if i >= len(self):
                raise IndexError
            return f"text number {i * 7919}"

    expected = [tok.encode(text) for text in Made()]  # type: ignore[attr-defined]
    assert tok.encode_batch(Made(), 2) == expected  # type: ignore[arg-type]
    assert tok.encode_batch(np.array(list(Made())), 1) == expected  # type: ignore[arg-type, call-overload]
    assert tok.encode_batch(tuple(Made()), 1) == expected  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.parametrize("pattern", PATTERNS)
def test_one_long_text_on_several_threads(pattern: str) -> None:
    trained = BPE.train([TEXT], vocab_size=300, pattern=pattern)
    text = f"{TEXT}\n\n  'S 12345 x'll\u3000{TEXT}9's \t\r\n/ " * 400 + "x" * 200_000 + " " * 100_000 + "\n" + TEXT
    expected = trained.encode_to_numpy(text, num_threads=1)
    for num_threads in (2, 3, 7, None):
        assert np.array_equal(trained.encode_to_numpy(text, num_threads=num_threads), expected)
        assert trained.encode_ordinary(text, num_threads=num_threads) == expected.tolist()
    assert trained.decode(expected) == text


def test_threads_are_used_and_change_nothing(tok: BPE) -> None:
    texts = [TEXT * 20] * 9 + ["x", ""] * 5
    assert sum(map(len, texts)) > 4 << 16  # enough for several threads to be started
    assert tok.encode_batch(texts, 4) == [tok.encode(text) for text in texts]
    with pytest.raises(ConfigError, match="num_threads is 0; it must be 1 to 65535"):
        tok.encode_batch(texts, 0)
    with pytest.raises(ConfigError, match="num_threads is -1; it must be 1 to 65535"):
        BPE.train(TEXT, vocab_size=300, num_threads=-1)


def test_an_array_that_changes_while_it_is_decoded(tok: BPE) -> None:
    tokens = np.full(200_000, 65, np.uint32)
    stop = threading.Event()

    def change() -> None:
        while not stop.is_set():
            tokens[::2] = 317 if tokens[0] == 65 else 65

    thread = threading.Thread(target=change)
    thread.start()
    try:
        for _ in range(200):
            with contextlib.suppress(DataError):
                assert len(tok.decode_bytes(tokens)) >= 100_000
    finally:
        stop.set()
        thread.join()


def test_empty(tok: BPE) -> None:
    assert tok.encode("") == []
    assert tok.decode([]) == ""
    assert tok.decode_bytes(np.empty(0, np.uint32)) == b""
    assert tok.encode_batch([]) == []
    assert tok.encode_batch_to_numpy([])[1].tolist() == [0]


def test_bytes_of_any_kind_survive(tok: BPE) -> None:
    for data in [
        b"\x00",
        b"\xff\xfe",
        bytes(range(256)),
        b"\xed\xa0\x80",
        "é".encode()[:1],
        bytearray(b"ab"),
        memoryview(b"ab"),
    ]:
        assert tok.decode_bytes(tok.encode(data, disallowed_special=())) == bytes(data)
        assert tok.encode(data, allowed_special="all") == tok.encode_batch([data])[0]


def test_surrogates_follow_tiktoken(tok: BPE) -> None:
    assert tok.decode(tok.encode("\udbc0")) == "\ufffd"
    assert tok.decode(tok.encode("\ud83d\ude00")) == "😀"
    assert tok.decode(tok.encode_batch(["a\ud83d", "b"])[0]) == "a\ufffd"


@pytest.mark.parametrize("unit", ["^", "a", "_", " ", "\n", "1", "中", "é", "ab", "\x00"])
@pytest.mark.parametrize("pattern", ["cl100k", "o200k", "none"])
def test_a_million_of_one_letter_is_fast(unit: str, pattern: str) -> None:
    tok = BPE.train(["the quick brown fox " * 3, unit * 100], vocab_size=262, pattern=pattern)
    text = unit * (1_000_000 // len(unit))
    begin = time.perf_counter()
    ids = tok.encode_to_numpy(text)
    assert time.perf_counter() - begin < 5  # quadratic would take minutes; typical is 0.1 s
    assert tok.decode_bytes(ids) == text.encode()


def test_one_tokenizer_in_sixteen_threads(tok: BPE) -> None:
    expected = tok.encode(TEXT)
    barrier = threading.Barrier(16)

    def encode(_: int) -> bool:
        barrier.wait()
        return all(tok.encode(TEXT) == expected for _ in range(20))

    with ThreadPoolExecutor(16) as pool:
        assert all(pool.map(encode, range(16)))


def test_unknown_ids_are_refused_with_their_position(tok: BPE) -> None:
    with pytest.raises(DataError, match="token id 320 at position 1"):
        tok.decode([65, 320])
    with pytest.raises(DataError, match="token id -1 at position 0"):
        tok.decode([-1])
    with pytest.raises(DataError, match="4294967296"):
        tok.decode([2**32])
    with pytest.raises(DataError, match="320"):
        tok.token_bytes(320)
    with pytest.raises(DataError, match="36893488147419103232"):
        tok.decode([2**65])
    with pytest.raises(DataError, match="-7"):
        tok.token_bytes(-7)
    with pytest.raises(TypeError, match="float"):
        tok.decode([0.5])
    with pytest.raises(TypeError, match="contiguous"):
        tok.encode_ordinary(memoryview(b"abcdef")[::2])
    with pytest.raises(TypeError, match="int"):
        tok.encode(5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="one text"):
        tok.encode_batch("abc")


def test_a_dtype_that_cannot_hold_the_ids(tok: BPE) -> None:
    with pytest.raises(ConfigError, match="uint8 cannot hold ids up to 319"):
        tok.encode_to_numpy("x", np.uint8)
    with pytest.raises(ConfigError, match="float64"):
        tok.encode_to_numpy("x", np.float64)


# ---------------------------------------------------------------------- special tokens


def test_special_tokens(tok: BPE) -> None:
    text = "cat<|end|>mat<|endless|>"
    with pytest.raises(DataError, match=r"'<\|end\|>' at offset 3.*allowed_special"):
        tok.encode(text)
    assert tok.encode(text, disallowed_special=()) == tok.encode_ordinary(text)
    ids = tok.encode(text, allowed_special="all")
    assert ids == [*tok.encode("cat"), 318, *tok.encode("mat"), 319]
    assert tok.encode(text.encode(), allowed_special="all") == ids
    assert tok.encode_batch([text, "cat"], allowed_special="all") == [ids, tok.encode("cat")]
    assert tok.decode(ids) == text
    assert tok.encode("cat<|end|>", allowed_special={"<|end|>"}) == [*tok.encode("cat"), 318]
    with pytest.raises(DataError, match="endless"):
        tok.encode(text, allowed_special={"<|end|>"})
    assert tok.encode("<|end|>", allowed_special="all") == [318]
    assert tok.encode("", allowed_special="all") == []
    assert tok.encode_batch(["<|end|><|end|>", ""], allowed_special="all") == [[318, 318], []]


def test_special_token_arguments_as_in_tiktoken(tok: BPE) -> None:
    plain = BPE.train(TEXT, vocab_size=300)
    with pytest.raises(DataError, match="'cat'"):
        plain.encode("the cat", disallowed_special={"cat"})
    with pytest.raises(DataError, match="'cat'"):
        plain.encode_batch(["the cat"], disallowed_special={"cat"})
    assert plain.encode("the cat", allowed_special={"cat"}) == plain.encode("the cat")
    for bad in ("<|end|>", [b"<|end|>"]):
        with pytest.raises(TypeError, match="allowed_special must be 'all' or a collection of str"):
            tok.encode("x", allowed_special=bad)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="special_tokens must be a collection of str"):
            BPE.train(TEXT, vocab_size=300, special_tokens=bad)  # type: ignore[arg-type]


def test_special_tokens_are_sought_after_surrogates_are_repaired() -> None:
    tok = BPE.train(TEXT, vocab_size=300, special_tokens=["😀", "\ufffd"])
    assert tok.encode("a\ud83d\ude00\udbc0", allowed_special="all") == [*tok.encode("a"), 298, 299]


def test_the_longest_of_several_special_tokens_is_taken(tok: BPE) -> None:
    longer = BPE.train(TEXT, vocab_size=300, special_tokens=["<a", "<a>"])
    assert longer.encode("<a><a", allowed_special="all") == [299, 298]


def test_the_segment_before_a_special_token_ends_like_a_text(tok: BPE) -> None:
    ids = tok.encode("cat   <|end|>", allowed_special="all")
    assert ids == [*tok.encode("cat   "), 318]


# ---------------------------------------------------------------------- streaming


@pytest.mark.parametrize("text", ["plain", "é中😀\u0301", "half \ud83d"])
def test_stream_never_gives_half_a_character(tok: BPE, text: str) -> None:
    stream = tok.decode_stream()
    ids = tok.encode(text)
    pieces = [stream.push(i) for i in ids]
    assert "".join(pieces) + stream.finish() == tok.decode(ids)
    clean = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    assert "".join(pieces) == clean


def test_stream_replaces_what_never_becomes_a_character(tok: BPE) -> None:
    stream = tok.decode_stream()
    assert [stream.push(b) for b in b"\xe4\xb8a"] == ["", "", "\ufffda"]
    assert stream.push(0xE4) == ""
    assert stream.finish() == "\ufffd"
    assert stream.push(65) == "A"
    strict = tok.decode_stream("strict")
    assert strict.push(0xE4) == ""
    with pytest.raises(UnicodeDecodeError):
        strict.finish()
    assert strict.push(65) == "A"


# ---------------------------------------------------------------------- files


def test_save_and_load(tok: BPE, tmp_path: Path) -> None:
    path = tmp_path / "tok.bpe"
    tok.save(path)
    loaded = BPE.load(path)
    assert loaded == tok
    assert loaded.fingerprint == tok.fingerprint
    assert loaded.encode(TEXT) == tok.encode(TEXT)
    assert loaded.special_tokens == tok.special_tokens
    assert pickle.loads(pickle.dumps(tok)) == tok
    assert [p.name for p in tmp_path.iterdir()] == ["tok.bpe"]


def test_damaged_files_name_the_file(tok: BPE, tmp_path: Path) -> None:
    path = tmp_path / "tok.bpe"
    blob = tok.to_bytes()
    for damaged, message in [
        (b"", "not a fastcompress BPE"),
        (b"hello world, I am text", "not a fastcompress BPE"),
        (blob[:-1], "SHA-256"),
        (blob[:20], "truncated"),
        (blob[:100] + b"\xff" + blob[101:], "SHA-256"),
        (blob[:8] + b"\x03" + blob[9:], "version 3.*update fastcompress"),
    ]:
        path.write_bytes(damaged)
        with pytest.raises(FormatError, match=f"tok.bpe.*{message}"):
            BPE.load(path)


def test_unwritable_output_names_the_path_and_leaves_nothing(tok: BPE, tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="missing"):
        tok.save(tmp_path / "missing" / "tok.bpe")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(OutputError, match=r"tok\.bpe"):
        tok.save(tmp_path / "file" / "tok.bpe")
    tok.save(tmp_path / ("x" * 250))  # a name so long that only a short temporary one fits
    assert sorted(path.name[:4] for path in tmp_path.iterdir()) == ["file", "xxxx"]


def test_equal_tokenizers_have_equal_fingerprints(tmp_path: Path) -> None:
    path = tmp_path / "x.tiktoken"
    write_ranks(path, [bytes([b]) for b in range(256)])
    one = BPE.from_tiktoken(path, pattern="gpt2", special_tokens={"x": 300, "y": 301})
    other = BPE.from_tiktoken(path, pattern="gpt2", special_tokens={"y": 301, "x": 300})
    assert one == other


def resigned(blob: bytes) -> bytes:
    """A file changed by hand whose checksum is right again, so that the checks behind the checksum are reached."""
    return blob[:-32] + hashlib.sha256(blob[:-32]).digest()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (b"\x01\x00\x00\x00\x00\x06\x00", b"\x01\x00\x00\x00\x02\x06\x00", "merge order 2"),
        (b"cl100k", b"cl200k", "pattern 'cl200k'"),
        (b"\x40\x01\x00\x00", b"\xff\xff\xff\xff", "counts"),  # 320 ids
        (b"<|end|>", b"<|end\xff>", "not UTF-8"),
        (b"\x3f\x01\x00\x00\x0b", b"\x3d\x01\x00\x00\x0b", "ascending"),  # special ids 318, 317
        (b"\x3f\x01\x00\x00\x0b", b"\x40\x01\x00\x00\x0b", "ascending"),  # special ids 318, 320
        (b"<|endless|>", b"<|endless|>!", "counts"),  # bytes left over
    ],
)
def test_files_that_contradict_themselves(tok: BPE, old: bytes, new: bytes, message: str) -> None:
    blob = tok.to_bytes()
    at = blob.rindex(old) if old.endswith((b"\x07", b"\x0b")) or b"<" in old else blob.index(old)
    with pytest.raises(FormatError, match=message):
        BPE.from_bytes(resigned(blob[:at] + new + blob[at + len(old) :]))


def test_golden_vocabulary() -> None:
    """A file of format version 1, written on 2026-11-28: it must load, and encode, like that for ever."""
    tok = BPE.load(VECTORS / "bpe-v1.bpe")
    assert tok.fingerprint == "4fa76fcfe34583af5f538b2d6206916ad7bb03105ec4c5aa6165dbdc0584cc15"
    assert tok.to_bytes() == (VECTORS / "bpe-v1.bpe").read_bytes()
    assert tok.encode("the cats sat<|end|>é\n", allowed_special="all") == [258, 270, 263, 274, 195, 169, 10]


# ---------------------------------------------------------------------- rank files


def write_ranks(path: Path, tokens: list[bytes]) -> None:
    import base64

    path.write_bytes(b"".join(base64.b64encode(t) + b" %d\n" % i for i, t in enumerate(tokens)))


def test_rank_file(tmp_path: Path) -> None:
    path = tmp_path / "x.tiktoken"
    write_ranks(path, [*(bytes([b]) for b in range(256)), b"ab", b"abcd", b"cd"])
    tok = BPE.from_tiktoken(path, pattern="gpt2", special_tokens={"<|end|>": 300})
    assert tok.vocab_size == 301
    assert tok.encode("ababcd") == [256, 257]  # ab + cd merge, though no pair was ever listed
    assert tok.encode("abc") == [256, 99]
    assert tok.encode("<|end|>", allowed_special="all") == [300]
    with pytest.raises(DataError, match="token id 270"):
        tok.decode([270])


@pytest.mark.parametrize(
    "content",
    [b"", b"YQ==\n", b"YQ== x\n", b"?? 1\n", b"YQ== 0\nYQ== 1\n", b"YQ== 0\nYg== 0\n", b"\x00\xff\n"],
)
def test_bad_rank_files(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "bad.tiktoken"
    path.write_bytes(content)
    with pytest.raises(FormatError, match=r"bad\.tiktoken"):
        BPE.from_tiktoken(path, pattern="gpt2")


def test_a_small_file_cannot_ask_for_a_large_vocabulary(tmp_path: Path) -> None:
    path = tmp_path / "x.tiktoken"
    path.write_bytes(b"YQ== 2097151\n")
    with pytest.raises(ConfigError, match="2097151"):
        BPE.from_tiktoken(path, pattern="gpt2")
    with pytest.raises(ConfigError, match="'x' is -1; it must be 0 to 2097151"):
        BPE.from_tiktoken(path, pattern="gpt2", special_tokens={"x": -1})


def test_rank_file_without_all_bytes(tmp_path: Path) -> None:
    path = tmp_path / "x.tiktoken"
    write_ranks(path, [bytes([b]) for b in range(255)])
    with pytest.raises(FastcompressError, match="single byte 255"):
        BPE.from_tiktoken(path, pattern="gpt2")


# ---------------------------------------------------------------------- the page of the format


def test_the_format_page_has_every_named_pattern() -> None:
    page = (Path(__file__).parent.parent / "cpp/fastcompress/bpe/FORMAT.md").read_text(encoding="utf-8")
    for name, regex in PATTERNS.items():
        if regex:
            assert f"`{name}`\n\n```\n{regex}\n```\n" in page


def test_the_ties_of_the_format_page() -> None:
    ranks = {bytes([byte]): byte for byte in range(256)} | {b"ab": 256, b"ba": 257, b"aba": 300}
    tok = BPE.from_ranks(ranks, pattern="none")
    assert tok.encode("ababa") == [256, 300]
