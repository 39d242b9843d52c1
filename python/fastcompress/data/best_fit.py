"""Best fit decreasing: items of some lengths packed into bins of one capacity. NumPy only."""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt


def best_fit(lengths: npt.NDArray[np.int64], capacity: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Pack items into bins by best fit decreasing: the longest first, each into the fullest bin with room for it.

    Items of equal length keep their order, and of bins that are equally full, the one that came to be last is chosen.
    All items of one length are placed together: a bin with room for k of them takes k, since after the first it is the
    fullest with room for the next. So beyond sorting, the time depends on the different lengths and rooms, with NumPy
    doing what is left for each item.

    Args:
        lengths: The length of each item, int64[n], 1 to `capacity`.
        capacity: The length that a bin holds.

    Returns:
        The indices of the items, int64[n], bin by bin, and the number of items in each bin, int64[bins].
    """
    order = np.argsort(-lengths, kind="stable")
    bins = _Bins(capacity)
    sizes, counts = np.unique(lengths, return_counts=True)
    placed = [bins.place(size, count) for size, count in zip(sizes[::-1].tolist(), counts[::-1].tolist(), strict=True)]
    bin_of = np.concatenate(placed) if placed else np.zeros(0, np.int64)  # of the items in `order`
    return order[np.argsort(bin_of, kind="stable")], np.bincount(bin_of)


class _Bins:
    """The bins of a packing by the room that they have left."""

    def __init__(self, capacity: int) -> None:
        self._capacity, self._count = capacity, 0
        self._by_room: dict[int, list[npt.NDArray[np.int64]]] = {}  # room to bins, a stack in parts
        self._rooms: list[int] = []  # the keys of `_by_room`, in order

    def place(self, length: int, count: int) -> npt.NDArray[np.int64]:
        """Place `count` items of one length, and return the bin of each."""
        placed = []
        while count:
            at = bisect_left(self._rooms, length)
            room = self._rooms[at] if at < len(self._rooms) else self._capacity
            each = room // length
            wanted = -(-count // each)
            bins = self._take(room, wanted) if at < len(self._rooms) else self._open(wanted)
            items = np.repeat(bins, each)[:count]
            placed.append(items)
            last = len(items) - (len(bins) - 1) * each  # in the last of the bins
            self._put(bins[:-1], room - each * length)
            self._put(bins[-1:], room - last * length)
            count -= len(items)
        return np.concatenate(placed)

    def _open(self, count: int) -> npt.NDArray[np.int64]:
        self._count += count
        return np.arange(self._count - count, self._count)

    def _take(self, room: int, count: int) -> npt.NDArray[np.int64]:
        """Take at most `count` bins off the stack of a room, the last first."""
        stack, taken = self._by_room[room], []
        while count and stack:
            part = stack.pop()
            if len(part) > count:
                stack.append(part[:-count])
                part = part[-count:]
            taken.append(part[::-1])
            count -= len(part)
        if not stack:
            del self._by_room[room], self._rooms[bisect_left(self._rooms, room)]
        return np.concatenate(taken)

    def _put(self, bins: npt.NDArray[np.int64], room: int) -> None:
        if not len(bins) or not room:  # a full bin is never asked for
            return
        if room not in self._by_room:
            self._by_room[room] = []
            insort(self._rooms, room)
        self._by_room[room].append(bins)
