"""Settings that are kept as JSON: how a configuration is built from what was stored."""

from __future__ import annotations

import dataclasses
from typing import Any, TypeVar

from fastcompress.errors import ConfigError

Settings = TypeVar("Settings")


def settings_from_json(cls: type[Settings], fields: dict[str, Any], kind: str) -> Settings:
    """Build a dataclass of settings from its fields.

    Args:
        cls: The dataclass, which checks the values.
        fields: Values by name; a setting that is left out has its default.
        kind: The word for such a setting in messages: "model" or "training".

    Raises:
        ConfigError: A name is not that of a setting.
    """
    known = {field.name for field in dataclasses.fields(cls)}  # type: ignore[arg-type]
    unknown = sorted(set(fields) - known)
    if unknown:
        raise ConfigError(f"unknown {kind} setting {unknown[0]!r}; known: {', '.join(sorted(known))}")
    return cls(**fields)
