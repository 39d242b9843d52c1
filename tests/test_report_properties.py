"""Of the report: any text is harmless, any number drawn or left out, ticks and labels keep to rules."""

from __future__ import annotations

import copy
import itertools
import json
import math
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastcompress.study.charts import (
    NARROW,
    WIDE,
    Point,
    Series,
    line_chart,
    linear_ticks,
    log_ticks,
    spread,
    tick_label,
)
from fastcompress.study.page import render_page
from fastcompress.study.report import validate

STUDY = json.loads((Path(__file__).parent / "vectors" / "study.json").read_text(encoding="utf-8"))
FRAGMENTS = [
    "<script>",
    "</pre>",
    "</svg>",
    "</style>",
    "<!--",
    "]]>",
    "&#0;",
    '"',
    "'",
    "$x",
    "\0",
    "\ud83d",
]
NASTY_TEXT = st.one_of(
    st.text(st.characters(exclude_categories=())),  # lone surrogates included
    st.lists(st.sampled_from(FRAGMENTS)).map("".join),
)
ANY_NUMBER = st.one_of(st.none(), st.floats(), st.integers(-(10**40), 10**40))


class Tags(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []  # outside drawings; a longer name moves and so adds or drops markers inside
        self.drawing_tags: set[str] = set()
        self.attributes: set[str] = set()
        self._in_drawing = False
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if self._in_drawing:
            self.drawing_tags.add(tag)
        elif tag != "span":  # unseen characters get spans of their own
            self.tags.append(tag)
        self._in_drawing |= tag == "svg"
        self.attributes |= {name for name, _ in attrs}

    def handle_endtag(self, tag: str) -> None:
        self._in_drawing &= tag != "svg"


PLAIN = Tags(render_page(STUDY))


@settings(max_examples=60, deadline=None)
@given(texts=st.lists(NASTY_TEXT, min_size=8, max_size=8))
def test_no_text_adds_markup_to_the_page(texts: list[str]) -> None:
    study = copy.deepcopy(STUDY)
    arm = study["arms"][2]
    arm.update(prompt=texts[0], sample=texts[0] + texts[1], label=texts[2])
    arm["notes"][0] = texts[3]
    study.update(command=texts[4], created=texts[5], name=texts[6])
    study["machine"]["device_name"] = texts[7]
    validate(study)
    page = render_page(study)
    found = Tags(page)
    assert found.tags == PLAIN.tags
    assert found.drawing_tags == PLAIN.drawing_tags
    assert found.attributes == PLAIN.attributes
    assert page.encode("utf-8").decode("utf-8") == page  # no lone surrogate got through
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", page)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_any_numbers_make_a_page(data: st.DataObject) -> None:
    study = copy.deepcopy(STUDY)
    for arm in study["arms"]:
        for point in arm["curve"][::3]:
            for key in ("flops", "seconds", "train_bits_per_byte", "validation_bits_per_byte"):
                point[key] = data.draw(ANY_NUMBER)
        arm["curve"] = arm["curve"][:: data.draw(st.sampled_from([1, 3, -3]))]
        for key in ("bits_per_byte", "bits_per_byte_text", "perplexity_per_token"):
            arm["evaluation"][key] = data.draw(ANY_NUMBER)
        for key in ("bytes_per_token", "context_bytes", "training_flops", "flops_per_byte", "epochs"):
            arm[key] = data.draw(ANY_NUMBER)
        for key in ("tokens_per_second", "train_seconds"):
            arm[key] = data.draw(ANY_NUMBER)
    study["wall_seconds"], study["budget"]["training_flops"] = data.draw(ANY_NUMBER), data.draw(ANY_NUMBER)
    validate(study)
    drawing = "".join(re.findall(r"<svg.*?</svg>", render_page(study), re.DOTALL))
    for numbers in re.findall(r' (?:d|x|y|transform)="([^"]*)"', drawing):
        assert not re.search("nan|inf|e[+-]?[0-9]", numbers), numbers


# What has made drawings fail: zero, subnormal and enormous numbers, neighbours, round numbers and those just beside.
ODD_NUMBERS = [
    0.0, -0.0, 5e-324, 2.3e-308, 1e-30, 0.3, 0.5, 1.0, 1.0 + 2**-52, 999.9999999999999, 1000.0000000000001,
    1e10, 10000000000.000002, 1e30, 1.7e308, math.inf, -math.inf, math.nan, -1.0,
]  # fmt: skip
PLACES = st.one_of(st.sampled_from(ODD_NUMBERS), st.floats())
POINTS = st.builds(Point, PLACES, PLACES, st.just("tooltip"))
SERIES = st.builds(Series, st.text(max_size=30), st.integers(0, 60), st.lists(POINTS, max_size=6).map(tuple))


def draw(series: list[Series], log_x: bool) -> None:
    """Draw a chart both ways; every number in it must be a plain one."""
    for layout in (WIDE, NARROW):
        svg = line_chart(series, layout=layout, key="k", x_title="x", y_title="y", log_x=log_x, description="d")
        assert svg.count('<g class="series') == len(series)
        for numbers in re.findall(r' (?:d|x|y|transform)="([^"]*)"', svg):
            assert not re.search("nan|inf|e[+-]?[0-9]", numbers), numbers


@pytest.mark.slow
@settings(max_examples=400)
@given(st.lists(SERIES, max_size=4), st.booleans())
def test_a_chart_never_fails(series: list[Series], log_x: bool) -> None:
    draw(series, log_x)


@pytest.mark.parametrize("log_x", [False, True])
def test_a_chart_of_any_two_odd_places_never_fails(log_x: bool) -> None:
    draw([], log_x)
    draw([Series("empty", 0, ())], log_x)
    for first, second in itertools.product(ODD_NUMBERS, repeat=2):
        draw([Series("s", 0, (Point(first, 1.0, ""), Point(second, 2.0, "")))], log_x)
        draw([Series("s", 0, (Point(1.0, first, ""), Point(2.0, second, "")))], log_x)
    for one in ODD_NUMBERS:
        draw([Series("s", 0, (Point(one, one, ""),))], log_x)


finite = st.floats(0, 1e12)


@given(finite, finite, st.booleans())
def test_linear_ticks_are_even_and_enclose_the_range(a: float, b: float, integer: bool) -> None:
    low, high = sorted((a, b))
    ticks = linear_ticks(low, high, integer=integer)
    assert 2 <= len(ticks) <= 8
    step = ticks[1] - ticks[0]
    slack = 1e-6 * step
    assert ticks[0] <= low + slack
    assert ticks[-1] >= high - slack
    assert all(abs(y - x - step) <= slack for x, y in itertools.pairwise(ticks))
    labels = [tick_label(tick, ticks, is_log=False) for tick in ticks]
    assert len(set(labels)) == len(labels)
    assert not integer or all(tick == int(tick) for tick in ticks)


@given(st.floats(1e-3, 1e30), st.floats(1e-3, 1e30))
def test_log_ticks_enclose_the_range(a: float, b: float) -> None:
    low, high = sorted((a, b))
    ticks = log_ticks(low, high)
    assert len(ticks) >= 2
    assert ticks == sorted(set(ticks))
    assert ticks[0] <= low * 1.000001
    assert ticks[-1] >= high * 0.999999
    assert len({tick_label(tick, ticks, is_log=True) for tick in ticks}) == len(ticks)


@given(st.lists(st.integers(0, 12), min_size=1, max_size=4), st.integers(1, 5))
def test_spread_is_the_nearest_legal_placement(targets: list[int], gap: int) -> None:
    """Against every placement on a grid of halves: none that keeps the rules is nearer."""
    low, high = 0, 12
    if len(targets) > 1 and gap * (len(targets) - 1) > high - low:
        gap = (high - low) // (len(targets) - 1)
    placed = spread(targets, gap, low, high)
    order = sorted(range(len(targets)), key=lambda i: targets[i])
    assert all(low - 1e-9 <= p <= high + 1e-9 for p in placed)
    assert all(placed[b] - placed[a] >= gap - 1e-9 for a, b in itertools.pairwise(order))

    def cost(positions: Any) -> float:
        return math.fsum((p - t) ** 2 for p, t in zip(positions, targets, strict=True))

    best = math.inf
    for grid in itertools.combinations(range(2 * low, 2 * high + 1), len(targets)):
        if all(b - a >= 2 * gap for a, b in itertools.pairwise(grid)):
            candidate = [0.0] * len(targets)
            for rank, i in enumerate(order):
                candidate[i] = grid[rank] / 2
            best = min(best, cost(candidate))
    assert cost(placed) <= best + 1e-9


@given(st.lists(st.floats(-100, 500), min_size=1, max_size=60))
def test_spread_always_fits(targets: list[float]) -> None:
    placed = spread(targets, 16, 36, 320)
    assert all(36 - 1e-6 <= p <= 320 + 1e-6 for p in placed)
