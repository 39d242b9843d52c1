"""Thresholds of entropy patchers, chosen for the size of patches that a model is to have."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from fastcompress._arguments import as_number
from fastcompress.codec import ByteCodec, EntropyByteCodec
from fastcompress.data.patches import ENTROPY_PATCHERS, EntropyPatcher, check_patch_sizes, make_patcher, patch_ends
from fastcompress.equal_info.models import ENTROPY_BITS
from fastcompress.errors import ConfigError, DataError

_LOWEST = -8.0  # bits, below which no entropy and no rise of one is


def calibrate(
    codec: EntropyByteCodec,
    sample: Iterable[bytes],
    bytes_per_patch: float,
    *,
    patcher: str = "entropy",
    min_bytes: int = 4,
    max_bytes: int = 16,
) -> float:
    """Find the threshold of an entropy patcher with which patches have a wanted size.

    A higher threshold cuts in fewer places, and then no patch ends earlier. So the size rises with the threshold, and a
    binary search over the values that occur in the sample finds the nearest one.

    Args:
        codec: Has the entropies.
        sample: Documents like those that the model will read.
        bytes_per_patch: The wanted mean over the sample, ends of documents included.
        patcher: "entropy" or "entropy-monotone".
        min_bytes, max_bytes: Sizes of patches, as of the model.

    Returns:
        The threshold in bits, for the setting ``threshold`` of a byte-latent model.

    Raises:
        ConfigError: No threshold gives that size, or a size is none.
        TypeError: The sample is not a collection of bytes, or a size not a number.
        DataError: The sample is too short for a patch.

    Deterministic. Takes about 0.5 s per MB.
    """
    if patcher not in ENTROPY_PATCHERS:
        raise ConfigError(f"patcher is {patcher!r}; it must be {' or '.join(ENTROPY_PATCHERS)}")
    bytes_per_patch = as_number(bytes_per_patch, "bytes_per_patch")
    check_patch_sizes("bytes", min_bytes, max_bytes)
    documents = list(sample)
    if not all(isinstance(document, bytes) for document in documents):
        raise TypeError("sample must be a collection of documents, each of them bytes")
    lowest = make_patcher(patcher, codec, _LOWEST)
    assert isinstance(lowest, EntropyPatcher)
    end = ByteCodec().vocab_size
    ids = np.concatenate([[end], *([*document, end] for document in documents)]).astype(np.int64)
    values = np.unique(np.concatenate([lowest.values(document) for document in documents] or [np.zeros(0, np.int64)]))

    def size(threshold: float) -> float:
        num_patches = int((patch_ends(ids, replace(lowest, threshold=threshold), min_bytes, max_bytes) > 0).sum())
        if not num_patches:
            raise DataError(f"the sample has {len(ids)} bytes and ends of documents; give one with more than a patch")
        return len(ids) / num_patches

    thresholds: list[float] = [_LOWEST, *(values / (1 << ENTROPY_BITS)).tolist()]
    smallest, largest = size(thresholds[0]), size(thresholds[-1])
    if not smallest <= bytes_per_patch <= largest:
        raise ConfigError(
            f"bytes_per_patch is {bytes_per_patch}; with patches of {min_bytes} to {max_bytes} bytes it must be "
            f"{smallest:.3f} to {largest:.3f} on this sample"
        )
    low, high = 0, len(thresholds) - 1  # size(low) <= wanted <= size(high)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if size(thresholds[middle]) <= bytes_per_patch else (low, middle)
    nearest = min((low, high), key=lambda place: abs(size(thresholds[place]) - bytes_per_patch))
    return thresholds[nearest]
