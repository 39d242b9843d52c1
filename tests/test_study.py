"""A tiny study from end to end: its report, going on after an interruption, and what it refuses.

One study of two arms on a made corpus is run once and copied for each test; only the interrupted one runs twice.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fastcompress.codec import ByteCodec, CharCodec
from fastcompress.data.corpora import SPLITS, load_corpus
from fastcompress.data.shards import TokenDataset

torch = pytest.importorskip("torch")

from fastcompress.errors import ConfigError, FormatError, OutputError  # noqa: E402
from fastcompress.evaluation.flops import count_flops  # noqa: E402
from fastcompress.study import cells, runner  # noqa: E402
from fastcompress.study.arms import BYTES, CHARACTERS, Arm, Study, bpe_arm, find_study  # noqa: E402
from fastcompress.study.report import load_report, validate  # noqa: E402
from fastcompress.study.runner import run_study  # noqa: E402
from fastcompress.study.wording import NBSP  # noqa: E402
from fastcompress.training.checkpoint import load_run  # noqa: E402

BUDGET = 4e7
CLOCK = {"seconds", "wall_seconds", "train_seconds", "tokens_per_second", "created", "finished"}


@pytest.fixture(scope="module", autouse=True)
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    """Bytes and characters on one document, whose held-out tenth has a character (é) that its beginning lacks."""
    path = tmp_path_factory.mktemp("corpus") / "made.txt"
    lines = [f"Line {i}: {i * i} is the square of {i}, and {i % 7} is left of it by seven.\n" for i in range(60)]
    path.write_text("".join(lines) + "Café.\n", encoding="utf-8")
    return Study(
        name="tiny",
        corpus=str(path),
        arms=(BYTES, CHARACTERS),
        preset="modern",
        training_flops=BUDGET,
        model={"num_layers": 1, "num_heads": 2, "width": 16, "context_length": 16, "dropout": 0.1},
        training={"batch_size": 4, "num_evals": 4, "eval_bytes": 200, "self_check": False, "log_every": 1},
        prompt="Line ",
        sample_bytes=40,
        tuning="Chosen to be quick.",
    )


@pytest.fixture(scope="module")
def finished(study: Study, tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("finished") / "out"
    assert run_study(study, output, device="cpu", progress=False, isolate=False) == output / "report.html"
    return output


@pytest.fixture
def output(finished: Path, tmp_path: Path) -> Path:
    """A copy of the finished study's folder."""
    return Path(shutil.copytree(finished, tmp_path / "out"))


def without_clock(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_clock(inner) for key, inner in value.items() if key not in CLOCK}
    return [without_clock(item) for item in value] if isinstance(value, list) else value


def again(study: Study, output: Path, **options: Any) -> dict[str, Any]:
    run_study(study, output, **{"device": "cpu", "progress": False, "isolate": False, **options})
    return load_report(output / "report.json")


def forbid_training(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cells, "train", lambda *args, **kwargs: pytest.fail("an arm was trained"))


# -- the report ----------------------------------------------------------------------------------------------


def test_the_report_holds_every_arm_under_one_budget(study: Study, finished: Path) -> None:
    report = load_report(finished / "report.json")
    validate(report)
    assert [arm["name"] for arm in report["arms"]] == ["byte", "char"]
    assert "Characters" in (finished / "report.html").read_text(encoding="utf-8")
    for arm in report["arms"]:
        step_flops = arm["flops_per_token"] * 4 * 16
        assert BUDGET - step_flops < arm["training_flops"] <= BUDGET
        assert arm["training_flops"] == arm["steps"] * step_flops
        assert arm["steps"] >= 10
        assert 0 < arm["evaluation"]["bits_per_byte"] < 9
        assert arm["sample"].startswith("Line ")
        assert [point["step"] for point in arm["curve"]][:: len(arm["curve"]) - 1] == [0, arm["steps"]]
    scored = {(arm["evaluation"]["num_bytes"], arm["evaluation"]["num_documents"]) for arm in report["arms"]}
    assert scored == {(load_corpus(study.corpus).num_bytes("validation"), 1)}
    assert report["tuning"] == "Chosen to be quick."


def test_more_seeds_give_means_and_spreads(study: Study, finished: Path, output: Path) -> None:
    """A study that was made under one seed goes on with the others, and its first seed's figures stay."""
    before = load_report(finished / "report.json")
    assert not any("seeds" in arm for arm in before["arms"])
    times = {path: path.stat().st_mtime_ns for path in output.glob("arms/*/result.json")}
    report = again(study, output, seeds=2)
    assert all(path.stat().st_mtime_ns == time for path, time in times.items())
    assert report["command"].endswith(" --seeds 2")
    for arm, one in zip(report["arms"], before["arms"], strict=True):
        other = json.loads((output / "arms" / arm["name"] / "seed-1" / "result.json").read_bytes())["entry"]
        figures = [one["evaluation"]["bits_per_byte"], other["evaluation"]["bits_per_byte"]]
        assert figures[0] != figures[1]
        assert arm["seeds"]["values"] == [{"seed": i, "bits_per_byte": figure} for i, figure in enumerate(figures)]
        assert arm["seeds"]["mean"] == pytest.approx(sum(figures) / 2)
        assert arm["seeds"]["standard_deviation"] == pytest.approx(abs(figures[0] - figures[1]) / 2**0.5)
        assert without_clock({name: value for name, value in arm.items() if name != "seeds"}) == without_clock(one)
        shown = f"{arm['seeds']['mean']:.3f}{NBSP}±{NBSP}{arm['seeds']['standard_deviation']:.3f}"
        assert shown in (output / "report.html").read_text(encoding="utf-8")
    assert "2 seeds (0 to 1)" in (output / "report.html").read_text(encoding="utf-8")
    assert again(study, output, seeds=2) == report
    with pytest.raises(ConfigError, match="seeds is 0; it must be at least 1"):
        run_study(study, output, seeds=0)


def test_measurements_are_described(finished: Path) -> None:
    report = load_report(finished / "report.json")
    for arm in report["arms"]:
        expected = {"num_bytes": 200, "num_documents": 1, "stride": 16, "precision": "float32"}
        assert arm["curve_evaluation"] == expected
        assert (arm["evaluation"]["stride"], arm["evaluation"]["precision"]) == (8, "float32")


def test_flops_per_byte_count_the_ends_of_documents(study: Study, finished: Path) -> None:
    for arm in load_report(finished / "report.json")["arms"]:
        directory = finished / "arms" / arm["name"]
        model = load_run(directory / "run").model
        tokens = TokenDataset.open(directory / "tokens", "train")
        symbols = sum(len(document) + 1 for document in tokens.documents())
        flops = count_flops(model).training_per_token * symbols / load_corpus(study.corpus).num_bytes("train")
        assert arm["flops_per_byte"] == pytest.approx(flops, rel=1e-12)


def test_the_alphabet_that_leaks_is_a_note_of_its_arm(study: Study, finished: Path) -> None:
    corpus = load_corpus(study.corpus)
    assert not corpus.test  # one document: its alphabet must not ask for a test split
    assert "é".encode() not in corpus.train[0].data
    assert CHARACTERS.make_codec(corpus).encode("é".encode()).size == 1
    byte, char = load_report(finished / "report.json")["arms"]
    assert any("alphabet is the whole corpus's" in note for note in char["notes"])
    assert not any("alphabet" in note for note in byte["notes"])
    assert "alphabet is the whole corpus&#x27;s" in (finished / "report.html").read_text(encoding="utf-8")


def test_the_time_is_the_sum_of_the_arms(finished: Path) -> None:
    report = load_report(finished / "report.json")
    assert report["wall_seconds"] == pytest.approx(sum(arm["wall_seconds"] for arm in report["arms"]))
    for arm in report["arms"]:
        assert arm["wall_seconds"] > arm["train_seconds"] > 0
        assert arm["machine"] == report["machine"]
    assert report["created"] == max(arm["finished"] for arm in report["arms"])


# -- running it again ----------------------------------------------------------------------------------------


def test_running_a_finished_study_again_changes_nothing(
    study: Study, output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {name: (output / name).read_bytes() for name in ("report.json", "report.html")}
    for name in before:
        (output / name).unlink()
    forbid_training(monkeypatch)
    again(study, output)
    assert {name: (output / name).read_bytes() for name in before} == before


def test_an_interrupted_study_goes_on_to_the_same_figures(
    study: Study, finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real_train, record_path = cells.train, tmp_path / "out" / "arms" / "char" / "result.json"

    kept: list[float] = []  # seconds in the record when Ctrl-C was pressed

    def interrupt(metrics: dict[str, Any]) -> None:
        if metrics["event"] == "train" and metrics["step"] == 7:
            kept.append(json.loads(record_path.read_bytes())["seconds"])
            time.sleep(0.05)
            raise KeyboardInterrupt

    def train(model_config: Any, codec: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(codec, CharCodec):
            kwargs["on_metrics"] = interrupt
        return real_train(model_config, codec, *args, **kwargs)

    with monkeypatch.context() as patched:
        patched.setattr(cells, "train", train)
        with pytest.raises(KeyboardInterrupt):
            run_study(study, tmp_path / "out", device="cpu", progress=False, isolate=False)
    assert not (tmp_path / "out" / "report.json").exists()
    record = json.loads(record_path.read_bytes())
    assert record["entry"] is None
    assert record["seconds"] >= kept[0] + 0.05

    record["seconds"] += 100.0  # as if the first stretch had been longer
    record_path.write_text(json.dumps(record))
    trained: list[bool] = []

    def count_train(*args: Any, **kwargs: Any) -> Any:
        trained.append(kwargs["resume"])
        return real_train(*args, **kwargs)

    monkeypatch.setattr(cells, "train", count_train)
    report = again(study, tmp_path / "out")
    assert trained == [True]  # the first arm was finished, the second one resumed
    assert without_clock(report) == without_clock(load_report(finished / "report.json"))
    assert report["arms"][1]["wall_seconds"] > 100.0
    assert report["wall_seconds"] > 100.0


def test_an_arm_whose_result_was_deleted_is_made_anew_from_its_run(study: Study, output: Path) -> None:
    before = load_report(output / "report.json")
    (output / "arms" / "byte" / "result.json").unlink()
    assert without_clock(again(study, output)) == without_clock(before)


# -- what is refused -----------------------------------------------------------------------------------------

CHANGES: dict[str, dict[str, Any]] = {
    "evaluated_split": {"evaluated_split": "train"},
    "prompt": {"prompt": "Other "},
    "sample_bytes": {"sample_bytes": 41},
    "preset": {"preset": "workshop"},
    "training_flops": {"training_flops": 2 * BUDGET},
    "model.dropout": {"model": {"num_layers": 1, "num_heads": 2, "width": 16, "context_length": 16, "dropout": 0.2}},
    "training.batch_size": {"training": {"batch_size": 8, "num_evals": 4, "eval_bytes": 200, "self_check": False}},
    "name": {"name": "other"},
    "arms.byte.label": {"arms": (dataclasses.replace(BYTES, label="Octets"), CHARACTERS)},
    "arm_order": {"arms": (CHARACTERS, BYTES)},
    "tuning": {"tuning": "Otherwise."},
}


@pytest.mark.parametrize("named", CHANGES)
def test_other_settings_are_refused_and_named(
    named: str, study: Study, output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forbid_training(monkeypatch)
    before = (output / "report.json").read_bytes()
    with pytest.raises(OutputError, match=f"{named} was .*; run it with those again, choose another output folder"):
        run_study(dataclasses.replace(study, **CHANGES[named]), output, device="cpu", progress=False, isolate=False)
    assert (output / "report.json").read_bytes() == before


def test_every_field_of_a_study_is_among_the_changes() -> None:
    fields = {field.name for field in dataclasses.fields(Study)} - {"corpus"}  # its contents: the next test
    assert {name for change in CHANGES.values() for name in change} == fields


def test_another_text_seed_or_device_is_refused(
    study: Study, output: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forbid_training(monkeypatch)
    with pytest.raises(OutputError, match="seed was 0, is now 1"):
        run_study(study, output, seed=1, device="cpu", progress=False, isolate=False)
    monkeypatch.setattr(runner, "choose_device", lambda name: torch.device("meta"))
    with pytest.raises(OutputError, match='device_kind was "cpu", is now "meta"'):
        run_study(study, output, progress=False)
    monkeypatch.undo()
    path = tmp_path / "made.txt"
    path.write_bytes(Path(study.corpus).read_bytes() + b"more")
    with pytest.raises(OutputError, match=r"corpus was .*corpus_fingerprint was"):
        run_study(dataclasses.replace(study, corpus=str(path)), output, device="cpu", progress=False, isolate=False)


class OtherByteCodec(ByteCodec):
    """The same kind under the same name, but with another mapping."""

    fingerprint = "0" * 64


@pytest.mark.parametrize("is_done", [True, False])
def test_a_codec_that_was_made_otherwise_is_refused(
    is_done: bool, study: Study, output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Settings alone do not tell: a codec is made by code, under a name that stays."""
    if not is_done:
        path = output / "arms" / "byte" / "result.json"
        path.write_text(json.dumps({**json.loads(path.read_bytes()), "entry": None}))
    forbid_training(monkeypatch)
    other = dataclasses.replace(BYTES, make_codec=lambda corpus: OtherByteCodec())
    with pytest.raises(OutputError, match=r"arms/byte: .*codec_fingerprint was .*, is now \"0000"):
        run_study(
            dataclasses.replace(study, arms=(other, CHARACTERS)), output, device="cpu", progress=False, isolate=False
        )


def test_an_arm_from_another_folder_is_refused(study: Study, output: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    forbid_training(monkeypatch)
    path = output / "arms" / "byte" / "result.json"
    record = json.loads(path.read_bytes())
    record["made_from"]["evaluated_split"] = "test"
    path.write_text(json.dumps(record))
    with pytest.raises(OutputError, match=r'arms/byte: .*evaluated_split was "test", is now "validation"'):
        run_study(study, output, device="cpu", progress=False, isolate=False)


def _without(*keys: str) -> Callable[[bytes], bytes]:
    def damage(blob: bytes) -> bytes:
        content = json.loads(blob)
        holder = content
        for key in keys[:-1]:
            holder = holder[key]
        del holder[keys[-1]]
        return json.dumps(content).encode()

    return damage


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda blob: b"",
    "cut": lambda blob: blob[: len(blob) // 2],
    "not text": lambda blob: b"\xff" + blob,
    "too deep": lambda blob: b"[" * 200_000,
    "a list": lambda blob: b"[]",
    "no settings": _without("made_from"),
    "no time": _without("seconds"),
    "no score": _without("entry", "evaluation", "bits_per_byte"),
    "no date": _without("entry", "finished"),
    "entry is text": lambda blob: json.dumps({**json.loads(blob), "entry": "text"}).encode(),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_result_is_a_format_error(
    damage: str, study: Study, output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forbid_training(monkeypatch)
    path = output / "arms" / "char" / "result.json"
    path.write_bytes(DAMAGES[damage](path.read_bytes()))
    with pytest.raises(FormatError, match=r"arms/char/result\.json: .*delete it") as caught:
        run_study(study, output, device="cpu", progress=False, isolate=False)
    assert "\n" not in str(caught.value)


def test_damaged_and_older_marks_are_refused(study: Study, output: Path) -> None:
    mark = output / "arms" / "study.json"
    mark.write_bytes(b"{")
    with pytest.raises(FormatError, match=r"study\.json: cannot be read as JSON"):
        run_study(study, output, device="cpu", progress=False, isolate=False)
    mark.rename(mark.with_name("study.sha256"))
    with pytest.raises(OutputError, match="holds arms of another version; choose another output folder"):
        run_study(study, output, device="cpu", progress=False, isolate=False)


def test_a_place_that_cannot_be_written_is_an_output_error(study: Study, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(OutputError, match=r"file: cannot be written \(.*choose another output folder"):
        run_study(study, tmp_path / "file", device="cpu", progress=False, isolate=False)


def test_unknown_studies_and_impossible_arms_are_config_errors(study: Study, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no study 'none'; the studies are quick, shakespeare"):
        find_study("none")
    with pytest.raises(ConfigError, match="there is no study 'none'"):
        run_study("none", tmp_path / "out", progress=False)
    with pytest.raises(ConfigError, match="two arms are named 'bpe-300'"):
        dataclasses.replace(study, arms=(bpe_arm(300), BYTES, bpe_arm(300, pattern="gpt2")))
    with pytest.raises(ConfigError, match="has no arms"):
        dataclasses.replace(study, arms=())
    for name in ("", "..", "a/b"):
        with pytest.raises(ConfigError, match="cannot be a folder's"):
            dataclasses.replace(study, arms=(Arm(name=name, label="x", make_codec=BYTES.make_codec),))


# -- the quick study's text ----------------------------------------------------------------------------------


def test_python_docs_are_short_parts_of_many_topics() -> None:
    corpus = load_corpus("python-docs")
    documents = [document for split in SPLITS for document in corpus.split(split)]
    assert max(len(document.data) for document in documents) <= 4000
    topics = {split: {document.id.partition("#")[0] for document in corpus.split(split)} for split in SPLITS}
    assert len(topics["validation"]) >= 5
    largest = max(len(document.data) for document in corpus.validation)
    assert largest < 0.25 * corpus.num_bytes("validation")
    ids = [document.id for document in documents]
    assert len(set(ids)) == len(ids)
    assert all(f"{topic}#00" in ids for topic in ("types", "compound"))


def test_no_paragraph_of_python_docs_is_both_held_out_and_trained_on() -> None:
    corpus = load_corpus("python-docs")

    def paragraphs(split: str) -> set[bytes]:
        whole = itertools.chain.from_iterable(data.split(b"\n\n") for data in corpus.contents(split))
        return {words for paragraph in whole if len(words := b" ".join(paragraph.split())) > 24}

    found = [paragraphs(split) for split in SPLITS]
    for one, other in itertools.combinations(found, 2):
        assert not one & other

    def spans(split: str) -> set[bytes]:
        return {data[i : i + 64] for data in corpus.contents(split) for i in range(len(data) - 63)}

    held_out, trained_on = spans("validation"), spans("train")
    assert len(held_out & trained_on) < 0.05 * len(
        held_out
    )  # what is left: a sentence or an example within two paragraphs
