"""A decoder-only transformer and its configuration, with two presets.

``GPTConfig.workshop`` is the GPT-2 of the "train it on a laptop" workshops; ``GPTConfig.modern`` swaps each
part for what has replaced it since. Both run through one ``GPT``, so an experiment can change one part at a
time.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any, Literal, get_args

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from fastcompress.errors import ConfigError
from fastcompress.models.blocks import (
    AttentionKind,
    Block,
    CausalSelfAttention,
    GeluMLP,
    LanguageModel,
    MLPKind,
    NormKind,
    SwiGLU,
    make_norm,
)
from fastcompress.models.settings import settings_from_json

PositionKind = Literal["learned", "rope"]
InitKind = Literal["gpt2", "zero_output"]

INIT_STD = 0.02
UNTIED_HEAD_STD = 0.002  # first logits near 0, so the first loss is near ln(vocabulary)

_CHOICES: dict[str, tuple[str, ...]] = {
    "positions": get_args(PositionKind),
    "norm": get_args(NormKind),
    "mlp": get_args(MLPKind),
    "attention": get_args(AttentionKind),
    "init": get_args(InitKind),
}


@dataclass(frozen=True, kw_only=True)
class GPTConfig:
    """Everything that decides a GPT's shape. Raises ``ConfigError`` on a value that cannot work.

    Attributes:
        vocab_size: Token ids, the end-of-document id included (``codec.vocab_size + 1``).
        context_length: Most positions in one forward pass.
        num_layers, num_heads, width: Blocks, attention heads per block, size of the residual stream.
        positions: ``"learned"`` table added to the embedding, or ``"rope"``.
        norm, mlp: Kinds of norm and MLP (``models/blocks.py``).
        qk_norm: Normalize queries and keys in each head.
        bias: Biases in linear layers and LayerNorm (the head never has one).
        tied_head: The output projection is the embedding table.
        dropout: On embedding, attention weights and both residual branches.
        attention: ``"sdpa"`` (fused kernel) or ``"plain"`` (written out); same function.
        init: ``"gpt2"``: N(0, 0.02), output projections divided by sqrt(2 layers);
            ``"zero_output"``: N(0, 0.02) with output projections zero, so every block starts as the identity.
    """

    vocab_size: int
    context_length: int = 256
    num_layers: int = 6
    num_heads: int = 6
    width: int = 384
    positions: PositionKind = "rope"
    norm: NormKind = "rmsnorm"
    mlp: MLPKind = "swiglu"
    qk_norm: bool = True
    bias: bool = False
    tied_head: bool = False
    dropout: float = 0.0
    attention: AttentionKind = "sdpa"
    init: InitKind = "zero_output"

    def __post_init__(self) -> None:
        for name in ("vocab_size", "context_length", "num_layers", "num_heads", "width"):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise ConfigError(f"{name} must be a whole number of at least 1, not {value!r}")
        for name, choices in _CHOICES.items():
            if getattr(self, name) not in choices:
                raise ConfigError(f"{name} must be one of {', '.join(choices)}, not {getattr(self, name)!r}")
        if self.width % self.num_heads:
            raise ConfigError(f"width {self.width} must be a multiple of num_heads {self.num_heads}")
        if self.positions == "rope" and self.width // self.num_heads % 2:
            raise ConfigError(f"rope needs an even head size, not width / num_heads = {self.width // self.num_heads}")
        if not isinstance(self.dropout, (int, float)) or not 0.0 <= self.dropout < 1.0:
            raise ConfigError(f"dropout must be in [0, 1), not {self.dropout!r}")

    @classmethod
    def workshop(cls, *, vocab_size: int, **overrides: Any) -> GPTConfig:
        """GPT-2 at workshop size: learned positions, LayerNorm, GELU, tied head, 6 layers x 384, context 256.

        No biases and dropout 0.2, as in the published character-level run on Tiny Shakespeare it is compared
        to.
        """
        preset: dict[str, Any] = {
            "positions": "learned",
            "norm": "layernorm",
            "mlp": "gelu",
            "qk_norm": False,
            "tied_head": True,
            "dropout": 0.2,
            "init": "gpt2",
        }
        return cls.from_json({"vocab_size": vocab_size, **preset, **overrides})

    @classmethod
    def modern(cls, *, vocab_size: int, **overrides: Any) -> GPTConfig:
        """RoPE, gainless RMSNorm, SwiGLU, QK norm, untied head, zero-initialised output projections."""
        return cls.from_json({"vocab_size": vocab_size, **overrides})

    def to_json(self) -> dict[str, Any]:
        """Return the fields as plain values; ``from_json`` restores the configuration from them."""
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, fields: dict[str, Any]) -> GPTConfig:
        """Build from what ``to_json`` returned. Raises ConfigError for an unknown name or without ``vocab_size``."""
        if "vocab_size" not in fields:
            raise ConfigError("the model configuration lacks vocab_size")
        return settings_from_json(cls, fields, "model")


class GPT(LanguageModel):
    """Causal transformer over token ids; ``tokens int64[B, T] -> logits float[B, T, V]``, ``T <= context_length``.

    Raises ``ConfigError`` when T exceeds the context. Initialisation draws from torch's global generator.
    """

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.config = config
        self.context_length, self.vocab_size = config.context_length, config.vocab_size
        self.embedding = nn.Embedding(config.vocab_size, config.width)
        learned = config.positions == "learned"
        self.positions = nn.Embedding(config.context_length, config.width) if learned else None
        self.dropout = nn.Dropout(config.dropout)
        self.blocks = nn.ModuleList(_make_block(config) for _ in range(config.num_layers))
        self.final_norm = make_norm(config.norm, config.width, bias=config.bias)
        self.head = nn.Linear(config.width, config.vocab_size, bias=False)
        if config.tied_head:
            self.head.weight = self.embedding.weight
        self.init_weights()

    @torch.no_grad()
    def init_weights(self) -> None:
        """Draw every parameter afresh (norm gains stay one)."""
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

    def forward(self, tokens: Tensor) -> Tensor:
        num_positions = tokens.size(1)
        if num_positions > self.context_length:
            raise ConfigError(f"{num_positions} tokens exceed the model's context of {self.context_length}: crop them")
        x = self.embedding(tokens)  # [B, T, D]
        if self.positions is not None:
            x = x + self.positions.weight[:num_positions]  # [B, T, D] + [T, D]
        x = self.dropout(x)  # [B, T, D]
        for block in self.blocks:
            x = block(x)  # [B, T, D]
        logits: Tensor = self.head(self.final_norm(x))  # [B, T, V]
        return logits

    def num_parameters(self, *, embedding: bool = True) -> int:
        """Count the parameters, a tied head once.

        Args:
            embedding: Count the embedding tables (and a head tied to one), too.
        """
        tables = {id(m.weight) for m in self.modules() if isinstance(m, nn.Embedding)}
        return sum(p.numel() for p in self.parameters() if embedding or id(p) not in tables)


def _make_block(config: GPTConfig) -> Block:
    attention = CausalSelfAttention(
        config.width,
        config.num_heads,
        config.context_length,
        rotary=config.positions == "rope",
        qk_norm=config.qk_norm,
        bias=config.bias,
        dropout=config.dropout,
        kind=config.attention,
    )
    mlp = GeluMLP(config.width, bias=config.bias) if config.mlp == "gelu" else SwiGLU(config.width, bias=config.bias)
    norms = tuple(make_norm(config.norm, config.width, bias=config.bias) for _ in range(2))
    return Block(attention, mlp, (norms[0], norms[1]), dropout=config.dropout)


def next_token_loss(logits: Tensor, targets: Tensor, *, reduction: Literal["mean", "none"] = "mean") -> Tensor:
    """Cross entropy in nats, in float32 whatever the logits' type: a scalar, or ``float32[B, T]``."""
    flat = logits.float().flatten(0, -2)  # [B T, V]
    losses = F.cross_entropy(flat, targets.flatten(), reduction=reduction)  # [] or [B T]
    return losses if reduction == "mean" else losses.view_as(targets)  # [] or [B, T]
