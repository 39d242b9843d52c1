"""The interface of models: all that trainer, evaluation, generation and studies know of one.

A model defines the rows that it reads (``data/rows.py``), the cost in nats of each event in them, the number of
operations per row, and how it decodes symbol by symbol. Models with different rows are compared per byte: their nats
divided by the bytes of the same text.

A new kind of model is one file with a frozen dataclass that has a ``kind`` and makes rows and models, and a subclass of
``LanguageModel``; and one line in the table of kinds (``kinds.py``).
"""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol, get_args

import torch
from torch import Tensor, nn

from fastcompress.codec import Codec
from fastcompress.data.rows import Rows
from fastcompress.errors import ConfigError, MismatchError
from fastcompress.models.flops import Flops
from fastcompress.models.roles import Role, default_roles
from fastcompress.models.settings import Float8Kind

Batch = Mapping[str, Tensor]  # columns of rows, each [B, S, ...]
AttentionKind = Literal["sdpa", "plain"]


@dataclass(frozen=True)
class Kernels:
    """The kernels that compute a model. They affect rounding only, so a run may resume with others.

    Attributes:
        attention: ``"sdpa"`` (fused kernel) or ``"plain"`` (written out, the oracle).
        logits_at_once: Largest number of logits in memory at a time; None for one that suits the device.
        float8: Products that training computes in float8 on cards (``float8.py``): none (``"off"``), those of a
            GPT's head (``"head"``), also the forward products of what `RMSNorm` gives (``"normed"``), or those of all
            the blocks' matrices (``"all"``).
    """

    attention: AttentionKind = "sdpa"
    logits_at_once: int | None = None
    float8: Float8Kind = "off"

    def __post_init__(self) -> None:
        if self.attention not in get_args(AttentionKind):
            raise ConfigError(f"attention must be one of {', '.join(get_args(AttentionKind))}, not {self.attention!r}")
        if self.float8 not in get_args(Float8Kind):
            raise ConfigError(f"float8 must be one of {', '.join(get_args(Float8Kind))}, not {self.float8!r}")
        if self.logits_at_once is not None and self.logits_at_once < 1:
            raise ConfigError(f"logits_at_once is {self.logits_at_once}; it must be at least 1")


DEFAULT_KERNELS = Kernels()


@dataclass(frozen=True)
class ModelSize:
    """The number of values that a model keeps in memory, known before it is made.

    Attributes:
        parameters: Trained numbers.
        table_parameters: Those that grow with the vocabulary.
        matrix_parameters: Those in matrices by their role (``roles.py``), of which some optimizers keep less.
        activations_per_row: What the forward pass of a row keeps for the backward pass, without logits.
        recomputed_per_row: The same where the inside of blocks is computed again in the backward pass; None: not known.
        logits_per_row: Numbers predicted for a row.
        logits_at_once: Most logits that exist at a time.
        bytes_per_logit: Bytes that each of them takes in training, with what is computed from it.
    """

    parameters: int
    table_parameters: int = 0
    matrix_parameters: int = 0
    activations_per_row: int = 0
    recomputed_per_row: int | None = None
    logits_per_row: int = 0
    logits_at_once: int = 1 << 62
    bytes_per_logit: int = 12


class ModelConfig(Protocol):
    """The settings that determine what a model computes; a frozen dataclass.

    Attributes:
        kind: The name in the table of kinds.
        context_length: Events per row.
        width: Width of the widest stream, from which the number of threads is chosen.
    """

    kind: ClassVar[str]

    @property
    def context_length(self) -> int: ...
    @property
    def width(self) -> int: ...

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any], codec: Codec) -> ModelConfig:
        """Make the configuration for a codec from settings by name, possibly including ``preset``."""
        ...

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> ModelConfig:
        """Build from what ``to_json`` of this or an older version returned. Raises ConfigError for unknown names."""
        ...

    def to_json(self) -> dict[str, Any]:
        """Return the fields as plain values, with ``kind``."""
        ...

    def rows(self, codec: Codec) -> Rows:
        """Return the rows that the model reads. Raises ConfigError if it cannot read those of ``codec``."""
        ...

    def build(self, kernels: Kernels = DEFAULT_KERNELS) -> LanguageModel:
        """Make the model; its weights are drawn from torch's global generator."""
        ...

    def size(self, device_type: str = "cpu", kernels: Kernels = DEFAULT_KERNELS) -> ModelSize:
        """Estimate the number of values that the model keeps in memory, without making it."""
        ...


class Stepper(Protocol):
    """Decodes several documents, one per lane, a symbol at a time.

    Attributes:
        lanes: The number of documents.
        done: Marks the lanes whose document has ended; symbols pushed to those are ignored.
    """

    lanes: int
    done: list[bool]

    def begin(self, prompts: Sequence[bytes]) -> None:
        """Begin a document with these bytes in each lane."""
        ...

    def symbols(self, document: bytes) -> list[int]:
        """Return what to push, after ``begin`` with nothing, to write a document, its end included.

        Raises DataError if the codec cannot encode it.
        """
        ...

    def weights(self) -> Tensor:
        """Return unnormalized log-probabilities of the next symbol, ``float[lanes, A]``; -inf for illegal ones.

        A is the size of the next field's alphabet; all lanes are at the same field.
        """
        ...

    def push(self, symbols: Sequence[int]) -> list[bytes]:
        """Append a symbol to each lane and return the bytes that became known in each."""
        ...


class LanguageModel(nn.Module, ABC):
    """A language model; ``config`` is the configuration that made it."""

    config: ModelConfig

    @abstractmethod
    def nats(self, batch: Batch) -> Tensor:
        """Return the cost of each event in nats, summed over heads, float32[B, S]; weights of events do not matter."""

    @abstractmethod
    def flops(self) -> Flops:
        """Count the operations of a row."""

    @abstractmethod
    def stepper(self, codec: Codec, lanes: int = 1, stride: int | None = None) -> Stepper:
        """Make a stepper that decodes ``lanes`` documents together.

        Args:
            codec: The codec of the model's rows.
            lanes: The number of documents.
            stride: How far the window moves when a document exceeds the context, as in evaluations. Default: half the
                context. With equal strides, generation and evaluation use the same probabilities.
        """

    @abstractmethod
    def random_batch(self, num_rows: int, max_events: int) -> dict[str, Tensor]:
        """Draw a batch of valid columns from torch's global generator, for checks; at most ``max_events`` a row."""

    def uniform_nats(self) -> float | None:
        """Return the nats per event of a uniform prediction, which a fresh model is near; None if unknown."""
        return None

    def parameter_roles(self) -> dict[str, Role]:
        """Return the role of each parameter by name, a shared one once, for optimizers (``roles.py``)."""
        return default_roles(self)

    def rows(self, codec: Codec) -> Rows:
        """Return the rows that the model reads. Raises MismatchError if they are not those of ``codec``."""
        try:
            return self.config.rows(codec)
        except ConfigError as error:
            raise MismatchError(f"{error}; use the codec that the model was trained with") from None

    def read_codec(self, codec: Codec) -> None:
        """Read from the codec what the model needs to know about tokens, such as their bytes.

        Called after the model is built and before it computes anything; checkpoints do not hold this. Most kinds need
        nothing. Raises ConfigError if the codec lacks it.
        """

    def num_parameters(self, *, embedding: bool = True) -> int:
        """Count the parameters, a tied one once.

        Args:
            embedding: Include embedding tables, and heads tied to one.
        """
        tables = {id(module.weight) for module in self.modules() if isinstance(module, nn.Embedding)}
        return sum(p.numel() for p in self.parameters() if embedding or id(p) not in tables)


def device_of(model: nn.Module) -> torch.device:
    """Return the device of the parameters; the CPU for a model without any."""
    parameter = next(model.parameters(), None)
    return torch.device("cpu") if parameter is None else parameter.device


@contextlib.contextmanager
def evaluation_mode(model: nn.Module) -> Iterator[None]:
    """Turn dropout off within the block, and restore every module's mode after it."""
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for module, was_training in modes:
            module.training = was_training
