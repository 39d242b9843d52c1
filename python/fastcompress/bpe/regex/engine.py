"""The `regex` package, which runs custom patterns; it is imported when the first one is used."""

from __future__ import annotations

from typing import Any

from fastcompress import pretokenizer
from fastcompress.errors import ConfigError


def engine() -> Any:
    """Return the module `regex`. Raises ConfigError if it is not installed."""
    try:
        import regex
    except ModuleNotFoundError:
        raise ConfigError(
            "a pattern without a name needs the regex package; pip install regex, or use a named pattern "
            f"({', '.join(pretokenizer.PATTERNS)})"
        ) from None
    return regex
