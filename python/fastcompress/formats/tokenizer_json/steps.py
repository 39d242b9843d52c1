"""The normalizer and the pre-tokenizers of a ``tokenizer.json``, which process text before the model does."""

from __future__ import annotations

from typing import Any

from fastcompress.formats.tokenizer_json.fields import ELSEWHERE, READS, field, refuse, shown

BEHAVIORS = ("Isolated", "Removed", "MergedWithPrevious", "MergedWithNext", "Contiguous")
"""The possible behaviours of a Split, which say what becomes of its matches."""


def _flat(step: Any, key: str, what: str) -> list[dict[str, Any]]:
    """Return the steps of a normalizer or pre-tokenizer, with nested sequences flattened."""
    if not isinstance(step, dict):
        refuse(f"the {what} is {shown(step)}; it must be an object")
    if step.get("type") != "Sequence":
        return [step]
    return [flat for part in field(step, key, list, f"the {what}") for flat in _flat(part, key, what)]


def reads_nfc(normalizer: Any) -> bool:
    """Return whether the normalizer is NFC. Raises FormatError if there is another one."""
    steps = [] if normalizer is None else _flat(normalizer, "normalizers", "normalizer")
    for step in steps:
        if step.get("type") != "NFC":
            refuse(f"the normalizer {shown(step.get('type'))} is not supported, only NFC is; {ELSEWHERE}")
    return bool(steps)


def read_pre_tokenizers(pre_tokenizer: Any, model: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the pre-tokenizers in order, checked; the last one is ByteLevel.

    Args:
        pre_tokenizer: The pre-tokenizer of the file, or None.
        model: The model, for the error about a file without ByteLevel.

    Raises:
        FormatError: A step is malformed or not supported, or ByteLevel is missing or not the last step.
    """
    steps = [] if pre_tokenizer is None else _flat(pre_tokenizer, "pretokenizers", "pre-tokenizer")
    if not any(step.get("type") == "ByteLevel" for step in steps):
        kind = "with byte_fallback, as Llama 2 and Mistral have it" if model.get("byte_fallback") else "over characters"
        refuse(f"a BPE model {kind}: it has no ByteLevel pre-tokenizer; {READS}; {ELSEWHERE}")
    steps = [_read_step(step) for step in steps]
    if [step["type"] for step in steps].index("ByteLevel") != len(steps) - 1:
        refuse(f"a pre-tokenizer after ByteLevel is not supported; {ELSEWHERE}")
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
        refuse(f"the pre-tokenizer {shown(kind)} is not supported, only Split, Digits and ByteLevel are; {ELSEWHERE}")
    pattern = field(step, "pattern", dict, "Split")
    if list(pattern) not in (["Regex"], ["String"]):
        refuse(f"Split: the pattern is {shown(pattern)}; it must be a Regex or a String")
    [key] = pattern
    behavior = field(step, "behavior", str, "Split")
    if behavior not in BEHAVIORS:
        refuse(f"Split: the behavior is {shown(behavior)}; it must be one of {', '.join(BEHAVIORS)}")
    return {
        "type": "Split",
        "pattern": {key: field(pattern, key, str, "Split")},
        "behavior": behavior,
        "invert": field(step, "invert", bool, "Split"),
    }
