"""The page of `fastcompress stats`: one file without scripts and without references to others.

Its content security policy allows the style sheet of the template, by its hash, and nothing else, so nothing in a text
or a token can run as a script. Equal results give equal pages.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources
from string import Template
from typing import Any

from fastcompress import __version__
from fastcompress.cli.stats_result import UNSTABLE, examples, group_head, group_rows, measures, parity_line
from fastcompress.study import charts
from fastcompress.study.page import element_hash
from fastcompress.study.wording import escape


def render(result: dict[str, Any]) -> str:
    """Return the page of a result of `stats_result.make_result`."""
    template = resources.files("fastcompress.cli").joinpath("stats_template.html").read_text(encoding="utf-8")
    codec, total = result["codec"], result["total"]
    ratio = total["bytes_per_token"]
    return Template(template).substitute(
        style_hash=element_hash(template, "style"),
        version=escape(__version__),
        title=escape(f"{codec['name']}: statistics"),
        codec=escape(codec["name"]),
        headline=escape(
            f"{codec['name']} needs {total['tokens']:,} tokens for {total['bytes']:,} bytes"
            + ("" if ratio is None else f": {ratio:.3f} bytes per token")
        ),
        facts="\n".join(f"<div><dt>{name}</dt><dd>{escape(value)}</dd></div>" for name, value in _facts(result)),
        groups=_table(group_head(result), group_rows(result)),
        parity=escape(parity_line(result)),
        chart=_zipf_chart(result),
        frequent=_token_table(result["most_frequent"]),
        longest=_token_table(result["vocabulary"]["longest"]) if result["vocabulary"] else _NO_STRINGS,
        unstable=escape(UNSTABLE.format(tested=result["vocabulary"]["num_tested"])) if result["vocabulary"] else "",
        measures=_measures(result),
        injections=_injections(result),
        fingerprint=escape(codec["fingerprint"][:16]),
    )


_NO_STRINGS = '<p class="about">The tokens of this codec have no bytes of their own.</p>'


def _facts(result: dict[str, Any]) -> list[tuple[str, str]]:
    codec, total, vocabulary = result["codec"], result["total"], result["vocabulary"]
    facts = [
        ("Text", f"{total['documents']:,} documents, {total['words']:,} words, {total['characters']:,} characters"),
        ("Vocabulary", f"{codec['vocab_size']:,} ids, of which {result['num_distinct']:,} occur in the text"),
    ]
    if vocabulary is not None:
        facts.append(("Tokens", f"{vocabulary['num_ordinary']:,} ordinary, {vocabulary['num_special']:,} special"))
    if result["unigram_bits_per_byte"] is not None:
        per_token, per_byte = result["unigram_bits_per_token"], result["unigram_bits_per_byte"]
        facts.append(("Entropy of token frequencies", f"{per_token:.3f} bits per token, {per_byte:.3f} per byte"))
    return facts


def _zipf_chart(result: dict[str, Any]) -> str:
    """Draw the number of occurrences against the rank, for wide and for narrow screens."""
    if not result["zipf"]:
        return '<p class="about">The text has no tokens.</p>'
    points = tuple(charts.Point(rank, number, f"rank {rank:,}: {number:,} times") for rank, number in result["zipf"])
    (_, most), (last, least) = result["zipf"][0], result["zipf"][-1]
    description = (
        f"Line chart of how often a token occurs against its rank, both axes logarithmic. The most frequent token "
        f"occurs {most:,} times, the one of rank {last:,} {least:,} times."
    )
    return "\n".join(
        charts.line_chart(
            [charts.Series("", 0, points)],
            layout=layout,
            key="zipf",
            x_title="Rank of the token (log scale)",
            y_title="Occurrences (log scale)",
            log_x=True,
            log_y=True,
            description=description,
        )
        for layout in (charts.WIDE, charts.NARROW)
    )


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    titles = "".join(f'<th scope="col">{escape(title)}</th>' for title in head)
    body = "\n".join(
        f'<tr><th scope="row">{escape(row[0])}</th>' + "".join(f"<td>{escape(cell)}</td>" for cell in row[1:]) + "</tr>"
        for row in rows
    )
    return f"<table>\n<thead><tr>{titles}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>"


def _token_table(tokens: Sequence[dict[str, Any]]) -> str:
    if not tokens:
        return '<p class="about">There are none.</p>'
    body = "\n".join(
        f'<tr><th scope="row"><code>{escape(token["shown"])}</code></th><td>{token["id"]}</td>'
        f"<td>{token.get('num_bytes', '')}</td><td>{token['count']:,}</td></tr>"
        for token in tokens
    )
    titles = "".join(f'<th scope="col">{title}</th>' for title in ("token", "id", "bytes", "occurs"))
    return f"<table>\n<thead><tr>{titles}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>"


def _measures(result: dict[str, Any]) -> str:
    """Return a list of the measures: number, name, what it means, and a few tokens."""
    items = []
    for name, meaning, ids in measures(result):
        some = " ".join(f"<code>{escape(text)}</code>" for text in examples(result, ids))
        more = f" and {len(ids) - len(examples(result, ids)):,} more" if len(ids) > len(examples(result, ids)) else ""
        shown = f'<p class="examples">{some}{more}</p>' if ids else ""
        items.append(
            f'<div class="measure"><h3><b>{len(ids):,}</b> {escape(name)}</h3><p>{escape(meaning)}</p>{shown}</div>'
        )
    return "\n".join(items)


def _injections(result: dict[str, Any]) -> str:
    found = result["special_tokens"]
    if not found:
        return '<p class="about">No text spells a special token.</p>'
    return _table(
        ["spelling", "occurrences", "documents"],
        [[repr(text), f"{counts['occurrences']:,}", f"{counts['documents']:,}"] for text, counts in found.items()],
    )
