"""The public names of a package, imported from its modules when they are first used.

In the package's `__init__.py`, where importing a module may be dear (torch):

    __all__ = ["TrainConfig", "train"]
    show(__name__, {"TrainConfig": "config", "train": "train"})

A function may have the name of the module that it is in: then the package shows the function, whatever is imported
first. `from fastcompress.training.train import train` finds the module all the same.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from types import ModuleType
from typing import Any


class _Front(ModuleType):
    """A package with names that are found in its modules."""

    _modules: Mapping[str, str] = {}

    def __getattr__(self, name: str) -> Any:
        if name not in self._modules:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        return getattr(importlib.import_module(f"{self.__name__}.{self._modules[name]}"), name)

    def __setattr__(self, name: str, value: object) -> None:
        # Importing a submodule makes it an attribute of its package; where a function has its name, the function wins.
        if not (name in self._modules and isinstance(value, ModuleType)):
            super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._modules})


def show(package: str, modules: Mapping[str, str]) -> None:
    """Give a package public names.

    Args:
        package: Its `__name__`.
        modules: Public name to the module of the package that defines it.
    """
    front = sys.modules[package]
    front.__class__ = _Front
    vars(front)["_modules"] = dict(modules)
