"""The search: which points it visits, what a stop costs, its table, its files and its command."""

from __future__ import annotations

import importlib
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from fastcompress.cli import main
from fastcompress.codec import ByteCodec
from fastcompress.data.shards import write_shards
from fastcompress.errors import ConfigError, FormatError, OutputError
from fastcompress.models import make_model_config
from fastcompress.study import Search
from fastcompress.study import trials as trials_module
from fastcompress.study.tune import Point, tune
from fastcompress.study.tune_report import toml_of
from fastcompress.training import AdamWConfig, TrainConfig
from fastcompress.training.settings_file import read_toml

tune_module = importlib.import_module("fastcompress.study.tune")

TEXT = [f"On day {i} came {i * i % 37} ships with maps. ".encode() * 2 for i in range(20)]
MODEL: dict[str, Any] = {"num_layers": 1, "num_heads": 2, "width": 8, "context_length": 16}
TRAINING: dict[str, Any] = {"tokens": 1024, "batch_size": 4, "device": "cpu", "num_evals": 1, "log_every": 1,
                            "eval_bytes": 200, "self_check": False, "learning_rate": 4e-3}  # fmt: skip


@pytest.fixture
def tokens(tmp_path: Path) -> Path:
    write_shards(tmp_path / "tokens", "train", TEXT, ByteCodec())
    return tmp_path / "tokens"


def search(**settings: Any) -> Search:
    defaults: dict[str, Any] = {
        "training": TrainConfig(**TRAINING), "model": MODEL, "batch_sizes": [4, 8], "learning_rates": [4e-3, 1e-2],
    }  # fmt: skip
    return Search(**{**defaults, **settings})


def run(tokens: Path, output: Path, **settings: Any) -> dict[str, Any]:
    return tune(search(**settings), tokens, TEXT[:6], output, progress=False, isolate=False)


# --- Which points it visits ------------------------------------------------------------------------------


def visited(
    monkeypatch: pytest.MonkeyPatch,
    folder: Path,
    tokens: Path,
    landscape: Callable[[Any], float | None],
    **settings: Any,
) -> tuple[dict[str, Any], list[tuple[int, float, int]]]:
    """A search over a landscape instead of trainings: (batch size, rate, width) -> bits per byte."""
    seen = []

    def make_trial(trial: Any, **_: Any) -> dict[str, Any]:
        rate = trial.training.optimizer.learning_rate / math.sqrt(trial.training.batch_size / 4)
        seen.append((trial.training.batch_size, round(rate, 6), trial.model["width"]))
        bits = landscape(seen[-1])
        failed = "too large" if bits is None else None
        result: dict[str, Any] = trials_module._result(trial, bits_per_byte=bits, error=failed, flops=7, seconds=0.5)
        return result

    monkeypatch.setattr(tune_module, "make_trial", make_trial)
    return run(tokens, folder, **settings), seen


GRID: dict[str, Any] = {
    "batch_sizes": [1, 2, 4, 8, 16], "learning_rates": [1e-3, 2e-3, 4e-3, 8e-3],
    "sizes": [{"width": 8}, {"width": 16}, {"width": 32}],
}  # fmt: skip


def bowl(point: tuple[int, float, int]) -> float:
    """Lowest at batch 1, rate 2e-3 and width 32, the axes not independent."""
    batch, rate, width = (math.log2(value) for value in point)
    return 2 + batch**2 + (rate - math.log2(2e-3) + 0.2 * batch) ** 2 + 0.3 * (width - 5) ** 2


def test_a_walk_goes_to_the_lowest_point_in_few_trials(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, tokens: Path
) -> None:
    report, seen = visited(monkeypatch, tmp_path / "out", tokens, bowl, **GRID)
    assert seen[0] == (4, 4e-3, 16)
    assert min(seen, key=bowl) == (1, 2e-3, 32)
    assert report["best"] == report["trials"][seen.index((1, 2e-3, 32))]["name"]
    assert {(2, 2e-3, 32), (1, 1e-3, 32), (1, 4e-3, 32), (1, 2e-3, 16)} <= set(seen)  # its neighbours
    assert len(seen) == len(set(seen)) <= 16  # of 60
    assert report["at_the_end_of"] == ["size", "batch_size"]
    assert report["is_complete"]
    assert report["cost"] == {"trials": len(seen), "flops": 7 * len(seen), "seconds": 0.5 * len(seen)}


def test_a_grid_visits_every_point(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, tokens: Path) -> None:
    report, seen = visited(monkeypatch, tmp_path / "out", tokens, bowl, **GRID, strategy="grid", max_trials=60)
    assert len(seen) == len(set(seen)) == 60
    assert min(seen, key=bowl) == (1, 2e-3, 32)
    assert report["is_complete"]


def test_a_trial_that_fails_is_a_row_and_no_way_on(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, tokens: Path
) -> None:
    report, seen = visited(
        monkeypatch, tmp_path / "out", tokens, lambda point: None if point[2] == 32 else bowl(point), **GRID
    )
    assert min((point for point in seen if point[2] < 32), key=bowl) == (1, 2e-3, 16)
    assert report["best"] == report["trials"][seen.index((1, 2e-3, 16))]["name"]
    assert "trial 2: too large" in (tmp_path / "out" / "tune.txt").read_text()
    with pytest.raises(ConfigError, match="no trial could be made; the first one: too large"):
        visited(monkeypatch, tmp_path / "none", tokens, lambda point: None, **GRID)


def test_it_ends_after_the_most_trials(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, tokens: Path) -> None:
    report, seen = visited(monkeypatch, tmp_path / "out", tokens, bowl, **GRID, max_trials=4)
    assert len(seen) == len(report["trials"]) == 4
    assert not report["is_complete"]
    assert "the search is not complete" in (tmp_path / "out" / "tune.txt").read_text()


def test_default_values_lie_around_the_settings() -> None:
    some = Search(training=TrainConfig(tokens=10, batch_size=2, learning_rate=0.5))
    assert some.axes == ([{}], [1, 2, 4, 8], [0.125, 0.25, 0.5, 1.0, 2.0])
    assert some.start == (0, 1, 2)
    point: Point = (0, 3, 1)
    _, training = some.settings(point)
    assert (training.batch_size, training.optimizer.learning_rate) == (8, pytest.approx(0.25 * 2))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"training": TrainConfig(steps=3)}, "steps is 3; a search needs a budget of tokens, flops or seconds"),
        ({"strategy": "random"}, "strategy must be one of walk, grid"),
        ({"max_trials": 0}, "max_trials must be a whole number"),
        ({"batch_sizes": [4, 4]}, "batch_sizes has a value twice"),
    ],
)
def test_a_search_that_cannot_be_is_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        search(**settings)


# --- Real trials -----------------------------------------------------------------------------------------


def without_time(report: dict[str, Any]) -> dict[str, Any]:
    trials = [{name: value for name, value in trial.items() if name != "seconds"} for trial in report["trials"]]
    cost = {name: value for name, value in report["cost"].items() if name != "seconds"}
    return {**report, "trials": trials, "cost": cost}


def test_a_stopped_search_goes_on_to_the_same_report(
    tmp_path: Path, tokens: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = run(tokens, tmp_path / "whole")
    real_train, new_steps = trials_module.train, []

    def counted(*arguments: Any, **options: Any) -> Any:
        def stop(record: dict[str, Any]) -> None:
            if len(new_steps) == 1 and not options["resume"] and record["event"] == "train" and record["step"] == 5:
                raise KeyboardInterrupt

        result = real_train(*arguments, **options, on_metrics=stop)
        new_steps.append(result.new_steps)
        return result

    monkeypatch.setattr(trials_module, "train", counted)
    with pytest.raises(KeyboardInterrupt):
        run(tokens, tmp_path / "parts")
    so_far = json.loads((tmp_path / "parts" / "tune.json").read_text())
    assert (len(so_far["trials"]), so_far["is_complete"], new_steps) == (1, False, [16])
    again = run(tokens, tmp_path / "parts")
    assert without_time(again) == without_time(whole)
    assert new_steps[1] == again["trials"][1]["steps"] - 5  # the trial that was stopped went on
    assert len(new_steps) == len(again["trials"])  # none was made twice
    monkeypatch.setattr(trials_module, "train", lambda *_, **__: pytest.fail("a trial was trained again"))
    assert run(tokens, tmp_path / "parts") == again
    for trial in again["trials"]:
        assert trial["tokens"] <= 1024 < trial["tokens"] + trial["batch_size"] * 16
        assert trial["passes"] == pytest.approx(trial["tokens"] / sum(len(text) + 1 for text in TEXT))


def test_the_table_and_the_best_settings(tmp_path: Path, tokens: Path) -> None:
    report = run(tokens, tmp_path / "out", strategy="grid", learning_rates=[4e-3])
    assert json.loads((tmp_path / "out" / "tune.json").read_text()) == report
    best = min(report["trials"], key=lambda trial: trial["bits_per_byte"])
    lines = (tmp_path / "out" / "tune.txt").read_text().splitlines()
    assert lines[0].split() == [
        "trial",
        "batch",
        "rate",
        "model",
        "parameters",
        "bits/byte",
        "steps",
        "passes",
        "FLOPs",
        "seconds",
    ]
    marked = [line.split() for line in lines if line.startswith("*")]
    assert [words[2] for words in marked] == [str(best["batch_size"])]
    assert marked[0][7] == f"{best['bits_per_byte']:.4f}"
    assert lines[3].startswith(f"2 trials of 1,024 tokens each: {report['cost']['flops']:.3g} FLOPs")
    settings = read_toml(tmp_path / "out" / "best.toml")
    model = settings.pop("model")
    assert make_model_config(model, ByteCodec()) == make_model_config(MODEL, ByteCodec())
    expected = search().settings((0, [4, 8].index(best["batch_size"]), 0))[1]
    stored = TrainConfig.from_json({**settings, "device": "cpu", "log_every": 1, "self_check": False})
    assert stored == expected


def test_settings_that_toml_cannot_say_are_named() -> None:
    text = toml_of({}, TrainConfig(tokens=5, optimizer=AdamWConfig(clip_norm=None)))
    assert "# pass --set clip_norm=none, which TOML cannot say" in text
    assert "head_rate" not in text


def test_a_diverged_trial_is_kept_with_its_cost(tmp_path: Path, tokens: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options: dict[str, Any] = {"learning_rates": [4e-3, 1e30], "batch_sizes": [4]}
    training = TrainConfig(**{**TRAINING, "clip_norm": None, "warmup": 0.0})
    report = run(tokens, tmp_path / "out", training=training, **options)
    good, bad = report["trials"]
    assert good["bits_per_byte"] < 8.5
    assert good["error"] is None
    assert bad["bits_per_byte"] is None
    assert "no longer finite" in bad["error"]
    monkeypatch.setattr(trials_module, "train", lambda *_, **__: pytest.fail("it was trained again"))
    assert run(tokens, tmp_path / "out", training=training, **options) == report


def test_a_folder_of_another_budget_text_or_damage_is_refused(tmp_path: Path, tokens: Path) -> None:
    one: dict[str, Any] = {"batch_sizes": [4], "learning_rates": [4e-3]}
    report = run(tokens, tmp_path / "out", **one)
    with pytest.raises(OutputError, match=r"budget\.tokens was 1024, is now 2048"):
        run(tokens, tmp_path / "out", training=TrainConfig(**{**TRAINING, "tokens": 2048}), **one)
    with pytest.raises(OutputError, match=r"validation\.bytes was 200"):
        tune(search(**one), tokens, [b"other"], tmp_path / "out", progress=False, isolate=False)
    path = tmp_path / "out" / "trials" / report["best"] / "result.json"
    path.write_text(path.read_text().replace('"batch_size": 4', '"batch_size": 5'))
    with pytest.raises(FormatError, match="is not this trial's result; delete it"):
        run(tokens, tmp_path / "out", **one)


@pytest.mark.slow
def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a trial in a process of its own, and the settings of the best one trained again."""
    monkeypatch.chdir(tmp_path)
    Path("text.txt").write_bytes(b"".join(TEXT) * 3)

    def fastcompress(*words: str, code: int = 0) -> str:
        result = CliRunner().invoke(main, list(words))
        assert result.exit_code == code, result.output
        return result.output

    common = ["--corpus", "text.txt", "--layers", "1", "--heads", "2", "--context", "16", "--device", "cpu"]
    words = ["tune", "-o", "out", *common, "--tokens", "700", "--batch-size", "4", "--size", "width=8",
             "--batch-sizes", "4", "--learning-rates", "1e-3"]  # fmt: skip
    output = fastcompress(*words)
    assert "1 trial of 700 tokens each" in output
    assert "next: fastcompress train --config out" in output
    report = json.loads(fastcompress(*words, "--json").splitlines()[-1])
    assert report["trials"][0]["model"] == {"num_layers": 1, "num_heads": 2, "context_length": 16, "width": 8}
    fastcompress("train", "--config", "out/best.toml", "--corpus", "text.txt", "--run-dir", "run", "--device", "cpu")
    assert json.loads(Path("run/config.json").read_text())["model"]["width"] == 8
    assert "give exactly one of --tokens, --flops, --seconds" in fastcompress(
        "tune", "-o", "x", *common, "--steps", "3", code=2
    )
    assert "must be numbers with commas" in fastcompress(*words, "--batch-sizes", "4;8", code=2)
