"""What a ``tokenizer.json`` does to text before its model: the normalizer and the pre-tokenizers, as steps."""

from __future__ import annotations

from typing import Any

from fastcompress.formats.tokenizer_json.fields import ELSEWHERE, READS, field, refuse, shown

BEHAVIORS = ("Isolated", "Removed", "MergedWithPrevious", "MergedWithNext", "Contiguous")
"""What a Split may do with its matches."""


def _flat(step: Any, key: str, what: str) -> list[dict[str, Any]]:
    """The steps of a normalizer or pre-tokenizer, with sequences laid out."""
    if not isinstance(step, dict):
        refuse(f"the {what} is {shown(step)}; expected an object")
    if step.get("type") != "Sequence":
        return [step]
    return [flat for part in field(step, key, list, f"the {what}") for flat in _flat(part, key, what)]


def reads_nfc(normalizer: Any) -> bool:
    steps = [] if normalizer is None else _flat(normalizer, "normalizers", "normalizer")
    for step in steps:
        if step.get("type") != "NFC":
            refuse(f"the normalizer {shown(step.get('type'))} is not supported, only NFC is: {ELSEWHERE}")
    return bool(steps)


def read_pre_tokenizers(pre_tokenizer: Any, model: dict[str, Any]) -> list[dict[str, Any]]:
    steps = [] if pre_tokenizer is None else _flat(pre_tokenizer, "pretokenizers", "pre-tokenizer")
    if not any(step.get("type") == "ByteLevel" for step in steps):
        kind = "with byte_fallback, as Llama 2 and Mistral have it" if model.get("byte_fallback") else "over characters"
        refuse(f"a BPE model {kind}: no ByteLevel pre-tokenizer; {READS}: {ELSEWHERE}")
    steps = [_read_step(step) for step in steps]
    if [step["type"] for step in steps].index("ByteLevel") != len(steps) - 1:
        refuse(f"a pre-tokenizer after ByteLevel is not supported: {ELSEWHERE}")
    return steps


def _read_step(step: dict[str, Any]) -> dict[str, Any]:
    kind = step.get("type")
    if kind == "ByteLevel":
        return {
            "type": "ByteLevel",
            "add_prefix_space": field(step, "add_prefix_space", bool, "ByteLevel"),
            "use_regex": field(step, "use_regex", bool, "ByteLevel", True),
        }
    if kind == "Digits":
        return {"type": "Digits", "individual_digits": field(step, "individual_digits", bool, "Digits")}
    if kind != "Split":
        refuse(f"the pre-tokenizer {shown(kind)} is not supported, only Split, Digits and ByteLevel are: {ELSEWHERE}")
    pattern = field(step, "pattern", dict, "Split")
    if list(pattern) not in (["Regex"], ["String"]):
        refuse(f"Split: the pattern {shown(pattern)} is neither a Regex nor a String")
    [key] = pattern
    behavior = field(step, "behavior", str, "Split")
    if behavior not in BEHAVIORS:
        refuse(f"Split: the behavior {shown(behavior)} is none of {', '.join(BEHAVIORS)}")
    return {
        "type": "Split",
        "pattern": {key: field(pattern, key, str, "Split")},
        "behavior": behavior,
        "invert": field(step, "invert", bool, "Split"),
    }
