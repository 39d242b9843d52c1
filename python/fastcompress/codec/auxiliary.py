"""The neural model behind a codec, such as the M1 of equal-info windows, and what it costs."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fastcompress.errors import ConfigError


@dataclass(frozen=True)
class AuxiliaryModel:
    """The cost of a codec's model, in floating-point operations.

    A compiled codec runs no model: all it costs was spent when it was made. The published scheme runs its model for
    every byte that is encoded or decoded. Figures are given both ways.

    >>> m1 = AuxiliaryModel(making_flops=1e15, flops_per_byte=5e6)
    >>> m1.amortized_per_byte(10**9)
    1000000.0

    Attributes:
        making_flops: Spent once: the training of the model, and its runs to compile the codec.
        flops_per_byte: The model's forward pass for one byte of text.

    Raises:
        ConfigError: A number is negative or not finite.
    """

    making_flops: float
    flops_per_byte: float

    def __post_init__(self) -> None:
        for name, value in dataclasses.asdict(self).items():
            if not 0 <= value < float("inf"):
                raise ConfigError(f"{name} is {value}; it must be finite and at least 0")

    def amortized_per_byte(self, num_bytes: int) -> float:
        """Return what each byte costs if the model is used for so many bytes, at least 1, and runs for none of them."""
        return self.making_flops / num_bytes


def auxiliary_to_state(auxiliary: AuxiliaryModel | None) -> dict[str, Any]:
    """Return the part of a codec's state that keeps its model's cost; nothing if there is none."""
    return {} if auxiliary is None else {"auxiliary": dataclasses.asdict(auxiliary)}


def auxiliary_from_state(state: Mapping[str, Any]) -> AuxiliaryModel | None:
    """Return what `auxiliary_to_state` kept. Raises TypeError if it is malformed."""
    return AuxiliaryModel(**state["auxiliary"]) if "auxiliary" in state else None
