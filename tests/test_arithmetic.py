"""The coder against whole numbers of any size, and how it meets wrong use."""

from __future__ import annotations

import concurrent.futures
import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastcompress.arithmetic import Decoder, Encoder, quantize
from fastcompress.errors import ConfigError, DataError, FormatError
from tests.reference import arithmetic as reference

VECTORS = json.loads((Path(__file__).parent / "vectors" / "arithmetic.json").read_text())


def slots_of(symbols: list[int], table: list[int]) -> list[tuple[int, int, int]]:
    precision = table[-1].bit_length() - 1
    return [(table[s], table[s + 1] - table[s], precision) for s in symbols]


def encoded(symbols: object, table: object) -> bytes:
    encoder = Encoder()
    encoder.encode(symbols, table)
    return encoder.finish()


@st.composite
def coded(draw: st.DrawFn) -> tuple[list[int], np.ndarray]:
    """Symbols, most of them likely ones, and their table."""
    num_symbols = draw(st.sampled_from([1, 2, 3, 17, 256, 1000]))
    precision = draw(st.integers(max(1, (num_symbols - 1).bit_length()), 24))
    shape = draw(st.sampled_from(["even", "steep", "one"]))
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    weights = {
        "even": np.ones(num_symbols),
        "steep": np.exp(-np.arange(num_symbols) / 2.0) + 1e-9,
        "one": np.eye(1, num_symbols, num_symbols - 1)[0],
    }[shape]
    table = quantize(weights, precision)
    size = draw(st.integers(0, 300))
    likely = np.searchsorted(table, random.integers(0, table[-1], size), "right") - 1
    symbols = np.where(random.random(size) < 0.9, likely, random.integers(0, num_symbols, size))
    return symbols.tolist(), table


class TestAgainstWholeNumbers:
    @given(coded())
    def test_one_table(self, case: tuple[list[int], np.ndarray]) -> None:
        symbols, table = case
        message = encoded(symbols, table)
        assert message == reference.encode(slots_of(symbols, table.tolist()))
        assert Decoder(message).decode(table, len(symbols)).tolist() == symbols
        assert reference.decode(message, [table.tolist()] * len(symbols)) == symbols

    @given(coded(), st.integers(0, 2**32))
    def test_a_row_each(self, case: tuple[list[int], np.ndarray], seed: int) -> None:
        symbols, table = case
        random = np.random.default_rng(seed)
        num_symbols, precision = len(table) - 1, int(table[-1]).bit_length() - 1
        weights = random.random((len(symbols), num_symbols)) ** 8 + 1e-12
        rows = quantize(weights, precision).reshape(len(symbols), num_symbols + 1)
        message = encoded(np.array(symbols, np.int64), rows)
        slots = [slots_of([symbol], row)[0] for symbol, row in zip(symbols, rows.tolist(), strict=True)]
        assert message == reference.encode(slots)
        assert Decoder(message).decode(rows).tolist() == symbols

        encoder = Encoder()
        encoder.encode_weights(np.array(symbols, np.int64), weights, precision)
        assert encoder.finish() == message
        assert Decoder(message).decode_weights(weights, precision).tolist() == symbols

    @given(st.lists(coded(), max_size=6), st.booleans())
    def test_any_mixture_of_calls(self, cases: list[tuple[list[int], np.ndarray]], one_by_one: bool) -> None:
        encoder, slots = Encoder(), []
        for symbols, table in cases:
            slots += slots_of(symbols, table.tolist())
            if one_by_one:
                for symbol in symbols:
                    encoder.encode(symbol, table)
            else:
                encoder.encode(symbols, table)
        bits = encoder.num_bits_if_finished
        message = encoder.finish()
        assert message == reference.encode(slots)
        assert (bits + 7) // 8 == len(message)
        decoder = Decoder(message)
        for symbols, table in cases:
            if one_by_one:
                assert [decoder.decode_symbol(table) for _ in symbols] == symbols
            else:
                assert decoder.decode(table, len(symbols)).tolist() == symbols

    @pytest.mark.parametrize("name", sorted(VECTORS))
    def test_golden(self, name: str) -> None:
        vector = VECTORS[name]
        message = bytes.fromhex(vector["message"])
        if "weights" in vector:
            assert quantize(vector["weights"], vector["precision"]).tolist() == vector["table"]
        assert encoded(vector["symbols"], np.array(vector["table"], np.uint32)) == message
        assert reference.encode(slots_of(vector["symbols"], vector["table"])) == message

    def test_long_carries(self) -> None:
        """A number that stays just below a border for long: bytes 0xff wait for a carry, which comes or does not."""
        table = np.array([0, 1 << 23, (1 << 24) - 1, 1 << 24], np.uint32)
        for last in (0, 1, 2):
            symbols = [0] + [2] * 50 + [last] * 3
            message = encoded(symbols, table)
            assert message == reference.encode(slots_of(symbols, table.tolist()))
            assert Decoder(message).decode(table, len(symbols)).tolist() == symbols

    @pytest.mark.parametrize("num_symbols", [97, 98, 99, 400, 2000])
    def test_words_that_are_written_stay(self, num_symbols: int) -> None:
        """A code has at least the bits of the words written before its end, even where the number 0 would do."""
        table = np.array([0, 52238, 65536], np.uint32)
        code = encoded([0] * num_symbols, table)
        num_words = math.floor(num_symbols * -math.log2(52238 / 65536) / 32)  # the interval shrinks by 2^32 for each
        assert code == bytes(4 * num_words) == reference.encode(slots_of([0] * num_symbols, table.tolist()))
        assert Decoder(code).decode(table, num_symbols).tolist() == [0] * num_symbols

    @settings(max_examples=40)
    @given(st.integers(1, 24), st.integers(0, 2**32), st.integers(500, 4000), st.floats(0, 1))
    def test_long_codes(self, precision: int, seed: int, num_symbols: int, skew: float) -> None:
        """Bytes against the oracle, and length against the bound that FORMAT.md proves."""
        total = 1 << precision
        table = np.array([0, min(total - 1, max(1, int(total * skew))), total], np.uint32)
        random = np.random.default_rng(seed)
        symbols = (random.random(num_symbols) >= table[1] / total).astype(np.int64)
        encoder = Encoder()
        encoder.encode(symbols, table)
        num_bits = encoder.bits_if_closed
        code = encoder.finish()
        assert code == reference.encode(slots_of(symbols.tolist(), table.tolist()))
        assert Decoder(code).decode(table, num_symbols).tolist() == symbols.tolist()
        frequencies = np.diff(table.astype(np.float64))[symbols]
        ideal = math.fsum(precision - np.log2(frequencies))
        excess_per_symbol = -math.log2(1 - 2.0 ** (precision - 32))
        assert num_bits < ideal + num_symbols * excess_per_symbol + 1 + 1e-6
        assert 0 <= 8 * len(code) - num_bits < 8


class TestMessages:
    def test_nothing(self) -> None:
        encoder = Encoder()
        assert encoder.num_bits_if_finished == 0
        assert encoder.finish() == b""
        assert Decoder(b"").decode(quantize([1, 1]), 0).tolist() == []

    def test_a_million_equal_bytes(self) -> None:
        data = np.zeros(1 << 20, np.uint8)
        table = quantize([1] + [0] * 255)
        message = encoded(data, table)
        assert 0 <= math.ceil((1 << 20) * -math.log2(int(table[1]) / 65536) / 8) - len(message) <= 8
        assert (Decoder(message).decode(table, 1 << 20, np.uint8) == data).all()

    def test_all_pairs_of_bytes(self) -> None:
        data = np.stack(np.meshgrid(np.arange(256), np.arange(256), indexing="ij"), -1).reshape(-1).astype(np.uint8)
        table = quantize(np.ones(256, np.int64))
        message = encoded(data, table)
        assert abs(len(message) - len(data)) <= 1
        assert (Decoder(message).decode(table, len(data), np.uint8) == data).all()

    def test_overhead(self) -> None:
        """At most 0.01 % above the entropy under the frequencies, for the default precision and the highest."""
        random = np.random.default_rng(0)
        for num_symbols, precision in ((2, 16), (256, 16), (256, 24), (65536, 24), (100_000, 24)):
            weights = np.exp(-3 * random.random(num_symbols)).astype(np.float32)
            table = quantize(weights, precision)
            frequencies = np.diff(table.astype(np.int64))
            symbols = random.choice(num_symbols, 400_000, p=frequencies / frequencies.sum())
            entropy = float((precision - np.log2(frequencies[symbols])).sum())
            message = encoded(symbols, table)
            assert 8 * len(message) <= entropy * 1.0001 + 64
            assert (Decoder(message).decode(table, len(symbols)) == symbols).all()

    @given(coded(), st.integers(1, 40), st.data())
    def test_pieces(self, case: tuple[list[int], np.ndarray], size: int, data: st.DataObject) -> None:
        symbols, table = case
        encoder, parts = Encoder(), []
        for begin in range(0, len(symbols), size):
            encoder.encode(symbols[begin : begin + size], table)
            parts.append(encoder.take())
        message = b"".join(parts) + encoder.finish()
        assert message == encoded(symbols, table)
        cut = data.draw(st.integers(1, 9))
        decoder = Decoder(message[i : i + cut] for i in range(0, len(message), cut))
        assert decoder.decode(table, len(symbols)).tolist() == symbols

    def test_pieces_come_when_they_are_needed(self) -> None:
        table = quantize(np.ones(256, np.int64))
        data = np.random.default_rng(0).integers(0, 256, 100_000).astype(np.uint8)
        message, given_out = encoded(data, table), []

        def pieces():
            for begin in range(0, len(message), 1000):
                given_out.append(begin)
                yield message[begin : begin + 1000]

        decoder = Decoder(pieces())
        assert decoder.decode_symbol(table) == data[0]
        assert 0 < len(given_out) < 30
        assert (decoder.decode(table, len(data) - 1) == data[1:]).all()

    @given(coded(), coded(), st.integers(0, 300))
    def test_snapshots(
        self, kept: tuple[list[int], np.ndarray], undone: tuple[list[int], np.ndarray], after: int
    ) -> None:
        symbols, table = kept
        first, second = symbols[:after], symbols[after:]
        encoder = Encoder()
        encoder.encode(first, table)
        snapshot, bits = encoder.snapshot(), encoder.num_bits_if_finished
        encoder.encode(*undone)
        encoder.restore(snapshot)
        assert encoder.num_bits_if_finished == bits
        encoder.encode(second, table)
        message = encoder.finish()
        assert message == encoded(symbols, table)

        decoder = Decoder(message)
        decoder.decode(table, len(first))
        place = decoder.snapshot()
        for _ in range(2):
            assert decoder.decode(table, len(second)).tolist() == second
            decoder.restore(place)

    def test_models_as_functions(self) -> None:
        def model(before: np.ndarray) -> np.ndarray:
            return quantize(1 + np.bincount(before, minlength=4))

        symbols = [0, 0, 3, 0, 1, 0, 0, 2]
        encoder = Encoder()
        encoder.encode_model(symbols, model)
        assert Decoder(encoder.finish()).decode_model(model, len(symbols)).tolist() == symbols

    def test_num_bits_if_finished_is_least(self) -> None:
        """No number of fewer bits decodes to the symbols."""
        table = quantize([60, 3, 1], 8)
        for symbols in ([0], [1], [2], [0, 1], [2, 2], [1, 0, 0, 2]):
            encoder = Encoder()
            encoder.encode(symbols, table)
            bits = encoder.num_bits_if_finished

            def decodes(value: int, num_bits: int, symbols: list[int] = symbols) -> bool:
                message = (value << -num_bits % 8).to_bytes((num_bits + 7) // 8, "big")
                return reference.decode(message, [table.tolist()] * len(symbols)) == symbols

            assert any(decodes(value, bits) for value in range(1 << bits))
            assert bits == 0 or not any(decodes(value, bits - 1) for value in range(1 << (bits - 1)))


class TestErrors:
    TABLE = quantize([3, 2, 1])

    @pytest.mark.parametrize("symbols", [[3], [0, 1, -1], np.array([2**40]), 3, -1, 2**70])
    def test_symbols_outside_the_table(self, symbols: object) -> None:
        encoder = Encoder()
        encoder.encode([0, 1], self.TABLE)
        with pytest.raises(DataError, match="symbol"):
            encoder.encode(symbols, self.TABLE)
        with pytest.raises(DataError, match="symbol"):
            encoder.encode_weights(symbols, np.ones((np.size(symbols), 3)))
        assert encoder.finish() == encoded([0, 1], self.TABLE)

    @pytest.mark.parametrize(
        ("table", "problem"),
        [
            ([0, 5, 9], "power of two"),
            ([1, 5, 16], "begin with 0"),
            ([0, 5, 5, 16], "symbol 1 has no frequency"),
            ([0, 9, 5, 16], "symbol 1 has no frequency"),
            ([0, 1 << 25], "power of two"),
            ([0], "two cumulative"),
            ([[0, 3, 8], [0, 3, 16]], "row 1 sums to"),
            ([[0, 3, 8], [0, 8, 8]], "row 1: symbol 1"),
            ([[[0, 8]]], "one dimension"),
        ],
    )
    def test_what_is_no_table(self, table: list, problem: str) -> None:
        for act in (Encoder().encode, lambda symbols, table: Decoder(b"abcd").decode(table, len(symbols))):
            with pytest.raises(DataError, match=problem):
                act([0] * len(table), np.array(table, np.uint32))

    def test_types(self) -> None:
        with pytest.raises(TypeError, match="symbols"):
            Encoder().encode([0.5], self.TABLE)
        with pytest.raises(TypeError, match="symbols"):
            Encoder().encode("ab", self.TABLE)
        with pytest.raises(TypeError, match="uint32"):
            Encoder().encode([0], self.TABLE.astype(np.float64))
        with pytest.raises(TypeError, match="uint32"):
            Encoder().encode([0], self.TABLE.astype(np.int64))
        with pytest.raises(TypeError, match="dtype"):
            Decoder(b"").decode(self.TABLE, 1, np.int8)
        with pytest.raises(TypeError, match="num_symbols"):
            Decoder(b"").decode(self.TABLE)

    def test_numbers_that_do_not_fit_together(self) -> None:
        rows = quantize(np.ones((3, 4)))
        with pytest.raises(DataError, match="2 symbols and 3 rows"):
            Encoder().encode([0, 1], rows)
        with pytest.raises(DataError, match="2 symbols and 3 rows"):
            Decoder(b"").decode(rows, 2)
        with pytest.raises(ConfigError, match="wider dtype"):
            Decoder(b"").decode(quantize(np.ones(257)), 1, np.uint8)

    def test_a_failing_row_leaves_the_message_as_it_was(self) -> None:
        encoder = Encoder()
        encoder.encode([2], self.TABLE)
        with pytest.raises(DataError, match="row 1"):
            encoder.encode_weights([0, 1], np.array([[1.0, 2.0], [1.0, float("nan")]]))
        assert encoder.finish() == encoded([2], self.TABLE)

    def test_snapshots_of_others(self) -> None:
        encoder = Encoder()
        encoder.encode(np.zeros(1000, np.uint8), quantize(np.ones(256)))
        snapshot = encoder.snapshot()
        encoder.encode(np.zeros(1000, np.uint8), quantize(np.ones(256)))
        encoder.take()
        with pytest.raises(ConfigError, match="snapshot"):
            encoder.restore(snapshot)
        place = Decoder(b"abcdefgh").snapshot()
        with pytest.raises(ConfigError, match="another decoder"):
            Decoder(b"abcdefgh").restore(place)
        with pytest.raises(ConfigError, match="last piece"):
            Decoder([b"abcdefgh"]).snapshot()

    def test_truncated(self) -> None:
        table = quantize(np.ones(256))
        message = encoded(np.arange(256), table)
        with pytest.raises(FormatError, match="truncated"):
            Decoder(message[:100]).decode(table, 256)

    def test_impossible(self) -> None:
        """Where 2**64 - 1 does not divide evenly, a few numbers belong to no symbol."""
        with pytest.raises(FormatError, match="not the code"):
            Decoder(b"\xff" * 16).decode(quantize([1] * 3, 24), 1)

    @settings(max_examples=300)
    @given(st.binary(max_size=60), coded())
    def test_any_bytes_give_symbols_or_an_error(self, message: bytes, case: tuple[list[int], np.ndarray]) -> None:
        symbols, table = case
        try:
            decoded = Decoder(message).decode(table, len(symbols))
        except FormatError:
            return
        assert decoded.size == 0 or decoded.max() < len(table) - 1


class TestOtherKindsOfSymbols:
    TABLE = quantize(np.ones(70_000))

    @pytest.mark.parametrize("dtype", [">u2", ">i4", ">u4", ">i8", "u1", "i2", "u8"])
    def test_any_type_and_byte_order(self, dtype: str) -> None:
        symbols = [1, 2, 120, 0, 77]
        assert encoded(np.array(symbols, dtype), self.TABLE) == encoded(symbols, self.TABLE)
        assert encoded(symbols, self.TABLE.astype(">u4")) == encoded(symbols, self.TABLE)

    def test_parts_of_arrays(self) -> None:
        symbols = np.arange(60, dtype=np.uint32)
        unaligned = np.frombuffer(b"x" + symbols.tobytes(), np.uint32, offset=1)
        assert encoded(unaligned, self.TABLE) == encoded(symbols, self.TABLE)
        assert encoded(symbols[::-3], self.TABLE) == encoded(symbols[::-3].copy(), self.TABLE)

    def test_single_ones(self) -> None:
        for symbol in (5, np.int64(5), np.uint8(5), np.array(5)):
            assert encoded(symbol, self.TABLE) == encoded([5], self.TABLE)

    def test_bytes(self) -> None:
        assert encoded(b"abc", self.TABLE) == encoded([97, 98, 99], self.TABLE)

    def test_models_get_no_wrapped_symbols(self) -> None:
        with pytest.raises(DataError, match="symbols from"):
            Encoder().encode_model([2**32 + 5], lambda before: self.TABLE)


class TestCodersInUse:
    def test_snapshots_of_what_is_no_more(self) -> None:
        table = quantize(np.ones(256))
        first, second = Encoder(), Encoder()
        for encoder in (first, second):
            encoder.encode(b"b" * 600, table)
        early = first.snapshot()
        first.encode(b"x" * 100, table)
        late = first.snapshot()
        with pytest.raises(ConfigError, match="another code"):
            second.restore(early)
        first.restore(early)
        first.encode(b"y" * 200, table)
        with pytest.raises(ConfigError, match="undone"):
            first.restore(late)
        first.restore(early)
        assert first.finish() == encoded(b"b" * 600, table)
        with pytest.raises(ConfigError, match="another code"):
            first.restore(early)

    def test_a_failing_row_leaves_the_decoder_where_it_was(self) -> None:
        weights = np.ones((4, 3))
        encoder = Encoder()
        encoder.encode_weights([0, 1, 2, 0], weights)
        decoder = Decoder(encoder.finish())
        bad = weights.copy()
        bad[2] = 0
        with pytest.raises(DataError, match="row 2"):
            decoder.decode_weights(bad)
        assert decoder.decode_weights(weights).tolist() == [0, 1, 2, 0]

    def test_one_thread_at_a_time(self) -> None:
        """A call while another one runs is refused, or waits its turn; the message stays one."""
        table = quantize(np.ones(256))
        encoder, data, refused = Encoder(), np.zeros(300_000, np.uint8), []

        def encode_once(_: int) -> bool:
            try:
                encoder.encode(data, table)
            except ConfigError as error:
                refused.append(str(error))
                return False
            return True

        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            total = sum(pool.map(encode_once, range(80)))
        assert encoder.finish() == encoded(np.zeros(300_000 * total, np.uint8), table)
        assert all("another thread" in problem for problem in refused)
