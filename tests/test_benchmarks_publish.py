"""`benchmarks/run.py publish` writes each results file under its own name, and the pages show the worst condition."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest

from fastcompress import BPE

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT / "benchmarks"), str(ROOT / "docs")]

import make_picture  # noqa: E402

import publish  # noqa: E402
import run  # noqa: E402
import table  # noqa: E402
from results_file import Results  # noqa: E402

CELL = ("cl100k", "english", "documents")
CPUS = {"cpu-2-cores": "AMD EPYC", "xeon-16-cores": "Intel Xeon"}


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with text.txt and cl100k_base.tiktoken, ranks learned from it."""
    folder = tmp_path_factory.mktemp("publish")
    text = "\n".join(f"Line {number} of a small text, {number * number} squared; naïve café?" for number in range(240))
    (folder / "text.txt").write_text(text, encoding="utf-8")
    bpe = BPE.train(text, vocab_size=400)
    lines = [base64.b64encode(bpe.token_bytes(rank)) + b" %d\n" % rank for rank in range(400)]
    for stem in ("r50k_base", "cl100k_base", "o200k_base"):
        (folder / f"{stem}.tiktoken").write_bytes(b"".join(lines))
    return folder


def published(inputs: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "benchmarks" / "run.py"), "publish", *words]
    command += ["--corpora", str(inputs / "text.txt"), "--vocabulary-folder", str(inputs), "--peers", sys.executable]
    command += ["--results", str(inputs / "results"), "--machine", "a-machine", "--cache", str(inputs / "cache")]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_publish_measures_what_is_named_into_files_of_their_own(inputs: Path) -> None:
    words = ["--rounds", "1", "--quick", "--engines", "fastcompress,tiktoken", "encode-lists", "worst"]
    process = published(inputs, *words)
    assert process.returncode == 0, process.stderr
    folder = inputs / "results" / "a-machine"
    names = {match["name"]: path for path in folder.iterdir() if (match := table.RESULT.fullmatch(path.name))}
    assert names.keys() == {"encode-lists", "worst"}
    stored = json.loads(names["encode-lists"].read_text())
    assert {(cell["engine"], cell["output"]) for cell in stored["cells"]} == {
        ("fastcompress", "list"),
        ("tiktoken", "list"),
    }
    assert "--name encode-lists" in stored["command"], "the recorded command makes this file again"
    assert "--rounds 1" in stored["command"]
    assert str(inputs) not in stored["command"].replace(str(inputs / "text.txt"), "")
    assert {cell["corpus"] for cell in json.loads(names["worst"].read_text())["cells"]} > {"digits", "spaces"}

    again = published(inputs, *words)  # on the same day: nothing is missing, so nothing is measured
    assert again.returncode == 0, again.stderr
    assert json.loads(names["encode-lists"].read_text())["cells"] == stored["cells"]


@pytest.mark.slow
def test_publish_goes_on_after_a_failure_and_names_it(inputs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FASTCOMPRESS_DATA", raising=False)
    process = published(inputs, "--quick", "--engines", "fastcompress", "codebook", "load")
    assert process.returncode == 1
    assert "Error: codebook: the published corpora are in $FASTCOMPRESS_DATA" in process.stderr
    assert list((inputs / "results" / "a-machine").glob("*-load.json"))


LIBDEFLATE = """
struct libdeflate_compressor;
libdeflate_compressor* libdeflate_alloc_compressor(int);
unsigned long libdeflate_deflate_compress_bound(libdeflate_compressor*, unsigned long);
unsigned long libdeflate_deflate_compress(libdeflate_compressor*, const void*, unsigned long, void*, unsigned long);
void libdeflate_free_compressor(libdeflate_compressor*);
#define LIBDEFLATE_VERSION_STRING "1"
"""


def test_the_lz77_program_compiles(tmp_path: Path) -> None:
    """Against declarations of libdeflate's functions, so that the test needs no headers of it."""
    compiler = os.environ.get("CXX") or shutil.which("c++")
    if not compiler:
        pytest.skip("needs a C++ compiler")
    (tmp_path / "libdeflate.h").write_text(LIBDEFLATE)
    flags = ["-std=c++20", "-fsyntax-only", "-Wall", "-Werror", f"-I{tmp_path}", f"-I{ROOT / 'cpp'}"]
    command = [*compiler.split(), *flags, str(ROOT / "benchmarks" / "lz77.cc")]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr


def test_publish_refuses_what_it_does_not_know(inputs: Path) -> None:
    for words in (["encode-3-threads"], ["--engines", "nobody"], ["--vocab-size", "3"]):
        assert published(inputs, *words).returncode == 2


def test_every_published_result_has_a_table_and_a_command() -> None:
    page = (ROOT / "benchmarks" / "README.md").read_text(encoding="utf-8")
    assert set(table.BLOCK.findall(page)) == {measurement.name for measurement in publish.PUBLISHED}
    for measurement in publish.PUBLISHED:
        command = run.main.commands[measurement.suite]
        words = publish.arguments(measurement, command, {"rounds": 2, "engines": ["rustbpe", "tiktoken"]})
        context = command.make_context(measurement.suite, words[1:])  # raises if an option is unknown
        assert context.params["rounds"] == 2
        assert context.params["neighbour"] is measurement.neighbour
        if "engines" in context.params:
            assert context.params["engines"] == (["rustbpe"] if measurement.suite == "train" else ["tiktoken"])
        assert f"`{measurement}`" in page
    with pytest.raises(click.UsageError):
        run.main.commands["encode"].make_context("encode", ["--no-such-option"])


def store(folder: Path, machine: str, name: str, rates: dict[str, float], **header: Any) -> None:
    """Write a results file with one round of encoding English."""
    output = "list" if "lists" in name else "numpy"
    fields = {"suite": "encode", "date": "2026-12-01", "commit": "abc", "build": "1", "inputs": {}, **header}
    fields["machine"] = {"cpu": CPUS[machine], "cores": 2, "vectors": ["avx2"], "python": "3.11"}
    results = Results(folder / machine / f"2026-12-01-{name}.json", fields)
    for engine, rate in rates.items():
        passes = {name: {"cpu": rate, "wall": rate} for name in ("cold", "unseen", "warm")}
        results.add((engine, *CELL, output, 1), {"exact": engine != "tokie", "load_average": 0.1, **passes})
    results.save()


@pytest.fixture
def two_machines(tmp_path: Path) -> Path:
    """Results of two machines, each without and with a neighbour; the Xeon beside its neighbour is the worst."""
    ratios = {("cpu-2-cores", False): 1.5, ("cpu-2-cores", True): 1.3, ("xeon-16-cores", False): 1.2}
    ratios["xeon-16-cores", True] = 1.1
    for (machine, beside), ratio in ratios.items():
        suffix = "-neighbour" if beside else ""
        rates = {"fastcompress": 100.0 * ratio, "fastokens": 100.0, "gigatoken": 80.0, "tokie": 900.0, "tiktoken": 5.0}
        store(tmp_path, machine, f"encode{suffix}", rates, neighbour=beside)
        store(tmp_path, machine, f"encode-lists{suffix}", {"tokenizers": 3.0, "tiktoken": 4.0}, neighbour=beside)
    return tmp_path


def test_the_readme_states_the_worst_of_two_machines_with_and_without_a_neighbour(two_machines: Path) -> None:
    text = table.block(two_machines, "summary")
    assert "| BPE encoding, English | fastokens | cold 1.10, unseen 1.10, warm 1.10 |" in text
    for place in ("AMD EPYC (2 cores)", "Intel Xeon (2 cores)", "Intel Xeon (2 cores), beside a busy neighbour"):
        assert f"{place}: encode" in text
    page = table.block(two_machines, "encode")
    assert "| **1.10** fastokens (110); A 1.50, B 1.30, C 1.20, D 1.10 |" in page
    assert "- **D**: 2026-12-01, 2 cores of Intel Xeon" in page


def test_tables_of_several_conditions_carry_their_letters(tmp_path: Path) -> None:
    for machine, cpu in CPUS.items():
        path = tmp_path / machine / "2026-12-01-train.json"
        header = {"suite": "train", "date": "2026-12-01", "commit": "abc", "build": "1", "inputs": {"text": "9 bytes"}}
        header["machine"] = {"cpu": cpu, "cores": 2, "vectors": ["avx2"], "python": "3.11"}
        results = Results(path, header)
        for engine, seconds in (("fastcompress", 1.0), ("rustbpe", 8.0 if cpu == "AMD EPYC" else 6.0)):
            times = {"seconds": {"cpu": seconds, "wall": seconds}, "memory": {"peak MB": 9.0}, "load_average": 0.1}
            results.add((engine, "", "text", "", "500", 1), times)
        results.save()
    text = table.block(tmp_path, "train")
    assert "\n\n**A**:\n\n500 tokens" in text
    assert "\n\n**B**:\n\n500 tokens" in text
    assert "1 thread: **6.00** rustbpe (CPU time); A 8.00, B 6.00." in text


def test_the_picture_shows_the_worst_condition_and_all_five_tokenizers(two_machines: Path) -> None:
    header, found = make_picture.least_ahead(two_machines)
    assert header["machine"]["cpu"] == "Intel Xeon"
    assert header["neighbour"] is True
    assert found == {
        "fastcompress": (pytest.approx(110.0), "numpy"),
        "fastokens": (100.0, "numpy"),
        "gigatoken": (80.0, "numpy"),
        "tiktoken": (5.0, "numpy"),
        "tokenizers": (3.0, "list"),
    }
    picture = make_picture.draw(header, found)
    for name in make_picture.ENGINES:
        assert f">{name}<" in picture
    assert "Intel Xeon, 2 cores, beside a busy neighbour" in picture
    assert "tokenizers: lists" in picture


def test_the_picture_leaves_out_an_engine_whose_ids_differ(tmp_path: Path) -> None:
    store(tmp_path, "cpu-2-cores", "encode", {"fastcompress": 9.0, "tiktoken": 3.0, "fastokens": 99.0})
    store(tmp_path, "cpu-2-cores", "encode-lists", {"gigatoken": 7.0})  # it returns arrays, which were not measured
    path = tmp_path / "cpu-2-cores" / "2026-12-01-encode.json"
    results = Results.open(path)
    results.cells[("fastokens", *CELL, "numpy", 1)]["exact"] = False
    results.save()
    assert make_picture.least_ahead(tmp_path)[1].keys() == {"fastcompress", "tiktoken"}
