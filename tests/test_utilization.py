"""Training lines: what they say, and that the figures agree with each other."""

from __future__ import annotations

import json
import resource
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from fastcompress.bpe import BPE
from fastcompress.codec import BPECodec
from fastcompress.data.shards import TokenDataset
from fastcompress.errors import ConfigError
from fastcompress.models import GPTConfig
from fastcompress.training import MuonConfig, TrainConfig, train
from fastcompress.training.metrics import ProgressBar
from fastcompress.training.schedule import Horizon
from fastcompress.training.utilization import peak_flops, peak_memory_bytes, speed_figures

TEXT = [f"On day {i} came {i * i % 37} ships with maps. ".encode() * 2 for i in range(20)]


@pytest.mark.parametrize(
    ("name", "teraflops"),
    [("NVIDIA H200", 989.5), ("NVIDIA H100 80GB HBM3", 989.5), ("NVIDIA H100 PCIe", 756.5), ("NVIDIA A10", 125.0),
     ("NVIDIA A100-SXM4-80GB", 312.0), ("Tesla T4", 65.0), ("NVIDIA L40S", 362.0), ("NVIDIA L4", 121.0),
     ("NVIDIA A40", 149.7), ("Tesla V100-PCIE-16GB", 112.0), ("Tesla V100-SXM2-16GB", 125.0)],
)  # fmt: skip
def test_known_cards(name: str, teraflops: float) -> None:
    assert peak_flops(name, "bfloat16") == pytest.approx(teraflops * 1e12)
    assert peak_flops(name, "float32") is None


def test_unknown_cards_have_no_peak() -> None:
    slower = ("NVIDIA H100 NVL", "NVIDIA H200 NVL", "NVIDIA H20", "NVIDIA A10G", "NVIDIA L40")  # than their namesakes
    for name in (*slower, "NVIDIA GeForce GTX 1080", "NVIDIA L400", "NVIDIA H2000", ""):
        assert peak_flops(name, "bfloat16") is None


def test_speed_figures() -> None:
    """124M parameters at 6 FLOPs each and 500,000 tokens per second are 372 TFLOPs per second."""
    figures = speed_figures(500_000, bytes_per_token=4.5, flops_per_token=6 * 124e6, peak=989.4e12)
    assert figures == {
        "tokens_per_second": 500_000, "bytes_per_second": 2_250_000, "mfu": pytest.approx(0.376, abs=1e-3),
        "peak_flops": 989.4e12,
    }  # fmt: skip
    assert speed_figures(1, bytes_per_token=1, flops_per_token=1, peak=None)["mfu"] is None


def test_a_training_line_has_every_figure(tmp_path: Path) -> None:
    codec = BPECodec(BPE.train(TEXT, vocab_size=270))
    data = TokenDataset.from_documents(TEXT, codec)
    model = GPTConfig.workshop(vocab_size=271, num_layers=1, num_heads=1, width=8, context_length=8, dropout=0.0)
    settings = MuonConfig(learning_rate=0.04, embedding_rate=0.02, vector_rate=0.01)
    config = TrainConfig(
        steps=4, batch_size=2, log_every=2, num_evals=1, device="cpu", optimizer=settings, schedule="constant",
        warmup=0.5, peak_flops=1e12,
    )  # fmt: skip
    train(model, codec, data, TEXT[:1], config, tmp_path, progress=False)
    records = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    first, last = (record for record in records if record["event"] == "train")
    assert first["learning_rate"] == pytest.approx(0.03)  # the second of two steps of warm-up
    assert first["learning_rates"] == pytest.approx({"embedding": 0.015, "matrix": 0.03, "vector": 0.0075})
    assert last["learning_rates"] == pytest.approx({"embedding": 0.02, "matrix": 0.04, "vector": 0.01})
    bytes_per_token = data.num_bytes / data.num_tokens
    assert last["bytes_per_second"] == pytest.approx(last["tokens_per_second"] * bytes_per_token)
    assert last["mfu"] == pytest.approx(last["tokens_per_second"] * last["flops"] / last["tokens"] / 1e12)
    assert last["peak_flops"] == 1e12
    assert last["gradient_norm"] > 0
    assert 1e7 < first["peak_memory_bytes"] <= last["peak_memory_bytes"] < 1e12
    with pytest.raises(ConfigError, match="peak_flops must be more than 0"):
        TrainConfig(steps=1, peak_flops=0)


@pytest.mark.skipif(sys.platform != "linux", reason="its unit is Linux's")
def test_the_peak_of_a_process_is_that_of_the_system() -> None:
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    known = int(status["VmHWM"].split()[0]) * 1024
    assert peak_memory_bytes(torch.device("cpu")) == pytest.approx(known, rel=0.05)
    assert peak_memory_bytes(torch.device("cpu")) == resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def test_the_live_line_shows_the_share_of_the_peak(capsys: pytest.CaptureFixture[str]) -> None:
    bar = ProgressBar(Horizon(10, None), visible=True)
    bar.line_at = 0.0
    figures: dict[str, Any] = {"loss": 1.5, "bits_per_byte": None, "mfu": 0.4321, "tokens_per_second": 512_345.0}
    bar.show(3, 1.0, **figures)
    bar.close()
    assert "step 3 of 10, 1 s: loss 1.500, 43.2% MFU, 512k tokens/s" in capsys.readouterr().err
