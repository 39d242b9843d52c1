"""Settings stored as JSON or typed by users: building and checking a configuration."""

from __future__ import annotations

import dataclasses
import difflib
import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args

from fastcompress.errors import ConfigError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Settings = TypeVar("Settings")
Float8Kind = Literal["off", "head", "normed", "all"]  # of a model's kernels and of a machine's settings


def settings_from_json(cls: type[Settings], fields: Mapping[str, Any], kind: str) -> Settings:
    """Build a dataclass of settings from its fields.

    Args:
        cls: The dataclass, which checks the values.
        fields: Values by name; missing settings have their defaults.
        kind: The kind of settings in messages: "model" or "training".

    Raises:
        ConfigError: There is no setting of a given name.
    """
    known = [field.name for field in dataclasses.fields(cls) if field.init]  # type: ignore[arg-type]
    for name in fields:
        if name not in known:
            raise unknown_setting(name, known, kind)
    return cls(**fields)


def unknown_setting(name: str, known: Iterable[str], kind: str) -> ConfigError:
    """Make the error for an unknown setting; it suggests the nearest name."""
    names = sorted(known)
    nearest = difflib.get_close_matches(name, names, n=1)
    guess = f" (did you mean {nearest[0]!r}?)" if nearest else ""
    return ConfigError(f"unknown {kind} setting {name!r}{guess}; known: {', '.join(names)}")


def check_choices(settings: object, **choices: Any) -> None:
    """Check settings against the Literal types of their names. Raises ConfigError."""
    for name, values in choices.items():
        if getattr(settings, name) not in get_args(values):
            raise ConfigError(f"{name} must be one of {', '.join(get_args(values))}, not {getattr(settings, name)!r}")


def check_counts(settings: object, *names: str, may_lack: tuple[str, ...] = ()) -> None:
    """Check that settings are whole numbers of at least 1, or None where they may be. Raises ConfigError."""
    for name in names:
        value = getattr(settings, name)
        if value is None and name in may_lack:
            continue
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise ConfigError(f"{name} must be a whole number of at least 1, not {value!r}")


def whole_numbers(settings: object, name: str, least: int) -> tuple[int, ...]:
    """Return a setting that lists different whole numbers of at least ``least``. Raises ConfigError if it does not."""
    numbers = getattr(settings, name)
    if not isinstance(numbers, (tuple, list)) or len(set(map(repr, numbers))) < len(numbers):
        raise ConfigError(f"{name} is {numbers!r}; it must be a list of different whole numbers")
    if any(not isinstance(n, int) or isinstance(n, bool) or n < least for n in numbers):
        raise ConfigError(f"{name} is {numbers!r}; its numbers must be whole and at least {least}")
    return tuple(numbers)


def check_positive(settings: object, *names: str, may_lack: tuple[str, ...] = ()) -> None:
    """Check that settings are finite and more than 0, or None where they may be. Raises ConfigError."""
    for name in names:
        value = getattr(settings, name)
        if value is None and name in may_lack:
            continue
        if not (is_number(value) and 0.0 < value < math.inf):
            raise ConfigError(f"{name} must be more than 0 and finite, not {value!r}")


def check_flags(settings: DataclassInstance) -> None:
    """Check that all settings declared as ``bool`` are true or false. Raises ConfigError."""
    for field in dataclasses.fields(settings):
        value = getattr(settings, field.name)
        if field.type in (bool, "bool") and not isinstance(value, bool):
            raise ConfigError(f"{field.name} must be true or false, not {value!r}")


def check_fractions(settings: object, *names: str) -> None:
    """Check that settings are in [0, 1). Raises ConfigError."""
    for name in names:
        value = getattr(settings, name)
        if not (is_number(value) and 0.0 <= value < 1.0):
            raise ConfigError(f"{name} must be in [0, 1), not {value!r}")


def is_number(value: object) -> bool:
    """Return whether a value is an int or a float, but not a bool."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)
