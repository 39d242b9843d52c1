"""From weights to frequencies that the coder takes: integers of at least 1 that sum to exactly 2**precision."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import numpy.typing as npt

from fastcompress._core import arithmetic as _core
from fastcompress.errors import DataError

if TYPE_CHECKING:
    import torch

MAX_PRECISION: int = _core.MAX_PRECISION
"""24: frequencies sum to at most 2**24."""

MAX_SYMBOLS: int = _core.MAX_SYMBOLS
"""2**23: the largest alphabet."""

LOG_UNIT = 1 << 16
"""Integer logits are logarithms to base 2 in units of 1 / LOG_UNIT."""

# What torch_quantize has to do and say alike.
MAX_LOG = 2.0**30 / LOG_UNIT  # logits further below the greatest weigh nothing
LOG2_E = 1.4426950408889634
BAD_LOGITS = "a row of logits holds NaN or +inf, or nothing but -inf; logits must be finite, or -inf for impossible"
LARGE_LOGITS = "integer logits must fit 32 bits; give them in units of 2**-16"


def default_precision(num_symbols: int) -> int:
    """max(16, ceil(log2(num_symbols)) + 8), at most 24: eight bits of choice for the average symbol.

    ConfigError when there are more than MAX_SYMBOLS symbols, or none.
    """
    return _core.default_precision(num_symbols)


@overload
def quantize(weights: torch.Tensor, precision: int | None = None) -> torch.Tensor: ...
@overload
def quantize(weights: npt.ArrayLike, precision: int | None = None) -> npt.NDArray[np.uint32]: ...
def quantize(weights: Any, precision: int | None = None) -> Any:
    """Cumulative frequencies in proportion to weights: uint32[..., V + 1] of weights [..., V].

    Row by row: 0, then sums of the first 1 to V frequencies, the last one 2**precision. Each frequency is at least 1;
    what is left is dealt out in proportion, by integer arithmetic with the rounding that FORMAT.md states. So equal
    weights give equal tables everywhere: as integers of any type, as floats of the same values, as NumPy arrays or
    torch tensors, on CPU or CUDA (a tensor gives int32 on its device).

    Weights are integers, or floats of at most 64 bits, of any scale; only their ratios count. Probabilities are
    weights. A model's floats can differ from machine to machine in their last bits, and with them the table: encode and
    decode with the very same floats, or use integers.

    precision: in bits; None: default_precision(V). O(size). ConfigError: V above 2**precision or MAX_SYMBOLS.
    DataError: a NaN, infinite or negative weight, or a row of zeros.
    """
    if (torch := sys.modules.get("torch")) is not None and isinstance(weights, torch.Tensor):
        from fastcompress.arithmetic.torch_quantize import quantize_tensor

        return quantize_tensor(weights, precision)
    return _core.quantize(weights, precision)


def quantize_logits(logits: Any, precision: int | None = None) -> Any:
    """`quantize` for logarithms of weights: uint32[..., V + 1] of logits [..., V].

    Integers are logarithms to base 2 in units of 1 / LOG_UNIT = 2**-16, and weigh 2**(l / LOG_UNIT) by two tables of
    integers: equal everywhere. Floats are natural logarithms, as models give them, and become such integers by one
    step, in float64: floor((l - greatest of its row) * log2(e) * LOG_UNIT + 1 / 2). -inf weighs nothing (its frequency
    is 1).

    A torch tensor gives int32 on its device. DataError: NaN, +inf, or a row of -inf.
    """
    if (torch := sys.modules.get("torch")) is not None and isinstance(logits, torch.Tensor):
        from fastcompress.arithmetic.torch_quantize import quantize_logits_tensor

        return quantize_logits_tensor(logits, precision)
    array = np.asarray(logits)
    if array.dtype.kind == "f":
        array = fixed_logits(array)
    elif array.dtype.kind not in "iu":
        raise TypeError(f"logits must be integers or floats, not {array.dtype}")
    elif array.size and not -(1 << 31) <= int(array.min()) <= int(array.max()) < 1 << 31:
        raise DataError(LARGE_LOGITS)
    return _core.quantize_logits(np.asarray(array, np.int32, order="C"), precision)


def fixed_logits(logits: npt.NDArray[Any]) -> npt.NDArray[np.int32]:
    """Natural logarithms as integer logits, the greatest of each row 0."""
    values = np.asarray(logits, np.float64)
    if values.ndim == 0 or values.shape[-1] == 0:
        return np.zeros(values.shape, np.int32)
    greatest = values.max(axis=-1, keepdims=True)
    if not np.isfinite(greatest).all():
        raise DataError(BAD_LOGITS)
    with np.errstate(over="ignore"):  # a difference beyond the range of floats weighs nothing, as it should
        below = np.maximum((values - greatest) * LOG2_E, -MAX_LOG)
    fixed: npt.NDArray[np.int32] = np.floor(below * LOG_UNIT + 0.5).astype(np.int32)
    return fixed
