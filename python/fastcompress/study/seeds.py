"""One arm under several seeds: the mean of its bits per byte, and how far they scatter."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping
from typing import Any

Entry = dict[str, Any]


def over_seeds(entries: Mapping[int, Entry]) -> Entry:
    """Join the entries of an arm, by seed, to its entry in the report.

    Curve, sample and all figures but bits per byte are those of the first seed. From two seeds on, ``seeds`` has the
    bits per byte of each, their mean and their standard deviation (that of a sample: n - 1 in the divisor), and
    ``wall_seconds`` is the time of all.
    """
    seeds = sorted(entries)
    entry = dict(entries[seeds[0]])
    if len(seeds) == 1:
        return entry
    figures = [entries[seed]["evaluation"]["bits_per_byte"] for seed in seeds]
    known = [math.nan if figure is None else float(figure) for figure in figures]  # None: it diverged
    entry["seeds"] = {
        "values": [{"seed": seed, "bits_per_byte": figure} for seed, figure in zip(seeds, figures, strict=True)],
        "mean": math.fsum(known) / len(known),
        "standard_deviation": statistics.stdev(known) if all(map(math.isfinite, known)) else math.nan,
    }
    entry["wall_seconds"] = sum(entries[seed]["wall_seconds"] for seed in seeds)
    return entry
