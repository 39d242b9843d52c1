"""The logits of a Llama or a Qwen3 from the files of a folder, written out: the oracle of exports."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor


def logits(config: dict[str, Any], tensors: dict[str, Tensor], ids: list[int]) -> Tensor:
    """The logits after each of the ids, float64[T, V]."""
    tensors = {name: tensor.double() for name, tensor in tensors.items()}
    x = tensors["model.embed_tokens.weight"][ids]  # [T, D]
    for layer in range(config["num_hidden_layers"]):
        own = {name.removeprefix(f"model.layers.{layer}."): tensor for name, tensor in tensors.items()
               if name.startswith(f"model.layers.{layer}.")}  # fmt: skip
        x = x + attention(config, own, rms_norm(config, x, own["input_layernorm.weight"]))
        y = rms_norm(config, x, own["post_attention_layernorm.weight"])
        gate, up = linear(own, "mlp.gate_proj", y), linear(own, "mlp.up_proj", y)
        x = x + linear(own, "mlp.down_proj", gate * torch.sigmoid(gate) * up)
    x = rms_norm(config, x, tensors["model.norm.weight"])
    return x @ tensors["model.embed_tokens.weight" if config["tie_word_embeddings"] else "lm_head.weight"].T


def attention(config: dict[str, Any], own: dict[str, Tensor], x: Tensor) -> Tensor:
    """One position and one head after the other."""
    size = config["head_dim"]
    shared = config["num_attention_heads"] // config["num_key_value_heads"]
    queries, keys, values = (linear(own, f"self_attn.{name}_proj", x).split(size, dim=-1) for name in "qkv")
    mixed = torch.zeros(len(x), size * config["num_attention_heads"], dtype=torch.float64)
    for head, query in enumerate(queries):
        key, value = keys[head // shared], values[head // shared]  # [T, K] each
        if "self_attn.q_norm.weight" in own:
            query = rms_norm(config, query, own["self_attn.q_norm.weight"])
            key = rms_norm(config, key, own["self_attn.k_norm.weight"])
        query, key = rotate(config, query), rotate(config, key)
        for position in range(len(x)):
            weights = (key[: position + 1] @ query[position] / math.sqrt(size)).softmax(0)
            mixed[position, head * size : (head + 1) * size] = weights @ value[: position + 1]
    return linear(own, "self_attn.o_proj", mixed)


def rotate(config: dict[str, Any], x: Tensor) -> Tensor:
    """Turn the pair (i, i + K/2) of position t by the angle t / base^(2 i / K)."""
    half = x.size(-1) // 2
    base = config["rope_parameters"]["rope_theta"]
    turned = torch.empty_like(x)
    for position in range(len(x)):
        for i in range(half):
            angle = position / base ** (2 * i / x.size(-1))
            a, b = x[position, i], x[position, i + half]
            turned[position, i] = a * math.cos(angle) - b * math.sin(angle)
            turned[position, i + half] = a * math.sin(angle) + b * math.cos(angle)
    return turned


def linear(own: dict[str, Tensor], name: str, x: Tensor) -> Tensor:
    y = x @ own[f"{name}.weight"].T
    return y + own[f"{name}.bias"] if f"{name}.bias" in own else y


def rms_norm(config: dict[str, Any], x: Tensor, gain: Tensor) -> Tensor:
    return x / torch.sqrt((x * x).mean(-1, keepdim=True) + config["rms_norm_eps"]) * gain
