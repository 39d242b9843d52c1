"""Equal-info windows as codecs: whole, in halves, and as published."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastcompress.codec import Codec, EqualInfoCodec, PaperEqualInfoCodec, codec_from_spec, save_codec
from fastcompress.equal_info import Codebook, CountModel
from fastcompress.equal_info.paper import PaperWindows, frequencies
from fastcompress.errors import ConfigError, DataError

SAMPLE = b"It was the best of times, it was the worst of times, it was the age of wisdom; 12 \xc3\xa9\xff\n" * 9
SMALL = Codebook.train(SAMPLE, bits=10, num_rounds=2)
LARGE = Codebook.train(SAMPLE, bits=16, num_rounds=2)
CUT = Codebook.train(SAMPLE, bits=10, pattern="cl100k", num_rounds=2)
CODECS = [EqualInfoCodec(SMALL), EqualInfoCodec(LARGE), EqualInfoCodec(LARGE, token_bits=8), EqualInfoCodec(CUT)]
each_codec = pytest.mark.parametrize("codec", CODECS, ids=lambda codec: f"{codec.name}-{codec.fingerprint[:4]}")


@each_codec
@given(ids=st.lists(st.integers(0, 65535), max_size=20))
def test_ids_from_nowhere_decode_or_are_refused(codec: Codec, ids: list[int]) -> None:
    given_ids = np.array(ids, np.int64) % codec.vocab_size
    try:
        data = codec.decode(given_ids)
    except DataError:
        assert codec.vocab_size == 256
        assert [255, 255] in given_ids[: len(ids) // 2 * 2].reshape(-1, 2).tolist()
        return
    assert codec.byte_lengths(given_ids).sum() == len(data)


def test_sizes_and_names() -> None:
    assert [(codec.name, codec.vocab_size, codec.max_unstable_tokens) for codec in CODECS] == [
        ("equal-info-10", 1023, 1),
        ("equal-info-16", 65535, 1),
        ("equal-info-16-by-8", 256, 2),
        ("equal-info-10", 1023, None),
    ]
    assert len({codec.fingerprint for codec in CODECS}) == 4
    assert all(codec.lossless and not codec.unambiguous for codec in CODECS)


def test_an_upper_half_says_what_all_its_ids_have_in_common() -> None:
    codec = EqualInfoCodec(LARGE, token_bits=8)
    for upper in range(256):
        group = LARGE.strings[upper << 8 : (upper + 1) << 8]
        prefix = codec.decode(np.array([upper]))
        assert all(string.startswith(prefix) for string in group)
        assert len({string[len(prefix) : len(prefix) + 1] for string in group}) > 1  # and no more
    with pytest.raises(DataError, match="0xFFFF"):
        codec.decode(np.array([1, 2, 255, 255]))


def test_a_codebook_is_a_codec_by_its_path(tmp_path: Path) -> None:
    SMALL.save(tmp_path / "some.book")
    assert codec_from_spec(str(tmp_path / "some.book")).fingerprint == CODECS[0].fingerprint


def test_settings_that_do_not_fit() -> None:
    for codebook, token_bits in ((SMALL, 8), (SMALL, 16), (LARGE, 4)):
        with pytest.raises(ConfigError, match="token_bits"):
            EqualInfoCodec(codebook, token_bits)


MODEL = CountModel(SAMPLE, 2)


def paper_codec(token_bits: int = 16, bits: int = 16, keeps_wrong: bool = False) -> PaperEqualInfoCodec:
    windows = PaperWindows(frequencies(MODEL, 14), bits, precision=14)
    return PaperEqualInfoCodec(windows, "count model of the sample", token_bits, keeps_wrong=keeps_wrong)


@pytest.mark.parametrize("token_bits", [8, 16])
def test_published_windows_come_back_or_say_that_they_do_not(token_bits: int) -> None:
    strict, lax = paper_codec(token_bits), paper_codec(token_bits, keeps_wrong=True)
    assert isinstance(strict, Codec)
    assert not strict.lossless
    num_refused = 0
    for size in range(120):
        text = SAMPLE[size : 2 * size] + b"\n" * (size % 3)
        ids = lax.encode(text)
        decoded = lax.decode(ids)
        assert lax.byte_lengths(ids).sum() == len(decoded)
        if decoded == text:
            assert strict.encode(text).tolist() == ids.tolist()
        else:
            num_refused += 1
            with pytest.raises(DataError, match="decode to other text"):
                strict.encode(text)
    assert num_refused > 0
    assert strict.vocab_size == 1 << token_bits


def test_published_settings_that_do_not_fit() -> None:
    for bits, token_bits in ((16, 4), (12, 8), (24, 8), (17, 17)):
        with pytest.raises(ConfigError, match="token_bits"):
            paper_codec(token_bits, bits)
    three = PaperWindows(lambda context: (1, 1, 2), precision=2, num_symbols=3)
    with pytest.raises(ConfigError, match="symbols"):
        PaperEqualInfoCodec(three, "three")
    with pytest.raises(ConfigError, match="registered"):
        save_codec(paper_codec(), "nowhere.json")
