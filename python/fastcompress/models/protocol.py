"""What a model is to everything around it: trainer, evaluation, generation and studies know nothing else of one.

A model owns its nats. It says which rows it reads (``data/rows.py``), what each event of them costs under its
prediction, how many operations a row takes, and how it is decoded one symbol after the other. Only bytes are a common
currency: the nats of two models compare once both are divided by the bytes of the same text.

A new kind of model is one file: a frozen dataclass with a ``kind``, which makes rows and models, and a subclass of
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

Batch = Mapping[str, Tensor]  # columns of rows, each [B, S, ...]
AttentionKind = Literal["sdpa", "plain"]


@dataclass(frozen=True)
class Kernels:
    """How a machine computes a model; another choice changes rounding only, so a run may resume under it.

    Attributes:
        attention: ``"sdpa"`` (fused kernel) or ``"plain"`` (written out, the oracle).
        logits_at_once: Most logits that exist at a time; None for what suits the device.
    """

    attention: AttentionKind = "sdpa"
    logits_at_once: int | None = None

    def __post_init__(self) -> None:
        if self.attention not in get_args(AttentionKind):
            raise ConfigError(f"attention must be one of {', '.join(get_args(AttentionKind))}, not {self.attention!r}")
        if self.logits_at_once is not None and self.logits_at_once < 1:
            raise ConfigError(f"logits_at_once is {self.logits_at_once}; it must be at least 1")


DEFAULT_KERNELS = Kernels()


@dataclass(frozen=True)
class ModelSize:
    """Numbers that a model keeps in memory, known before it is made.

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
    """The settings that decide what a model computes: a frozen dataclass.

    Attributes:
        kind: The name in the table of kinds.
        context_length: Events per row.
        width: Numbers per event in its widest stream, by which threads are chosen.
    """

    kind: ClassVar[str]

    @property
    def context_length(self) -> int: ...
    @property
    def width(self) -> int: ...

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any], codec: Codec) -> ModelConfig:
        """Make the configuration for a codec from settings by name, of which ``preset`` may be one."""
        ...

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> ModelConfig:
        """Build from what ``to_json`` returned, perhaps in an older version. Raises ConfigError for unknown names."""
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
        """Estimate the numbers it keeps in memory, without making it."""
        ...


class Stepper(Protocol):
    """Decoding: several documents, one a lane, grow by one symbol at a time.

    Attributes:
        lanes: Documents that grow together.
        done: Which lanes have reached the end of their document; what is pushed to those is ignored.
    """

    lanes: int
    done: list[bool]

    def begin(self, prompts: Sequence[bytes]) -> None:
        """Begin a document with these bytes in each lane."""
        ...

    def weights(self) -> Tensor:
        """Return unnormalised log-probabilities of the next symbol, ``float[lanes, A]``; -inf for illegal ones.

        A is the size of the next field's alphabet; all lanes are at the same field.
        """
        ...

    def push(self, symbols: Sequence[int]) -> list[bytes]:
        """Append a symbol to each lane and return the bytes that became known, a lane."""
        ...


class LanguageModel(nn.Module, ABC):
    """A model of rows. ``config`` is what made it."""

    config: ModelConfig

    @abstractmethod
    def nats(self, batch: Batch) -> Tensor:
        """Return what each event costs, every head summed: float32[B, S], whatever the weights of the rows."""

    @abstractmethod
    def flops(self) -> Flops:
        """Count the operations of a row."""

    @abstractmethod
    def stepper(self, codec: Codec, lanes: int = 1, stride: int | None = None) -> Stepper:
        """Decode ``lanes`` documents together.

        Args:
            codec: The codec of the model's rows.
            lanes: The number of documents.
            stride: Where a document outgrows the context, how far the window moves on, as in evaluations; default: half
                the context. With the same stride, what is generated and what is scored have the same probabilities.
        """

    @abstractmethod
    def random_batch(self, num_rows: int, max_events: int) -> dict[str, Tensor]:
        """Draw a batch of valid columns from torch's global generator, for checks; at most ``max_events`` a row."""

    def uniform_nats(self) -> float | None:
        """Return the nats per event of a model that knows nothing, which a fresh one is near; None: not known."""
        return None

    def parameter_roles(self) -> dict[str, Role]:
        """Return the role of each parameter by its name, a shared one once; optimizers go by it (``roles.py``)."""
        return default_roles(self)

    def rows(self, codec: Codec) -> Rows:
        """Return the rows that the model reads. Raises MismatchError if they are not those of ``codec``."""
        try:
            return self.config.rows(codec)
        except ConfigError as error:
            raise MismatchError(f"{error}; use the codec that the model was trained with") from None

    def read_codec(self, codec: Codec) -> None:
        """Take from the codec what the model knows about tokens beside its weights, such as their bytes.

        Called after the model is built, before it computes anything; a checkpoint does not hold it. Most kinds need
        nothing. Raises ConfigError if the codec lacks it.
        """

    def num_parameters(self, *, embedding: bool = True) -> int:
        """Count the parameters, a tied one once.

        Args:
            embedding: Count embedding tables (and heads tied to one), too.
        """
        tables = {id(module.weight) for module in self.modules() if isinstance(module, nn.Embedding)}
        return sum(p.numel() for p in self.parameters() if embedding or id(p) not in tables)


def device_of(model: nn.Module) -> torch.device:
    """Where the parameters are; the CPU for a model without any."""
    parameter = next(model.parameters(), None)
    return torch.device("cpu") if parameter is None else parameter.device


@contextlib.contextmanager
def evaluation_mode(model: nn.Module) -> Iterator[None]:
    """Dropout off inside, every module's own mode as before outside."""
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for module, was_training in modes:
            module.training = was_training
