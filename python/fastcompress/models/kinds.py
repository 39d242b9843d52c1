"""The kinds of models: a table from the name in settings and checkpoints to the configuration class.

To add a kind, write one file with a configuration and a model (``protocol.py``), and add one line here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastcompress.codec import Codec
from fastcompress.errors import ConfigError
from fastcompress.models.byte_latent import ByteLatentConfig
from fastcompress.models.gpt import GPTConfig
from fastcompress.models.heat import HEATConfig
from fastcompress.models.lz_blt import LZBLTConfig
from fastcompress.models.protocol import ModelConfig

KINDS: dict[str, type[ModelConfig]] = {
    "gpt": GPTConfig,
    "byte-latent": ByteLatentConfig,
    "heat": HEATConfig,
    "lz-blt": LZBLTConfig,
}
DEFAULT_KIND = "gpt"  # also of checkpoints from before there were kinds


def make_model_config(settings: Mapping[str, Any], codec: Codec) -> ModelConfig:
    """Make a model's configuration for a codec.

    Args:
        settings: ``kind`` (default: "gpt") and the settings that ``from_settings`` of that kind takes.
        codec: The codec whose tokens the model reads.

    Raises:
        ConfigError: There is no such kind or setting, or a value is out of range.
    """
    kind = _kind_of(settings)
    return kind.from_settings({name: value for name, value in settings.items() if name != "kind"}, codec)


def model_config_from_json(fields: Mapping[str, Any]) -> ModelConfig:
    """Restore the configuration that a checkpoint holds. Raises ConfigError if it is invalid."""
    kind = _kind_of(fields)
    retired = {"attention"} if "kind" not in fields else set()  # a kernel, kept with the model in version 1
    return kind.from_json({name: value for name, value in fields.items() if name not in retired})


def _kind_of(settings: Mapping[str, Any]) -> type[ModelConfig]:
    name = settings.get("kind", DEFAULT_KIND)
    if not isinstance(name, str) or name not in KINDS:
        raise ConfigError(f"there is no kind of model {name!r}; the kinds are {', '.join(KINDS)}")
    return KINDS[name]
