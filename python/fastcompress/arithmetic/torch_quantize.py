"""The quantizer for torch tensors: the same tables as the core makes, by the same steps on int64, on any device.

Imported only when a tensor is given, so that the package works without torch.
"""

from __future__ import annotations

import torch

from fastcompress._core import arithmetic as _core
from fastcompress.arithmetic.logits import BAD_LOGITS, LARGE_LOGITS, LOG2_E, LOG_UNIT, MAX_LOG
from fastcompress.errors import ConfigError, DataError

_MAX_SCALED_BITS = 30
_SUM_BITS = 39  # the sum of the scaled weights of a row fits in this many bits


def quantize_tensor(weights: torch.Tensor, precision: int | None = None) -> torch.Tensor:
    """Convert weights [..., V] to cumulative frequencies, int32[..., V + 1], as `quantize` does."""
    precision = _checked_precision(weights, precision)
    if weights.is_floating_point():
        scaled = _scaled_floats(weights.to(torch.float64))
    elif weights.is_complex() or weights.dtype == torch.bool:
        raise TypeError(f"weights are of dtype {weights.dtype}; they must be integers or floats")
    else:
        if weights.dtype == torch.uint64 and bool((weights.view(torch.int64) < 0).any()):
            raise TypeError(
                "weights of 2**63 or more are too large for torch; give a NumPy array of uint64, or halve them"
            )
        scaled = _scaled_integers(weights.to(torch.int64))
    return _share(scaled, precision)


def quantize_logits_tensor(logits: torch.Tensor, precision: int | None = None) -> torch.Tensor:
    """Convert logits [..., V] to cumulative frequencies, int32[..., V + 1], as `quantize_logits` does."""
    precision = _checked_precision(logits, precision)
    if logits.is_floating_point():
        values = logits.to(torch.float64)
        greatest = values.amax(-1, keepdim=True)
        if not bool(torch.isfinite(greatest).all()):
            raise DataError(BAD_LOGITS)
        below = ((values - greatest) * LOG2_E).clamp_min(-MAX_LOG)
        fixed = torch.floor(below * LOG_UNIT + 0.5).to(torch.int64)
    else:
        if logits.dtype == torch.bool or logits.is_complex():
            raise TypeError(f"logits are of dtype {logits.dtype}; they must be integers or floats")
        if logits.numel() and not -(1 << 31) <= int(logits.min()) <= int(logits.max()) < 1 << 31:
            raise DataError(LARGE_LOGITS)
        fixed = logits.to(torch.int64)
    below = fixed.amax(-1, keepdim=True) - fixed  # int64[..., V], in units of 2**-16
    coarse, fine = (torch.tensor(table.tolist(), device=logits.device) for table in _core.exp2_tables())
    product = coarse[(below >> 8) & 0xFF] * fine[below & 0xFF]
    whole = (below >> 16).clamp_max(31)
    scaled = torch.where(whole > _MAX_SCALED_BITS, 0, product >> (32 + whole).clamp_max(62))
    return _share(scaled >> (_MAX_SCALED_BITS - _scaled_bits(scaled)), precision)


def _checked_precision(weights: torch.Tensor, precision: int | None) -> int:
    if weights.ndim == 0:
        raise ConfigError("weights have no dimension; they must have one weight per symbol")
    return _core.checked_precision(weights.shape[-1], precision)


def _scaled_integers(weights: torch.Tensor) -> torch.Tensor:
    """Return floor(w * 2**s), int64, with the shift s that FORMAT.md defines for each row."""
    greatest = weights.amax(-1, keepdim=True)
    _check(weights >= 0, greatest > 0)
    # The position of the highest bit, from the exponent of the float, which rounding up may have made one too large.
    exponent = torch.frexp(greatest.to(torch.float64)).exponent.to(torch.int64) - 1
    exponent = exponent - ((greatest >> exponent.clamp_max(62)) == 0).to(torch.int64)
    shift = _scaled_bits(weights) - exponent
    return torch.where(shift >= 0, weights << shift.clamp_min(0), weights >> (-shift).clamp_min(0))


def _scaled_floats(weights: torch.Tensor) -> torch.Tensor:
    """Return the same for floats, computed from their bits: only the last shift rounds."""
    weights = weights.contiguous() + 0.0  # -0.0 becomes 0.0
    greatest = weights.amax(-1, keepdim=True)
    _check((weights >= 0) & torch.isfinite(weights), greatest > 0)
    bits = weights.view(torch.int64)
    field = bits >> 52
    mantissa = (bits & ((1 << 52) - 1)) | torch.where(field > 0, 1 << 52, 0)
    exponent = field.clamp_min(1)  # value = mantissa 2**(exponent - 1075)
    top = exponent.gather(-1, weights.argmax(-1, keepdim=True))
    top_mantissa = mantissa.gather(-1, weights.argmax(-1, keepdim=True))
    # The largest weight has fewer than 53 bits if it is subnormal.
    num_bits = torch.frexp(top_mantissa.to(torch.float64)).exponent.to(torch.int64)
    shift = exponent - top + (_scaled_bits(weights) + 1) - num_bits
    return torch.where(shift >= 0, mantissa << shift.clamp(0, 62), mantissa >> (-shift).clamp(0, 62))


def _check(are_good: torch.Tensor, some_positive: torch.Tensor) -> None:
    if not bool(are_good.all()):
        position = tuple(torch.nonzero(~are_good)[0].tolist())
        raise DataError(f"weight {position} is NaN, infinite or negative; weights must be finite and not negative")
    if not bool(some_positive.all()):
        raise DataError("all weights of a row are zero; at least one must be positive")


def _share(scaled: torch.Tensor, precision: int) -> torch.Tensor:
    """Return the cumulative frequencies, int32[..., V + 1], of scaled weights, int64[..., V]."""
    num_symbols = scaled.shape[-1]
    after = scaled.cumsum(-1)
    multiplier = ((2**precision - num_symbols) << _SUM_BITS) // after[..., -1:]
    starts = torch.arange(num_symbols, device=scaled.device) + (((after - scaled) * multiplier) >> _SUM_BITS)
    tables = torch.full((*scaled.shape[:-1], num_symbols + 1), 2**precision, dtype=torch.int32, device=scaled.device)
    tables[..., :-1] = starts
    return tables


def _scaled_bits(weights: torch.Tensor) -> int:
    """Return n such that the largest scaled weight of each row is in [2**n, 2**(n + 1))."""
    return min(_MAX_SCALED_BITS, _SUM_BITS - 1 - (weights.shape[-1] - 1).bit_length())
