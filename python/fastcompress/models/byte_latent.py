"""A byte-latent transformer: a small network reads and writes bytes, a large one thinks in patches of them.

    bytes  --encoder-->  h [S, d]            local blocks over a window of bytes
    h at the last byte of each patch  -->  x [P, D]  --global blocks-->  g [P, D]
    h + (g of the newest patch known)  --decoder-->  logits of the next byte

Pagnoni et al., "Byte Latent Transformer" (arXiv 2412.09871); taking the state at a patch's last byte, and adding what
the global network makes of it to the bytes that follow: Slagle, "SpaceByte" (arXiv 2404.14408). Optionally, bytes also
attend to all patches known to them. Where patches end is a column of the rows (``data/patches.py``); the model sees
nothing of a patch before the byte with which it becomes known, so its likelihood of the bytes is exact.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from fastcompress.codec import ByteCodec, Codec
from fastcompress.data.patches import PATCH_END, PatchRows, patch_ends, patch_rows
from fastcompress.errors import ConfigError
from fastcompress.models.attention import CausalSelfAttention, plain_attention
from fastcompress.models.blocks import Block, RMSNorm, make_mlp
from fastcompress.models.byte_latent_decoding import ByteLatentCache, read_with_cache
from fastcompress.models.cross_entropy import Head, bytes_per_logit, head_nats, piece_of
from fastcompress.models.flops import Flops
from fastcompress.models.protocol import DEFAULT_KERNELS, AttentionKind, Batch, Kernels, LanguageModel, ModelSize
from fastcompress.models.settings import check_counts, settings_from_json
from fastcompress.models.tokens import NextTokenModel
from fastcompress.models.trunk import Cache, Context, Trunk, in_stream_type

VOCAB_SIZE = 257  # bytes, and the end of a document
INIT_STD, HEAD_STD = 0.02, 0.002
_BYTES = ByteCodec()


@dataclass(frozen=True, kw_only=True)
class ByteLatentConfig:
    """The settings of a `ByteLatent`.

    Attributes:
        context_length: Bytes in a row, S.
        width: D, of the global network.
        num_layers, num_heads: Of the global network.
        local_width: d, of encoder and decoder; default: half of the global width.
        encoder_layers, decoder_layers, local_heads: Of the local networks.
        local_window: Bytes that a byte sees in the local networks, itself included.
        cross_attention: Bytes attend to all patches known to them, before the decoder.
        patcher: "space", "lz77" or "static" (``data/patches.py``).
        min_bytes, max_bytes: Sizes of patches. A row has S // min_bytes places for them.
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
    patcher: str = "space"
    min_bytes: int = 4
    max_bytes: int = 16

    kind: ClassVar[str] = "byte-latent"

    def __post_init__(self) -> None:
        counts = ("context_length", "width", "num_layers", "num_heads", "encoder_layers", "decoder_layers")
        check_counts(self, *counts, "local_heads", "local_window", "min_bytes", "max_bytes")
        check_counts(self, "local_width", may_lack=("local_width",))
        for name, width, heads in (("width", self.width, self.num_heads), ("local_width", self.d, self.local_heads)):
            if width % (2 * heads):
                raise ConfigError(f"{name} is {width}; it must be a multiple of twice its {heads} heads")

    @property
    def d(self) -> int:
        """The local width."""
        return self.local_width or self.width // 2

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any], codec: Codec) -> ByteLatentConfig:
        """Make the configuration for a codec, which must be bytes. Raises ConfigError for unknown settings."""
        config = cls.from_json(settings)
        config.rows(codec)
        return config

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> ByteLatentConfig:
        """Build from what ``to_json`` returned. Raises ConfigError for an unknown name."""
        return settings_from_json(cls, {name: value for name, value in fields.items() if name != "kind"}, "model")

    def to_json(self) -> dict[str, Any]:
        """Return the fields as plain values, with ``kind``."""
        return {"kind": self.kind, **self.__dict__}

    def rows(self, codec: Codec) -> PatchRows:
        """Return rows of bytes and ends of patches. Raises ConfigError if the codec is not bytes."""
        return patch_rows(codec, self.context_length, self.patcher, self.min_bytes, self.max_bytes)

    def build(self, kernels: Kernels = DEFAULT_KERNELS) -> ByteLatent:
        """Make the model; its weights are drawn from torch's global generator."""
        return ByteLatent(self, kernels)

    def size(self, device_type: str = "cpu", kernels: Kernels = DEFAULT_KERNELS) -> ModelSize:
        """Estimate what the model keeps in memory, without making it."""
        with torch.device("meta"):
            model = ByteLatent(self, kernels)
        patches = self.context_length // self.min_bytes
        local = (self.encoder_layers + self.decoder_layers) * self.d * self.context_length
        roles = model.parameter_roles()
        return ModelSize(
            parameters=model.num_parameters(),
            table_parameters=VOCAB_SIZE * self.d * 2,
            matrix_parameters=sum(p.numel() for name, p in model.named_parameters() if roles[name] == "matrix"),
            activations_per_row=34 * (local + self.num_layers * self.width * patches),
            logits_per_row=self.context_length * VOCAB_SIZE,
            logits_at_once=max(kernels.logits_at_once or piece_of(device_type), VOCAB_SIZE),
            bytes_per_logit=bytes_per_logit(device_type),
        )


def _blocks(layers: int, width: int, heads: int, length: int, window: int | None, kernels: Kernels) -> Trunk:
    """Pre-norm blocks as in the preset ``modern``: rotary positions, norms of queries and keys, SwiGLU."""
    return Trunk(
        Block(
            CausalSelfAttention(
                width, heads, length,
                rotary=True, qk_norm=True, bias=False, dropout=0.0, kind=kernels.attention, window=window,
            ),
            make_mlp("swiglu", width, bias=False),
            (RMSNorm(), RMSNorm()),
            dropout=0.0,
        )
        for _ in range(layers)
    )  # fmt: skip


class PatchAttention(nn.Module):
    """Bytes attend to the patches known to them; ``x [B, S, d], latents [B, P + 1, D] -> [B, S, d]``."""

    def __init__(self, width: int, latent_width: int, num_heads: int, num_latents: int, kind: AttentionKind) -> None:
        super().__init__()
        self.num_heads, self.num_latents, self.kind = num_heads, num_latents, kind
        self.query = nn.Linear(width, width, bias=False)
        self.key_value = nn.Linear(latent_width, 2 * width, bias=False)
        self.output = nn.Linear(width, width, bias=False)

    def forward(self, x: Tensor, latents: Tensor, known: Tensor) -> Tensor:
        """``known int64[B, S]``: the first so many latents, and one more, are visible."""
        query, key, value = (
            part.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
            for part in (self.query(x), *self.key_value(latents).chunk(2, dim=-1))
        )  # [B, H, S, K], 2 x [B, H, P + 1, K]
        visible = torch.arange(latents.size(1), device=x.device) <= known[:, None, :, None]  # bool[B, 1, S, P + 1]
        query, key = (F.rms_norm(z, (z.size(-1),)).to(value.dtype) for z in (query, key))
        if self.kind == "plain":
            mixed = plain_attention(query, key, value, dropout=0.0, visible=visible)  # [B, H, S, K]
        else:
            mixed = F.scaled_dot_product_attention(query, key, value, attn_mask=visible)  # [B, H, S, K]
        added: Tensor = self.output(mixed.transpose(1, 2).flatten(2))  # [B, S, d]
        return added

    def activation_flops_per_token(self) -> int:
        """Scores and weighted sum over all latents, 2 per multiply-add."""
        return 4 * self.query.out_features * self.num_latents


class ByteLatent(NextTokenModel):
    """See the head of this file; ``tokens int64[B, T] -> logits float[B, T, 257]``."""

    config: ByteLatentConfig
    vocab_size = VOCAB_SIZE

    def __init__(self, config: ByteLatentConfig, kernels: Kernels = DEFAULT_KERNELS) -> None:
        super().__init__()
        self.config, self.kernels, self.context_length = config, kernels, config.context_length
        self.patcher = config.rows(_BYTES).patcher
        self.num_patches = config.context_length // config.min_bytes
        local = (config.d, config.local_heads, config.context_length, config.local_window, kernels)
        self.embedding = nn.Embedding(VOCAB_SIZE, config.d)
        self.encoder = _blocks(config.encoder_layers, *local)
        self.enter = nn.Linear(config.d, config.width, bias=False)
        self.start = nn.Parameter(torch.zeros(config.width))  # [D]: what bytes read before the first patch is known
        self.trunk = _blocks(config.num_layers, config.width, config.num_heads, max(1, self.num_patches), None, kernels)
        self.leave = nn.Linear(config.width, config.d, bias=False)
        heads = (config.local_heads, self.num_patches + 1, kernels.attention)
        self.patch_attention = PatchAttention(config.d, config.width, *heads) if config.cross_attention else None
        self.decoder = _blocks(config.decoder_layers, *local)
        self.norms = nn.ModuleList(RMSNorm() for _ in range(4))
        self.head = nn.Linear(config.d, VOCAB_SIZE, bias=False)
        self.init_weights()

    @torch.no_grad()
    def init_weights(self) -> None:
        """Draw every parameter afresh; what adds to a stream starts at zero, and the skip from patches small."""
        nn.init.zeros_(self.start)
        for name, module in self.named_modules():
            if isinstance(module, (nn.Linear, nn.Embedding)):
                nn.init.normal_(module.weight, std=INIT_STD)
                if name.endswith(".output"):
                    nn.init.zeros_(module.weight)
        nn.init.normal_(self.head.weight, std=HEAD_STD)

    rows = LanguageModel.rows  # those of the configuration

    def latents(self, encoded: Tensor, ends: Tensor) -> tuple[Tensor, Tensor]:
        """Let the global network read the patches.

        Args:
            encoded: ``float[B, S, d]``, the encoder's states.
            ends: ``int64[B, S]``, where a patch becomes known, its end; else 0.

        Returns:
            ``float[B, P + 1, D]``: what bytes read before any patch, then each patch; and ``int64[B, S]``, the patches
            known with each byte.
        """
        closes = ends > 0  # bool[B, S]
        known = closes.cumsum(1).clamp(max=self.num_patches)  # int64[B, S]
        places = torch.where(closes, known - 1, self.num_patches)  # int64[B, S]; one place is for all that is none
        sources = ends.new_zeros(len(ends), self.num_patches + 1)  # int64[B, P + 1]
        sources = sources.scatter(1, places, (ends - 1).clamp(min=0))[:, :-1]  # int64[B, P]
        read = encoded.gather(1, sources[..., None].expand(-1, -1, encoded.size(-1)))  # [B, P, d]
        latents = self.think(read, Context(sources))  # [B, P, D]
        start = self.start.to(latents.dtype).expand(len(ends), 1, -1)  # [B, 1, D]
        return torch.cat((start, latents), dim=1), known

    def think(self, read: Tensor, context: Context) -> Tensor:
        """What the global network makes of patches, ``float[B, P, D]``, from the states ``[B, P, d]`` at their ends."""
        x = self.enter(self.norms[0](read)).to(read.dtype)  # [B, P, D]
        latents: Tensor = self.norms[1](self.trunk(x, context))  # [B, P, D]
        return latents

    def add_patches(self, x: Tensor, latents: Tensor, known: Tensor) -> Tensor:
        """Add to bytes ``x [B, S, d]`` what the first ``known [B, S]`` of ``latents [B, P + 1, D]`` say."""
        newest = latents.gather(1, known[..., None].expand(-1, -1, latents.size(-1)))  # [B, S, D]
        x = x + self.leave(newest).to(x.dtype)  # [B, S, d]
        if self.patch_attention is not None:
            x = x + self.patch_attention(self.norms[2](x), latents, known).to(x.dtype)  # [B, S, d]
        return x

    def hidden(self, ids: Tensor, ends: Tensor) -> Tensor:
        """What the head reads, ``float[B, S, d]``, from ``ids`` and ``ends int64[B, S]``."""
        context = Context(ids)
        x = self.encoder(in_stream_type(self.embedding(ids)), context)  # [B, S, d]
        if self.num_patches:
            x = self.add_patches(x, *self.latents(x, ends))  # [B, S, d]
        normed: Tensor = self.norms[3](self.decoder(x, context))  # [B, S, d]
        return normed

    def forward(self, tokens: Tensor) -> Tensor:
        return Head(self.head.weight)(self.hidden(tokens, self.ends_of(tokens)))  # [B, T, 257]

    def ends_of(self, tokens: Tensor) -> Tensor:
        """Where patches of ids become known, as the rows have it: ``int64[B, T]``, on the CPU's time."""
        sizes = (self.config.min_bytes, self.config.max_bytes)
        ends = [torch.from_numpy(patch_ends(row, self.patcher, *sizes)) for row in tokens.cpu().numpy()]
        return torch.stack(ends).to(tokens.device)

    def nats(self, batch: Batch) -> Tensor:
        """Cross entropy of the targets, float32[B, S]."""
        hidden = self.hidden(batch["input"], batch[PATCH_END])  # [B, S, d]
        return head_nats(hidden, Head(self.head.weight), batch["target"], self.kernels.logits_at_once)  # [B, S]

    def flops(self) -> Flops:
        """Count the operations of a row: local networks run once a byte, the global one once a place for a patch."""
        by_part: dict[str, int] = {}
        for name, module in self.named_modules():
            events = self.context_length
            if name.startswith(("trunk", "enter")):
                events = self.num_patches
            elif name == "patch_attention.key_value":
                events = self.num_patches + 1
            activation_flops = getattr(module, "activation_flops_per_token", None)
            if isinstance(module, nn.Linear):
                by_part[name] = events * 2 * module.in_features * module.out_features
            elif activation_flops is not None:
                by_part[name] = events * int(activation_flops())
        return Flops(self.context_length, by_part)

    def uniform_nats(self) -> float:
        """The logarithm of the number of bytes and the end."""
        return math.log(VOCAB_SIZE)

    def random_batch(self, num_rows: int, max_events: int) -> dict[str, Tensor]:
        """Draw bytes of a small alphabet, so that patches of all kinds occur, and let the targets be what follows."""
        batch = super().random_batch(num_rows, max_events)
        letters = torch.tensor(list(b"ab .\n"), device=batch["input"].device)
        ids = letters[batch["input"] % len(letters)]  # int64[B, S]
        return {**batch, "input": ids, PATCH_END: self.ends_of(ids)}

    def new_cache(self, lanes: int) -> ByteLatentCache:
        """Bytes and patches of ``lanes`` rows."""
        return ByteLatentCache(lanes, self.context_length, self.num_patches)

    def next_logits(self, tokens: Tensor, last: Tensor, cache: Cache | None, positions: Tensor | None) -> Tensor:
        """Logits after position ``last`` of each row; see ``NextTokenModel.next_logits``."""
        if cache is None:
            return super().next_logits(tokens, last, cache, positions)
        assert isinstance(cache, ByteLatentCache)
        assert positions is not None
        hidden = read_with_cache(self, tokens, positions, cache)  # [B, T, d]
        return Head(self.head.weight)(hidden[torch.arange(len(tokens), device=tokens.device), last])  # [B, 257]
