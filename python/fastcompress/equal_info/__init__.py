"""Equal-info windows: every token stands for about the same number of bits under a model.

Of at most 16 bits a token, that is a fixed set of strings, `Codebook`, and encoding is a greedy longest match: no model
runs, and every window decodes to exactly what it encoded. `paper` has the windows as they were first published, which
do not always, for comparison.

>>> book = Codebook.train(b"to be or not to be, that is the question: " * 20, bits=9)
>>> book.decode(book.encode(b"not to be")) == b"not to be"
True
"""

from fastcompress.equal_info.codebook import Codebook
from fastcompress.equal_info.models import CountModel, NextByteModel

__all__ = ["Codebook", "CountModel", "NextByteModel"]
