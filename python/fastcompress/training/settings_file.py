"""Settings as text: TOML files, and assignments such as "optimizer.learning_rate=0.01" on a command line."""

from __future__ import annotations

import importlib
import importlib.util
import json
from pathlib import Path
from typing import Any

from fastcompress.errors import ConfigError, DataError


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file.

    Raises:
        DataError: The file cannot be read.
        ConfigError: It is not TOML, or this Python cannot read TOML.
    """
    name = next((name for name in ("tomllib", "tomli") if importlib.util.find_spec(name) is not None), None)
    if name is None:
        raise ConfigError(f"{path}: settings in TOML need Python 3.11, or tomli; give them as options instead")
    toml = importlib.import_module(name)
    try:
        settings: dict[str, Any] = toml.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}); name a file of settings") from error
    except ValueError as error:
        raise ConfigError(f"{path}: is not TOML ({error}); see docs/training.md for an example") from error
    return settings


def parse_setting(assignment: str) -> tuple[str, Any]:
    """Split "name=value". The value is parsed as JSON if possible ("0.01", "true"); "none" is None.

    Raises ConfigError if there is no "=".

    >>> parse_setting("optimizer.learning_rate=1e-3")
    ('optimizer.learning_rate', 0.001)
    """
    name, equals, text = assignment.partition("=")
    if not (name and equals):
        raise ConfigError(f"{assignment!r} is not a setting; write NAME=VALUE")
    if text.lower() in ("none", "null"):
        return name.strip(), None
    try:
        return name.strip(), json.loads(text)
    except ValueError:
        return name.strip(), text


def lay_over(settings: dict[str, Any], name: str, value: Any) -> None:
    """Set "section.name", or "name", in nested settings."""
    *sections, last = name.split(".")
    for section in sections:
        settings = settings.setdefault(section, {})
        if not isinstance(settings, dict):
            raise ConfigError(f"{section} is {settings!r}; it must be a section to hold {last}")
    settings[last] = value
