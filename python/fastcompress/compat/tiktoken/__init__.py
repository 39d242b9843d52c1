"""A drop-in for tiktoken 0.14: the same ids, methods, properties and types of errors.

>>> from fastcompress.compat import tiktoken
>>> enc = tiktoken.get_encoding("cl100k_base")
>>> enc.decode(enc.encode("hello world"))
'hello world'

The modules are tiktoken's, too: `core`, `load`, `model`, `registry`. Rank files come from tiktoken's own cache folder,
or from the network into it (`fastcompress.formats.rank_cache`). Plugins of the namespace package ``tiktoken_ext`` are
found as tiktoken finds them.

Known differences, all of them where tiktoken raises or gives what it does not promise: surrogates are replaced by
every method that takes a text, not by two; errors have other messages, and are also errors of
`fastcompress.errors`; a vocabulary must hold the 256 single bytes, and ids are below 2**21; `load` does not put local
files into the cache, where a changed file would go unnoticed.
"""

from __future__ import annotations

from fastcompress.compat.tiktoken import core, load, model, registry
from fastcompress.compat.tiktoken.core import Encoding
from fastcompress.compat.tiktoken.model import encoding_for_model, encoding_name_for_model
from fastcompress.compat.tiktoken.registry import get_encoding, list_encoding_names

__version__ = "0.14.0"
"""The version of tiktoken whose behaviour this is."""

__all__ = [
    "Encoding",
    "__version__",
    "core",
    "encoding_for_model",
    "encoding_name_for_model",
    "get_encoding",
    "list_encoding_names",
    "load",
    "model",
    "registry",
]
