"""Weighted mixtures of datasets: every sample of a run comes from one of them, in exact proportions.

The shares are fractions p / s of integers, as exact as the weights were written. With two datasets, sample g is from
the first one if floor(((g + 1) p + f) / s) > floor((g p + f) / s), where f in [0, s) comes from the seed; then it is
number floor((g p + f) / s) of that dataset, and otherwise number g - floor((g p + f) / s) of the other one. (This is
Bresenham's line, which keeps the first dataset's part of the first g samples within 1 of g p / s.) With more datasets,
"the other one" is the mixture of the rest, in which the same rule decides. So the dataset of a sample and its number
there are a pure function of (weights, seed, sample), computed in O(datasets) time without memory, and of the first g
samples, each dataset has its share to within the number of datasets.

>>> from fastcompress.data.mixture import Assignment
>>> Assignment([3, 1], seed=0).place(0)
(0, 0)
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np

from fastcompress.errors import ConfigError, MismatchError

if TYPE_CHECKING:
    from fastcompress.data.shards import TokenDataset

_PURPOSE = int.from_bytes(b"mixture", "big")  # sets these random words apart from those of orders


class Mixture:
    """Datasets of one codec, from which a loader draws rows in proportion to weights.

    >>> from fastcompress.codec import ByteCodec
    >>> from fastcompress.data import Mixture, TokenDataset
    >>> prose, code = (TokenDataset.from_documents([text], ByteCodec()) for text in (b"to be or not", b"x += 1"))
    >>> Mixture([(prose, 1), (code, 0.25)]).shares
    [0.8, 0.2]

    Attributes:
        datasets: The datasets.
        counts: Integers in the proportion of the weights, without a common divisor.
        vocab_size, codec_fingerprint: Those of every dataset.
        num_tokens, num_documents, num_bytes: Sums over the datasets, whatever their weights.
    """

    def __init__(self, parts: Sequence[tuple[TokenDataset, float]]) -> None:
        """Mix datasets.

        Args:
            parts: Datasets and their weights: shares of the rows, up to a common factor, whatever the sizes of the
                datasets. A float counts as the decimal fraction that Python prints for it.

        Raises:
            ConfigError: There is no dataset, or a weight is not a positive number.
            MismatchError: The datasets are not of one codec.
        """
        if not parts:
            raise ConfigError("parts is empty; it must name at least one dataset")
        self.datasets = [dataset for dataset, _ in parts]
        self.counts = _counts([weight for _, weight in parts])
        first = self.datasets[0]
        for number, dataset in enumerate(self.datasets):
            if dataset.codec_fingerprint != first.codec_fingerprint:
                raise MismatchError(
                    f"dataset {number} of the mixture, {dataset!r}, is of another codec than dataset 0, {first!r}; "
                    "encode it again with that one"
                )
        self.vocab_size, self.codec_fingerprint = first.vocab_size, first.codec_fingerprint
        self.num_tokens = sum(dataset.num_tokens for dataset in self.datasets)
        self.num_documents = sum(dataset.num_documents for dataset in self.datasets)
        self.num_bytes = sum(dataset.num_bytes for dataset in self.datasets)

    def __repr__(self) -> str:
        shares = zip(self.shares, self.datasets, strict=True)
        return "<Mixture of " + ", ".join(f"{share:.3g} x {dataset!r}" for share, dataset in shares) + ">"

    @property
    def shares(self) -> list[float]:
        """The part of all rows that each dataset has; they sum to 1."""
        return [count / sum(self.counts) for count in self.counts]

    @cached_property
    def fingerprint(self) -> str:
        """The SHA-256 of the datasets' fingerprints and their proportions, 64 hexadecimal digits."""
        digest = hashlib.sha256(b"fastcompress mixture, version 1\n")
        for dataset, count in zip(self.datasets, self.counts, strict=True):
            digest.update(f"{dataset.fingerprint} {count}\n".encode())
        return digest.hexdigest()


class Assignment:
    """The dataset of every sample, as the head of this file defines it."""

    def __init__(self, counts: Sequence[int], seed: int) -> None:
        """Assign samples in proportion to `counts`, positive integers; `seed` is not negative."""
        rests = list(accumulate(reversed(counts)))[::-1]  # of each dataset and those after it
        words = np.random.PCG64(np.random.SeedSequence([seed, _PURPOSE])).random_raw(len(counts))
        offsets = [int(word) * rest >> 64 for word, rest in zip(words, rests, strict=True)]
        self._steps = list(zip(counts, rests, offsets, strict=True))

    def place(self, sample: int) -> tuple[int, int]:
        """Return the number of a sample's dataset, and its number among the samples from there."""
        for number, (count, rest, offset) in enumerate(self._steps):
            before = (sample * count + offset) // rest
            if ((sample + 1) * count + offset) // rest > before:
                return number, before
            sample -= before
        raise AssertionError("the last dataset takes what the others leave")


def _counts(weights: Sequence[float]) -> list[int]:
    """Return integers in the proportion of weights, without a common divisor."""
    fractions = []
    for weight in weights:
        try:
            fractions.append(Fraction(weight) if isinstance(weight, (int, Fraction)) else Fraction(repr(float(weight))))
        except (TypeError, ValueError):  # of a name, or of nan and infinity
            raise ConfigError(f"weight is {weight!r}; it must be a positive number") from None
        if fractions[-1] <= 0:
            raise ConfigError(f"weight is {weight!r}; it must be a positive number")
    scale = math.lcm(*(fraction.denominator for fraction in fractions))
    counts = [int(fraction * scale) for fraction in fractions]
    divisor = math.gcd(*counts)
    return [count // divisor for count in counts]
