"""The command verify."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from fastcompress.cli.inputs import split_to_read
from fastcompress.cli.output import count, json_option, progress_bar, show_result

_NOTES_SHOWN = 10


@click.command(
    short_help="Verify shards, and compare them with their sources.",
    epilog="\b\nExamples:\n  fastcompress verify shards\n  fastcompress verify shards --split train --all",
)
@click.argument("directory", metavar="SHARDS")
@click.option("--split", help="Verify only this split.  [default: all splits]")
@click.option("--sample", type=click.IntRange(min=0), default=1000, show_default=True,
              help="Number of documents of a split to decode and to compare.")  # fmt: skip
@click.option("--all", "everything", is_flag=True, help="Decode and compare all documents.")
@json_option
def verify(directory: str, split: str | None, sample: int, everything: bool, as_json: bool) -> None:
    """Verify SHARDS, a directory that encode wrote: the checksums of all shards, and documents of them.

    Documents are decoded and compared with the files that they were encoded from, where these are there and unchanged.
    If anything is wrong, the shard is named and the exit code is 1.
    """
    from fastcompress.data.shards import list_splits
    from fastcompress.data.verify import verify_shards
    from fastcompress.errors import FormatError

    path = Path(directory)
    splits = [split] if split else list_splits(path) or [split_to_read(path, None)]
    total = sum(file.stat().st_size for name in splits for file in (path / name).glob("*.shard"))
    with progress_bar("verifying", total) as advance:
        found = [
            verify_shards(path, name, sample=None if everything else sample, progress=lambda amount: advance(amount))
            for name in splits
        ]
    lines = []
    for one in found:
        for note in one.notes[:_NOTES_SHOWN]:
            click.echo(f"not compared: {note}", err=True)
        if len(one.notes) > _NOTES_SHOWN:
            click.echo(f"not compared: {len(one.notes):,} files in all", err=True)
        lines.append(
            f"{directory}: {one.split}: {count(one.shards, 'shard')} of {count(one.documents, 'document')} with right "
            f"checksums; {one.decoded:,} decoded, {one.compared:,} compared with their sources"
        )
    show_result({"output": directory, "splits": [asdict(one) for one in found]}, "\n".join(lines), as_json)
    problems = [problem for one in found for problem in one.problems]
    if len(problems) == 1:
        raise FormatError(problems[0])
    for problem in problems:
        click.echo(f"damaged: {problem}", err=True)
    if problems:
        raise FormatError(f"{directory}: {count(len(problems), 'problem')}, listed above; encode the corpus again")
