"""TensorBoard and Weights & Biases, with stand-ins for their modules: what they are told, and what goes wrong there."""

from __future__ import annotations

import json
import sys
import types
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from fastcompress.cli import main
from fastcompress.errors import ConfigError
from fastcompress.training.trackers import figures_of, tracked

TEXT = "The quick brown fox jumps over the lazy dog. " * 90


class Writer:
    """The part of SummaryWriter that is used."""

    made: list[Writer] = []  # noqa: RUF012 (of the one test that runs)

    def __init__(self, log_dir: str, purge_step: int) -> None:
        self.log_dir, self.purge_step, self.closed = log_dir, purge_step, False
        self.scalars: list[tuple[str, float, int]] = []
        Writer.made.append(self)

    def add_scalar(self, name: str, value: float, step: int) -> None:
        assert not self.closed
        self.scalars.append((name, value, step))

    def close(self) -> None:
        self.closed = True


class Online:
    """The part of wandb that is used; it fails from a step on."""

    def __init__(self, fails_at: int | None = None) -> None:
        self.fails_at, self.finished = fails_at, False
        self.settings: dict[str, Any] = {}
        self.lines: list[tuple[dict[str, float], int]] = []

    def init(self, **settings: Any) -> Online:
        self.settings = settings
        return self

    def log(self, figures: dict[str, float], step: int) -> None:
        if step == self.fails_at:
            raise OSError("no network")
        self.lines.append((figures, step))

    def finish(self) -> None:
        self.finished = True


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Online:
    """Both packages, as far as the run can tell."""
    board, online = types.ModuleType("torch.utils.tensorboard"), Online()
    board.SummaryWriter = Writer  # type: ignore[attr-defined]
    monkeypatch.setattr(Writer, "made", [])
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", board)
    monkeypatch.setitem(sys.modules, "wandb", online)  # type: ignore[arg-type]
    return online


def train(folder: Path, *options: str) -> Any:
    (folder / "fox.txt").write_text(TEXT)
    shape = ["--layers", "1", "--heads", "1", "--width", "8", "--context", "16", "--batch-size", "2"]
    shape += ["--eval-bytes", "100", "--log-every", "1", "--device", "cpu"]
    command = ["train", "--corpus", str(folder / "fox.txt"), "--run-dir", str(folder / "run"), "--steps", "3"]
    return CliRunner().invoke(main, [*command, *shape, *options])


def records(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "run" / "metrics.jsonl").read_text().splitlines()]


def test_both_get_every_figure_of_the_metrics(installed: Online, tmp_path: Path) -> None:
    assert train(tmp_path, "--track", "tensorboard", "--track", "wandb").exit_code == 0
    wanted = [(figures_of(record), record["step"]) for record in records(tmp_path)]
    assert len(wanted) >= 5
    assert {"train/loss", "train/learning_rate", "eval/validation_bits_per_byte"} <= {n for f, _ in wanted for n in f}
    assert installed.lines == wanted
    assert installed.finished
    config = json.loads((tmp_path / "run" / "config.json").read_bytes())
    assert installed.settings["id"] == config["run"]
    assert installed.settings["config"]["train"]["steps"] == 3
    (writer,) = Writer.made
    assert (writer.log_dir, writer.purge_step, writer.closed) == (str(tmp_path / "run" / "tensorboard"), 0, True)
    assert writer.scalars == [(name, value, step) for figures, step in wanted for name, value in figures.items()]


def test_none_is_used_unless_it_is_asked_for(installed: Online, tmp_path: Path) -> None:
    assert train(tmp_path).exit_code == 0
    assert not installed.settings
    assert not Writer.made


def test_a_tracker_that_fails_is_left_out_and_the_run_goes_on(installed: Online, tmp_path: Path) -> None:
    installed.fails_at = 2
    with pytest.warns(UserWarning, match="wandb failed and is left out from here on: no network"):
        assert train(tmp_path, "--track", "wandb", "--track", "tensorboard").exit_code == 0
    assert records(tmp_path)[-1]["step"] == 3
    assert max(step for _, step in installed.lines) == 1
    assert max(step for _, _, step in Writer.made[0].scalars) == 3


def test_one_that_is_not_installed_is_named_before_the_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "wandb", None)
    result = train(tmp_path, "--track", "wandb")
    assert result.exit_code == 1
    assert "wandb cannot be used" in result.stderr
    assert "pip install wandb" in result.stderr
    assert not (tmp_path / "run").exists()
    with pytest.raises(ConfigError, match="there is no tracker 'paper'"), tracked(["paper"], tmp_path):
        pass
