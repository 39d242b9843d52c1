"""Access to the values of a ``tokenizer.json``, with errors that say where a value is missing or of a wrong type."""

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
"""The settings of a byte-level BPE model, with the defaults for a file that omits them."""

READS = "fastcompress reads byte-level BPE (GPT-2, Llama 3, Qwen, DeepSeek, gpt-oss ...)"
ELSEWHERE = "for this one use the `tokenizers` package"
_REQUIRED = object()


def refuse(message: str) -> NoReturn:
    """Raise FormatError."""
    raise FormatError(message)


def field(holder: Mapping[str, Any], key: str, kind: type, where: str, default: Any = _REQUIRED) -> Any:
    """Return a value of an object of the file.

    Args:
        holder: The object.
        key: The key of the value.
        kind: The type that the value must have.
        where: A description of the object, for errors.
        default: The result if the value is missing or null; without it such a value is an error.

    Raises:
        FormatError: The value is missing or of another type, or a text that has a surrogate.
    """
    value = holder.get(key)
    if value is None and default is not _REQUIRED:
        return default
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        found = "is missing" if key not in holder else f"is {shown(value)}"
        refuse(f"{where}: {key!r} {found}; it must be of type {kind.__name__}")
    return without_surrogates(str(value), key) if kind is str else value


def shown(value: object) -> str:
    """Return the repr of a value, shortened to 60 characters."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def without_surrogates(text: str, what: str) -> str:
    """Return the text. Raises FormatError if it has a surrogate."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        refuse(f"{what} is {shown(text)}; it must not have surrogates, which UTF-8 cannot encode")
    return text
