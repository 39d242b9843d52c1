"""Drift of texts that are generated as LZ77 tokens: pointers that no parser would have made, words that nobody wrote.

A model of LZ77 tokens learns from parses. When it continues its own text, the tokens that it draws are soon no longer
those of a parse of that text, so that it reads histories unlike all that it was trained on. Its pointers then copy from
places that look right by their distance only, and the text falls into pieces of words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from fastcompress.errors import ConfigError
from fastcompress.lz77 import MATCH, LZTokens, Params, Token, parse, reconstruct

_WORD = re.compile(r"\w+(?:['’]\w+)*")


@dataclass(frozen=True)
class PointerDrift:
    """Pointers of a text against those of its parse.

    Attributes:
        num_pointers: Matches that were drawn.
        num_drifted: Those that the parse of the whole text does not have, at the same place and of the same length.
    """

    num_pointers: int
    num_drifted: int

    @property
    def share(self) -> float:
        """The share of pointers that drifted, 0 to 1; 0 without pointers."""
        return self.num_drifted / self.num_pointers if self.num_pointers else 0.0


def pointer_drift(drawn: Iterable[Token], prompt: bytes, params: Params | None = None) -> PointerDrift:
    """Compare the pointers that were drawn after a prompt with those of the parse of the whole text.

    >>> tokens = [Token.literal(byte) for byte in b"abcdef"]
    >>> pointer_drift([*tokens, Token.match(6, 4)], b"")
    PointerDrift(num_pointers=1, num_drifted=0)
    >>> pointer_drift([*tokens, Token.match(6, 4), Token.match(6, 2)], b"")  # the parser has one match of 6 bytes here
    PointerDrift(num_pointers=2, num_drifted=2)

    Args:
        drawn: The tokens, of which those of the prompt are none.
        prompt: What stands before them.
        params: Of the parse; None for Params().

    Raises:
        FormatError: A token cannot be decoded, such as a match that begins before the text.
    """
    prefix = LZTokens.from_tokens(Token.literal(byte) for byte in prompt)
    drawn = list(drawn)
    text = reconstruct(LZTokens.from_tokens([*prefix, *drawn]))
    canonical = _places(parse(text, params), 0)
    places = _places(drawn, len(prompt))
    pointers = [(begin, token) for begin, token in places.items() if token.kind == MATCH]
    return PointerDrift(len(pointers), sum(canonical.get(begin) != token for begin, token in pointers))


def _places(tokens: Iterable[Token], begin: int) -> dict[int, Token]:
    """Tokens by where they begin."""
    places = {}
    for token in tokens:
        places[begin] = token
        begin += token.length
    return places


def unknown_words(text: str, training_text: str) -> float:
    """Return the share of a text's words that do not occur in the training text, 0 to 1; 0 without words.

    Words are runs of letters and digits, with apostrophes inside, and differ by case. The last word of a text counts
    only if something follows it, since it may be cut.

    >>> unknown_words("The King rememble the king", "The King, the crown; remember!")
    0.25

    Raises ConfigError if the training text has no words.
    """
    known = set(_WORD.findall(training_text))
    if not known:
        raise ConfigError("training_text has no words; it must be the text that the model was trained on")
    words = [match.group() for match in _WORD.finditer(text) if match.end() < len(text)]
    return sum(word not in known for word in words) / len(words) if words else 0.0
