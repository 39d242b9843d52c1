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
    from fastcompress import archive, lz77
    from fastcompress.archive import compress, decompress

__all__ = [
    "BPE",
    "PretokenCounts",
    "__version__",
    "archive",
    "compress",
    "decompress",
    "lz77",
    "pretokenizer",
]


def __getattr__(name: str) -> Any:
    """Modules, and functions of them, imported when first asked for, so that `import fastcompress` stays quick."""
    if name == "lz77":
        import fastcompress.lz77

        return fastcompress.lz77
    if name in ("archive", "compress", "decompress"):
        import fastcompress.archive

        return fastcompress.archive if name == "archive" else getattr(fastcompress.archive, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
