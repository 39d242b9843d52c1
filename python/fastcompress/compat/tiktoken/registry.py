"""The drop-in for ``tiktoken.registry``: the published encodings and those of plugins, by name."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from typing import Any

from fastcompress.bpe import BPE
from fastcompress.compat.tiktoken.core import Encoding
from fastcompress.errors import ConfigError
from fastcompress.formats.published_ranks import PUBLISHED_ENCODINGS
from fastcompress.pretokenizer import PATTERNS

ENCODINGS: dict[str, Encoding] = {}
"""The encodings that `get_encoding` has made, by name."""


def get_encoding(encoding_name: str) -> Encoding:
    """Return the encoding of a name, the same object on every call.

    Any number of threads may call it. There is no lock, which a fork could leave locked in the child; if two threads
    build the same encoding, one of the results is kept.

    Raises:
        ConfigError: The name is unknown. A ValueError.
        MissingFileError: The rank file is neither cached nor can be downloaded.
    """
    if not isinstance(encoding_name, str):
        raise ConfigError(f"encoding_name is of type {type(encoding_name).__name__}; it must be a str")
    encoding = ENCODINGS.get(encoding_name)
    return encoding if encoding is not None else ENCODINGS.setdefault(encoding_name, _make(encoding_name))


def list_encoding_names() -> list[str]:
    """Return every name that `get_encoding` knows."""
    return [*PUBLISHED_ENCODINGS, *_plugin_constructors()]


def _make(name: str) -> Encoding:
    published = PUBLISHED_ENCODINGS.get(name)
    if published is not None:
        tokenizer = BPE.from_tiktoken(name)
        return Encoding.from_tokenizer(
            name,
            tokenizer,
            pat_str=PATTERNS[published.pattern],
            special_tokens=dict(published.special_tokens),
            get_by_name=get_encoding,
        )
    constructor = _plugin_constructors().get(name)
    if constructor is None:
        raise ConfigError(f"unknown encoding {name!r}; the known ones are {', '.join(list_encoding_names())}")
    encoding = Encoding(**constructor())
    encoding._get_by_name = get_encoding
    return encoding


def _plugin_constructors() -> dict[str, Callable[[], dict[str, Any]]]:
    """Return the constructors in the namespace package ``tiktoken_ext``, without those of the published encodings."""
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
