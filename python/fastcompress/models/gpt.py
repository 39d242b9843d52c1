"""A decoder-only transformer. Its settings are in ``gpt_settings.py``, its parts in files of their own.

Every preset and every option uses this one ``GPT``, so an experiment can change one part at a time.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from fastcompress.codec import Codec
from fastcompress.data.canonical_rows import LEGAL, CanonicalRows
from fastcompress.data.rows import Rows, num_symbols
from fastcompress.errors import ConfigError
from fastcompress.models.attention import CausalSelfAttention, ValueResidual
from fastcompress.models.attention_residuals import AttentionResidualTrunk
from fastcompress.models.blocks import Block, make_mlp, make_norm
from fastcompress.models.cross_entropy import Head, head_nats, next_token_loss
from fastcompress.models.engram import Engram
from fastcompress.models.gpt_settings import GPTSettings
from fastcompress.models.gpt_size import size_of
from fastcompress.models.presets import DEFAULT_PRESET, PRESETS, shape_of_depth
from fastcompress.models.protocol import DEFAULT_KERNELS, Batch, Kernels, LanguageModel, ModelSize
from fastcompress.models.settings import settings_from_json
from fastcompress.models.spelled_bytes import SpelledBytes
from fastcompress.models.tokens import NextTokenModel, token_bytes, token_rows
from fastcompress.models.trunk import Cache, Context, Trunk, in_stream_type

__all__ = ["GPT", "GPTConfig", "next_token_loss"]

INIT_STD = 0.02
UNTIED_HEAD_STD = 0.002  # first logits near 0, so the first loss is near ln(vocabulary)


@dataclass(frozen=True, kw_only=True)
class GPTConfig(GPTSettings):
    """The configuration of a GPT: the fields of `GPTSettings`, and what is made from them."""

    @classmethod
    def from_preset(cls, preset: str, *, vocab_size: int, **overrides: Any) -> GPTConfig:
        """Make the configuration of a preset (``models/presets.py``) with fields that override it.

        Raises:
            ConfigError: There is no such preset or field.
        """
        if preset not in PRESETS:
            raise ConfigError(f"preset must be one of {', '.join(PRESETS)}, not {preset!r}")
        return cls.from_json({"vocab_size": vocab_size, **PRESETS[preset], **overrides})

    @classmethod
    def workshop(cls, *, vocab_size: int, **overrides: Any) -> GPTConfig:
        """Make a small GPT-2: 6 layers x 384, context 256, dropout 0.2, no biases."""
        return cls.from_preset("workshop", vocab_size=vocab_size, **overrides)

    @classmethod
    def modern(cls, *, vocab_size: int, **overrides: Any) -> GPTConfig:
        """Make a GPT with RoPE, RMSNorm without gain, SwiGLU, QK norm, untied head and zero output projections."""
        return cls.from_preset("modern", vocab_size=vocab_size, **overrides)

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any], codec: Codec) -> GPTConfig:
        """Make the configuration for a codec.

        Args:
            settings: Fields, and two more: ``preset``, "modern" if none is named, over which all others are laid; and
                ``depth``, the number of layers, from which width and heads follow.
            codec: The codec of the tokens.

        Raises:
            ConfigError: There is no such preset or field, or a value cannot work.
        """
        fields = {"vocab_size": num_symbols(codec), **settings}
        preset, depth = fields.pop("preset", DEFAULT_PRESET), fields.pop("depth", None)
        if depth is not None:
            if not isinstance(depth, int) or isinstance(depth, bool) or depth < 1:
                raise ConfigError(f"depth is {depth!r}; it must be a whole number of at least 1")
            fields = {**shape_of_depth(depth), **fields}
        return cls.from_preset(preset, **fields)

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> GPTConfig:
        """Build from what ``to_json`` returned. Raises ConfigError for an unknown name or without ``vocab_size``."""
        if "vocab_size" not in fields:
            raise ConfigError("the model configuration lacks vocab_size")
        if "attention" in fields:
            raise ConfigError("attention is a setting of the machine, not of the model; set machine.attention")
        return settings_from_json(cls, {name: value for name, value in fields.items() if name != "kind"}, "model")

    def rows(self, codec: Codec) -> Rows:
        """Return rows of ids, with masks if they are ``canonical``.

        Raises ConfigError if the vocabulary is not the codec's, or if there is no mask for it.
        """
        rows = token_rows(codec, self.vocab_size, self.context_length)
        return CanonicalRows(codec, self.context_length) if self.canonical else rows

    def build(self, kernels: Kernels = DEFAULT_KERNELS) -> GPT:
        """Make the model; its weights are drawn from torch's global generator."""
        return GPT(self, kernels)

    def size(self, device_type: str = "cpu", kernels: Kernels = DEFAULT_KERNELS) -> ModelSize:
        """Estimate the number of values that the model keeps in memory, without making it."""
        return size_of(self, device_type, kernels)


class GPT(NextTokenModel):
    """Causal transformer over token ids; ``tokens int64[B, T] -> logits float[B, T, V]``, ``T <= context_length``.

    Raises ``ConfigError`` if T exceeds the context. Initialization draws from torch's global generator.
    """

    config: GPTConfig
    renamed_parameters: ClassVar[dict[str, str]] = {"blocks.": "trunk.blocks."}  # in checkpoints of version 1

    def __init__(self, config: GPTConfig, kernels: Kernels = DEFAULT_KERNELS) -> None:
        super().__init__()
        self.config, self.kernels = config, kernels
        self.context_length, self.vocab_size = config.context_length, config.vocab_size
        self.embedding = nn.Embedding(config.vocab_size, config.width)
        learned = config.positions == "learned"
        self.positions = nn.Embedding(config.context_length, config.width) if learned else None
        self.dropout = nn.Dropout(config.dropout)
        self.trunk = _make_trunk(config, [_make_block(config, kernels, layer) for layer in range(config.num_layers)])
        self.final_norm = make_norm(config.norm, config.width, bias=config.bias, epsilon=config.norm_epsilon)
        self.head = nn.Linear(config.width, config.vocab_size, bias=False)
        if config.tied_head:
            self.head.weight = self.embedding.weight
        spelled = (config.vocab_size, config.spelled_bytes, config.width)
        self.spelled_input = SpelledBytes(*spelled) if config.spelled_bytes else None
        self.spelled_head = (
            self.spelled_input if config.tied_head or not config.spelled_bytes else SpelledBytes(*spelled)
        )
        self.init_weights()

    rows = LanguageModel.rows  # those of the configuration

    def read_codec(self, codec: Codec) -> None:
        """Pass the bytes of each token to the parts that use them. Raises ConfigError if tokens have none."""
        readers: list[Any] = [module for module in self.modules() if hasattr(module, "read_tokens")]
        tokens = token_bytes(codec) if readers else []
        for reader in readers:
            reader.read_tokens(tokens)

    @property
    def blocks(self) -> nn.ModuleList:
        """The trunk's blocks, lowest first."""
        return self.trunk.blocks

    @torch.no_grad()
    def init_weights(self) -> None:
        """Redraw every parameter (norm gains stay one)."""
        config = self.config
        for name, module in self.named_modules():
            if isinstance(module, nn.Linear):
                nn.init.normal_(module.weight, std=INIT_STD)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
                if name.endswith(".output"):  # 2 a block write into the residual stream: keep their sum's size
                    module.weight *= 0.0 if config.init == "zero_output" else 1 / math.sqrt(2 * config.num_layers)
            elif isinstance(module, nn.Embedding):
                nn.init.normal_(module.weight, std=INIT_STD)
        if config.tied_head and config.init == "zero_output":
            # The last position's own embedding reaches the head unmixed, so its logit is width * std at
            # first.
            nn.init.normal_(self.embedding.weight, std=1 / config.width)
        elif not config.tied_head:
            nn.init.normal_(self.head.weight, std=UNTIED_HEAD_STD)
        own_starts: list[Any] = [part for part in self.modules() if part is not self and hasattr(part, "init_weights")]
        for part in own_starts:
            part.init_weights()

    def forward(self, tokens: Tensor) -> Tensor:
        return self.make_head()(self.hidden(Context(tokens)))  # [B, T, V]

    def make_head(self, cache: Cache | None = None) -> Head:
        """Return the head as it is now.

        It is made once per pass, so that pieces of the logits share its rows; a cache keeps them between passes.
        """
        rows = self.head.weight  # [V, D]
        if self.spelled_head is not None:
            kept = {} if cache is None else cache.constants
            if "head rows" not in kept:
                kept["head rows"] = rows + self.spelled_head()
            rows = kept["head rows"]
        return Head(rows, self.config.softcap, in_float8=self.kernels.float8 != "off")

    def hidden(self, context: Context) -> Tensor:
        """Return the input of the head, ``float[B, T, D]``."""
        tokens = context.ids  # int64[B, T]
        num_positions = tokens.size(1)
        if num_positions > self.context_length:
            raise ConfigError(f"{num_positions} tokens exceed the model's context of {self.context_length}: crop them")
        x = self.embedding(tokens)  # [B, T, D]
        if self.spelled_input is not None:
            x = x + self.spelled_input(tokens)  # [B, T, D]
        if self.positions is not None:
            table = self.positions.weight  # [C, D]
            x = x + (table[:num_positions] if context.positions is None else table[context.positions])  # [B, T, D]
        x = self.trunk(in_stream_type(self.dropout(x)), context)  # [B, T, D]
        normed: Tensor = self.final_norm(x)  # [B, T, D]
        return normed

    def nats(self, batch: Batch) -> Tensor:
        """Return the cross entropy of the targets, float32[B, S], in pieces if the logits are large."""
        context = Context(batch["input"], batch.get("position"), batch.get("document"))
        hidden = self.hidden(context)  # [B, S, D]
        return head_nats(
            hidden, self.make_head(), batch["target"], self.kernels.logits_at_once, batch.get(LEGAL)
        )  # [B, S]

    def new_cache(self, lanes: int) -> Cache:
        """Make a cache for ``lanes`` sequences of at most ``context_length`` ids."""
        return Cache(lanes, self.context_length)

    def next_logits(self, tokens: Tensor, last: Tensor, cache: Cache | None, positions: Tensor | None) -> Tensor:
        """Return the logits after position ``last`` of each row; see ``NextTokenModel.next_logits``."""
        hidden = self.hidden(Context(tokens, positions, cache=cache))  # [B, T, D]
        return self.make_head(cache)(hidden[torch.arange(len(tokens), device=tokens.device), last])  # [B, V]


def _make_trunk(config: GPTConfig, blocks: list[Block]) -> Trunk:
    if config.attention_residuals == "off":
        return Trunk(blocks)
    num_groups = config.residual_groups if config.attention_residuals == "block" else None
    return AttentionResidualTrunk(blocks, config.width, num_groups)


def _make_block(config: GPTConfig, kernels: Kernels, layer: int) -> Block:
    attention = CausalSelfAttention(
        config.width,
        config.num_heads,
        config.context_length,
        rotary=config.positions == "rope",
        qk_norm=config.qk_norm,
        bias=config.bias,
        dropout=config.dropout,
        kind=kernels.attention,
        rotary_base=config.rotary_base,
        kv_heads=config.kv_heads,
        reach=config.reach_of(layer),
        value_residual=ValueResidual(is_first=layer == 0) if config.value_residual else None,
        gate=config.attention_gate,
        exclusive=config.exclusive_attention,
    )
    mlp = make_mlp(config.mlp, config.width, bias=config.bias)
    norms = tuple(make_norm(config.norm, config.width, bias=config.bias, epsilon=config.norm_epsilon) for _ in range(2))
    memory = _make_memory(config, layer) if layer in config.engram_layers else None
    return Block(attention, mlp, (norms[0], norms[1]), dropout=config.dropout, memory=memory)


def _make_memory(config: GPTConfig, layer: int) -> Engram:
    return Engram(
        config.width,
        config.vocab_size,
        memory_width=config.memory_width,
        orders=config.engram_orders,
        num_heads=config.engram_heads,
        rows=config.engram_rows,
        salt=layer,
    )
