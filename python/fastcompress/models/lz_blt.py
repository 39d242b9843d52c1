"""LZ-BLT: a byte-latent transformer whose symbols are LZ77 tokens, predicted field by field.

    e_t = sum over fields f of E_f[s_tf]                          embedding of token t, float[B, S, d]
    h = encoder(e);  g = global blocks(patches of tokens);  z = decoder(h + g of the newest patch known)
    u_0 = z_t,    u_(f+1) = u_f + MLP_f(norm(u_f + E_f[s_f]))     s: the symbols of the token that follows t
    p(s_f | s_0 .. s_(f-1), tokens 0 .. t) = softmax over the legal symbols of W_f norm(u_f)
    nats of the event = - sum over f of ln p(s_f | ...)

The networks are those of ``local_global.py``: the encoder and the decoder see a window of tokens, the global network
reads the state at the last token of each patch, and the tokens after it read what it makes of that. A token is a kind,
a value (a literal byte, or the bucket of a distance), a length, and the extra bits of buckets, all as symbols of
fields (``data/lz_fields.py``); each field has a softmax of its own, and all of them count.

The networks follow Pagnoni et al., "Byte Latent Transformer" (arXiv 2412.09871). Bits per byte are the nats of all
fields of all tokens, and of the end of each document, over the raw bytes. A text has many parses. The model is charged
for one of them, so the figure is an upper bound; restricted to ``canonical`` tokens, only that one has a probability,
and the figure is exact (``data/lz_rows.py``).

Causality: let x and y be documents with the same first n bytes, and k the number of tokens of x that are stable after n
bytes (``lz77.stable_counts``). Both parses begin with the same k tokens. The costs of these, and the probabilities of
the token after them, are the same, whatever follows. Where a token ends depends on the bytes after it, and that is paid
for: in the length, and in canonical rows by the choice of the token that follows.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from fastcompress.codec import Codec
from fastcompress.data.lz_fields import LZFields
from fastcompress.data.lz_rows import TARGET_LEGAL, LZRows, fields_of, lz_codec, token_patch_ends
from fastcompress.data.patches import PATCH_END, check_patch_sizes
from fastcompress.errors import ConfigError
from fastcompress.lz77 import LITERAL, MATCH, LZTokens
from fastcompress.models.blocks import make_mlp
from fastcompress.models.cross_entropy import next_token_loss, unpacked_bits
from fastcompress.models.local_global import LocalGlobalConfig, LocalGlobalModel
from fastcompress.models.local_global_decoding import LocalGlobalCache, read_with_cache
from fastcompress.models.lz_blt_decoding import LZStepper
from fastcompress.models.protocol import DEFAULT_KERNELS, Batch, Kernels, ModelSize, device_of
from fastcompress.models.settings import check_choices, check_counts
from fastcompress.models.trunk import Cache

Generation = Literal["sample", "recompress", "legal"]


@dataclass(frozen=True, kw_only=True)
class LZBLTConfig(LocalGlobalConfig):
    """The settings of an `LZBLT`, beside those of `LocalGlobalConfig`, whose symbols are LZ77 tokens.

    Attributes:
        grouping: "fixed" patches of `min_tokens`, or patches that end with a "match" (``data/lz_rows.py``).
        min_tokens, max_tokens: Sizes of patches. A row has S // min_tokens places for them.
        canonical: Give no probability to tokens that a greedy parse would not have, in training and scores. Slow in
            training (``data/lz_rows.py``).
        generation: How texts are continued (``lz_blt_decoding.py``); None: "legal" if canonical, else "sample".
        window, min_length, max_length: Of the parse; taken from the codec.
    """

    grouping: str = "fixed"
    min_tokens: int = 2
    max_tokens: int = 8
    canonical: bool = False
    generation: Generation | None = None
    window: int = 65536
    min_length: int = 4
    max_length: int = 258

    kind: ClassVar[str] = "lz-blt"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_patch_sizes("tokens", self.min_tokens, self.max_tokens)
        check_counts(self, "window", "min_length", "max_length")
        if self.generation is not None:
            check_choices(self, generation=Generation)

    @property
    def num_patches(self) -> int:
        """Places for patches in a row, P."""
        return self.context_length // self.min_tokens

    @property
    def fields(self) -> LZFields:
        """The fields of a token."""
        return LZFields(self.window, self.min_length, self.max_length)

    @property
    def vocab_size(self) -> int:  # type: ignore[override]
        """The symbols of all fields together."""
        return sum(self.fields.sizes)

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any], codec: Codec) -> LZBLTConfig:
        """Make the configuration for a codec, whose parse it takes. Raises ConfigError for unknown settings."""
        fields = dataclasses.asdict(fields_of(lz_codec(codec)))
        config = cls.from_json({**fields, **settings})
        config.rows(codec)
        return config

    def rows(self, codec: Codec) -> LZRows:
        """Return rows of LZ77 tokens. Raises ConfigError if the codec's tokens have other fields."""
        rows = LZRows(
            codec, self.context_length, self.grouping, self.min_tokens, self.max_tokens, canonical=self.canonical
        )
        if rows.fields != self.fields:
            raise ConfigError(f"the model has {self.fields}, and codec {codec.name} has {rows.fields}")
        return rows

    def build(self, kernels: Kernels = DEFAULT_KERNELS) -> LZBLT:
        """Make the model; its weights are drawn from torch's global generator."""
        return LZBLT(self, kernels)

    def size(self, device_type: str = "cpu", kernels: Kernels = DEFAULT_KERNELS) -> ModelSize:
        """Estimate what the model keeps in memory; the alphabets are small, so all logits exist at a time."""
        size = super().size(device_type, kernels)
        states = self.fields.num_fields * 8 * self.d * self.context_length
        return dataclasses.replace(
            size, logits_at_once=1 << 62, activations_per_row=size.activations_per_row + states, bytes_per_logit=16
        )


class FieldEmbedding(nn.Module):
    """The sum of a vector for each field of a token; ``symbols int64[B, T, F] -> float[B, T, d]``."""

    def __init__(self, sizes: tuple[int, ...], width: int) -> None:
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(size, width) for size in sizes)

    def forward(self, symbols: Tensor) -> Tensor:
        return torch.stack([table(symbols[..., field]) for field, table in enumerate(self.tables)]).sum(0)  # [B, T, d]


class LZBLT(LocalGlobalModel):
    """See the head of this file; ``tokens int64[B, T, F] -> z float[B, T, d]``, from which the fields are predicted."""

    config: LZBLTConfig
    embedding: FieldEmbedding

    def __init__(self, config: LZBLTConfig, kernels: Kernels = DEFAULT_KERNELS) -> None:
        super().__init__(config, kernels)
        self.fields = config.fields
        self.after = nn.ModuleList(make_mlp("swiglu", config.d, bias=False) for _ in self.fields.sizes[1:])
        self.init_weights()

    def make_embedding(self) -> nn.Module:
        """Make the tables of the fields."""
        return FieldEmbedding(self.config.fields.sizes, self.config.d)

    def make_head(self) -> nn.Module:
        """Make the head of each field."""
        return nn.ModuleList(nn.Linear(self.config.d, size, bias=False) for size in self.config.fields.sizes)

    def columns_of(self, ids: npt.NDArray[np.int64]) -> Mapping[str, npt.NDArray[np.int64]]:
        """Return where patches of tokens ``int64[n, F]`` become known, and end."""
        config = self.config
        return {PATCH_END: token_patch_ends(ids[:, 0], config.grouping, config.min_tokens, config.max_tokens)}

    def forward(self, tokens: Tensor) -> Tensor:
        return self.hidden(tokens, self.columns_of_rows(tokens))  # [B, T, d]

    def field_logits(self, state: Tensor, field: int) -> Tensor:
        """Return the logits of a field, ``float[..., A]``, from its state u, ``float[..., d]``."""
        logits: Tensor = self.head[field](F.rms_norm(state, (state.size(-1),)))  # type: ignore[index]
        return logits

    def next_state(self, state: Tensor, field: int, symbols: Tensor) -> Tensor:
        """Return u of the next field, ``float[..., d]``, from that of a field and its symbols, ``int64[...]``."""
        x = state + self.embedding.tables[field](symbols).to(state.dtype)  # [..., d]
        added: Tensor = self.after[field](F.rms_norm(x, (x.size(-1),)))  # [..., d]
        return state + added.to(state.dtype)

    def nats(self, batch: Batch) -> Tensor:
        """Return the cross entropy of all fields of the targets, float32[B, S]."""
        parts = self.field_nats(batch)
        return sum(parts[1:], parts[0])

    def field_nats(self, batch: Batch) -> list[Tensor]:
        """Return the cross entropy of each field of the targets, float32[B, S] each."""
        state = self.hidden(batch["input"], batch)  # [B, S, d]
        target, sizes = batch["target"], self.fields.sizes  # int64[B, S, F]
        every = unpacked_bits(batch[TARGET_LEGAL], sum(sizes))  # bool[B, S, A]
        legal = torch.split(every, list(sizes), dim=-1)  # bool[B, S, A of a field] each
        parts = []
        for field in range(len(sizes)):
            logits = self.field_logits(state, field).masked_fill(~legal[field], float("-inf"))  # [B, S, A]
            parts.append(next_token_loss(logits, target[..., field], reduction="none"))  # [B, S]
            if field + 1 < len(sizes):
                state = self.next_state(state, field, target[..., field])  # [B, S, d]
        return parts

    def uniform_nats(self) -> float | None:
        """Not known: the number of legal symbols is another for each token."""
        return None

    def random_batch(self, num_rows: int, max_events: int) -> dict[str, Tensor]:
        """Draw independent tokens, literals of a few bytes and matches of any distance and length."""
        length = min(self.context_length, max_events)
        device, fields = device_of(self), self.fields

        def draw(bound: int) -> npt.NDArray[np.int64]:
            return torch.randint(bound, (2 * num_rows * length,)).numpy()

        kind, window = draw(2), fields.window  # int64[2 B S]
        value = np.where(kind == LITERAL, 97 + draw(4), 1 + draw(window))
        size = np.where(kind == MATCH, fields.min_length + draw(fields.lengths.count), 1)
        tokens = LZTokens(kind.astype(np.uint8), value.astype(np.uint32), size.astype(np.uint32))
        symbols = fields.symbols(tokens, draw(16) == 0)  # int64[2 B S, F]
        inputs, targets = symbols.reshape(2, num_rows, length, -1)  # int64[B, S, F] each
        rooms = np.full(num_rows * length, window)
        legal = fields.packed_decodable(targets.reshape(num_rows * length, -1), rooms)  # uint8[B S, ...]
        ids = torch.from_numpy(inputs).to(device)
        return {
            "input": ids,
            "target": torch.from_numpy(targets).to(device),
            TARGET_LEGAL: torch.from_numpy(legal).view(num_rows, length, -1).to(device),
            "weight": torch.ones(num_rows, length, device=device),
            **self.columns_of_rows(ids),
        }

    def stepper(
        self, codec: Codec, lanes: int = 1, stride: int | None = None, generation: Generation | None = None
    ) -> LZStepper:
        """Make a stepper, with another way to continue texts than the configuration's, if given."""
        wanted = generation or self.config.generation or ("legal" if self.config.canonical else "sample")
        return LZStepper(self, codec, lanes, stride, wanted)

    def next_hidden(self, tokens: Tensor, last: Tensor, cache: Cache | None, positions: Tensor | None) -> Tensor:
        """Return z after position ``last`` of each row, of ``tokens int64[B, T, F]``; see ``next_logits``."""
        if cache is None:
            hidden = self(tokens)  # [B, T, d]
        else:
            assert isinstance(cache, LocalGlobalCache)
            assert positions is not None
            hidden = read_with_cache(self, tokens, positions, cache)  # [B, T, d]
        found: Tensor = hidden[torch.arange(len(tokens), device=tokens.device), last]  # [B, d]
        return found
