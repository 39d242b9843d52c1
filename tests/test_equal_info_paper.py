"""The published windows against their definition, and that they lose text where that says so."""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastcompress.equal_info import CountModel, paper
from fastcompress.equal_info.paper import Frequencies, PaperWindows, frequencies, shortest_inside
from fastcompress.errors import ConfigError, DataError


def always(*row: int) -> Frequencies:
    return lambda context: row


@given(st.integers(1, 12), st.data())
def test_shortest_inside_is_the_definition(scale: int, data: st.DataObject) -> None:
    low = data.draw(st.integers(0, (1 << scale) - 1))
    width = data.draw(st.integers(1, (1 << scale) - low))
    begin, end = Fraction(low, 1 << scale), Fraction(low + width, 1 << scale)
    inside = [
        (n, m)
        for n in range(scale + 1)
        for m in range(1 << n)
        if begin <= Fraction(m, 1 << n) and Fraction(m + 1, 1 << n) <= end
    ]
    assert shortest_inside(low, width, scale) == min(inside)


def test_the_smallest_text_that_is_lost() -> None:
    """The window of `a` is two zero bits, filled up with zeros: the code of fifteen times `a`, too."""
    windows = PaperWindows(always(32767, 32768, 1), 16, precision=16, num_symbols=3)
    text = bytes([0, 2, 1, 1])  # a c b b
    coded = windows.encode(text)
    assert coded[0] == (0x0000, 1)
    assert windows.decode_window(0x0000) == bytes(15)
    report = windows.report(text)
    assert report.num_wrong >= 1
    assert report.num_windows == len(coded)
    assert windows.decode([code for code, _ in coded]) != text


def plain_encode(row: Sequence[int], precision: int, bits: int, text: bytes) -> list[tuple[int, int]]:
    """The definition, in fractions."""
    windows, position = [], 0
    while position < len(text):
        low, width, best = Fraction(0), Fraction(1), None
        for end in range(position, len(text)):
            low += width * Fraction(sum(row[: text[end]]), 1 << precision)
            width *= Fraction(row[text[end]], 1 << precision)
            n = 0
            while True:
                m = -(-low * (1 << n) // 1)
                if Fraction(int(m) + 1, 1 << n) <= low + width:
                    break
                n += 1
            if n > bits:
                break
            best = (int(m) << (bits - n), end + 1 - position)
        assert best is not None
        windows.append(best)
        position += best[1]
    return windows


@pytest.mark.parametrize("row", [(1, 255), (100, 100, 56), (7, 1, 240, 8), (128, 64, 32, 16, 16)])
@given(data=st.data())
def test_windows_are_those_of_the_definition(row: tuple[int, ...], data: st.DataObject) -> None:
    text = bytes(data.draw(st.lists(st.integers(0, len(row) - 1), max_size=60)))
    windows = PaperWindows(always(*row), 9, precision=8, num_symbols=len(row))
    assert windows.encode(text) == plain_encode(row, 8, 9, text)


@pytest.mark.parametrize("row", [(50000, 15000, 536), tuple([65536 // 64] * 64)])
def test_wrong_windows_are_counted(row: tuple[int, ...]) -> None:
    rng = random.Random(1)
    text = bytes(rng.choices(range(len(row)), row, k=5000))
    windows = PaperWindows(always(*row), 16, precision=16, num_symbols=len(row))
    report = windows.report(text)
    position = wrong = 0
    for code, length in windows.encode(text):
        wrong += windows.decode_window(code) != text[position : position + length]
        position += length
    assert position == len(text) == report.num_symbols
    assert report.num_wrong == wrong
    if len(row) == 64:  # every string of two symbols has 12 bits of its own: zeros behind them may be a third
        assert windows.encode(bytes([5, 0, 9]))[0][1] == 2
        assert windows.decode_window(windows.encode(bytes([5, 1]))[0][0]) == bytes([5, 1])
    else:
        assert 0 < wrong < report.num_windows


def test_a_model_of_bytes() -> None:
    text = b"It was the best of times, it was the worst of times, it was the age of wisdom. " * 4
    windows = PaperWindows(frequencies(CountModel(text, 2), 14), 16, precision=14)
    coded = windows.encode(text)
    assert sum(length for _, length in coded) == len(text)
    assert len(coded) < len(text) / 3
    again = PaperWindows(frequencies(CountModel(text, 2), 14), 16, precision=14)
    assert again.encode(text[:100]) == windows.encode(text[:100])
    decoded = windows.decode([code for code, _ in coded])
    assert (decoded == text) == (windows.report(text).num_wrong == 0)


def test_frequencies_sum_up() -> None:
    row = frequencies(CountModel(b"aaab", 1), 12)(b"a")
    assert sum(row) == 4096
    assert min(row) >= 1
    assert int(np.argmax(row)) == ord("a")
    for bad in (np.zeros((1, 256)), np.full((1, 256), np.inf), np.ones((1, 3))):
        with pytest.raises(DataError, match="weights"):
            frequencies(lambda contexts, answer=bad: answer)(b"")
    with pytest.raises(ConfigError):
        frequencies(CountModel(b"", 0), 8)


def test_what_is_wrong_is_said() -> None:
    windows = PaperWindows(always(1, 65535), 8, precision=16, num_symbols=2, max_symbols=20)
    with pytest.raises(DataError, match="more than a window"):
        windows.encode(b"\0")
    assert windows.encode(b"\1" * 50) == [(windows.encode(b"\1" * 20)[0][0], 20)] * 2 + windows.encode(b"\1" * 10)
    with pytest.raises(DataError, match="not below"):
        windows.encode(b"\2")
    with pytest.raises(DataError, match="is not a window"):
        windows.decode_window(256)
    with pytest.raises(DataError, match="frequencies"):
        PaperWindows(always(1, 1), precision=16, num_symbols=2).encode(b"\0")
    for bad in ({"bits": 0}, {"precision": 25}, {"num_symbols": 257}, {"max_symbols": 0}):
        with pytest.raises(ConfigError):
            PaperWindows(always(1), **bad)


@pytest.mark.slow
def test_threads_may_share_windows() -> None:
    """A model that lets other threads run: none of them may see a table that is only partly filled."""
    text = random.Random(2).randbytes(40)
    expected = PaperWindows(always(*[256] * 256), 16, precision=16).encode(text)

    def slow(context: bytes) -> Sequence[int]:
        class Row(list[int]):
            def __iter__(self) -> Iterator[int]:
                for frequency in list.__iter__(self):
                    time.sleep(0)
                    yield frequency

        return Row([256] * 256)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(3):
            windows = PaperWindows(slow, 16, precision=16)
            with ThreadPoolExecutor(8) as pool:
                assert all(coded == expected for coded in pool.map(windows.encode, [text] * 8))
    finally:
        sys.setswitchinterval(before)


def test_what_is_remembered_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paper, "_MAX_STATES", 50)
    rng = random.Random(3)
    text = bytes(rng.choices(range(3), (100, 100, 56), k=2000))
    windows = PaperWindows(always(100, 100, 56), 24, precision=8, num_symbols=3)
    for code, _ in windows.encode(text):
        windows.decode_window(code)
        assert len(windows._decoded) <= 51
    assert windows.encode(text) == plain_encode((100, 100, 56), 8, 24, text)
