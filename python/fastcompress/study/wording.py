"""Text and numbers as the page of a study shows them: escaped, with units, in a reader's number of digits."""

from __future__ import annotations

import html
import unicodedata

from fastcompress.study import charts

NBSP = "\u00a0"  # keeps a number and its unit on one line


def is_unseen(character: str) -> bool:
    """Return whether a page would drop a character, refuse it or reorder lines by it.

    These are controls, lone surrogates and format characters, except the two joiners, which Persian, Indic scripts and
    emoji need.
    """
    if character in "\u200c\u200d":
        return False
    return unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp") or ord(character) & 0xFFFE == 0xFFFE


def plain(text: str) -> str:
    """Return ``text`` on one line, with code points in place of unseen characters; not escaped for HTML."""
    return "".join(f"U+{ord(c):04X}" if is_unseen(c) else c for c in text)


def escape(text: str) -> str:
    """Return ``plain`` text, escaped for use between tags and inside a quoted attribute."""
    return html.escape(plain(text))


def escape_sample(text: str) -> str:
    """Escape for ``<pre>``: line ends and tabs are kept, other unseen characters become marked boxes."""
    return "".join(
        f'<span class="unseen">U+{ord(c):04X}</span>' if c not in "\n\t" and is_unseen(c) else html.escape(c)
        for c in text
    )


def finite(value: float | None) -> float | None:
    """Return a finite number, or None for null, NaN, infinities and numbers too large to be meaningful."""
    return value if value is not None and abs(value) <= charts.LARGEST else None


def decimals(value: float | None, places: int) -> str:
    value = finite(value)
    return "–" if value is None else f"{value:,.{places}f}"


def rounded(value: float | None) -> str:
    """Format to three significant digits, as in 6.10 and 12.3; whole numbers from 100, scientific from a million."""
    value = finite(value)
    if value is None:
        return "–"
    exponent = int(f"{value:.2e}".partition("e")[2])  # after rounding: 9.996 is 10.0
    return f"{value:,.{max(0, 2 - exponent)}f}" if -3 <= exponent < 6 else power(value)


def power(value: float | None) -> str:
    """Format in scientific notation, as in 1.00 × 10¹²."""
    value = finite(value)
    if not value:
        return "–" if value is None else "0"
    mantissa, exponent = f"{value:.2e}".split("e")
    return f"{mantissa}{NBSP}×{NBSP}10{charts.superscript(int(exponent))}"


def scaled(count: int) -> str:
    """Format to three significant digits with k, M or B, as for model sizes."""
    for size, suffix in ((10**9, "B"), (10**6, "M"), (10**3, "k")):
        if count >= size:
            return f"{rounded(count / size)} {suffix}"
    return str(count)


def duration(seconds: float | None) -> str:
    seconds = finite(seconds)
    if seconds is None:
        return "–"
    if seconds < 120:
        return f"{seconds:.{1 if seconds < 10 else 0}f} s"
    if seconds < 600:
        return f"{round(seconds) // 60} min {round(seconds) % 60} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60:,} h {minutes % 60} min"


def part_of(part: int, whole: int) -> str:
    return f"all {whole:,}" if part == whole else f"{part:,} of {whole:,}"
