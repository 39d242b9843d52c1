"""What models share in which a small network reads and writes symbols, and a large one thinks in patches of them.

    symbols  --encoder-->  h [S, d]            local blocks over a window of symbols
    what stands for each patch  -->  x [P, D]  --global blocks-->  g [P, D]
    h + (g of the newest patch known)  --decoder-->  logits of the next symbol

A kind of such models says in columns of its rows where patches end and with which symbol they become known. Column i
must be a function of the symbols up to i, so that no prediction sees what it predicts.

Pagnoni et al., "Byte Latent Transformer" (arXiv 2412.09871); taking the state at one symbol of a patch, and adding what
the global network makes of it to the symbols that follow: Slagle, "SpaceByte" (arXiv 2404.14408). Optionally, symbols
also attend to all patches known to them.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from fastcompress.codec import Codec
from fastcompress.data.patches import PATCH_END
from fastcompress.data.rows import Rows
from fastcompress.errors import ConfigError
from fastcompress.models.attention import CausalSelfAttention
from fastcompress.models.blocks import Block, RMSNorm, make_mlp
from fastcompress.models.cross_entropy import Head, bytes_per_logit, head_nats, piece_of
from fastcompress.models.flops import Flops
from fastcompress.models.local_global_decoding import LocalGlobalCache, read_with_cache
from fastcompress.models.patch_attention import PatchAttention
from fastcompress.models.protocol import DEFAULT_KERNELS, Batch, Kernels, LanguageModel, ModelSize
from fastcompress.models.roles import MemoryTable
from fastcompress.models.settings import check_counts, check_flags, check_fractions, settings_from_json
from fastcompress.models.tokens import NextTokenModel
from fastcompress.models.trunk import Cache, Context, Reach, Trunk, in_stream_type

if TYPE_CHECKING:
    from typing import Self

INIT_STD, HEAD_STD = 0.02, 0.002


@dataclass(frozen=True, kw_only=True)
class LocalGlobalConfig(ABC):
    """The settings that these models share.

    Attributes:
        context_length: Symbols in a row, S.
        width: D, of the global network.
        num_layers, num_heads: Of the global network.
        local_width: d, of encoder and decoder; default: half of the global width.
        encoder_layers, decoder_layers, local_heads: Of the local networks.
        local_window: Symbols that a symbol sees in the local networks, itself included.
        cross_attention: Symbols attend to all patches known to them, before the decoder.
        dropout: Dropout probability of what attention and MLPs add, in all three networks.
    """

    context_length: int = 1024
    width: int = 384
    num_layers: int = 6
    num_heads: int = 6
    local_width: int | None = None
    encoder_layers: int = 3
    decoder_layers: int = 3
    local_heads: int = 4
    local_window: int = 256
    cross_attention: bool = False
    dropout: float = 0.0

    kind: ClassVar[str]
    vocab_size: ClassVar[int]

    def __post_init__(self) -> None:
        counts = ("context_length", "width", "num_layers", "num_heads", "encoder_layers", "decoder_layers")
        check_counts(self, *counts, "local_heads", "local_window")
        check_counts(self, "local_width", may_lack=("local_width",))
        check_fractions(self, "dropout")
        check_flags(self)
        for name, width, heads in (("width", self.width, self.num_heads), ("local_width", self.d, self.local_heads)):
            if width % (2 * heads):
                raise ConfigError(f"{name} is {width}; it must be a multiple of twice its {heads} heads")

    @property
    def d(self) -> int:
        """The local width."""
        return self.local_width or self.width // 2

    @property
    @abstractmethod
    def num_patches(self) -> int:
        """Places for patches in a row, P."""

    @abstractmethod
    def rows(self, codec: Codec) -> Rows:
        """Return the rows that the model reads. Raises ConfigError if it cannot read those of ``codec``."""

    @abstractmethod
    def build(self, kernels: Kernels = DEFAULT_KERNELS) -> LocalGlobalModel:
        """Make the model; its weights are drawn from torch's global generator."""

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any], codec: Codec) -> Self:
        """Make the configuration for a codec, which its rows check. Raises ConfigError for unknown settings."""
        config = cls.from_json(settings)
        config.rows(codec)
        return config

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> Self:
        """Build from what ``to_json`` returned. Raises ConfigError for an unknown name."""
        return settings_from_json(cls, {name: value for name, value in fields.items() if name != "kind"}, "model")

    def to_json(self) -> dict[str, Any]:
        """Return the fields as plain values, with ``kind``."""
        return {"kind": self.kind, **self.__dict__}

    def size(self, device_type: str = "cpu", kernels: Kernels = DEFAULT_KERNELS) -> ModelSize:
        """Estimate what the model keeps in memory, without making it."""
        with torch.device("meta"):
            model = self.build(kernels)
        local = (self.encoder_layers + self.decoder_layers) * self.d * self.context_length
        per_width = 34 + (4 if self.dropout else 0)  # what both branches add is kept twice, and the masks
        roles = model.parameter_roles()
        return ModelSize(
            parameters=model.num_parameters(),
            table_parameters=self.vocab_size * self.d * 2,
            matrix_parameters=sum(p.numel() for name, p in model.named_parameters() if roles[name] == "matrix"),
            activations_per_row=per_width * (local + self.num_layers * self.width * self.num_patches),
            logits_per_row=self.context_length * self.vocab_size,
            logits_at_once=max(kernels.logits_at_once or piece_of(device_type), self.vocab_size),
            bytes_per_logit=bytes_per_logit(device_type),
        )


def make_blocks(
    layers: int, width: int, heads: int, length: int, window: int | None, dropout: float, kernels: Kernels
) -> Trunk:
    """Make pre-norm blocks as in the preset ``modern``: rotary positions, norms of queries and keys, SwiGLU."""
    return Trunk(
        Block(
            CausalSelfAttention(
                width, heads, length,
                rotary=True, qk_norm=True, bias=False, dropout=0.0, kind=kernels.attention, reach=Reach(window),
            ),
            make_mlp("swiglu", width, bias=False),
            (RMSNorm(), RMSNorm()),
            dropout=dropout,
        )
        for _ in range(layers)
    )  # fmt: skip


class LocalGlobalModel(NextTokenModel):
    """See the head of this file; ``tokens int64[B, T] -> logits float[B, T, V]``.

    A kind defines ``columns_of``, and may define ``patch_states``.
    """

    config: LocalGlobalConfig

    def __init__(self, config: LocalGlobalConfig, kernels: Kernels = DEFAULT_KERNELS) -> None:
        super().__init__()
        self.config, self.kernels, self.context_length = config, kernels, config.context_length
        self.vocab_size, self.num_patches = config.vocab_size, config.num_patches
        local = (config.d, config.local_heads, config.context_length, config.local_window, config.dropout, kernels)
        self.embedding = self.make_embedding()
        self.encoder = make_blocks(config.encoder_layers, *local)
        self.enter = nn.Linear(config.d, config.width, bias=False)
        self.start = nn.Parameter(torch.zeros(config.width))  # [D]: what symbols read before a patch is known
        places = max(1, self.num_patches)
        large = (config.width, config.num_heads, places, None, config.dropout, kernels)
        self.trunk = make_blocks(config.num_layers, *large)
        self.leave = nn.Linear(config.width, config.d, bias=False)
        heads = (config.local_heads, self.num_patches + 1, kernels.attention)
        self.patch_attention = PatchAttention(config.d, config.width, *heads) if config.cross_attention else None
        self.decoder = make_blocks(config.decoder_layers, *local)
        self.norms = nn.ModuleList(RMSNorm() for _ in range(4))
        self.head = self.make_head()

    def make_embedding(self) -> nn.Module:
        """Make what turns ids ``int64[B, T]``, or what else the rows hold, into vectors ``float[B, T, d]``."""
        return nn.Embedding(self.vocab_size, self.config.d)

    def embed(self, context: Context) -> Tensor:
        """Return what the encoder reads of the ids of a context, ``float[B, T, d]``."""
        return in_stream_type(self.embedding(context.ids))

    def make_head(self) -> nn.Module:
        """Make what turns hidden states ``float[B, T, d]`` into logits."""
        return nn.Linear(self.config.d, self.vocab_size, bias=False)

    @torch.no_grad()
    def init_weights(self) -> None:
        """Draw every parameter afresh; what adds to a stream starts at zero, and the skip from patches small."""
        nn.init.zeros_(self.start)
        for name, module in self.named_modules():
            if isinstance(module, MemoryTable):
                nn.init.zeros_(module.weight)
            elif isinstance(module, (nn.Linear, nn.Embedding)):
                nn.init.normal_(module.weight, std=INIT_STD)
                if name.endswith(".output"):
                    nn.init.zeros_(module.weight)
        for parameter in self.head.parameters():
            nn.init.normal_(parameter, std=HEAD_STD)

    rows = LanguageModel.rows  # those of the configuration

    @abstractmethod
    def columns_of(self, ids: npt.NDArray[np.int64]) -> Mapping[str, npt.NDArray[np.int64]]:
        """Return the columns of ids beside themselves, as the rows have them, ``int64[n]`` each.

        PATCH_END is among them: where a patch becomes known with id i, its end, in (0, i + 1]; elsewhere 0. What stands
        at i is a function of ``ids[:i + 1]``.
        """

    def patch_states(self, encoded: Tensor, columns: Mapping[str, Tensor]) -> Tensor:
        """Return what stands for a patch, by its last symbol, ``float[B, T, d]``.

        Args:
            encoded: ``float[B, T, d]``, the encoder's states; by default, they are it.
            columns: ``int64[B, T]`` each, as from ``columns_of``.
        """
        return encoded

    def latents(self, states: Tensor, ends: Tensor) -> tuple[Tensor, Tensor]:
        """Let the global network read the patches.

        Args:
            states: ``float[B, S, d]``, of which those at the last symbols of patches are read.
            ends: ``int64[B, S]``, where a patch becomes known, its end; else 0.

        Returns:
            ``float[B, P + 1, D]``: what symbols read before any patch, then each patch; and ``int64[B, S]``, the
            patches known with each symbol.
        """
        closes = ends > 0  # bool[B, S]
        count = closes.cumsum(1)  # int64[B, S]
        known = count.clamp(max=self.num_patches)  # int64[B, S]
        # One place is for all that is none. (Rows have no more patches than places; what self-checks put together may.)
        places = torch.where(closes & (count <= self.num_patches), known - 1, self.num_patches)  # int64[B, S]
        sources = ends.new_zeros(len(ends), self.num_patches + 1)  # int64[B, P + 1]
        sources = sources.scatter(1, places, (ends - 1).clamp(min=0))[:, :-1]  # int64[B, P]
        read = states.gather(1, sources[..., None].expand(-1, -1, states.size(-1)))  # [B, P, d]
        latents = self.think(read, Context(sources))  # [B, P, D]
        start = self.start.to(latents.dtype).expand(len(ends), 1, -1)  # [B, 1, D]
        return torch.cat((start, latents), dim=1), known

    def think(self, read: Tensor, context: Context) -> Tensor:
        """What the global network makes of patches, ``float[B, P, D]``, from the states ``[B, P, d]`` at their ends."""
        x = self.enter_patches(read)  # [B, P, D]
        latents: Tensor = self.norms[1](self.trunk(x, context))  # [B, P, D]
        return latents

    def enter_patches(self, read: Tensor) -> Tensor:
        """What the global network reads of patches, ``float[B, P, D]``, from the states ``[B, P, d]`` at their ends."""
        entered: Tensor = self.enter(self.norms[0](read)).to(read.dtype)  # [B, P, D]
        return entered

    def add_patches(self, x: Tensor, latents: Tensor, known: Tensor) -> Tensor:
        """Add to symbols ``x [B, S, d]`` what the first ``known [B, S]`` of ``latents [B, P + 1, D]`` say."""
        newest = latents.gather(1, known[..., None].expand(-1, -1, latents.size(-1)))  # [B, S, D]
        x = x + self.leave(newest).to(x.dtype)  # [B, S, d]
        if self.patch_attention is not None:
            x = x + self.patch_attention(self.norms[2](x), latents, known).to(x.dtype)  # [B, S, d]
        return x

    def hidden(self, ids: Tensor, columns: Mapping[str, Tensor]) -> Tensor:
        """What the head reads, ``float[B, S, d]``, from ``ids`` and their columns, ``int64[B, S]`` each."""
        context = Context(ids)
        x = self.encoder(self.embed(context), context)  # [B, S, d]
        if self.num_patches:
            states = self.patch_states(x, columns)  # [B, S, d]
            x = self.add_patches(x, *self.latents(states, columns[PATCH_END]))  # [B, S, d]
        normed: Tensor = self.norms[3](self.decoder(x, context))  # [B, S, d]
        return normed

    def forward(self, tokens: Tensor) -> Tensor:
        return self.logits_head()(self.hidden(tokens, self.columns_of_rows(tokens)))  # [B, T, V]

    def logits_head(self) -> Head:
        """The head of a model with a single one."""
        assert isinstance(self.head, nn.Linear)
        return Head(self.head.weight)

    def columns_of_rows(self, tokens: Tensor) -> dict[str, Tensor]:
        """Return ``columns_of`` of each row, ``int64[B, T]`` each, on the CPU's time."""
        found = [self.columns_of(row) for row in tokens.cpu().numpy()]
        return {
            name: torch.from_numpy(np.stack([columns[name] for columns in found])).to(tokens.device)
            for name in found[0]
        }

    def nats(self, batch: Batch) -> Tensor:
        """Cross entropy of the targets, float32[B, S]."""
        hidden = self.hidden(batch["input"], batch)  # [B, S, d]
        return head_nats(hidden, self.logits_head(), batch["target"], self.kernels.logits_at_once)  # [B, S]

    def flops(self) -> Flops:
        """Count the operations of a row: local networks run once a symbol, the global one once a place for a patch."""
        by_part: dict[str, int] = {}
        for name, module in self.named_modules():
            events = self.context_length
            if name.startswith(("trunk", "enter", "quantizer")):
                events = self.num_patches
            elif name == "patch_attention.key_value":
                events = self.num_patches + 1
            activation_flops = getattr(module, "activation_flops_per_token", None)
            if isinstance(module, nn.Linear):
                by_part[name] = events * 2 * module.in_features * module.out_features
            elif activation_flops is not None:
                by_part[name] = events * int(activation_flops())
        return Flops(self.context_length, by_part)

    def uniform_nats(self) -> float | None:
        """The logarithm of the number of symbols."""
        return math.log(self.vocab_size)

    def random_batch_of(self, symbols: list[int], num_rows: int, max_events: int) -> dict[str, Tensor]:
        """Draw inputs among a few symbols, so that patches of all kinds occur, and independent targets."""
        batch = super().random_batch(num_rows, max_events)
        ids = torch.tensor(symbols, device=batch["input"].device)[batch["input"] % len(symbols)]  # int64[B, S]
        return {**batch, "input": ids, **self.columns_of_rows(ids)}

    def new_cache(self, lanes: int) -> LocalGlobalCache:
        """Symbols and patches of ``lanes`` rows."""
        return LocalGlobalCache(lanes, self.context_length, self.num_patches)

    def next_logits(self, tokens: Tensor, last: Tensor, cache: Cache | None, positions: Tensor | None) -> Tensor:
        """Logits after position ``last`` of each row; see ``NextTokenModel.next_logits``."""
        if cache is None:
            return super().next_logits(tokens, last, cache, positions)
        assert isinstance(cache, LocalGlobalCache)
        assert positions is not None
        hidden = read_with_cache(self, tokens, positions, cache)  # [B, T, d]
        return self.logits_head()(hidden[torch.arange(len(tokens), device=tokens.device), last])  # [B, V]
