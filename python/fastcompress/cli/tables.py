"""Tables of plain text for the terminal, and the spelling of tokens and numbers in them."""

from __future__ import annotations

from collections.abc import Sequence

_WIDEST_NAME = 48


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table: the first column begins at the left, the others end at the right of their widest cell.

    A long first cell, such as a path, keeps its end.
    """
    shown = [head, *([_end_of(row[0]), *row[1:]] for row in rows)]
    widths = [max(len(row[i]) for row in shown) for i in range(len(head))]
    lines = []
    for row in shown:
        first, *others = (
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        lines.append("  ".join([first, *others]).rstrip())
    return "\n".join(lines)


def with_decimals(value: float | None, places: int) -> str:
    """Return a number with a fixed number of decimals; a dash for None."""
    return "-" if value is None else f"{value:,.{places}f}"


def spell(string: bytes, limit: int = 28) -> str:
    """Return a token's bytes as a line shows them: quoted text if they are UTF-8, or else hexadecimal.

    >>> spell(b" caf\\xc3\\xa9\\n"), spell(b"\\xff"), spell(b"-" * 99, limit=4)
    ("' café\\\\n'", 'FF', "'----'…")
    """
    try:
        text = string.decode("utf-8")
    except UnicodeDecodeError:
        shown, is_cut = string[:limit].hex(" ").upper(), len(string) > limit
    else:
        shown, is_cut = repr(text[:limit]), len(text) > limit
    return shown + "…" * is_cut


def _end_of(name: str) -> str:
    return name if len(name) <= _WIDEST_NAME else "…" + name[1 - _WIDEST_NAME :]
