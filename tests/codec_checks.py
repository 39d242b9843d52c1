"""What every codec must do, for the tests of each."""

from __future__ import annotations

import itertools

import numpy as np

from fastcompress.codec import Codec


def check_round_trip(codec: Codec, data: bytes) -> None:
    """Ids decode to what was encoded, and what a prefix of them says is what the byte lengths say it does."""
    ids = codec.encode(data)
    assert ids.dtype == np.uint32
    assert (ids < codec.vocab_size).all()
    assert codec.decode(ids) == data
    lengths = codec.byte_lengths(ids)
    assert lengths.dtype == np.int64
    assert lengths.sum() == len(data)
    for count, known in zip(range(len(ids) + 1), itertools.accumulate(lengths.tolist(), initial=0), strict=True):
        assert codec.decode(ids[:count]) == data[:known]


def check_stable(codec: Codec, data: bytes, more: bytes) -> None:
    """All ids but the unstable tail stay when bytes are appended."""
    if codec.unstable_tail is None:
        return
    before, after = codec.encode(data), codec.encode(data + more)
    stable = max(0, len(before) - codec.unstable_tail)
    assert before[:stable].tolist() == after[:stable].tolist()
