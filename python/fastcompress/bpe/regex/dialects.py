"""Patterns of `tokenizers` and of tiktoken, in the syntax of the engine here and in each other's.

The same text means different things to Oniguruma, which `tokenizers` uses, and to Rust's fancy-regex, which tiktoken
uses. Both are parsed (`parser`) and written again (`writer`), so that what runs is what was meant; what is
not known to mean the same is refused by name, with a ConfigError.
"""

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
    """Write a pattern of tiktoken's so that Oniguruma reads it alike, with as few changes as possible."""
    tree = parse(regex, FANCY)
    spelled = _POSSESSIVE_INTERVAL.sub(r"(?>\1)", regex)
    spelled = "".join(_FANCY_IN_ONIG.get(atom, atom) for atom in _ATOM.findall(spelled))
    try:
        if parse(spelled, ONIG) == tree:
            return spelled
    except ConfigError:
        pass
    return to_onig(tree)
