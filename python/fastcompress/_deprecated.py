"""Old public names, which still work for one version but issue a DeprecationWarning.

In a module, after everything else:

    __getattr__ = renamed_names(__name__, {"old_function": "new_function"})

In a class, for methods and properties alike (`staticmethod` and `classmethod` too):

    old_name = RenamedAttribute("new_name")

For a keyword argument whose default is None:

    num_rounds = renamed_argument("refinements", refinements, "num_rounds", num_rounds)
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

_Value = TypeVar("_Value")


def renamed_names(module: str, renamed: Mapping[str, str]) -> Callable[[str], Any]:
    """Return a `__getattr__` for a module that resolves its old names.

    Args:
        module: The module's `__name__`.
        renamed: Old name to new name, in the same module, or to "package.module.name" where it has moved.
    """

    def __getattr__(name: str) -> Any:
        if name not in renamed:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        _warn(f"{module}.{name}", renamed[name])
        home, _, new_name = renamed[name].rpartition(".")
        return getattr(importlib.import_module(home or module), new_name)

    return __getattr__


class RenamedAttribute:
    """The old name of a method or property of the same class."""

    def __init__(self, new_name: str) -> None:
        self._new_name = new_name
        self.__doc__ = f"Deprecated: use `{new_name}`."

    def __set_name__(self, owner: type, name: str) -> None:
        self._old_name = f"{owner.__name__}.{name}"

    def __get__(self, instance: object, owner: type) -> Any:
        _warn(self._old_name, self._new_name)
        return getattr(owner if instance is None else instance, self._new_name)


def renamed_argument(old_name: str, old_value: _Value | None, new_name: str, new_value: _Value | None) -> _Value | None:
    """Return the value of an argument that may have been passed under its old name, or None if it was not passed.

    Args:
        old_name: The old name.
        old_value: The value passed under the old name, or None.
        new_name: The new name.
        new_value: The value passed under the new name, or None.

    Raises:
        TypeError: Both names were passed.
    """
    if old_value is None:
        return new_value
    if new_value is not None:
        raise TypeError(f"{old_name} is the old name of {new_name}; pass {new_name} alone")
    _warn(old_name, new_name)
    return old_value


def _warn(old_name: str, new_name: str) -> None:
    warnings.warn(f"{old_name} is deprecated; use {new_name}", DeprecationWarning, stacklevel=3)
