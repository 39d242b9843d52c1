"""The estimate of a run's memory: close to what is measured, and a run that cannot fit is refused by it."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch

from fastcompress.codec import ByteCodec, codec_from_spec
from fastcompress.data.shards import TokenDataset
from fastcompress.errors import ConfigError
from fastcompress.evaluation.bits_per_byte import evaluate
from fastcompress.evaluation.generate import generate
from fastcompress.models.allocation import memory_errors
from fastcompress.models.gpt import GPT, GPTConfig
from fastcompress.models.kinds import make_model_config
from fastcompress.models.protocol import ModelConfig
from fastcompress.models.tokens import NextTokenModel
from fastcompress.training import memory
from fastcompress.training.config import MachineConfig, TrainConfig
from fastcompress.training.device import kernels_of
from fastcompress.training.distributed import Ranks
from fastcompress.training.optimizer import make_optimizer
from fastcompress.training.spread import WHOLE_BYTES
from fastcompress.training.train import train
from tests.forked_commands import Server

CPU = torch.device("cpu")
PRESETS = {"modern": GPTConfig.modern, "workshop": GPTConfig.workshop}
FACTOR = 1.5  # what memory.py promises

# What decides: weights; activations; activations with dropout; logits; tables. Prints how much the process grew.
# A process that is forked for each case, so that torch is imported once.
MEASURE = """
import json, os, sys, tempfile
from pathlib import Path
import torch
from fastcompress.codec import ByteCodec
from fastcompress.data.shards import TokenDataset
from fastcompress.training.config import MachineConfig, TrainConfig
from fastcompress.training.device import kernels_of
from fastcompress.training.train import train
from tests.test_memory import config_of

torch.set_num_threads(1)

def peak(preset, model, training):
    ByteCodec.vocab_size = model["vocab_size"] - 1  # as a codec of so many ids, of which the text uses few
    data = TokenDataset.from_documents([b"some text to train on, and more " * 300], ByteCodec())
    config = TrainConfig(**{"device": "cpu", "steps": 2, "num_evals": 1, "eval_bytes": 512, **training})
    directory = Path(tempfile.mkdtemp(), "run")
    train(config_of(preset, model), ByteCodec(), data, [b"held out " * 500], config, directory, progress=False)
    # Not getrusage(): its peak is inherited from the process that started this one.
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM:")) * 1024

def small(preset):
    shape = dict(vocab_size=257, num_layers=1, num_heads=1, width=16, context_length=16)
    return peak(preset, shape, dict(batch_size=2))

small("modern")  # what torch imports when it is needed first
for preset, model, training in json.loads(sys.argv[1]):
    if os.fork() == 0:
        before = small(preset)
        print(peak(preset, model, training) - before, flush=True)
        os._exit(0)
    assert os.wait()[1] == 0
"""
CASES: dict[str, tuple[str, dict[str, Any], dict[str, int]]] = {
    "weights": ("modern", {"vocab_size": 257, "num_layers": 2, "num_heads": 4, "width": 352, "context_length": 32},
                {"batch_size": 2, "eval_batch_size": 2}),
    "activations": ("modern", {"vocab_size": 257, "num_layers": 4, "num_heads": 4, "width": 128, "context_length": 256},
                    {"batch_size": 32, "micro_batch_size": 16}),
    "recomputed": ("modern", {"vocab_size": 257, "num_layers": 8, "num_heads": 4, "width": 128, "context_length": 256},
                   {"batch_size": 8, "checkpoint_activations": True}),
    "dropout": ("workshop", {"vocab_size": 257, "num_layers": 4, "num_heads": 4, "width": 128, "context_length": 256},
                {"batch_size": 16}),
    "logits": ("modern", {"vocab_size": 60_000, "num_layers": 1, "num_heads": 2, "width": 32, "context_length": 64},
               {"batch_size": 16, "eval_batch_size": 2}),
    "patches": ("byte-latent", {"vocab_size": 257, "num_layers": 4, "num_heads": 4, "width": 128, "context_length": 256,
                                "dropout": 0.1}, {"batch_size": 16, "eval_batch_size": 2}),
    "tables": ("modern", {"vocab_size": 100_000, "num_layers": 1, "num_heads": 2, "width": 64, "context_length": 16},
               {"batch_size": 1, "eval_batch_size": 1, "eval_bytes": 512}),
}  # fmt: skip


def config_of(preset: str, model: dict[str, Any]) -> ModelConfig:
    """The configuration of a preset, or of another kind of model over bytes."""
    if preset in PRESETS:
        return PRESETS[preset](**model)
    local = {"local_width": model["width"] // 2, "local_heads": 1}
    settings = {name: value for name, value in model.items() if name != "vocab_size"}
    return make_model_config({"kind": preset, **local, **settings}, ByteCodec())


@pytest.fixture(scope="module")
def measured() -> dict[str, int]:
    """The bytes that each case takes beyond a small run."""
    command = [sys.executable, "-c", MEASURE, json.dumps(list(CASES.values()))]
    root = Path(__file__).parent.parent
    output = subprocess.run(command, capture_output=True, text=True, check=True, cwd=root).stdout
    return dict(zip(CASES, map(int, output.split()), strict=True))


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("name", CASES)
def test_the_estimate_is_within_the_stated_factor_of_what_is_measured(name: str, measured: dict[str, int]) -> None:
    preset, model, training = CASES[name]
    estimate = memory.estimate_memory(config_of(preset, model), TrainConfig(steps=2, **training))
    assert estimate.total / FACTOR <= measured[name] <= estimate.total * FACTOR


OPTIONS: dict[str, Any] = {
    "attention_gate": True, "spelled_bytes": 2, "engram_layers": (0, 2), "engram_heads": 2, "engram_rows": 64,
    "attention_residuals": "full", "exclusive_attention": "gated", "kv_heads": 1, "value_residual": True,
}  # fmt: skip


@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
@pytest.mark.parametrize("cautious", [False, True])
@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("options", [{}, OPTIONS], ids=["plain", "options"])
def test_the_optimizers_bytes_are_those_it_holds(
    optimizer: str, cautious: bool, preset: str, options: dict[str, Any]
) -> None:
    """To the byte, but for the counters of steps. A copy of all has the weights, too."""
    config = PRESETS[preset](vocab_size=257, num_layers=3, num_heads=2, width=32, context_length=16, **options)
    training = TrainConfig(steps=1, optimizer=optimizer, cautious_decay=cautious)  # type: ignore[arg-type]
    model = GPT(config)
    held = make_optimizer(model, training)
    gradients = 0
    for parameter in model.parameters():
        parameter.grad = torch.full_like(parameter, 1e-3)
        gradients += parameter.grad.nbytes
    held.step()
    moments = sum(t.nbytes for state in held.state.values() for t in state.values() if t.dim())
    estimate = memory.estimate_memory(config, training)
    assert estimate.optimizer == gradients + moments
    assert estimate.copies == estimate.weights + estimate.optimizer
    assert estimate.weights == 4 * model.num_parameters()


def test_recomputed_blocks_need_a_fraction_of_the_activations() -> None:
    model = GPTConfig.modern(vocab_size=257, num_layers=12, num_heads=4, width=128)
    kept, recomputed = (
        memory.estimate_memory(model, TrainConfig(steps=1, checkpoint_activations=on)).activations
        for on in (False, True)
    )
    assert 0.2 < recomputed / kept < 0.4


def test_each_process_has_a_part_of_what_fsdp_divides() -> None:
    model = GPTConfig.modern(vocab_size=257)
    alone, ddp, fsdp = (
        memory.estimate_memory(model, TrainConfig(steps=1, parallel=kind), ranks=Ranks(0, size))
        for kind, size in (("ddp", 1), ("ddp", 4), ("fsdp", 4))
    )
    assert (ddp.weights, ddp.optimizer) == (alone.weights, alone.optimizer)
    assert (fsdp.weights, fsdp.optimizer) == (alone.weights // 4 + 2 * alone.weights, alone.optimizer // 4)
    large = dataclasses.replace(model, num_layers=96, width=768)  # too large to be gathered at once
    assert large.size("cpu", kernels_of(MachineConfig())).parameters > WHOLE_BYTES // 4
    for parts in (1, 4):
        config = TrainConfig(steps=1, parallel="fsdp")
        part = memory.estimate_memory(large, config, ranks=Ranks(0, parts)).weights
        assert part == 4 * (large.size("cpu", kernels_of(MachineConfig())).parameters // parts)
    assert 4 * ddp.activations == 4 * fsdp.activations == alone.activations  # of their rows


def test_the_largest_micro_batch_that_fits_is_found() -> None:
    model = GPTConfig.modern(vocab_size=257)
    config = TrainConfig(steps=1, batch_size=24, fit_micro_batch=True)

    def fitted(available: int) -> int:
        return memory.fit_to_machine(config, model, CPU, available=available).micro_batch

    need = {n: memory.estimate_memory(model, config.override({"micro_batch_size": n})).total for n in (1, 2, 6, 24)}
    assert [fitted(need[n]) for n in need] == list(need)
    assert fitted(need[6] - 1) == 4
    assert fitted(need[1] - 1) == 1  # which the check of memory then refuses
    given = config.override({"micro_batch_size": 3})
    assert memory.fit_to_machine(given, model, CPU, available=need[24]).micro_batch == 3


def test_micro_batches_divide_the_rows_of_a_process() -> None:
    model, two = GPTConfig.modern(vocab_size=257), Ranks(0, 2)
    config = TrainConfig(steps=1, batch_size=12)
    assert memory.fit_to_machine(config, model, CPU) == config
    assert memory.fit_to_machine(config, model, CPU, two).micro_batch == 6
    with pytest.raises(ConfigError, match="micro_batch_size is 4; it must divide 6, the rows of a batch that each"):
        memory.fit_to_machine(config.override({"micro_batch_size": 4}), model, CPU, two)


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("tied", [False, True])
def test_parameters_are_counted_as_the_model_has_them(preset: str, bias: bool, tied: bool) -> None:
    for width, num_layers in ((32, 1), (64, 3)):
        config = PRESETS[preset](
            vocab_size=300,
            width=width,
            num_heads=2,
            num_layers=num_layers,
            context_length=16,
            bias=bias,
            tied_head=tied,
        )
        assert config.size().parameters == GPT(config).num_parameters()


def settings(**changes: Any) -> tuple[GPTConfig, TrainConfig]:
    names = {"batch_size", "micro_batch_size", "eval_batch_size"} & set(changes)
    training = TrainConfig(steps=1, device="cpu", **{name: changes.pop(name) for name in names})
    return GPTConfig.modern(**{"vocab_size": 257, **changes}), training


@pytest.mark.parametrize(
    ("changes", "remedy"),
    [
        ({"vocab_size": 16_777_217, "width": 32, "num_heads": 1, "num_layers": 1, "batch_size": 2},
         r"vocabulary of 16,777,217: use a codec with fewer ids \(byte, lz77-buckets or bpe-4096"),
        ({"width": 3072, "num_layers": 40, "batch_size": 1, "context_length": 16}, "use a smaller model"),
        ({"batch_size": 4096}, "use a smaller micro batch, context or model"),
    ],
)  # fmt: skip
def test_what_cannot_fit_is_refused_with_estimate_and_remedy(changes: dict[str, Any], remedy: str) -> None:
    model, training = settings(**changes)
    parts = r"\(weights .* GB, gradients and optimizer .* GB, their copies .* GB, activations .* GB, logits .* GB\)"
    with pytest.raises(ConfigError, match=rf"needs about .* GB of memory {parts}, but 8\.0 GB are free; .*{remedy}"):
        memory.check_memory(model, training, CPU, available=8_000_000_000)
    memory.check_memory(model, training, CPU, available=memory.estimate_memory(model, training).total)


def test_the_trainer_refuses_before_it_allocates(tmp_path: Path) -> None:
    """A model of petabytes: nobody could make it."""
    codec = ByteCodec()
    data = TokenDataset.from_documents([b"text " * 100], codec)
    model, training = settings(width=1 << 21, num_heads=1 << 14, num_layers=100)
    with pytest.raises(ConfigError, match="training needs about"):
        train(model, codec, data, [b"text"], training, tmp_path / "run", progress=False)
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_the_command_refuses_lz77_on_a_machine_that_is_too_small(tmp_path: Path, forked_commands: Server) -> None:
    """The vocabulary that was killed by the system, at a width that no machine has memory for."""
    corpus = tmp_path / "corpus.txt"
    corpus.write_bytes(b"some text to train on " * 100)
    assert codec_from_spec("lz77").vocab_size > 16_000_000
    words = ["train", "--corpus", corpus, "--codec", "lz77", "--steps", "1",
             "--layers", "1", "--width", "65536", "--heads", "1", "--context", "32", "--batch-size", "2",
             "--device", "cpu", "--run-dir", tmp_path / "run"]  # fmt: skip
    since = time.monotonic()
    process = forked_commands.start(*words)
    _, told = process.communicate()
    assert time.monotonic() - since < 60
    assert process.returncode == 1
    assert told.startswith("error: training needs about ")
    assert "use a codec with fewer ids (byte, lz77-buckets or bpe-4096; lz77 has 16.7 million)" in told
    assert not (tmp_path / "run").exists()


@pytest.mark.skipif(not Path("/proc/meminfo").exists(), reason="Linux's own file")
def test_available_memory_is_a_part_of_the_machines() -> None:
    available = memory.available_memory(CPU)
    assert available is not None
    assert 1 << 26 < available <= os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def test_a_containers_limit_counts(tmp_path: Path) -> None:
    for name, text in (
        ("memory.max", "1000000\n"), ("memory.current", "700000\n"),
        ("memory.stat", "anon 1\nfile 9\nactive_file 100000\ninactive_file 50000\n"),
    ):  # fmt: skip
        (tmp_path / name).write_text(text)
    assert memory._control_group_memory(tmp_path) == 1_000_000 - 700_000 + 150_000
    (tmp_path / "memory.max").write_text("max\n")
    assert memory._control_group_memory(tmp_path) is None
    assert memory._control_group_memory(tmp_path / "nosuch") is None


# --- Memory that runs out all the same ---------------------------------------------------------------------


def test_memory_that_runs_out_on_the_cpu_is_called_that() -> None:
    with pytest.raises(MemoryError, match="allocate"), memory_errors():
        torch.empty(1 << 55, dtype=torch.uint8)
    with pytest.raises(RuntimeError, match="must match"), memory_errors():
        torch.zeros(2) + torch.zeros(3)


class Greedy(NextTokenModel):
    """A model that wants more memory than there is."""

    context_length, vocab_size = 8, 257

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return torch.empty(1 << 55)

    def nats(self, batch: Mapping[str, torch.Tensor]) -> torch.Tensor:
        return torch.empty(1 << 55)


def test_every_use_of_a_model_says_that_memory_ran_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(MemoryError):
        evaluate(Greedy(), ByteCodec(), [b"text"])
    with pytest.raises(MemoryError):
        list(generate(Greedy(), ByteCodec(), b"text", max_tokens=3))
    monkeypatch.setattr(GPT, "nats", Greedy.nats)
    model, training = settings(width=16, num_heads=1, num_layers=1, context_length=16)
    data = TokenDataset.from_documents([b"text " * 100], ByteCodec())
    with pytest.raises(MemoryError):
        train(model, ByteCodec(), data, [b"text"], training, tmp_path / "run", progress=False)
