"""Progress of a run: ``metrics.jsonl`` for programs, and a progress bar or progress lines for people.

``metrics.jsonl`` holds one JSON object per line, in order. Each has ``event``, and the step, tokens, flops and seconds
so far. ``event`` is the kind of record:

    "train"   the mean over the steps since the last such line: loss (nats per token), train_bits_per_byte,
              tokens_per_second, bytes_per_second (of raw text), mfu and peak_flops (None where the device's peak is not
              known; ``utilization.py`` has the formula); and as they are now: learning_rate (of matrices),
              learning_rates (by the role of a group), gradient_norm (before clipping), peak_memory_bytes, epoch,
              epochs (of each dataset of a mixture; epoch is the most of them)
    "eval"    validation_bits_per_byte, validation_bytes (the size of the sample that it is on), train_bits_per_byte,
              is_best
"""

from __future__ import annotations

import hashlib
import json
import math
import sys
import time
from pathlib import Path
from typing import Any

from tqdm import tqdm

from fastcompress._files import remedy_for, write_atomically
from fastcompress.errors import FormatError, OutputError
from fastcompress.training.schedule import Horizon

SECONDS_PER_LINE = 30.0
_LABELS = {  # in the order of the progress bar
    "loss": "loss {}",
    "bits_per_byte": "{} bits/byte",
    "validation": "val {}",
    "mfu": "{} MFU",
    "tokens_per_second": "{} tokens/s",
}


class MetricsLog:
    """A JSON-lines file to which records are appended. Raises OutputError if it cannot be written."""

    def __init__(self, path: Path, *, resume_step: int | None = None) -> None:
        """Begin a new file, or keep an old one's records up to ``resume_step``; later steps are made again."""
        self.path = path
        self.records = [] if resume_step is None else read_records(path, resume_step)
        write_atomically(path, "".join(json.dumps(record) + "\n" for record in self.records).encode())

    def append(self, record: dict[str, Any]) -> None:
        self.records.append(record)
        try:
            with self.path.open("a", encoding="utf-8", newline="\n") as file:
                file.write(json.dumps(record) + "\n")
        except OSError as error:
            raise OutputError(f"{self.path}: cannot be written ({error.strerror}); {remedy_for(error)}") from error


def read_records(path: Path, last_step: int) -> list[dict[str, Any]]:
    """Read the records of a ``metrics.jsonl`` up to a step; none if there is no file."""
    records = []
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        try:
            record = json.loads(line)
        except json.JSONDecodeError:  # a line cut by a crash; nothing after it can be older than the checkpoint
            break
        if isinstance(record, dict) and record.get("step", math.inf) <= last_step:
            records.append(record)
    return records


def fingerprint_of(path: Path) -> dict[str, Any]:
    """Return the size and SHA-256 of a ``metrics.jsonl`` as it is now, for the checkpoint written with it."""
    content = path.read_bytes() if path.exists() else b""
    return {"num_bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}


def check_records(path: Path, known: dict[str, Any] | None) -> None:
    """Check the beginning of a ``metrics.jsonl``, up to where it ended when the checkpoint was written.

    Args:
        path: The file.
        known: What ``fingerprint_of`` returned then; None in checkpoints of older versions.

    Raises:
        FormatError: The records are damaged. (If the file was deleted, only the curve is lost.)
    """
    if known is None or not path.exists():
        return
    content = path.read_bytes()[: known["num_bytes"]]
    if hashlib.sha256(content).hexdigest() != known["sha256"]:
        raise FormatError(
            f"{path}: damaged (its checksum differs from the one in the checkpoint); restore it from a copy, or train "
            "again"
        )


class ProgressBar:
    """A progress bar with time left, loss, bits per byte of both splits, MFU and tokens per second.

    On a terminal it is a bar, elsewhere (in a log file) a line every ``SECONDS_PER_LINE``.
    """

    def __init__(self, horizon: Horizon, *, visible: bool) -> None:
        self.horizon, self.visible = horizon, visible
        self.line_at = time.monotonic() + SECONDS_PER_LINE
        unit = "steps" if horizon.steps is not None else "s"
        self.bar = tqdm(
            total=horizon.steps if horizon.steps is not None else horizon.seconds,
            disable=None if visible else True,  # None: tqdm's word for "only on a terminal"
            dynamic_ncols=True,
            bar_format="{percentage:3.0f}% |{bar}| {n:.0f}/{total:.0f} " + unit + ", {remaining} left{postfix}",
        )
        self.figures: dict[str, str] = {}

    def show(self, step: int, seconds: float, **figures: float | None) -> None:
        """Update the bar; a figure that is None keeps its last value."""
        for name, value in figures.items():
            if value is not None:
                form = {"tokens_per_second": tqdm.format_sizeof, "mfu": "{:.1%}".format}.get(name, "{:.3f}".format)
                self.figures[name] = _LABELS[name].format(form(value))
        latest = [self.figures[name] for name in _LABELS if name in self.figures]
        self.bar.set_postfix_str(", ".join(latest), refresh=False)
        self.bar.n = min(step if self.horizon.steps is not None else seconds, self.bar.total)
        self.bar.refresh()
        if self.visible and self.bar.disable and time.monotonic() >= self.line_at:
            self.line_at = time.monotonic() + SECONDS_PER_LINE
            of = f" of {self.horizon.steps:,}" if self.horizon.steps is not None else ""
            print(f"step {step:,}{of}, {seconds:.0f} s: {', '.join(latest)}", file=sys.stderr, flush=True)

    def close(self) -> None:
        self.bar.close()
