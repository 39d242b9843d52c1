"""fastcompress train-tokenizer"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import click

from fastcompress.cli.inputs import corpus_options, file_documents, need_one, read_corpus
from fastcompress.cli.output import check_output, count, json_option, progress_bar, show_result

if TYPE_CHECKING:
    from fastcompress.bpe import BPE
    from fastcompress.data.corpora import Document


@click.command(
    "train-tokenizer",
    short_help="Learn a BPE vocabulary.",
    epilog="\b\nExample:\n  fastcompress train-tokenizer --corpus python-docs --vocab-size 4096 -o docs.bpe",
)
@click.argument("files", nargs=-1, metavar="[FILES]...")
@corpus_options
@click.option("--vocab-size", type=click.IntRange(min=256), required=True, help="Ids, special tokens included.")
@click.option("--pattern", help="A named pattern, such as gpt2, cl100k, o200k, whitespace or none.  [default: cl100k]")
@click.option("--special-token", "special_tokens", multiple=True, help="Give it an id of its own; repeatable.")
@click.option(
    "--tie-break",
    type=click.Choice(["lowest_id", "huggingface"]),
    default="lowest_id",
    show_default=True,
    help="Which of equally frequent pairs comes first; huggingface: merges and ids as its tokenizers library makes.",
)
@click.option("--min-frequency", type=click.IntRange(min=1), default=1, help="Merge no pair that occurs less often.")
@click.option("--max-token-length", type=click.IntRange(min=1), help="Make no token of more bytes.")
@click.option("--continue-from", metavar="VOCABULARY", help="Keep the ids and merges of this one, and add to them.")
@click.option("-o", "--output", required=True, help="The vocabulary; a name that ends in .json: a codec file.")
@click.option("--threads", type=click.IntRange(min=1), help="For counting words.  [default: all cores]")
@click.option(
    "--max-memory", type=click.IntRange(min=1), metavar="MIB", help="Spill counts of words over this to disk."
)
@json_option
def train_tokenizer(
    files: tuple[str, ...],
    corpus: str | None,
    text_key: str,
    max_bytes: int | None,
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
    as_json: bool,
) -> None:
    """Learn a BPE vocabulary from FILES, whole, or from the train split of --corpus.

    FILES are text files, JSON lines or folders; - is standard input.
    """
    need_one(FILES=files, corpus=corpus)
    check_output(output)
    from fastcompress.bpe import BPE
    from fastcompress.codec import BPECodec, save_codec

    documents = (
        read_corpus(corpus, text_key, max_bytes).split("train")
        if corpus
        else file_documents(files, text_key, max_bytes)
    )
    tokenizer, num_bytes = _learn(
        documents,
        ", ".join(files),
        vocab_size=vocab_size,
        pattern=pattern,
        special_tokens=special_tokens,
        tie_break=tie_break,
        min_frequency=min_frequency,
        max_token_length=max_token_length,
        continue_from=BPE.load(continue_from) if continue_from else None,
        num_threads=threads,
        max_memory_bytes=max_memory << 20 if max_memory else None,
    )
    codec = BPECodec(tokenizer)
    if output.endswith(".json"):
        save_codec(codec, output)
    else:
        tokenizer.save(output)
    result = {
        "output": output,
        "codec": codec.name,
        "fingerprint": codec.fingerprint,
        "vocab_size": codec.vocab_size,
        "train_bytes": num_bytes,
    }
    text = f"{output}: {codec.name} from {count(num_bytes, 'byte')}; use it as --codec {output}"
    show_result(result, text, as_json)


def _learn(documents: Iterable[Document], name: str, *, vocab_size: int, **settings: Any) -> tuple[BPE, int]:
    """The tokenizer, and the bytes it was trained on; `settings` are BPE.train's. Shows progress."""
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
            raise DataError(f"{name}: empty, so there is nothing to learn from; give text")

    with progress_bar("merging", unit="merge") as advance:

        def merged(done: int, wanted: int) -> None:
            nonlocal num_done
            advance(done - num_done, wanted)
            num_done = done

        tokenizer = BPE.train(counted(), vocab_size=vocab_size, on_progress=merged, **settings)
    return tokenizer, num_bytes
