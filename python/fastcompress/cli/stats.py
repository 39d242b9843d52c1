"""The command stats."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fastcompress.cli.inputs import CODEC_HELP
from fastcompress.cli.output import check_output, force_option, json_option, open_output, progress_bar, show_result
from fastcompress.cli.texts import check_files, codec_for, parts_of, size_of

if TYPE_CHECKING:
    from fastcompress.data.statistics import TokenStatistics


@click.command(
    short_help="Measure how a vocabulary fits a data set.",
    epilog="\b\nExamples:\n"
    "  fastcompress stats book.txt --codec bpe-500 -o stats.html\n"
    "  fastcompress stats pages.jsonl.xz --codec cl100k_base --group-by lang --reference en",
)
@click.argument("files", nargs=-1, required=True, metavar="FILES...")
@click.option("--codec", "codec_spec", required=True, metavar="CODEC", help=CODEC_HELP)
@click.option("--text-key", default="text", show_default=True, help="Key of the text in JSON lines, or its column.")
@click.option("--group-by", "group_key", metavar="KEY",
              help="Key of the language or source of a row, or its column.  [default: a group per file]")  # fmt: skip
@click.option("--reference", metavar="GROUP",
              help="Compare the tokens of groups with this one's.  [default: en or English, if it exists]")  # fmt: skip
@click.option("--parallel", "is_parallel", is_flag=True,
              help="The groups are translations of each other, document by document: compare their numbers of tokens, "
              "not their tokens per byte.")  # fmt: skip
@click.option("--special", "more_spellings", multiple=True, metavar="TEXT",
              help="Also count occurrences of TEXT, as of a special token. May be repeated.")  # fmt: skip
@click.option("--rare", "least", type=click.IntRange(min=1), default=10, show_default=True,
              help="List tokens that occur less often than this.")  # fmt: skip
@click.option("--threads", type=click.IntRange(min=1), help="Number of threads.  [default: all cores, at most 8]")
@click.option("-o", "--output", help="Also write a web page to this file, or - for standard output.")
@force_option()
@json_option
def stats(
    files: tuple[str, ...],
    codec_spec: str,
    text_key: str,
    group_key: str | None,
    reference: str | None,
    is_parallel: bool,
    more_spellings: tuple[str, ...],
    least: int,
    threads: int | None,
    output: str | None,
    overwrite: bool,
    as_json: bool,
) -> None:
    """Measure how a vocabulary fits FILES and folders, and which of its tokens are of no use. - is standard input.

    FILES are those that encode reads, and are read as a stream; codecs that are learned are learned from them.

    By language or source: tokens, bytes per token, tokens per word (fertility) and parity. Token frequencies. Tokens
    that do not occur, that no text reaches, that are not whole characters, whose strings change their ids next to a
    space or newline, and text that spells a special token. Every number is exact. Memory does not grow with the text.
    """
    from fastcompress.cli.stats_page import render
    from fastcompress.cli.stats_result import make_result, show_tables
    from fastcompress.data.statistics import special_spellings, token_statistics, vocabulary_statistics

    check_files(files)
    if output is not None:
        check_output(output, overwrite)
    codec = codec_for(files, codec_spec, text_key)
    spellings = [*special_spellings(codec), *more_spellings]
    with progress_bar("counting", size_of(files)) as advance:
        parts = parts_of(files, codec, text_key, group_key, spellings)
        counted = token_statistics(parts, codec, spellings=spellings, num_threads=threads, progress=advance)
    reference = _reference(counted, reference)
    parity = {} if reference is None else counted.parity(reference, is_parallel=is_parallel)
    result = make_result(codec, counted, vocabulary_statistics(codec, num_threads=threads), least)
    result["parity"] = None if reference is None else {"reference": reference, "is_parallel": is_parallel}
    for name, group in result["groups"].items():
        group["parity"] = parity.get(name)
    if output is not None:
        with open_output(output, overwrite) as file:
            file.write(render(result).encode("utf-8", "surrogateescape"))
    if output != "-":
        show_result(result, show_tables(result), as_json)


def _reference(counted: TokenStatistics, name: str | None) -> str | None:
    """Return the group to compare with: the one that the user names, or English; None if there is none."""
    if name is not None:
        return name
    return next((group for group in counted.groups if group.lower() in ("en", "eng", "english")), None)
