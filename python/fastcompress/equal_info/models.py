"""Models of the next byte, and the most likely strings under one."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from fastcompress._arguments import as_file_bytes, as_integer, as_texts, shown
from fastcompress.errors import DataError


class NextByteModel(Protocol):
    """A function from contexts to the weights of the byte that follows each of them.

    >>> def letters_only(contexts):
    ...     return [[97 <= byte <= 122 for byte in range(256)]] * len(contexts)
    >>> from fastcompress.equal_info import Codebook
    >>> Codebook.from_model(letters_only, bits=9).strings[98:101]
    (b'aa', b'ab', b'ac')
    """

    def __call__(self, contexts: Sequence[bytes], /) -> npt.ArrayLike:
        """Return the weights of all bytes after each context.

        Args:
            contexts: The bytes since the start of a window, so b"" for the first byte.

        Returns:
            Integers or floats [len(contexts), 256], finite and at least 0, in each row at least one above 0. A row
            must not depend on the other contexts of the call.
        """
        ...


_PRECISION = 32  # bits of a probability
_FRACTION = 24  # fractional bits of a cost
ENTROPY_BITS = 12  # fractional bits of an entropy
_BATCH = 4096  # contexts per call of the model


def likeliest_strings(model: NextByteModel, num_strings: int, max_length: int) -> list[bytes]:
    """Return all single bytes, then the most likely longer strings in order of increasing cost.

    The cost of a string is the sum of the costs of its bytes, which are integers (`byte_costs`); ties are broken by
    lexicographic order. A string costs at least as much as each of its prefixes and comes after them, so the result
    contains every prefix of each of its strings.

    Args:
        model: The model of the next byte.
        num_strings: The number of strings to return, at least 256.
        max_length: The length of the longest strings, at least 2.

    Raises:
        DataError: The model did not return valid weights.
    """
    rows: dict[bytes, tuple[npt.NDArray[np.intp], npt.NDArray[np.int64]]] = {}
    queue: list[
        tuple[int, bytes, int, int]
    ] = []  # (cost, string, cost of the string without its last byte, rank among the strings that share it)

    def ask(contexts: list[bytes]) -> None:
        costs = byte_costs(model, contexts)
        order = np.argsort(costs, axis=1, kind="stable")  # equal costs by byte
        for context, by_cost, row in zip(contexts, order, costs, strict=True):
            rows[context] = by_cost, row[by_cost]

    def push(prefix: bytes, prefix_cost: int, rank: int) -> None:
        """Queue the extension of a string that has this rank by cost. Later ones follow when it has been taken."""
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
            # The next strings in the queue will probably be taken soon: ask for their extensions in the same call.
            next_ones = heapq.nsmallest(min(_BATCH, num_strings - len(taken)), queue)
            ask([string] + [waiting for _, waiting, *_ in next_ones if waiting not in rows])
        push(string[:-1], parent_cost, rank + 1)
        push(string, cost, 0)
    return taken


def byte_costs(model: NextByteModel, contexts: list[bytes]) -> npt.NDArray[np.int64]:
    """Return -log2 of the probability of each byte after each context, in units of 2**-24: int64[n, 256].

    Equal weights give equal costs on every machine: a probability is weight / sum of weights in float64, where the sum
    is taken from left to right, rounded down to a multiple of 2**-32, but at least 2**-32. Its logarithm is computed
    bit by bit, by squaring 31-bit integers.

    Raises DataError if the model did not return valid weights.
    """
    return (_PRECISION << _FRACTION) - _log2(_probabilities(model, contexts))


def byte_entropies(model: NextByteModel, contexts: list[bytes]) -> npt.NDArray[np.int64]:
    """Return the entropy of the next byte after each context, in units of 2**-12 bits: int64[n], 0 to 8 * 2**12.

    Equal weights give equal entropies on every machine: the sum of probability times cost, as in `byte_costs`, is one
    of integers, and is rounded down. Raises DataError if the model did not return valid weights.
    """
    probability = _probabilities(model, contexts)
    costs = (_PRECISION << _FRACTION) - _log2(probability)
    total = (probability.astype(np.int64) * costs).sum(axis=1)  # below 2**62
    entropies: npt.NDArray[np.int64] = np.minimum(total >> (_PRECISION + _FRACTION - ENTROPY_BITS), 8 << ENTROPY_BITS)
    return entropies


def _probabilities(model: NextByteModel, contexts: list[bytes]) -> npt.NDArray[np.uint64]:
    """Return the probabilities of all bytes after each context in units of 2**-32, rounded down, but at least 1."""
    if not callable(model):
        raise TypeError(f"the model is {shown(model)}; it must be a function from contexts to weights")
    answer = model(contexts)
    try:
        weights = np.asarray(answer, np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"the model returned {shown(answer)}; it must return weights: {error}") from error
    if weights.shape != (len(contexts), 256):
        raise DataError(
            f"the model returned weights of shape {weights.shape}; for {len(contexts)} contexts it must be "
            f"({len(contexts)}, 256)"
        )
    totals = np.add.accumulate(weights, axis=1)[:, -1:]
    if not (np.isfinite(totals).all() and (weights >= 0).all() and (totals > 0).all()):
        raise DataError("the model returned weights that are NaN, infinite or negative, or a row of zeros")
    scale = float(1 << _PRECISION)
    probability: npt.NDArray[np.uint64] = np.maximum(np.floor(weights / totals * scale), 1).astype(np.uint64)
    return probability


def _log2(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    """Return log2 of integers from 1 to 2**32, in units of 2**-24, too small by at most a few units."""
    whole = np.zeros(values.shape, np.uint64)
    shifted = values.copy()
    for step in (32, 16, 8, 4, 2, 1):
        large = shifted >> np.uint64(step) > 0
        whole += np.where(large, np.uint64(step), np.uint64(0))
        shifted = np.where(large, shifted >> np.uint64(step), shifted)
    mantissa = (values << np.uint64(31)) >> whole  # in [1, 2), with 31 fractional bits
    result = whole.astype(np.int64)
    for _ in range(_FRACTION):
        mantissa = mantissa * mantissa >> np.uint64(31)
        carry = mantissa >> np.uint64(32)
        mantissa >>= carry
        result = result * 2 + carry.astype(np.int64)
    return result


_MAX_ORDER = 8  # with a shift of 4 bits per order, counts of up to 2**30 fit in 63 bits


class CountModel:
    """A `NextByteModel` of the counts of each byte after the last 0 to `order` bytes in some data.

    The weight of a byte is 1 plus the sum over s = 0, ..., order of 16**s times the number of times that it followed
    the last s bytes. Immutable; safe to share between threads.

    >>> model = CountModel(b"abab", order=1)
    >>> row = model([b"a"])[0]
    >>> row[ord("a")], row[ord("b")], row[ord("c")]  # 1 + 2, 1 + 2 + 16 * 2, 1
    (np.int64(3), np.int64(35), np.int64(1))
    """

    def __init__(self, data: bytes, order: int = 3) -> None:
        """Count the bytes of some data.

        Args:
            data: The text to learn from.
            order: The length of the longest context in bytes, 0 to 8.

        Raises:
            ConfigError: `order` is out of range.

        Takes O(order * len(data) * log(len(data))) time, and 2 KiB of memory per distinct context.
        """
        self.order = order = as_integer(order, "order", 0, _MAX_ORDER)
        self._counts: dict[bytes, npt.NDArray[np.int64]] = {}
        codes = np.frombuffer(as_file_bytes(data, "data"), np.uint8)
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
        """Return the weights after each context, of which only the last `order` bytes matter: int64[n, 256]."""
        rows = np.ones((len(contexts), 256), np.int64)
        for i, context in enumerate(as_texts(contexts, "contexts")):
            if not isinstance(context, bytes):
                raise TypeError(f"contexts[{i}] is {shown(context)}; it must be bytes")
            for size in range(min(self.order, len(context)) + 1):
                counts = self._counts.get(context[len(context) - size :])
                if counts is not None:
                    rows[i] += counts << (4 * size)
        return rows
