"""Objects that calls may change, used from several threads at once, and arrays that change while they are read."""

from __future__ import annotations

import contextlib
import inspect
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fastcompress as fc
from fastcompress import _core, archive, arithmetic, lz77
from fastcompress.errors import BusyError, FastcompressError

TEXT = b" ".join(b"%x" % (i * i % 9973) for i in range(20_000))[:60_000]
TABLE = arithmetic.quantize(np.ones(256))
SYMBOLS = np.frombuffer(TEXT, np.uint8)
SMALL_TABLE = arithmetic.quantize(np.ones(128))
ROWS = np.broadcast_to(TABLE, (2000, 257)).copy()


def used_parser() -> lz77.IncrementalParser:
    parser = lz77.IncrementalParser()
    parser.append(TEXT[:1000])
    return parser


def used_batch() -> lz77.ParserBatch:
    batch = lz77.ParserBatch(8)
    batch.append(np.frombuffer(TEXT[:800], np.uint8).reshape(8, 100))
    return batch


def code_of_symbols() -> bytes:
    encoder = arithmetic.Encoder()
    encoder.encode(SYMBOLS, TABLE)
    return encoder.finish()


def archive_in_pieces() -> tuple[archive.Decompressor, list[bytes]]:
    blob = archive.compress(TEXT * 4, level=1, block_bytes=1 << 16)
    return archive.Decompressor(num_threads=1), [blob[i : i + 5000] for i in range(0, len(blob), 5000)]


Case = tuple[Callable[[], Any], list[Callable[[Any], object]]]

# Native class: how to make an object of it, and calls that change or read it.
CASES: dict[str, Case] = {
    "lz77.IncrementalParser": (
        used_parser,
        [
            lambda p: p.append(TEXT[:5000]),
            lambda p: p.truncate(500),
            lambda p: p.tokens(),
            lambda p: p.fork().num_bytes,
            lambda p: p.is_legal(lz77.Token.literal(97)),
            lambda p: p.legal_kinds(),
            lambda p: p.legal_lengths(3),
            lambda p: (p.num_bytes, p.num_stable, p.stable_bytes, repr(p)),
        ],
    ),
    "lz77.ParserBatch": (
        used_batch,
        [
            lambda b: b.append(np.full((8, 500), 97, np.uint8)),
            lambda b: b.truncate(3, 50),
            lambda b: b.select([1, 0, 2, 3, 4, 5, 6, 6]),
            lambda b: b.fork(2).tokens(),
            lambda b: (b.num_bytes, b.num_stable, len(b)),
        ],
    ),
    "arithmetic.Encoder": (
        arithmetic.Encoder,
        [
            lambda e: e.encode(SYMBOLS, TABLE),
            lambda e: e.encode(SYMBOLS[:2000], ROWS),
            lambda e: e.encode_weights([1, 2], np.ones((2, 256))),
            lambda e: e.restore(e.snapshot()),
            lambda e: (e.take(), e.num_bits_if_finished),
            lambda e: e.finish(),
        ],
    ),
    "arithmetic.Decoder": (
        lambda: arithmetic.Decoder(code_of_symbols()),
        [
            lambda d: d.decode(TABLE, 5000),
            lambda d: d.decode_symbol(TABLE),
            lambda d: d.decode_weights(np.ones((3, 256))),
            lambda d: d.restore(d.snapshot()),
            lambda d: (d.num_bytes_read, repr(d)),
            lambda d: d.finish(),
        ],
    ),
    "context_mixer.ContextMixer": (
        lambda: arithmetic.ContextMixer(log2_table_bytes=14, log2_match_entries=10),
        [
            lambda m: m.update(TEXT[:3000]),
            lambda m: m.reset(),
            lambda m: m.encode(TEXT[:500]),
            lambda m: m.decode(m.encode(b"abc"), 3),
            lambda m: m.distribution(b"abc"),
            lambda m: m.freeze().to_bytes(),
            lambda m: (m.to_bytes(), m.num_bytes, m.is_frozen, m.reset_interval),
        ],
    ),
    "arithmetic.AdaptiveFrequencies": (
        lambda: arithmetic.AdaptiveFrequencies(256),
        [
            lambda m: m.update(SYMBOLS),
            lambda m: m.encode(SYMBOLS[:500]),
            lambda m: m.cumulative(),
            lambda m: (m.num_symbols, m.precision),
        ],
    ),
    "archive.Writer": (
        lambda: archive.Compressor(level=1, block_bytes=1 << 16, num_threads=1),
        [lambda c: c.update(TEXT), lambda c: c.update(TEXT[:10]), repr],
    ),
    "archive.Reader": (
        archive_in_pieces,
        [lambda c: c[0].update(c[1][0]), lambda c: c[0].update(c[1].pop()), lambda c: c[0].finish()],
    ),
    "bpe.PretokenCounts": (
        lambda: fc.BPE.count_pretokens([TEXT], pattern="cl100k"),
        [
            lambda c: c.add([TEXT[:3000]], num_threads=1),
            lambda c: len(c),
            lambda c: fc.BPE.train(c, vocab_size=260),
            lambda c: next(iter(c.items())),
        ],
    ),
    "bpe.CountItems": (
        lambda: fc.BPE.count_pretokens([TEXT], pattern="cl100k")._core.items(),
        [lambda items: items.next_batch(3)],
    ),
}

# Objects that no call changes, or that lock what they change (the encoders and caches of a Tokenizer).
UNCHANGING = {
    "lz77.Params",
    "lz77.LzpParams",
    "arithmetic.EncoderSnapshot",
    "arithmetic.DecoderSnapshot",
    "bpe.Tokenizer",
    "equal_info.Codebook",
    "equal_info.WindowCoder",
    "greedy_dictionary.CanonicalStates",
    "greedy_dictionary.Dictionary",
}


def test_every_native_class_is_listed() -> None:
    found = {
        f"{name}.{cls}"
        for name, module in vars(_core).items()
        if inspect.ismodule(module)
        for cls, value in vars(module).items()
        if inspect.isclass(value)
    }
    assert found == set(CASES) | UNCHANGING
    assert not set(CASES) & UNCHANGING


@pytest.mark.parametrize("num_threads", [2, 16])
@pytest.mark.parametrize("name", CASES)
def test_threads_at_once_get_answers_or_typed_errors(name: str, num_threads: int) -> None:
    make, calls = CASES[name]
    shared = make()
    problems: list[BaseException] = []
    barrier = threading.Barrier(num_threads)

    def work(thread: int) -> None:
        barrier.wait()
        for turn in range(12):
            call = calls[(thread + turn) % len(calls)]
            try:
                call(shared)
            except (FastcompressError, IndexError):
                pass
            except RuntimeError as error:  # of an iterator over counts that were added to
                if "changed during iteration" not in str(error):
                    problems.append(error)
            except BaseException as error:
                problems.append(error)

    run_threads([lambda i=i: work(i) for i in range(num_threads)])
    assert problems == []


def run_threads(works: list[Callable[[], object]]) -> None:
    threads = [threading.Thread(target=work) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@pytest.mark.parametrize(
    ("make", "change", "state"),
    [
        (lz77.IncrementalParser, lambda p: p.append(TEXT), lambda p: p.num_bytes),
        (
            lambda: arithmetic.ContextMixer(log2_table_bytes=14),
            lambda m: m.update(TEXT[:20_000]),
            lambda m: m.num_bytes * 3,
        ),
        (arithmetic.Encoder, lambda e: e.encode(SYMBOLS, TABLE), lambda e: len(e.finish())),
    ],
)
def test_what_was_accepted_was_done(make: Any, change: Any, state: Any) -> None:
    """No call is lost and none is done by half: every object ends where its accepted calls lead."""
    shared, done, refused = make(), [], []

    def work() -> None:
        for _ in range(20):
            try:
                change(shared)
            except BusyError as error:  # noqa: PERF203
                refused.append(str(error))
            else:
                done.append(1)

    run_threads([work, work])
    assert len(done) + len(refused) == 40
    assert abs(state(shared) - len(done) * len(TEXT)) <= 8
    assert all("another thread is using this" in text for text in refused)


def test_a_callback_that_uses_its_own_object_is_refused_and_does_not_hang() -> None:
    encoder = arithmetic.Encoder()

    refused = []

    class Weights:
        def __array__(self, *_: Any, **__: Any) -> Any:
            with pytest.raises(BusyError, match="using this Encoder"):
                encoder.encode(1, TABLE)
            refused.append(1)
            return np.ones((1, 256))

    encoder.encode_weights([1], Weights())  # type: ignore[arg-type]
    assert refused
    assert arithmetic.Decoder(encoder.finish()).decode_weights(np.ones((1, 256))).tolist() == [1]
    counts = fc.BPE.count_pretokens([TEXT[:1000]], pattern="cl100k")
    with pytest.raises(BusyError, match="PretokenCounts"):
        counts._core.write(lambda _: counts.add(["more"]))
    assert len(counts) > 0


def test_pieces_that_use_their_own_decoder_are_refused() -> None:
    decoders: list[arithmetic.Decoder] = []

    def pieces() -> Any:
        yield b"abc"
        decoders[0].decode_symbol(TABLE)
        yield b"def"

    decoders.append(arithmetic.Decoder(pieces()))
    with pytest.raises(BusyError, match="using this Decoder"):
        decoders[0].decode(TABLE, 20)


# Arrays that another thread changes: how to make them, the values that it writes in turn, and who reads them.
def _tokens() -> list[np.ndarray]:
    kinds, values, lengths = (np.ones(50_000, dtype) for dtype in (np.uint8, np.uint32, np.uint32))
    kinds[0], values[0] = 0, 65
    return [kinds, values, lengths]


BOOK = fc.equal_info.Codebook.train(b"the quick brown fox jumps over the lazy dog " * 3000, bits=9)
LONGEST = max(range(len(BOOK.strings)), key=lambda i: len(BOOK.strings[i]))
WORDS = fc.greedy_dictionary.GreedyDictionary.train([TEXT * 9], 300)
BPE = fc.BPE.train([TEXT], vocab_size=400)
BUCKETS = lz77.Params(window=1000)
ALL_CODES = code_of_symbols()


def changing_symbols() -> np.ndarray:
    return np.full(200_000, 97, np.uint8)


CHANGING: dict[str, tuple[Callable[[], Any], int, int, Callable[[np.ndarray, list[np.ndarray]], object]]] = {
    "reconstruct lengths": (_tokens, 1, 5000, lambda a, all_: lz77.reconstruct(lz77.LZTokens(*all_))),
    "reconstruct values": (_tokens, 1, 2**31, lambda a, all_: lz77.reconstruct(lz77.LZTokens(*all_))),
    "statistics": (_tokens, 1, 0, lambda a, all_: lz77.statistics(lz77.LZTokens(*all_))),
    "literal_runs": (_tokens, 1, 0, lambda a, all_: lz77.literal_runs(lz77.LZTokens(*all_))),
    "bucket_encode": (_tokens, 5, 2**31, lambda a, all_: _core.lz77.bucket_encode(*all_, BUCKETS.core)),
    "bucket_decode": (
        lambda: [np.full(200_000, 65, np.uint32)], 65, 262, lambda a, _: _core.lz77.bucket_decode(a, BUCKETS.core),
    ),
    "lzp_decode": (
        lambda: [np.full(100_000, 65, np.uint32)], 65, 300,
        lambda a, _: _core.lz77.lzp_decode(a, _core.lz77.LzpParams(4, 2, 258), 1 << 22),
    ),
    "codebook uint32": (lambda: [np.full(500_000, 97, np.uint32)], 97, LONGEST, lambda a, _: BOOK.decode(a)),
    "codebook uint16": (lambda: [np.full(500_000, 97, np.uint16)], 97, 60_000, lambda a, _: BOOK.decode(a)),
    "codebook masks": (lambda: [np.full(2_000, 97, np.uint32)], 97, 1 << 30, lambda a, _: BOOK.illegal_next_bytes(a)),
    "dictionary uint32": (lambda: [np.full(500_000, 97, np.uint32)], 97, 300, lambda a, _: WORDS.decode(a)),
    "dictionary uint16": (lambda: [np.full(500_000, 97, np.uint16)], 97, 60_000, lambda a, _: WORDS.decode(a)),
    "dictionary states": (
        lambda: [np.full(20_000, 97, np.uint32)], 97, 1 << 30, lambda a, _: WORDS.states.states_of(a),
    ),
    "dictionary rows": (lambda: [np.full(2_000, 0, np.uint32)], 0, 1 << 30, lambda a, _: WORDS.states.legal_rows(a)),
    "bpe decode": (lambda: [np.full(500_000, 97, np.uint32)], 97, 399, lambda a, _: BPE.decode_bytes(a)),
    "bpe decode, unknown": (lambda: [np.full(500_000, 97, np.uint32)], 97, 1 << 31, lambda a, _: BPE.decode_bytes(a)),
    "encode symbols": (lambda: [changing_symbols()], 97, 255, lambda a, _: arithmetic.Encoder().encode(a, SMALL_TABLE)),
    "encode with a table": (
        lambda: [TABLE.copy()], 0, 1 << 31, lambda a, _: arithmetic.Encoder().encode(SYMBOLS, a),
    ),
    "encode with rows": (lambda: [ROWS.copy()], 0, 7, lambda a, _: arithmetic.Encoder().encode(SYMBOLS[:2000], a)),
    "encode one symbol": (lambda: [TABLE.copy()], 0, 1 << 31, lambda a, _: arithmetic.Encoder().encode(200, a)),
    "encode with weights": (
        lambda: [np.ones((2000, 256), np.float32)], 0, 1,
        lambda a, _: arithmetic.Encoder().encode_weights(SYMBOLS[:2000], a),
    ),
    "decode with a table": (
        lambda: [TABLE.copy()], 0, 1 << 31, lambda a, _: arithmetic.Decoder(ALL_CODES).decode(a, 20_000),
    ),
    "decode few with a table": (
        lambda: [TABLE.copy()], 0, 1 << 31, lambda a, _: arithmetic.Decoder(ALL_CODES).decode(a, 200),
    ),
    "decode with rows": (lambda: [ROWS.copy()], 0, 7, lambda a, _: arithmetic.Decoder(ALL_CODES).decode(a)),
    "decode with weights": (
        lambda: [np.ones((2000, 256))], 0, 1, lambda a, _: arithmetic.Decoder(ALL_CODES).decode_weights(a),
    ),
    "quantize": (lambda: [np.ones((300, 1000))], 0, 1, lambda a, _: arithmetic.quantize(a)),
    "quantize_logits": (lambda: [np.ones((300, 1000), np.int32)], -(2**31), 2**31 - 1,
                        lambda a, _: arithmetic.quantize_logits(a)),
    "adaptive frequencies": (
        lambda: [np.full(100_000, 7, np.uint32)], 7, 1 << 30, lambda a, _: arithmetic.AdaptiveFrequencies(10).update(a),
    ),
    "streams": (lambda: [np.full((8, 20_000), 97, np.uint8)], 97, 98, lambda a, _: used_batch().append(a)),
    "pretokens": (
        lambda: [np.arange(10, 60_010, 10, dtype=np.uint64)], 10, 1 << 40,
        lambda a, _: BPE._core.encode_pretokens(TEXT, a),
    ),
    "text": (lambda: [np.full(300_000, 97, np.uint8)], 97, 32, lambda a, _: lz77.parse(memoryview(a).toreadonly())),
}  # fmt: skip


@pytest.mark.parametrize("name", CHANGING)
def test_arrays_that_change_while_they_are_read(name: str) -> None:
    """An answer for some state of the array, or a typed error; never other memory."""
    make, low, high, read = CHANGING[name]
    arrays = make()
    array = arrays[-1] if name != "reconstruct values" else arrays[1]
    stop = threading.Event()

    def change() -> None:
        half = array.reshape(-1)[array.size // 2 :]
        while not stop.is_set():
            half[:] = high
            half[:] = low

    thread = threading.Thread(target=change)
    thread.start()
    try:
        for _ in range(25):
            with contextlib.suppress(FastcompressError, ValueError):
                read(array, arrays)
    finally:
        stop.set()
        thread.join()


def test_read_only_views_of_memory_that_changes_are_copied() -> None:
    """What is learned from a text is what it was when the call began."""
    memory = bytearray(TEXT)
    view = memoryview(memory).toreadonly()
    array = np.frombuffer(memory, np.uint8)
    array.flags.writeable = False
    for text in (view, memory, array.data):
        assert lz77.parse(text) == lz77.parse(TEXT)  # type: ignore[arg-type]
    del view, array, text
    memory += b"grown"  # BufferError if a call still held the memory
