"""From files to shards: the rate of `encode_dataset` beside that of the in-memory batch encoder, and its memory.

    python benchmarks/encode_dataset.py run --text english/train-00.jsonl.xz --codec 32k.bpe --threads 2
    python benchmarks/encode_dataset.py memory --text english/train-00.jsonl.xz --codec 32k.bpe --gigabytes 2

`run` writes the documents of the texts as text files of a megabyte and as JSON lines, plain and compressed. It measures
each in a process of its own, in turns, and prints medians and ratios of rates (bytes of documents by wall time, files
on the disk and synced), with the processor time, which a busy neighbour disturbs less. The batch encoder has its texts
in memory and keeps its ids there. `memory` repeats the texts up to the size and prints the largest resident memory.
Needs pyarrow.
"""

from __future__ import annotations

import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

TEXT_FILE_BYTES = 1 << 20
KINDS = {"batch of text files": "txt", "txt": "txt", "batch of rows": "jsonl", "jsonl": "jsonl", "jsonl.zst": "zst"}
BASES = {"txt": "batch of text files", "jsonl": "batch of rows", "jsonl.zst": "batch of rows"}


def documents_of(paths: Sequence[str]) -> Iterator[bytes]:
    """Yield the documents of the given texts."""
    from fastcompress.data import DocumentReader

    return (document.data for document in DocumentReader(paths))


def write_inputs(folder: Path, texts: Sequence[str], gigabytes: float | None = None) -> None:
    """Write the documents as the files that are measured; if `gigabytes`, only JSON lines, repeated to that size."""
    import pyarrow

    names = ("zst",) if gigabytes else ("txt", "jsonl", "zst")
    for name in names:
        (folder / name).mkdir()
    written, number = 0, 0
    while not number or (gigabytes and written < gigabytes * 1e9):
        text = bytearray()
        rows = bytearray()
        for document in documents_of(texts):
            rows += json.dumps({"text": document.decode()}, ensure_ascii=False).encode() + b"\n"
            text += document + b"\n"
            written += len(document)
            if len(text) >= TEXT_FILE_BYTES and not gigabytes:
                (folder / "txt" / f"{number:06d}.txt").write_bytes(text)
                text.clear()
                number += 1
        number += 1
        if not gigabytes:
            (folder / "jsonl" / "rows.jsonl").write_bytes(rows)
        with pyarrow.CompressedOutputStream(str(folder / "zst" / f"{number:06d}.jsonl.zst"), "zstd") as file:
            file.write(bytes(rows))


def measure(kind: str, folder: Path, codec_name: str, threads: int) -> dict[str, float]:
    """Encode one kind of input in this process."""
    from fastcompress.codec import codec_from_spec
    from fastcompress.data import encode_dataset

    codec = codec_from_spec(codec_name)
    codec.encode(b"a first call")
    source = folder / KINDS[kind]
    texts = list(documents_of([str(source)])) if kind.startswith("batch") else []
    output = folder / "shards"
    shutil.rmtree(output, ignore_errors=True)
    started, used = time.perf_counter(), time.process_time()
    if kind.startswith("batch"):
        num_bytes = sum(map(len, texts))
        ids, _ = codec.tokenizer.encode_batch_to_numpy(texts, threads, disallowed_special=())  # type: ignore[attr-defined]
        tokens = len(ids)
    else:
        manifest = encode_dataset(source, output, codec, num_threads=threads).manifest
        num_bytes, tokens = manifest.bytes, manifest.tokens - manifest.documents
    seconds, used = time.perf_counter() - started, time.process_time() - used
    return {
        "bytes": num_bytes, "tokens": tokens, "seconds": seconds, "processor_seconds": used,
        "memory_bytes": peak_memory(),
    }  # fmt: skip


def peak_memory() -> int:
    """Return the largest resident memory of this process; getrusage counts that of the one that started it, too."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM"))


def in_a_process(kind: str, folder: Path, codec: str, threads: int) -> dict[str, float]:
    words = [sys.executable, __file__, "measure", kind, str(folder), codec, str(threads)]
    result: dict[str, float] = json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)
    return result


text_option = click.option("--text", "texts", multiple=True, required=True, help="Text to encode; may be repeated.")
codec_option = click.option("--codec", required=True, help="A BPE vocabulary.")
threads_option = click.option("--threads", default=2, show_default=True)


@click.group()
def main() -> None:
    pass


@main.command("measure", hidden=True)
@click.argument("kind")
@click.argument("folder", type=Path)
@click.argument("codec")
@click.argument("threads", type=int)
def measure_command(kind: str, folder: Path, codec: str, threads: int) -> None:
    click.echo(json.dumps(measure(kind, folder, codec, threads)))


@main.command("run")
@text_option
@codec_option
@threads_option
@click.option("--rounds", default=7, show_default=True)
def run_command(texts: tuple[str, ...], codec: str, threads: int, rounds: int) -> None:
    """Compare rates."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_inputs(folder, texts)
        results: dict[str, list[dict[str, float]]] = {kind: [] for kind in KINDS}
        for _ in range(rounds):
            for kind, measured in results.items():
                measured.append(in_a_process(kind, folder, codec, threads))
    for kind, measured in results.items():
        median = {key: statistics.median(one[key] for one in measured) for key in measured[0]}
        line = (
            f"{kind}: {median['bytes'] / median['seconds'] / 1e6:.0f} MB/s, "
            f"{median['tokens'] / median['seconds'] / 1e6:.1f} million tokens/s, "
            f"{median['processor_seconds']:.2f} s of processor time, {median['memory_bytes'] / 1e6:.0f} MB of memory"
        )
        if kind in BASES:
            pairs = list(zip(results[BASES[kind]], measured, strict=True))
            wall, processor = (
                statistics.median(base[key] / one[key] for base, one in pairs)
                for key in ("seconds", "processor_seconds")
            )
            line += f"; {wall:.2f} of the batch encoder's rate ({processor:.2f} by processor time)"
        click.echo(line)


@main.command("memory")
@text_option
@codec_option
@threads_option
@click.option("--gigabytes", default=2.0, show_default=True)
def memory_command(texts: tuple[str, ...], codec: str, threads: int, gigabytes: float) -> None:
    """Measure the largest resident memory."""
    with tempfile.TemporaryDirectory() as name:
        write_inputs(Path(name), texts, gigabytes)
        result = in_a_process("jsonl.zst", Path(name), codec, threads)
    click.echo(
        f"{result['bytes'] / 1e9:.2f} GB of documents in {result['seconds']:.0f} s: "
        f"{result['memory_bytes'] / 1e6:.0f} MB of memory at most"
    )


if __name__ == "__main__":
    main()
