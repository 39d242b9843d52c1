"""The vocabularies of the comparison: rank files, and a tokenizer.json each for engines that need one."""

from __future__ import annotations

import base64
import hashlib
import json
import lzma
import re
from dataclasses import dataclass
from pathlib import Path

RANK_FILES = {"gpt2": "r50k_base", "cl100k": "cl100k_base", "o200k": "o200k_base"}


@dataclass(frozen=True)
class Vocabulary:
    """One vocabulary as engines get it.

    Attributes:
        name: gpt2, cl100k or o200k; our name of its pretokenizer pattern too.
        pattern: that pattern as a regular expression of tiktoken.
        rank_file: path of <stem>.tiktoken.
        tokenizer_json: path of a file for `tokenizers`, with the same ids and no special tokens.
    """

    name: str
    pattern: str
    rank_file: str
    tokenizer_json: str


def prepare(name: str, folder: Path, cache: Path) -> Vocabulary:
    """Put `<stem>.tiktoken`, from `folder` or an .xz there, and its tokenizer.json into `cache`, once."""
    from fastcompress.pretokenizer import PATTERNS  # Workers import this module in interpreters without fastcompress.

    stem = RANK_FILES[name]
    sources = [folder / f"{stem}.tiktoken", folder / f"{stem}.tiktoken.xz"]
    source = next((path for path in sources if path.exists()), None)
    if source is None:
        raise FileNotFoundError(f"{folder} has no {stem}.tiktoken[.xz]: set FASTCOMPRESS_DATA or --vocabulary-folder")
    data = source.read_bytes()
    if source.suffix == ".xz":
        data = lzma.decompress(data)
    place = cache / "vocabularies" / folder.resolve().as_posix().replace("/", "_").strip("_")
    rank_file, tokenizer_json = place / f"{stem}.tiktoken", place / f"{stem}.tokenizer.json"
    if not (tokenizer_json.exists() and rank_file.read_bytes() == data):
        place.mkdir(parents=True, exist_ok=True)
        tokenizer_json.unlink(missing_ok=True)
        rank_file.write_bytes(data)
        tokenizer_json.write_text(json.dumps(to_tokenizer_json(name, PATTERNS[name], parse_ranks(data))))
    return Vocabulary(name, PATTERNS[name], str(rank_file), str(tokenizer_json))


def fingerprint(vocabulary: Vocabulary) -> str:
    """Name and hash of what decides the ids."""
    digest = hashlib.sha256(vocabulary.pattern.encode() + Path(vocabulary.rank_file).read_bytes())
    return f"{vocabulary.name}-{digest.hexdigest()[:16]}"


def parse_ranks(data: bytes) -> dict[bytes, int]:
    """The ranks of a rank file's lines."""
    fields = (line.split() for line in data.splitlines() if line)
    return {base64.b64decode(token): int(rank) for token, rank in fields}


def to_tokenizer_json(name: str, pattern: str, ranks: dict[bytes, int]) -> dict[str, object]:
    """A vocabulary in the format of `tokenizers`, with ids equal to tiktoken's.

    tiktoken merges any two neighbours whose concatenation is a token, so every split of a token into two tokens becomes
    a merge, in the order of the token's rank, as in the file of gpt-oss; for gpt2 the one by which it arises, as in its
    own.
    """
    letter = byte_letters()
    spelled = {token: "".join(map(letter.__getitem__, token)) for token in ranks}
    splits = {
        token: [len(last_merge(token, ranks)[0])] if name == "gpt2" else range(1, len(token))
        for token in ranks
        if len(token) > 1
    }
    merges = [
        (ranks[token], ranks[token[:i]], ranks[token[i:]], spelled[token[:i]], spelled[token[i:]])
        for token, positions in splits.items()
        for i in positions
        if token[:i] in ranks and token[i:] in ranks
    ]
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": name == "gpt2"}
    split = {"type": "Split", "pattern": {"Regex": onigmo(pattern)}, "behavior": "Isolated", "invert": False}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "normalizer": None,
        "pre_tokenizer": (byte_level if name == "gpt2" else {"type": "Sequence", "pretokenizers": [split, byte_level]}),
        "post_processor": None,
        "decoder": byte_level,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": "",
            "end_of_word_suffix": "",
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": True,  # tiktoken looks a whole pretoken up first
            "vocab": {spelled[token]: rank for token, rank in ranks.items()},
            "merges": [[left, right] for *_, left, right in sorted(merges)],
        },
    }


def last_merge(token: bytes, ranks: dict[bytes, int]) -> list[bytes]:
    """The two tokens of whose merge a token arises, when its bytes merge by rank."""
    parts = [token[i : i + 1] for i in range(len(token))]
    while len(parts) > 2:
        i = min(range(len(parts) - 1), key=lambda i: ranks.get(parts[i] + parts[i + 1], len(ranks)))
        parts[i : i + 2] = [parts[i] + parts[i + 1]]
    return parts


def onigmo(pattern: str) -> str:
    """The pattern for the regex engine of `tokenizers`: there `{1,3}+` repeats again, and `$` is the end of any line.

    Nothing after a possessive part of these patterns could match what it holds, so greedy ones find the same.
    """
    return re.sub(r"([+?*]|\{\d,\d\})\+", r"\1", pattern).replace("$", r"\z")


def byte_letters() -> list[str]:
    """The letter that stands for each byte in GPT-2's files: printable ones for themselves, the rest from U+0100 on."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = iter(range(0x100, 0x200))
    return [chr(byte) if byte in printable else chr(next(others)) for byte in range(256)]
