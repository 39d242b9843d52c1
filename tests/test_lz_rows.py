"""Rows of LZ77 tokens by definition: each column is what a plain loop over the stream and `LZFields.legal` find."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastcompress import lz77
from fastcompress.codec import LZ77Codec
from fastcompress.data import TokenDataset, rows
from fastcompress.data.lz_buckets import Integers
from fastcompress.data.lz_fields import Choices, LZFields
from fastcompress.data.lz_rows import TARGET_LEGAL, LZRows, token_patch_ends
from fastcompress.data.patches import PATCH_END, ends_of_cuts

documents = st.lists(
    st.one_of(
        st.text("ab", max_size=60).map(str.encode),
        st.lists(st.sampled_from([b"the ", b"they", b" ", b"abcabc"]), max_size=40).map(b"".join),
        st.binary(max_size=90),
    ),
    min_size=1,
    max_size=6,
)
params = st.builds(
    lz77.Params,
    window=st.sampled_from([1, 2, 9, 40, 300, 5000]),
    min_length=st.integers(1, 4),
    max_length=st.sampled_from([4, 5, 14, 258]),
)


def packed(fields: LZFields, symbols: Integers, choices: Choices) -> npt.NDArray[np.uint8]:
    """The legal symbols of all fields, one after the other, as bits."""
    masks = [fields.legal(symbols, field, choices) for field in range(fields.num_fields)]
    return np.packbits(np.concatenate(masks, axis=1), axis=1, bitorder="little")


def room_after(ids: list[int], codec: LZ77Codec, place: int) -> int:
    """The bytes of a document up to and including the token at a place of the stream, which is a circle."""
    assert codec.params.max_length is not None
    num_lengths, room = codec.params.max_length - codec.params.min_length + 1, 0
    while place >= 0 and (token := ids[place % len(ids)]) != codec.vocab_size:
        room += 1 if token < 256 else (token - 256) % num_lengths + codec.params.min_length
        place -= 1
    return room


@settings(max_examples=60, deadline=None)
@given(documents, params, st.integers(1, 9), st.sampled_from(["fixed", "match"]), st.integers(0, 1 << 30))
def test_training_rows_by_definition(
    texts: list[bytes], parse: lz77.Params, look_back: int, grouping: str, seed: int
) -> None:
    """From any token on: within documents, at their ends, and where the stream begins again."""
    codec = LZ77Codec(parse)
    data = TokenDataset.from_documents(texts, codec)
    ids = data.read(0, data.num_tokens).tolist()
    lz_rows = LZRows(codec, max(1, min(12, len(ids) - 1)), grouping, 2, 5)
    fields = lz_rows.fields
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows, "_LOOK_BACK", look_back)  # so that documents are read back in several parts
        for begin in np.random.default_rng(seed).integers(0, len(ids), 8).tolist():
            row = lz_rows.training_row(data, begin)
            assert {name: (column.dtype, column.shape) for name, column in row.items()} == lz_rows.columns
            places = range(begin, begin + lz_rows.context_length + 1)
            sequence = np.array([ids[place % len(ids)] for place in places])
            is_end = sequence == codec.vocab_size
            symbols = fields.symbols(codec.columns(np.where(is_end, 0, sequence)), is_end)
            np.testing.assert_array_equal(row["input"], symbols[:-1])
            np.testing.assert_array_equal(row["target"], symbols[1:])
            rooms = np.array([room_after(ids, codec, place) for place in places[:-1]])
            np.testing.assert_array_equal(row[TARGET_LEGAL], packed(fields, symbols[1:], fields.any_match(rooms)))
            np.testing.assert_array_equal(row[PATCH_END], lz_rows.patch_ends(symbols[:-1, 0]))


@pytest.mark.parametrize("window", [1, 3, 8, 9, 40, 300, 5000, 65536, 1 << 20])
@pytest.mark.parametrize(("min_length", "max_length"), [(1, 1), (2, 9), (4, 258), (3, 5000)])
def test_masks_from_tables_are_those_of_single_fields(window: int, min_length: int, max_length: int) -> None:
    """For any symbols, also of tokens that no field allows, and any bytes before."""
    fields, random = LZFields(window, min_length, max_length), np.random.default_rng(window)
    kind = random.integers(0, 3, 400)
    symbols = np.stack([kind, *(random.integers(0, size, 400) for size in fields.sizes[1:])], axis=1)
    bucket = random.integers(0, fields.distances.sizes[0], 400)
    symbols[:, 1] = np.where(kind == lz77.MATCH, 256 + bucket, symbols[:, 1] % 256)
    near = fields.distances.numbers(np.concatenate((bucket[:, None], symbols[:, 2 : fields.length_field]), axis=1))
    near = near[:200] + random.integers(-2, 3, 200)  # about where a symbol ceases to be legal
    rooms = np.maximum(np.concatenate((near, random.integers(0, 2 * window, 150), np.arange(50))), 0)
    legal = fields.packed_decodable(symbols, rooms)
    expected = packed(fields, symbols, fields.any_match(rooms))
    np.testing.assert_array_equal(legal, expected)
    np.testing.assert_array_equal(fields.packed_legal(symbols, fields.any_match(rooms)), expected)
    assert len(np.unique(expected, axis=0)) > 2


def test_the_ids_before_a_token_are_read_in_growing_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "_LOOK_BACK", 2)
    codec = LZ77Codec(lz77.Params(window=2, min_length=2, max_length=4))
    data = TokenDataset.from_documents([bytes(range(length)) for length in (0, 1, 30, 2, 0, 7)], codec)
    ids = data.read(0, data.num_tokens)
    for begin in range(len(ids)):
        parts = list(rows.document_before(data, begin, codec.vocab_size))
        whole = np.concatenate([ids[:0], *parts[::-1]])
        first = max([0, *(np.flatnonzero(ids[:begin] == codec.vocab_size) + 1)])
        np.testing.assert_array_equal(whole, ids[first:begin])
        assert [len(part) for part in parts[:-1]] == [2, 4, 8, 16][: max(0, len(parts) - 1)]


@pytest.mark.parametrize(("window", "min_length", "max_length"), [(1, 1, 1), (40, 3, 14), ((1 << 24) - 1, 1, 255)])
def test_ids_are_distances_and_lengths(window: int, min_length: int, max_length: int) -> None:
    codec = LZ77Codec(lz77.Params(window=window, min_length=min_length, max_length=max_length))
    last, num_lengths = codec.vocab_size - 1, max_length - min_length + 1
    ids = sorted({0, 255, 256, min(255 + num_lengths, last), min(256 + num_lengths, last), last})
    pairs = [divmod(token - 256, num_lengths) for token in ids]
    expected = [
        (0, token, 1) if token < 256 else (1, distance + 1, length + min_length)
        for token, (distance, length) in zip(ids, pairs, strict=True)
    ]
    assert list(codec.columns(ids)) == expected
    assert codec.byte_lengths(ids).tolist() == [length for _, _, length in expected]
    assert codec.byte_lengths(ids).dtype == np.int64


@given(st.lists(st.integers(0, 2), max_size=40), st.integers(1, 6), st.integers(0, 5))
def test_fixed_patches_are_those_that_could_end_anywhere(kinds: list[int], smallest: int, more: int) -> None:
    expected = ends_of_cuts(np.arange(1, len(kinds) + 1), smallest, smallest + more)
    ends = token_patch_ends(np.array(kinds, np.int64), "fixed", smallest, smallest + more)
    np.testing.assert_array_equal(ends, expected)
