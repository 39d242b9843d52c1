"""The examples in the docstrings of every module: each is run, and prints what it says."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import fastcompress

MODULES = [
    info.name
    for info in pkgutil.walk_packages(fastcompress.__path__, "fastcompress.")
    if not info.name.endswith("__main__") and not info.name.startswith("fastcompress._core")
]


@pytest.mark.parametrize("name", ["fastcompress", *MODULES])
def test_examples(name: str, request: pytest.FixtureRequest) -> None:
    if name == "fastcompress.compat.tiktoken":  # whose example uses a published vocabulary
        request.getfixturevalue("tiktoken_cache")
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        pytest.skip(f"needs {error.name}")
    finder = doctest.DocTestFinder(exclude_empty=True)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    for test in finder.find(module, name):
        runner.run(test)
    assert runner.summarize(verbose=False).failed == 0
