"""Greedy dictionaries: any set of strings that holds all single bytes, encoded by longest match.

They are denser than an equal-info codebook of the same size, since they need not hold the prefixes of their strings,
and the encoder's choices are known as exactly: `CanonicalStates` says which token may come next.

>>> words = GreedyDictionary.from_strings([bytes([b]) for b in range(256)] + [b"the", b"then"])
>>> [words.strings[token] for token in words.encode(b"thens the")]
[b'then', b's', b' ', b'the']
"""

from fastcompress.greedy_dictionary.dictionary import GreedyDictionary
from fastcompress.greedy_dictionary.states import CanonicalStates

__all__ = ["CanonicalStates", "GreedyDictionary"]
