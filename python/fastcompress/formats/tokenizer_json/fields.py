"""The values of a ``tokenizer.json``: taken from its objects, of the expected kind or refused, with the place."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NoReturn

from fastcompress.errors import FormatError

OTHER_PARTS = ("truncation", "padding", "normalizer", "pre_tokenizer", "post_processor", "decoder")
"""The parts of a file besides the model, the added tokens and the version."""

MODEL_SETTINGS: Mapping[str, Any] = MappingProxyType(
    {
        "type": "BPE",
        "dropout": None,
        "unk_token": None,
        "continuing_subword_prefix": None,
        "end_of_word_suffix": None,
        "fuse_unk": False,
        "byte_fallback": False,
    }
)
"""The settings of a byte-level BPE model, as they are where a file does not say."""

READS = "fastcompress reads byte-level BPE (GPT-2, Llama 3, Qwen, DeepSeek, gpt-oss ...)"
ELSEWHERE = "for this one use the `tokenizers` package"
_REQUIRED = object()


def refuse(message: str) -> NoReturn:
    raise FormatError(message)


def field(holder: Mapping[str, Any], key: str, kind: type, where: str, default: Any = _REQUIRED) -> Any:
    """holder[key], which must be of a kind; the default if it is missing or null."""
    value = holder.get(key)
    if value is None and default is not _REQUIRED:
        return default
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        found = "is missing" if key not in holder else f"is {shown(value)}"
        refuse(f"{where}: {key!r} {found}, expected {kind.__name__}")
    return without_surrogates(str(value), key) if kind is str else value


def shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def without_surrogates(text: str, what: str) -> str:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        refuse(f"{what} {shown(text)} holds half a surrogate pair, which no text can")
    return text
