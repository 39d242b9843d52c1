"""The benchmarks run, with fastcompress and tiktoken on a small text, and refuse what would make figures lie."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fastcompress import BPE

FOLDER = Path(__file__).parent.parent / "benchmarks"
sys.path.insert(0, str(FOLDER))

import neighbour  # noqa: E402
import table  # noqa: E402
import table_text  # noqa: E402
import table_tokenizers  # noqa: E402
import texts  # noqa: E402
import vocabularies  # noqa: E402
from results_file import Results  # noqa: E402

KEY = ("fastcompress", "cl100k", "text", "documents", "numpy", 1)


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with text.txt (12 kB, three documents) and cl100k_base.tiktoken, ranks learned from it."""
    folder = tmp_path_factory.mktemp("benchmark")
    text = "\n".join(f"Line {number} of a small text, {number * number} squared; naïve café?" for number in range(240))
    (folder / "text.txt").write_text(text, encoding="utf-8")
    bpe = BPE.train(text, vocab_size=400)
    lines = [base64.b64encode(bpe.token_bytes(rank)) + b" %d\n" % rank for rank in range(400)]
    (folder / "cl100k_base.tiktoken").write_bytes(b"".join(lines))
    return folder


def run(suite: str, inputs: Path, *options: str) -> subprocess.CompletedProcess[str]:
    common = [
        "--quick",
        "--corpora",
        str(inputs / "text.txt"),
        "--peers",
        sys.executable,
        "--cache",
        str(inputs / "cache"),
    ]
    if suite != "train":
        common += ["--vocabularies", "cl100k", "--vocabulary-folder", str(inputs)]
    command = [sys.executable, str(FOLDER / "run.py"), suite, *common, "--out", str(inputs / f"{suite}.json"), *options]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("suite", "options", "num_cells", "measured"),
    [
        ("encode", ["--forms", "documents", "--outputs", "numpy"], 4, {"cold", "unseen", "warm"}),
        ("worst", ["--cases", "digits"], 2, {"first call"}),
        ("small", ["--engines", "fastcompress"], 2, {"10 B", "100 B", "1000 B"}),
        ("load", [], 2, {"import ms", "load ms", "first call ms", "memory"}),
        ("decode", [], 3, {"decode"}),
        ("train", ["--threads", "1"], 1, {"seconds", "memory"}),
    ],
)
def test_a_suite_runs(suite: str, options: list[str], num_cells: int, measured: set[str], inputs: Path) -> None:
    process = run(suite, inputs, "--threads", "1,2", *options) if suite == "encode" else run(suite, inputs, *options)
    assert process.returncode == 0, process.stderr
    stored = json.loads((inputs / f"{suite}.json").read_text())
    assert stored["suite"] == suite
    assert len(stored["cells"]) == num_cells
    for cell in stored["cells"]:
        assert "error" not in cell
        assert cell.get("exact", True) is True
        assert {name for name, value in cell.items() if isinstance(value, dict)} == measured
        assert all(min(rounds) > 0 for name in measured for rounds in cell[name].values() if name != "memory")
    assert "fastcompress" in process.stdout


@pytest.mark.slow
def test_a_second_run_adds_nothing_and_wrong_ids_stop_it(inputs: Path) -> None:
    options = [
        "--engines",
        "fastcompress",
        "--forms",
        "whole",
        "--outputs",
        "list",
        "--threads",
        "1",
        "--out",
        str(inputs / "again.json"),
    ]
    assert run("encode", inputs, *options).returncode == 0
    first = json.loads((inputs / "again.json").read_text())["cells"]
    assert run("encode", inputs, *options).returncode == 0
    assert json.loads((inputs / "again.json").read_text())["cells"] == first
    assert [len(cell["load_average"]) for cell in first] == [1]

    [ids] = (inputs / "cache" / "ids").glob("cl100k-*-whole-1.npy")
    wrong = np.load(ids)
    wrong[-1] += 1
    np.save(ids, wrong)
    process = run("encode", inputs, *options, "--fresh")
    wrong[-1] -= 1
    np.save(ids, wrong)
    assert process.returncode == 1
    assert "ids differ: whole numpy, whole list" in process.stderr


@pytest.mark.parametrize("size", [1, 5_000, 5_001, 23_456, 10**9])
def test_documents_are_cut_at_lines_and_make_up_the_text(size: int) -> None:
    data = b"".join(b"x" * (number % 97) + b"\n" for number in range(1_000))
    documents = texts.cut_at_lines(data, size)
    assert data.startswith(b"".join(documents))
    assert sum(map(len, documents)) >= min(size, len(data))
    assert all(len(document) < texts.DOCUMENT_BYTES + 97 and document.endswith(b"\n") for document in documents)
    assert all(len(document) >= texts.DOCUMENT_BYTES for document in documents[:-1])


def test_the_last_merge_of_a_token_is_the_one_that_made_it(inputs: Path) -> None:
    bpe = BPE.train((inputs / "text.txt").read_text(encoding="utf-8"), vocab_size=400)
    ranks = {bpe.token_bytes(rank): rank for rank in range(400)}
    for left, right, token_id in bpe.merges.tolist():
        parts = [bpe.token_bytes(left), bpe.token_bytes(right)]
        assert vocabularies.last_merge(bpe.token_bytes(token_id), ranks) == parts


def test_worst_cases_are_as_long_as_asked() -> None:
    for make in texts.WORST_CASES.values():
        assert 9_990 <= len(make(10_000).encode()) <= 10_000


def result(cold: float, exact: bool = True) -> dict[str, Any]:
    return {"exact": exact, "cold": {"cpu": cold, "wall": cold}, "version": "1.0", "load_average": 0.5}


def header(commit: str = "abc") -> dict[str, Any]:
    machine = {"cores": 2, "cpu": "a CPU", "vectors": ["avx2"], "python": "3.11"}
    return {
        "suite": "encode",
        "date": "2026-11-28",
        "commit": commit,
        "build": "123",
        "machine": machine,
        "inputs": {"text": "3 bytes"},
    }


def test_results_keep_every_round_and_refuse_another_commit_or_input(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    store = Results.open(path, header())
    for cold in (3.0, 1.0, 2.0):
        store.add(KEY, result(cold, exact=cold != 1.0))
    store.save()
    again = Results.open(path, header())
    assert again.cells == store.cells
    assert again.num_rounds(KEY) == 3
    assert again.median(KEY, "cold", "cpu") == 2.0
    assert again.spread(KEY, "cold", "cpu") == 2.0
    assert not again.is_exact(KEY), "one inexact round spoils a cell"
    with pytest.raises(ValueError, match="is of commit abc, build 123"):
        Results.open(path, header("def"))
    with pytest.raises(ValueError, match="another input text"):
        Results.open(path, header() | {"inputs": {"text": "4 bytes"}})


def store_of(folder: Path, rates: dict[str, tuple[float, bool]], **fields: Any) -> Results:
    store = Results(folder, header() | fields)
    for engine, (cold, exact) in rates.items():
        store.add((engine, *KEY[1:]), result(cold, exact))
    return store


def test_the_table_compares_with_the_fastest_exact_peer(tmp_path: Path) -> None:
    rates = {"fastcompress": (30.0, True), "tokie": (90.0, False), "tiktoken": (20.0, True)}
    text = table_tokenizers.render([store_of(tmp_path / "a.json", rates)], every_engine=False)
    assert "| cl100k | text | documents | 1.50 tiktoken (30) |" in text
    assert "1 cells: 1 at 1.2 times the fastest exact peer or more, 0 behind it" in text


def test_a_page_of_several_conditions_shows_the_worst_and_each(tmp_path: Path) -> None:
    for name, ours, beside in (("", 30.0, False), ("-neighbour", 18.0, True)):
        path = tmp_path / "a-machine" / f"2026-11-28-encode{name}.json"
        store_of(path, {"fastcompress": (ours, True), "tiktoken": (20.0, True)}, neighbour=beside).save()
    store_of(tmp_path / "a-machine" / "2026-11-27-encode.json", {"fastcompress": (1.0, True)}).save()
    page = tmp_path / "README.md"
    page.write_text("before\n<!-- benchmark encode: begin -->\nSTALE\n<!-- benchmark encode: end -->\nafter\n")
    text = table.update(page, tmp_path)
    assert "| cl100k | text | documents | **0.90** tiktoken (18); A 1.50, B 0.90 |" in text
    assert "- **B**: 2026-11-28, 2 cores of a CPU" in text
    assert "streams through 64 MB" in text
    assert text.startswith("before\n")
    assert text.endswith("\nafter\n")
    assert "STALE" not in text
    with pytest.raises(ValueError, match="has no <!-- benchmark train"):
        table.insert(text, "train", "")


def test_ratios_leave_out_conditions_that_were_not_measured() -> None:
    assert table_text.ratio([(1.5, "a (2)")]) == "1.50 a (2)"
    assert table_text.ratio([(1.5, "a (2)"), None, (1.25, "b (3)")]) == "**1.25** b (3); A 1.50, C 1.25"
    assert table_text.ratio([None]) == ""


@pytest.mark.parametrize("page", ["README.md", "benchmarks/README.md"])
def test_tables_are_what_the_generator_makes_of_the_committed_results(page: str) -> None:
    path = FOLDER.parent / page
    text = path.read_text(encoding="utf-8")
    assert len(table.BLOCK.findall(text)) == (1 if page == "README.md" else 12)
    assert text == table.update(path, FOLDER / "results"), "run: python benchmarks/run.py tables"


def test_the_summary_takes_the_worst_condition_of_each_row() -> None:
    def arithmetic(ours: float) -> dict[str, Any]:
        coders = {name: {"encode": rate, "decode": rate} for name, rate in (("ours", ours), ("constriction", 2.0))}
        return {"suite": "arithmetic", "machine": {"cpu": "a CPU", "cores": 2}, "cases": {"one": coders, "two": coders}}

    suites: dict[str, list[Any]] = {name: [] for name in table.SUMMARIZED}
    text = table.summary(suites | {"arithmetic": [arithmetic(4.0), arithmetic(3.0)]})
    assert "| arithmetic coding, encode | constriction | 1.5 to 1.5 |" in text
    assert "LZ77" not in text


def run_single(suite: str, folder: Path, *options: str) -> dict[str, Any]:
    out = folder / "results.json"
    command = [sys.executable, str(FOLDER / "run.py"), suite, "--quick", "--cache", str(folder / "cache")]
    process = subprocess.run([*command, "--out", str(out), *options], capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr
    stored: dict[str, Any] = json.loads(out.read_text())
    assert {"suite", "date", "machine", "commit", "command", "rounds", "versions"} <= stored.keys()
    assert str(folder) not in stored["command"], "a recorded command names no place of this machine"
    return stored


def test_arithmetic_coding_is_measured_beside_constriction(tmp_path: Path) -> None:
    pytest.importorskip("constriction")
    cases = run_single("arithmetic", tmp_path)["cases"]
    assert len(cases) == 3
    for coders in cases.values():
        assert all(figures["encode"] > 0 and figures["decode"] > 0 for figures in coders.values())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("suite", "needs", "field"), [("codebook", "click", "codebooks"), ("compressors", "brotli", "texts")]
)
def test_suites_of_one_process_run(suite: str, needs: str, field: str, tmp_path: Path) -> None:
    pytest.importorskip(needs)
    if "FASTCOMPRESS_DATA" not in os.environ:
        pytest.skip("the texts are in $FASTCOMPRESS_DATA")
    stored = run_single(suite, tmp_path, "--neighbour")
    assert stored["neighbour"] is True
    assert stored[field]
    assert "--neighbour" in stored["command"]


def test_a_neighbour_runs_beside_what_is_measured_and_ends_with_it() -> None:
    cores = os.sched_getaffinity(0)
    if len(cores) < 2:
        with pytest.raises(OSError, match="needs a core of its own"), neighbour.running(True):
            pass
        return
    with neighbour.running(True):
        assert os.sched_getaffinity(0) == cores - {max(cores)}
        [child] = [pid for pid in children(os.getpid()) if b"neighbour.py" in Path(f"/proc/{pid}/cmdline").read_bytes()]
    assert os.sched_getaffinity(0) == cores
    assert not Path(f"/proc/{child}").exists()
    with neighbour.running(False):
        assert os.sched_getaffinity(0) == cores


def children(process: int) -> list[int]:
    return [int(pid) for pid in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


def test_results_with_and_without_a_neighbour_do_not_mix(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    Results.open(path, header() | {"neighbour": True}).save()
    with pytest.raises(ValueError, match="measured with a neighbour"):
        Results.open(path, header())
