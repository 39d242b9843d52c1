"""Figures of a study's report and of a run, each computed again from what the run left behind."""

from __future__ import annotations

import json
import math
import time
from pathlib import Path
from typing import Any

import pytest

from fastcompress.codec import ByteCodec
from fastcompress.data.corpora import load_corpus
from fastcompress.data.shards import TokenDataset
from fastcompress.evaluation.flops import count_flops
from fastcompress.evaluation.generate import generate
from fastcompress.study import findings
from fastcompress.study.arms import BYTES, Study
from fastcompress.study.folder import ArmRecord
from fastcompress.study.report import load_report
from fastcompress.study.runner import run_study
from fastcompress.study.seeds import over_seeds
from fastcompress.training.checkpoint import load_run

SEED = 5


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any], Path]:
    """A folder of documents, the report of a study on it, and the study's folder."""
    corpus = tmp_path_factory.mktemp("corpus")
    for i in range(40):
        (corpus / f"{i}.txt").write_text(f"Line {i}: {i * i} is the square of {i}.\n" * (1 + i % 3))
    study = Study(
        name="tiny", corpus=str(corpus), arms=(BYTES,), preset="modern", training_flops=3e7,
        model={"num_layers": 1, "num_heads": 2, "width": 16, "context_length": 16},
        training={"batch_size": 4, "num_evals": 3, "eval_bytes": 100, "self_check": False, "log_every": 1},
        prompt="Line ", sample_bytes=30,
    )  # fmt: skip
    output = tmp_path_factory.mktemp("study")
    run_study(study, output, seed=SEED, device="cpu", progress=False, isolate=False)
    return corpus, load_report(output / "report.json"), output


def test_what_was_seen_is_counted_from_the_run(made: tuple[Path, dict[str, Any], Path]) -> None:
    corpus, report, output = made
    arm = report["arms"][0]
    documents = load_corpus(str(corpus)).contents("train")
    num_bytes = sum(map(len, documents))
    num_tokens = num_bytes + len(documents)  # bytes, and an end for each document
    seen = arm["steps"] * 4 * 16
    assert arm["tokens_seen"] == seen
    assert arm["epochs"] == pytest.approx(seen / num_tokens)
    assert arm["bytes_seen"] == round(seen * num_bytes / num_tokens)
    assert arm["bytes_per_token"] == 1.0  # without the ends
    assert arm["flops_per_byte"] == pytest.approx(arm["flops_per_token"] * num_tokens / num_bytes)
    run = load_run(output / "arms" / "byte" / "run", which="last")
    assert arm["training_flops"] == count_flops(run.model).training_per_token * seen
    assert arm["train_seconds"] == pytest.approx(arm["curve"][-1]["seconds"], abs=0.5)
    assert arm["tokens_per_second"] == pytest.approx(seen / arm["train_seconds"])


def test_the_sample_is_the_seeds_and_of_the_length_asked_for(made: tuple[Path, dict[str, Any], Path]) -> None:
    corpus, report, output = made
    model = load_run(output / "arms" / "byte" / "run").model
    data = TokenDataset.from_documents(load_corpus(str(corpus)).contents("train"), ByteCodec())
    num_tokens = round(30 * data.num_tokens / data.num_bytes)
    samples = {
        seed: "Line " + "".join(
            generate(model, ByteCodec(), b"Line ", max_tokens=num_tokens, temperature=0.8, seed=seed)
        )
        for seed in (0, SEED)
    }  # fmt: skip
    assert report["arms"][0]["sample"] == samples[SEED] != samples[0]


def test_an_arms_seconds_add_up_over_interruptions(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    record = ArmRecord.open(path, {"a": 1}, time.perf_counter() - 10.0)
    record.keep_time()
    assert record.seconds == pytest.approx(10.0, abs=0.5)
    record.keep_time()
    assert record.seconds == pytest.approx(10.0, abs=0.5)  # nothing is counted twice
    again = ArmRecord.open(path, {"a": 1}, time.perf_counter() - 5.0)
    entry = again.finish({"name": "x"})
    assert entry["wall_seconds"] == pytest.approx(15.0, abs=0.5)
    assert json.loads(path.read_text())["seconds"] == pytest.approx(15.0, abs=0.5)


def test_the_threshold_of_chance_is_a_tenth_of_the_second_arm() -> None:
    def arm(value: float) -> dict[str, Any]:
        evaluation = {"bits_per_byte": value, "is_exact": True, "num_bytes": 1, "num_documents": 1}
        return {"label": f"{value}", "training_flops": 1.0, "steps": 1, "best_step": 1, "evaluation": evaluation}

    def is_cautious(first: float, second: float) -> bool:
        return any("another seed could turn it round" in text for text in findings.cautions([arm(first), arm(second)]))

    assert is_cautious(1.81, 2.0)
    assert not is_cautious(1.79, 2.0)  # of the second arm: 0.21 is more than a tenth of 2.0
    assert not is_cautious(2.0, 2.0)
    assert "up to 2.7" in findings.limits({"seed": 0, "evaluated_split": "test"})


def entry(value: float | None, seconds: float = 1.0) -> dict[str, Any]:
    evaluation = {"bits_per_byte": value, "is_exact": True, "num_bytes": 1, "num_documents": 1}
    return {"label": f"{value}", "training_flops": 1.0, "steps": 1, "best_step": 1, "evaluation": evaluation,
            "wall_seconds": seconds}  # fmt: skip


def test_seeds_have_a_mean_and_the_standard_deviation_of_a_sample() -> None:
    joined = over_seeds({7: entry(2.0, 3.0), 5: entry(1.0), 6: entry(1.5)})
    assert joined["evaluation"]["bits_per_byte"] == 1.0  # of the first seed
    assert joined["seeds"]["values"] == [{"seed": 5 + i, "bits_per_byte": 1.0 + i / 2} for i in range(3)]
    assert (joined["seeds"]["mean"], joined["seeds"]["standard_deviation"]) == (1.5, 0.5)
    assert joined["wall_seconds"] == 5.0
    assert over_seeds({3: entry(2.0)}) == entry(2.0)
    assert findings.bits(over_seeds({0: entry(1.0), 1: entry(None)})) == math.inf  # one diverged


def test_with_several_seeds_their_scatter_is_the_threshold_of_chance() -> None:
    def is_cautious(first: list[float], second: list[float]) -> bool:
        arms = [over_seeds(dict(enumerate(map(entry, values)))) for values in (first, second)]
        return any("within two standard errors of the seeds: another" in text for text in findings.cautions(arms))

    wide, narrow = [1.0, 1.2, 1.4], [1.19, 1.2, 1.21]  # deviations 0.2 and 0.01, standard errors 0.115 and 0.006
    assert is_cautious(wide, [1.39, 1.4, 1.41])  # 0.2 apart
    assert not is_cautious(wide, [1.49, 1.5, 1.51])  # 0.3 apart
    assert is_cautious(narrow, [1.2, 1.21, 1.22])
    assert not is_cautious(narrow, [1.22, 1.23, 1.24])  # 2.5 % apart, which seeds do not do here
