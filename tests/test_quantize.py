"""Weights to frequencies, against exact fractions."""

from __future__ import annotations

from decimal import Decimal, getcontext
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fastcompress._core import arithmetic as _core
from fastcompress.arithmetic import MAX_SYMBOLS, default_precision, quantize, quantize_logits
from fastcompress.errors import ConfigError, DataError
from tests.reference import arithmetic as reference

finite = st.floats(min_value=0, allow_nan=False, allow_infinity=False, allow_subnormal=True)
rows = st.one_of(
    st.lists(finite, min_size=1, max_size=70),
    st.lists(st.floats(min_value=0, allow_nan=False, allow_infinity=False, width=32), min_size=1, max_size=70),
    st.lists(st.integers(0, 2**63 - 1), min_size=1, max_size=70),
    st.lists(st.integers(0, 9), min_size=1, max_size=300),
).filter(lambda row: max(row) > 0)
precisions = st.integers(9, 24)


class TestTables:
    @given(rows, precisions)
    def test_against_fractions(self, row: list, precision: int) -> None:
        expected = reference.quantize(row, precision)
        array = np.array(row)
        assert quantize(array, precision).tolist() == expected
        assert quantize(np.stack([array, array[::-1]]), precision)[0].tolist() == expected
        assert quantize(torch.tensor(array), precision).tolist() == expected

    @given(st.lists(st.integers(0, 255), min_size=1, max_size=300).filter(any), precisions)
    def test_equal_weights_of_any_type(self, row: list[int], precision: int) -> None:
        tables = [
            quantize(np.array(row, dtype), precision).tolist()
            for dtype in ("u1", "u2", "i2", "u4", "i4", "u8", "i8", "f2", "f4", "f8")
        ]
        tables += [
            quantize(torch.tensor(row, dtype=dtype), precision).tolist()
            for dtype in (torch.uint8, torch.int16, torch.int64, torch.bfloat16, torch.float16, torch.float32)
        ]
        assert all(table == tables[0] for table in tables)

    @given(rows, precisions)
    def test_frequencies(self, row: list, precision: int) -> None:
        frequencies = np.diff(quantize(np.array(row), precision).astype(np.int64))
        assert frequencies.min() >= 1
        assert frequencies.sum() == 1 << precision
        exact = np.array([float(Fraction(weight) / sum(map(Fraction, row))) for weight in row])
        share = 1 + exact * ((1 << precision) - len(row))
        tolerance = 2 + len(row) * 2.0 ** (precision - 29)  # of steps 1 and 2; the last symbol's is the larger one
        assert np.abs(frequencies - share).max() < tolerance + 1

    def test_scale_does_not_matter(self) -> None:
        weights = np.random.default_rng(0).random(1000) + 1e-3
        tables = [quantize(weights * 2.0**shift) for shift in (-900, -3, 0, 40, 900)]
        assert all((table == tables[0]).all() for table in tables)

    def test_large_alphabets(self) -> None:
        for num_symbols in (65536, 100_000, 1 << 20, MAX_SYMBOLS):
            table = quantize(np.ones(num_symbols, np.int32))
            assert len(table) == num_symbols + 1
            assert int(table[-1]) == 1 << default_precision(num_symbols)
            assert np.diff(table.astype(np.int64)).min() >= 1

    def test_default_precision(self) -> None:
        sizes = {1: 16, 2: 16, 256: 16, 257: 17, 4096: 20, 50_257: 24, 65536: 24, 200_000: 24}
        assert {size: default_precision(size) for size in sizes} == sizes
        with pytest.raises(ConfigError):
            default_precision(MAX_SYMBOLS + 1)

    def test_as_many_symbols_as_there_is_room(self) -> None:
        assert quantize([5, 0, 0, 9], 2).tolist() == [0, 1, 2, 3, 4]
        with pytest.raises(ConfigError, match="5 symbols are too many"):
            quantize([1] * 5, 2)

    def test_shapes(self) -> None:
        assert quantize(np.ones((2, 3, 5))).shape == (2, 3, 6)
        assert quantize(np.ones((0, 5))).shape == (0, 6)
        table = quantize(torch.ones(2, 3, 5))
        assert table.shape == (2, 3, 6)
        assert table.dtype == torch.int32

    @pytest.mark.parametrize(
        "weights", [[1.0, float("nan")], [1.0, float("inf")], [-1.0, 2.0], [0.0, 0.0], [-1, 3], [0, 0, 0]]
    )
    def test_bad_weights(self, weights: list) -> None:
        for dtype in (np.float32, np.float64) if isinstance(weights[0], float) else (np.int32, np.int64):
            array = np.array(weights, dtype)
            with pytest.raises(DataError, match="weight"):
                quantize(array)
            with pytest.raises(DataError, match=r"row 1: .*weight"):
                quantize(np.stack([np.ones_like(array), array]))
            with pytest.raises(DataError, match="weight"):
                quantize(torch.tensor(array))

    def test_processors_that_take_subnormal_numbers_for_zero(self) -> None:
        """Some libraries set that for a thread; tables stay what they are."""
        rows = [np.array([3e-40, 1e-40], np.float32), np.array([2e-38, 3e-39], np.float32), np.array([5e-324, 2e-308])]
        negative = np.array([-1e-40, 1.0], np.float32)
        expected = [quantize(row).tolist() for row in rows]
        assert torch.set_flush_denormal(True)
        try:
            assert [quantize(row).tolist() for row in rows] == expected
            with pytest.raises(DataError, match="negative"):
                quantize(negative)
        finally:
            torch.set_flush_denormal(False)
        assert expected == [reference.quantize(row.tolist(), 16) for row in rows]

    def test_negative_zero_is_zero(self) -> None:
        assert quantize([-0.0, 1.0]).tolist() == quantize([0.0, 1.0]).tolist()
        assert quantize(torch.tensor([-0.0, 1.0])).tolist() == quantize([0.0, 1.0]).tolist()

    @pytest.mark.parametrize("precision", [0, -3, 25, 1000])
    def test_bad_precision(self, precision: int) -> None:
        for weights in ([1, 2], torch.tensor([1, 2])):
            with pytest.raises(ConfigError, match="precision"):
                quantize(weights, precision)

    def test_bad_types(self) -> None:
        for weights in (np.ones(3, bool), np.ones(3, complex), ["a"], torch.ones(3, dtype=torch.bool)):
            with pytest.raises(TypeError):
                quantize(weights)
        for weights in (3, torch.tensor(3), np.ones((2, 0))):
            with pytest.raises(ConfigError):
                quantize(weights)


class TestLogits:
    def test_tables_of_powers(self) -> None:
        getcontext().prec = 50
        coarse, fine = _core.exp2_tables()
        for table, root in ((coarse, 256), (fine, 65536)):
            exact = [Decimal(2) ** (31 - Decimal(j) / root) for j in range(256)]
            assert all(abs(int(value) - wanted) <= Decimal("0.5") for value, wanted in zip(table, exact, strict=True))

    @given(st.lists(st.integers(-(2**31), 2**31 - 1), min_size=1, max_size=50), precisions)
    def test_integers(self, logits: list[int], precision: int) -> None:
        coarse, fine = (table.tolist() for table in _core.exp2_tables())
        expected = reference.quantize_logits(logits, precision, coarse, fine)
        assert quantize_logits(logits, precision).tolist() == expected
        assert quantize_logits(torch.tensor(logits), precision).tolist() == expected

    @given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=50), st.sampled_from([np.float32, np.float64]))
    def test_floats(self, logits: list[float], dtype: type) -> None:
        array = np.array(logits, dtype)
        table = quantize_logits(array)
        assert quantize_logits(torch.tensor(array)).tolist() == table.tolist()
        wanted = np.exp(array.astype(np.float64) - array.max())
        frequencies = np.diff(table.astype(np.int64)) / int(table[-1])
        assert np.abs(frequencies - wanted / wanted.sum()).max() < 1e-4 * len(logits)

    def test_impossible_symbols(self) -> None:
        table = quantize_logits([0.0, -np.inf, 0.0])
        assert table[2] - table[1] == 1
        assert quantize_logits(torch.tensor([0.0, -torch.inf, 0.0])).tolist() == table.tolist()

    @pytest.mark.parametrize("logits", [[0.0, np.nan], [0.0, np.inf], [-np.inf, -np.inf]])
    def test_bad_logits(self, logits: list[float]) -> None:
        for given_logits in (np.array(logits), torch.tensor(logits)):
            with pytest.raises(DataError, match="logits"):
                quantize_logits(given_logits)

    def test_integers_out_of_range(self) -> None:
        for logits in ([0, 1 << 40], [-(2**63), 2**63 - 1]):
            for given_logits in (np.array(logits), torch.tensor(logits)):
                with pytest.raises(DataError, match="32 bits"):
                    quantize_logits(given_logits)

    def test_types(self) -> None:
        for logits in (np.ones(3, bool), torch.ones(3, dtype=torch.bool), np.ones(3, complex)):
            with pytest.raises(TypeError):
                quantize_logits(logits)
        for scalar in (3, 0.5, torch.tensor(3)):
            with pytest.raises(ConfigError):
                quantize_logits(scalar)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA card")
def test_equal_on_the_gpu() -> None:
    random = np.random.default_rng(0)
    for shape in ((50, 256), (3, 50_257), (2, 65_536)):
        for weights in (
            random.integers(0, 1 << 40, shape),
            random.integers(0, 3, shape),
            np.exp(4 * random.standard_normal(shape)).astype(np.float32),
            random.random(shape) * 1e-310,
        ):
            assert (quantize(torch.tensor(weights).cuda()).cpu().numpy() == quantize(weights)).all()
        logits = random.standard_normal(shape) * 5
        assert (quantize_logits(torch.tensor(logits).cuda()).cpu().numpy() == quantize_logits(logits)).all()
        fixed = random.integers(-(1 << 31), 1 << 31, shape)
        assert (quantize_logits(torch.tensor(fixed).cuda()).cpu().numpy() == quantize_logits(fixed)).all()
