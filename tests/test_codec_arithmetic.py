"""Windows of 24 to 128 bits and whole documents as codecs: what is theirs alone."""

from __future__ import annotations

import functools

import numpy as np
import pytest

from fastcompress.arithmetic import ContextMixer
from fastcompress.codec import ArithmeticCodec, WindowsCodec
from fastcompress.errors import ConfigError, DataError, FormatError
from tests.random_text import CODE_POINTS, random_strings


@functools.cache
def mixer(window: int | None = None) -> ContextMixer:
    text = "".join(random_strings(CODE_POINTS, 300, seed=0)).encode() + b"the cat sat on the mat. " * 300
    return ContextMixer.train(text, log2_table_bytes=16, reset_interval=window).freeze()


CODECS = [
    *(lambda w=w, t=t: WindowsCodec(mixer(16), w, t) for w, t in ((24, 8), (32, 16), (64, 16), (104, 8), (128, 16))),
    *(lambda t=t: ArithmeticCodec(mixer(), t) for t in (8, 16)),
]
every_codec = pytest.mark.parametrize("make", CODECS, ids=lambda make: make().name)

SPECIAL = {
    "empty": b"",
    "one byte": b"\xff",
    "equal bytes": bytes(1 << 16),
    "all bytes": bytes(range(256)),
    "pairs": bytes(b for pair in ((i, j) for i in range(0, 256, 5) for j in range(256)) for b in pair),
    "text": b"the cat sat on the mat. the dog did not. " * 20,
}


class TestRoundTrips:
    @every_codec
    @pytest.mark.parametrize("name", SPECIAL)
    def test_special_ones(self, make, name: str) -> None:
        codec, data = make(), SPECIAL[name]
        tokens = codec.encode(data)
        assert codec.decode(tokens) == data
        assert codec.byte_lengths(tokens).sum() == len(data)
        assert tokens.size == 0 or tokens.max() < codec.vocab_size

    @pytest.mark.slow
    @every_codec
    def test_a_million_equal_bytes_and_all_pairs(self, make) -> None:
        codec = make()
        pairs = np.stack(np.meshgrid(np.arange(256), np.arange(256)), -1).astype(np.uint8).tobytes()
        for data in (b"a" * (1 << 20), pairs):
            assert codec.decode(codec.encode(data)) == data

    def test_bytes_are_known_when_nothing_could_change_them(self) -> None:
        """After each token of a document or window: whatever follows, those bytes come first."""
        codec = WindowsCodec(mixer(16), 128, 8)
        data = b"the cat sat on a hat, the dog did not. the cat sat on the mat."
        tokens = codec.encode(data)[:16]
        known = np.cumsum(codec.byte_lengths(tokens))
        assert 0 < known[5] < known[-1]
        num_decoded = 0
        for position in range(16):
            for seed in range(40):
                rest = np.random.default_rng(seed).integers(0, 256, 15 - position)
                try:
                    decoded = codec.decode(np.concatenate((tokens[: position + 1], rest)))
                except DataError:
                    continue
                num_decoded += 1
                assert decoded[: known[position]] == data[: known[position]]
        assert num_decoded > 100

    def test_documents_end_where_they_end(self) -> None:
        codec = ArithmeticCodec(mixer(), 8)
        tokens = codec.encode(SPECIAL["text"])
        for rest in ([7] * 40, [0], [255]):
            with pytest.raises(DataError, match="are not what the document"):
                codec.decode(np.append(tokens, rest))
        for damaged in (tokens[:-1], tokens[1:]):
            with pytest.raises(DataError):
                codec.decode(damaged)


class TestWindows:
    def test_windows_hold_what_they_can(self) -> None:
        """More bits, more bytes a bit; and what was learned for windows serves windows."""
        data = SPECIAL["text"]
        sizes = [WindowsCodec(mixer(16), bits, 8).encode(data).size for bits in (24, 32, 64, 128)]
        assert sizes == sorted(sizes, reverse=True)
        assert sizes[-1] < len(data) * 0.6

    def test_bad_tokens(self) -> None:
        codec = WindowsCodec(mixer(16), 32, 16)
        tokens = codec.encode(b"some text of several windows")
        with pytest.raises(DataError, match="is cut off"):
            codec.decode(tokens[:-1])
        with pytest.raises(DataError, match="outside"):
            codec.decode([1 << 16, 0])

    def test_the_bound_is_kept_from_window_to_window(self) -> None:
        """A bound that a window ends at stops there, too: the work is bounded, not only what is returned."""
        codec = WindowsCodec(mixer(16), 32, 8)
        data = SPECIAL["text"]
        code = codec.encode(data).astype(np.uint8).tobytes()
        for bound in range(len(data)):
            with pytest.raises(FormatError, match=f"more than {bound} bytes"):
                codec._core.decode(code, bound)
        assert codec._core.decode(code, len(data))[0] == data

    def test_settings(self) -> None:
        for bits, token_bits in ((16, 8), (136, 8), (24, 16), (30, 8), (32, 12)):
            with pytest.raises(ConfigError):
                WindowsCodec(mixer(16), bits, token_bits)
        with pytest.raises(ConfigError, match="token_bits"):
            ArithmeticCodec(mixer(), 12)
        adaptive = ContextMixer(log2_table_bytes=12)
        for make in (WindowsCodec, ArithmeticCodec):
            with pytest.raises(ConfigError, match="still learns"):
                make(adaptive)


def test_the_mixer_is_part_of_the_fingerprint() -> None:
    assert WindowsCodec(mixer(), 64).fingerprint != WindowsCodec(mixer(16), 64).fingerprint
    assert ArithmeticCodec(mixer()).fingerprint != ArithmeticCodec(mixer(16)).fingerprint
