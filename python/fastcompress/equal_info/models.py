"""Models of the next byte, and the likeliest strings under one."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from fastcompress.errors import ConfigError, DataError


class NextByteModel(Protocol):
    """How likely each byte is to follow each of some contexts."""

    def __call__(self, contexts: Sequence[bytes], /) -> npt.ArrayLike:
        """Weights, integers or floats [len(contexts), 256], at least 0 and finite, not all of a row 0.

        A context is everything since the window began, so b"" at first.
        """
        ...


_PRECISION = 32  # bits of a probability
_FRACTION = 24  # bits behind the point of a cost
_BATCH = 4096


def likeliest_strings(model: NextByteModel, num_strings: int, max_length: int) -> list[bytes]:
    """All single bytes, then the likeliest strings of 2 to `max_length` bytes, the best first: `num_strings` together.

    A string's cost is the sum of its bytes' costs, integers (`byte_costs`). The strings come by cost, those of equal
    cost in lexicographic order, and nothing else decides. A string costs at least as much as its prefixes and comes
    after them: so the set is prefix-closed. DataError: the model's answers are not weights.
    """
    rows: dict[bytes, tuple[npt.NDArray[np.intp], npt.NDArray[np.int64]]] = {}
    queue: list[tuple[int, bytes, int, int]] = []  # cost, string, its parent's cost, its rank among its siblings

    def ask(contexts: list[bytes]) -> None:
        costs = byte_costs(model, contexts)
        order = np.argsort(costs, axis=1, kind="stable")  # equal costs by byte
        for context, by_cost, row in zip(contexts, order, costs, strict=True):
            rows[context] = by_cost, row[by_cost]

    def push(prefix: bytes, prefix_cost: int, rank: int) -> None:
        """The next of the extensions of a string; those after it can wait."""
        if rank < 256 and len(prefix) < max_length:
            by_cost, costs = rows[prefix]
            string = prefix + bytes([int(by_cost[rank])])
            heapq.heappush(queue, (prefix_cost + int(costs[rank]), string, prefix_cost, rank))

    taken = [bytes([byte]) for byte in range(256)]
    first_costs = byte_costs(model, [b""])[0].tolist()
    ask(taken)
    for string, cost in zip(taken, first_costs, strict=True):
        push(string, cost, 0)
    while len(taken) < num_strings:
        cost, string, parent_cost, rank = heapq.heappop(queue)
        taken.append(string)
        if string not in rows:
            # Those next in the queue will be asked for too, unless what is taken until then has likelier extensions.
            next_ones = heapq.nsmallest(min(_BATCH, num_strings - len(taken)), queue)
            ask([string] + [waiting for _, waiting, *_ in next_ones if waiting not in rows])
        push(string[:-1], parent_cost, rank + 1)
        push(string, cost, 0)
    return taken


def byte_costs(model: NextByteModel, contexts: list[bytes]) -> npt.NDArray[np.int64]:
    """-log2 of each byte's probability after each context in units of 2**-24, int64[n, 256]: a function of the weights
    that is the same on every machine.

    A probability is weight / sum of weights in float64, the sum made from left to right, then rounded down to 32 bits,
    at least 2**-32. Its logarithm is made bit by bit, by squaring 31-bit integers.
    """
    weights = np.asarray(model(contexts), np.float64)
    if weights.shape != (len(contexts), 256):
        raise DataError(f"the model answered {len(contexts)} contexts with weights of shape {weights.shape}")
    totals = np.add.accumulate(weights, axis=1)[:, -1:]
    if not (np.isfinite(totals).all() and (weights >= 0).all() and (totals > 0).all()):
        raise DataError("the model's weights must be finite and at least 0, and not all 0")
    scale = float(1 << _PRECISION)
    probability = np.maximum(np.floor(weights / totals * scale), 1).astype(np.uint64)
    return (_PRECISION << _FRACTION) - _log2(probability)


def _log2(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    """log2 of integers from 1 to 2**32 in units of 2**-24, rounded down (and short by at most a few more units)."""
    whole = np.zeros(values.shape, np.uint64)
    shifted = values.copy()
    for step in (32, 16, 8, 4, 2, 1):
        large = shifted >> np.uint64(step) > 0
        whole += np.where(large, np.uint64(step), np.uint64(0))
        shifted = np.where(large, shifted >> np.uint64(step), shifted)
    mantissa = (values << np.uint64(31)) >> whole  # 1 to 2, in 31 bits behind the point
    result = whole.astype(np.int64)
    for _ in range(_FRACTION):
        mantissa = mantissa * mantissa >> np.uint64(31)
        carry = mantissa >> np.uint64(32)
        mantissa >>= carry
        result = result * 2 + carry.astype(np.int64)
    return result


_MAX_ORDER = 8  # counts of up to 2**30, four bits up an order, fit 63 bits


class CountModel:
    """How often each byte followed the last `order` bytes in some data, for `Codebook.from_model` and for trials.

    The weights of a context are the counts after it, plus those of ever shorter ones each worth 1/16 of the longer
    one's, plus a little for every byte. Integers.
    """

    def __init__(self, data: bytes, order: int = 3) -> None:
        """order: 0 to 8. O(order * len(data)) time; memory by the number of distinct contexts. ConfigError."""
        if not 0 <= order <= _MAX_ORDER:
            raise ConfigError(f"order is {order}; it must be 0 to {_MAX_ORDER}")
        self.order = order
        self._counts: dict[bytes, npt.NDArray[np.int64]] = {}
        codes = np.frombuffer(data, np.uint8)
        for size in range(order + 1):
            if len(codes) <= size:
                break
            windows = np.lib.stride_tricks.sliding_window_view(codes, size + 1)
            grams, counts = np.unique(np.ascontiguousarray(windows), axis=0, return_counts=True)
            for gram, count in zip(grams, counts.tolist(), strict=True):
                context = gram[:-1].tobytes()
                row = self._counts.get(context)
                if row is None:
                    row = self._counts[context] = np.zeros(256, np.int64)
                row[gram[-1]] = count

    def __call__(self, contexts: Sequence[bytes]) -> npt.NDArray[np.int64]:
        """int64[n, 256] for the contexts, of which only the last `order` bytes count."""
        rows = np.ones((len(contexts), 256), np.int64)
        for i, context in enumerate(contexts):
            for size in range(min(self.order, len(context)) + 1):
                counts = self._counts.get(context[len(context) - size :])
                if counts is not None:
                    rows[i] += counts << (4 * size)
        return rows
