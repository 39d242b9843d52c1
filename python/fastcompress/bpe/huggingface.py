"""Conversion between the contents of a ``tokenizer.json`` and the core's vocabularies."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from fastcompress._core import bpe as _core
from fastcompress.bpe.custom_pattern import CustomPattern, Step, named_pattern, regexes_of
from fastcompress.bpe.rank_merges import merges_of_ranks
from fastcompress.bpe.regex import fancy_regex_to_onig
from fastcompress.bpe.special_tokens import FLAGS, NEVER_MATCHED, SHARES_ID
from fastcompress.errors import ConfigError, FormatError
from fastcompress.formats.byte_level import to_alphabet
from fastcompress.formats.tokenizer_json import MODEL_SETTINGS, OTHER_PARTS, TokenizerJson
from fastcompress.pretokenizer import PATTERNS

_BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}


def vocabulary_of(parts: TokenizerJson) -> _core.Tokenizer:
    """Make the vocabulary of a ``tokenizer.json``. Raises FormatError if the file contradicts itself."""
    merged = {token_id for merge in parts.merges for token_id in merge}
    tokens = dict(parts.tokens)
    rows: list[tuple[str, int, int]] = []
    for token in parts.added_tokens:
        flags = sum(bit for name, bit in FLAGS.items() if getattr(token, name))
        spelled = tokens.get(token.id)
        is_same = spelled == token.text.encode("utf-8")
        if spelled and len(spelled) > 1 and is_same and token.id not in merged and not parts.ignore_merges:
            del tokens[token.id]  # only the added token becomes this id
            spelled = None
        rows.append((token.text, token.id, flags | (SHARES_ID if spelled else 0)))
    added_ids = {token_id for _, token_id, _ in rows}
    texts = {text for text, _, _ in rows}
    for token_id, text in parts.other_tokens.items():
        if token_id not in added_ids and text not in texts:
            rows.append((text, token_id, NEVER_MATCHED))
    by_id = [b""] * (max(tokens, default=-1) + 1)
    for token_id, spelled in tokens.items():
        by_id[token_id] = spelled
    pattern, prefix_space = _pattern_of(parts.pre_tokenizers)
    try:
        return _core.Tokenizer.from_merges(
            tokens=by_id,
            merges=np.array(parts.merges, np.uint32).reshape(-1, 3),
            pattern=pattern,
            added_tokens=rows,
            ignore_merges=parts.ignore_merges,
            prefix_space=prefix_space,
            nfc=parts.nfc,
            metadata=json.dumps(parts.rest, separators=(",", ":"), sort_keys=True),
        )
    except ConfigError as error:
        raise FormatError(f"inconsistent tokenizer.json: {error}") from None


def _pattern_of(steps: Sequence[Step]) -> tuple[str, bool]:
    """Return (a named pattern or the JSON of a custom one, whether a space precedes texts) for pre-tokenizer steps."""
    *splits, byte_level = steps
    prefix_space: bool = byte_level["add_prefix_space"]
    if not splits:
        return "gpt2" if byte_level["use_regex"] else "none", prefix_space
    regexes = [split["pattern"].get("Regex", "") for split in splits if split["type"] == "Split"]
    # The pretokens are the matches and the text between them, or the matches alone; as the matches of a named pattern
    # cover the text, both mean the same.
    keeps_matches = all(
        split["type"] == "Split"
        and (
            split["behavior"] == "Isolated" or (split["behavior"] == "Removed" and split["invert"] and len(splits) == 1)
        )
        for split in splits
    )
    if keeps_matches and not prefix_space and not byte_level["use_regex"] and all(map(_reads_alike, regexes)):
        name = named_pattern(regexes)
        if name is not None:
            return name, False
    return CustomPattern(steps).to_json(), False


def _reads_alike(regex: str) -> bool:
    """Return whether the regex of a named pattern has the same meaning in Oniguruma as in fancy-regex.

    A plus after an interval repeats it in Oniguruma but makes it possessive in fancy-regex; and in Oniguruma ``$`` also
    matches before line breaks.
    """
    return re.search(r"\{\d+(,\d*)?\}\+", regex) is None and r"\s+$" not in regex


# --- Writing ---------------------------------------------------------------------------------------------


def document_of(core: _core.Tokenizer) -> dict[str, Any]:
    """Return the contents of a ``tokenizer.json`` for a vocabulary.

    Raises ConfigError for a vocabulary that no such file can express.
    """
    rest = _kept_rest(core) if core.metadata else _rest_of(core)
    vocabulary = _vocabulary(core)
    added = _added_tokens(core, vocabulary)
    if core.is_ranks:
        merges = merges_of_ranks(vocabulary_bytes(core))
    else:
        merges = [(left, right) for left, right, _ in core.merges().tolist()]
    texts = [
        to_alphabet(core.token_bytes(i)) if length else "" for i, length in enumerate(core.token_lengths().tolist())
    ]
    model: dict[str, Any] = {**MODEL_SETTINGS, **rest["model"]}
    model |= {
        "ignore_merges": core.is_ranks or core.ignore_merges,
        "vocab": vocabulary,
        "merges": [[texts[left], texts[right]] for left, right in merges],
    }
    document = {"version": "1.0"} | {key: rest.get(key) for key in OTHER_PARTS}
    return document | {"added_tokens": added, "model": model}


def check_metadata(metadata: str) -> None:
    """Raise FormatError for metadata of a vocabulary file that is not a JSON object."""
    _parsed(metadata)


def _parsed(metadata: str) -> dict[str, Any]:
    try:
        parsed = json.loads(metadata)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"the vocabulary's metadata is not JSON ({error}); read the tokenizer.json again") from None
    if not isinstance(parsed, dict):
        raise FormatError("the vocabulary's metadata is not a JSON object; read the tokenizer.json again")
    return parsed


def _kept_rest(core: _core.Tokenizer) -> dict[str, Any]:
    """Return the other parts of the file that the vocabulary was read from."""
    rest = _parsed(core.metadata)
    if not isinstance(rest.get("model"), dict):
        raise FormatError("the vocabulary's metadata is not what from_huggingface keeps; read the tokenizer.json again")
    return rest


def vocabulary_bytes(core: _core.Tokenizer) -> dict[bytes, int]:
    """Return the bytes and id of each ordinary token, by id. Raises ConfigError if two have the same bytes."""
    apart = {token_id for _, token_id, flags in core.added_tokens() if not flags & SHARES_ID}
    ids: dict[bytes, int] = {}
    for token_id, length in enumerate(core.token_lengths().tolist()):
        if length == 0 or token_id in apart:
            continue
        spelled = core.token_bytes(token_id)
        if ids.setdefault(spelled, token_id) != token_id:
            raise ConfigError(
                f"tokens {ids[spelled]} and {token_id} both have the bytes {spelled!r}, which a tokenizer.json "
                "cannot express; train with tie_break='huggingface', which never learns a string twice"
            )
    return ids


def _vocabulary(core: _core.Tokenizer) -> dict[str, int]:
    vocabulary = {to_alphabet(spelled): token_id for spelled, token_id in vocabulary_bytes(core).items()}
    return vocabulary | {text: token_id for text, token_id, flags in core.added_tokens() if flags & NEVER_MATCHED}


def _added_tokens(core: _core.Tokenizer, vocabulary: dict[str, int]) -> list[dict[str, Any]]:
    """Return the added tokens; those that `tokenizers` would give another id are added to the vocabulary as well."""
    rows = [row for row in core.added_tokens() if not row[2] & NEVER_MATCHED]
    if len({token_id for _, token_id, _ in rows}) < len(rows):
        raise ConfigError(
            "two special tokens have the same id, which a tokenizer.json cannot express; give them different ids"
        )
    ids = [token_id for _, token_id, _ in rows]
    size = len(vocabulary)
    apart = [row for row in rows if row[0] not in vocabulary]
    if [token_id for _, token_id, _ in apart] != list(range(size, size + len(apart))):
        vocabulary |= {text: token_id for text, token_id, _ in apart}
    for text, token_id, _ in rows:
        if vocabulary.get(text, token_id) != token_id:
            raise ConfigError(
                f"the special token {text!r} has the id {token_id}, but its text is token {vocabulary[text]} of the "
                "vocabulary, and a tokenizer.json gives it that id; rename the special token"
            )
    return [
        {"id": token_id, "content": text}
        | {name: bool(flags & FLAGS[name]) for name in ("single_word", "lstrip", "rstrip", "normalized", "special")}
        for (text, _, flags), token_id in zip(rows, ids, strict=True)
    ]


def _rest_of(core: _core.Tokenizer) -> dict[str, Any]:
    """Return the other parts of the file for a vocabulary that was not read from one."""
    byte_level = _BYTE_LEVEL | {"use_regex": True}
    return {
        "normalizer": {"type": "NFC"} if core.nfc else None,
        "pre_tokenizer": _pre_tokenizer(core),
        "post_processor": byte_level | {"trim_offsets": False},
        "decoder": byte_level,
        "model": {},
    }


def _pre_tokenizer(core: _core.Tokenizer) -> dict[str, Any]:
    pattern = core.pattern
    if pattern in ("gpt2", "none"):
        return _BYTE_LEVEL | {"add_prefix_space": core.prefix_space, "use_regex": pattern == "gpt2"}
    if pattern in PATTERNS:
        return _sequence([_isolated(fancy_regex_to_onig(regex)) for regex in regexes_of(pattern)])
    steps = CustomPattern.from_json(pattern).steps
    if [step["type"] for step in steps] != ["Regex"]:
        return _sequence([step for step in steps if step["type"] != "ByteLevel"], steps[-1])
    regex = fancy_regex_to_onig(steps[0]["pattern"])
    return _sequence([_isolated(regex) | {"behavior": "Removed", "invert": True}])


def _isolated(regex: str) -> Step:
    return {"type": "Split", "pattern": {"Regex": regex}, "behavior": "Isolated", "invert": False}


def _sequence(steps: Sequence[Step], byte_level: Step | None = None) -> dict[str, Any]:
    return {"type": "Sequence", "pretokenizers": [*steps, _BYTE_LEVEL | (byte_level or {})]}
