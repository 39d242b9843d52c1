"""Patches: runs of bytes that a model reads as one position of its large network, and rows that say where they end.

A patcher says how far a text is cut after each byte. What it says after n bytes must be a function of these n bytes, so
that a model that predicts the next byte learns nothing of it. Patches come from that by one rule, the same for all
patchers: with the last patch ending at e, the next one ends at the first cut that is at least ``min_bytes`` beyond e,
as soon as that cut is known, and at ``e + max_bytes`` if none is known by then. So a row of S bytes has at most
``S // min_bytes`` patches, and none is ever dropped.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from fastcompress import lz77
from fastcompress.codec import ByteCodec, Codec, EntropyByteCodec
from fastcompress.data.rows import Row, TokenRows
from fastcompress.data.shards import TokenDataset
from fastcompress.equal_info.models import ENTROPY_BITS
from fastcompress.errors import ConfigError

PATCH_END = "patch_end"


class Patcher(Protocol):
    """A rule that cuts texts.

    Attributes:
        name: What settings call it, which with the settings decides the cuts.
    """

    @property
    def name(self) -> str: ...

    def cuts(self, text: bytes) -> npt.NDArray[np.int64]:
        """Return for each n in [0, len(text)] the last cut known after n bytes: int64[len(text) + 1].

        The cut after n bytes is at most n, never falls, and is a function of ``text[:n]``.
        """
        ...


@dataclass(frozen=True)
class StaticPatcher:
    """Cuts after every byte; so patches are all of ``min_bytes``, but for those that a document ends."""

    name: str = "static"

    def cuts(self, text: bytes) -> npt.NDArray[np.int64]:
        """See `Patcher`."""
        return np.arange(len(text) + 1)


def _spacelike() -> npt.NDArray[np.bool_]:
    values = np.arange(256)
    is_alphanumeric = np.array([value < 128 and chr(value).isalnum() for value in range(256)])
    return ~is_alphanumeric & ~((values >= 0x80) & (values < 0xC0))  # bool[256]


_SPACELIKE = _spacelike()


@dataclass(frozen=True)
class SpacePatcher:
    """Cuts after the first byte that ends a word: no ASCII letter or digit, and no continuation byte of UTF-8.

    Slagle, "SpaceByte" (arXiv 2404.14408). The large network then reads the byte after which a word begins, whose first
    byte is the hardest to predict.
    """

    name: str = "space"

    def cuts(self, text: bytes) -> npt.NDArray[np.int64]:
        """See `Patcher`."""
        spacelike = _SPACELIKE[np.frombuffer(text, np.uint8)]  # bool[n]
        first = spacelike & ~np.concatenate(([False], spacelike[:-1]))  # bool[n]
        ends = np.where(first, np.arange(1, len(text) + 1), 0)  # int64[n]
        return np.concatenate(([0], np.maximum.accumulate(ends))) if len(text) else np.zeros(1, np.int64)


@dataclass(frozen=True)
class LZ77Patcher:
    """Cuts where tokens of the greedy LZ77 parse end, once no byte that may follow can change them.

    Attributes:
        params: Of the parse, which begins with each document of a row.
    """

    params: lz77.Params = field(default_factory=lambda: lz77.Params(max_length=32))

    @property
    def name(self) -> str:
        """The kind and its settings."""
        p = self.params
        return f"lz77 {p.window} {p.min_length} {p.max_length} {p.depth} {p.parse}"

    def cuts(self, text: bytes) -> npt.NDArray[np.int64]:
        """See `Patcher`."""
        counts = lz77.stable_counts(text, self.params)  # uint32[n + 1]
        ends = np.concatenate(([0], np.cumsum(lz77.parse(text, self.params).length, dtype=np.int64)))  # int64[k + 1]
        return ends[counts]


@dataclass(frozen=True)
class EntropyPatcher:
    """Cuts where the next byte is hard to predict, so that a patch begins with it.

    Pagnoni et al., "Byte Latent Transformer" (arXiv 2412.09871), with an n-gram model's entropies.

    Attributes:
        codec: Has the entropies.
        threshold: In bits. The text is cut after a byte if the entropy of the next one is above it.
        monotone: Compare the rise of the entropy over that of the byte before with the threshold instead.
    """

    codec: EntropyByteCodec
    threshold: float
    monotone: bool = False

    @property
    def name(self) -> str:
        """The kind and the threshold; the entropies are identified by the codec."""
        return f"entropy{'-monotone' if self.monotone else ''} {self.threshold!r}"

    def values(self, text: bytes) -> npt.NDArray[np.int64]:
        """Return what is compared with the threshold after each byte, in units of 2**-12 bits: int64[len(text)]."""
        entropies = self.codec.entropies(text)  # int64[n + 1]
        return np.diff(entropies) if self.monotone else entropies[1:]

    def cuts(self, text: bytes) -> npt.NDArray[np.int64]:
        """See `Patcher`."""
        is_cut = self.values(text) > self.threshold * (1 << ENTROPY_BITS)  # bool[n]
        ends = np.where(is_cut, np.arange(1, len(text) + 1), 0)  # int64[n]
        return np.concatenate((np.zeros(1, np.int64), np.maximum.accumulate(ends)))


PATCHERS: dict[str, Patcher] = {"static": StaticPatcher(), "space": SpacePatcher(), "lz77": LZ77Patcher()}


ENTROPY_PATCHERS = ("entropy", "entropy-monotone")


def make_patcher(name: str, codec: Codec, threshold: float | None = None) -> Patcher:
    """Make a patcher.

    Args:
        name: One of `PATCHERS` or `ENTROPY_PATCHERS`.
        codec: The codec of the text; entropy patchers read entropies from it.
        threshold: Of an entropy patcher, in bits (``data/calibration.py`` finds one).

    Raises:
        ConfigError: There is no such patcher, the codec has no entropies, or the threshold is missing or unused.
    """
    if not isinstance(name, str) or name not in (*PATCHERS, *ENTROPY_PATCHERS):
        raise ConfigError(f"patcher is {name!r}; it must be one of {', '.join((*PATCHERS, *ENTROPY_PATCHERS))}")
    if name in PATCHERS:
        if threshold is not None:
            raise ConfigError(f"threshold is {threshold}, but patcher {name} has none; leave it out")
        return PATCHERS[name]
    if not isinstance(codec, EntropyByteCodec):
        raise ConfigError(f"codec is {codec.name}; patcher {name} needs one with entropies, EntropyByteCodec.train")
    if not isinstance(threshold, (int, float)) or isinstance(threshold, bool) or not -8 <= threshold <= 8:
        raise ConfigError(f"threshold is {threshold!r}; it must be -8 to 8 bits; data.calibration.calibrate finds one")
    return EntropyPatcher(codec, float(threshold), monotone=name == "entropy-monotone")


def check_patch_sizes(what: str, smallest: int, largest: int) -> None:
    """Check the sizes of patches. Raises ConfigError.

    Args:
        what: What is counted, "bytes" or "tokens".
        smallest, largest: The settings ``min_bytes`` and ``max_bytes`` of a model, or those of tokens.
    """
    for name, size in ((f"model.min_{what}", smallest), (f"model.max_{what}", largest)):
        if not isinstance(size, int) or isinstance(size, bool) or size < 1:
            raise ConfigError(f"{name} must be a whole number of at least 1, not {size!r}")
    if smallest > largest:
        raise ConfigError(f"model.min_{what} is {smallest}; it must be at most model.max_{what}, {largest}")


def patch_ends(ids: npt.NDArray[np.int64], patcher: Patcher, min_bytes: int, max_bytes: int) -> npt.NDArray[np.int64]:
    """Return with which ids patches become known, and where they end.

    Args:
        ids: ``int64[n]``, bytes, and 256 between documents, which ends what is before it.
        patcher: Cuts the documents.
        min_bytes, max_bytes: Of a patch, the marks between documents included.

    Returns:
        ``int64[n]``: where a patch becomes known with id i, its end, in (0, i + 1]; elsewhere 0. What stands at i is a
        function of ``ids[:i + 1]``.
    """
    known = np.empty(len(ids) + 1, np.int64)  # the last cut after n ids
    known[0] = 0
    marks = np.flatnonzero(ids == ByteCodec().vocab_size)
    begin = 0
    for mark in [*marks.tolist(), len(ids)]:
        known[begin : mark + 1] = begin + patcher.cuts(ids[begin:mark].astype(np.uint8).tobytes())
        begin = mark + 1
        if mark < len(ids):
            known[begin] = begin
    return ends_of_cuts(known[1:], min_bytes, max_bytes)


def ends_of_cuts(cuts: npt.NDArray[np.int64], smallest: int, largest: int) -> npt.NDArray[np.int64]:
    """Return with which items patches become known, and where they end, by the rule at the head of this file.

    Args:
        cuts: ``int64[n]``, the last cut known with each item, which may be the one behind it; they never fall.
        smallest, largest: Items of a patch.

    Returns:
        ``int64[n]``: where a patch becomes known with item i, its end, in (0, i + 1]; elsewhere 0.
    """
    ends, known, last = np.zeros(len(cuts), np.int64), cuts.tolist(), 0
    while True:
        item = min(bisect_left(known, last + smallest), last + largest - 1)
        if item >= len(known):
            return ends
        last = known[item] if known[item] >= last + smallest else item + 1
        ends[item] = last


@dataclass(frozen=True)
class PatchRows(TokenRows):
    """Rows of bytes with the ends of patches.

    Columns: those of `TokenRows` over bytes, and ``patch_end``, int64[S]: where a patch becomes known with an input,
    the position behind its last byte, else 0.

    Attributes:
        patcher: Cuts the text.
        min_bytes, max_bytes: The sizes of patches.
    """

    patcher: Patcher
    min_bytes: int
    max_bytes: int

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.codec, ByteCodec):
            raise ConfigError(f"codec is {self.codec.name}; a model of bytes needs byte")
        check_patch_sizes("bytes", self.min_bytes, self.max_bytes)

    @property
    def num_patches(self) -> int:
        """The largest number of patches in a row."""
        return self.context_length // self.min_bytes

    @property
    def columns(self) -> dict[str, tuple[np.dtype[Any], tuple[int, ...]]]:
        """Type and shape of each column, by name."""
        return {**super().columns, PATCH_END: (np.dtype(np.int64), (self.context_length,))}

    @cached_property
    def fingerprint(self) -> str:
        """The SHA-256 of everything that decides the rows, as 64 hexadecimal digits."""
        text = f"fastcompress patch rows, version 1\n{self.codec.fingerprint}\n{self.context_length}\n"
        text += f"{self.patcher.name}\n{self.min_bytes}\n{self.max_bytes}\n"
        return hashlib.sha256(text.encode()).hexdigest()

    def training_row(self, dataset: TokenDataset, begin: int) -> Row:
        """Return the row of bytes from `begin` on; patches begin with the row."""
        return self._with_ends(super().training_row(dataset, begin))

    def scoring_rows(self, document: bytes, stride: int) -> Iterator[Row]:
        """Yield the windows of a document; patches begin with each window, as in training."""
        return map(self._with_ends, super().scoring_rows(document, stride))

    def _with_ends(self, row: Row) -> Row:
        return {**row, PATCH_END: patch_ends(row["input"], self.patcher, self.min_bytes, self.max_bytes)}


def patch_rows(
    codec: Codec, context_length: int, patcher: str, min_bytes: int, max_bytes: int, threshold: float | None = None
) -> PatchRows:
    """Make rows with a patcher; arguments and errors as for `make_patcher`."""
    return PatchRows(codec, context_length, make_patcher(patcher, codec, threshold), min_bytes, max_bytes)
