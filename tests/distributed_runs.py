"""The runs of two processes behind `test_distributed.py`: `python -m tests.distributed_runs FOLDER`, once per rank.

The environment says which rank a process is, as torchrun does. The processes join once and make all runs of a scenario
one after the other, since starting Python and torch is what costs most of the time. What a test wants to know of a rank
beyond the run's own files, that rank writes into `FOLDER/rank-N.json`.
"""

from __future__ import annotations

import dataclasses
import json
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import torch
import torch.distributed as dist
from click.testing import CliRunner
from safetensors.torch import save_file
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook

from fastcompress.cli import main as command_line
from fastcompress.codec import ByteCodec
from fastcompress.data.shards import TokenDataset
from fastcompress.errors import FastcompressError
from fastcompress.models.gpt import GPTConfig
from fastcompress.models.protocol import Batch
from fastcompress.training import spread
from fastcompress.training.config import MachineConfig, ParallelKind, TrainConfig
from fastcompress.training.distributed import join_ranks
from fastcompress.training.loss import LossModule
from fastcompress.training.optimizer import OptimizerStep, make_optimizer
from fastcompress.training.spread import Overlapped, can_shard, spread_for
from fastcompress.training.train import TrainResult, train

KINDS: tuple[ParallelKind, ...] = ("ddp", "fsdp") if can_shard("cpu") else ("ddp",)
# The ways of bringing gradients together, by the settings that choose them.
WAYS = {**{kind: MachineConfig(parallel=kind) for kind in KINDS}, "overlapped": MachineConfig(overlap_reduction=True)}
TEXT = [f"On day {i} ship {i * i % 37} left; {i * 13 % 101} men came back. ".encode() * (1 + i % 4) for i in range(30)]
HELD_OUT = [f"On day {i} ship {i * 5 % 37} came back.".encode() for i in range(4)]
CODEC = ByteCodec()
DATA = TokenDataset.from_documents(TEXT, CODEC)
MODEL = GPTConfig.modern(vocab_size=257, num_layers=2, num_heads=2, width=32, context_length=16)
DROPOUT = dataclasses.replace(MODEL, dropout=0.1)
TIED = dataclasses.replace(MODEL, tied_head=True)
GPT2 = GPTConfig.from_preset("gpt2", **{name: getattr(MODEL, name) for name in (
    "vocab_size", "num_layers", "num_heads", "width", "context_length")})  # fmt: skip
# Every option of a model and both optimizers, in few runs: (model, settings).
OPTIONS: dict[str, tuple[GPTConfig, dict[str, Any]]] = {
    "memory": (
        dataclasses.replace(MODEL, spelled_bytes=2, engram_layers=(0, 1), engram_heads=2, engram_rows=64, softcap=9.0),
        {"checkpoint_activations": True, "micro_batch_size": 2, "logits_at_once": 900},
    ),
    "attention": (
        dataclasses.replace(
            MODEL, attention_residuals="block", residual_groups=2, value_residual=True, attention_gate=True,
            exclusive_attention="gated", kv_heads=1, window=8, mlp="relu2", norm="rmsnorm_gain",
        ),
        {"optimizer": "muon"},
    ),
    "gpt2": (
        dataclasses.replace(GPT2, spelled_bytes=2, attention_residuals="full"),
        {"optimizer": "muon", "cautious_decay": True},
    ),
}  # fmt: skip
CONFIG = TrainConfig(
    steps=8, batch_size=8, learning_rate=5e-3, eval_every=4, log_every=1, device="cpu", precision="float32",
    compile="off", num_threads=1, eval_batch_size=4, seed=3, self_check=False,
)  # fmt: skip


def start(directory: Path, model: GPTConfig = MODEL, data: TokenDataset = DATA, **changes: Any) -> TrainResult:
    """Train with CONFIG, with changes made to it or passed on."""
    passed = {name: changes.pop(name) for name in ("resume", "on_metrics", "on_forecast") if name in changes}
    return train(model, CODEC, data, HELD_OUT, CONFIG.override(changes), directory, progress=False, **passed)


class InterruptingData(TokenDataset):
    """Text whose reader gets Ctrl-C at a read, on rank 1 alone; Python handles it in the main thread."""

    num_reads = 0

    def read(self, begin: int, end: int) -> np.ndarray:
        self.num_reads += 1
        if self.num_reads == 4 * 3 and dist.get_rank() == 1:  # four rows of its own in each of three steps
            signal.raise_signal(signal.SIGINT)
        return super().read(begin, end)


def interrupted(directory: Path, **changes: Any) -> str:
    """Begin a run that Ctrl-C on one rank stops; return the name of the error."""
    return error_of(lambda: start(directory, data=InterruptingData.from_documents(TEXT, CODEC), **changes))


def error_of(function: Callable[[], Any]) -> str:
    try:
        function()
    except (FastcompressError, KeyboardInterrupt, LookupError, SystemExit) as error:
        return f"{type(error).__name__}: {error}"
    return ""


def pretrain(directory: Path) -> None:
    """A run that can be finetuned: its context holds chats."""
    start(directory, dataclasses.replace(MODEL, context_length=64), steps=2)


def finetune(folder: Path, run_directory: Path, *options: str) -> dict[str, Any]:
    """`fastcompress sft` of the run of `pretrain`: its exit code and its output."""
    data = folder / "chats.jsonl"
    command = ["sft", folder / "pretrained", "--data", data, "--run-dir", run_directory, "--steps", "4",
               "--batch-size", "4", "--learning-rate", "0.01", "--set", "log_every=1", "--json", *options]  # fmt: skip
    result = CliRunner().invoke(command_line, list(map(str, command)))
    return {"code": result.exit_code, "output": result.stdout, "told": result.stderr}


class WrongCallbackError(LookupError):
    """An error that a caller's own code raises."""


def failing(error: BaseException, at_event: str = "") -> Callable[..., None]:
    """A callback that raises an error, at its first call or at the first record of an event."""

    def callback(record: Any = None) -> None:
        if not at_event or (record["event"] == at_event and record["step"]):
            raise error

    return callback


def callbacks_that_fail(folder: Path) -> dict[str, str]:
    """The errors with which runs end whose callbacks raise some."""
    wrong, taken = WrongCallbackError("not there"), KeyboardInterrupt("enough")
    return {
        "train": error_of(lambda: start(folder / "wrong-1", on_metrics=failing(wrong, "train"))),
        "eval": error_of(lambda: start(folder / "wrong-2", on_metrics=failing(wrong, "eval"))),
        "forecast": error_of(lambda: start(folder / "wrong-3", on_forecast=failing(wrong))),
        "interrupt": error_of(lambda: start(folder / "wrong-4", on_metrics=failing(taken, "train"))),
        "exit": error_of(lambda: start(folder / "wrong-5", on_metrics=failing(SystemExit(3), "train"))),
    }


def uneven_batch() -> dict[str, torch.Tensor]:
    """Eight rows, [8, 16] each, of which the odd ones, those of rank 1, have few events that count."""
    generator = torch.Generator().manual_seed(1)
    ids = torch.randint(257, (2, 8, 16), generator=generator)  # int64[2, 8, 16]
    weight = torch.ones(8, 16)
    weight[1::2, 3:] = 0.0
    return {"input": ids[0], "target": ids[1], "weight": weight}


def gradients(way: str, micro_batch_size: int) -> dict[str, torch.Tensor]:
    """The gradients of `uneven_batch`, whose rows are divided among the ranks."""
    torch.manual_seed(0)
    model = dataclasses.replace(TIED, init="gpt2").build()
    batch: Batch = uneven_batch()
    with join_ranks(torch.device("cpu")) as ranks:
        over = spread_for(ranks, WAYS[way])
        step = OptimizerStep(
            over.wrap(LossModule(model)), make_optimizer(model, CONFIG), micro_batch_size=micro_batch_size,
            clip_norm=None, spread=over,
        )  # fmt: skip
        step.gradients({name: column[ranks.rank :: ranks.size] for name, column in batch.items()})
        found = {name: parameter.grad for name, parameter in model.named_parameters() if parameter.grad is not None}
        return {name: getattr(value, "full_tensor", lambda value=value: value)() for name, value in found.items()}


def overflow_is_skipped() -> bool:
    """Whether an overflow in rank 1's part of the gradients keeps both ranks from changing a weight."""
    torch.manual_seed(0)
    model = MODEL.build()
    with join_ranks(torch.device("cpu")) as ranks:
        over = spread_for(ranks, WAYS["fsdp"])
        loss, scaler = over.wrap(LossModule(model)), torch.amp.GradScaler("cpu", init_scale=8.0)
        step = OptimizerStep(
            loss, make_optimizer(model, CONFIG), micro_batch_size=4, clip_norm=None, scaler=scaler, spread=over
        )
        batch = {name: column[ranks.rank :: ranks.size] for name, column in uneven_batch().items()}
        step.gradients(batch)
        parts: list[Any] = [parameter.detach() for parameter in step.parameters]
        before = [part.to_local().clone() for part in parts]
        gradient: Any = step.parameters[0].grad
        if ranks.rank == 1:
            gradient.to_local()[0, 0] = float("inf")
        scaler.unscale_(step.optimizer)
        scaler.step(step.optimizer)
        scaler.update()
        same = all(torch.equal(old, new.to_local()) for old, new in zip(before, parts, strict=True))
        return same and scaler.get_scale() == 4.0


def count_reductions(way: str, micro_batch_size: int) -> int:
    """How often the gradients of one batch, or of each of its matrices, are brought together."""
    count = 0
    scatter_name = "reduce_scatter_single" if hasattr(dist, "reduce_scatter_single") else "reduce_scatter_tensor"
    wrap, scatter, reduce = Overlapped.wrap, getattr(dist, scatter_name), dist.all_reduce

    def counted_scatter(*arguments: Any, **named: Any) -> Any:
        nonlocal count
        count += 1
        return scatter(*arguments, **named)

    def counted_reduce(tensor: torch.Tensor, *arguments: Any, **named: Any) -> Any:
        nonlocal count
        count += tensor.dim() >= 2
        return reduce(tensor, *arguments, **named)

    def counted_reduction(state, bucket):  # type: ignore[no-untyped-def]  # torch reads annotations, as types
        nonlocal count
        count += 1
        return allreduce_hook(dist.group.WORLD, bucket)

    def counting_wrap(self: Overlapped, loss: LossModule) -> Any:
        module: Any = wrap(self, loss)
        module.register_comm_hook(None, counted_reduction)
        return module

    with (
        mock.patch.object(Overlapped, "wrap", counting_wrap),
        mock.patch.object(dist, scatter_name, counted_scatter),
        mock.patch.object(dist, "all_reduce", counted_reduce),
    ):
        gradients(way, micro_batch_size)
    return count


def main(folder: Path) -> None:
    """All runs; see `test_distributed.py`."""
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    found: dict[str, Any] = {}
    spread.WHOLE_BYTES, whole_bytes = 0, spread.WHOLE_BYTES  # as if each model were too large to be gathered at once
    for kind in KINDS:
        steps = [start(folder / kind, parallel=kind, self_check=True).steps]
        steps.append(start(folder / f"{kind}-parts", parallel=kind, micro_batch_size=1).steps)
        steps.append(start(folder / f"{kind}-tied", TIED, parallel=kind, checkpoint_activations=True).steps)
        result = start(folder / f"{kind}-dropout", DROPOUT, parallel=kind)
        found[kind] = {"steps": steps, "best": [result.best_step, result.best_bits_per_byte]}
        found[kind]["weights"] = sum(float(p.detach().double().sum()) for p in result.model.parameters())
        found[kind]["interrupted"] = interrupted(folder / f"{kind}-stopped", model=DROPOUT, parallel=kind)
        start(folder / f"{kind}-stopped", DROPOUT, parallel=kind, resume=True)
        found[kind]["left"] = interrupted(folder / f"{kind}-left", parallel=kind)
        start(folder / f"{kind}-taken", parallel=kind, resume=True)  # begun by one process
        for name, (model, settings) in OPTIONS.items():
            start(folder / f"{kind}-{name}", model, parallel=kind, **settings, steps=4)
    start(folder / "ddp-overlapped", parallel="ddp", overlap_reduction=True)
    for way in WAYS:
        for size in (1, 2, 4):
            save_file(gradients(way, size), folder / f"gradients-{way}-{size}-{rank}.safetensors")
        found[f"{way} reductions"] = [count_reductions(way, size) for size in (1, 4)]
    spread.WHOLE_BYTES = whole_bytes
    if can_shard("cpu"):
        start(folder / "fsdp-whole", TIED, parallel="fsdp")
        found["fsdp"]["reductions of the whole"] = count_reductions("fsdp", 1)
    found["overflow"] = overflow_is_skipped() if can_shard("cpu") else None
    found["refused"] = None if can_shard("cpu") else error_of(lambda: start(folder / "no", parallel="fsdp"))
    found["again"] = error_of(lambda: start(folder / "ddp"))
    found["diverged"] = error_of(lambda: start(folder / "diverged", learning_rate=1e30, warmup=0.0))
    found["odd"] = error_of(lambda: start(folder / "odd", batch_size=7))
    found["seconds"] = start(folder / "seconds", steps=None, seconds=1.0, eval_every=None).steps
    found["epochs"] = start(folder / "epochs", data=TokenDataset.from_documents(TEXT[:3], CODEC)).steps
    found["callbacks"] = callbacks_that_fail(folder)
    found["sft"] = [
        finetune(folder, folder / "sft"),
        finetune(folder, folder / "sft"),
        *[finetune(folder, folder / f"sft-{kind}", "--set", f"parallel={kind}") for kind in KINDS[1:]],
    ]
    forecasts: list[Any] = []
    start(folder / "forecast", on_forecast=forecasts.append)
    found["forecasts"] = list(map(str, forecasts))
    (folder / f"rank-{rank}.json").write_text(json.dumps(found))
    dist.destroy_process_group()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
