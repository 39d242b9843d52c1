"""A byte-latent transformer: a small network reads and writes bytes, a large one thinks in patches of them.

The networks are those of ``local_global.py``, the symbols are bytes, and what stands for a patch is the encoder's state
at its last byte. Where patches end is a column of the rows (``data/patches.py``); the model sees nothing of a patch
before the byte with which it becomes known, so its likelihood of the bytes is exact.

Pagnoni et al., "Byte Latent Transformer" (arXiv 2412.09871); Slagle, "SpaceByte" (arXiv 2404.14408).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from torch import Tensor

from fastcompress.codec import ByteCodec, Codec
from fastcompress.data.patches import PATCH_END, PATCHERS, Patcher, PatchRows, check_patch_sizes, patch_ends, patch_rows
from fastcompress.errors import ConfigError
from fastcompress.models.engram import NGramHash, check_tables
from fastcompress.models.local_global import LocalGlobalConfig, LocalGlobalModel
from fastcompress.models.protocol import DEFAULT_KERNELS, Kernels
from fastcompress.models.quantized import VectorQuantizer
from fastcompress.models.roles import MemoryTable
from fastcompress.models.settings import check_counts, whole_numbers
from fastcompress.models.trunk import Context

_BYTES = ByteCodec()


@dataclass(frozen=True, kw_only=True)
class ByteLatentConfig(LocalGlobalConfig):
    """The settings of a `ByteLatent`, beside those of `LocalGlobalConfig`, whose symbols are bytes.

    Attributes:
        patcher: "space", "lz77", "static", "entropy" or "entropy-monotone" (``data/patches.py``).
        min_bytes, max_bytes: Sizes of patches. A row has S // min_bytes places for them.
        threshold: Of an entropy patcher, in bits.
        ngram_orders: The lengths of n-grams of bytes, each with a hashed table of vectors that are added to the byte
            that ends the n-gram (section 3.2.1 of BLT's paper); empty for none.
        ngram_rows: The smallest number of rows of such a table.
        latent_codes: The number of codes, one of which stands for each patch in place of its own vector; default: none.
    """

    patcher: str = "space"
    min_bytes: int = 4
    max_bytes: int = 16
    threshold: float | None = None
    ngram_orders: tuple[int, ...] = ()
    ngram_rows: int = 65536
    latent_codes: int | None = None

    kind: ClassVar[str] = "byte-latent"
    vocab_size: ClassVar[int] = 257  # bytes, and the end of a document

    def __post_init__(self) -> None:
        check_patch_sizes("bytes", self.min_bytes, self.max_bytes)
        check_counts(self, "ngram_rows")
        check_counts(self, "latent_codes", may_lack=("latent_codes",))
        object.__setattr__(self, "ngram_orders", whole_numbers(self, "ngram_orders", 2))
        check_tables("ngram", self.ngram_orders, self.ngram_rows)
        super().__post_init__()

    @property
    def num_patches(self) -> int:
        """Places for patches in a row, P."""
        return self.context_length // self.min_bytes

    def rows(self, codec: Codec) -> PatchRows:
        """Return rows of bytes and ends of patches. Raises ConfigError if the codec is not bytes."""
        sizes = (self.min_bytes, self.max_bytes)
        return patch_rows(codec, self.context_length, self.patcher, *sizes, self.threshold)

    def build(self, kernels: Kernels = DEFAULT_KERNELS) -> ByteLatent:
        """Make the model; its weights are drawn from torch's global generator."""
        return ByteLatent(self, kernels)


class ByteLatent(LocalGlobalModel):
    """See the head of this file; ``tokens int64[B, T] -> logits float[B, T, 257]``."""

    config: ByteLatentConfig

    def __init__(self, config: ByteLatentConfig, kernels: Kernels = DEFAULT_KERNELS) -> None:
        super().__init__(config, kernels)
        if config.ngram_orders:  # one table and head an order, as in BLT
            self.ngrams = NGramHash(self.vocab_size, config.ngram_orders, 1, config.ngram_rows, salt=0)
            self.ngram_table = MemoryTable(self.ngrams.num_rows, config.d)
        self.quantizer = VectorQuantizer(config.latent_codes, config.width) if config.latent_codes else None
        self._patcher = config.rows(_BYTES).patcher if config.patcher in PATCHERS else None  # see read_codec
        self.init_weights()

    def read_codec(self, codec: Codec) -> None:
        """Read the entropies that decide where patches end, if they do. Raises ConfigError if the codec has none."""
        self._patcher = self.config.rows(codec).patcher

    @property
    def patcher(self) -> Patcher:
        """What cuts texts. Raises ConfigError if the codec, whose entropies decide, has not been read."""
        if self._patcher is None:
            raise ConfigError("the model's patches depend on its codec's entropies; call read_codec first")
        return self._patcher

    def embed(self, context: Context) -> Tensor:
        """Return the vectors of bytes, and of the n-grams that they end, ``float[B, T, d]``."""
        x = super().embed(context)  # [B, T, d]
        if self.config.ngram_orders:
            x = x + self.ngram_table(self.ngrams(context)).sum(-2).to(x.dtype)  # [B, T, d]
        return x

    def enter_patches(self, read: Tensor) -> Tensor:
        """Return what the global network reads of patches: the codes nearest to them, if there are codes."""
        x = super().enter_patches(read)  # [B, P, D]
        return x if self.quantizer is None else self.quantizer(x)  # [B, P, D]

    def columns_of(self, ids: npt.NDArray[np.int64]) -> Mapping[str, npt.NDArray[np.int64]]:
        """Return where patches become known, and end."""
        return {PATCH_END: patch_ends(ids, self.patcher, self.config.min_bytes, self.config.max_bytes)}

    def random_batch(self, num_rows: int, max_events: int) -> dict[str, Tensor]:
        """Draw bytes of a small alphabet, so that patches of all kinds occur."""
        return self.random_batch_of(list(b"ab .\n"), num_rows, max_events)
