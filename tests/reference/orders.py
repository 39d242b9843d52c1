"""Order 2 of an epoch's windows, one index at a time, as the head of fastcompress/data/orders.py defines it."""

from __future__ import annotations

import math
from collections.abc import Sequence


def mix(word: int) -> int:
    word = (word ^ word >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    word = (word ^ word >> 27) * 0x94D049BB133111EB % 2**64
    return word ^ word >> 31


def window(index: int, keys: Sequence[int], num_windows: int) -> int:
    a = math.isqrt(num_windows)
    while a * a < num_windows:
        a += 1
    b = math.ceil(num_windows / a)
    while True:
        left, right = divmod(index, b)
        for first, second in zip(keys[0::2], keys[1::2], strict=True):
            left = (left + mix((right + first) % 2**64) % a) % a
            right = (right + mix((left + second) % 2**64) % b) % b
        index = left * b + right
        if index < num_windows:
            return index
