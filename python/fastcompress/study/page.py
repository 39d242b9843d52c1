"""The page of a study: sentences computed from its figures, two charts, a table and the samples.

The page is one self-contained file without scripts, fonts, images or requests. Its content security policy forbids
them, so even a mistake in the escaping here could not run a sample's text as code. The fixed words and the style sheet
are in ``report_template.html``. Equal studies give equal bytes.
"""

from __future__ import annotations

import base64
import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from importlib import resources
from string import Template
from typing import Any

from fastcompress.study import charts
from fastcompress.study.findings import (
    Arm,
    bits,
    budget_part,
    cautions,
    curve_protocol,
    facts,
    flops_per_byte_rule,
    headline,
    kind,
    lede,
    limits,
    spread,
    table_protocol,
)
from fastcompress.study.wording import (
    NBSP,
    decimals,
    duration,
    escape,
    escape_sample,
    finite,
    plain,
    power,
    rounded,
    scaled,
)


def render_page(study: Mapping[str, Any]) -> str:
    """Render the page of a study that ``report.validate`` accepts, with any numbers, names and texts.

    Arms are sorted by bits per byte; each keeps the colour of its place in the study.
    """
    template = (resources.files(__package__) / "report_template.html").read_text(encoding="utf-8")
    styles = sorted(range(len(study["arms"])), key=lambda i: bits(study["arms"][i]))  # ties keep their order
    arms = [study["arms"][i] for i in styles]
    title = f"fastcompress study: {study['name']}"
    return Template(template).substitute(
        style_hash=element_hash(template, "style"),
        version=escape(study["package_version"]),
        title=escape(f"{title} ({study['created'][:10]})"),
        kicker=f"{escape(title)} · {escape(study['created'][:10])}",
        headline=escape(headline(arms)),
        lede=escape(lede(study)),
        cautions=_list("cautions", [escape(text) for text in cautions(arms)]),
        facts="\n".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in facts(study)),
        legend=_list("legend", [charts.swatch(s) + escape(arm["label"]) for s, arm in zip(styles, arms, strict=True)]),
        chart_flops=_both_layouts(arms, styles, "flops"),
        chart_steps=_both_layouts(arms, styles, "step"),
        table=_table(arms, styles, study.get("failures", [])),
        samples="\n".join(_sample(arm, style) for arm, style in zip(arms, styles, strict=True)),
        limits=escape(limits(study)),
        curve_protocol=escape(curve_protocol(study)),
        table_protocol=escape(table_protocol(study)),
        flops_per_byte_rule=escape(flops_per_byte_rule(study)),
        fingerprint=escape(study["corpus"]["fingerprint"][:16]),
    )


def element_hash(template: str, element: str) -> str:
    """Return the content security policy's hash of a page's only style sheet ("style") or script ("script")."""
    content = template.partition(f"<{element}>")[2].partition(f"</{element}>")[0]
    return "sha256-" + base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()


def _list(css_class: str, items: Sequence[str]) -> str:
    inner = "".join(f"<li>{item}</li>" for item in items)
    return f'<ul class="{css_class}">{inner}</ul>' if items else ""


def _both_layouts(arms: Sequence[Arm], styles: Sequence[int], key: str) -> str:
    """Draw validation bits per byte against ``key`` ("flops" or "step"), for wide and for narrow screens."""
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
    """Return a point of a curve; null (never measured, or diverged) becomes a NaN, which breaks the line."""
    x, y = (math.nan if point[name] is None else point[name] for name in (key, "validation_bits_per_byte"))
    train = finite(point["train_bits_per_byte"])
    lines = [
        label,
        f"{decimals(y, 3)} bits per byte on validation" + ("" if train is None else f", {train:.3f} in training"),
        f"step {point['step']:,}, {power(point['flops'])} FLOPs, {duration(point['seconds'])}",
    ]
    return charts.Point(x, y, "\n".join(lines))


# Title, what its second line says, and the two lines of a cell.
_COLUMNS: tuple[tuple[str, str, Callable[[Arm], tuple[str, str]]], ...] = (
    ("Perplexity", "per token", lambda a: (rounded(a["evaluation"]["perplexity_per_token"]), "")),
    (
        "Bytes/token",
        "vocabulary",
        lambda a: (decimals(a["bytes_per_token"], 2), f"{a['codec']['vocab_size']:,}"),
    ),
    (
        "Parameters",
        "in embeddings",
        lambda a: (scaled(a["num_parameters"]), scaled(a["num_parameters_embedding"])),
    ),
    (
        "Context",
        "in raw bytes",
        lambda a: (f"{a['context_tokens']:,} tokens", f"{decimals(a['context_bytes'], 0)} bytes"),
    ),
    ("Steps", "epochs", lambda a: (f"{a['steps']:,}", decimals(a["epochs"], 2))),
    ("Best step", "of the budget", lambda a: (f"{a['best_step']:,}", f"{100 * budget_part(a):.0f}{NBSP}%")),
    ("Training FLOPs", "per byte", lambda a: (power(a["training_flops"]), power(a["flops_per_byte"]))),
    (
        "Tokens/s",
        "training time",
        lambda a: (decimals(a["tokens_per_second"], 0), duration(a["train_seconds"])),
    ),
)


def _table(arms: Sequence[Arm], styles: Sequence[int], failures: Sequence[Mapping[str, str]]) -> str:
    titles = [("Arm", ""), ("Bits per byte", "exact?"), *((title, unit) for title, unit, _ in _COLUMNS)]
    head = "".join(f'<th scope="col">{_two_lines(title, unit)}</th>' for title, unit in titles)
    rows = []
    for arm, style in zip(arms, styles, strict=True):
        is_best = bits(arm) == bits(arms[0]) < math.inf
        best_row, badge = (' class="best"', '<span class="badge">best</span>') if is_best else ("", "")
        value = _score(arm)
        cells = "".join(f"<td>{_two_lines(*cell(arm))}</td>" for _, _, cell in _COLUMNS)
        rows.append(
            f'<tr{best_row}><th scope="row">{charts.swatch(style)}{escape(arm["label"])}</th>'
            f'<td class="result">{badge}{_two_lines(value, kind(arm))}</td>{cells}</tr>'
        )
    rows += [
        f'<tr><th scope="row">{escape(failure["label"])}</th>'
        f'<td class="result">failed</td><td colspan="{len(_COLUMNS)}">{escape(failure["error"])}</td></tr>'
        for failure in failures
    ]
    body = "\n".join(rows)
    return f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>"


def _score(arm: Arm) -> str:
    """Bits per byte, with the standard deviation over seeds if there are several."""
    if bits(arm) == math.inf:
        return "diverged"
    deviation = spread(arm)
    return f"{bits(arm):,.3f}" + ("" if deviation is None else f"{NBSP}±{NBSP}{deviation:.3f}")


def _two_lines(first: str, second: str) -> str:
    return f'{first}<span class="second">{second}</span>' if second else first


def _sample(arm: Arm, style: int) -> str:
    """Render a model's sample and notes. A sample that starts with its prompt shows the prompt once."""
    prompt, evaluation, label = arm["prompt"], arm["evaluation"], escape(arm["label"])
    continuation = arm["sample"].removeprefix(prompt)
    score = f"{_score(arm)} bits per byte" if bits(arm) < math.inf else "diverged"
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
