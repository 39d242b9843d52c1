"""fastcompress: text to dense tokens, exactly and fast.

>>> import fastcompress as fc
>>> tok = fc.BPE.train(open("corpus.txt", "rb").read(), vocab_size=4096)
>>> tok.decode(tok.encode("hello")) == "hello"
True
"""

from typing import TYPE_CHECKING, Any

from fastcompress import pretokenizer
from fastcompress._core import __version__
from fastcompress.bpe import BPE, PretokenCounts

if TYPE_CHECKING:
    from fastcompress import equal_info, lz77

__all__ = ["BPE", "PretokenCounts", "__version__", "equal_info", "lz77", "pretokenizer"]


def __getattr__(name: str) -> Any:
    """`lz77` and `equal_info`, imported when they are first asked for, so that `import fastcompress` stays quick."""
    if name in ("equal_info", "lz77"):
        import importlib

        return importlib.import_module(f"fastcompress.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
