"""One engine in one fresh process: reads a job from standard input, writes its result as the last line of output.

Runs under the interpreter that has the engine installed, so it imports NumPy and the standard library only. Times are
CPU seconds of the whole process (every thread of it) and wall seconds; the garbage collector is off while they run.
"""

from __future__ import annotations

import functools
import gc
import hashlib
import importlib
import importlib.metadata
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from engines import ENGINES, METHODS, TRAINERS
from processes import RESULT
from texts import WORST_CASES, Text
from vocabularies import Vocabulary

FIRST_TEXT = "Hello, world"  # encoded once before any timing: pays for lazy imports, tables and thread pools


def timed(call: Callable[..., Any], *arguments: Any) -> tuple[Any, dict[str, float]]:
    """What the call returns, and its CPU and wall seconds."""
    gc.collect()
    gc.disable()
    wall, cpu = time.perf_counter(), time.process_time()
    result = call(*arguments)
    seconds = {"cpu": time.process_time() - cpu, "wall": time.perf_counter() - wall}
    gc.enable()
    return result, {kind: round(value, 9) for kind, value in seconds.items()}


def rates(amount: float, times: dict[str, float]) -> dict[str, float]:
    """Amount a second, of CPU and wall time."""
    return {kind: round(amount / seconds, 3) for kind, seconds in times.items()}


def memory_mb(field: str) -> float:
    """Resident megabytes now ("VmRSS") or at most so far ("VmHWM")."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field)) / 1000


def reset_peak_memory() -> float:
    """Reset the process's peak memory, "VmHWM", to what is resident now, and return that in megabytes."""
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")
    return memory_mb("VmRSS")


def flat_ids(result: Any) -> np.ndarray:
    """The ids of any engine's result, documents concatenated."""
    if isinstance(result, np.ndarray):
        return result
    if result and not isinstance(result[0], int):
        return np.concatenate([np.asarray(ids, np.uint32) for ids in result])
    return np.array(result, np.uint32)


class Bench:
    """The engine of a job, loaded, and what loading cost."""

    def __init__(self, job: dict[str, Any]) -> None:
        self.threads: int = job["threads"]
        self.memory_before = memory_mb("VmRSS")
        module, self.import_seconds = timed(importlib.import_module, f"engines.{job['engine']}")
        vocabulary = Vocabulary(**job["vocabulary"])
        self.encoder, self.load_seconds = timed(module.Encoder, vocabulary, self.threads)
        self.memory_loaded = memory_mb("VmRSS")

    def method(self, form: str, output: str) -> Callable[[Any], Any]:
        """The engine's way to encode what `prepared` makes of documents."""
        found: Callable[[Any], Any] = getattr(self.encoder, METHODS[form, output])
        return found


def halves(job: dict[str, Any]) -> tuple[list[str], list[str]]:
    """The documents of the job's text in two halves."""
    documents = Text(**job["text"]).documents()
    middle = (len(documents) + 1) // 2
    return documents[:middle], documents[middle:]


def prepared(form: str, documents: list[str]) -> Any:
    """Documents as the methods for `form` take them."""
    return "".join(documents) if form == "whole" else documents


def is_exact(job: dict[str, Any], form: str, half: int, result: Any) -> bool:
    """Whether an engine's ids of a half equal the reference's."""
    return np.array_equal(flat_ids(result), np.load(f"{job['reference']}-{form}-{half}.npy"))


def run_reference(job: dict[str, Any]) -> None:
    """Write the ids of both halves of a text, as tiktoken has them, and where those of each document end."""
    encoder = Bench(job).encoder
    for half, documents in enumerate(halves(job)):
        lists = encoder.texts_to_lists(documents)
        np.save(f"{job['reference']}-documents-{half}.npy", flat_ids(lists))
        np.save(f"{job['reference']}-ends-{half}.npy", np.cumsum([len(ids) for ids in lists]))
        np.save(f"{job['reference']}-whole-{half}.npy", encoder.text_to_numpy("".join(documents)))


def run_worst_reference(job: dict[str, Any]) -> None:
    """Write tiktoken's ids of the worst cases."""
    encoder = Bench(job).encoder
    for name, make in WORST_CASES.items():
        np.save(f"{job['reference']}-{name}.npy", encoder.text_to_numpy(make(job["worst_bytes"])))


def run_check(job: dict[str, Any]) -> dict[str, Any]:
    """The ways to encode whose ids differ from the reference."""
    bench = Bench(job)
    differing = []
    for form, output in METHODS:
        if ENGINES[job["engine"]].can(job["vocabulary"]["name"], form, output, job["threads"]):
            encode = bench.method(form, output)
            if not all(
                is_exact(job, form, half, encode(prepared(form, texts))) for half, texts in enumerate(halves(job))
            ):
                differing.append(f"{form} {output}")
    return {"differing": differing}


def run_encode(job: dict[str, Any]) -> dict[str, Any]:
    """Cold, unseen and warm: the first half of the documents, the second half, both again."""
    form = job["form"]
    bench = Bench(job)
    encode = bench.method(form, job["output"])
    encode(prepared(form, [FIRST_TEXT]))
    texts = halves(job)
    first, second = (prepared(form, documents) for documents in texts)
    results, seconds = zip(*(timed(encode, half) for half in (first, second)), strict=True)
    again = [timed(encode, half)[1] for half in (first, second)]
    sizes = [sum(len(text.encode()) for text in documents) / 1e6 for documents in texts]
    return {
        "exact": all(is_exact(job, form, half, result) for half, result in enumerate(results)),
        "cold": rates(sizes[0], seconds[0]),
        "unseen": rates(sizes[1], seconds[1]),
        "warm": rates(sum(sizes), {kind: again[0][kind] + again[1][kind] for kind in ("cpu", "wall")}),
    }


def run_load(job: dict[str, Any]) -> dict[str, Any]:
    """Import, load and first call in milliseconds; memory above the bare interpreter's, and its peak after a text."""
    bench = Bench(job)
    encode = bench.method("documents", job["output"])
    _, first = timed(encode, [FIRST_TEXT])
    documents = Text(**job["text"]).documents()
    before = reset_peak_memory()
    encode(documents)
    loaded = bench.memory_loaded - bench.memory_before
    seconds = {"import ms": bench.import_seconds, "load ms": bench.load_seconds, "first call ms": first}
    return {
        **{name: {kind: round(1e3 * value, 3) for kind, value in times.items()} for name, times in seconds.items()},
        "memory": {"loaded MB": round(loaded, 1), "peak MB": round(loaded + memory_mb("VmHWM") - before, 1)},
    }


def run_worst(job: dict[str, Any]) -> dict[str, Any]:
    """One worst case as one string, the first long one that the process sees."""
    encode = Bench(job).method("whole", job["output"])
    encode(FIRST_TEXT)
    text = WORST_CASES[job["case"]](job["worst_bytes"])
    ids, times = timed(encode, text)
    exact = np.array_equal(flat_ids(ids), np.load(f"{job['reference']}-{job['case']}.npy"))
    return {"exact": exact, "first call": rates(len(text.encode()) / 1e6, times)}


def run_small(job: dict[str, Any]) -> dict[str, Any]:
    """Calls a second for single strings of each size: 1,000 out of the text, the second time they are seen."""
    bench = Bench(job)
    encode = bench.method("whole", job["output"])
    text = "".join(Text(**job["text"]).documents())
    found = {}
    for size in job["sizes"]:
        step = max(1, (len(text) - size) // 1_000)
        strings = [text[begin : begin + size] for begin in range(0, len(text) - size, step)][:1_000]

        def loop(strings: list[str] = strings) -> None:
            for string in strings:
                encode(string)

        loop()
        _, times = timed(loop)
        found[f"{size} B"] = rates(len(strings), times)
    return found


def run_decode(job: dict[str, Any]) -> dict[str, Any]:
    """Decoding the documents of the first half, one call each, from tiktoken's ids; the texts must come back."""
    decode = Bench(job).encoder.decode
    documents, _ = halves(job)
    ends = np.load(f"{job['reference']}-ends-0.npy")
    arrays = np.split(np.load(f"{job['reference']}-documents-0.npy"), ends[:-1])
    inputs = arrays if job["output"] == "numpy" else [array.tolist() for array in arrays]
    decode(inputs[0])
    texts, times = timed(lambda: [decode(ids) for ids in inputs])
    exact = [text if isinstance(text, str) else text.decode() for text in texts] == documents
    return {"exact": exact, "decode": rates(sum(len(text.encode()) for text in documents) / 1e6, times)}


def run_train(job: dict[str, Any]) -> dict[str, Any]:
    """Training on the documents, which are in memory already: seconds, megabytes at most above that, hash of tokens."""
    trainer = TRAINERS[job["engine"]]
    train = importlib.import_module(f"engines.{trainer.module}").train
    documents = Text(**job["text"]).documents()
    train(documents[:20], 300, job["pattern"], job["threads"])
    before = reset_peak_memory()
    learn = functools.partial(train, **trainer.options)
    tokens, times = timed(learn, documents, job["vocab_size"], job["pattern"], job["threads"])
    peak = memory_mb("VmHWM") - before
    digest = hashlib.sha256(b"".join(len(token).to_bytes(4, "little") + token for token in tokens))
    return {
        "tokens": digest.hexdigest()[:16],
        "seconds": times,
        "memory": {"peak MB": round(peak, 1)},
    }


TASKS = {
    "reference": run_reference,
    "worst reference": run_worst_reference,
    "check": run_check,
    "encode": run_encode,
    "load": run_load,
    "worst": run_worst,
    "small": run_small,
    "decode": run_decode,
    "train": run_train,
}


def version_of(package: str) -> str:
    """Return the version of a distribution; this project may also run from its source tree, uninstalled."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        if package != "fastcompress":
            raise
        return "source tree"


def main() -> None:
    job = json.load(sys.stdin)
    result = TASKS[job["task"]](job)
    engine = TRAINERS[job["engine"]] if job["task"] == "train" else ENGINES[job["engine"]]
    print(
        RESULT
        + json.dumps({**(result or {}), "version": version_of(engine.package), "load_average": os.getloadavg()[0]}),
        flush=True,
    )


if __name__ == "__main__":
    main()
