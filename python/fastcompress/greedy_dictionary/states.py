"""Which token may come next: the states of a greedy dictionary's encoder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fastcompress._arguments import as_integer
from fastcompress._canonical import checked_states
from fastcompress._core import greedy_dictionary as _core
from fastcompress.errors import DataError

if TYPE_CHECKING:
    from fastcompress.greedy_dictionary.dictionary import GreedyDictionary


class CanonicalStates:
    """The states of a greedy dictionary's encoder, and the tokens that are legal in each.

    A sequence of ids is the encoding of its bytes if and only if every id is legal in the state before it; a text may
    end in any state. So if a model gives probability to legal tokens and the end only, p(ids) = p(bytes). A state is
    a number in [0, num_states), and stands for the string of earlier tokens that later ones must not complete. There
    are at most as many as distinct prefixes of the strings. Immutable; safe to share between threads.

    >>> from fastcompress.greedy_dictionary import GreedyDictionary
    >>> words = GreedyDictionary.from_strings([bytes([b]) for b in range(256)] + [b"the"])
    >>> t, h, e, _, the = (words.strings.index(string) for string in (b"t", b"h", b"e", b" ", b"the"))
    >>> after_t = words.states.advance(words.states.INITIAL, t)
    >>> after_th = words.states.advance(after_t, h)
    >>> words.states.is_legal(after_th, e), words.states.is_legal(after_t, e)
    (False, True)
    """

    INITIAL = 0
    """The state at the beginning of a text, and wherever later tokens cannot complete anything."""

    def __init__(self, dictionary: GreedyDictionary) -> None:
        """Make the states of a dictionary; `GreedyDictionary.states` has them at hand."""
        self._core = _core.CanonicalStates(dictionary._core)
        self._dictionary = dictionary

    def __reduce__(self) -> tuple[Any, ...]:
        return CanonicalStates, (self._dictionary,)

    def __repr__(self) -> str:
        return f"<CanonicalStates: num_states={self.num_states}, num_tokens={self._dictionary.num_tokens}>"

    @property
    def num_states(self) -> int:
        """The number of states; each is reached by the encoding of some text."""
        return len(self._core)

    @property
    def memory(self) -> int:
        """The number of last ids that decide the state."""
        return self.max_unstable_tokens + 1

    @property
    def max_unstable_tokens(self) -> int:
        """The largest number of ids at the end of an encoding that may change when bytes are appended to the text."""
        return self._core.max_unstable_tokens

    def is_legal(self, state: int, token: int) -> bool:
        """Return whether a token may follow. Raises as `advance` does, except for illegal tokens."""
        return self._step(state, token) >= 0

    def advance(self, state: int, token: int) -> int:
        """Return the state after one more token.

        Raises:
            ConfigError: `state` is out of range.
            UnknownTokenError: There is no such token.
            DataError: The token is illegal in this state.
        """
        after = self._step(state, token)
        if after < 0:
            raise DataError(f"token {token} is illegal in state {state}: encode never gives it there")
        return after

    def states_of(self, ids: npt.ArrayLike, state: int = INITIAL) -> npt.NDArray[np.uint32]:
        """Return the state before each id of an encoding, and the one after the last id.

        Args:
            ids: integers[n], a text's encoding, or a part of one.
            state: The state before the first id.

        Returns:
            uint32[n + 1].

        Raises:
            ConfigError: `state` is out of range.
            UnknownTokenError: An id is outside [0, num_tokens).
            DataError: An id is illegal where it stands.

        O(bytes of the text) as a rule, some 20 million ids per second; releases the GIL.
        """
        return self._core.states_before(self._checked_state(state), self._dictionary._checked(ids))

    def state_after(self, last: npt.ArrayLike) -> int:
        """Return the state after a text, given its last ids: `memory` of them, or all if it has no more.

        Raises UnknownTokenError if there is no such token.
        """
        return int(self.states_of(last)[-1])  # the last tokens of a greedy parse are the parse of their bytes

    def legal_rows(self, states: npt.ArrayLike) -> npt.NDArray[np.uint8]:
        """Return the tokens that are legal in each state, as bits.

        Args:
            states: integers[n]; np.arange(num_states) for all.

        Returns:
            uint8[n, (num_tokens + 7) // 8]: bit t % 8, counted from the lowest, of byte t // 8 is set if token t is
            legal. The end of the text, which is always legal, has no bit. Bits past the last token are 0.

        Raises:
            ConfigError: A state is out of range.
            TypeError: `states` are not one-dimensional integers.

        About 3 microseconds and num_tokens / 8 bytes per state, of 8,192 tokens.
        """
        array = checked_states(states, self.num_states)
        return self._core.legal_rows(np.ascontiguousarray(array, np.uint32))

    def legal_tokens(self, state: int) -> npt.NDArray[np.bool_]:
        """Return whether each token is legal in a state, bool[num_tokens]. Raises ConfigError if it is out of range."""
        row = self.legal_rows(np.array([self._checked_state(state)]))[0]
        return np.unpackbits(row, count=self._dictionary.num_tokens, bitorder="little").astype(np.bool_)

    def _step(self, state: int, token: int) -> int:
        token = as_integer(token, "token", -(1 << 63), (1 << 63) - 1)
        return self._core.advance(self._checked_state(state), int(self._dictionary._checked([token])[0]))

    def _checked_state(self, state: int) -> int:
        return as_integer(state, "state", 0, self.num_states - 1)
