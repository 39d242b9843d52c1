"""Every example of README.md and docs/ runs, links lead somewhere, and the API pages have every public name.

The ```python blocks of a page run in order, in one namespace and one temporary folder. A block that begins with ">>>"
must print what it shows. Of ```sh blocks, the commands that begin with `fastcompress` run. A block after the comment
<!-- not run: reason --> does not run.
"""

from __future__ import annotations

import doctest
import importlib
import inspect
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.forked_commands import Server

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"(<!-- not run: [^>]+ -->\s*)?^```(python|sh)\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)|<img [^>]*src=\"([^\"]+)\"")
API_MODULES = (
    "",
    ".lz77",
    ".arithmetic",
    ".equal_info",
    ".greedy_dictionary",
    ".archive",
    ".codec",
    ".pretokenizer",
    ".errors",
)


def blocks(page: Path, language: str) -> list[str]:
    found = BLOCK.findall(page.read_text(encoding="utf-8"))
    return [code for skip, its_language, code in found if its_language == language and not skip]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A temporary folder to be in, with the files that examples read: a text and a rank file of our own."""
    from fastcompress import BPE

    words = [
        f"Line {number}: to be or not to be, that is the question; naïve café {number * number}."
        for number in range(900)
    ]
    text = "\n".join(words)
    (tmp_path / "book.txt").write_text(text, encoding="utf-8")
    bpe = BPE.train(text, vocab_size=500)
    bpe.to_huggingface(tmp_path / "tokenizer.json")
    bpe.to_tiktoken(tmp_path / "ranks.tiktoken")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_examples_run_and_print_what_they_show(page: Path, folder: Path) -> None:
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for number, code in enumerate(blocks(page, "python"), 1):
        where = f"{page.name}, python block {number}"
        if not code.startswith(">>>"):
            exec(compile(code, where, "exec"), namespace)
            continue
        example = doctest.DocTestParser().get_doctest(code, namespace, where, str(page), 0)
        report: list[str] = []
        runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
        runner.run(example, out=report.append, clear_globs=False)
        assert not report, "".join(report)
        namespace = example.globs


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_shell_examples_run(page: Path, folder: Path, forked_commands: Server) -> None:
    run = forked_commands.shell_function() + "set -euo pipefail\n"
    for code in blocks(page, "sh"):
        if "fastcompress " not in code or "pip install" in code:
            continue
        process = subprocess.run(["bash", "-c", run + code], capture_output=True, text=True, check=False, timeout=120)
        assert process.returncode == 0, f"{code}\n{process.stderr}"


def test_pages_have_examples() -> None:
    """The patterns above find what is there."""
    assert sum(len(blocks(page, "python")) for page in PAGES) >= 20
    assert sum("fastcompress " in code for page in PAGES for code in blocks(page, "sh")) >= 5


@pytest.mark.parametrize(
    "page", [*PAGES, ROOT / "benchmarks" / "README.md"], ids=lambda page: f"{page.parent.name}-{page.name}"
)
def test_links_lead_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for groups in LINK.findall(text):
        target = "".join(groups)
        if target.startswith(("http:", "https:")):
            continue
        name, _, anchor = target.partition("#")
        path = (page.parent / name).resolve() if name else page
        assert path.exists(), f"{page.name} links to {target}"
        if anchor:
            headings = re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
            slugs = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
            assert anchor in slugs, f"{page.name} links to {target}"


def test_every_page_of_docs_is_in_the_index() -> None:
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    for page in (ROOT / "docs").glob("*.md"):
        assert page.name == "README.md" or f"({page.name})" in index


def test_the_two_commands_of_the_readme_stand_on_lines_of_their_own() -> None:
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    assert "pip install '.[train]' && fastcompress study quick" in lines
    assert "pip install '.[test]' && pytest" in lines
    assert len(lines) <= 150, "the README is for newcomers; details belong into docs/"


def test_the_picture_is_drawn_from_the_committed_results(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "docs" / "make_picture.py"), str(tmp_path / "speed.svg")]
    subprocess.run(command, check=True, env=os.environ)
    drawn = (tmp_path / "speed.svg").read_text(encoding="utf-8")
    assert drawn == (ROOT / "docs" / "speed.svg").read_text(encoding="utf-8"), "run: python docs/make_picture.py"
    for name in ("fastcompress", "tiktoken", "gigatoken", "fastokens"):
        assert f">{name}<" in drawn


@pytest.mark.filterwarnings("ignore:.*is deprecated:DeprecationWarning")  # old names are looked at, too
def test_the_api_pages_have_every_public_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["make_api.py", str(tmp_path)])
    runpy.run_path(str(ROOT / "docs" / "make_api.py"), run_name="__main__")  # not as a process, which would load torch
    assert (tmp_path / "README.md").exists()
    for name in API_MODULES:
        module = importlib.import_module(f"fastcompress{name}")
        text = (tmp_path / f"fastcompress{name}.md").read_text(encoding="utf-8")
        public = getattr(module, "__all__", None) or [
            key for key, value in vars(module).items() if inspect.isclass(value) and value.__module__ == module.__name__
        ]
        for public_name in public:
            assert re.search(
                rf"^## .*`{re.escape(public_name)}`|^- .*`{re.escape(public_name)}`", text, re.MULTILINE
            ), f"{module.__name__}.{public_name}"
    bpe = (tmp_path / "fastcompress.md").read_text(encoding="utf-8")
    for method in ("train", "encode", "decode", "from_tiktoken", "encode_batch"):
        assert re.search(rf"^### `{method}\(", bpe, re.MULTILINE), method
