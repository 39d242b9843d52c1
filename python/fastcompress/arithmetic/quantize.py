"""Conversion of weights to the frequencies that the coder takes: integers of at least 1 that sum to 2**precision."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, SupportsIndex, overload

import numpy as np
import numpy.typing as npt

from fastcompress._arguments import as_integer
from fastcompress._core import arithmetic as _core
from fastcompress.arithmetic.logits import LARGE_LOGITS, LOG_UNIT, fixed_logits
from fastcompress.errors import DataError

if TYPE_CHECKING:
    import torch

__all__ = ["LOG_UNIT", "MAX_PRECISION", "MAX_SYMBOLS", "default_precision", "quantize", "quantize_logits"]

MAX_PRECISION: int = _core.MAX_PRECISION
"""24: frequencies sum to at most 2**24."""

MAX_SYMBOLS: int = _core.MAX_SYMBOLS
"""2**23: the size of the largest alphabet."""


def default_precision(num_symbols: int) -> int:
    """Return max(16, ceil(log2(num_symbols)) + 8), at most 24: the average symbol has a frequency of at least 256.

    (With more than 2**16 symbols it has less, since the precision is at most 24.) Raises ConfigError if `num_symbols`
    is not 1 to MAX_SYMBOLS.
    """
    return _core.default_precision(as_integer(num_symbols, "num_symbols", 1, MAX_SYMBOLS))


def as_precision(precision: SupportsIndex | None) -> int | None:
    """Return a precision argument, None for the default. Raises TypeError or ConfigError as `as_integer` does."""
    if precision is None:
        return None
    return as_integer(precision, "precision", 1, MAX_PRECISION, or_none="the default")


@overload
def quantize(weights: torch.Tensor, precision: int | None = None) -> torch.Tensor: ...
@overload
def quantize(weights: npt.ArrayLike, precision: int | None = None) -> npt.NDArray[np.uint32]: ...
def quantize(weights: Any, precision: int | None = None) -> Any:
    """Convert weights to cumulative frequencies in proportion to them.

    Each frequency is at least 1; the remaining 2**precision - V are shared out in proportion to the weights, in integer
    arithmetic with the rounding that FORMAT.md states. So equal weights give equal tables everywhere: as integers of
    any type or as floats, as NumPy arrays or torch tensors, on a CPU or a GPU.

    A model's floats may differ between machines in their last bits, and then the tables may differ too: encode and
    decode with the very same floats, or use integers.

    Args:
        weights: [..., V], integers, or floats of at most 64 bits. Only their ratios matter, so probabilities will do.
        precision: The frequencies of a row sum to 2**precision. None for ``default_precision(V)``.

    Returns:
        uint32[..., V + 1], or for a torch tensor int32[..., V + 1] on its device. Each row starts with 0 and continues
        with the sums of the first 1, 2, ..., V frequencies; the last one is 2**precision. O(size).

    Raises:
        ConfigError: V is above 2**precision or MAX_SYMBOLS, or `precision` is out of range.
        DataError: A weight is NaN, infinite or negative, or all weights of a row are zero.
        TypeError: The weights are neither integers nor floats.

    >>> quantize([2, 1, 1], precision=4).tolist()
    [0, 7, 11, 16]
    """
    precision = as_precision(precision)
    if (torch := sys.modules.get("torch")) is not None and isinstance(weights, torch.Tensor):
        from fastcompress.arithmetic.torch_quantize import quantize_tensor

        return quantize_tensor(weights, precision)
    return _core.quantize(weights, precision)


def quantize_logits(logits: Any, precision: int | None = None) -> Any:
    """Convert logarithms of weights to cumulative frequencies, as `quantize` does with the weights themselves.

    Args:
        logits: [..., V]. Integers are logarithms to base 2 in units of 1 / LOG_UNIT = 2**-16; their weights,
            2**(logit / LOG_UNIT), are looked up in two tables of integers and so are equal everywhere. Floats are
            natural logarithms, as models compute them; they are first converted to integers in float64:
            floor((logit - largest of the row) * log2(e) * LOG_UNIT + 1 / 2). -inf has no weight (its frequency is 1).
        precision: As for `quantize`.

    Returns:
        uint32[..., V + 1], or for a torch tensor int32[..., V + 1] on its device; as `quantize` returns.

    Raises:
        ConfigError: As for `quantize`.
        DataError: A row contains NaN or +inf, or only -inf, or an integer does not fit in 32 bits.
        TypeError: The logits are neither integers nor floats.
    """
    precision = as_precision(precision)
    if (torch := sys.modules.get("torch")) is not None and isinstance(logits, torch.Tensor):
        from fastcompress.arithmetic.torch_quantize import quantize_logits_tensor

        return quantize_logits_tensor(logits, precision)
    array = np.asarray(logits)
    if array.dtype.kind == "f":
        array = fixed_logits(array)
    elif array.dtype.kind not in "iu":
        raise TypeError(f"logits are of dtype {array.dtype}; they must be integers or floats")
    elif array.size and not -(1 << 31) <= int(array.min()) <= int(array.max()) < 1 << 31:
        raise DataError(LARGE_LOGITS)
    return _core.quantize_logits(np.asarray(array, np.int32, order="C"), precision)
