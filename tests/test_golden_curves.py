"""Training computes what it computed before the trainer was rebuilt, and reads the runs that it wrote then.

Sums of floats depend on the vector instructions of a processor and on the release of torch, so the curves are compared
to the bit where both are those that wrote the vectors, and elsewhere within a tolerance that only rounding fits into.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from fastcompress.data.orders import NEWEST_ORDER
from fastcompress.errors import MismatchError
from fastcompress.training.checkpoint import load_run
from tests import golden_runs

# Rounding grows over 24 steps at a high learning rate: two float32 builds were.
TOLERANCE = 1e-3


def skip_other_dropout(name: str) -> None:
    if golden_runs.draws_other_dropout(name):
        pytest.skip("this build of torch draws another dropout from a seed than the one that wrote the vectors")


def assert_same_curve(found: dict[str, list[str]], expected: dict[str, list[str]]) -> None:
    assert {name: len(values) for name, values in found.items()} == {
        name: len(values) for name, values in expected.items()
    }
    stored = json.loads(golden_runs.CURVES.read_text())["machine"]
    if golden_runs.machine() == stored:
        assert found == expected
    for name, values in expected.items():
        numbers = [float.fromhex(value) for value in found[name]]
        assert numbers == pytest.approx([float.fromhex(value) for value in values], rel=TOLERANCE), name


@pytest.mark.parametrize("name", golden_runs.RUNS)
def test_every_loss_is_what_it_was(name: str, tmp_path: Path) -> None:
    skip_other_dropout(name)
    golden_runs.start(name, tmp_path)
    expected = json.loads(golden_runs.CURVES.read_text())["curves"][name]
    assert_same_curve(golden_runs.curve_of(tmp_path), expected)


def test_a_run_of_checkpoint_version_1_goes_on_to_the_same_losses(tmp_path: Path) -> None:
    """It was stopped after step 13; optimizer, generators and dropout must all come back."""
    folder = tmp_path / "run"
    shutil.copytree(golden_runs.OLD_RUN, folder)
    loaded = load_run(folder, which="last")
    assert (loaded.step, loaded.codec.name) == (13, "byte")
    assert loaded.validation_bits_per_byte is not None
    skip_other_dropout("stopped")
    golden_runs.start("stopped", folder, resume=True)
    expected = json.loads(golden_runs.CURVES.read_text())["curves"]["stopped"]
    assert_same_curve(golden_runs.curve_of(folder), expected)


def test_a_run_of_an_older_release_keeps_its_order_and_a_new_one_has_the_newest(tmp_path: Path) -> None:
    """Settings that name no order: the run resumes with order 1, in which it began, as its losses show."""
    folder = tmp_path / "run"
    shutil.copytree(golden_runs.OLD_RUN, folder)
    assert "order" not in json.loads((folder / "config.json").read_text())["train"]
    with pytest.raises(MismatchError, match="its training setting order is 1, not 2"):
        golden_runs.start("stopped", folder, resume=True, order=2)
    with pytest.raises(MismatchError, match="its training setting packing is 'none', not 'split'"):
        golden_runs.start("stopped", folder, resume=True, order=None, packing="split")
    golden_runs.start("stopped", folder, resume=True, order=None)
    assert json.loads((folder / "config.json").read_text())["train"]["order"] == 1
    if not golden_runs.draws_other_dropout("stopped"):
        expected = json.loads(golden_runs.CURVES.read_text())["curves"]["stopped"]
        assert_same_curve(golden_runs.curve_of(folder), expected)
    golden_runs.start("stopped", tmp_path / "new", order=None)
    assert json.loads((tmp_path / "new" / "config.json").read_text())["train"]["order"] == NEWEST_ORDER
    assert golden_runs.curve_of(tmp_path / "new")["losses"] != golden_runs.curve_of(folder)["losses"]
