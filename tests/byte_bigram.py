"""A second kind of model, as small as one can be and as unlike a GPT: rows of its own, two heads, no context.

A byte is predicted from the byte before it in two fields: its high half, or the end of the document, then its low half.
It exists to show that nothing outside `fastcompress.models` knows a model (`test_model_kinds.py`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from fastcompress.codec import Codec
from fastcompress.data.rows import Row, TokenRows
from fastcompress.data.shards import TokenDataset
from fastcompress.errors import ConfigError
from fastcompress.models import Flops, Kernels, LanguageModel, ModelSize
from fastcompress.models.flops import count_flops
from fastcompress.models.protocol import Batch

END = 256  # the byte that ends a document
END_HIGH = 16  # the high half that ends a document


@dataclass(frozen=True)
class HalfRows:
    """Columns: previous, target_high and target_low, int64[S], and weight."""

    codec: Codec
    context_length: int
    is_exact: ClassVar[bool] = True

    @property
    def _bytes(self) -> TokenRows:
        return TokenRows(self.codec, self.context_length)

    @property
    def tokens_per_row(self) -> int:
        return self.context_length

    @property
    def columns(self) -> dict[str, tuple[np.dtype[Any], tuple[int, ...]]]:
        return {name: (column.dtype, column.shape) for name, column in _halves(self._example()).items()}

    @property
    def fingerprint(self) -> str:
        return b"halves of bytes".hex().ljust(64, "0")

    def training_row(self, dataset: TokenDataset, begin: int) -> Row:
        return _halves(self._bytes.training_row(dataset, begin))

    def scoring_rows(self, document: bytes, stride: int) -> Iterator[Row]:
        return map(_halves, self._bytes.scoring_rows(document, stride))

    def stack(self, rows: Sequence[Row]) -> Row:
        length = max(len(row["weight"]) for row in rows)
        padded = [
            {name: np.pad(column, (0, length - len(column))) for name, column in row.items()} for row in rows
        ]  # a weight of 0, and any byte
        return {name: np.stack([row[name] for row in padded]) for name in padded[0]}

    def num_events(self, dataset: TokenDataset) -> float:
        return self._bytes.num_events(dataset)

    def num_bytes(self, document: bytes) -> int:
        return self._bytes.num_bytes(document)

    def _example(self) -> Row:
        return next(self._bytes.scoring_rows(bytes(self.context_length - 1), self.context_length))


def _halves(row: Row) -> Row:
    target = row["target"]
    return {
        "previous": row["input"],
        "target_high": target // 16,  # 16 at the end
        "target_low": target % 16,
        "weight": row["weight"],
    }


@dataclass(frozen=True, kw_only=True)
class ByteBigramConfig:
    context_length: int = 16
    width: int = 8

    kind: ClassVar[str] = "byte-bigram"

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any], codec: Codec) -> ByteBigramConfig:
        return cls(**settings)

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> ByteBigramConfig:
        return cls(**{name: value for name, value in fields.items() if name != "kind"})

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, **dataclasses.asdict(self)}

    def rows(self, codec: Codec) -> HalfRows:
        if codec.name != "byte":
            raise ConfigError(f"codec is {codec.name}; it must be byte")
        return HalfRows(codec, self.context_length)

    def build(self, kernels: Kernels = Kernels()) -> ByteBigram:  # noqa: B008
        return ByteBigram(self)

    def size(self, device_type: str = "cpu", kernels: Kernels = Kernels()) -> ModelSize:  # noqa: B008
        return ModelSize(parameters=(257 + 17) * self.width + (self.width + 1) * (17 + 16))


class ByteBigram(LanguageModel):
    def __init__(self, config: ByteBigramConfig) -> None:
        super().__init__()
        self.config = config
        self.previous = nn.Embedding(257, config.width)
        self.high = nn.Embedding(17, config.width)
        self.high_head = nn.Linear(config.width, 17)
        self.low_head = nn.Linear(config.width, 16)

    def high_logits(self, previous: Tensor) -> Tensor:
        logits: Tensor = self.high_head(self.previous(previous))  # [..., 17]
        return logits

    def low_logits(self, previous: Tensor, high: Tensor) -> Tensor:
        logits: Tensor = self.low_head(self.previous(previous) + self.high(high))  # [..., 16]
        return logits

    def nats(self, batch: Batch) -> Tensor:
        previous, high, low = batch["previous"], batch["target_high"], batch["target_low"]  # int64[B, S] each
        of_high = _nats(self.high_logits(previous), high)  # [B, S]
        of_low = _nats(self.low_logits(previous, high), low)  # [B, S]
        return of_high + of_low * (high != END_HIGH)  # [B, S]: the end has no low half

    def flops(self) -> Flops:
        return count_flops(self, self.config.context_length)

    def stepper(self, codec: Codec, lanes: int = 1, stride: int | None = None) -> HalfStepper:
        self.rows(codec)
        return HalfStepper(self, lanes)

    def random_batch(self, num_rows: int, max_events: int) -> dict[str, Tensor]:
        shape = (num_rows, min(self.config.context_length, max_events))
        target = torch.randint(256, shape)  # int64[B, S]
        return {
            "previous": torch.randint(257, shape),
            "target_high": target // 16,
            "target_low": target % 16,
            "weight": torch.ones(shape),
        }


def _nats(logits: Tensor, target: Tensor) -> Tensor:
    return F.cross_entropy(logits.float().flatten(0, -2), target.flatten(), reduction="none").view_as(target)


class HalfStepper:
    """Fields take turns: the high halves of all lanes, then their low halves."""

    def __init__(self, model: ByteBigram, lanes: int) -> None:
        self.model, self.lanes = model, lanes
        self.begin([b""] * lanes)

    def begin(self, prompts: Sequence[bytes]) -> None:
        self.done = [False] * self.lanes
        self.previous = [prompt[-1] if prompt else END for prompt in prompts]
        self.high: list[int] | None = None

    @torch.inference_mode()
    def symbols(self, document: bytes) -> list[int]:
        return [half for byte in document for half in divmod(byte, 16)] + [END_HIGH]

    def weights(self) -> Tensor:
        previous = torch.tensor(self.previous)
        if self.high is None:
            return self.model.high_logits(previous)  # [lanes, 17]
        return self.model.low_logits(previous, torch.tensor(self.high))  # [lanes, 16]

    def push(self, symbols: Sequence[int]) -> list[bytes]:
        if self.high is None:
            self.done = [done or symbol == END_HIGH for done, symbol in zip(self.done, symbols, strict=True)]
            self.high = [0 if done else symbol for done, symbol in zip(self.done, symbols, strict=True)]
            return [b""] * self.lanes
        self.previous = [16 * high + low for high, low in zip(self.high, symbols, strict=True)]
        self.high = None
        return [b"" if done else bytes([byte]) for done, byte in zip(self.done, self.previous, strict=True)]
