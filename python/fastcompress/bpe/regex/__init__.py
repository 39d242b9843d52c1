"""Regular expressions in the dialects of `tokenizers` and tiktoken, run by Python's `regex` package.

`tokenizers` uses Oniguruma, tiktoken uses Rust's fancy-regex, and Python has a third engine; the same pattern can match
differently in each. So a pattern is parsed by the rules of the engine that it was written for, and the tree is written
in the syntax of the engine that runs it. Constructs whose meaning is not known to be the same are refused, by name.

>>> tree = parse(r"\\p{L}+", FANCY)
>>> list(Matcher(tree).spans("one two", has_newer=False))
[(0, 3), (4, 7)]

Reading order:

1. `syntax`: the nodes of a tree, which say exactly what matches; flags and abbreviations are gone.
2. `scanner`, `sets`, `parser`: a pattern in one of the two dialects to a tree.
3. `properties`, `writer`: a tree to a pattern for `regex` or for Oniguruma, with the Unicode version that both have.
4. `engine`, `matcher`: the import of `regex`, and the matches of a tree in a text.
5. `dialects`: a pattern of tiktoken as one of Oniguruma, for export to a ``tokenizer.json``.
"""

from __future__ import annotations

from fastcompress.bpe.regex.dialects import fancy_regex_to_onig
from fastcompress.bpe.regex.matcher import Matcher, has_newer_characters
from fastcompress.bpe.regex.parser import parse
from fastcompress.bpe.regex.scanner import FANCY, ONIG, Dialect

__all__ = ["FANCY", "ONIG", "Dialect", "Matcher", "fancy_regex_to_onig", "has_newer_characters", "parse"]
