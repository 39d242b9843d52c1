"""Settings of a GPT that belong together, by name, and the dial that sets its size. Needs no torch."""

from __future__ import annotations

from typing import Any

# GPT-2 (Radford et al. 2019) at 124M parameters; without dropout, as it is pretrained today.
_GPT2: dict[str, Any] = {
    "positions": "learned",
    "norm": "layernorm",
    "mlp": "gelu",
    "qk_norm": False,
    "bias": True,
    "tied_head": True,
    "init": "gpt2",
    "num_layers": 12,
    "num_heads": 12,
    "width": 768,
    "context_length": 1024,
}
_WORKSHOP_SIZE = {"num_layers": 6, "num_heads": 6, "width": 384, "context_length": 256}

PRESETS: dict[str, dict[str, Any]] = {
    "gpt2": _GPT2,
    # GPT-2 at workshop size; no biases and dropout 0.2, as in the published character-level run on Tiny Shakespeare
    # that it is compared to.
    "workshop": {**_GPT2, **_WORKSHOP_SIZE, "bias": False, "dropout": 0.2},
    # RoPE, gainless RMSNorm, SwiGLU, QK norm, untied head, output projections that start at zero: the defaults.
    "modern": {},
    # What LLaMA's exchange format can hold (Touvron et al., arXiv 2302.13971).
    "llama": {"norm": "rmsnorm_gain", "qk_norm": False, "init": "gpt2"},
    # GPT-2's shape with RoPE and SwiGLU, rows of 512 tokens, meant for a vocabulary of 32,768: 110M parameters.
    "fineweb": {**_GPT2, "positions": "rope", "mlp": "swiglu", "context_length": 512},
}
DEFAULT_PRESET = "modern"

HEAD_WIDTH = 64


def shape_of_depth(depth: int) -> dict[str, int]:
    """The shape of a model of ``depth`` layers: width 64 a layer, heads of 64. At 12 it is GPT-2's of 124M parameters.

    >>> shape_of_depth(12)
    {'num_layers': 12, 'num_heads': 12, 'width': 768}
    """
    return {"num_layers": depth, "num_heads": depth, "width": HEAD_WIDTH * depth}
