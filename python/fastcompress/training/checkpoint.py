"""Checkpoints: one safetensors file each, tensors as tensors and everything else as JSON in its header.

FORMAT, version 2. Tensor names: ``model/<parameter>``; ``optimizer/<parameter>/<state>``; ``random/<device
type>`` (uint8, torch's generator states), and ``random/<rank>/<device type>`` for ranks after the first. Nothing else
depends on the number of ranks, so a run can resume under any number of them.
Header metadata: ``format``, ``version`` and ``state``, a JSON object (kind and configuration of the model, training
settings, fingerprints of codec and rows, progress of the run, loss scaling). A tied head is stored once, under the
embedding's name. ``best.safetensors`` holds the model's tensors only, ``last.safetensors`` everything that a resumed
run needs. Version 1 is read, too: it has no ``rows``, flat training settings, and other names for some parameters of
its only kind of model (``renamed_parameters`` of its class). Nothing is pickled, so loading a checkpoint runs no code
from it.

The metadata also hold ``sha256``, a checksum over every byte of the file (``checksum.py``), and the state identifies
the run and its codec.json (``run``), so damage and files of another run are detected. Checkpoints of older versions
have neither; they load with a warning.

A checkpoint is written all or nothing: to a temporary file beside the target, which is on disk before it is renamed.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from fastcompress._files import remedy_for, replacing
from fastcompress.codec import Codec
from fastcompress.errors import ConfigError, DataError, FormatError, MismatchError, OutputError
from fastcompress.models.allocation import memory_errors
from fastcompress.models.kinds import model_config_from_json
from fastcompress.models.protocol import LanguageModel, ModelConfig
from fastcompress.training import checksum
from fastcompress.training.config import TrainConfig
from fastcompress.training.device import choose_device
from fastcompress.training.distributed import ALONE, Ranks
from fastcompress.training.run_directory import RunDirectory

FORMAT = "fastcompress-checkpoint"
VERSION = 2
OLDER_VERSIONS = ("1",)
STATE_PARTS = ("model", "train", "codec", "progress")
MODEL, OPTIMIZER, RANDOM = "model/", "optimizer/", "random/"


@dataclass(frozen=True)
class Checkpoint:
    """The content of a checkpoint file, on the CPU."""

    tensors: dict[str, Tensor]
    state: dict[str, Any]
    version: str = str(VERSION)

    def __repr__(self) -> str:
        step = self.state.get("progress", {}).get("step")
        return f"<Checkpoint of step {step}: {len(self.tensors)} tensors>"


@dataclass(frozen=True)
class Run:
    """A trained model with its codec and settings; the figures are those at the checkpoint's step."""

    model: LanguageModel
    codec: Codec
    config: TrainConfig
    step: int
    flops: float
    seconds: float
    validation_bits_per_byte: float | None

    def __repr__(self) -> str:
        score = self.validation_bits_per_byte
        scored = f", {score:.4f} bits per byte on validation" if score is not None else ""
        model = f"{type(self.model).__name__} of {self.model.num_parameters():,} parameters"
        return (
            f"<Run at step {self.step:,}: {model}, codec {self.codec.name}, "
            f"{self.seconds:.0f} s, {self.flops:.3g} FLOPs{scored}>"
        )


def write_checkpoint(path: Path, tensors: dict[str, Tensor], state: dict[str, Any]) -> None:
    """Write a checkpoint, all or nothing. Raises OutputError if it cannot be written; an older file is then kept."""
    metadata = {
        "format": FORMAT,
        "version": str(VERSION),
        "state": json.dumps(state),
        checksum.FIELD: checksum.PLACEHOLDER,
    }
    whole = {name: tensor.detach().contiguous() for name, tensor in tensors.items()}
    try:
        with replacing(path) as temporary:
            _save(whole, temporary, metadata)
            with temporary.open("r+b") as file:
                checksum.fill_in(file, _head_bytes(temporary))
    except (OutputError, SafetensorError) as error:
        cause = error.__cause__ if isinstance(error.__cause__, OSError) else None
        reason = cause.strerror if cause is not None and cause.strerror else error
        remedy = remedy_for(cause) if cause is not None else "choose another run directory"
        raise OutputError(f"{path}: the checkpoint cannot be written ({reason}); {remedy}") from error


def _save(tensors: dict[str, Tensor], path: Path, metadata: dict[str, str]) -> None:
    """Write a safetensors file. Raises OSError, as Python itself does, where safetensors reports the system's error."""
    try:
        save_file(tensors, path, metadata)
    except SafetensorError as error:
        number = re.search(r"\(os error (\d+)\)", str(error))
        if number is None:
            raise
        raise OSError(int(number[1]), os.strerror(int(number[1]))) from error


def read_checkpoint(path: Path) -> Checkpoint:
    """Read and check a checkpoint. Raises DataError if it is missing, FormatError if it is not a valid one."""
    if not path.is_file():
        raise DataError(f"{path}: there is no such checkpoint; train first, or name another run directory")
    try:
        with safe_open(path, framework="pt", device="cpu") as file:
            metadata = file.metadata() or {}
            if metadata.get("format") != FORMAT:
                raise FormatError(f"{path}: not a checkpoint of fastcompress; name a directory that `train` wrote")
            checksum.verify(path, _head_bytes(path), metadata, ("format", "version", "state"))
            if metadata.get("version") not in (str(VERSION), *OLDER_VERSIONS):
                raise FormatError(
                    f"{path}: checkpoint version {metadata.get('version')}, this build reads {VERSION}; "
                    "use the release that wrote it, or train again"
                )
            state = json.loads(metadata["state"])
            if not all(isinstance(state.get(part), dict) for part in STATE_PARTS):
                raise FormatError(f"{path}: its state lacks one of {', '.join(STATE_PARTS)}; train again")
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            return Checkpoint(tensors, state, metadata["version"])
    except (SafetensorError, OSError, KeyError, AttributeError, json.JSONDecodeError) as error:
        raise FormatError(f"{path}: truncated or damaged ({error}); restore it, or train again") from error


def _head_bytes(path: Path) -> int:
    """Return the size of a safetensors file before its tensors: a length of 8 bytes, and that many bytes of JSON."""
    with path.open("rb") as file:
        return 8 + int.from_bytes(file.read(8), "little")


def model_tensors(model: nn.Module) -> dict[str, Tensor]:
    """Return every parameter once, by its name in a checkpoint."""
    return {MODEL + name: parameter for name, parameter in model.named_parameters()}


@torch.no_grad()
def load_model_tensors(model: nn.Module, checkpoint: Checkpoint, path: Path) -> None:
    """Copy the weights into ``model``. Raises FormatError if their names or shapes are not those of the model."""
    check_shapes(model, checkpoint, path)
    tensors = renamed(model, checkpoint)
    for name, parameter in model_tensors(model).items():
        parameter.copy_(_spread_like(parameter, tensors[name]))


def _spread_like(parameter: Tensor, whole: Tensor) -> Tensor:
    """Return a tensor distributed like the parameter, or unchanged if the parameter is not distributed."""
    mesh = getattr(parameter, "device_mesh", None)
    if mesh is None or not whole.dim():
        return whole
    from torch.distributed.tensor import distribute_tensor

    return distribute_tensor(whole.to(parameter.device), mesh, parameter.placements)  # type: ignore[attr-defined]


def renamed(model: nn.Module, checkpoint: Checkpoint) -> dict[str, Tensor]:
    """Return the checkpoint's tensors under the current names of ``model``'s parameters."""
    names: dict[str, str] = getattr(model, "renamed_parameters", {}) if checkpoint.version in OLDER_VERSIONS else {}
    prefixes = {part + old: part + new for part in (MODEL, OPTIMIZER) for old, new in names.items()}

    def today(name: str) -> str:
        old = next((prefix for prefix in prefixes if name.startswith(prefix)), "")
        return prefixes.get(old, "") + name[len(old) :]

    return {today(name): tensor for name, tensor in checkpoint.tensors.items()}


def check_shapes(model: nn.Module, checkpoint: Checkpoint, path: Path) -> None:
    """Raise FormatError if ``model`` or the checkpoint lacks a tensor of the other, or one differs in shape."""
    wanted = {(name, tuple(tensor.shape)) for name, tensor in model_tensors(model).items()}
    stored = {(name, tuple(t.shape)) for name, t in renamed(model, checkpoint).items() if name.startswith(MODEL)}
    if wanted != stored:
        odd = min(wanted ^ stored)[0]
        raise FormatError(f"{path}: tensor {odd} does not fit the model the file describes; it is damaged")


def optimizer_tensors(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """Return the optimizer's state by parameter name, so that the order of groups does not matter."""
    return {
        f"{OPTIMIZER}{name}/{key}": value
        for name, parameter in model.named_parameters()
        for key, value in optimizer.state.get(parameter, {}).items()
    }


def load_optimizer_tensors(
    model: nn.Module, optimizer: torch.optim.Optimizer, checkpoint: Checkpoint, path: Path
) -> None:
    """Restore what ``optimizer_tensors`` returned. Raises FormatError if a tensor is missing or fits no parameter."""
    named = dict(model.named_parameters())
    loaded: dict[Tensor, dict[str, Tensor]] = {}
    for name, tensor in renamed(model, checkpoint).items():
        if not name.startswith(OPTIMIZER):
            continue
        parameter_name, _, key = name[len(OPTIMIZER) :].rpartition("/")
        parameter = named.get(parameter_name)
        if parameter is None or (tensor.dim() and tensor.shape != parameter.shape):
            raise FormatError(f"{path}: tensor {name} does not fit the model the file describes; it is damaged")
        loaded.setdefault(parameter, {})[key] = _spread_like(parameter, tensor)
    if loaded and len(loaded) != len(named):
        raise FormatError(f"{path}: lacks optimizer state of some parameters; it is damaged")
    # Through load_state_dict, which puts each tensor on the device and in the type this optimizer wants.
    form = optimizer.state_dict()
    ids = [index for group in form["param_groups"] for index in group["params"]]
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    form["state"] = {index: loaded[p] for index, p in zip(ids, parameters, strict=True) if p in loaded}
    optimizer.load_state_dict(form)


def random_tensors(device: torch.device, ranks: Ranks = ALONE) -> dict[str, Tensor]:
    """Return the states of the generators that dropout on ``device`` draws from; the first rank gets those of all."""
    states = {"cpu": torch.get_rng_state()}
    if device.type == "cuda":
        states["cuda"] = torch.cuda.get_rng_state(device)
    elif device.type == "mps":
        states["mps"] = torch.mps.get_rng_state()
    gathered = {name: ranks.gather(state) for name, state in states.items()}
    return {_random_name(name, rank): state for name, all_of in gathered.items() for rank, state in enumerate(all_of)}


def _random_name(device_type: str, rank: int) -> str:
    return f"{RANDOM}{device_type}" if rank == 0 else f"{RANDOM}{rank}/{device_type}"


def load_random_tensors(device: torch.device, checkpoint: Checkpoint, ranks: Ranks = ALONE) -> None:
    """Restore what ``random_tensors`` returned. A generator that the checkpoint lacks keeps its state."""
    names = {device_type: _random_name(device_type, ranks.rank) for device_type in ("cpu", "cuda", "mps")}
    states = {kind: checkpoint.tensors[name] for kind, name in names.items() if name in checkpoint.tensors}
    if "cpu" in states:
        torch.set_rng_state(states["cpu"])
    if device.type == "cuda" and "cuda" in states:
        torch.cuda.set_rng_state(states["cuda"], device)
    elif device.type == "mps" and "mps" in states:
        torch.mps.set_rng_state(states["mps"])


def check_codec(checkpoint: Checkpoint, codec: Codec, path: Path) -> None:
    """Raise MismatchError if the checkpoint was trained with another codec."""
    stored = checkpoint.state["codec"]
    if stored["fingerprint"] != codec.fingerprint:
        raise MismatchError(
            f"{path}: was trained with codec {stored['name']} ({stored['fingerprint'][:8]}), not "
            f"{codec.name} ({codec.fingerprint[:8]}); use that codec, or another run directory"
        )


@memory_errors()
def load_run(run_directory: Path, *, which: Literal["best", "last"] = "best", device: str = "cpu") -> Run:
    """Load a run's model (in eval mode, on ``device``), codec and settings.

    Args:
        run_directory: The directory that ``train`` wrote.
        which: "best" by validation, or "last".
        device: "auto", or the name of a torch device.

    Raises:
        DataError: There is no such checkpoint or codec.
        FormatError: One of the files is truncated, foreign or of another version.
        MismatchError: The codec beside the checkpoint is not the one it was trained with.
    """
    path = Path(run_directory) / f"{which}.safetensors"
    directory = RunDirectory(Path(run_directory))
    checkpoint = read_checkpoint(path)
    codec = directory.load_codec()
    try:
        check_codec(checkpoint, codec, path)
        directory.check_belongs(checkpoint.state, path)
        config = TrainConfig.from_json(checkpoint.state["train"])
        model_config = model_config_from_json(checkpoint.state["model"])
        progress = checkpoint.state["progress"]
        step, flops, seconds = progress["step"], progress["flops"], progress["seconds"]
        score = progress["validation_bits_per_byte"]
    except (KeyError, TypeError, ConfigError) as error:
        raise FormatError(f"{path}: its settings are damaged ({error}); restore it, or train again") from error
    model = _model_of(model_config, checkpoint, path).to(choose_device(device)).eval()
    model.read_codec(codec)
    return Run(model, codec, config, step, flops, seconds, score)


def _model_of(config: ModelConfig, checkpoint: Checkpoint, path: Path) -> LanguageModel:
    """Make the model with the checkpoint's weights; allocate nothing if the configuration does not fit them."""
    stored = sum(t.numel() for name, t in checkpoint.tensors.items() if name.startswith(MODEL))
    if config.size().parameters > 4 * stored:  # not even its shapes are worth making
        raise FormatError(f"{path}: lacks tensors of the model that it describes; it is damaged")
    try:
        with torch.device("meta"):  # shapes without storage
            shapes_only = config.build()
    except RuntimeError as error:
        raise FormatError(f"{path}: describes an impossible model ({error}); it is damaged") from error
    check_shapes(shapes_only, checkpoint, path)
    with torch.random.fork_rng(devices=[]):  # weights are drawn, then overwritten: the caller sees no draw
        model = config.build()
    load_model_tensors(model, checkpoint, path)
    return model
