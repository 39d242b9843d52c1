"""Patterns of published tokenizers, as their files spell them: (who has it, the pattern), for each of the engines."""

from __future__ import annotations

_CONTRACTIONS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_O200K_WORDS = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
)
_NO_CONTRACTIONS = _O200K_WORDS.replace(r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?", "")
_SPACES = r"\s*[\r\n]+|\s+(?!\S)|\s+"

ONIG = [
    ("GPT-2", r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"),
    ("CLIP", r"<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"),
    (
        "Llama 3",
        rf"{_CONTRACTIONS}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|{_SPACES}",
    ),
    ("Qwen 2", rf"{_CONTRACTIONS}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|{_SPACES}"),
    (
        "Qwen 3.5",
        rf"{_CONTRACTIONS}|[^\r\n\p{{L}}\p{{N}}]?[\p{{L}}\p{{M}}]+|\p{{N}}"
        rf"| ?[^\s\p{{L}}\p{{M}}\p{{N}}]+[\r\n]*|{_SPACES}",
    ),
    ("gpt-oss", rf"{_O200K_WORDS}|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{_SPACES}"),
    ("Mistral Nemo (Tekken)", rf"{_NO_CONTRACTIONS}|\p{{N}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{_SPACES}"),
    ("MiniMax", rf"{_NO_CONTRACTIONS}|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{_SPACES}"),
    ("DeepSeek V3, numbers", r"\p{N}{1,3}"),
    ("DeepSeek V3, Han and kana", "[一-龥\u3040-ゟ゠-ヿ]+"),
    (
        "DeepSeek V3, words",
        "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+"
        "| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+",
    ),
    ("DeepSeek LLM, line breaks", "[\r\n]"),
    ("DeepSeek LLM, letters", r"\s?\p{L}+"),
    ("DeepSeek LLM, Latin and others", r"\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-Ֆ]+"),
    ("DeepSeek LLM, punctuation", "\\s?[!-/:-~！-／：-～‘-‟\u3000-。]+"),
    ("DeepSeek LLM, spaces at ends", r"\s+$"),
    ("DeepSeek LLM, Han and Hangul", "[一-龥ࠀ-一가-퟿]+"),
    ("DeepSeek Coder, Han", "[一-龥]+"),
    ("BLOOM", " ?[^(\\s|[.,!?…。，、।۔،])]+"),
    ("Falcon, numbers", "[0-9][0-9][0-9]"),
    ("StarCoder, numbers one by one", r"\d"),
    ("Phi-2's ByteLevel", r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"),
    ("Command R, digits", r"\p{N}"),
    ("Viking, numbers", r"\p{N}{1}"),
    ("Poro, as BLOOM", " ?[^(\\s|[.,!?…。，、।۔،])]+"),
    ("XVERSE, numbers", r"\d{1,3}(?=(?:\d{3})*\b)"),
    ("numbers from the right", r"\d{1,3}(?=(?:\d{3})*(?:\D|$))"),
    ("SmolLM, digits", "[0-9]"),
    (
        "OLMo 2",
        rf"{_CONTRACTIONS}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|{_SPACES}",
    ),
    ("EXAONE 4", rf"{_NO_CONTRACTIONS}|\p{{N}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+"),
    ("Whisper", r"'s|'t|'re|'ve|'m|'ll|'d| ?[\p{L}]+| ?[\p{N}]+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"),
    ("a word tokenizer", r"\w+|[^\w\s]+"),
    ("white space", r"\s+"),
    ("line breaks", r"\r?\n"),
]

FANCY = [
    ("r50k", r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"),
    ("r50k as first published", r"'s|'t|'re|'ve|'m|'ll|'d| ?[\p{L}]+| ?[\p{N}]+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"),
    (
        "cl100k",
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]"
        r"|\s+(?!\S)|\s",
    ),
    (
        "cl100k before",
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
        r"|\s+(?!\S)|\s+",
    ),
    ("o200k", rf"{_O200K_WORDS}|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{_SPACES}"),
    (
        "Kimi K2",
        r"[\p{Han}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*"
        r"[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
        r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+"
        r"[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
        r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    ),
    ("Qwen", rf"{_CONTRACTIONS}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|{_SPACES}"),
    (
        "Llama 3",
        rf"{_CONTRACTIONS}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|{_SPACES}",
    ),
    ("Llama 4", rf"{_O200K_WORDS}|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{_SPACES}"),
    ("Tekken", rf"{_NO_CONTRACTIONS}|\p{{N}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{_SPACES}"),
    (
        "minbpe",
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}"
        r"| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+",
    ),
    (
        "nanochat",
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,2}"
        r"| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+",
    ),
    ("SuperBPE, numbers", r"(?=(\d{3})+(?!\d))|\p{N}{1,3}"),
    ("DeepSeek V3, numbers", r"\p{N}{1,3}"),
    ("DeepSeek V3, Han and kana", "[一-龥\u3040-ゟ゠-ヿ]+"),
    ("Grok 1's words", r"\p{L}+|\p{N}|[^\p{L}\p{N}]+"),
    ("StarCoder, digits", r"\d"),
    ("words and symbols", r"\w+|[^\w\s]+"),
    ("words with a space", r" ?\w+|\s+|[^\w\s]+"),
    ("by lines", r"[^\n]*\n|[^\n]+"),
    ("by characters", r"(?s:.)"),
    (
        "tiktoken's educational one",
        r"""'s|'t|'re|'ve|'m|'ll|'d| ?[\p{L}]+| ?[\p{N}]+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+""",
    ),
    ("camel case", r"\p{Lu}?\p{Ll}+|\p{Lu}+(?!\p{Ll})|\p{N}+|\s+|[^\p{L}\p{N}\s]+"),
    ("ASCII words", r"[A-Za-z]+|[0-9]{1,3}|[^A-Za-z0-9]"),
    ("as flags for all", r"(?i)'(?:s|t|re|ve|m|ll|d)| ?\p{L}+| ?\p{N}+|[^\s\p{L}\p{N}]+|\s+"),
    ("Unicode scripts", r"\p{Latin}+|\p{Cyrillic}+|\p{Greek}+|\p{Han}|\p{Hangul}+|[\s\S]"),
]
