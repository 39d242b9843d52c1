"""Codebooks: bytes a token on held-out text, and how long training, encoding and decoding take.

python benchmarks/codebook.py --out benchmarks/results/MACHINE/DATE-codebook.json [--megabytes 100] [--rounds 5]

Trained on the first megabytes of english/train-00 and train-01 with two threads; english/val and english/test are
encoded document by document for the bytes a token, joined for the speed (one thread, CPU time, medians). Tokens are
decoded and compared before anything is timed.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import results_file
from fastcompress import equal_info
from fastcompress.data.sources import path_documents
from texts import data_folder

SETTINGS: dict[str, dict[str, Any]] = {
    "16 bits": {"bits": 16},
    "16 bits, within words": {"bits": 16, "within_words": True},
    "16 bits, cl100k": {"bits": 16, "pattern": "cl100k"},
    "13 bits": {"bits": 13},
}


def documents(name: str) -> Iterator[bytes]:
    """The texts of one file of the corpus."""
    return (document.data for document in path_documents(data_folder() / "english" / f"{name}.jsonl.xz"))


def first(names: list[str], num_bytes: int) -> list[bytes]:
    """Documents in order until they hold so many bytes."""
    chosen: list[bytes] = []
    total = 0
    for name in names:
        for document in documents(name):
            if total >= num_bytes:
                return chosen
            chosen.append(document)
            total += len(document)
    return chosen


def bytes_per_token(book: equal_info.Codebook, texts: list[bytes]) -> float:
    return sum(map(len, texts)) / sum(len(book.encode(text)) for text in texts)


def measure(settings: dict[str, Any], training: list[bytes], held_out: dict[str, list[bytes]], rounds: int) -> Any:
    wall, cpu = time.perf_counter(), time.process_time()
    book = equal_info.Codebook.train(training, num_threads=2, **settings)
    row: dict[str, Any] = {
        "train_wall_s": time.perf_counter() - wall,
        "train_cpu_s": time.process_time() - cpu,
        **{f"bytes_per_token_{name}": bytes_per_token(book, texts) for name, texts in held_out.items()},
    }
    text = b"".join(held_out["val"])
    tokens = book.encode(text)
    if book.decode(tokens) != text:
        raise SystemExit("the codebook does not give back what it was given")
    for name, call in (("encode", lambda: book.encode(text)), ("decode", lambda: book.decode(tokens))):
        seconds = [results_file.cpu_seconds(call) for _ in range(rounds)]
        row[name] = len(text) / 1e6 / statistics.median(seconds)
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--megabytes", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", nargs="+", choices=SETTINGS, default=list(SETTINGS), metavar="CODEBOOK")
    arguments = parser.parse_args()
    training = first(["train-00", "train-01"], arguments.megabytes * 1_000_000)
    held_out = {name: list(documents(name)) for name in ("val", "test")}
    sys.stdout.write("| codebook | bytes a token, val | test | training s, wall (CPU) | encode MB/s | decode MB/s |\n")
    sys.stdout.write("| --- | --- | --- | --- | --- | --- |\n")
    results = {}
    for name in arguments.only:
        row = results[name] = measure(SETTINGS[name], training, held_out, arguments.rounds)
        sys.stdout.write(
            f"| {name} | {row['bytes_per_token_val']:.3f} | {row['bytes_per_token_test']:.3f} "
            f"| {row['train_wall_s']:.0f} ({row['train_cpu_s']:.0f}) | {row['encode']:.0f} | {row['decode']:.0f} |\n"
        )
        sys.stdout.flush()
    results_file.write_single(
        arguments.out,
        "codebook",
        Path(equal_info.__file__).parent,
        training_bytes=sum(map(len, training)),
        rounds=arguments.rounds,
        codebooks=results,
    )


if __name__ == "__main__":
    main()
