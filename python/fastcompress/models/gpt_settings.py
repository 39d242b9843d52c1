"""The settings of a GPT and the checks of their values."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from fastcompress.errors import ConfigError
from fastcompress.models.attention import ROTARY_BASE, ExclusiveKind
from fastcompress.models.blocks import MLPKind, NormKind
from fastcompress.models.engram import check_tables
from fastcompress.models.settings import (
    check_choices,
    check_counts,
    check_flags,
    check_fractions,
    check_positive,
    whole_numbers,
)
from fastcompress.models.trunk import WHOLE_REACH, Reach

PositionKind = Literal["learned", "rope"]
InitKind = Literal["gpt2", "zero_output"]
ResidualKind = Literal["off", "full", "block"]


@dataclass(frozen=True, kw_only=True)
class GPTSettings:
    """The fields of a `GPTConfig`. Raises ``ConfigError`` for a value that is out of range.

    Attributes:
        vocab_size: The number of token ids, including the end-of-document id (``codec.vocab_size + 1``).
        context_length: Largest number of positions in a forward pass.
        num_layers, num_heads, width: Blocks, attention heads per block, size of the residual stream.
        positions: ``"learned"`` table added to the embedding, or ``"rope"``.
        norm, mlp: Kinds of norm and MLP (``models/blocks.py``).
        norm_epsilon: Added to the mean square in norms of the stream; None: 1e-6, or 1e-5 for LayerNorm.
        qk_norm: Normalize queries and keys in each head.
        bias: Biases in linear layers and LayerNorm (the head never has one).
        tied_head: The output projection is the embedding table.
        dropout: Dropout probability of the embedding, the attention weights and both residual branches.
        init: ``"gpt2"``: N(0, 0.02), output projections divided by sqrt(2 layers);
            ``"zero_output"``: N(0, 0.02) with zero output projections, so every block starts as the identity.
        rotary_base: Base of RoPE's wavelengths.
        kv_heads: The number of key and value heads, a divisor of ``num_heads``; None: ``num_heads``.
        window: The number of positions in the windows and chunks of layers that have them; None for no windows.
        window_pattern: A letter per layer, repeated: S for a sliding window, C for chunks, of which a position sees its
            own, L for the whole context.
        softcap: Bound c of the logits, ``c tanh(logits / c)``; None for no bound.
        value_residual: Mix the first layer's values into later ones.
        attention_gate: Gate each head's output.
        exclusive_attention: Remove a position's own value from its attention output: "plain", or "gated".
        attention_residuals: Each branch reads a mixture of earlier ones: "full", or "block" for sums of groups.
        residual_groups: The number of groups for "block".
        spelled_bytes: The number of leading bytes of a token whose vectors are added to its own; 0 for none.
        canonical: Give no probability to ids that the codec's encoder would not give, in training, scores and generated
            text (``codec/canonical.py``).
        engram_layers: The layers, counted from 0, with an n-gram memory.
        engram_orders: The lengths n of its n-grams.
        engram_heads: The number of hashes for each order.
        engram_rows: The smallest number of rows of each of its tables.
        engram_width: The number of values per look-up, a multiple of orders times heads; None: the width.
    """

    vocab_size: int
    context_length: int = 256
    num_layers: int = 6
    num_heads: int = 6
    width: int = 384
    positions: PositionKind = "rope"
    norm: NormKind = "rmsnorm"
    norm_epsilon: float | None = None
    mlp: MLPKind = "swiglu"
    qk_norm: bool = True
    bias: bool = False
    tied_head: bool = False
    dropout: float = 0.0
    init: InitKind = "zero_output"
    rotary_base: float = ROTARY_BASE
    kv_heads: int | None = None
    window: int | None = None
    window_pattern: str = "S"
    softcap: float | None = None
    value_residual: bool = False
    attention_gate: bool = False
    exclusive_attention: ExclusiveKind = "off"
    attention_residuals: ResidualKind = "off"
    residual_groups: int = 8
    spelled_bytes: int = 0
    canonical: bool = False
    engram_layers: tuple[int, ...] = ()
    engram_orders: tuple[int, ...] = (2, 3)
    engram_heads: int = 8
    engram_rows: int = 16_384
    engram_width: int | None = None

    kind: ClassVar[str] = "gpt"

    def __post_init__(self) -> None:
        check_counts(self, "vocab_size", "context_length", "num_layers", "num_heads", "width", "residual_groups")
        check_counts(self, "kv_heads", "window", may_lack=("kv_heads", "window"))
        check_positive(self, "rotary_base", "softcap", "norm_epsilon", may_lack=("softcap", "norm_epsilon"))
        check_choices(self, positions=PositionKind, norm=NormKind, mlp=MLPKind, init=InitKind)
        check_choices(self, exclusive_attention=ExclusiveKind, attention_residuals=ResidualKind)
        check_flags(self)
        if self.width % self.num_heads:
            raise ConfigError(f"width {self.width} must be a multiple of num_heads {self.num_heads}")
        if self.num_heads % self.num_kv_heads:
            raise ConfigError(f"num_heads {self.num_heads} must be a multiple of kv_heads {self.kv_heads}")
        if self.positions == "rope" and self.width // self.num_heads % 2:
            raise ConfigError(f"rope needs an even head size, not width / num_heads = {self.width // self.num_heads}")
        check_fractions(self, "dropout")
        if not isinstance(self.window_pattern, str) or not self.window_pattern or set(self.window_pattern) - set("SCL"):
            raise ConfigError(f"window_pattern is {self.window_pattern!r}; it must be letters S, C and L, one or more")
        if self.spelled_bytes != 0:
            check_counts(self, "spelled_bytes")
        if self.spelled_bytes > 256:
            raise ConfigError(f"spelled_bytes is {self.spelled_bytes}; it must be at most 256")
        self._check_engram()

    def _check_engram(self) -> None:
        check_counts(self, "engram_heads", "engram_rows", "engram_width", may_lack=("engram_width",))
        for name, least in (("engram_layers", 0), ("engram_orders", 2)):
            object.__setattr__(self, name, whole_numbers(self, name, least))
        if self.engram_heads > 64:
            raise ConfigError(f"engram_heads is {self.engram_heads}; it must be at most 64")
        check_tables("engram", self.engram_orders, self.engram_rows)
        if not self.engram_layers:
            return
        if max(self.engram_layers) >= self.num_layers:
            raise ConfigError(f"engram_layers is {list(self.engram_layers)}; layers are 0 .. {self.num_layers - 1}")
        tables = len(self.engram_orders) * self.engram_heads
        if not tables or self.memory_width % tables:
            raise ConfigError(f"engram_width is {self.memory_width}; it must be a multiple of orders x heads, {tables}")

    @property
    def num_kv_heads(self) -> int:
        """The number of key and value heads."""
        return self.kv_heads or self.num_heads

    @property
    def memory_width(self) -> int:
        """The number of values that a look-up of n-grams returns."""
        return self.engram_width or self.width

    def reach_of(self, layer: int) -> Reach:
        """Return the positions that a layer sees."""
        letter = self.window_pattern[layer % len(self.window_pattern)]
        return WHOLE_REACH if letter == "L" else Reach(self.window, in_chunks=letter == "C")

    def to_json(self) -> dict[str, Any]:
        """Return the fields as plain values, with ``kind``."""
        fields = {name: list(v) if isinstance(v, tuple) else v for name, v in dataclasses.asdict(self).items()}
        return {"kind": self.kind, **fields}
