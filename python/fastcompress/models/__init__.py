"""Models: the interface that trainer and evaluation use, and the kinds of models. Needs the extra `train`."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from fastcompress._fronts import show as _show

if _TYPE_CHECKING:
    from fastcompress.models.exchange import export_huggingface, import_huggingface
    from fastcompress.models.flops import Flops
    from fastcompress.models.gpt import GPT, GPTConfig
    from fastcompress.models.kinds import KINDS, make_model_config, model_config_from_json
    from fastcompress.models.presets import PRESETS
    from fastcompress.models.protocol import Kernels, LanguageModel, ModelConfig, ModelSize, Stepper
    from fastcompress.models.tokens import NextTokenModel
    from fastcompress.models.trunk import Cache, Context, Trunk

__all__ = [
    "GPT",
    "KINDS",
    "PRESETS",
    "Cache",
    "Context",
    "Flops",
    "GPTConfig",
    "Kernels",
    "LanguageModel",
    "ModelConfig",
    "ModelSize",
    "NextTokenModel",
    "Stepper",
    "Trunk",
    "export_huggingface",
    "import_huggingface",
    "make_model_config",
    "model_config_from_json",
]

_show(
    __name__,
    {
        "GPT": "gpt",
        "KINDS": "kinds",
        "PRESETS": "presets",
        "Cache": "trunk",
        "Context": "trunk",
        "Flops": "flops",
        "GPTConfig": "gpt",
        "Kernels": "protocol",
        "LanguageModel": "protocol",
        "ModelConfig": "protocol",
        "ModelSize": "protocol",
        "NextTokenModel": "tokens",
        "Stepper": "protocol",
        "Trunk": "trunk",
        "export_huggingface": "exchange",
        "import_huggingface": "exchange",
        "make_model_config": "kinds",
        "model_config_from_json": "kinds",
    },
)
