"""Checkpoint files: everything comes back, and what is not a whole checkpoint of ours is refused."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from fastcompress.codec import ByteCodec, CharCodec, save_codec
from fastcompress.data.shards import TokenDataset
from fastcompress.errors import DataError, FormatError, MismatchError, OutputError
from fastcompress.models.gpt import GPT, GPTConfig
from fastcompress.training import checkpoint as checkpoints
from fastcompress.training.checkpoint import load_run, read_checkpoint, write_checkpoint
from fastcompress.training.config import TrainConfig
from fastcompress.training.optimizer import make_optimizer
from fastcompress.training.train import train

MODEL = GPTConfig.workshop(vocab_size=257, num_layers=1, num_heads=2, width=16, context_length=8)
STATE = {"model": {}, "train": {}, "codec": {}, "progress": {}}
TEXT = [b"some text to train on, and a little more of it"]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run; tests copy what they damage."""
    directory = tmp_path_factory.mktemp("run")
    config = TrainConfig(steps=3, batch_size=2, device="cpu", self_check=False)
    data = TokenDataset.from_documents(TEXT, ByteCodec())
    train(MODEL, ByteCodec(), data, TEXT, config, directory, progress=False)
    return directory


@pytest.fixture
def damaged(trained: Path, tmp_path: Path) -> Path:
    for path in trained.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    return tmp_path


def test_tensors_and_state_come_back(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    tensors = {"model/x": torch.randn(3, 4), "random/cpu": torch.get_rng_state(), "scalar": torch.tensor(2.5)}
    state = {**STATE, "progress": {"step": 3, "best": None, "seconds": 0.1 + 0.2, "name": "día"}}
    write_checkpoint(path, tensors, state)
    back = read_checkpoint(path)
    assert back.state == state
    assert back.tensors.keys() == tensors.keys()
    for name, tensor in tensors.items():
        assert torch.equal(back.tensors[name], tensor)
        assert back.tensors[name].dtype == tensor.dtype
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.safetensors"]


def test_views_and_transposed_tensors_are_stored_whole(tmp_path: Path) -> None:
    base = torch.arange(12.0).view(3, 4)
    write_checkpoint(tmp_path / "a", {"t": base.t(), "row": base[1]}, STATE)
    back = read_checkpoint(tmp_path / "a").tensors
    assert torch.equal(back["t"], base.t())
    assert torch.equal(back["row"], base[1])


def test_a_tied_head_is_stored_once(trained: Path) -> None:
    names = load_file(trained / "best.safetensors").keys()
    assert "model/embedding.weight" in names
    assert "model/head.weight" not in names
    model = load_run(trained).model
    assert model.head.weight is model.embedding.weight


def test_best_holds_the_model_and_last_all_that_resuming_needs(trained: Path) -> None:
    kinds = {
        which: {name.split("/")[0] for name in load_file(trained / f"{which}.safetensors")}
        for which in ("best", "last")
    }
    assert kinds == {"best": {"model"}, "last": {"model", "optimizer", "random"}}


def test_a_loaded_run_is_ready_to_use(trained: Path) -> None:
    before = torch.get_rng_state()
    run = load_run(trained, which="last")
    assert torch.equal(torch.get_rng_state(), before)
    assert not run.model.training
    assert run.model.config == MODEL
    assert run.codec.fingerprint == ByteCodec().fingerprint
    assert (run.step, run.config.batch_size) == (3, 2)
    assert run.flops > 0
    assert run.validation_bits_per_byte is not None
    stored = load_file(trained / "last.safetensors")
    for name, parameter in run.model.named_parameters():
        assert torch.equal(parameter, stored[f"model/{name}"])


def test_optimizer_state_comes_back_by_name(trained: Path) -> None:
    model = GPT(MODEL)
    optimizer = make_optimizer(model, TrainConfig(steps=1))
    saved = read_checkpoint(trained / "last.safetensors")
    checkpoints.load_optimizer_tensors(model, optimizer, saved, trained)
    back = checkpoints.optimizer_tensors(model, optimizer)
    stored = {name: t for name, t in saved.tensors.items() if name.startswith("optimizer/")}
    assert len(stored) == 3 * len(list(model.parameters()))
    assert back.keys() == stored.keys()
    for name, tensor in stored.items():
        assert torch.equal(back[name], tensor), name


def test_files_are_as_readable_as_the_umask_says(tmp_path: Path) -> None:
    (tmp_path / "plain").touch()
    write_checkpoint(tmp_path / "a", {"x": torch.zeros(1)}, STATE)
    assert (tmp_path / "a").stat().st_mode == (tmp_path / "plain").stat().st_mode


# --- What is refused -------------------------------------------------------------------------------------


@pytest.mark.parametrize("part", [0.0, 0.001, 0.1, 0.5, 0.99])
def test_a_truncated_file_is_refused(damaged: Path, part: float) -> None:
    path = damaged / "best.safetensors"
    data = path.read_bytes()
    path.write_bytes(data[: int(part * len(data))])
    with pytest.raises(FormatError, match=r"best\.safetensors: truncated or damaged .*; restore it"):
        load_run(damaged)


def test_one_missing_byte_is_noticed(damaged: Path) -> None:
    path = damaged / "best.safetensors"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(FormatError):
        load_run(damaged)


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 a zip", b"\xff" * 100, b"\x02\0\0\0\0\0\0\0{}", b"{}"])
def test_a_foreign_file_is_refused(damaged: Path, content: bytes) -> None:
    (damaged / "best.safetensors").write_bytes(content)
    with pytest.raises(FormatError, match=r"best\.safetensors"):
        load_run(damaged)


def test_somebody_elses_safetensors_are_refused(damaged: Path) -> None:
    save_file({"x": torch.zeros(1)}, damaged / "best.safetensors")
    with pytest.raises(FormatError, match="not a checkpoint of fastcompress"):
        load_run(damaged)


def rewrite(path: Path, change: Callable[[dict[str, torch.Tensor], dict[str, str]], None]) -> None:
    """Change a checkpoint's tensors and metadata in place."""
    tensors = load_file(path)
    metadata = {
        "format": checkpoints.FORMAT,
        "version": str(checkpoints.VERSION),
        "state": json.dumps(read_checkpoint(path).state),
    }
    change(tensors, metadata)
    save_file(tensors, path, metadata)


def test_another_version_is_refused(damaged: Path) -> None:
    rewrite(damaged / "best.safetensors", lambda _, metadata: metadata.update(version="3"))
    with pytest.raises(FormatError, match="checkpoint version 3, this build reads 2"):
        load_run(damaged)


@pytest.mark.parametrize("state", ["", "{", "[]", "3", "null", '{"model": {}}'])
def test_damaged_state_is_refused(damaged: Path, state: str) -> None:
    rewrite(damaged / "best.safetensors", lambda _, metadata: metadata.update(state=state))
    with pytest.raises(FormatError, match=r"best\.safetensors"):
        load_run(damaged)


@pytest.mark.parametrize(
    ("part", "name", "value"),
    [
        ("model", "num_layers", 10**9),
        ("model", "vocab_size", 10**15),
        ("model", "width", 3 * 10**5),
        ("model", "width", 2 * 10**9),
        ("model", "width", "wide"),
        ("model", "depth", 3),
        ("train", "seed", "none"),
        ("codec", "fingerprint", None),
        ("progress", "step", None),
    ],
)
def test_settings_that_do_not_fit_cost_no_memory(damaged: Path, part: str, name: str, value: object) -> None:
    state = read_checkpoint(damaged / "best.safetensors").state
    state[part][name] = value
    if value is None:
        del state[part][name]
    rewrite(damaged / "best.safetensors", lambda _, metadata: metadata.update(state=json.dumps(state)))
    with pytest.raises(FormatError, match=r"best\.safetensors: .*damaged"):
        load_run(damaged)


@pytest.mark.parametrize(
    "change",
    [
        lambda tensors, _: tensors.pop("model/final_norm.weight"),
        lambda tensors, _: tensors.update({"model/final_norm.weight": torch.zeros(17)}),
        lambda tensors, _: tensors.update({"model/final_norm.extra": torch.zeros(16)}),
    ],
)
def test_tensors_that_do_not_fit_are_named(damaged: Path, change: Callable[..., None]) -> None:
    rewrite(damaged / "best.safetensors", change)
    with pytest.raises(FormatError, match=r"tensor model/final_norm\.\w+ does not fit"):
        load_run(damaged)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda tensors, _: tensors.update({"optimizer/ghost/exp_avg": torch.zeros(2)}),
            "optimizer/ghost/exp_avg",
        ),
        (
            lambda tensors, _: tensors.update({"optimizer/final_norm.weight/exp_avg": torch.zeros(2)}),
            "optimizer/final_norm.weight/exp_avg",
        ),
        (
            lambda tensors, _: [tensors.pop(n) for n in list(tensors) if n.startswith("optimizer/final_norm")],
            "lacks optimizer state",
        ),
    ],
)
def test_optimizer_state_that_does_not_fit_is_named(damaged: Path, change: Callable[..., None], message: str) -> None:
    path = damaged / "last.safetensors"
    rewrite(path, change)
    model = GPT(MODEL)
    with pytest.raises(FormatError, match=message):
        checkpoints.load_optimizer_tensors(
            model, make_optimizer(model, TrainConfig(steps=1)), read_checkpoint(path), path
        )


def test_another_codec_beside_the_checkpoint_is_refused(damaged: Path) -> None:
    save_codec(CharCodec(["a", "b"]), damaged / "codec.json")
    with pytest.raises(MismatchError, match=r"was trained with codec byte \(\w{8}\), not char-2"):
        load_run(damaged)


def test_a_missing_checkpoint_is_said(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"best\.safetensors: there is no such checkpoint; train first"):
        load_run(tmp_path)


def test_a_failed_write_keeps_the_old_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.safetensors"
    write_checkpoint(path, {"x": torch.ones(3)}, STATE)

    def fails(_: object, file: os.PathLike[str], __: object) -> None:
        Path(file).write_bytes(b"half of")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(checkpoints, "save_file", fails)
    with pytest.raises(OutputError, match=r"a\.safetensors: the checkpoint cannot be written .*No space left"):
        write_checkpoint(path, {"x": torch.zeros(3)}, STATE)
    assert torch.equal(read_checkpoint(path).tensors["x"], torch.ones(3))
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.safetensors"]


def test_a_write_cut_short_never_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything is on disk under another name before the checkpoint is replaced."""
    path = tmp_path / "a.safetensors"
    write_checkpoint(path, {"x": torch.ones(3)}, STATE)

    def fails(source: os.PathLike[str], target: os.PathLike[str]) -> None:
        assert torch.equal(load_file(source)["x"], torch.zeros(3))
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("os.replace", fails)
    with pytest.raises(OutputError, match="Input/output error"):
        write_checkpoint(path, {"x": torch.zeros(3)}, STATE)
    assert torch.equal(read_checkpoint(path).tensors["x"], torch.ones(3))


def test_a_place_that_is_no_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match="cannot be written"):
        write_checkpoint(tmp_path / "file" / "a.safetensors", {"x": torch.zeros(3)}, STATE)
