"""The command train-tokenizer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import click

from fastcompress.cli.inputs import (
    corpus_options,
    file_documents,
    fixed_codec,
    learnable,
    need_one,
    on_error_option,
    read_corpus,
)
from fastcompress.cli.output import check_output, count, force_option, json_option, progress_bar, show_result
from fastcompress.cli.vocabularies import OUTPUT_HELP, format_of, how_to_read, save_vocabulary

if TYPE_CHECKING:
    from fastcompress.bpe import BPE
    from fastcompress.data.corpora import Document


@click.command(
    "train-tokenizer",
    short_help="Train a BPE vocabulary.",
    epilog="\b\nExample:\n  fastcompress train-tokenizer --corpus python-docs --vocab-size 4096 -o docs.bpe",
)
@click.argument("files", nargs=-1, metavar="[FILES]...")
@corpus_options
@on_error_option
@click.option(
    "--vocab-size", type=click.IntRange(256, 2**31), required=True, help="Number of ids, special tokens included."
)
@click.option("--pattern", help="Pattern that splits the text: gpt2, cl100k, o200k, llama3, qwen2, deepseek-v3, "
              "strict, whitespace, words, none, or a regex.  [default: cl100k]")  # fmt: skip
@click.option("--special-token", "special_tokens", multiple=True,
              help="Text that gets an id of its own; may be repeated.")  # fmt: skip
@click.option(
    "--tie-break",
    type=click.Choice(["lowest_id", "huggingface"]),
    default="lowest_id",
    show_default=True,
    help="Which of equally frequent pairs is merged first; huggingface: as its tokenizers library does.",
)
@click.option(
    "--min-frequency",
    type=click.IntRange(1, 2**63 - 1),
    default=1,
    show_default=True,
    help="Merge only pairs that occur at least this often.",
)
@click.option("--max-token-length", type=click.IntRange(1, 2**31), help="Make no token longer than this many bytes.")
@click.option("--continue-from", metavar="VOCABULARY",
              help="Keep the ids and merges of this vocabulary, and add to them.")  # fmt: skip
@click.option("-o", "--output", required=True, help=OUTPUT_HELP)
@click.option("--threads", type=click.IntRange(1, 1024), help="Number of threads.  [default: all cores]")
@click.option("--max-memory", type=click.IntRange(1, 2**40), metavar="MIB",
              help="Write counts of pretokens to disk where they exceed this many MiB.")  # fmt: skip
@click.option("--binary", is_flag=True, help="Train even on files that do not look like text.")
@force_option()
@json_option
def train_tokenizer(
    files: tuple[str, ...],
    corpus: str | None,
    text_key: str,
    max_bytes: int | None,
    on_error: str,
    vocab_size: int,
    pattern: str | None,
    special_tokens: tuple[str, ...],
    tie_break: str,
    min_frequency: int,
    max_token_length: int | None,
    continue_from: str | None,
    output: str,
    threads: int | None,
    max_memory: int | None,
    binary: bool,
    overwrite: bool,
    as_json: bool,
) -> None:
    """Train a BPE vocabulary on all of FILES, or on the train split of --corpus.

    FILES are text files, JSON lines (.jsonl) or tables (.csv, .tsv, .parquet, .arrow), which may be compressed as .gz,
    .bz2, .xz, .zst or .fcz, folders of such files, or patterns that match some. - is standard input.
    """
    need_one(FILES=files, corpus=corpus)
    check_output(output, overwrite, files[0] if len(files) == 1 else None)
    format_of(output)
    from fastcompress.codec import BPECodec

    documents = (
        read_corpus(corpus, text_key, max_bytes).split("train")
        if corpus
        else file_documents(files, text_key, max_bytes, on_error)
    )
    tokenizer, num_bytes = _learn(
        documents if binary else learnable(documents, "train on its bytes with --binary"),
        ", ".join(files),
        vocab_size=vocab_size,
        pattern=pattern,
        special_tokens=special_tokens,
        tie_break=tie_break,
        min_frequency=min_frequency,
        max_token_length=max_token_length,
        continue_from=_load(continue_from) if continue_from else None,
        num_threads=threads,
        max_memory_bytes=max_memory << 20 if max_memory else None,
    )
    codec = BPECodec(tokenizer)
    save_vocabulary(tokenizer, output, overwrite)
    result = {
        "output": output,
        "format": format_of(output),
        "codec": codec.name,
        "fingerprint": codec.fingerprint,
        "vocab_size": codec.vocab_size,
        "train_bytes": num_bytes,
    }
    text = f"{output}: {codec.name} from {count(num_bytes, 'byte')}"
    text += how_to_read(tokenizer, output) or f"; use it as --codec {output}"
    show_result(result, text, as_json)


def _load(path: str) -> BPE:
    """Return the vocabulary to continue from, which may be in any format of a codec."""
    from fastcompress.codec import BPECodec
    from fastcompress.errors import DataError

    codec = fixed_codec(path)
    if not isinstance(codec, BPECodec):
        raise DataError(f"{path}: {codec.name} is not a BPE vocabulary; only those can be continued")
    return codec.tokenizer


def _learn(documents: Iterable[Document], name: str, *, vocab_size: int, **settings: Any) -> tuple[BPE, int]:
    """Return the tokenizer and the number of bytes that it was trained on; `settings` are those of `BPE.train`."""
    from fastcompress.bpe import BPE
    from fastcompress.errors import DataError

    num_bytes = num_done = 0

    def counted() -> Iterator[bytes]:
        nonlocal num_bytes
        with progress_bar("reading") as advance:
            for document in documents:
                num_bytes += len(document.data)
                advance(len(document.data))
                yield document.data
        if not num_bytes:
            raise DataError(f"{name}: empty, so there is nothing to learn from; name files with text")

    with progress_bar("merging", unit="merge") as advance:

        def merged(done: int, wanted: int) -> None:
            nonlocal num_done
            advance(done - num_done, wanted)
            num_done = done

        tokenizer = BPE.train(counted(), vocab_size=vocab_size, on_progress=merged, **settings)
    return tokenizer, num_bytes
