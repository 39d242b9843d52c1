"""Named presets of a GPT, and the sizes that follow from its depth. Needs no torch."""

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
    # A small GPT-2 without biases and with dropout 0.2, as in nanoGPT's config/train_shakespeare_char.py.
    "workshop": {**_GPT2, **_WORKSHOP_SIZE, "bias": False, "dropout": 0.2},
    # The defaults: RoPE, RMSNorm without gain, SwiGLU, QK norm, untied head, output projections initialized to zero.
    "modern": {},
    # The architecture of LLaMA (Touvron et al., arXiv 2302.13971), at the size of `workshop`.
    "llama": {"norm": "rmsnorm_gain", "qk_norm": False, "init": "gpt2"},
    # GPT-2's shape with RoPE and SwiGLU, rows of 512 tokens, meant for a vocabulary of 32,768: 110M parameters.
    "fineweb": {**_GPT2, "positions": "rope", "mlp": "swiglu", "context_length": 512},
    # For `MuonConfig`: heads of 128 cost less than twice as many of 64, and ReLU^2 less than SwiGLU.
    "speedrun": {
        "mlp": "relu2",
        "softcap": 15.0,
        "value_residual": True,
        "num_layers": 12,
        "num_heads": 6,
        "width": 768,
        "context_length": 1024,
    },
}
DEFAULT_PRESET = "modern"

HEAD_WIDTH = 64


def shape_of_depth(depth: int) -> dict[str, int]:
    """Return the shape of a model of ``depth`` layers, with as many heads of width 64; 12 gives GPT-2's smallest.

    >>> shape_of_depth(12)
    {'num_layers': 12, 'num_heads': 12, 'width': 768}
    """
    return {"num_layers": depth, "num_heads": depth, "width": HEAD_WIDTH * depth}
