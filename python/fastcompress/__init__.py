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
    from fastcompress import lz77

__all__ = ["BPE", "PretokenCounts", "__version__", "lz77", "pretokenizer"]


def __getattr__(name: str) -> Any:
    """`lz77`, imported when it is first asked for, so that `import fastcompress` stays quick."""
    if name == "lz77":
        import fastcompress.lz77

        return fastcompress.lz77
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
