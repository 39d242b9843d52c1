"""The study's report: what it says, that it never breaks, that a browser shows it whole and fetches nothing.

``vectors/study.json`` is a made-up study of three arms, as realistic as it needs to be to be read.
"""

from __future__ import annotations

import copy
import itertools
import json
import math
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from fastcompress.errors import DataError, FormatError, OutputError
from fastcompress.study.page import NBSP, render_page
from fastcompress.study.report import load_report, validate, write_report

STUDY_FILE = Path(__file__).parent / "vectors" / "study.json"
LABELS = ["BPE 1024", "Characters", "Bytes"]  # fewest bits per byte first
VOID = {"meta", "br", "link", "img", "input"}


@pytest.fixture
def study() -> dict[str, Any]:
    return json.loads(STUDY_FILE.read_text(encoding="utf-8"))


class Page(HTMLParser):
    """A page taken apart: (tag, attributes) in order, and the text found below each tag and each class."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: dict[str, list[str]] = {}
        self._open: list[tuple[str, list[str]]] = []
        self.feed(text)
        self.close()
        assert not self._open, f"never closed: {self._open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        self.tags.append((tag, attributes))
        if tag not in VOID:
            keys = [tag, *("." + name for name in (attributes.get("class") or "").split())]
            for key in keys:
                self.text.setdefault(key, []).append("")
            self._open.append((tag, keys))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        opened, _ = self._open.pop()
        assert opened == tag, f"<{opened}> closed by </{tag}>"

    def handle_data(self, data: str) -> None:
        for _, keys in self._open:
            for key in keys:
                self.text[key][-1] += data

    def count(self, tag: str, **attributes: str) -> int:
        return sum(name == tag and attributes.items() <= found.items() for name, found in self.tags)


def page_of(study: dict[str, Any]) -> Page:
    validate(study)
    return Page(render_page(study))


def assert_shows(page: Page, labels: list[str]) -> None:
    """Every arm once in each of the four drawings, in the table, and among the samples."""
    drawn = [a["data-arm"] for tag, a in page.tags if tag == "g" and "data-arm" in a]
    assert drawn == labels * 4
    assert [text for text in page.text["th"] if text in labels] == labels
    assert [a["data-arm"] for tag, a in page.tags if tag == "article"] == labels
    assert len(page.text["pre"]) == len(labels)


# -- files ---------------------------------------------------------------------------------------------------


def test_the_json_is_the_dict(study: dict[str, Any], tmp_path: Path) -> None:
    page = write_report(study, tmp_path / "new" / "folder")
    assert page == tmp_path / "new" / "folder" / "report.html"
    saved = page.with_name("report.json")
    assert json.loads(saved.read_text(encoding="utf-8")) == study == load_report(saved)
    assert sorted(path.name for path in page.parent.iterdir()) == ["report.html", "report.json"]


def test_equal_dicts_give_equal_bytes(study: dict[str, Any], tmp_path: Path) -> None:
    def reverse(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: reverse(value[key]) for key in reversed(value)}
        return [reverse(item) for item in value] if isinstance(value, list) else value

    first, second = write_report(study, tmp_path / "a"), write_report(reverse(study), tmp_path / "b")
    for name in ("report.html", "report.json"):
        assert first.with_name(name).read_bytes() == second.with_name(name).read_bytes()


def test_numbers_that_json_cannot_say_become_null(study: dict[str, Any], tmp_path: Path) -> None:
    study["arms"][0]["evaluation"]["bits_per_byte"] = math.nan
    study["arms"][1]["curve"][-1]["validation_bits_per_byte"] = math.inf
    text = write_report(study, tmp_path).with_name("report.json").read_text(encoding="utf-8")
    loaded = json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert loaded["arms"][0]["evaluation"]["bits_per_byte"] is None
    assert loaded["arms"][1]["curve"][-1]["validation_bits_per_byte"] is None
    assert render_page(load_report(tmp_path / "report.json")) == render_page(study)


def test_an_invalid_study_leaves_old_files_alone(study: dict[str, Any], tmp_path: Path) -> None:
    page = write_report(study, tmp_path)
    before = page.read_bytes()
    del study["arms"][0]["sample"]
    with pytest.raises(FormatError, match=r"'arms\[0\]\.sample' is missing"):
        write_report(study, tmp_path)
    assert page.read_bytes() == before


def test_an_unwritable_place_is_an_output_error(study: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(OutputError, match="choose another"):
        write_report(study, tmp_path / "file")
    (tmp_path / "taken" / "report.html").mkdir(parents=True)
    with pytest.raises(OutputError, match=r"report\.html: cannot be written"):
        write_report(study, tmp_path / "taken")
    assert sorted(path.name for path in (tmp_path / "taken").iterdir()) == ["report.html", "report.json"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not JSON"),
        (b"\xff\xfe\x00", "not JSON"),
        (b"[" * 200_000, "not JSON"),
        (b"[]", "must be an object, not list"),
        (b"{}", "'format' is missing"),
        (b'{"format": "fastcompress-codec", "version": 1}', "format is 'fastcompress-codec'"),
        (b'{"format": "fastcompress-study", "version": 2}', "version is 2"),
        (b'{"format": "fastcompress-study", "version": 1}', "'name' is missing"),
    ],
)
def test_load_refuses_what_is_not_a_report(content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    path.write_bytes(content)
    with pytest.raises(FormatError, match=message) as caught:
        load_report(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_report_is_a_data_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"none\.json: cannot be read \(No such file"):
        load_report(tmp_path / "none.json")


OLD_REPORTS = sorted((Path(__file__).parent.parent / "benchmarks" / "results").glob("*/*-study-*.json"))


@pytest.mark.parametrize("path", OLD_REPORTS, ids=lambda path: path.stem)
def test_published_reports_load_and_render(path: Path) -> None:
    study = load_report(path)
    page = page_of(study)
    ranked = sorted(study["arms"], key=lambda arm: arm["evaluation"]["bits_per_byte"])
    assert_shows(page, [arm["label"] for arm in ranked])


def test_there_are_published_reports() -> None:
    assert {"2026-11-28-study-quick", "2026-11-28-study-shakespeare"} <= {path.stem for path in OLD_REPORTS}


def _without_later_keys(study: dict[str, Any]) -> dict[str, Any]:
    """``study`` as the first reports were: without the keys added since."""
    del study["tuning"]
    for arm in study["arms"]:
        for key in ("curve_evaluation", "machine", "finished", "wall_seconds"):
            del arm[key]
        del arm["evaluation"]["precision"]
    return study


def test_a_report_without_later_keys_loads_and_says_what_it_does_not_know(study: dict[str, Any]) -> None:
    page = page_of(_without_later_keys(study))
    assert_shows(page, LABELS)
    text = page.text["main"][0]
    assert "in which precision the curves were measured is not recorded" in text
    assert "in a precision not recorded" in text
    assert "end-of-document symbols left out in this report" in text
    assert "How they were chosen is not recorded." in text


def _paths(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """The path of every key in a study; of lists, the first item stands for all."""
    items = value.items() if isinstance(value, dict) else enumerate(value[:1]) if isinstance(value, list) else ()
    for key, inner in items:
        if isinstance(key, str):
            yield (*path, key)
        yield from _paths(inner, (*path, key))


_OPTIONAL = {  # a split that nobody scored, and what the first reports lacked
    ("corpus", "splits", "test"),
    ("tuning",),
    *(("arms", 0, key) for key in ("curve_evaluation", "machine", "finished", "wall_seconds")),
    ("arms", 0, "evaluation", "precision"),
}
REQUIRED = [
    path
    for path in _paths(json.loads(STUDY_FILE.read_text(encoding="utf-8")))
    if not {path[:3], path} & _OPTIONAL and path[:3] != ("arms", 0, "model")
] + [("arms", 0, "model")]


def _spelled(path: tuple[str | int, ...]) -> str:
    return "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in path).lstrip(".")


@pytest.mark.parametrize("path", REQUIRED, ids=_spelled)
def test_every_missing_or_mistyped_key_is_named(path: tuple[str | int, ...], study: dict[str, Any]) -> None:
    holder: Any = study
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = object()  # nothing a study may hold
    with pytest.raises(FormatError, match=re.escape(_spelled(path))):
        validate(study)
    del holder[path[-1]]
    with pytest.raises(FormatError, match=re.escape(f"the key '{_spelled(path)}' is missing")):
        validate(study)


@pytest.mark.parametrize("path", sorted(_OPTIONAL - {("corpus", "splits", "test")}, key=str), ids=_spelled)
def test_a_later_key_may_be_missing_but_not_mistyped(path: tuple[str | int, ...], study: dict[str, Any]) -> None:
    holder: Any = study
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = object()
    with pytest.raises(FormatError, match=re.escape(_spelled(path))):
        validate(study)
    del holder[path[-1]]
    validate(study)


def test_no_arms_and_negative_counts_are_refused(study: dict[str, Any]) -> None:
    with pytest.raises(FormatError, match="at least one arm"):
        validate({**study, "arms": []})
    study["arms"][1]["steps"] = -1
    with pytest.raises(FormatError, match=r"'arms\[1\]\.steps' must be an integer from 0"):
        validate(study)


def test_main_renders_a_saved_report(study: dict[str, Any], tmp_path: Path) -> None:
    page = write_report(study, tmp_path)
    expected = page.read_bytes()
    page.unlink()
    command = [sys.executable, "-W", "error", "-m", "fastcompress.study.report"]
    done = subprocess.run([*command, tmp_path / "report.json"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, str(page), "")
    assert page.read_bytes() == expected
    failed = subprocess.run([*command, tmp_path / "none.json"], capture_output=True, text=True, check=False)
    assert failed.returncode == 1
    assert failed.stderr.startswith("error: ")
    assert failed.stderr.count("\n") == 1


# -- what the page says --------------------------------------------------------------------------------------


def _set_bits(study: dict[str, Any], *values: float) -> None:
    for arm, value in zip(study["arms"], values, strict=True):
        arm["evaluation"]["bits_per_byte"] = value


def test_the_headline_states_the_result(study: dict[str, Any]) -> None:
    (headline,) = page_of(study).text["h1"]
    assert headline == (
        "Fewest bits per byte at equal training FLOPs: BPE 1024, 2.274 (upper bound), "
        f"12.0{NBSP}% fewer than Characters at 2.585 (exact)."
    )
    _set_bits(study, 2.0, 2.5, 4.0)
    (headline,) = page_of(study).text["h1"]
    assert headline == (
        "Fewest bits per byte at equal training FLOPs: Bytes, 2.000 (exact), "
        f"20.0{NBSP}% fewer than Characters at 2.500 (exact)."
    )


def test_the_headline_of_unusual_studies(study: dict[str, Any]) -> None:
    _set_bits(study, 2.0, 2.0, 3.0)
    assert page_of(study).text["h1"] == ["Bytes and Characters tie at equal training FLOPs: 2.000 bits per byte."]
    assert page_of(study).text[".badge"] == ["best", "best"]
    _set_bits(study, math.nan, math.inf, 3.0)
    assert page_of(study).text["h1"] == [
        "Fewest bits per byte at equal training FLOPs: BPE 1024, 3.000 (upper bound); no other arm has a finite figure."
    ]
    _set_bits(study, math.nan, math.inf, -math.inf)
    page = page_of(study)
    assert page.text["h1"] == ["Every arm diverged: there are no bits per byte to compare."]
    assert [cell.startswith("diverged") for cell in page.text[".result"]] == [True] * 3
    assert ".badge" not in page.text
    study["arms"] = study["arms"][:1]
    _set_bits(study, 2.0)
    assert page_of(study).text["h1"] == ["Bytes: 2.000 (exact) bits per byte."]


def test_cautions_appear_when_the_data_call_for_them(study: dict[str, Any]) -> None:
    def cautions() -> str:
        return "".join(page_of(study).text.get(".cautions", []))

    assert cautions() == ""
    _set_bits(study, 2.0, 2.18, 2.3)  # 8 %: other seeds move a figure as far
    assert f"The lead is under 10{NBSP}%" in cautions()
    _set_bits(study, 2.0, 2.25, 2.3)
    assert "The lead" not in cautions()
    assert "BPE 1024 may be better than shown" in cautions()
    _set_bits(study, 2.0, math.nan, 1.5)
    assert cautions() == "Diverged, so without a figure: Characters."
    study["arms"][0]["evaluation"]["num_bytes"] -= 1
    assert "must not be compared" in cautions()
    study["arms"][0]["training_flops"] *= 1.5
    assert "not like with like" in cautions()
    assert "at unequal training FLOPs" in page_of(study).text["h1"][0]


def test_an_early_best_checkpoint_is_named(study: dict[str, Any]) -> None:
    """At 35 % of the budget the weights that are scored did not cost what the headline would say."""
    assert "Fewest bits per byte at equal training FLOPs" in page_of(study).text["h1"][0]
    study["arms"][1].update(best_step=round(0.35 * study["arms"][1]["steps"]))
    page = page_of(study)
    (caution,) = page.text[".cautions"]
    assert caution.startswith(f"Best before 60{NBSP}% of the budget, then overfitted: Characters at 35{NBSP}%. ")
    assert "favours no arm in particular" in caution
    assert "Fewest bits per byte within equal training FLOPs" in page.text["h1"][0]
    row = next(row for row in page.text["tr"] if row.startswith("Characters"))
    assert f"{study['arms'][1]['best_step']}35{NBSP}%" in row
    study["arms"][1].update(best_step=math.ceil(0.6 * study["arms"][1]["steps"]))
    assert ".cautions" not in page_of(study).text
    study["arms"][1].update(best_step=0, steps=0)
    assert ".cautions" not in page_of(study).text


def test_arms_of_several_machines_are_told_apart(study: dict[str, Any]) -> None:
    assert "".join(page_of(study).text[".facts"]).count("AMD EPYC 7B13") == 1
    study["arms"][2]["machine"] = {**study["machine"], "device_name": "Another <processor>"}
    page = page_of(study)
    assert "The arms ran on different machines" in page.text[".cautions"][0]
    facts = "".join(page.text[".facts"])
    assert "AMD EPYC 7B13" in facts
    assert "Another <processor>" in facts


def test_the_page_says_how_curves_and_table_were_measured(study: dict[str, Any]) -> None:
    page = page_of(study)
    assert (
        "Measured on the first 16,384 of 61,440 bytes of the validation split, in windows of 256 tokens "
        "without overlap (stride 256), in bfloat16." in page.text[".chart-note"][1]
    )
    assert (
        "scored on all 61,440 bytes of the validation split, in windows of 256 tokens (stride 128), in float32."
        in page.text[".about"][1]
    )
    study["arms"][0]["evaluation"]["precision"] = study["arms"][0]["curve_evaluation"]["precision"] = "float16"
    for arm in study["arms"]:
        arm["curve_evaluation"]["num_bytes"] = 61440
    page = page_of(study)
    assert "Measured on all 61,440 bytes" in page.text[".chart-note"][1]
    assert "in float16 or bfloat16, by arm." in page.text[".chart-note"][1]
    assert "in float16 or float32, by arm." in page.text[".about"][1]


def test_the_limits_say_how_settings_were_chosen_and_what_chance_does(study: dict[str, Any]) -> None:
    limits = page_of(study).text[".guide"][0]
    assert study["tuning"] in limits
    assert "No arm's hyperparameters were tuned" not in limits
    assert f"a gap under 10{NBSP}% may be chance" in limits


def test_the_table_is_sorted_and_complete(study: dict[str, Any]) -> None:
    page = page_of(study)
    assert_shows(page, LABELS)
    row = next(row for row in page.text["tr"] if row.startswith("BPE 1024"))
    for cell in (
        "best2.274upper bound",
        "71.3",
        "2.711,024",
        "1.07 M131 k",
        "256 tokens694 bytes",
        "3420.74",
    ):
        assert cell in row
    assert f"2.01{NBSP}×{NBSP}10¹²2.59{NBSP}×{NBSP}10⁶" in row
    assert row.endswith("36,1157.9 s")


def test_the_facts_tell_how_to_run_it_again(study: dict[str, Any]) -> None:
    page = page_of(study)
    facts = "".join(page.text[".facts"])
    for fact in ("python-docs", "498 documents", "1,043,220", "validation split", "all 61,440 bytes"):
        assert fact in facts
    for fact in ("2026-11-28 09:41:07 UTC", "2 min 29 s", "AMD EPYC 7B13", "2 threads", "3.11.7", "2.13.0"):
        assert fact in facts
    assert "fastcompress study quick --seed 0" in page.text["code"]


def test_the_prompt_is_told_from_the_continuation(study: dict[str, Any]) -> None:
    study["arms"] = study["arms"][:2]
    study["arms"][0].update(prompt="To be", sample="To be, or not")
    study["arms"][1].update(prompt="To be", sample=" or not", evaluation={**study["arms"][0]["evaluation"]})
    page = page_of(study)
    assert page.text["pre"] == ["To be, or not", "To be or not"]
    assert page.text[".prompt"][-2:] == ["To be", "To be"]


def test_hostile_text_is_harmless_and_visible(study: dict[str, Any], tmp_path: Path) -> None:
    plain = page_of(study)
    arm = study["arms"][2]
    arm["sample"] = arm["prompt"] + "<script>alert('&amp;')</script>\x00\x1b[31m\u202e\ud800\ufffe\r\n\tend"
    arm["label"] = arm["notes"][0] = '"><img src=x onerror=alert(1)>\n\x07'
    study["corpus"]["name"] = "</title><script>$headline"
    page = page_of(study)
    write_report(study, tmp_path)
    assert load_report(tmp_path / "report.json") == study
    assert {tag for tag, _ in page.tags} == {tag for tag, _ in plain.tags}
    assert "<script>alert('&amp;')</script>U+0000U+001B[31mU+202EU+D800U+FFFEU+000D\n\tend" in page.text["pre"][0]
    assert 'equal training FLOPs: "><img src=x onerror=alert(1)>U+000AU+0007, ' in page.text["h1"][0]
    assert "</title><script>$headline: 498 documents" in "".join(page.text[".facts"])


# -- data that strain the page -------------------------------------------------------------------------------


def _one_point(study: dict[str, Any]) -> None:
    for arm in study["arms"]:
        arm["curve"] = arm["curve"][-1:]


def _only_step_zero(study: dict[str, Any]) -> None:
    for arm in study["arms"]:
        arm["curve"] = arm["curve"][:1]


def _no_curve(study: dict[str, Any]) -> None:
    for arm in study["arms"]:
        arm["curve"] = []


def _equal_values(study: dict[str, Any]) -> None:
    for arm in study["arms"]:
        for point in arm["curve"]:
            point.update(validation_bits_per_byte=2.5, train_bits_per_byte=None)


def _diverged(study: dict[str, Any]) -> None:
    for i, arm in enumerate(study["arms"]):
        for point in arm["curve"][i * 5 :]:
            point["validation_bits_per_byte"] = (math.nan, math.inf, None)[i]
        arm["evaluation"].update(bits_per_byte=math.nan, perplexity_per_token=math.inf, bits_per_byte_text=None)


def _extreme_numbers(study: dict[str, Any]) -> None:
    for i, arm in enumerate(study["arms"]):
        for point in arm["curve"]:
            point["validation_bits_per_byte"] *= (1e-300, 1e20, -1.0)[i]
            point["flops"] *= (1e-300, 1e16, -1.0)[i]
        arm.update(num_parameters=2**63 - 1, training_flops=1e308, tokens_per_second=0.0, epochs=None)


def _long_names(study: dict[str, Any]) -> None:
    for i, arm in enumerate(study["arms"]):
        arm["label"] = arm["name"] = f"{i}" + "W" * 500
        arm["notes"] = ["n" * 5000]


@pytest.mark.parametrize(
    "strain",
    [_one_point, _only_step_zero, _no_curve, _equal_values, _diverged, _extreme_numbers, _long_names],
)
@pytest.mark.parametrize("num_arms", [1, 3, 12])
def test_it_never_fails(strain: Callable[[dict[str, Any]], None], num_arms: int, study: dict[str, Any]) -> None:
    strain(study)
    study["arms"] = [copy.deepcopy(study["arms"][i % 3]) for i in range(num_arms)]
    for i, arm in enumerate(study["arms"]):
        arm["label"] = f"{i}: {arm['label']}"
    text = render_page(study)
    page = Page(text)
    ranked = sorted(study["arms"], key=lambda arm: arm["evaluation"]["bits_per_byte"])  # NaN everywhere or nowhere
    assert_shows(page, [arm["label"] for arm in ranked])
    for tag, attributes in page.tags:
        for name, value in attributes.items():
            if tag in ("path", "text", "rect", "g") and name in ("d", "x", "y", "transform"):
                assert not re.search("nan|inf|e[+-]", value or ""), f"<{tag} {name}={value!r}>"
                numbers = re.findall(r"-?\d+\.?\d*", value or "")
                assert all(abs(float(number)) < 1e5 for number in numbers), f"<{tag} {name}={value!r}>"


def test_a_broken_line_has_a_gap(study: dict[str, Any]) -> None:
    def sub_paths() -> int:
        lines = [a["d"] for tag, a in page_of(study).tags if tag == "path" and "line" in (a.get("class") or "")]
        return max((line or "").count("M") for line in lines)

    assert sub_paths() == 1
    study["arms"][0]["curve"][7]["validation_bits_per_byte"] = math.nan
    assert sub_paths() == 2


# -- the document itself -------------------------------------------------------------------------------------


def test_it_is_self_contained(study: dict[str, Any]) -> None:
    text = render_page(study)
    page = Page(text)
    assert not {tag for tag, _ in page.tags} & {
        "script",
        "link",
        "img",
        "iframe",
        "object",
        "embed",
        "base",
        "a",
    }
    assert not {name for _, a in page.tags for name in a} & {"src", "href", "style", "srcset", "xlink:href"}
    assert not re.search(r"https?:|//[a-z]|@import|@font-face", text)
    assert set(re.findall(r"url\((.)", text)) == {"#"}  # clip paths of this page only
    policy = next(a["content"] for _, a in page.tags if a.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None
    assert policy.startswith("default-src 'none'; style-src 'sha256-")


def test_it_is_accessible(study: dict[str, Any]) -> None:
    page = page_of(study)
    assert page.count("html", lang="en") == 1
    assert page.text["title"][0] == "fastcompress study: quick (2026-11-28)"
    levels = [int(tag[1]) for tag, _ in page.tags if re.fullmatch("h[1-6]", tag)]
    assert levels.count(1) == 1 == levels[0]
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))
    assert page.count("th", scope="row") == 3
    assert page.count("th", scope="col") + page.count("th", scope="row") == page.count("th")
    charts = [a for tag, a in page.tags if tag == "svg" and a.get("aria-hidden") != "true"]
    assert len(charts) == 4
    for chart in charts:
        assert chart["role"] == "img"
        for label in LABELS:
            assert re.search(rf"{label} ends at \d\.\d\d\d", chart["aria-label"] or "")
    ids = [a["id"] for _, a in page.tags if "id" in a]
    assert len(ids) == len(set(ids))
    assert {a["aria-labelledby"] for _, a in page.tags if "aria-labelledby" in a} <= set(ids)


def test_contrast_in_both_schemes(study: dict[str, Any]) -> None:
    """WCAG 2: text 4.5 to 1, lines and markers 3 to 1, against the page and the cards."""

    def luminance(colour: str) -> float:
        channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    schemes = re.findall(r":root \{(.*?)\}", render_page(study), re.DOTALL)
    assert len(schemes) == 2
    for scheme in schemes:
        colours = dict(re.findall(r"--([a-z0-9]+): (#[0-9a-f]{6});", scheme))
        for name in ("text", "muted", "accent", *(f"s{i}" for i in range(8))):
            for ground in ("page", "card"):
                dark, light = sorted((luminance(colours[name]), luminance(colours[ground])))
                needed = 3.0 if name.startswith("s") else 4.5
                assert (light + 0.05) / (dark + 0.05) >= needed, f"{name} on {ground}"


# -- in a browser --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 400])
def test_a_browser_shows_it_whole(width: int, scheme: str, browser: Any, study: dict[str, Any], tmp_path: Path) -> None:
    path = write_report(study, tmp_path)
    tab = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    complaints: list[str] = []
    requests: list[str] = []
    tab.on("console", lambda message: complaints.append(message.text))
    tab.on("pageerror", lambda error: complaints.append(str(error)))
    tab.on("request", lambda request: requests.append(request.url))
    tab.goto(path.as_uri())
    chart = "svg.wide" if width == 1280 else "svg.narrow"
    assert tab.locator("svg.chart:visible").count() == tab.locator(chart).count() == 2
    for label in LABELS:
        for drawing in tab.locator(chart).all():
            line = drawing.locator(f'[data-arm="{label}"] .line')
            assert line.is_visible()
            assert drawing.locator(f'[data-arm="{label}"] .marker').count() >= 5
        named = tab.locator(f"{chart} text.label" if width == 1280 else ".legend li", has_text=label)
        assert named.first.is_visible()
        assert tab.locator("tbody th", has_text=label).is_visible()
        sample = tab.locator(f'article[data-arm="{label}"] pre')
        assert sample.is_visible()
        assert sample.inner_text().startswith("The ")
    style = tab.evaluate("getComputedStyle(document.body).backgroundColor")
    assert style == ("rgb(252, 252, 250)" if scheme == "light" else "rgb(21, 23, 26)")  # the style sheet is on
    assert tab.evaluate("document.documentElement.scrollWidth") == width
    text_size = tab.evaluate(
        f"Math.min(...[...document.querySelectorAll('{chart} text')].map(text => {{"
        " const svg = text.ownerSVGElement;"
        " const scale = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;"
        " return scale * parseFloat(getComputedStyle(text).fontSize); }))"
    )
    assert text_size >= 11
    assert requests == [path.as_uri()]
    assert complaints == []
    tab.screenshot(path=tmp_path / f"report-{width}-{scheme}.png", full_page=True)
    tab.close()


@pytest.mark.slow
def test_a_browser_survives_a_straining_study(browser: Any, study: dict[str, Any], tmp_path: Path) -> None:
    _long_names(study)
    study["arms"] = [copy.deepcopy(study["arms"][i % 3]) for i in range(12)]
    study["arms"][0]["sample"] = "<script>document.title = 'run'</script>" + "x" * 3000
    path = write_report(study, tmp_path)
    for width in (1280, 400):
        tab = browser.new_page(viewport={"width": width, "height": 900})
        tab.goto(path.as_uri())
        assert tab.title() == "fastcompress study: quick (2026-11-28)"
        assert tab.evaluate("document.documentElement.scrollWidth") == width
        tab.close()
