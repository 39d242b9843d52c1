"""Translation of tiktoken's patterns, which are written for fancy-regex, into Oniguruma's syntax."""

from __future__ import annotations

import re

from fastcompress.bpe.regex.parser import parse
from fastcompress.bpe.regex.scanner import FANCY, ONIG
from fastcompress.bpe.regex.writer import to_onig
from fastcompress.errors import ConfigError

_FANCY_IN_ONIG = {"$": r"\z", "^": r"\A"}
_ATOM = re.compile(r"\\.|\[\^?\]?(?:\\.|\[:\^?[a-z]+:\]|[^\]\\])*\]|.", re.DOTALL)
_POSSESSIVE_INTERVAL = re.compile(r"((?:\\[pP]\{[^}]*\}|\\.|\[(?:\\.|[^\[\]\\])*\]|[^\\()\[\]|*+?{}])\{\d+,?\d*\})\+")


def fancy_regex_to_onig(regex: str) -> str:
    """Return a pattern for Oniguruma with the meaning of one for fancy-regex, changed as little as possible.

    Raises ConfigError if the pattern is invalid or has unsupported constructs.
    """
    tree = parse(regex, FANCY)
    rewritten = _POSSESSIVE_INTERVAL.sub(r"(?>\1)", regex)
    rewritten = "".join(_FANCY_IN_ONIG.get(atom, atom) for atom in _ATOM.findall(rewritten))
    try:
        if parse(rewritten, ONIG) == tree:
            return rewritten
    except ConfigError:
        pass
    return to_onig(tree)
