"""Line charts as SVG text, without a plotting library.

A chart of this report is two axes and about a dozen polylines. Writing the SVG directly keeps text as text (selectable,
searchable, in the page's font), lets colours follow the reader's light or dark scheme through CSS classes, gives the
same bytes for the same study under every library version, and needs no further dependency.

Series differ in colour (8, colour-blind safe), marker (7 shapes) and dash (4 patterns), so no reader depends on colour
alone. As 8 and 7 share no factor, 56 consecutive series all look different. Colours and dashes are the classes ``s0``
to ``s7`` and ``d0`` to ``d3`` of the page's style sheet.

Each chart is drawn once per ``Layout``. Text in an SVG shrinks with the picture, so phones get a narrow drawing whose
text is as large as that of the wide one; the style sheet shows one of the two.
"""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

NUM_COLOURS, NUM_DASHES = 8, 4
# About 9 units wide around (0, 0): disc, square, triangle, diamond, triangle down, plus, cross.
MARKERS = (
    "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0Z",
    "M-3.6 -3.6H3.6V3.6H-3.6Z",
    "M0 -4.8L4.5 3.4H-4.5Z",
    "M0 -5.2L5.2 0L0 5.2L-5.2 0Z",
    "M0 4.8L4.5 -3.4H-4.5Z",
    "M-1.4 -4.8H1.4V-1.4H4.8V1.4H1.4V4.8H-1.4V1.4H-4.8V-1.4H-1.4Z",
    "M-4.4 -2.4L-2.4 -4.4L0 -2L2.4 -4.4L4.4 -2.4L2 0L4.4 2.4L2.4 4.4L0 2L-2.4 4.4L-4.4 2.4L-2 0Z",
)
MARKER_DISTANCE = 34  # along x, at least; closer markers would hide the line
MAX_TICKS = 6
# Beyond these a coordinate means nothing, and risks overflow or the precision of subnormal numbers.
LARGEST, SMALLEST = 1e30, 1e-30
# Bits per byte of a model that has learnt nothing: higher values say "broken", not "how broken".
UNIFORM_BITS = 8.0


@dataclass(frozen=True)
class Point:
    """One measurement. ``y`` may be NaN, which breaks the line; ``tooltip`` is plain text."""

    x: float
    y: float
    tooltip: str


@dataclass(frozen=True)
class Series:
    """One line. ``style`` is its index in the study, which gives it the same look in every chart."""

    label: str
    style: int
    points: tuple[Point, ...]


@dataclass(frozen=True)
class Layout:
    """Sizes in SVG units, about one CSS pixel each where the chart is shown."""

    name: str
    width: int
    height: int
    left: int
    right: int
    top: int
    bottom: int
    labels: bool  # names at the ends of the lines, in a wider right margin; else the page needs a legend

    @property
    def plot(self) -> tuple[float, float, float, float]:
        """Left, right, top and bottom edge of the plot area."""
        return self.left, self.width - self.right, self.top, self.height - self.bottom


WIDE = Layout("wide", width=560, height=372, left=40, right=10, top=36, bottom=52, labels=True)
NARROW = Layout("narrow", width=350, height=310, left=34, right=10, top=36, bottom=52, labels=False)
LABEL_LENGTH, LABEL_UNIT = (
    18,
    7.0,
)  # characters of a name at the end of a line, and how wide one is at most, usually


@dataclass(frozen=True)
class Axis:
    """A data range and how it maps onto ``[begin, end]`` SVG units."""

    low: float
    high: float
    begin: float
    end: float
    is_log: bool
    ticks: tuple[float, ...]

    def at(self, value: float) -> float:
        low, high, value = (math.log10(v) if self.is_log else v for v in (self.low, self.high, value))
        return self.begin + (value - low) / (high - low) * (self.end - self.begin)


def linear_ticks(low: float, high: float, *, integer: bool = False) -> list[float]:
    """Return evenly spaced round numbers that enclose ``[low, high]``, at most ``MAX_TICKS + 2`` of them."""
    span = max(high - low, abs(high) * 0.02, 1e-3)  # equal values still get an axis
    magnitude = 10.0 ** math.floor(math.log10(span / MAX_TICKS))
    step = next(m * magnitude for m in (1, 2, 5, 10) if span / (m * magnitude) <= MAX_TICKS * (1 + 1e-9))
    step = max(step, 1.0) if integer else step
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    last = max(last, first + 1)
    return [round(i * step, 12) for i in range(first, last + 1)]


def log_ticks(low: float, high: float) -> list[float]:
    """Return powers of ten that enclose ``[low, high]``, both > 0; on a short axis also 3s, or 2s and 5s."""
    decades = math.log10(high / low)
    mantissas = (1, 2, 5) if decades < 1 else (1, 3) if decades < 2.2 else (1,)
    exponents = range(math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 2)
    grid = [float(f"{m}e{e}") for e in exponents for m in mantissas]
    begin = max(i for i, tick in enumerate(grid) if tick <= low * (1 + 1e-9))
    end = min(i for i, tick in enumerate(grid) if tick >= high * (1 - 1e-9))
    return grid[begin : max(end, begin + 1) + 1]


def tick_label(value: float, ticks: Sequence[float], *, is_log: bool) -> str:
    """ "10¹²" and "3×10¹¹" on a log axis; elsewhere as many decimals as the tick distance needs."""
    if is_log:
        mantissa, exponent = f"{value:.0e}".split("e")
        power = "10" + superscript(int(exponent))
        return power if mantissa == "1" else f"{mantissa}×{power}"
    decimals = max(0, -math.floor(math.log10(ticks[1] - ticks[0]) + 1e-9))
    return f"{value:,.{decimals}f}"


def superscript(exponent: int) -> str:
    return str(exponent).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


def spread(targets: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Return the positions in ``[low, high]``, ordered and ``gap`` apart, nearest to ``targets`` by least squares.

    After subtracting the room that earlier positions need, positions must not decrease: an isotonic regression, solved
    by pooling neighbours that collide around their mean. A gap that does not fit is narrowed. O(n log n).
    """
    if len(targets) > 1:
        gap = min(gap, (high - low) / (len(targets) - 1))
    order = sorted(range(len(targets)), key=lambda i: targets[i])
    pools: list[tuple[float, int]] = []  # (mean, number of targets)
    for rank, i in enumerate(order):
        mean, count = targets[i] - rank * gap, 1
        while pools and pools[-1][0] > mean:
            before, weight = pools.pop()
            mean, count = (before * weight + mean * count) / (weight + count), weight + count
        pools.append((mean, count))
    means = [mean for mean, count in pools for _ in range(count)]
    top = high - (len(targets) - 1) * gap
    placed = [0.0] * len(targets)
    for rank, i in enumerate(order):
        placed[i] = min(max(means[rank], low), top) + rank * gap
    return placed


def shorten(label: str, limit: int) -> str:
    return label if len(label) <= limit else label[: limit - 1].rstrip() + "…"


def is_drawable(point: Point, *, log_x: bool, log_y: bool = False) -> bool:
    """Return whether a point has finite, non-negative coordinates that lie on their axes (a log axis has no zero)."""
    x_is_there = (SMALLEST if log_x else 0) <= point.x <= LARGEST
    return x_is_there and (SMALLEST if log_y else 0) <= point.y <= LARGEST  # a NaN fails every comparison


def swatch(style: int) -> str:
    """Draw a sample of a series' line and marker, for legends and headings; hidden from screen readers."""
    return (
        f'<svg class="swatch s{style % NUM_COLOURS}" viewBox="0 0 30 12" width="30" height="12" '
        'aria-hidden="true">'
        f'<path class="line d{style % NUM_DASHES}" d="M1 6H29"/>{_marker(style, 15, 6)}</svg>'
    )


def line_chart(
    series: Sequence[Series],
    *,
    layout: Layout,
    key: str,
    x_title: str,
    y_title: str,
    log_x: bool,
    description: str,
    log_y: bool = False,
) -> str:
    """Draw an ``<svg>`` with axes, gridlines, a line per series and, if the layout has room, their names.

    Args:
        series: The lines. Points that ``is_drawable`` refuses break a line; without any other point, only axes are
            drawn.
        key: A name that is unique in the page, from which ids are made.
        description: A description for screen readers; plain text like all other strings.
        log_y: Whether the y axis is logarithmic, too, and shows every value.

    Works for any floats. On a linear y axis early values far above all others are cut off at the top (``y_range``).
    """
    if layout.labels:
        longest = max((len(s.label) for s in series), default=0)
        layout = replace(layout, right=round(layout.right + 14 + LABEL_UNIT * min(longest, LABEL_LENGTH)))
    left, right, top, bottom = layout.plot
    drawn = [[p for p in s.points if is_drawable(p, log_x=log_x, log_y=log_y)] for s in series]
    places = [p.x for points in drawn for p in points] or [1.0]
    x_ticks = log_ticks(min(places), max(places)) if log_x else linear_ticks(0.0, max(places), integer=True)
    heights = [p.y for points in drawn for p in points] or [1.0]
    y_ticks = log_ticks(min(heights), max(heights)) if log_y else linear_ticks(*y_range(drawn))
    # A log axis may end between two round numbers; a linear one may too, on the right: no empty strip there.
    # But it has room between its ends, and on a linear one for two ticks.
    x_high = max(places) if max(places) >= (x_ticks[0] * (1 + 1e-6) if log_x else x_ticks[1]) else x_ticks[1]
    x = Axis(x_ticks[0], x_high, left, right, log_x, tuple(t for t in x_ticks if t <= x_high * (1 + 1e-9)))
    y = Axis(y_ticks[0], y_ticks[-1], bottom, top, log_y, tuple(y_ticks))
    clip = f"clip-{key}-{layout.name}"
    lines = [_series(s, x, y, clip) for s in series]
    labels = _end_labels(series, drawn, x, y) if layout.labels else []
    return "\n".join(
        [
            f'<svg class="chart {layout.name}" viewBox="0 0 {layout.width} {layout.height}" role="img" '
            f'aria-label="{html.escape(description)}">',
            f'<clipPath id="{clip}"><rect x="{left - 6}" y="{top - 1}" width="{right - left + 12}" '
            f'height="{bottom - top + 7}"/></clipPath>',
            *_axes(x, y, x_title, y_title),
            *lines,
            *labels,
            "</svg>",
        ]
    )


def y_range(drawn: Sequence[Sequence[Point]]) -> tuple[float, float]:
    """Return the range to show: from the lowest value to the highest after each run's first tenth.

    An untrained model's first values are several times the last ones and would squeeze the part where runs differ into
    a few pixels. Values above ``UNIFORM_BITS`` (a run that diverged) do not widen the range.
    """
    late = [p.y for points in drawn for p in points if p.x >= 0.1 * points[-1].x]
    if not late:
        return 0.0, UNIFORM_BITS
    low = min(p.y for points in drawn for p in points)
    return low, min(max(late), max(UNIFORM_BITS, 2 * low))


def _axes(x: Axis, y: Axis, x_title: str, y_title: str) -> list[str]:
    parts = [f'<text class="axis-title" x="{0}" y="{y.end - 20:.0f}">{html.escape(y_title)}</text>']
    for tick in y.ticks:
        at = y.at(tick)
        label = tick_label(tick, y.ticks, is_log=y.is_log)
        parts += [
            f'<path class="grid" d="M{x.begin:.0f} {at:.1f}H{x.end:.0f}"/>',
            f'<text class="tick" x="{x.begin - 8:.0f}" y="{at + 4:.1f}" text-anchor="end">{label}</text>',
        ]
    parts.append(f'<path class="axis" d="M{x.begin:.0f} {y.begin:.0f}H{x.end:.0f}"/>')
    stride = math.ceil(len(x.ticks) / MAX_TICKS)
    for i, tick in enumerate(x.ticks):
        at = x.at(tick)
        parts.append(f'<path class="axis" d="M{at:.1f} {y.begin:.0f}v5"/>')
        if i % stride == 0:
            label = tick_label(tick, x.ticks, is_log=x.is_log)
            parts.append(f'<text class="tick" x="{at:.1f}" y="{y.begin + 20:.0f}" text-anchor="middle">{label}</text>')
    middle = (x.begin + x.end) / 2
    parts.append(
        f'<text class="axis-title" x="{middle:.0f}" y="{y.begin + 44:.0f}" text-anchor="middle">'
        f"{html.escape(x_title)}</text>"
    )
    return parts


def _series(series: Series, x: Axis, y: Axis, clip: str) -> str:
    """Draw the line (a new sub-path after each gap) and its markers, each with a tooltip."""
    path, spots, pen_is_down = [], [], False
    for point in series.points:
        if not is_drawable(point, log_x=x.is_log, log_y=y.is_log):
            pen_is_down = False
            continue
        at_x, at_y = x.at(point.x), max(y.at(point.y), -1e4)  # far off the picture is far enough
        path.append(f"{'L' if pen_is_down else 'M'}{at_x:.1f} {at_y:.1f}")
        pen_is_down = True
        if at_y >= y.end - 0.5:
            spots.append((at_x, at_y, point.tooltip))
    markers, next_x = [], math.inf
    for at_x, at_y, tooltip in reversed(spots):  # from the end, which is the point of a run that always matters
        if at_x <= next_x:
            markers.append(_marker(series.style, at_x, at_y, tooltip))
            next_x = at_x - MARKER_DISTANCE
    line = f'<path class="line d{series.style % NUM_DASHES}" d="{"".join(path)}"/>'
    return (
        f'<g class="series s{series.style % NUM_COLOURS}" data-arm="{html.escape(series.label)}">'
        f'<g clip-path="url(#{clip})">{line}</g>{"".join(markers)}</g>'
    )


def _marker(style: int, x: float, y: float, tooltip: str | None = None) -> str:
    shape = f'<path class="marker" d="{MARKERS[style % len(MARKERS)]}"/>'
    if tooltip is not None:  # a larger target than the marker itself, for fingers
        shape = f'<title>{html.escape(tooltip)}</title><circle class="target" r="11"/>{shape}'
    return f'<g transform="translate({x:.1f} {y:.1f})">{shape}</g>'


def _end_labels(series: Sequence[Series], drawn: Sequence[Sequence[Point]], x: Axis, y: Axis) -> list[str]:
    """Draw each series' name at the right, level with the end of its line or tied to it by a thin leader."""
    ends = [(x.at(p[-1].x), min(max(y.at(p[-1].y), y.end), y.begin)) if p else (x.end, y.begin) for p in drawn]
    heights = spread([end_y for _, end_y in ends], 16, y.end, y.begin)
    labels = []
    for one, points, (end_x, end_y), height in zip(series, drawn, ends, heights, strict=True):
        if points:
            bend = max(end_x + 7, x.end + 2)
            leader = f"M{end_x + 7:.1f} {end_y:.1f}H{bend:.1f}L{x.end + 14:.1f} {height:.1f}"
        else:
            leader = ""
        text = shorten(one.label, LABEL_LENGTH) if points else shorten(one.label, LABEL_LENGTH - 7) + ": none"
        labels.append(
            f'<g class="s{one.style % NUM_COLOURS}"><path class="leader" d="{leader}"/>'
            f'<text class="label" x="{x.end + 18:.0f}" y="{height + 4:.1f}">{html.escape(text)}</text></g>'
        )
    return labels
