"""The drop-in for ``tiktoken.model``: the encodings of OpenAI's models."""

from __future__ import annotations

from fastcompress.compat.tiktoken.core import Encoding
from fastcompress.compat.tiktoken.registry import get_encoding
from fastcompress.errors import ConfigError

_MODELS = {
    "o200k_base": "o1 o3 o4-mini gpt-5 gpt-4.1 gpt-4o",
    "cl100k_base": (
        "gpt-4 gpt-3.5-turbo gpt-3.5 gpt-35-turbo davinci-002 babbage-002 "
        "text-embedding-ada-002 text-embedding-3-small text-embedding-3-large"
    ),
    "p50k_base": (
        "text-davinci-003 text-davinci-002 code-davinci-002 code-davinci-001 code-cushman-002 code-cushman-001 "
        "davinci-codex cushman-codex"
    ),
    "p50k_edit": "text-davinci-edit-001 code-davinci-edit-001",
    "r50k_base": (
        "text-davinci-001 text-curie-001 text-babbage-001 text-ada-001 davinci curie babbage ada "
        "text-similarity-davinci-001 text-similarity-curie-001 text-similarity-babbage-001 text-similarity-ada-001 "
        "text-search-davinci-doc-001 text-search-curie-doc-001 text-search-babbage-doc-001 text-search-ada-doc-001 "
        "code-search-babbage-code-001 code-search-ada-code-001"
    ),
    "gpt2": "gpt2 gpt-2",
}
_PREFIXES = {
    "o200k_harmony": "gpt-oss-",
    "o200k_base": "o1- o3- o4-mini- gpt-5 gpt-4.5- gpt-4.1- chatgpt-4o- gpt-4o- ft:gpt-4o",
    "cl100k_base": "gpt-4- gpt-3.5-turbo- gpt-35-turbo- ft:gpt-4 ft:gpt-3.5-turbo ft:davinci-002 ft:babbage-002",
}


class UnknownModelError(ConfigError, KeyError):
    """The encoding of a model is not known."""

    __str__ = Exception.__str__  # KeyError's would put the message in quotes


MODEL_TO_ENCODING: dict[str, str] = {
    model: encoding for encoding, models in _MODELS.items() for model in models.split()
}
"""The encoding of each model."""

# The longest first: "ft:gpt-4o" goes before "ft:gpt-4".
MODEL_PREFIX_TO_ENCODING: dict[str, str] = dict(
    sorted(
        ((prefix, encoding) for encoding, prefixes in _PREFIXES.items() for prefix in prefixes.split()),
        key=lambda item: -len(item[0]),
    )
)
"""The encoding of all models whose names have a prefix, such as dated and fine-tuned ones."""


def encoding_name_for_model(model_name: str) -> str:
    """Return the name of a model's encoding, which for a dated or fine-tuned model is that of its family.

    Only the family must be known, not the model itself. Raises UnknownModelError, a KeyError, if it is not.
    """
    if (encoding := MODEL_TO_ENCODING.get(model_name)) is not None:
        return encoding
    for prefix, encoding in MODEL_PREFIX_TO_ENCODING.items():
        if model_name.startswith(prefix):
            return encoding
    raise UnknownModelError(
        f"model_name is {model_name!r}, whose encoding is not known; name the encoding with get_encoding()"
    )


def encoding_for_model(model_name: str) -> Encoding:
    """Return the encoding of a model. Raises what `encoding_name_for_model` and `get_encoding` raise."""
    return get_encoding(encoding_name_for_model(model_name))
