"""Cells of a study: each in a process of its own; one that fails is a row, and a signal stops it in good order."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fastcompress.errors import DataError
from fastcompress.study import Study, load_report, run_study
from fastcompress.study.arms import BYTES, codec_arm
from fastcompress.study.cells import CellError
from tests.cell_arms import DIES, RAISES

ROOT = Path(__file__).parent.parent


def make_study(folder: Path, *arms: object, training_flops: float = 4e6) -> Study:
    path = folder / "made.txt"
    path.write_text("".join(f"Line {i}: {i * i} is the square of {i}.\n" for i in range(60)))
    return Study(
        name="cells", corpus=str(path), arms=arms, preset="modern", training_flops=training_flops,  # type: ignore[arg-type]
        model={"num_layers": 1, "num_heads": 2, "width": 16, "context_length": 16},
        training={"batch_size": 4, "num_evals": 2, "eval_bytes": 100, "self_check": False},
        prompt="Line ", sample_bytes=10,
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="kills a process by a signal")
def test_a_cell_that_fails_is_a_row_that_says_so(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """One raises, the next one's process is killed, and the last one is made all the same."""
    study = make_study(tmp_path, RAISES, DIES, BYTES)
    run_study(study, tmp_path / "out", device="cpu", progress=False)
    report = load_report(tmp_path / "out" / "report.json")
    assert [arm["name"] for arm in report["arms"]] == ["byte"]
    assert report["failures"] == [
        {"name": "raises", "label": "Raises", "error": "DataError: its codec <cannot> be made"},
        {
            "name": "dies",
            "label": "Dies",
            "error": "CellError: its process was ended by SIGKILL; perhaps memory ran out",
        },
    ]
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "DataError: its codec &lt;cannot&gt; be made" in page
    assert page.count('<td class="result">failed</td>') == 2
    assert "failed: its codec <cannot> be made" in capfd.readouterr().err


def test_a_codec_whose_ids_do_not_decode_as_they_come_has_no_sample(tmp_path: Path) -> None:
    run_study(make_study(tmp_path, codec_arm("gzip")), tmp_path / "out", device="cpu", progress=False, isolate=False)
    (arm,) = load_report(tmp_path / "out" / "report.json")["arms"]
    assert (arm["name"], arm["sample"]) == ("gzip", "Line ")


def test_a_study_without_any_result_raises_what_its_first_cell_did(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot"):
        run_study(make_study(tmp_path, RAISES), tmp_path / "out", device="cpu", progress=False, isolate=False)
    assert not (tmp_path / "out" / "report.json").exists()
    assert issubclass(CellError, RuntimeError)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="sends a signal")
def test_ctrl_c_reaches_the_cell_once_and_its_run_can_go_on(tmp_path: Path) -> None:
    script = (
        "import sys\nfrom pathlib import Path\nfrom fastcompress.study import run_study\n"
        "from fastcompress.study.arms import BYTES\nfrom tests.test_study_cells import make_study\n"
        "if __name__ == '__main__':\n"
        "    folder = Path(sys.argv[1])\n"
        "    study = make_study(folder, BYTES, training_flops=1e13)\n"
        "    run_study(study, folder / 'out', device='cpu', progress=False)\n"
    )
    (tmp_path / "script.py").write_text(script)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    process = subprocess.Popen(
        [sys.executable, str(tmp_path / "script.py"), str(tmp_path)], env=environment, stderr=subprocess.PIPE, text=True
    )
    metrics = tmp_path / "out" / "arms" / "byte" / "run" / "metrics.jsonl"
    deadline = time.monotonic() + 120
    while not (metrics.exists() and metrics.read_text().count("\n") >= 3):
        assert time.monotonic() < deadline
        assert process.poll() is None, process.stderr.read() if process.stderr else ""
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert "stopping after this step and saving" in errors
    assert "KeyboardInterrupt" in errors
    assert process.returncode != 0
    record = json.loads((metrics.parent.parent / "result.json").read_bytes())
    assert record["entry"] is None
    assert (metrics.parent / "last.safetensors").exists()
