"""Codebooks: bytes per token on held-out text, and how long training, encoding and decoding take.

Trained on the first megabytes of english/train-00 and train-01; english/val and english/test are encoded document by
document for the bytes per token, joined for the speed (one thread, CPU time, medians). Tokens are decoded and compared
before anything is timed.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from typing import Any

from fastcompress import equal_info
from fastcompress.data.sources import path_documents
from single import Settings, cpu_seconds
from texts import data_folder

CODEBOOKS: dict[str, dict[str, Any]] = {
    "16 bits": {"bits": 16},
    "16 bits, within words": {"bits": 16, "within_words": True},
    "16 bits, cl100k": {"bits": 16, "pattern": "cl100k"},
    "13 bits": {"bits": 13},
}


def documents(name: str) -> Iterator[bytes]:
    """Return the texts of one file of the corpus."""
    return (document.data for document in path_documents(data_folder() / "english" / f"{name}.jsonl.xz"))


def first(names: list[str], num_bytes: int) -> list[bytes]:
    """Return documents in order until they hold `num_bytes`."""
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
    """Return the mean length of a token, texts being encoded one by one."""
    return sum(map(len, texts)) / sum(len(book.encode(text)) for text in texts)


def measure_one(
    arguments: dict[str, Any], training: list[bytes], held_out: dict[str, list[bytes]], settings: Settings
) -> dict[str, float]:
    """Return the figures of one codebook, trained with `arguments`."""
    wall, cpu = time.perf_counter(), time.process_time()
    book = equal_info.Codebook.train(training, num_threads=settings.threads, **arguments)
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
        seconds = [cpu_seconds(call) for _ in range(settings.rounds)]
        row[name] = len(text) / 1e6 / statistics.median(seconds)
    return row


def measure(settings: Settings) -> dict[str, Any]:
    """Return the figures of each codebook; only the first one, on a megabyte, if it is to be quick."""
    training = first(["train-00", "train-01"], round(settings.megabytes * 1e6))
    held_out = {name: list(documents(name)) for name in ("val", "test")}
    if settings.quick:
        held_out = {name: texts[:100] for name, texts in held_out.items()}
    chosen = list(CODEBOOKS)[: 1 if settings.quick else None]
    with settings.condition():
        books = {name: measure_one(CODEBOOKS[name], training, held_out, settings) for name in chosen}
    return {"versions": {}, "training_bytes": sum(map(len, training)), "codebooks": books}
