"""Logits as integers: the constants and messages that the NumPy and the torch quantizer share."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fastcompress.errors import DataError

LOG_UNIT = 1 << 16
"""Integer logits are logarithms to base 2 in units of 1 / LOG_UNIT."""

MAX_LOG = 2.0**30 / LOG_UNIT
"""Logits further than this below the largest of their row have no weight."""

LOG2_E = 1.4426950408889634

BAD_LOGITS = "a row of logits contains NaN or +inf, or only -inf; logits must be finite, or -inf for impossible symbols"
LARGE_LOGITS = "integer logits must fit in 32 bits; give them in units of 2**-16"


def fixed_logits(logits: npt.NDArray[Any]) -> npt.NDArray[np.int32]:
    """Convert natural logarithms to integer logits of which the largest in each row is 0.

    Raises DataError for a row that contains NaN or +inf, or only -inf.
    """
    values = np.asarray(logits, np.float64)
    if values.ndim == 0 or values.shape[-1] == 0:
        return np.zeros(values.shape, np.int32)
    greatest = values.max(axis=-1, keepdims=True)
    if not np.isfinite(greatest).all():
        raise DataError(BAD_LOGITS)
    with np.errstate(over="ignore"):  # a difference beyond the range of floats becomes -inf, which has no weight
        below = np.maximum((values - greatest) * LOG2_E, -MAX_LOG)
    fixed: npt.NDArray[np.int32] = np.floor(below * LOG_UNIT + 0.5).astype(np.int32)
    return fixed
