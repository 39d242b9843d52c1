"""Encodings by name: the published ones, and those of plugins."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from typing import Any

from fastcompress.bpe import BPE
from fastcompress.compat.tiktoken.encoding import Encoding
from fastcompress.errors import ConfigError
from fastcompress.formats.published_ranks import PUBLISHED_ENCODINGS
from fastcompress.pretokenizer import PATTERNS

_encodings: dict[str, Encoding] = {}


def get_encoding(encoding_name: str) -> Encoding:
    """The encoding of a name, the same object on every call.

    Raises ConfigError, a ValueError, for an unknown name; and what `BPE.from_tiktoken` raises when its rank file is
    neither cached nor to be downloaded. Threads may call it at once: there is no lock, so that a fork at the wrong
    moment cannot leave a child waiting, and of two that build the same encoding one wins.
    """
    if not isinstance(encoding_name, str):
        raise ConfigError(f"the name of an encoding is a str, not {encoding_name!r}")
    encoding = _encodings.get(encoding_name)
    return encoding if encoding is not None else _encodings.setdefault(encoding_name, _make(encoding_name))


def list_encoding_names() -> list[str]:
    """Every name that `get_encoding` knows."""
    return [*PUBLISHED_ENCODINGS, *_plugin_constructors()]


def is_registered(encoding: Encoding) -> bool:
    """Whether `get_encoding` gives this very object for its name."""
    return _encodings.get(encoding.name) is encoding


def _make(name: str) -> Encoding:
    published = PUBLISHED_ENCODINGS.get(name)
    if published is not None:
        tokenizer = BPE.from_tiktoken(name)
        return Encoding.of_tokenizer(
            name, tokenizer, pat_str=PATTERNS[published.pattern], special_tokens=dict(published.special_tokens)
        )
    constructor = _plugin_constructors().get(name)
    if constructor is None:
        raise ConfigError(f"unknown encoding {name!r}; the known ones are {', '.join(list_encoding_names())}")
    return Encoding(**constructor())


def _plugin_constructors() -> dict[str, Callable[[], dict[str, Any]]]:
    """What modules of the namespace package ``tiktoken_ext`` offer, besides the published encodings."""
    try:
        import tiktoken_ext  # type: ignore[import-not-found, import-untyped, unused-ignore]
    except ImportError:
        return {}
    found: dict[str, Callable[[], dict[str, Any]]] = {}
    for plugin in pkgutil.iter_modules(tiktoken_ext.__path__, "tiktoken_ext."):
        if plugin.name == "tiktoken_ext.openai_public":
            continue
        constructors = getattr(importlib.import_module(plugin.name), "ENCODING_CONSTRUCTORS", None)
        if constructors is None:
            raise ConfigError(f"the tiktoken plugin {plugin.name} does not define ENCODING_CONSTRUCTORS")
        for name in constructors:
            if name in found or name in PUBLISHED_ENCODINGS:
                raise ConfigError(f"the tiktoken plugin {plugin.name} defines {name!r}, which is defined already")
        found.update(constructors)
    return found
