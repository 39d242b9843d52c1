"""From the regular expressions that tiktoken is given to the patterns that have a scanner here."""

from __future__ import annotations

from fastcompress.pretokenizer import PATTERNS

_WORDS_OF_CL100K = r"[^\r\n\p{L}\p{N}]?\p{L}+"
_SYMBOLS_AND_SPACE = r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
_CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"

OTHER_SPELLINGS: dict[str, str] = {
    # GPT-2's release, and tiktoken's before it used possessive quantifiers.
    r"'s|'t|'re|'ve|'m|'ll|'d| ?[\p{L}]+| ?[\p{N}]+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+": "gpt2",
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+": "gpt2",
    r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+": "gpt2",
    # Llama 3's, which is cl100k_base's before tiktoken 0.8: white space at the end of a text is cut after its last line
    # break. Once with the quantifiers in which tiktoken 0.6 had it.
    rf"{_CONTRACTIONS}|{_WORDS_OF_CL100K}|\p{{N}}{{1,3}}|{_SYMBOLS_AND_SPACE}": "llama3",
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+": "llama3",
    # Qwen's, digit by digit.
    rf"{_CONTRACTIONS}|{_WORDS_OF_CL100K}|\p{{N}}|{_SYMBOLS_AND_SPACE}": "qwen2",
}
"""Regular expressions with the same matches on every text as a named pattern, to its name."""


def pattern_of(pat_str: str) -> str:
    """What to give BPE as pattern for a regular expression of tiktoken: the name of one that cuts alike, or itself."""
    for name, regex in PATTERNS.items():
        if pat_str == regex:
            return name
    name = OTHER_SPELLINGS.get(pat_str, "")
    return name if name in PATTERNS else pat_str
