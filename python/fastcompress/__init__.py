"""fastcompress: text to dense tokens, exactly and fast.

>>> import fastcompress as fc
>>> tok = fc.BPE.train(open("corpus.txt", "rb").read(), vocab_size=4096)
>>> tok.decode(tok.encode("hello")) == "hello"
True
"""

from fastcompress import lz77, pretokenizer
from fastcompress._core import __version__
from fastcompress.bpe import BPE, PretokenCounts

__all__ = ["BPE", "PretokenCounts", "__version__", "lz77", "pretokenizer"]
