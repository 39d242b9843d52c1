"""The runs behind `tests/vectors/training-curves.json`: small, on the CPU, one thread, every loss kept.

`python -m tests.golden_runs` writes the curves anew. They were first written by the trainer that knew one model and one
kind of batch; write them again only where a run is meant to compute something else. The stopped run beside them has
checkpoints of version 1 and is never written again.
"""

from __future__ import annotations

import dataclasses
import json
import tempfile
from pathlib import Path
from typing import Any

import torch

from fastcompress.bpe import BPE
from fastcompress.codec import BPECodec, ByteCodec, Codec
from fastcompress.data.shards import TokenDataset
from fastcompress.models.gpt import GPTConfig
from fastcompress.training.config import TrainConfig
from fastcompress.training.train import train

VECTORS = Path(__file__).parent / "vectors"
CURVES = VECTORS / "training-curves.json"
OLD_RUN = VECTORS / "run-version-1"  # "stopped", after step 13, as the trainer of checkpoint version 1 left it

DOCUMENTS = [
    f"On day {i} the {i * i % 37} ships of fleet {i % 7} left; {i * 13 % 101} came back with naïve maps. ".encode() * 3
    for i in range(40)
]
HELD_OUT = [f"On day {i} the {i * 5 % 37} ships of fleet {i % 5} came back.".encode() for i in range(50, 56)]
SHAPE: dict[str, Any] = {"num_layers": 2, "num_heads": 2, "width": 32, "context_length": 32}
TRAINING: dict[str, Any] = {
    "steps": 24, "batch_size": 6, "learning_rate": 5e-3, "eval_every": 8, "log_every": 1, "device": "cpu",
    "compile": "off", "precision": "float32", "num_threads": 1, "eval_batch_size": 4, "seed": 3,
    "order": 1,  # the only one when they were written
}  # fmt: skip


@dataclasses.dataclass(frozen=True)
class GoldenRun:
    """One run: its codec ("byte" or "bpe"), the preset and settings of its model, and settings of its training."""

    codec: str
    preset: str
    model: dict[str, Any]
    training: dict[str, Any]


RUNS = {
    "bytes-modern": GoldenRun("byte", "modern", {}, {}),
    "bytes-workshop": GoldenRun(
        "byte", "workshop", {"bias": True}, {"schedule": "cosine", "micro_batch_size": 2, "final_learning_rate": 0.1}
    ),
    "stopped": GoldenRun("byte", "workshop", {"num_layers": 1, "width": 16, "context_length": 16}, {}),
    "bpe-modern": GoldenRun("bpe", "modern", {"dropout": 0.1}, {"micro_batch_size": 3, "warmup": 0.2}),
    "bpe-tied": GoldenRun(
        "bpe", "modern", {"tied_head": True, "mlp": "gelu", "norm": "layernorm"}, {"clip_norm": None, "steps": 20}
    ),
}


# Zeros and ones of dropout from seed 0, where the vectors were written. Other builds of torch draw others.
DROPOUT = [0, 0, 1, 0, 0, 0, 1, 1, 0, 1, 1, 1]


def draws_other_dropout(name: str) -> bool:
    """Whether a run has dropout, of which this torch draws another one than that which wrote the vectors."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        drawn = torch.nn.functional.dropout(torch.ones(20), 0.5)[: len(DROPOUT)].bool().int().tolist()
    has_dropout = RUNS[name].preset == "workshop" or RUNS[name].model.get("dropout", 0.0) > 0
    return has_dropout and drawn != DROPOUT


def make_codec(name: str) -> Codec:
    """The codec of a run; the BPE is trained on the run's own text."""
    return ByteCodec() if name == "byte" else BPECodec(BPE.train(DOCUMENTS, vocab_size=320))


def start(name: str, directory: Path, *, resume: bool = False, **changes: Any) -> None:
    """Make the run `name`, or go on with it, in `directory`, perhaps with changed settings of training."""
    golden = RUNS[name]
    codec = make_codec(golden.codec)
    preset = {"modern": GPTConfig.modern, "workshop": GPTConfig.workshop}[golden.preset]
    model = preset(vocab_size=codec.vocab_size + 1, **{**SHAPE, **golden.model})
    config = TrainConfig(**{**TRAINING, **golden.training, **changes})
    data = TokenDataset.from_documents(DOCUMENTS, codec)
    train(model, codec, data, HELD_OUT, config, directory, progress=False, resume=resume)


def curve_of(directory: Path) -> dict[str, list[str]]:
    """Every loss, gradient norm and score of a run, as hexadecimal floats."""
    records = [json.loads(line) for line in (directory / "metrics.jsonl").read_text().splitlines()]
    steps = [record for record in records if record["event"] == "train"]
    scores = [record for record in records if record["event"] == "eval"]
    return {
        "losses": [record["loss"].hex() for record in steps],
        "gradient_norms": [record["gradient_norm"].hex() for record in steps],
        "validation": [record["validation_bits_per_byte"].hex() for record in scores],
    }


def machine() -> dict[str, str]:
    """What decides the last bits of a sum of floats on a CPU, as far as it can be asked."""
    model = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    return {
        "torch": torch.__version__,
        "capability": torch.backends.cpu.get_cpu_capability(),
        "processor": model[0].partition(":")[2].strip() if model else "",
    }


def write_vectors() -> None:
    """Run everything and write the curves."""
    curves = {}
    for name in RUNS:
        with tempfile.TemporaryDirectory() as folder:
            start(name, Path(folder))
            curves[name] = curve_of(Path(folder))
    CURVES.write_text(json.dumps({"machine": machine(), "curves": curves}, indent=1) + "\n")


if __name__ == "__main__":
    write_vectors()
