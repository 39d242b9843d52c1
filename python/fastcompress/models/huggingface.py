"""Conversion of GPTs to and from models of Hugging Face's `transformers`, with equal logits.

`transformers` itself is not needed.

A GPT with RoPE, RMSNorm and SwiGLU is a `LlamaForCausalLM`. With QK norm it is a `Qwen3ForCausalLM`: Qwen3 normalizes
before it rotates, but a rotation changes no length, so without a gain both orders are the same. A setting that neither
has raises an error with its name. A norm without a gain becomes one whose gain is 1.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Literal

import torch
from torch import Tensor, nn

from fastcompress.errors import ConfigError
from fastcompress.models.attention import RMS_EPSILON
from fastcompress.models.blocks import swiglu_hidden
from fastcompress.models.gpt import GPT, GPTConfig

Architecture = Literal["LlamaForCausalLM", "Qwen3ForCausalLM"]
ROTARY_BASE = 10_000.0  # where no setting names another
_TYPES: dict[Architecture, str] = {"LlamaForCausalLM": "llama", "Qwen3ForCausalLM": "qwen3"}

# Settings that either architecture has, or that change nothing after training or while another one is off.
_FREE = {
    "kind", "vocab_size", "context_length", "num_layers", "num_heads", "kv_heads", "width", "qk_norm", "bias",
    "tied_head", "dropout", "init", "rotary_base", "window_pattern", "residual_groups", "engram_orders", "engram_heads",
    "engram_rows", "engram_width", "norm_epsilon",
}  # fmt: skip
_NEEDED = {"positions": ("rope",), "norm": ("rmsnorm", "rmsnorm_gain"), "mlp": ("swiglu",)}


def architecture_of(config: GPTConfig) -> Architecture:
    """Return the architecture equivalent to a GPT. Raises ConfigError for a setting that neither has."""
    for name, value in config.to_json().items():
        if name in _NEEDED and value not in _NEEDED[name]:
            raise ConfigError(
                f"{name} is {value!r}; it must be {' or '.join(map(repr, _NEEDED[name]))} for the architectures of "
                "Llama and Qwen3"
            )
        if name not in _FREE and name not in _NEEDED and value not in (None, False, 0, "off", [], ()):
            raise ConfigError(f"{name} is {value!r}, which neither Llama nor Qwen3 has; export a model without it")
    if config.qk_norm and config.bias:
        raise ConfigError("qk_norm and bias are both on, which neither Llama nor Qwen3 has; export a model with one")
    if config.qk_norm and _epsilon(config) != RMS_EPSILON:
        raise ConfigError(
            f"norm_epsilon is {config.norm_epsilon}; it must be {RMS_EPSILON} with qk_norm, since Qwen3 has one "
            "epsilon for all norms"
        )
    return "Qwen3ForCausalLM" if config.qk_norm else "LlamaForCausalLM"


def to_huggingface(model: GPT) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Return the fields of config.json (without those of the tokenizer) and the tensors of model.safetensors.

    Raises ConfigError for a setting that neither architecture has.
    """
    config = model.config
    architecture = architecture_of(config)
    fields: dict[str, Any] = {
        "architectures": [architecture],
        "model_type": _TYPES[architecture],
        "vocab_size": config.vocab_size,
        "hidden_size": config.width,
        "intermediate_size": swiglu_hidden(config.width),
        "num_hidden_layers": config.num_layers,
        "num_attention_heads": config.num_heads,
        "num_key_value_heads": _kv_heads(config),
        "head_dim": config.width // config.num_heads,
        "max_position_embeddings": config.context_length,
        "hidden_act": "silu",
        "rms_norm_eps": _epsilon(config),
        "rope_theta": _rotary_base(config),
        "rope_parameters": {"rope_type": "default", "rope_theta": _rotary_base(config)},
        "attention_bias": config.bias,
        "attention_dropout": config.dropout,
        "tie_word_embeddings": config.tied_head,
        "dtype": "float32",
        "torch_dtype": "float32",
    }
    if architecture == "LlamaForCausalLM":
        fields["mlp_bias"] = config.bias
    tensors = {
        "model.embed_tokens.weight": model.embedding.weight,
        "model.norm.weight": _gain(model.final_norm, config),
    }
    if not config.tied_head:
        tensors["lm_head.weight"] = model.head.weight
    for number, block in enumerate(model.blocks):
        tensors |= {f"model.layers.{number}.{name}": tensor for name, tensor in _block_tensors(block, config).items()}
    return fields, {name: tensor.detach().float().cpu().contiguous().clone() for name, tensor in tensors.items()}


def from_huggingface(fields: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> GPT:
    """Make the GPT equivalent to a Llama or Qwen3 model, such as `to_huggingface` returns.

    Raises:
        ConfigError: A setting there has no counterpart here.
    """
    settings = _settings(fields, tensors)
    model = GPTConfig.from_json(settings).build()
    wanted = to_huggingface(model)[1]
    _check_tensors(wanted, tensors, tied=settings["tied_head"])
    with torch.no_grad():
        model.embedding.weight.copy_(tensors["model.embed_tokens.weight"])
        if not settings["tied_head"]:
            model.head.weight.copy_(tensors["lm_head.weight"])
        _set_gain(model.final_norm, tensors["model.norm.weight"])
        for number, block in enumerate(model.blocks):
            prefix = f"model.layers.{number}."
            _load_block(block, {n.removeprefix(prefix): t for n, t in tensors.items() if n.startswith(prefix)})
    return model.eval()


def _block_tensors(block: Any, config: GPTConfig) -> dict[str, Tensor]:
    """Return the tensors of a layer, by their names in `transformers`."""
    head_dim = config.width // config.num_heads
    sizes = [config.width, *[_kv_heads(config) * head_dim] * 2]
    tensors = {
        "input_layernorm.weight": _gain(block.attention_norm, config),
        "post_attention_layernorm.weight": _gain(block.mlp_norm, config),
    }
    for part in ("weight", "bias") if config.bias else ("weight",):
        query, key, value = getattr(block.attention.qkv, part).split(sizes)
        gate, up = getattr(block.mlp.gate_and_up, part).chunk(2)
        tensors |= {
            f"self_attn.q_proj.{part}": query,
            f"self_attn.k_proj.{part}": key,
            f"self_attn.v_proj.{part}": value,
            f"self_attn.o_proj.{part}": getattr(block.attention.output, part),
            f"mlp.gate_proj.{part}": gate,
            f"mlp.up_proj.{part}": up,
            f"mlp.down_proj.{part}": getattr(block.mlp.output, part),
        }
    if config.qk_norm:
        ones = torch.ones(head_dim)
        tensors |= {"self_attn.q_norm.weight": ones, "self_attn.k_norm.weight": ones}
    return tensors


def _load_block(block: Any, tensors: Mapping[str, Tensor]) -> None:
    _set_gain(block.attention_norm, tensors["input_layernorm.weight"])
    _set_gain(block.mlp_norm, tensors["post_attention_layernorm.weight"])
    for part in ("weight", "bias") if block.attention.output.bias is not None else ("weight",):
        qkv = [tensors[f"self_attn.{name}_proj.{part}"] for name in "qkv"]
        getattr(block.attention.qkv, part).copy_(torch.cat(qkv))
        getattr(block.attention.output, part).copy_(tensors[f"self_attn.o_proj.{part}"])
        gate_and_up = [tensors[f"mlp.{name}_proj.{part}"] for name in ("gate", "up")]
        getattr(block.mlp.gate_and_up, part).copy_(torch.cat(gate_and_up))
        getattr(block.mlp.output, part).copy_(tensors[f"mlp.down_proj.{part}"])


def _settings(fields: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> dict[str, Any]:
    """Return the settings of the GPT that config.json describes."""
    kind = fields.get("model_type")
    if kind not in _TYPES.values():
        raise ConfigError(f"model_type is {kind!r}; it must be {' or '.join(_TYPES.values())} to be imported")
    width, num_heads = fields["hidden_size"], fields["num_attention_heads"]
    rope = fields.get("rope_parameters") or fields.get("rope_scaling") or {}
    bias = fields.get("attention_bias", False)
    needed = {
        "hidden_act": (fields.get("hidden_act", "silu"), "silu"),
        "intermediate_size": (fields["intermediate_size"], swiglu_hidden(width)),
        "head_dim": (fields.get("head_dim") or width // num_heads, width // num_heads),
        "rope_type": (rope.get("rope_type", rope.get("type", "default")), "default"),
        "mlp_bias": (fields.get("mlp_bias", False), bias),
        "use_sliding_window": (fields.get("use_sliding_window", False), False),
    }
    epsilon = fields.get("rms_norm_eps", RMS_EPSILON)
    if kind == "qwen3":  # here the norms of queries and keys have this one
        needed["rms_norm_eps"] = (epsilon, RMS_EPSILON)
    for name, (value, wanted) in needed.items():
        if value != wanted:
            raise ConfigError(f"{name} is {value!r}; it must be {wanted!r} to be imported as a GPT")
    gains = [tensor for name, tensor in tensors.items() if name.endswith(("layernorm.weight", "model.norm.weight"))]
    head_gains = [tensor for name, tensor in tensors.items() if name.endswith(("q_norm.weight", "k_norm.weight"))]
    if not all(map(_is_one, head_gains)):
        raise ConfigError("q_norm and k_norm have gains other than 1, which a GPT here does not have")
    settings = {
        "vocab_size": fields["vocab_size"],
        "context_length": fields["max_position_embeddings"],
        "num_layers": fields["num_hidden_layers"],
        "num_heads": num_heads,
        "width": width,
        "norm_epsilon": None if epsilon == RMS_EPSILON else epsilon,
        "norm": "rmsnorm" if all(map(_is_one, gains)) else "rmsnorm_gain",
        "qk_norm": kind == "qwen3",
        "bias": bias,
        "tied_head": fields.get("tie_word_embeddings", False),
        "init": "gpt2",
    }
    base = float(rope.get("rope_theta", fields.get("rope_theta", ROTARY_BASE)))
    kv_heads = fields.get("num_key_value_heads") or num_heads
    known = {field.name for field in dataclasses.fields(GPTConfig)}
    for name, value, default in (("rotary_base", base, ROTARY_BASE), ("kv_heads", kv_heads, num_heads)):
        if value != default and name not in known:
            raise ConfigError(f"{name} would be {value}; it must be {default} to be imported as a GPT")
        if value != default:
            settings[name] = value
    return settings


def _check_tensors(wanted: Mapping[str, Tensor], given: Mapping[str, Tensor], *, tied: bool) -> None:
    shapes = [
        {name: tuple(tensor.shape) for name, tensor in tensors.items() if not (tied and name == "lm_head.weight")}
        for tensors in (wanted, given)
    ]
    odd = sorted(name for name in shapes[0].keys() | shapes[1].keys() if shapes[0].get(name) != shapes[1].get(name))
    if odd:
        name = odd[0]
        raise ConfigError(f"tensor {name} has shape {shapes[1].get(name)}; it must be {shapes[0].get(name)}")


def _gain(norm: nn.Module, config: GPTConfig) -> Tensor:
    """Return the gain of an RMSNorm, or 1 if it has none."""
    weight = getattr(norm, "weight", None)
    return torch.ones(config.width) if weight is None else weight


@torch.no_grad()
def _set_gain(norm: nn.Module, gain: Tensor) -> None:
    weight = getattr(norm, "weight", None)
    if weight is not None:
        weight.copy_(gain)


def _is_one(gain: Tensor) -> bool:
    return bool((gain == 1).all())


def _kv_heads(config: GPTConfig) -> int:
    return getattr(config, "kv_heads", None) or config.num_heads


def _epsilon(config: GPTConfig) -> float:
    return RMS_EPSILON if config.norm_epsilon is None else config.norm_epsilon


def _rotary_base(config: GPTConfig) -> float:
    return float(getattr(config, "rotary_base", ROTARY_BASE))
