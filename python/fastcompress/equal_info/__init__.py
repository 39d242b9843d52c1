"""Equal-info windows: tokens that all carry about the same number of bits under a model.

With at most 16 bits per token, the tokens are a fixed set of strings, a `Codebook`. Encoding is then a greedy longest
match, for which no model has to run, and decoding gives back exactly the text. For comparison, `paper` implements the
windows as they were first published, which do not always decode to the text that they encode.

>>> book = Codebook.train(b"to be or not to be, that is the question: " * 20, bits=9)
>>> book.decode(book.encode(b"not to be")) == b"not to be"
True
"""

from fastcompress.equal_info.canonical_steps import CanonicalSteps
from fastcompress.equal_info.codebook import Codebook
from fastcompress.equal_info.models import CountModel, NextByteModel

__all__ = ["CanonicalSteps", "Codebook", "CountModel", "NextByteModel"]
