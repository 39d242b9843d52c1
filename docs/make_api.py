"""Write API pages made from docstrings: `python docs/make_api.py FOLDER` makes a Markdown page for each public module.

The pages are not committed. Native classes and functions are documented from their own docstrings and stubs' names.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fastcompress

# Modules whose names are for callers. Models, training, evaluation and study need torch (the extra `train`).
SKIPPED = ("_core", "cli", "compat.tiktoken.", "formats.tokenizer_json.", "study.report_template")
WITH_MODULES = ("data.", "models.", "training.", "evaluation.", "study.")  # their packages export nothing themselves
SECTION = re.compile(r"(Args|Attributes|Returns|Raises|Yields):")
ENTRY = re.compile(r" {4}([\w*][\w*., ]*): (.*)")


def public_modules() -> Iterator[str]:
    """Yield the names of the modules that have pages: packages, the modules at the top, and those of some packages."""
    yield "fastcompress"
    for found in pkgutil.walk_packages(fastcompress.__path__, "fastcompress."):
        inner = found.name.removeprefix("fastcompress.")
        is_private = any(part.startswith("_") for part in inner.split("."))
        is_wanted = found.ispkg or "." not in inner or inner.startswith(WITH_MODULES)
        if is_wanted and not is_private and not inner.startswith(SKIPPED):
            yield found.name


def public_names(module: Any) -> list[str]:
    """Return the names that a module exports: `__all__`, or else the classes and functions that it defines."""
    if hasattr(module, "__all__"):
        return sorted(module.__all__, key=str.lower)
    defined = [name for name, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__]
    return sorted((name for name in defined if not name.startswith("_")), key=str.lower)


def signature(value: Any) -> str:
    """Return the parameters of something that can be called; native code may have none to show."""
    try:
        return re.sub(r"(: |-> )'([^']*)'", r"\1\2", str(inspect.signature(value))).replace("fastcompress.", "")
    except (TypeError, ValueError):
        return "(...)"


def doc(value: Any) -> str:
    """Return a docstring as Markdown: examples become code blocks, and what a section lists becomes a list."""
    lines: list[str] = []
    is_code = is_section = False
    for line in (inspect.getdoc(value) or "").splitlines():
        begins = line.lstrip().startswith(">>>")
        if begins and not is_code:
            lines.append("```python")
        if is_code and not line.strip():
            lines.append("```")
        is_code = begins or (is_code and bool(line.strip()))
        is_section = bool(SECTION.fullmatch(line)) or (is_section and (line.startswith(" ") or not line))
        entry = ENTRY.fullmatch(line) if is_section else None
        if SECTION.fullmatch(line):
            lines += [f"**{line}**", ""]
        elif entry:
            lines.append(f"- `{entry[1]}`: {entry[2]}")
        else:
            lines.append(line if is_code else (line.strip() if is_section else line).replace("``", "`"))
    return "\n".join([*lines, "```"] if is_code else lines)


def members(value: type) -> Iterator[str]:
    """Yield a section for each public method and property of a class, those of private bases included."""
    seen = set()
    for base in value.__mro__:
        if base.__module__ in ("builtins", "typing"):
            continue
        for name, member in vars(base).items():
            if name.startswith("_") or name in seen:
                continue
            seen.add(name)
            plain = getattr(value, name, member)
            if isinstance(member, property):
                yield f"### `{name}`\n\n{doc(member)}"
            elif inspect.isroutine(plain):
                yield f"### `{name}{signature(plain)}`\n\n{doc(plain)}"


def page(name: str) -> str:
    """Return the page of a module."""
    module = importlib.import_module(name)
    parts = [f"# {name}", doc(module)]
    for public in public_names(module):
        value = getattr(module, public)
        if inspect.isclass(value):
            parts += [f"## class `{public}`", f"`{public}{signature(value)}`", doc(value), *members(value)]
        elif inspect.isroutine(value):
            parts += [f"## `{public}`", f"`{public}{signature(value)}`", doc(value)]
        elif inspect.ismodule(value):
            parts.append(f"- module `{public}`: [{value.__name__}]({value.__name__}.md)")
        else:
            parts.append(f"- `{public}` = `{repr(value)[:100]}`")
    return "\n\n".join(part for part in parts if part) + "\n"


def main() -> None:
    """Write the pages, and an index of them."""
    if len(sys.argv) != 2:
        sys.exit("usage: python docs/make_api.py FOLDER")
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    lines, left_out = [], []
    for name in public_modules():
        try:
            (folder / f"{name}.md").write_text(page(name), encoding="utf-8")
        except ModuleNotFoundError as error:  # torch, or what an extra brings
            left_out.append(f"{name} (needs {error.name})")
            continue
        summary = (inspect.getdoc(sys.modules[name]) or "").partition("\n")[0]
        lines.append(f"- [{name}]({name}.md): {summary}")
    index = ["# API", *lines, *([f"Left out: {', '.join(left_out)}."] if left_out else [])]
    (folder / "README.md").write_text("\n".join(index) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
