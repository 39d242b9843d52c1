"""fastcompress: text to dense tokens, exactly and fast.

>>> import fastcompress as fc
>>> tok = fc.BPE.train(open("corpus.txt", "rb").read(), vocab_size=4096)
>>> tok.decode(tok.encode("hello")) == "hello"
True
"""

import importlib
from typing import TYPE_CHECKING, Any

from fastcompress import pretokenizer
from fastcompress._core import __version__
from fastcompress.bpe import BPE, PretokenCounts

if TYPE_CHECKING:
    from fastcompress import archive, arithmetic, equal_info, lz77
    from fastcompress.archive import compress, decompress

__all__ = [
    "BPE",
    "PretokenCounts",
    "__version__",
    "archive",
    "arithmetic",
    "compress",
    "decompress",
    "equal_info",
    "lz77",
    "pretokenizer",
]


def __getattr__(name: str) -> Any:
    """Modules, and functions of them, imported when first asked for, so that `import fastcompress` stays quick."""
    if name in ("archive", "arithmetic", "equal_info", "lz77"):
        return importlib.import_module(f"fastcompress.{name}")
    if name in ("compress", "decompress"):
        return getattr(importlib.import_module("fastcompress.archive"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
