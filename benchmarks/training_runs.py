"""A training run of a comparison at equal FLOPs: English, Muon, scored on held-out text with and without masks."""

from __future__ import annotations

import json
import lzma
import tempfile
from pathlib import Path
from typing import Any

CONTEXT = 1024
RATES = {"learning_rate": 0.02, "embedding_rate": 0.1, "head_rate": 4e-3, "vector_rate": 4e-3, "spelled_rate": 4e-3}


def documents_of(path: Path) -> list[bytes]:
    """Return the texts of JSON lines."""
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line)["text"].encode() for line in lines]


def train(
    settings: dict[str, Any], codec: Any, tokens: Any, asked: dict[str, Any], *, masks: bool, folder: Path | None = None
) -> dict[str, Any]:
    """Train a model and return its figures.

    Args:
        settings: Of the model.
        codec, tokens: What it reads.
        asked: ``flops``, ``batch`` (rows), ``factor`` (of all learning rates), ``seed``, ``validation`` (the path of
            held-out JSON lines), ``eval_bytes`` and ``device``.
        masks: Also score with masks, and state the better score.
        folder: The run directory, to be kept.
    """
    from fastcompress import evaluation, models, training
    from fastcompress.data.canonical_rows import CanonicalRows
    from fastcompress.training.batches import first_documents

    rates = {name: rate * asked["factor"] for name, rate in RATES.items()}
    config = training.TrainConfig(
        flops=asked["flops"], batch_size=asked["batch"], seed=asked["seed"], num_evals=1, log_every=50,
        eval_bytes=1 << 16, self_check=False, optimizer={"kind": "muon", **rates}, device=asked["device"],
    )  # fmt: skip
    sample = first_documents(documents_of(Path(asked["validation"])), asked["eval_bytes"])
    with tempfile.TemporaryDirectory() as temporary:
        model_config = models.make_model_config(settings, codec)
        place = folder or Path(temporary) / "run"
        result = training.train(model_config, codec, tokens, sample, config, place, progress=False)
        scores = {"unmasked": evaluation.evaluate(result.model, codec, sample)}
        if masks:
            scores["masked"] = evaluation.evaluate(result.model, codec, sample, rows=CanonicalRows(codec, CONTEXT))
    best = min(scores.values(), key=lambda score: score.bits_per_byte)
    return {
        "bits_per_byte": best.bits_per_byte,
        "is_exact": best.is_exact,
        "boundary_bits_per_byte": best.boundary_bits_per_byte,
        "unmasked_bits_per_byte": scores["unmasked"].bits_per_byte,
        "uniform_bits_per_byte": scores["unmasked"].uniform_bits_per_byte,
        "train_bits_per_byte": result.curve[-1]["train_bits_per_byte"],
        "steps": result.steps,
        "tokens": result.tokens,
        "passes": result.tokens / tokens.num_tokens,
        "bytes_per_token": tokens.num_bytes / tokens.num_tokens,
        "parameters": result.model.num_parameters(),
        "seconds": result.seconds,
    }
