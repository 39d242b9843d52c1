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
    from fastcompress import arithmetic, equal_info, lz77

__all__ = ["BPE", "PretokenCounts", "__version__", "arithmetic", "equal_info", "lz77", "pretokenizer"]

_LAZY_MODULES = ("arithmetic", "equal_info", "lz77")


def __getattr__(name: str) -> Any:
    """What is imported when it is first asked for, so that `import fastcompress` stays quick."""
    if name in _LAZY_MODULES:
        return importlib.import_module(f"fastcompress.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
