"""Rows: each event of a document is scored once, in order, and rows are told apart by what decides them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastcompress.codec import ByteCodec, CharCodec
from fastcompress.data import TokenDataset, TokenRows
from fastcompress.data.rows import num_symbols
from fastcompress.errors import ConfigError, DataError

CODEC = ByteCodec()


@given(st.binary(max_size=40), st.integers(1, 9), st.data())
def test_every_event_has_weight_once(document: bytes, context_length: int, data: st.DataObject) -> None:
    stride = data.draw(st.integers(1, context_length))
    rows = TokenRows(CODEC, context_length)
    sequence = [256, *document, 256]
    scored: list[int] = []
    for number, row in enumerate(rows.scoring_rows(document, stride)):
        begin, length = number * stride, len(row["weight"])
        assert 1 <= length <= context_length
        assert row["input"].tolist() == sequence[begin : begin + length]
        assert row["target"].tolist() == sequence[begin + 1 : begin + 1 + length]
        weight = row["weight"]
        assert (np.diff(weight) >= 0).all()  # what is seen again stands before what is scored
        scored += row["target"][weight > 0].tolist()
    assert scored == sequence[1:]


@given(st.lists(st.binary(min_size=1, max_size=9), min_size=1, max_size=4), st.integers(1, 9))
def test_stacked_rows_are_padded_with_weight_zero(documents: list[bytes], context_length: int) -> None:
    rows = TokenRows(CODEC, context_length)
    parts = [row for document in documents for row in rows.scoring_rows(document, context_length)]
    batch = rows.stack(parts)
    assert set(batch) == set(rows.columns)
    for index, row in enumerate(parts):
        for name, column in row.items():
            assert batch[name][index, : len(column)].tolist() == column.tolist()
            assert batch[name].dtype == column.dtype == rows.columns[name][0]
        assert not batch["weight"][index, len(row["weight"]) :].any()


def test_training_rows_wrap_around() -> None:
    dataset = TokenDataset.from_documents([b"abcd", b"ef"], CODEC)
    row = TokenRows(CODEC, 5).training_row(dataset, 6)
    assert row["input"].tolist() == [ord("f"), 256, *b"abc"]
    assert row["target"].tolist() == [256, *b"abcd"]
    assert row["weight"].tolist() == [1.0] * 5


def test_fingerprints_tell_rows_apart() -> None:
    fingerprints = {TokenRows(codec, n).fingerprint for codec in (CODEC, CharCodec(["a"])) for n in (8, 9)}
    assert len(fingerprints) == 4
    assert all(len(fingerprint) == 64 for fingerprint in fingerprints)
    assert (
        TokenRows(CODEC, 8).fingerprint == "51d910417ef56068e1b8f99f0453fe2a3c5063bd7b89ba3f63ab9843504a83b8"
    )  # kept with every run
    assert num_symbols(CODEC) == TokenRows(CODEC, 8).num_symbols == 257


def test_what_cannot_be_rows_is_refused() -> None:
    with pytest.raises(ConfigError, match="context_length is 0"):
        TokenRows(CODEC, 0)
    with pytest.raises(DataError, match="'b'"):
        list(TokenRows(CharCodec(["a"]), 4).scoring_rows(b"ab", 4))
