"""Old names still work for a version, and each use of one warns and says the new name."""

from __future__ import annotations

import importlib
import inspect
import sys
import types

import pytest

from fastcompress._deprecated import RenamedAttribute, renamed_argument, renamed_names


class Sample:
    def new_method(self) -> str:
        return "method"

    @property
    def new_property(self) -> str:
        return "property"

    @classmethod
    def new_class_method(cls) -> str:
        return cls.__name__

    old_method = RenamedAttribute("new_method")
    old_property = RenamedAttribute("new_property")
    old_class_method = RenamedAttribute("new_class_method")


def test_names_of_a_module(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("sample")
    module.new = object()  # type: ignore[attr-defined]
    module.__getattr__ = renamed_names("sample", {"old": "new"})  # type: ignore[method-assign]
    monkeypatch.setitem(sys.modules, "sample", module)
    with pytest.warns(DeprecationWarning, match=r"^sample\.old is deprecated; use new$") as warned:
        assert module.old is module.new
    assert warned[0].filename == __file__
    with pytest.raises(AttributeError, match="module 'sample' has no attribute 'other'"):
        _ = module.other
    assert "old" not in dir(module)


@pytest.mark.parametrize("module", ["archive", "data.chat", "data.shards", "models.blocks", "training.loop"], ids=str)
def test_old_names_of_the_package_lead_somewhere(module: str) -> None:
    owner = importlib.import_module(f"fastcompress.{module}")
    renamed = inspect.getclosurevars(owner.__getattr__).nonlocals["renamed"]
    assert renamed
    for name in renamed:
        with pytest.warns(DeprecationWarning, match=f"{name} is deprecated"):
            assert getattr(owner, name) is not None


def test_attributes_of_a_class() -> None:
    with pytest.warns(DeprecationWarning, match=r"^Sample\.old_method is deprecated; use new_method$") as warned:
        assert Sample().old_method() == "method"
    assert warned[0].filename == __file__
    with pytest.warns(DeprecationWarning, match="use new_property"):
        assert Sample().old_property == "property"
    with pytest.warns(DeprecationWarning, match="use new_class_method"):
        assert Sample.old_class_method() == "Sample"


def test_arguments_of_a_function() -> None:
    def call(new: int | None = None, old: int | None = None) -> int | None:
        return renamed_argument("old", old, "new", new)

    assert call() is None
    assert call(3) == 3
    with pytest.warns(DeprecationWarning, match="^old is deprecated; use new$"):
        assert call(old=4) == 4
    with pytest.raises(TypeError, match="old is the old name of new"):
        call(3, 4)
