"""Settings of training: sections, kinds, names with and without their section, TOML, assignments."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from fastcompress.cli import main
from fastcompress.cli.train_options import MODEL_OPTIONS, _field_of, _help
from fastcompress.errors import ConfigError, DataError
from fastcompress.training import AdamWConfig, MachineConfig, MuonConfig, ScheduleConfig, TrainConfig
from fastcompress.training.config import SECTIONS, setting_names
from fastcompress.training.settings_file import lay_over, parse_setting, read_toml

ALIKE: list[dict[str, Any]] = [
    {"learning_rate": 0.5, "schedule": "cosine", "num_threads": 2},
    {"optimizer.learning_rate": 0.5, "schedule.kind": "cosine", "machine.num_threads": 2},
    {"optimizer": {"learning_rate": 0.5}, "schedule": {"kind": "cosine"}, "machine": {"num_threads": 2}},
    {
        "optimizer": AdamWConfig(learning_rate=0.5),
        "schedule": ScheduleConfig(kind="cosine"),
        "machine": MachineConfig(num_threads=2),
    },
    {"optimizer": AdamWConfig(), "learning_rate": 0.5, "schedule": ScheduleConfig(), "schedule.kind": "cosine",
     "machine": MachineConfig(), "num_threads": 2},
]  # fmt: skip


@pytest.mark.parametrize("settings", ALIKE)
def test_names_with_and_without_their_section_mean_the_same(settings: dict[str, Any]) -> None:
    config = TrainConfig(steps=3, **settings)
    assert config == TrainConfig(steps=3, **ALIKE[0])
    assert (config.optimizer.learning_rate, config.schedule.kind, config.machine.num_threads) == (0.5, "cosine", 2)
    assert TrainConfig.from_json(config.to_json()) == config
    assert hash(config) == hash(TrainConfig(steps=3, **ALIKE[0]))


def test_settings_are_laid_over_others() -> None:
    config = TrainConfig(steps=3, learning_rate=0.5, weight_decay=0.0)
    other = config.override({"optimizer": {"learning_rate": 0.25}, "eval_every": 7})
    assert (other.optimizer.learning_rate, other.optimizer.weight_decay, other.evaluation.eval_every) == (0.25, 0.0, 7)
    assert config.optimizer.learning_rate == 0.5
    assert dataclasses.replace(config, learning_rate=0.25).optimizer == other.optimizer
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.steps = 4  # type: ignore[misc]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"learnin_rate": 1},
            r"training setting 'learnin_rate' \(did you mean 'learning_rate'\?\); known: attention",
        ),
        (
            {"optimizer": {"learning_rat": 1}},
            r"optimizer setting 'learning_rat' \(did you mean 'learning_rate'",
        ),
        ({"optimizer.momentum": 1}, "unknown optimizer setting 'momentum'"),
        ({"optimizer": "adam"}, "optimizer must be one of adamw, muon, not 'adam'"),
        ({"optimizer": {"kind": "sgd"}}, "optimizer must be one of adamw, muon, not 'sgd'"),
        ({"tokens": 5}, "exactly one horizon of steps, tokens, flops, seconds; got steps and tokens"),
        ({"attention": "flash"}, "attention must be one of sdpa, plain"),
        ({"optimizer": "muon", "momentum": 1.0}, r"momentum must be in \[0, 1\)"),
        ({"optimizer": "muon", "embedding_rate": None}, "embedding_rate must be more than 0"),
        ({"head_rate": 0.0}, "head_rate must be more than 0"),
        ({"cautious_decay": 1}, "cautious_decay must be true or false"),
        ({"schedule": {"kind": "linear"}}, "schedule must be one of trapezoid, cosine, constant"),
        ({"warmup_steps": 0}, "warmup_steps must be a whole number of at least 1"),
        ({"logits_at_once": 0}, "logits_at_once must be a whole number of at least 1"),
    ],
)
def test_what_is_unknown_or_cannot_work_is_named(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        TrainConfig(steps=1, **settings)


def test_kinds_of_optimizers_have_defaults_of_their_own() -> None:
    config = TrainConfig(steps=3, optimizer="muon", head_rate=0.5)
    assert config.optimizer == MuonConfig(head_rate=0.5)
    assert TrainConfig.from_json(config.to_json()) == config
    assert config.override({"optimizer": "adamw"}).optimizer == AdamWConfig()
    assert config.override({"momentum": 0.5}).optimizer == MuonConfig(head_rate=0.5, momentum=0.5)


def test_help_has_every_kind_and_the_defaults_of_each() -> None:
    text = " ".join(CliRunner().invoke(main, ["train", "--help"], terminal_width=200).output.split())
    assert "--optimizer [adamw|muon]" in text
    assert "[default: 0.001, 0.02 for muon]" in text
    assert "[default: 1.0, none for muon]" in text
    assert "Peak learning rate of heads. [default: 0.004 for muon]" in text
    assert "Decay of the running mean of their squares. [default: 0.95]" in text


def test_the_old_name_of_the_trapezoid_is_read() -> None:
    config = TrainConfig(steps=3, schedule="warmup_stable_decay", warmup=0.5)
    assert config.schedule == ScheduleConfig(kind="trapezoid", warmup=0.5)


def test_a_settings_own_name_is_unique_and_explained() -> None:
    names = setting_names()
    assert len(set(names.values())) == len(names)
    num_fields = len(dataclasses.fields(TrainConfig)) - len(SECTIONS)
    for kinds in SECTIONS.values():  # kinds of a section share names
        num_fields += len({field.name for kind in kinds.values() for field in dataclasses.fields(kind)})
    assert len(names) == num_fields
    assert not set(names) & (set(MODEL_OPTIONS) | {"corpus", "codec", "shards", "resume", "config", "set", "json"})
    for name in names:
        owner, field = _field_of(name)
        assert _help(owner, field.name).endswith("."), name


@pytest.mark.parametrize(
    ("text", "value"),
    [("a=1", 1), ("a=1e-3", 0.001), ("a=true", True), ("a=none", None), ("a=cosine", "cosine"), ('a="1"', "1"),
     ("a=x=y", "x=y"), ("a=", "")],
)  # fmt: skip
def test_assignments(text: str, value: object) -> None:
    assert parse_setting(text) == ("a", value)


def test_assignments_that_are_none_are_refused() -> None:
    for text in ("a", "=1", ""):
        with pytest.raises(ConfigError, match="is not a setting; write NAME=VALUE"):
            parse_setting(text)
    with pytest.raises(ConfigError, match="steps is 3; it must be a section to hold x"):
        lay_over({"steps": 3}, "steps.x", 1)


def test_a_python_that_cannot_read_toml_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"need Python 3\.11, or tomli; give them as options"):
        read_toml(tmp_path / "run.toml")


def test_toml_files(tmp_path: Path) -> None:
    path = tmp_path / "run.toml"
    path.write_text('steps = 3\n[optimizer]\nlearning_rate = 0.5\n[schedule]\nkind = "cosine"\n')
    if sys.version_info < (3, 11):
        pytest.importorskip("tomli")
    assert TrainConfig.from_json(read_toml(path)) == TrainConfig(steps=3, learning_rate=0.5, schedule="cosine")
    path.write_text("steps = ")
    with pytest.raises(ConfigError, match=r"run\.toml: is not TOML"):
        read_toml(path)
    with pytest.raises(DataError, match=r"none\.toml: cannot be read"):
        read_toml(tmp_path / "none.toml")
