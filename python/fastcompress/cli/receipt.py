"""fastcompress receipt"""

from __future__ import annotations

import hashlib
from pathlib import Path

import click

from fastcompress.cli.output import check_output, count, force_option, json_option, progress_bar, show_result
from fastcompress.cli.streams import StandardOutput


@click.command(
    short_help="Code a file with a trained model, and decode it again.",
    epilog="\b\nExamples:\n  fastcompress receipt runs/a --data book.txt -o book.receipt\n"
    "  fastcompress receipt runs/a --read book.receipt > book.txt",
)
@click.argument("run_directory", metavar="RUN")
@click.option("--data", help="A text file, JSON lines or a table, which may be compressed, or a folder of such files.")
@click.option("--text-key", default="text", show_default=True, help="Key of the text in JSON lines.")
@click.option("--max-bytes", type=click.IntRange(1), help="Use only the first this many bytes.")
@click.option("--read", "receipt_file", help="Decode this receipt to standard output instead.")
@click.option("-o", "--output", help="Keep the receipt as this file.")
@force_option()
@click.option("--lanes", type=click.IntRange(1), default=16, show_default=True, help="Documents side by side.")
@click.option("--stride", type=click.IntRange(1), help="As for eval.  [default: half the context]")
@click.option("--which", type=click.Choice(["best", "last"]), default="best", show_default=True,
              help="Which checkpoint of the run.")  # fmt: skip
@click.option("--device", default="auto", show_default=True, help="auto, cpu, cuda, cuda:1 or mps.")
@json_option
def receipt(
    run_directory: str,
    data: str | None,
    text_key: str,
    max_bytes: int | None,
    receipt_file: str | None,
    output: str | None,
    overwrite: bool,
    lanes: int,
    stride: int | None,
    which: str,
    device: str,
    as_json: bool,
) -> None:
    """Prove the score of a RUN: code the documents of --data with its model, decode the code and compare all bytes.

    The size of the code is shown beside the bits per byte that `fastcompress eval` computes; they agree within 0.1 %. A
    receipt can be read again with the same checkpoint, software and processor only.
    """
    from fastcompress._files import write_atomically
    from fastcompress.data.compression import reading
    from fastcompress.data.corpora import take_bytes
    from fastcompress.data.inputs import find_files, path_documents
    from fastcompress.errors import ConfigError, FormatError, MismatchError, with_place
    from fastcompress.evaluation.receipts import make_receipt, read_receipt
    from fastcompress.models.threads import choose_threads, limited_threads
    from fastcompress.training.checkpoint import load_run

    if (data is None) == (receipt_file is None):
        raise ConfigError("give one of --data and --read")
    if receipt_file is not None and output is not None:
        raise ConfigError("-o keeps a receipt that is made; with --read, send the documents to a file: > FILE")
    if output is not None:
        check_output(output, overwrite)
        for file in find_files(data) if data is not None else ():
            check_output(output, overwrite, str(file.path or "-"))
    run = load_run(Path(run_directory), which="last" if which == "last" else "best", device=device)
    checkpoint = Path(run_directory) / f"{'last' if which == 'last' else 'best'}.safetensors"
    name = hashlib.sha256(checkpoint.read_bytes()).hexdigest()
    config = run.model.config
    done = 0
    threads = limited_threads(choose_threads(1, config.context_length, config.width))
    with progress_bar("coding", unit="document") as advance, threads:

        def show(num_done: int, num_documents: int) -> None:
            nonlocal done
            advance(num_done - done, num_documents)
            done = num_done

        if receipt_file is not None:
            with reading(receipt_file):
                blob = Path(receipt_file).read_bytes()
            try:
                decoded = read_receipt(run.model, run.codec, blob, name=name, progress=show)
            except (FormatError, MismatchError) as error:
                raise with_place(error, receipt_file) from error
            for document in decoded:
                StandardOutput().write(document)
            return
        assert data is not None
        documents = [one.data for one in take_bytes(path_documents(Path(data), text_key), max_bytes)]
        made = make_receipt(run.model, run.codec, documents, name=name, lanes=lanes, stride=stride, progress=show)
    if output is not None:
        write_atomically(output, made.blob, overwrite=overwrite)
    difference = made.bits_per_byte / made.claimed_bits_per_byte - 1
    report = {
        "run_directory": run_directory,
        "documents": len(documents),
        "bytes": made.num_bytes,
        "code_bytes": made.code_bytes,
        "bits_per_byte": made.bits_per_byte,
        "claimed_bits_per_byte": made.claimed_bits_per_byte,
        "difference": difference,
        "output": output,
    }
    text = (
        f"{data}: {count(len(documents), 'document')}, {count(made.num_bytes, 'byte')}, coded in "
        f"{count(made.code_bytes, 'byte')} and decoded to the same\n"
        f"bits per byte: {made.bits_per_byte:.4f}; eval says {made.claimed_bits_per_byte:.4f} ({difference:+.3%})"
    )
    show_result(report, text, as_json)
