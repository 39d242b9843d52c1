"""The trainer's packages show public names, import torch only when it is needed, and prefer functions to modules."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

FRONTS = ("data", "models", "training", "evaluation", "study")


@pytest.mark.parametrize("package", FRONTS)
def test_every_public_name_is_there(package: str) -> None:
    front = importlib.import_module(f"fastcompress.{package}")
    assert front.__doc__
    assert len(front.__all__) >= 6
    assert set(front.__all__) == set(front._modules)
    assert set(front.__all__) <= set(dir(front))
    for name in front.__all__:
        value = getattr(front, name)
        assert getattr(value, "__module__", front.__name__).startswith(("fastcompress.", "builtins"))
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = front.nothing


@pytest.mark.slow
def test_names_of_modules_are_their_functions_whatever_is_imported_first() -> None:
    script = (
        "import fastcompress.training.train, fastcompress.evaluation.generate\n"
        "from fastcompress.training import train, config\n"
        "from fastcompress.evaluation import generate\n"
        "from fastcompress.training.train import train as inner\n"
        "print(type(train).__name__, type(generate).__name__, train is inner, type(config).__name__)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "function function True module\n"


def test_fronts_and_settings_need_no_torch() -> None:
    script = "import sys; sys.modules['torch'] = None\n"
    script += "".join(f"import fastcompress.{package}\n" for package in FRONTS)
    script += "from fastcompress.data import RowLoader, TokenRows\nfrom fastcompress.training import TrainConfig\n"
    subprocess.run([sys.executable, "-c", script + "TrainConfig(steps=1)\n"], check=True)
