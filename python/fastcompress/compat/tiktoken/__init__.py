"""A drop-in for tiktoken 0.14: the same ids, methods, properties and types of errors.

>>> from fastcompress.compat import tiktoken
>>> enc = tiktoken.get_encoding("cl100k_base")
>>> enc.decode(enc.encode("hello world"))
'hello world'

Rank files come from tiktoken's own cache folder, or from the network into it (`fastcompress.formats.rank_cache`).
Plugins of the namespace package ``tiktoken_ext`` are found as tiktoken finds them.

Known differences, all of them where tiktoken raises or gives what it does not promise: lone surrogates are replaced by
every method that takes a text, not by two; errors have other messages, and are also errors of `fastcompress.errors`; a
vocabulary must hold the 256 single bytes, and ids are below 2**21.
"""

from __future__ import annotations

from fastcompress.compat.tiktoken.encoding import Encoding
from fastcompress.compat.tiktoken.models import encoding_for_model, encoding_name_for_model
from fastcompress.compat.tiktoken.registry import get_encoding, list_encoding_names

__all__ = ["Encoding", "encoding_for_model", "encoding_name_for_model", "get_encoding", "list_encoding_names"]
