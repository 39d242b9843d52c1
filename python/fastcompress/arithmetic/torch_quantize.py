"""The quantizer for torch tensors, where they are: the same tables as the core's, by the same steps on int64.

Imported only when a tensor is given.
"""

from __future__ import annotations

import math

import torch

from fastcompress._core import arithmetic as _core
from fastcompress.errors import ConfigError, DataError

_SCALED_BITS = 30  # the greatest scaled weight is in [2**30, 2**31)
_SHARE_SHIFT = 37


def quantize_tensor(weights: torch.Tensor, precision: int | None = None) -> torch.Tensor:
    """int32[..., V + 1] of weights [..., V]; see `quantize`."""
    precision = _checked_precision(weights, precision)
    if weights.is_floating_point():
        scaled = _scaled_floats(weights.to(torch.float64))
    elif weights.is_complex() or weights.dtype == torch.bool:
        raise TypeError(f"weights must be integers or floats, not {weights.dtype}")
    else:
        scaled = _scaled_integers(weights.to(torch.int64))
    return _deal(scaled, precision)


def quantize_logits_tensor(logits: torch.Tensor, precision: int | None = None) -> torch.Tensor:
    """int32[..., V + 1] of logits [..., V]; see `quantize_logits`."""
    precision = _checked_precision(logits, precision)
    if logits.is_floating_point():
        values = logits.to(torch.float64)
        greatest = values.amax(-1, keepdim=True)
        if not bool(torch.isfinite(greatest).all()):
            raise DataError(
                "a row of logits holds NaN or +inf, or nothing but -inf; logits must be finite, or -inf for impossible"
            )
        below = ((values - greatest) * math.log2(math.e)).clamp_min(-(2.0**14))
        fixed = torch.floor(below * 65536 + 0.5).to(torch.int64)
    else:
        fixed = logits.to(torch.int64)
    below = fixed.amax(-1, keepdim=True) - fixed  # int64[..., V], in units of 2**-16
    coarse, fine = (torch.tensor(table.tolist(), device=logits.device) for table in _core.exp2_tables())
    product = coarse[(below >> 8) & 0xFF] * fine[below & 0xFF]
    whole = (below >> 16).clamp_max(31)
    return _deal(torch.where(whole > _SCALED_BITS, 0, product >> (32 + whole).clamp_max(62)), precision)


def _checked_precision(weights: torch.Tensor, precision: int | None) -> int:
    if weights.ndim == 0:
        raise ConfigError("weights have no dimension; give one a symbol")
    return _core.checked_precision(weights.shape[-1], precision)


def _scaled_integers(weights: torch.Tensor) -> torch.Tensor:
    """floor(w 2**s) with the greatest of each row in [2**30, 2**31): int64."""
    greatest = weights.amax(-1, keepdim=True)
    _check(weights >= 0, greatest > 0)
    # The place of the highest bit, from the exponent of the float; rounding up may make it one too many.
    exponent = torch.frexp(greatest.to(torch.float64)).exponent.to(torch.int64) - 1
    exponent = exponent - ((greatest >> exponent.clamp_max(62)) == 0).to(torch.int64)
    shift = _SCALED_BITS - exponent
    return torch.where(shift >= 0, weights << shift.clamp_min(0), weights >> (-shift).clamp_min(0))


def _scaled_floats(weights: torch.Tensor) -> torch.Tensor:
    """The same of floats, from their bits: nothing is rounded but by the last shift."""
    weights = weights.contiguous() + 0.0  # -0.0 becomes 0.0
    greatest = weights.amax(-1, keepdim=True)
    _check((weights >= 0) & torch.isfinite(weights), greatest > 0)
    bits = weights.view(torch.int64)
    field = bits >> 52
    mantissa = (bits & ((1 << 52) - 1)) | torch.where(field > 0, 1 << 52, 0)
    exponent = field.clamp_min(1)  # value = mantissa 2**(exponent - 1075)
    top = exponent.gather(-1, weights.argmax(-1, keepdim=True))
    top_mantissa = mantissa.gather(-1, weights.argmax(-1, keepdim=True))
    # A subnormal greatest weight has fewer than 53 bits.
    num_bits = torch.frexp(top_mantissa.to(torch.float64)).exponent.to(torch.int64)
    shift = exponent - top + (_SCALED_BITS + 1) - num_bits  # so many places up
    return torch.where(shift >= 0, mantissa << shift.clamp(0, 62), mantissa >> (-shift).clamp(0, 62))


def _check(are_good: torch.Tensor, some_positive: torch.Tensor) -> None:
    if not bool(are_good.all()):
        position = tuple(torch.nonzero(~are_good)[0].tolist())
        raise DataError(f"weight {position} is NaN, infinite or negative; weights must be finite and not negative")
    if not bool(some_positive.all()):
        raise DataError("all weights of a row are zero; at least one must be positive")


def _deal(scaled: torch.Tensor, precision: int) -> torch.Tensor:
    """Cumulative frequencies of scaled weights, int64[..., V] below 2**31."""
    num_symbols = scaled.shape[-1]
    multiplier = ((2**precision - num_symbols) << _SHARE_SHIFT) // scaled.sum(-1, keepdim=True)
    frequencies = ((scaled * multiplier) >> _SHARE_SHIFT) + 1
    is_greatest = scaled == scaled.amax(-1, keepdim=True)
    is_first = is_greatest & (is_greatest.to(torch.int32).cumsum(-1) == 1)
    frequencies += torch.where(is_first, 2**precision - frequencies.sum(-1, keepdim=True), 0)
    tables = torch.zeros((*scaled.shape[:-1], num_symbols + 1), dtype=torch.int32, device=scaled.device)
    tables[..., 1:] = frequencies.cumsum(-1)
    return tables
