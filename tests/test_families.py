"""The search and the table of benchmarks/families.py, on invented scores."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from click.testing import CliRunner

sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))

import families


def test_a_search_ends_where_all_neighbours_are_worse() -> None:
    """It climbs to the best setting from the centre, and then trains four more seeds of it."""
    best: families.Setting = ("4x192", 8, 0.6, 0)
    ladders: list[list[Any]] = [list(families.GPT_SIZES), list(families.BATCHES), list(families.FACTORS)]
    done: dict[families.Setting, float] = {}
    while wanted := families.next_settings("bytes", done):
        assert not done.keys() & set(wanted)
        for setting in wanted:
            pairs = zip(ladders, setting[:3], best[:3], strict=True)
            done[setting] = sum(abs(ladder.index(own) - ladder.index(to)) for ladder, own, to in pairs)
    assert families.best_setting(done) == best
    assert sorted(setting[3] for setting in done if setting[:3] == best[:3]) == [0, 1, 2, 3, 4]
    for axis, ladder in enumerate(ladders):
        place = ladder.index(best[axis])
        for near in (ladder[place - 1], ladder[place + 1]):
            assert (*best[:axis], near, *best[axis + 1 :]) in done


def test_a_table_lacks_what_was_not_trained(tmp_path: Path) -> None:
    run: dict[str, Any] = {"size": "4x256", "batch": 16, "factor": 1.0, "seed": 0, "flops": 1e15, "is_exact": True}
    run |= {"name": "4x256, 16 rows", "bytes_per_token": 3.5, "passes": 0.5}
    arms = {"bytes": 1.5, "BPE": 1.25, "HEAT, LZ77": 2.0}
    for missing, cells in (("bytes", "|  | +0.7500 |"), ("BPE", "| +0.5000 |  |"), ("", "| +0.5000 | +0.7500 |")):
        runs = [{**run, "arm": arm, "bits_per_byte": bits} for arm, bits in arms.items() if arm != missing]
        (tmp_path / "families.json").write_text(json.dumps({"runs": runs}))
        result = CliRunner().invoke(families.main, ["table", str(tmp_path / "families.json")], catch_exceptions=False)
        assert f"| HEAT, LZ77 | 2.0000 | exact | 1 {cells}" in result.output
