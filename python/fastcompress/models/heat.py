"""HEAT: a transformer that reads phrases of LZ77, or a codec's tokens, and predicts the bytes of the next one.

A document is cut into segments, by default the phrases of a greedy LZ77 parse: runs of literals up to a cap, and
matches (distance, length). With the symbols u_1, u_2, ... of its spelling (``data/segments.py``: bytes, a mark where a
segment ends, and the end of the document, 258 in all), e_k the place of the k-th end, and norms left out,

    h = encoder(E[u])                                            [S, d]  reads bytes: those of literals and of copies
    x_k = W (h[e_k] + kind_k + near_k + long_k)                  [P, D]  near, long: buckets of distance and length
    g = trunk(x)                                                 [P, D]  causal, a position for each segment
    p(u_{i+1} | u_1 .. u_i) = softmax(V decoder(h + U g_k)_i)    [S, 258]

where k is the number of ends among u_1 .. u_i. So what the trunk makes of k segments is asked for the bytes of segment
k + 1, also where that is a copy: the "next-patch objective" of HEAT in Chan, "Thoughts on Feasibility in Pre-training
GPT-2/3 on a Single GPU" (2025). The local networks are those of Slagle, "SpaceByte" (arXiv 2404.14408). With the tokens
of a codec as segments, the byte decoder stands in place of a softmax over the vocabulary, as in Neitemeier et al.,
"Hierarchical Autoregressive Transformers" (arXiv 2501.10322), so that 65,535 strings cost no head.

Causality. Where a greedy parse ends a segment depends on later bytes: a match ends because the next byte differs, and a
run of literals because the next four have occurred before. A model that read such an end for nothing while it predicts
these bytes would see them. Here each end is a symbol and has its price, u_1, u_2, ... is a sequence like any other, and

    p(u) = prod_i p(u_{i+1} | u_1 .. u_i)

is a distribution over such sequences if every input at i is a function of u_1 .. u_i. It is: the embeddings are; the
places of ends are; and distance and length are found from the symbols, not taken from the parser
(``data/segment_rows.py``). The parse decides only which of the sequences that spell a document is scored. The others
have probability, too, so the bits per byte of a document are an upper bound on those of its bytes:

    -log p(bytes) = -log sum over u that spell them of p(u)  <=  -log p(u of the parse).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from fastcompress import lz77
from fastcompress.codec import Codec
from fastcompress.data.segment_rows import DISTANCE, LENGTH, Places, SegmentRows, segment_columns
from fastcompress.data.segments import END_OF_SEGMENT, make_segmenter
from fastcompress.errors import ConfigError
from fastcompress.models.local_global import LocalGlobalConfig, LocalGlobalModel
from fastcompress.models.protocol import DEFAULT_KERNELS, Kernels
from fastcompress.models.settings import check_counts


@dataclass(frozen=True, kw_only=True)
class HEATConfig(LocalGlobalConfig):
    """The settings of a `HEAT`, beside those of `LocalGlobalConfig`, whose symbols are bytes and ends of segments.

    Attributes:
        segments: "lz77" (the codec must be bytes), or "tokens": those of the codec, each with bytes of its own.
        patch_bytes: Mean bytes of a segment for which rows have places; where they are shorter for long, several share
            a place (``data/segment_rows.py``). Default: 5 for "lz77", and 3 for "tokens".
        max_literals: Of "lz77": the largest number of literals in a segment.
        min_match, max_match: Of "lz77": lengths of matches.
        window: Of "lz77": the largest distance of a match, in bytes; default: ``context_length``. Of a match from
            before the row, the model is told the length only.
    """

    segments: str = "lz77"
    patch_bytes: int | None = None
    max_literals: int = 8
    min_match: int = 4
    max_match: int = 32
    window: int | None = None

    kind: ClassVar[str] = "heat"
    vocab_size: ClassVar[int] = END_OF_SEGMENT + 2

    def __post_init__(self) -> None:
        check_counts(self, "max_literals", "min_match", "max_match")
        check_counts(self, "patch_bytes", "window", may_lack=("patch_bytes", "window"))
        if self.max_match < self.min_match:
            raise ConfigError(f"max_match is {self.max_match}; it must be at least min_match, {self.min_match}")
        super().__post_init__()

    @property
    def places(self) -> Places:
        """The places for segments in a row; each has symbols for its bytes and its end."""
        patch_bytes = self.patch_bytes or (3 if self.segments == "tokens" else 5)
        return Places(self.context_length, patch_bytes + 1)

    @property
    def num_patches(self) -> int:
        """Places for segments in a row, P."""
        return self.places.number

    def rows(self, codec: Codec) -> SegmentRows:
        """Return rows of segments. Raises ConfigError if the codec cannot be cut so."""
        window = self.window or self.context_length
        params = lz77.Params(window=window, min_length=self.min_match, max_length=self.max_match)
        segmenter = make_segmenter(codec, self.segments, params, self.max_literals)
        return SegmentRows(codec, self.context_length, segmenter, self.places.symbols_per_place, self.min_match)

    def build(self, kernels: Kernels = DEFAULT_KERNELS) -> HEAT:
        """Make the model; its weights are drawn from torch's global generator."""
        return HEAT(self, kernels)


class Buckets(nn.Module):
    """A vector for each bucket of a number: 0, 1, 2, 3, 4 to 5, 6 to 7, 8 to 11, ...; ``int64[...] -> [..., width]``.

    Args:
        largest: Numbers above share its bucket.
        width: Of the vectors.
    """

    begins: Tensor

    def __init__(self, largest: int, width: int) -> None:
        super().__init__()
        begins = [1, *(begin for k in range(1, largest.bit_length()) for begin in (2 << k - 1, 3 << k - 1))]
        begins = [begin for begin in begins if begin <= largest]
        self.register_buffer("begins", torch.tensor(begins), persistent=False)  # int64[buckets - 1]
        self.table = nn.Embedding(len(begins) + 1, width)

    def forward(self, numbers: Tensor) -> Tensor:
        vectors: Tensor = self.table(torch.bucketize(numbers, self.begins, right=True))
        return vectors


class HEAT(LocalGlobalModel):
    """See the head of this file; ``tokens int64[B, T] -> logits float[B, T, 258]``."""

    config: HEATConfig

    def __init__(self, config: HEATConfig, kernels: Kernels = DEFAULT_KERNELS) -> None:
        super().__init__(config, kernels)
        self.kinds = nn.Embedding(2, config.d)  # literals, copies
        self.distances = Buckets(config.context_length, config.d)
        self.lengths = Buckets(max(config.max_literals, config.max_match), config.d)
        self.init_weights()

    def columns_of(self, ids: npt.NDArray[np.int64]) -> Mapping[str, npt.NDArray[np.int64]]:
        """Return where segments end, and what they are, as the rows have it."""
        return segment_columns(ids, self.config.places, self.config.min_match)

    def patch_states(self, encoded: Tensor, columns: Mapping[str, Tensor]) -> Tensor:
        """Add to the encoder's states at the ends of segments, ``[B, T, d]``, what these are."""
        distance, length = columns[DISTANCE], columns[LENGTH]  # int64[B, T] each
        kinds: Tensor = self.kinds((distance > 0).long())  # [B, T, d]
        described: Tensor = kinds + self.distances(distance) + self.lengths(length)  # [B, T, d]
        return encoded + described.to(encoded.dtype)  # [B, T, d]

    def random_batch(self, num_rows: int, max_events: int) -> dict[str, Tensor]:
        """Draw a few letters and many ends, so that copies of segments occur."""
        symbols = [*b"aabb .", END_OF_SEGMENT, END_OF_SEGMENT, END_OF_SEGMENT + 1]
        return self.random_batch_of(symbols, num_rows, max_events)
