"""The codecs of LZ77 parses and deflate: which ids they give, and what they refuse (test_codec_contract.py has what all
codecs share)."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastcompress import lz77
from fastcompress.codec import (
    CODECS_BY_NAME,
    Codec,
    GzipCodec,
    LZ77Codec,
    LZPCodec,
    codec_from_spec,
)
from fastcompress.errors import ConfigError, DataError
from fastcompress.lz77 import Params
from tests.reference import lz77 as oracle

VECTORS = Path(__file__).parent / "vectors" / "lz77-ids.json"
CODECS: list[Codec] = [
    LZ77Codec(),
    LZ77Codec(Params(window=20, min_length=1, max_length=3, depth=2)),
    LZ77Codec(alphabet="buckets"),
    LZ77Codec(Params(window=None, min_length=2, max_length=None, depth=None, parse="lazy"), "buckets"),
    LZ77Codec(Params(window=5, min_length=3, max_length=3), "buckets"),
    LZPCodec(),
    LZPCodec(order=1, min_length=1, max_length=4),
    LZPCodec(order=2, min_length=3),
    GzipCodec(),
    GzipCodec(1),
]
texts = st.one_of(
    st.binary(max_size=80),
    st.lists(st.sampled_from([b"abc", b"abcd", b"b", b"a" * 40, b"xyz"]), max_size=30).map(b"".join),
)
each_codec = pytest.mark.parametrize("codec", CODECS, ids=lambda codec: f"{codec.name}-{codec.fingerprint[:4]}")


def defined_ids(codec: Codec, data: bytes) -> list[int] | None:
    """What FORMAT.md says; None for a codec that it does not define."""
    if isinstance(codec, LZPCodec):
        return oracle.lzp(data, codec.order, codec.min_length, codec.max_length)
    if not isinstance(codec, LZ77Codec):
        return None
    p = codec.params
    settings = oracle.Settings(p.window, p.min_length, p.max_length, p.depth, p.parse == "lazy")
    tokens = oracle.parse(data, settings)
    if codec.alphabet == "buckets":
        return oracle.buckets(tokens, settings)
    assert p.max_length is not None
    num_lengths = p.max_length - p.min_length + 1
    return [v if kind == 0 else 256 + (v - 1) * num_lengths + n - p.min_length for kind, v, n in tokens]


@each_codec
@given(data=texts)
def test_ids_are_the_defined_ones(codec: Codec, data: bytes) -> None:
    expected = defined_ids(codec, data)
    assert expected is None or codec.encode(data).tolist() == expected


def test_golden_ids() -> None:
    """Version 1 of the alphabets, frozen: these never change."""
    codecs = {codec.fingerprint: codec for codec in CODECS}
    for vector in json.loads(VECTORS.read_text()):
        codec = codecs[vector["fingerprint"]]
        assert codec.encode(bytes.fromhex(vector["data"])).tolist() == vector["ids"]


@pytest.mark.parametrize("name", CODECS_BY_NAME)
def test_codecs_by_name(name: str) -> None:
    codec = codec_from_spec(name)
    assert codec.decode(codec.encode(b"as by name, as by name")) == b"as by name, as by name"


def test_fields_are_the_columns() -> None:
    codec = LZ77Codec()
    data = b"one two one two one three"
    ids = codec.encode(data)
    tokens = codec.columns(ids)
    assert tokens == lz77.parse(data)
    assert ids.max() < 256 + 65536 * 255
    assert LZ77Codec(alphabet="buckets").columns(LZ77Codec(alphabet="buckets").encode(data)) == tokens


def test_buckets_by_hand() -> None:
    """FORMAT.md's example in small: 256 bytes, lengths 4 to 258 in 8 buckets, 4 recent, 17 buckets of distances, 16
    extras."""
    codec = LZ77Codec(alphabet="buckets")
    assert codec.vocab_size == 256 + 8 + 4 + 17 + 16
    lengths, recent, distances, extras = 256, 264, 268, 285
    text = b"abcdefabcdefabcd"  # a match of 10: 7 is in bucket 2, extra bits 11; at distance 6: bucket 2, extra bits 10
    assert codec.encode(text).tolist() == [*b"abcdef", lengths + 2, extras + 3, distances + 2, extras + 2]
    text += b"!" + b"bcdefa"  # distance 6 again would be the byte before: it is "bcdefa" 11 + 5 back
    assert codec.decode(codec.encode(text)) == text
    again = codec.encode(b"abcdefabcdef!abcdef?")
    assert recent + 0 not in again[:9]
    assert codec.decode(again) == b"abcdefabcdef!abcdef?"


@pytest.mark.parametrize(
    ("codec", "ids", "message"),
    [
        (LZ77Codec(), [97, 256 + 255], "distance 2 after 1 bytes"),
        (LZ77Codec(alphabet="buckets"), [264], "stands where a byte or a length belongs"),
        (LZ77Codec(alphabet="buckets"), [97, 256, 97], "stands where a distance belongs"),
        (LZ77Codec(alphabet="buckets"), [97, 257, 97], "stands where extra bits belong"),
        (LZPCodec(), [97, 256], "nothing is predicted"),
        (GzipCodec(), [255, 255, 255], "does not continue a deflate stream"),
        (GzipCodec(), [3, 0, 3], "token 2 comes after the end of the deflate stream"),
    ],
)
def test_what_is_wrong_is_said(codec: Codec, ids: list[int], message: str) -> None:
    with pytest.raises(DataError, match=message):
        codec.decode(np.array(ids))


def test_settings_out_of_range() -> None:
    for window, max_length in ((None, 258), (65536, None), (2**31, 258)):
        with pytest.raises(ConfigError, match="buckets"):
            LZ77Codec(Params(window=window, max_length=max_length))
    with pytest.raises(ConfigError, match="alphabet"):
        LZ77Codec(alphabet="words")  # type: ignore[arg-type]
    for bad in (
        {"order": 0},
        {"order": 65},
        {"min_length": 0},
        {"max_length": 1},
        {"max_length": 2**31},
        {"order": -1},
    ):
        with pytest.raises(ConfigError):
            LZPCodec(**bad)
    with pytest.raises(ConfigError):
        GzipCodec(0)


def test_unstable_tails() -> None:
    """In a greedy parse one match or literals, in a lazy one a literal before it too; a match is at most 8 buckets."""
    for params, fields, buckets in (
        (Params(), 3, 8),
        (Params(min_length=1), 1, 8),
        (Params(min_length=20), 19, 19),
        (Params(min_length=1, parse="lazy"), 2, 16),
    ):
        assert LZ77Codec(params).max_unstable_tokens == fields
        assert LZ77Codec(params, "buckets").max_unstable_tokens == buckets
