"""The page of a study: plain sentences computed from its figures, two charts, a table and the samples.

The page is one file that needs nothing else: no script at all, no font, no image, no request. Its content
security policy forbids each of them, so even a mistake in the escaping here could not run a sample's text as
code. The fixed words and the style sheet stand in ``report_template.html``. Equal studies give equal bytes.
"""

from __future__ import annotations

import base64
import hashlib
import html
import math
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from importlib import resources
from string import Template
from typing import Any

from fastcompress.study import charts

EQUAL_FLOPS = 1.05  # arms whose training FLOPs differ by at most this factor count as equally expensive
CHANCE = 0.01  # a relative gap that another seed could well turn round (one seed is all a study has)

NBSP = "\u00a0"  # keeps a number and its unit on one line

Arm = Mapping[str, Any]


def render_page(study: Mapping[str, Any]) -> str:
    """The whole page for a study that ``report.validate`` accepts; any numbers, names and texts will do.

    Arms stand in the order of their bits per byte; each keeps the colour of its place in the study.
    """
    template = (resources.files(__package__) / "report_template.html").read_text(encoding="utf-8")
    styles = sorted(range(len(study["arms"])), key=lambda i: _bits(study["arms"][i]))  # ties keep their order
    arms = [study["arms"][i] for i in styles]
    title = f"fastcompress study: {study['name']}"
    return Template(template).substitute(
        style_hash=_style_hash(template),
        version=escape(study["package_version"]),
        title=escape(f"{title} ({study['created'][:10]})"),
        kicker=f"{escape(title)} · {escape(study['created'][:10])}",
        headline=escape(headline(arms)),
        lede=escape(_lede(study)),
        cautions=_list("cautions", [escape(text) for text in cautions(arms)]),
        facts="\n".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in _facts(study)),
        legend=_list("legend", [charts.swatch(s) + escape(arm["label"]) for s, arm in zip(styles, arms, strict=True)]),
        chart_flops=_both_layouts(arms, styles, "flops"),
        chart_steps=_both_layouts(arms, styles, "step"),
        table=_table(arms, styles),
        samples="\n".join(_sample(arm, style) for arm, style in zip(arms, styles, strict=True)),
        limits=escape(_limits(study)),
        fingerprint=escape(study["corpus"]["fingerprint"][:16]),
    )


def _style_hash(template: str) -> str:
    """The content security policy's name for the page's one style sheet."""
    style = template.partition("<style>")[2].partition("</style>")[0]
    return "sha256-" + base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()


# -- text and numbers ----------------------------------------------------------------------------------------


def _is_unseen(character: str) -> bool:
    """What a page would swallow, refuse or reorder lines by: controls, lone surrogates, format characters.

    The two joiners stay, since Persian, Indic scripts and emoji need them.
    """
    if character in "\u200c\u200d":
        return False
    return unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp") or ord(character) & 0xFFFE == 0xFFFE


def plain(text: str) -> str:
    """``text`` on one line, with code points in place of unseen characters; not yet escaped for HTML."""
    return "".join(f"U+{ord(c):04X}" if _is_unseen(c) else c for c in text)


def escape(text: str) -> str:
    """``plain`` text, safe between tags and inside a quoted attribute."""
    return html.escape(plain(text))


def escape_sample(text: str) -> str:
    """Safe inside ``<pre>``: line ends and tabs stay, other unseen characters become marked boxes."""
    return "".join(
        f'<span class="unseen">U+{ord(c):04X}</span>' if c not in "\n\t" and _is_unseen(c) else html.escape(c)
        for c in text
    )


def _finite(value: float | None) -> float | None:
    """None for null, NaN and infinities, and for what is too large to mean anything."""
    return value if value is not None and abs(value) <= charts.LARGEST else None


def _decimals(value: float | None, places: int) -> str:
    value = _finite(value)
    return "–" if value is None else f"{value:,.{places}f}"


def _rounded(value: float | None) -> str:
    """Three significant digits, as in 6.10 and 12.3; whole numbers from 100, scientific from a million."""
    value = _finite(value)
    if value is None:
        return "–"
    exponent = int(f"{value:.2e}".partition("e")[2])  # after rounding: 9.996 is 10.0
    return f"{value:,.{max(0, 2 - exponent)}f}" if -3 <= exponent < 6 else _power(value)


def _power(value: float | None) -> str:
    """Scientific notation, as in 1.00 × 10¹²."""
    value = _finite(value)
    if not value:
        return "–" if value is None else "0"
    mantissa, exponent = f"{value:.2e}".split("e")
    return f"{mantissa}{NBSP}×{NBSP}10{charts.superscript(int(exponent))}"


def _scaled(count: int) -> str:
    """Three significant digits with k, M or B, as people write model sizes."""
    for size, suffix in ((10**9, "B"), (10**6, "M"), (10**3, "k")):
        if count >= size:
            return f"{_rounded(count / size)} {suffix}"
    return str(count)


def _duration(seconds: float | None) -> str:
    seconds = _finite(seconds)
    if seconds is None:
        return "–"
    if seconds < 120:
        return f"{seconds:.{1 if seconds < 10 else 0}f} s"
    if seconds < 600:
        return f"{round(seconds) // 60} min {round(seconds) % 60} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60:,} h {minutes % 60} min"


def _of(part: int, whole: int) -> str:
    return f"all {whole:,}" if part == whole else f"{part:,} of {whole:,}"


def _name(arm: Arm) -> str:
    """An arm's label, short enough to stand in a sentence; not escaped."""
    return charts.shorten(arm["label"], 48)


def _names(arms: Sequence[Arm]) -> str:
    names = [_name(arm) for arm in arms]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


# -- what the data say ---------------------------------------------------------------------------------------


def _bits(arm: Arm) -> float:
    """Bits per byte; infinity for a run that diverged, so that it sorts last."""
    value = _finite(arm["evaluation"]["bits_per_byte"])
    return math.inf if value is None or value < 0 else value


def _kind(arm: Arm) -> str:
    return "exact" if arm["evaluation"]["is_exact"] else "upper bound"


def _flops_range(arms: Sequence[Arm]) -> tuple[float, float]:
    flops = [_finite(arm["training_flops"]) or 0.0 for arm in arms]
    return min(flops), max(flops)


def _flops_are_equal(arms: Sequence[Arm]) -> bool:
    low, high = _flops_range(arms)
    return high <= EQUAL_FLOPS * low


def headline(arms: Sequence[Arm]) -> str:
    """The result in one plain sentence, not escaped. ``arms`` are sorted by ``_bits``, fewest first."""
    best = arms[0]
    if _bits(best) == math.inf:
        return "Every arm diverged: there are no bits per byte to compare."
    value = f"{_bits(best):.3f} ({_kind(best)})"
    if len(arms) == 1:
        return f"{_name(best)}: {value} bits per byte."
    terms = "at equal training FLOPs" if _flops_are_equal(arms) else "at unequal training FLOPs"
    tied = [arm for arm in arms if _bits(arm) == _bits(best)]
    if len(tied) > 1:
        return f"{_names(tied)} tie {terms}: {_bits(best):.3f} bits per byte."
    start = f"Fewest bits per byte {terms}: {_name(best)}, {value}"
    second = arms[1]
    if _bits(second) == math.inf:
        return f"{start}; no other arm has a finite figure."
    percent = 100 * (1 - _bits(best) / _bits(second))
    margin = f"{percent:.1f}{NBSP}%" if percent >= 0.05 else f"less than 0.1{NBSP}%"
    return f"{start}, {margin} fewer than {_name(second)} at {_bits(second):.3f} ({_kind(second)})."


def cautions(arms: Sequence[Arm]) -> list[str]:
    """What makes the headline less certain than it sounds, as sentences, not escaped; ``arms`` as there."""
    found = []
    finite = [arm for arm in arms if _bits(arm) < math.inf]
    if len(finite) < len(arms):
        found.append(f"Diverged, so without a figure: {_names(arms[len(finite) :])}.")
    if not _flops_are_equal(arms):
        low, high = (_power(flops) for flops in _flops_range(arms))
        found.append(f"The arms spent from {low} to {high} training FLOPs: not like with like.")
    if len({(arm["evaluation"]["num_bytes"], arm["evaluation"]["num_documents"]) for arm in arms}) > 1:
        found.append("The arms did not score the same bytes, so their figures must not be compared.")
    if len(finite) > 1 and 0 < _bits(finite[1]) - _bits(finite[0]) < CHANCE * _bits(finite[1]):
        found.append(f"The lead is under {100 * CHANCE:.0f}{NBSP}%: another seed could turn it round.")
    bounds = [arm for arm in finite[1:] if not arm["evaluation"]["is_exact"]]
    if bounds:
        found.append(f"An upper bound can lie above the true value: {_names(bounds)} may be better than shown.")
    return found


def _lede(study: Mapping[str, Any]) -> str:
    arms = study["arms"]
    who = f"Each of {len(arms)} models, one for each tokenization," if len(arms) > 1 else "One model"
    budget = _power(study["budget"]["training_flops"])
    return (
        f"{who} learnt from {study['corpus']['name']} within {budget} FLOPs, then predicted text it had not "
        "seen. Bits per byte say how much each byte of that text surprised it: fewer is better, and 8 is no "
        "knowledge at all."
    )


def _facts(study: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The terms of the experiment: (name, escaped HTML)."""
    corpus, machine, split = study["corpus"], study["machine"], study["evaluated_split"]
    train, held_out = corpus["splits"]["train"], corpus["splits"][split]
    scored = study["arms"][0]["evaluation"]
    created = study["created"].replace("T", " ").replace("Z", " UTC")
    return [
        (
            "Corpus, training split",
            f"{escape(corpus['name'])}: {train['documents']:,} documents, {train['bytes']:,} bytes",
        ),
        (
            "Scored on",
            f"{escape(split)} split: {_of(scored['num_documents'], held_out['documents'])} documents, "
            f"{_of(scored['num_bytes'], held_out['bytes'])} bytes",
        ),
        ("Budget", f"{_power(study['budget']['training_flops'])} training FLOPs for each arm"),
        ("Date", f"{escape(created)}, {_duration(study['wall_seconds'])} in all"),
        (
            "Machine",
            f"{escape(machine['device_name'])} ({escape(machine['device'])}), {machine['num_threads']} "
            f"threads, Python {escape(machine['python'])}, PyTorch {escape(machine['torch'])}",
        ),
        (
            "Run it again",
            f"<code>{escape(study['command'])}</code> (fastcompress {escape(study['package_version'])})",
        ),
    ]


def _limits(study: Mapping[str, Any]) -> str:
    text = (
        f"One seed ({study['seed']}): a rerun with another moves every figure a little, and a gap of a "
        "percent or less may be chance. Small models, one corpus, little compute: which tokenization wins "
        "can change with scale. No arm's hyperparameters were tuned."
    )
    if study["evaluated_split"] == "validation":
        text += " The validation split also chose each arm's best checkpoint, which flatters it a little."
    return text


# -- parts of the page ---------------------------------------------------------------------------------------


def _list(css_class: str, items: Sequence[str]) -> str:
    inner = "".join(f"<li>{item}</li>" for item in items)
    return f'<ul class="{css_class}">{inner}</ul>' if items else ""


def _both_layouts(arms: Sequence[Arm], styles: Sequence[int], key: str) -> str:
    """Validation bits per byte against ``key`` ("flops" or "step"), drawn for wide and for narrow screens."""
    log_x = key == "flops"
    series, ends = [], []
    for arm, style in zip(arms, styles, strict=True):
        label = plain(arm["label"])
        points = tuple(_point(label, point, key) for point in arm["curve"])
        series.append(charts.Series(label, style, points))
        drawn = [p for p in points if charts.is_drawable(p, log_x=log_x)]
        ends.append(f"{label} ends at {drawn[-1].y:.3f}" if drawn else f"{label} has no finite value")
    against = "training FLOPs" if log_x else "optimizer steps"
    description = f"Line chart of validation bits per byte against {against}. {'; '.join(ends)}."
    return "\n".join(
        charts.line_chart(
            series,
            layout=layout,
            key=key,
            x_title="Training FLOPs (log scale)" if log_x else "Optimizer steps",
            y_title="Validation bits per byte",
            log_x=log_x,
            description=description,
        )
        for layout in (charts.WIDE, charts.NARROW)
    )


def _point(label: str, point: Mapping[str, Any], key: str) -> charts.Point:
    """One measurement of a curve; null (never measured, or diverged) becomes the NaN that breaks the line."""
    x, y = (math.nan if point[name] is None else point[name] for name in (key, "validation_bits_per_byte"))
    train = _finite(point["train_bits_per_byte"])
    lines = [
        label,
        f"{_decimals(y, 3)} bits per byte on validation" + ("" if train is None else f", {train:.3f} in training"),
        f"step {point['step']:,}, {_power(point['flops'])} FLOPs, {_duration(point['seconds'])}",
    ]
    return charts.Point(x, y, "\n".join(lines))


# Title, what its second line says, and the two lines of a cell.
_COLUMNS: tuple[tuple[str, str, Callable[[Arm], tuple[str, str]]], ...] = (
    ("Perplexity", "per token", lambda a: (_rounded(a["evaluation"]["perplexity_per_token"]), "")),
    (
        "Bytes/token",
        "vocabulary",
        lambda a: (_decimals(a["bytes_per_token"], 2), f"{a['codec']['vocab_size']:,}"),
    ),
    (
        "Parameters",
        "in embeddings",
        lambda a: (_scaled(a["num_parameters"]), _scaled(a["num_parameters_embedding"])),
    ),
    (
        "Context",
        "in raw bytes",
        lambda a: (f"{a['context_tokens']:,} tokens", f"{_decimals(a['context_bytes'], 0)} bytes"),
    ),
    ("Steps", "epochs", lambda a: (f"{a['steps']:,}", _decimals(a["epochs"], 2))),
    ("Training FLOPs", "per byte", lambda a: (_power(a["training_flops"]), _power(a["flops_per_byte"]))),
    (
        "Tokens/s",
        "training time",
        lambda a: (_decimals(a["tokens_per_second"], 0), _duration(a["train_seconds"])),
    ),
)


def _table(arms: Sequence[Arm], styles: Sequence[int]) -> str:
    titles = [("Arm", ""), ("Bits per byte", "exact?"), *((title, unit) for title, unit, _ in _COLUMNS)]
    head = "".join(f'<th scope="col">{_two_lines(title, unit)}</th>' for title, unit in titles)
    rows = []
    for arm, style in zip(arms, styles, strict=True):
        is_best = _bits(arm) == _bits(arms[0]) < math.inf
        best_row, badge = (' class="best"', '<span class="badge">best</span>') if is_best else ("", "")
        value = f"{_bits(arm):,.3f}" if _bits(arm) < math.inf else "diverged"
        cells = "".join(f"<td>{_two_lines(*cell(arm))}</td>" for _, _, cell in _COLUMNS)
        rows.append(
            f'<tr{best_row}><th scope="row">{charts.swatch(style)}{escape(arm["label"])}</th>'
            f'<td class="result">{badge}{_two_lines(value, _kind(arm))}</td>{cells}</tr>'
        )
    body = "\n".join(rows)
    return f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>"


def _two_lines(first: str, second: str) -> str:
    return f'{first}<span class="second">{second}</span>' if second else first


def _sample(arm: Arm, style: int) -> str:
    """What one model wrote, with its notes. A sample that starts with its prompt shows the prompt once."""
    prompt, evaluation, label = arm["prompt"], arm["evaluation"], escape(arm["label"])
    continuation = arm["sample"].removeprefix(prompt)
    score = f"{_bits(arm):,.3f} bits per byte" if _bits(arm) < math.inf else "diverged"
    model = ", ".join(f"{key} {value}" for key, value in sorted(arm["model"].items()))
    notes = [
        *arm["notes"],
        f"Model: {model}",
        f"Best checkpoint at step {arm['best_step']:,}; scored in windows of "
        f"{evaluation['context_length']:,} tokens, stride {evaluation['stride']:,}",
    ]
    return (
        f'<article data-arm="{label}"><h3>{charts.swatch(style)}{label}</h3><p class="score">{score}</p>'
        f'<pre><span class="prompt">{escape_sample(prompt)}</span>{escape_sample(continuation)}</pre>'
        f"{_list('notes', [escape(note) for note in notes])}</article>"
    )
