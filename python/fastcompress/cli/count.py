"""The command count."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import click

from fastcompress.cli.inputs import CODEC_HELP
from fastcompress.cli.output import json_option, progress_bar, show_result
from fastcompress.cli.tables import table, with_decimals
from fastcompress.cli.texts import check_files, codec_for, parts_of, size_of

if TYPE_CHECKING:
    from fastcompress.data.statistics import GroupCounts


@click.command(
    short_help="Count the tokens of files.",
    epilog="\b\nExamples:\n"
    "  fastcompress count book.txt --codec cl100k_base\n"
    "  fastcompress count pages.jsonl.xz notes --codec docs.bpe --json",
)
@click.argument("files", nargs=-1, required=True, metavar="FILES...")
@click.option("--codec", "codec_spec", required=True, metavar="CODEC", help=CODEC_HELP)
@click.option("--text-key", default="text", show_default=True, help="Key of the text in JSON lines, or its column.")
@click.option("--threads", type=click.IntRange(min=1), help="Number of threads.  [default: all cores, at most 8]")
@json_option
def count(files: tuple[str, ...], codec_spec: str, text_key: str, threads: int | None, as_json: bool) -> None:
    """Count the tokens of FILES and folders, without end-of-document ids. - is standard input.

    FILES are those that encode reads, and are read as a stream. bpe-N, char and other codecs that are learned are
    learned from them.
    """
    from fastcompress.data.statistics import token_statistics

    check_files(files)
    codec = codec_for(files, codec_spec, text_key)
    started = time.monotonic()
    with progress_bar("counting", size_of(files)) as advance:
        parts = parts_of(files, codec, text_key)
        counted = token_statistics(parts, codec, count_words=False, num_threads=threads, progress=advance)
    seconds = time.monotonic() - started
    total = counted.total
    result = {
        "codec": codec.name,
        "fingerprint": codec.fingerprint,
        **_numbers(total),
        "seconds": round(seconds, 3),
        "files": {name: _numbers(counts) for name, counts in counted.groups.items()},
    }
    rows = [(name, counts) for name, counts in counted.groups.items()]
    if len(rows) != 1:
        rows.append(("total", total))
    lines = [
        (name, f"{counts.num_documents:,}", f"{counts.num_bytes:,}", f"{counts.num_tokens:,}",
         with_decimals(counts.bytes_per_token, 3))
        for name, counts in rows
    ]  # fmt: skip
    text = table(("file", "documents", "bytes", "tokens", "bytes/token"), lines)
    rate = f", {total.num_bytes / seconds / 1e6:,.1f} MB/s" if seconds > 0 else ""
    show_result(result, f"{text}\n{codec.name}: {seconds:.2f} s{rate}", as_json)


def _numbers(counts: GroupCounts) -> dict[str, Any]:
    return {
        "documents": counts.num_documents,
        "bytes": counts.num_bytes,
        "tokens": counts.num_tokens,
        "bytes_per_token": counts.bytes_per_token,
    }
