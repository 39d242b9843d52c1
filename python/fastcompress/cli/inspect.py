"""The command inspect."""

from __future__ import annotations

from pathlib import Path

import click

from fastcompress.cli.output import json_option, show_result


@click.command(
    short_help="Say what a file or folder is.",
    epilog="\b\nExamples:\n  fastcompress inspect shards\n  fastcompress inspect tokenizer.json --json",
)
@click.argument("path", metavar="PATH")
@json_option
def inspect(path: str, as_json: bool) -> None:
    """Say what PATH is, and what its header says: shards, a run, a study, an archive, a vocabulary, a codec, or text.

    Only headers are read. decode, decompress, eval and others verify the rest when they read it.
    """
    from fastcompress.cli.description import describe
    from fastcompress.errors import DataError

    if not path or "\0" in path:
        raise DataError(f"{path!r}: is not the name of a file; name one that exists")
    found = describe(Path(path))
    lines = [f"{path}: {found['kind']}"]
    lines += [f"  {name.replace('_', ' ')}: {_shown(value)}" for name, value in found.items() if name != "kind"]
    show_result({"path": path, **found}, "\n".join(lines), as_json)


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    if value is None:
        return "unknown"
    return f"{value:,}" if isinstance(value, int) else str(value)
