"""Legal ids of encoders whose state is little more than the last token; and the check of states for all encoders."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import SupportsIndex

import numpy as np
import numpy.typing as npt

from fastcompress._arguments import as_integer
from fastcompress.errors import ConfigError, DataError, UnknownTokenError

_ROWS_AT_ONCE = 4096


class LastTokenStates(ABC):
    """The states of an encoder, and the tokens that are legal in each.

    A sequence of ids is the encoding of its bytes if and only if every id is legal in the state before it; a text may
    end in any state. So if a model gives probability to legal tokens and the end only, p(ids) = p(bytes).
    """

    INITIAL = 0
    """The state at the beginning of a text."""

    def __init__(self, num_tokens: int, num_states: int) -> None:
        self._num_tokens, self._num_states = num_tokens, num_states

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: num_tokens={self._num_tokens}>"

    @abstractmethod
    def _after(self, tokens: npt.NDArray[np.int64], state: int) -> npt.NDArray[np.uint32]:
        """Return the state after each token, uint32[n]; all are in range."""

    @abstractmethod
    def _rows(self, states: npt.NDArray[np.int64]) -> npt.NDArray[np.uint8]:
        """Return `legal_rows` of states that are in range."""

    @property
    def memory(self) -> int:
        """The number of last ids that decide the state."""
        return 2

    @property
    def num_states(self) -> int:
        """The number of states."""
        return self._num_states

    def is_legal(self, state: int, token: int) -> bool:
        """Return whether a token may follow. Raises as `advance` does, except for illegal tokens."""
        checked = int(self._checked([token])[0])
        row = self.legal_rows([as_integer(state, "state", 0, self.num_states - 1)])[0]
        return bool(row[checked // 8] >> checked % 8 & 1)

    def advance(self, state: int, token: int) -> int:
        """Return the state after one more token.

        Raises:
            ConfigError: `state` is out of range.
            UnknownTokenError: There is no such token.
            DataError: The token is illegal in this state.
        """
        return int(self.states_of([token], state)[1])

    def states_of(self, ids: npt.ArrayLike, state: int = INITIAL) -> npt.NDArray[np.uint32]:
        """Return the state before each id of an encoding, and the one after the last id.

        Args:
            ids: integers[n], a text's encoding, or a part of one.
            state: The state before the first id.

        Returns:
            uint32[n + 1].

        Raises:
            ConfigError: `state` is out of range.
            UnknownTokenError: An id is outside [0, number of tokens).
            DataError: An id is illegal where it stands.
        """
        state = as_integer(state, "state", 0, self.num_states - 1)
        tokens = self._checked(ids)
        states = np.empty(len(tokens) + 1, np.uint32)
        states[0] = state
        states[1:] = self._after(tokens, state)
        for begin in range(0, len(tokens), _ROWS_AT_ONCE):  # what is held at once is bounded
            some = tokens[begin : begin + _ROWS_AT_ONCE]
            rows = self._rows(states[begin : begin + len(some)].astype(np.int64))
            bad = (rows[np.arange(len(some)), some // 8] >> (some % 8).astype(np.uint8) & 1) == 0
            if bad.any():
                place = begin + int(np.argmax(bad))
                raise DataError(
                    f"id {tokens[place]} at position {place} is illegal there: the ids are not what encode gives for "
                    "any text"
                )
        return states

    def state_after(self, last: npt.ArrayLike) -> int:
        """Return the state after a text, given its last ids: `memory` of them, or all if it has no more.

        Raises UnknownTokenError if there is no such token.
        """
        tokens = self._checked(last)
        return int(self._after(tokens, self.INITIAL)[-1]) if len(tokens) else self.INITIAL

    def legal_rows(self, states: npt.ArrayLike) -> npt.NDArray[np.uint8]:
        """Return the tokens that are legal in each state, as bits.

        Args:
            states: integers[n]; np.arange(num_states) for all.

        Returns:
            uint8[n, (number of tokens + 7) // 8]: bit t % 8, counted from the lowest, of byte t // 8 is set if token t
            is legal. The end of the text, which is always legal, has no bit. Bits past the last token are 0.

        Raises:
            ConfigError: A state is out of range.
            TypeError: `states` are not one-dimensional integers.
        """
        return self._rows(checked_states(states, self.num_states).astype(np.int64))

    def legal_tokens(self, state: int) -> npt.NDArray[np.bool_]:
        """Return whether each token is legal in a state, bool[n]. Raises ConfigError if it is out of range."""
        row = self.legal_rows([as_integer(state, "state", 0, self.num_states - 1)])[0]
        return np.unpackbits(row, count=self._num_tokens, bitorder="little").astype(np.bool_)

    def _checked(self, ids: npt.ArrayLike | list[SupportsIndex]) -> npt.NDArray[np.int64]:
        array = _integers(ids, "ids")
        bad = (array >= self._num_tokens) | (array < 0)
        if bad.any():
            position = int(np.argmax(bad))
            raise UnknownTokenError(
                f"id {array[position]} at position {position} is not one of the vocabulary's {self._num_tokens}"
            )
        return array.astype(np.int64)


def checked_states(states: npt.ArrayLike, num_states: int) -> npt.NDArray[np.integer]:
    """Return a copy of states as an array. Raises ConfigError or TypeError, as `LastTokenStates.legal_rows` says."""
    array = _integers(states, "states")
    bad = (array >= num_states) | (array < 0)
    if bad.any():
        position = int(np.argmax(bad))
        raise ConfigError(f"states[{position}] is {array[position]}; it must be 0 to {num_states - 1}")
    return array


def _integers(values: npt.ArrayLike | list[SupportsIndex], name: str) -> npt.NDArray[np.integer]:
    """Return a copy of one-dimensional integers, so that what is checked is what is used. Raises TypeError."""
    array = np.array(values)
    if array.size == 0:
        return np.zeros(0, np.int64)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise TypeError(f"{name} are {array.dtype} of shape {array.shape}; they must be one-dimensional integers")
    return array
