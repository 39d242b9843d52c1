"""Which token may come next in the encoding of a text by a codebook."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fastcompress._arguments import as_instance
from fastcompress._canonical import LastTokenStates
from fastcompress.equal_info.codebook import Codebook
from fastcompress.errors import ConfigError


class CanonicalSteps(LastTokenStates):
    """The tokens that are legal after each token of a codebook without a pattern.

    Every prefix of a string of a codebook is a string, too, so the longest match never ends where one more byte would
    give a string. A token is therefore legal after another if and only if its first byte does not extend that one
    (`Codebook.illegal_next_bytes`), and at the beginning all are. The state is the token before, plus one; 0 is the
    beginning of a text. Immutable; safe to share between threads.

    >>> book = Codebook.train(b"to be or not to be " * 20, bits=9)
    >>> steps = CanonicalSteps(book)
    >>> t, o = book.strings.index(b"t"), book.strings.index(b"o")
    >>> steps.is_legal(steps.INITIAL, o), steps.is_legal(steps.advance(steps.INITIAL, t), o)  # "to" is one string
    (True, False)
    """

    def __init__(self, codebook: Codebook) -> None:
        """Make the states of a codebook. Raises ConfigError if it has a pattern: there is no exact mask for it."""
        as_instance(codebook, Codebook, "codebook")
        if codebook.pattern is not None:
            raise ConfigError(
                f"the codebook has the pattern {codebook.pattern!r}; there is no exact mask for it, so train it with "
                "within_words instead"
            )
        super().__init__(codebook.num_tokens, codebook.num_tokens + 1)
        self._codebook = codebook
        self._first_bytes = np.array([string[0] for string in codebook.strings], np.uint8)  # uint8[num_tokens]

    def _after(self, tokens: npt.NDArray[np.int64], state: int) -> npt.NDArray[np.uint32]:
        return (tokens + 1).astype(np.uint32)

    def _rows(self, states: npt.NDArray[np.int64]) -> npt.NDArray[np.uint8]:
        illegal = self._codebook.illegal_next_bytes(np.maximum(states - 1, 0).astype(np.uint32))  # bool[n, 256]
        illegal[states == self.INITIAL] = False
        return np.packbits(~illegal[:, self._first_bytes], axis=1, bitorder="little")
