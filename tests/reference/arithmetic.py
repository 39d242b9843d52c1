"""The quantizer and the range coder by whole numbers of any size: no carries, no overflow, nothing clever."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction


def floor_log2(value: Fraction) -> int:
    """The e with 2**e <= value < 2**(e + 1)."""
    e = value.numerator.bit_length() - value.denominator.bit_length()
    return e if Fraction(2) ** e <= value else e - 1


def scaled_bits(num_symbols: int) -> int:
    return min(30, 38 - (num_symbols - 1).bit_length())


def quantize(weights: Sequence[float | int], precision: int) -> list[int]:
    """Cumulative frequencies of exact weights: FORMAT.md, Frequencies."""
    exact = [Fraction(weight) for weight in weights]
    factor = Fraction(2) ** (scaled_bits(len(weights)) - floor_log2(max(exact)))
    return share([int(weight * factor) for weight in exact], precision)


def quantize_logits(logits: Sequence[int], precision: int, coarse: Sequence[int], fine: Sequence[int]) -> list[int]:
    """The same of integer logits."""
    scaled = []
    for logit in logits:
        whole, fraction = divmod(max(logits) - logit, 65536)
        product = coarse[fraction // 256] * fine[fraction % 256]
        weight = product >> (32 + whole) if whole <= 30 else 0
        scaled.append(weight >> (30 - scaled_bits(len(logits))))
    return share(scaled, precision)


def share(scaled: Sequence[int], precision: int) -> list[int]:
    multiplier = ((2**precision - len(scaled)) << 39) // sum(scaled)
    borders = [i + (sum(scaled[:i]) * multiplier >> 39) for i in range(len(scaled))]
    return [*borders, 2**precision]


def encode(slots: Sequence[tuple[int, int, int]]) -> bytes:
    """The code of (cumulative, frequency, precision) triples: the words written, then the fewest bits that end it."""
    low, size, num_bits = 0, 2**64 - 1, 64  # the interval [low, low + size) in units of 2**-num_bits
    for cumulative, frequency, precision in slots:
        scale = size >> precision
        low += scale * cumulative
        size = scale * frequency
        if size < 2**32:
            low <<= 32
            size <<= 32
            num_bits += 32
    for kept in range(num_bits - 64, num_bits + 1):  # num_bits - 64 bits are written already, and are not taken back
        unit = 2 ** (num_bits - kept)
        value = -(-low // unit)
        if value * unit < low + size:
            padding = -kept % 8
            return (value << padding).to_bytes((kept + 7) // 8, "big")
    raise AssertionError("no number")


def decode(message: bytes, tables: Sequence[Sequence[int]]) -> list[int]:
    """One symbol for each table of cumulative frequencies."""
    value = int.from_bytes(message, "big")
    num_bits = 8 * len(message)
    low, size, scale_bits = 0, 2**64 - 1, 64
    symbols = []
    for table in tables:
        scale = size // table[-1]
        at = (value << max(0, scale_bits - num_bits) >> max(0, num_bits - scale_bits)) - low
        quantile = at // scale
        symbol = max(s for s in range(len(table) - 1) if table[s] <= quantile)
        symbols.append(symbol)
        low += scale * table[symbol]
        size = scale * (table[symbol + 1] - table[symbol])
        if size < 2**32:
            low <<= 32
            size <<= 32
            scale_bits += 32
    return symbols
