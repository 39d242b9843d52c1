"""A decoder-only transformer and its configuration, with two presets.

``GPTConfig.workshop`` is the GPT-2 of the "train it on a laptop" workshops; ``GPTConfig.modern`` swaps each
part for what has replaced it since. Both run through one ``GPT``, so an experiment can change one part at a
time.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn

from fastcompress.codec import Codec
from fastcompress.data.rows import Rows, num_symbols
from fastcompress.errors import ConfigError
from fastcompress.models.blocks import (
    Block,
    CausalSelfAttention,
    GeluMLP,
    MLPKind,
    NormKind,
    SwiGLU,
    make_norm,
    swiglu_hidden,
)
from fastcompress.models.cross_entropy import head_nats, next_token_loss, piece_of
from fastcompress.models.protocol import DEFAULT_KERNELS, Batch, Kernels, ModelSize
from fastcompress.models.settings import check_choices, check_counts, is_number, settings_from_json
from fastcompress.models.tokens import NextTokenModel, token_rows
from fastcompress.models.trunk import Cache, Context, Trunk

__all__ = ["GPT", "GPTConfig", "next_token_loss"]

PositionKind = Literal["learned", "rope"]
InitKind = Literal["gpt2", "zero_output"]

INIT_STD = 0.02
UNTIED_HEAD_STD = 0.002  # first logits near 0, so the first loss is near ln(vocabulary)


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
    init: InitKind = "zero_output"

    kind: ClassVar[str] = "gpt"

    def __post_init__(self) -> None:
        check_counts(self, "vocab_size", "context_length", "num_layers", "num_heads", "width")
        check_choices(self, positions=PositionKind, norm=NormKind, mlp=MLPKind, init=InitKind)
        if self.width % self.num_heads:
            raise ConfigError(f"width {self.width} must be a multiple of num_heads {self.num_heads}")
        if self.positions == "rope" and self.width // self.num_heads % 2:
            raise ConfigError(f"rope needs an even head size, not width / num_heads = {self.width // self.num_heads}")
        if not is_number(self.dropout) or not 0.0 <= self.dropout < 1.0:
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

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any], codec: Codec) -> GPTConfig:
        """Make the configuration for a codec: a ``preset`` ("modern" if none is named) with fields laid over it.

        Raises:
            ConfigError: There is no such preset or field.
        """
        fields = {"vocab_size": num_symbols(codec), **settings}
        preset = fields.pop("preset", "modern")
        if preset not in PRESETS:
            raise ConfigError(f"preset must be one of {', '.join(PRESETS)}, not {preset!r}")
        config: GPTConfig = getattr(cls, preset)(**fields)
        return config

    def to_json(self) -> dict[str, Any]:
        """Return the fields as plain values, with ``kind``; ``from_json`` restores the configuration from them."""
        return {"kind": self.kind, **dataclasses.asdict(self)}

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> GPTConfig:
        """Build from what ``to_json`` returned. Raises ConfigError for an unknown name or without ``vocab_size``."""
        if "vocab_size" not in fields:
            raise ConfigError("the model configuration lacks vocab_size")
        if "attention" in fields:
            raise ConfigError("attention is a setting of the machine, not of the model; set machine.attention")
        return settings_from_json(cls, {name: value for name, value in fields.items() if name != "kind"}, "model")

    def rows(self, codec: Codec) -> Rows:
        """Return rows of ids. Raises ConfigError if the vocabulary is not the codec's."""
        return token_rows(codec, self.vocab_size, self.context_length)

    def build(self, kernels: Kernels = DEFAULT_KERNELS) -> GPT:
        """Make the model; its weights are drawn from torch's global generator."""
        return GPT(self, kernels)

    def size(self, device_type: str = "cpu", kernels: Kernels = DEFAULT_KERNELS) -> ModelSize:
        """Estimate the numbers that it keeps in memory, without making it."""
        tables = self.vocab_size * self.width * (1 if self.tied_head else 2)
        positions = self.context_length * self.width if self.positions == "learned" else 0
        final_norm = self.width * (1 + self.bias) if self.norm == "layernorm" else 0
        # The fused kernel keeps no scores, but on the CPU there is none with dropout.
        has_scores = kernels.attention == "plain" or (self.dropout > 0 and device_type == "cpu")
        scores = 3 * self.num_heads * self.context_length if has_scores else 0
        kept = self._activations_per_event_and_layer() + scores
        return ModelSize(
            parameters=tables + positions + self.num_layers * self._block_parameters() + final_norm,
            table_parameters=tables,
            activations_per_row=self.context_length * self.num_layers * kept,
            # Of each block the inputs of attention, MLP and norms; of one, all of it with its gradients.
            recomputed_per_row=self.context_length * (self.num_layers * 6 * self.width + kept + kept // 2),
            logits_per_row=self.context_length * self.vocab_size,
            logits_at_once=max(kernels.logits_at_once or piece_of(device_type), self.vocab_size),
        )

    def _hidden(self) -> int:
        return 4 * self.width if self.mlp == "gelu" else swiglu_hidden(self.width)

    def _block_parameters(self) -> int:
        width, hidden = self.width, self._hidden()
        block = 4 * width**2 + (2 if self.mlp == "gelu" else 3) * width * hidden
        if self.bias:  # of queries, keys, values and attention's output; of the MLP
            block += 4 * width + (hidden if self.mlp == "gelu" else 2 * hidden) + width
        if self.norm == "layernorm":
            block += 2 * width * (1 + self.bias)
        return block

    def _activations_per_event_and_layer(self) -> int:
        """How many numbers autograd keeps of a block for each event, without attention scores."""
        width, hidden = self.width, self._hidden()
        kept = 12 * width  # two norms and their inputs, queries, keys, values, attention's output, and their gradients
        kept += 2 * hidden if self.mlp == "gelu" else 4 * hidden  # SwiGLU: gate, up, silu(gate), product
        kept += 4 * width if self.positions == "rope" else 0
        kept += 4 * width if self.qk_norm else 0
        kept += 3 * width if self.dropout else 0
        return kept


PRESETS = ("workshop", "modern")  # class methods of GPTConfig


class GPT(NextTokenModel):
    """Causal transformer over token ids; ``tokens int64[B, T] -> logits float[B, T, V]``, ``T <= context_length``.

    Raises ``ConfigError`` when T exceeds the context. Initialisation draws from torch's global generator.
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
        self.trunk = Trunk(_make_block(config, kernels) for _ in range(config.num_layers))
        self.final_norm = make_norm(config.norm, config.width, bias=config.bias)
        self.head = nn.Linear(config.width, config.vocab_size, bias=False)
        if config.tied_head:
            self.head.weight = self.embedding.weight
        self.init_weights()

    @property
    def blocks(self) -> nn.ModuleList:
        """The trunk's blocks, lowest first."""
        return self.trunk.blocks

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
        logits: Tensor = self.head(self.hidden(Context(tokens)))  # [B, T, V]
        return logits

    def hidden(self, context: Context) -> Tensor:
        """What the head reads, ``float[B, T, D]``."""
        tokens = context.ids  # int64[B, T]
        num_positions = tokens.size(1)
        if num_positions > self.context_length:
            raise ConfigError(f"{num_positions} tokens exceed the model's context of {self.context_length}: crop them")
        x = self.embedding(tokens)  # [B, T, D]
        if self.positions is not None:
            table = self.positions.weight  # [C, D]
            x = x + (table[:num_positions] if context.positions is None else table[context.positions])  # [B, T, D]
        x = self.trunk(self.dropout(x), context)  # [B, T, D]
        normed: Tensor = self.final_norm(x)  # [B, T, D]
        return normed

    def nats(self, batch: Batch) -> Tensor:
        """Cross entropy of the targets, float32[B, S], in pieces where the logits are large."""
        context = Context(batch["input"], batch.get("position"), batch.get("document"))
        hidden = self.hidden(context)  # [B, S, D]
        return head_nats(hidden, self.head, batch["target"], self.vocab_size, self.kernels.logits_at_once)  # [B, S]

    def new_cache(self, lanes: int) -> Cache:
        """Keys and values of ``lanes`` sequences of at most ``context_length`` ids."""
        return Cache(lanes, self.context_length)

    def next_logits(self, tokens: Tensor, last: Tensor, cache: Cache | None, positions: Tensor | None) -> Tensor:
        """Logits after position ``last`` of each row, with a cache; see ``NextTokenModel.next_logits``."""
        hidden = self.hidden(Context(tokens, positions, cache=cache))  # [B, T, D]
        logits: Tensor = self.head(hidden[torch.arange(len(tokens), device=tokens.device), last])  # [B, V]
        return logits


def _make_block(config: GPTConfig, kernels: Kernels) -> Block:
    attention = CausalSelfAttention(
        config.width,
        config.num_heads,
        config.context_length,
        rotary=config.positions == "rope",
        qk_norm=config.qk_norm,
        bias=config.bias,
        dropout=config.dropout,
        kind=kernels.attention,
    )
    mlp = GeluMLP(config.width, bias=config.bias) if config.mlp == "gelu" else SwiGLU(config.width, bias=config.bias)
    norms = tuple(make_norm(config.norm, config.width, bias=config.bias) for _ in range(2))
    return Block(attention, mlp, (norms[0], norms[1]), dropout=config.dropout)
