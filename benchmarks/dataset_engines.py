"""From files of JSON lines to token files: `fastcompress encode` beside `datasets.map` and datatrove's tokenizer step.

    pip install '.[data]' datasets datatrove orjson tokenizers
    python benchmarks/dataset_engines.py compare english --out results.json  # $FASTCOMPRESS_DATA's, or name a file

All engines encode the same two files with the same vocabulary of 32,768 tokens, by two threads or two processes, each
in a fresh process per round, in turns. Timed are, in wall time:

- fastcompress: the whole command, from the start of its process to the manifest of its shards.
- datasets: `map(batched=True)` of a data set that lies in Arrow files already, with `tokenizers` (`encode_batch_fast`,
  ids alone) and with `BatchEncoder`. Reading the JSON is not timed.
- datatrove: a pipeline of `JsonlReader` and `DocumentTokenizer`, without shuffling, and one of `JsonlReader` and
  `BatchEncoder`, a task for each file.

`tokenizers` runs both with two processes of one thread and with one process of two threads; the faster one counts.
After each round the ids of all documents are compared with those of fastcompress.
"""

from __future__ import annotations

import hashlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from datetime import date
from importlib import metadata
from pathlib import Path
from typing import Any

import click
import numpy as np

import results_file
import texts

VOCAB_SIZE, END = 32_768, "<|end|>"
PROCESSES = 2
RESULT = "result: "
ENGINES = ("fastcompress encode", "datasets + tokenizers", "datasets + fastcompress",
           "datatrove + tokenizers", "datatrove + fastcompress")  # fmt: skip


def digest_of(documents: Iterable[Any]) -> tuple[str, int]:
    """Return a checksum of the ids and lengths of documents, in order, and the number of ids."""
    digest, num_tokens = hashlib.sha256(), 0
    for ids in documents:
        array = np.asarray(ids, np.uint32)
        digest.update(len(array).to_bytes(8, "little") + array.tobytes())
        num_tokens += len(array)
    return digest.hexdigest(), num_tokens


def prepare(corpus: str, megabytes: float, folder: Path) -> dict[str, Any]:
    """Write the two inputs and the vocabulary into a folder; return what they hold."""
    from fastcompress import BPE
    from fastcompress.data import DocumentReader

    path = texts.data_folder() / texts.PUBLISHED[corpus] if corpus in texts.PUBLISHED else Path(corpus)
    rows, size = [], 0
    for document in DocumentReader([path]):
        if document.data and size < megabytes * 1e6:
            rows.append(document.data.decode())
            size += len(document.data)
    (folder / "inputs").mkdir()
    half = size // 2
    with (folder / "inputs" / "0.jsonl").open("w") as first, (folder / "inputs" / "1.jsonl").open("w") as second:
        written = 0
        for text in rows:
            (first if written < half else second).write(json.dumps({"text": text}, ensure_ascii=False) + "\n")
            written += len(text.encode())
    bpe = BPE.train(rows, vocab_size=VOCAB_SIZE, pattern="cl100k", special_tokens=[END])
    bpe.to_huggingface(folder / "tokenizer.json")
    return {"corpus": corpus, "bytes": size, "documents": len(rows), "vocabulary": bpe.fingerprint}


# ------------------------------------------------------------------ one engine in a process of its own


def by_datasets(folder: Path, encode: Callable[..., Any], num_processes: int) -> tuple[float, Iterable[Any]]:
    import datasets

    datasets.disable_progress_bars()
    files = [str(path) for path in sorted((folder / "inputs").iterdir())]
    dataset = datasets.load_dataset("json", data_files=files, split="train", cache_dir=str(folder / "cache"))
    begin = time.perf_counter()
    dataset = dataset.map(
        encode, batched=True, remove_columns=["text"], num_proc=num_processes if num_processes > 1 else None,
        load_from_cache_file=False,
    )  # fmt: skip
    seconds = time.perf_counter() - begin
    columns = (chunk for chunk in dataset.data.column("input_ids").chunks)
    return seconds, (row.values.to_numpy() for column in columns for row in column)


class TokenizersEncoder:
    """The batched function as the documentation of `datasets` has it, loaded once in a process."""

    def __init__(self, path: Path) -> None:
        self.path, self.tokenizer = str(path), None

    def __getstate__(self) -> dict[str, Any]:
        return {"path": self.path, "tokenizer": None}

    def __call__(self, batch: dict[str, list[str]]) -> dict[str, list[list[int]]]:
        import tokenizers

        self.tokenizer = self.tokenizer or tokenizers.Tokenizer.from_file(self.path)
        encoded = self.tokenizer.encode_batch_fast(batch["text"], add_special_tokens=False)
        return {"input_ids": [encoding.ids for encoding in encoded]}


def by_datatrove(folder: Path, step: Any, num_processes: int) -> tuple[float, Iterable[Any]]:
    from datatrove.executor import LocalPipelineExecutor
    from datatrove.pipeline.readers import JsonlReader

    from fastcompress import BPE
    from fastcompress.data import TOKEN_FORMATS

    pipeline = [JsonlReader(str(folder / "inputs")), step]
    executor = LocalPipelineExecutor(
        pipeline, tasks=PROCESSES, workers=num_processes, logging_dir=str(folder / "logs"), skip_completed=False
    )
    begin = time.perf_counter()
    executor.run()
    seconds = time.perf_counter() - begin
    end = BPE.from_huggingface(folder / "tokenizer.json").special_tokens[END]
    return seconds, TOKEN_FORMATS["datatrove"].documents(sorted((folder / "out").glob("*.ds")), end_of_text=end)


class WriteTokens:
    """A step that writes each task's ids with `BatchEncoder`; see docs/engines.md."""

    def __init__(self, folder: Path) -> None:
        from fastcompress.data import BatchEncoder

        self.folder = folder / "out"
        self.encoder = BatchEncoder(folder / "tokenizer.json")
        self.end = self.encoder.codec.tokenizer.special_tokens[END]

    def __call__(self, documents: Iterable[Any], rank: int = 0, world_size: int = 1) -> None:
        from fastcompress.data import TOKEN_FORMATS

        self.folder.mkdir(exist_ok=True)
        ids = self.encoder.encode_rows(document.text for document in documents)
        TOKEN_FORMATS["datatrove"].write(self.folder / f"{rank:05}.ds", ids, end_of_text=self.end)


def measure(engine: str, folder: Path, num_processes: int) -> dict[str, Any]:
    """Run an engine once; return its seconds and what it wrote."""
    tokenizer = folder / "tokenizer.json"
    if engine == "fastcompress encode":
        from fastcompress.data import TokenDataset

        command = [sys.executable, "-m", "fastcompress.cli", "encode", str(folder / "inputs"), "--codec",
                   str(tokenizer), "-o", str(folder / "out"), "--threads", str(PROCESSES)]  # fmt: skip
        begin = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        seconds = time.perf_counter() - begin
        documents: Iterable[Any] = TokenDataset.open(folder / "out", "train").documents()
    elif engine == "datasets + tokenizers":
        seconds, documents = by_datasets(folder, TokenizersEncoder(tokenizer), num_processes)
    elif engine == "datasets + fastcompress":
        from fastcompress.data import BatchEncoder

        seconds, documents = by_datasets(folder, BatchEncoder(tokenizer), num_processes)
    elif engine == "datatrove + tokenizers":
        from datatrove.pipeline.tokens import DocumentTokenizer

        step = DocumentTokenizer(str(folder / "out"), str(tokenizer), eos_token=END, shuffle_documents=False)
        seconds, documents = by_datatrove(folder, step, num_processes)
    else:
        seconds, documents = by_datatrove(folder, WriteTokens(folder), num_processes)
    digest, num_tokens = digest_of(documents)
    return {"seconds": seconds, "digest": digest, "tokens": num_tokens}


def run_fresh(engine: str, inputs: Path, num_processes: int) -> dict[str, Any]:
    """Run `measure` in a process and a folder of its own."""
    threads = str(PROCESSES if num_processes == 1 else 1)
    with tempfile.TemporaryDirectory() as name:
        for path in inputs.iterdir():
            (Path(name) / path.name).symlink_to(path)
        settings = {
            "RAYON_NUM_THREADS": threads,
            "TOKENIZERS_PARALLELISM": "true" if threads != "1" else "false",
            "HF_HOME": str(Path(name) / "huggingface"),
            "HF_HUB_OFFLINE": "1",
        }
        command = [sys.executable, __file__, "one", engine, name, str(num_processes)]
        process = subprocess.run(
            command, capture_output=True, text=True, check=False, env={**os.environ, **settings}, timeout=600
        )
    lines = [line for line in process.stdout.splitlines() if line.startswith(RESULT)]
    if process.returncode or not lines:
        raise RuntimeError(f"{engine} failed: {process.stderr[-2000:]}")
    result: dict[str, Any] = json.loads(lines[-1].removeprefix(RESULT))
    return result


# ------------------------------------------------------------------ the comparison


def compare(inputs: Path, rounds: int) -> tuple[dict[str, list[float]], int, list[float]]:
    """Run all engines in turns.

    Returns:
        The seconds of every engine and number of processes, a round each; the number of ids that each wrote; and the
        load average at the beginning of each round.

    Raises:
        RuntimeError: An engine failed, or wrote other ids than fastcompress.
    """
    ways = [(engine, number) for engine in ENGINES for number in ((2, 1) if "tokenizers" in engine else (2,))]
    seconds: dict[str, list[float]] = {}
    loads = []
    expected = None
    for number in range(rounds):
        loads.append(round(os.getloadavg()[0], 2))
        for engine, num_processes in ways:
            result = run_fresh(engine, inputs, num_processes)
            written = (result["digest"], result["tokens"])
            expected = expected or written
            if written != expected:
                raise RuntimeError(f"{engine} wrote other ids than {ENGINES[0]}: {written}, {expected}")
            name = f"{engine}, {num_processes} processes" if "tokenizers" in engine else engine
            seconds.setdefault(name, []).append(round(result["seconds"], 4))
            print(f"round {number}: {name}: {result['seconds']:.2f} s", flush=True)
    assert expected is not None
    return seconds, expected[1], loads


@click.group()
def main() -> None:
    """Measure."""


@main.command()
@click.argument("engine")
@click.argument("folder", type=click.Path(path_type=Path))
@click.argument("num_processes", type=int)
def one(engine: str, folder: Path, num_processes: int) -> None:
    """One engine, once; started by `measure`."""
    print(RESULT + json.dumps(measure(engine, folder, num_processes)), flush=True)


@main.command("compare")
@click.argument("corpus")
@click.option("--megabytes", default=60.0, help="Megabytes of text.")
@click.option("--rounds", default=5, help="Measurements of each figure; their median counts.")
@click.option("--out", type=click.Path(path_type=Path), required=True, help="Results file.")
def command(corpus: str, megabytes: float, rounds: int, out: Path) -> None:
    """All engines on CORPUS: english, code, multilingual, or a path."""
    with tempfile.TemporaryDirectory() as name:
        inputs = Path(name)
        what = prepare(corpus, megabytes, inputs)
        seconds, num_tokens, loads = compare(inputs, rounds)
    own = statistics.median(seconds[ENGINES[0]])
    cells = {
        name: {
            "seconds": values,
            "megabytes_per_second": round(what["bytes"] / 1e6 / statistics.median(values), 2),
            "million_tokens_per_second": round(num_tokens / 1e6 / statistics.median(values), 2),
            "times_as_long_as_fastcompress_encode": round(statistics.median(values) / own, 2),
        }
        for name, values in seconds.items()
    }
    header = {
        "suite": "dataset-engines",
        "date": date.today().isoformat(),
        "command": f"python benchmarks/dataset_engines.py compare {corpus} --megabytes {megabytes:g} --rounds {rounds}",
        "commit": results_file.commit(Path(__file__).parent.parent),
        "machine": results_file.machine(),
        "load_average": loads,
        "versions": {name: metadata.version(name) for name in ("datasets", "datatrove", "pyarrow", "tokenizers")},
        "input": {**what, "tokens": num_tokens},
    }
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps({**header, "cells": cells}, indent=1) + "\n")
    print(json.dumps(cells, indent=1))


if __name__ == "__main__":
    main()
